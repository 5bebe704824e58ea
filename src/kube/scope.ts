/** Which objects of one resource are meant: its namespace and both selectors; and the path that asks for exactly those. */
import type { FieldSelector } from './fieldselector.ts'
import type { LabelSelector } from './selector.ts'

export type Scope = {
  readonly group: string
  readonly version: string
  /** The plural. */
  readonly resource: string
  /** '' for all namespaces, or for what has none. */
  readonly namespace: string
  readonly labels: LabelSelector
  readonly fields: FieldSelector
}

/** The query of a list or watch upstream that asks for exactly this scope. */
export function pathOf(
  { group, version, resource, namespace, labels, fields }: Scope,
  query: Record<string, string>,
): string {
  const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`
  const place = namespace === '' ? '' : `/namespaces/${encodeURIComponent(namespace)}`
  const wishes = new URLSearchParams(query)
  if (!labels.empty) wishes.set('labelSelector', labels.toString())
  if (!fields.empty) wishes.set('fieldSelector', fields.toString())
  const asked = wishes.toString()
  return `${root}${place}/${resource}${asked === '' ? '' : `?${asked}`}`
}
