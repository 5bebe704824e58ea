/**
 * Whether the past of a cluster is still the one a copy is of, by witnesses: the newest objects that are held are still what
 * they were, or newer. Versions alone do not tell once a cluster that was put back has come further than the copy.
 */
import { isSame } from '../../cache/differ.ts'
import type { Item } from '../../cache/item.ts'
import type { HeldState } from './follow.ts'

/** The first that is still the same settles it, and is asked last; the newest of a busy collection may all have changed. */
const witnessesMax = 8

/** The newest objects that are held, the very newest first. */
export function witnessesOf(held: Pick<HeldState, 'all'>): Item[] {
  const newest: Item[] = []
  for (const item of held.all()) {
    if (newest.length === witnessesMax && item.version <= (newest.at(-1)?.version ?? 0)) continue
    newest.push(item)
    newest.sort((a, b) => b.version - a.version)
    if (newest.length > witnessesMax) newest.pop()
  }
  return newest
}

export type Testimony =
  /** It stands as it was: so does everything before it. */
  | 'same'
  /** It has changed since, which says nothing. */
  | 'changed'
  /** It was deleted since, which a watch has to tell; or it never was in this past. */
  | 'absent'
  /** It is older than it was: no past goes back. */
  | 'fell'
  /** It changed before the version that the copy has reached: the copy has missed that, or is of another past. */
  | 'differs'

/** `version` is how far the copy has come. */
export function hear(
  witness: Pick<Item, 'uid' | 'version'>,
  found: { readonly uid: string; readonly version: number } | undefined,
  version: number,
): Testimony {
  if (found === undefined) return 'absent'
  if (isSame(witness, found.uid, found.version)) return 'same'
  if (found.version < witness.version) return 'fell'
  return found.version > version ? 'changed' : 'differs'
}
