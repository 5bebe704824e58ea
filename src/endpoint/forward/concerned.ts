/** Which interests a write concerns: those that will hear of it, and so can be waited for. */
import type { Cache } from '../../cache/cache.ts'
import { makeFilter } from '../../cache/filter.ts'
import type { Item } from '../../cache/item.ts'
import type { Scope } from '../../kube/scope.ts'
import type { KnownResource } from '../../mirror/documents/catalog.ts'
import { covers } from '../../mirror/interest.ts'
import type { MirroredInterest } from '../../mirror/mirrored.ts'
import type { Effect } from './effects.ts'

/** One whose copy is there, and whose watch is not refused. */
export type Hearing = MirroredInterest & { readonly cache: Cache }

export type ScopedEffect = {
  readonly effect: Effect
  readonly scope: Scope
  /** The object itself in the form in which it is kept, where that is known: made when it is asked for, mostly never. */
  object(): Item | undefined
}

export function isWithin(interest: Scope, namespace: string): boolean {
  return interest.namespace === '' || interest.namespace === namespace
}

/** Whether only the object itself could tell if the interest will show it. */
export function needsObject(mirrored: Hearing, one: ScopedEffect): boolean {
  if (one.effect.kind !== 'reached' || !maySelect(mirrored, one) || isHeard(mirrored, one)) return false
  return one.object() === undefined
}

/** Whether the interest will hear of it: as it is, or because it will show it. */
export function isConcerned(mirrored: Hearing, one: ScopedEffect, known: KnownResource | undefined): boolean {
  if (isHeard(mirrored, one)) return true
  const object = known === undefined || !maySelect(mirrored, one) ? undefined : one.object()
  if (object === undefined || known === undefined) return false
  const { namespace, labels, fields } = mirrored.interest
  const { namespaced } = mirrored.record
  try {
    const { paths } = known.fields
    return makeFilter({ namespaced, namespace, labels, fields, paths, plan: known.plan }).matches(object)
  } catch {
    // A field that is not known any more.
    return false
  }
}

/** It covers the object whatever that holds, or shows it now. */
function isHeard({ interest, cache }: Hearing, { effect, scope }: ScopedEffect): boolean {
  // Versions of a resource are forms of one object: whatever changes it changes them all.
  return cache.peek(effect.key) !== undefined || covers(interest, { ...scope, version: interest.version })
}

/** Whether its selectors could choose the object: one of that name would cover it, and another form has other fields. */
function maySelect({ interest }: Hearing, { effect, scope }: ScopedEffect): boolean {
  if (!isWithin(interest, effect.namespace)) return false
  if (interest.version !== scope.version) return interest.fields.empty
  return interest.fields.required('metadata.name') === undefined
}
