/**
 * What may differ between two servers that behave alike is replaced by its name: identities, versions, times, ages,
 * addresses. A document that is JSON is printed anew, sorted; so is its record of who managed which field, which is in the
 * order of times.
 */

type Mask = readonly [RegExp, string]

const masks: readonly Mask[] = [
  [/\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, '<uid>'],
  [/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, '<time>'],
  [/\b[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}/g, '<time>'],
  [/\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? [+-]\d{4}/g, '<time>'],
  [/(resource ?version"?(?:: *|=)"?)\d+/gi, '$1<version>'],
  [/("continue": ")[^"]+/g, '$1<token>'],
  [/https:\/\/127\.0\.0\.1:\d+/g, '<server>'],
  [/("serverAddress": ")[^"]+/g, '$1<server>'],
  [/[^\s"]*\/(LIVE|MERGED)-\d+/g, '/tmp/$1'],
  [/[^\s"]*\/kubectl-edit-\d+/g, '/tmp/kubectl-edit'],
  // The hash names the certificate in use.
  [/X509SHA256=[0-9a-f]{64}/g, 'X509SHA256=<hash>'],
  // A table's column is as wide as its longest age: the blanks behind it go too; so do those of its header. `250m` of
  // CPU looks like an age, and what a toleration says is no age either.
  [/(?<=^|[ (])(?<!cpu: *|for )(?:\d+[ydhms])+(?! *\([-\d])(?=[ ,)]|$) */gm, '<age> '],
  [/\b(AGE|LAST SEEN|LAUNCHED) +/g, '$1 '],
]

export function mask(text: string): string {
  const masked = masks.reduce((so, [pattern, name]) => so.replace(pattern, name), jsonInOrder(text))
  return masked.replace(/(^\* .*\n)+/gm, (causes) => linesInOrder(causes))
}

/** Causes of a refusal: the real server finds them by walking a map, so each time in another order. */
function linesInOrder(lines: string): string {
  return `${lines.trimEnd().split('\n').sort().join('\n')}\n`
}

function jsonInOrder(text: string): string {
  if (!text.startsWith('{')) return text
  try {
    return `${JSON.stringify(inOrder(JSON.parse(text)), null, 2)}\n`
  } catch {
    return text
  }
}

function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(
    members.map(([name, held]) => [name, name === 'managedFields' ? managersInOrder(held) : inOrder(held)]),
  )
}

type Managed = { readonly manager?: string; readonly operation?: string; readonly subresource?: string }

function managersInOrder(managers: readonly Managed[]): unknown {
  const named = ({ manager, operation, subresource }: Managed) => JSON.stringify([manager, operation, subresource])
  return managers.toSorted((a, b) => (named(a) < named(b) ? -1 : 1)).map(inOrder)
}
