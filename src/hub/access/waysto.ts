/** What a node or a caller has to be allowed to do, so that a hub follows an interest for it. */
import type { Asking } from '../../access/question.ts'
import type { Interest } from '../../mirror/interest.ts'

/** Rights of which each, whole, is enough: to follow it is to list and watch; one object by its name is as good as got again and again. */
export function waysTo({
  group,
  version,
  resource,
  namespace,
  labels,
  fields,
}: Interest): readonly (readonly Asking[])[] {
  const name = fields.required('metadata.name') ?? ''
  const of = { group, version, resource, namespace, name }
  const selected = { ...of, labels: labels.toString(), fields: fields.toString() }
  const following = ['list', 'watch'].map((verb) => ({ verb, ...selected }))
  return name === '' ? [following] : [[{ verb: 'get', ...of }], following]
}
