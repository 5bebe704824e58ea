/**
 * What a reading of the whole collection found to differ from what is held: pure, and the same for a list of the cloud, for
 * the state of a wider interest, and for whatever else tells a whole collection.
 */
import type { CloudState } from './cloudstate.ts'
import type { Difference } from './intake.ts'
import type { Item } from './item.ts'

type Held = Pick<CloudState, 'all' | 'corrupt' | 'isCorrupt' | 'peek' | 'version'>

/** Under one key. A version alone does not tell: another cluster, or another past of this one, counts from the same numbers. */
export function isSame(item: Pick<Item, 'uid' | 'version'>, uid: string, version: number): boolean {
  return item.version === version && item.uid === uid
}

/**
 * `found` by key; 'same' where its reader has compared already and kept no bytes. `followed`: every watch has heard all that
 * is held, so that what is damaged here is damaged here only, and is repaired without a word to any watcher.
 */
export function differ(
  held: Held,
  found: ReadonlyMap<string, Item | 'same'>,
  followed: boolean,
): Omit<Difference, 'version'> & { readonly repaired: readonly Item[] } {
  const changed: Item[] = []
  const repaired: Item[] = []
  const gone: string[] = []
  for (const item of found.values()) {
    if (item === 'same') continue
    if (held.isCorrupt(item.key)) (followed && item.version <= held.version ? repaired : changed).push(item)
    else if (!isShared(held.peek(item.key), item)) changed.push(item)
  }
  for (const key of held.corrupt) if (!found.has(key)) gone.push(key)
  for (const item of held.all()) {
    const now = found.get(item.key)
    // Deleted and made again: two events, as a watch would have brought.
    if (now === undefined || (now !== 'same' && now.bytes !== item.bytes && now.uid !== item.uid)) gone.push(item.key)
  }
  return { changed, gone, repaired }
}

/** Of most objects the bytes are the very same, and need no reading. */
function isShared(item: Item | undefined, found: Item): boolean {
  return item !== undefined && (item.bytes === found.bytes || isSame(item, found.uid, found.version))
}
