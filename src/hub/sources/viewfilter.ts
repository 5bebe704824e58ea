/** Which objects of a source an interest means. */
import { type Filter, makeFilter, type Term } from '../../cache/filter.ts'
import type { Item } from '../../cache/item.ts'
import type { FieldPlan } from '../../kube/object.ts'
import { objectKey } from '../../kube/resource.ts'
import type { Interest } from '../../mirror/interest.ts'
import type { Mirrored } from '../../mirror/mirror.ts'

/** Throws a Status where a field cannot be selected by. */
export function viewFilter(wanted: Interest, { resource, fields }: Mirrored, plan: FieldPlan): Filter {
  const { namespaced } = resource
  const { namespace, labels } = wanted
  const name = soleName(wanted)
  if (name !== undefined && (!namespaced || namespace !== '')) return ofKey(objectKey(namespace, name), namespace)
  return makeFilter({ namespaced, namespace, labels, fields: fields.resolve(wanted.fields), paths: fields.paths, plan })
}

/** The name that is all it asks for. */
function soleName({ labels, fields }: Interest): string | undefined {
  const [first, second] = fields.requirements
  if (first === undefined || second !== undefined || !labels.empty || first.operator === '!=') return undefined
  return first.field === 'metadata.name' && first.value !== '' ? first.value : undefined
}

const noTerms: readonly Term[] = []

class KeyFilter implements Filter {
  readonly namespace: string | undefined
  readonly key: string

  constructor(key: string, namespace: string | undefined) {
    this.key = key
    this.namespace = namespace
  }

  get terms(): readonly Term[] {
    return noTerms
  }

  get selects(): boolean {
    return true
  }

  matches({ key }: Item): boolean {
    return key === this.key
  }
}

/** Most interests of an edge are names, and nothing is kept for them but a key. */
function ofKey(key: string, namespace: string): Filter {
  const place = namespace === '' ? undefined : namespace
  return new KeyFilter(key, place)
}
