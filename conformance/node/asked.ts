/** What was asked of an edge and how it was answered, from its metrics: reads that were served, writes that have to wait. */

const counted =
  /^ake_requests_total\{verb="(.*?)",group="(.*?)",resource="(.*?)",subresource="(.*?)",code="(.*?)"\} (\d+)/gm

/** A line for each code. What is no resource, or was not found, has no name there. */
export function askedOf(metrics: string): string[] {
  const byCode = new Map<string, string[]>()
  for (const [, verb = '', group, resource = '', sub, code = '', count] of metrics.matchAll(counted)) {
    if (resource === '') continue
    const what = `${resource}${group === '' ? '' : `.${group}`}${sub === '' ? '' : `/${sub}`}`
    byCode.set(code, [...(byCode.get(code) ?? []), `${verb} ${what} ×${count}`])
  }
  return [...byCode].sort().map(([code, all]) => `asked of the edge meanwhile, ${code}: ${all.sort().join(', ')}`)
}
