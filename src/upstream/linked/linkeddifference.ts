/** What a comparison over a link has found, as the difference from what is held. */
import { differ, isSame } from '../../cache/differ.ts'
import type { Item } from '../../cache/item.ts'
import type { From, HeldState } from '../follow/follow.ts'
import type { LinkedCopy } from './linkedcopy.ts'

type Told = {
  /** What there is now. */
  readonly copy: LinkedCopy
  /** What was sent of it. */
  readonly items: ReadonlyMap<string, Item | undefined>
  readonly start: From['start']
}

export function differFromTold(held: HeldState, { copy, items, start }: Told): ReturnType<typeof differ> {
  const found = new Map<string, Item | 'same'>()
  const otherwise: Item[] = []
  for (const item of copy.all()) {
    const { key } = item
    const isTold = items.get(key) === item
    found.set(key, isTold ? item : 'same')
    const before = isTold && !held.isCorrupt(key) ? held.peek(key) : undefined
    // The same version in other bytes, which only the digests of a link tell: nothing has happened that a watch should hear of.
    // What is told again as it is held (a snapshot, a change that was taken back meanwhile) stays, with its history.
    if (before !== undefined && isSame(before, item.uid, item.version) && !before.bytes.equals(item.bytes))
      otherwise.push(item)
  }
  const { changed, gone, repaired } = differ(held, found, start === 'repair')
  return { changed, gone, repaired: [...repaired, ...otherwise] }
}

/** Whether an object is older than it was: no past goes back. */
export function hasFallen(held: HeldState, items: ReadonlyMap<string, Item | undefined>): boolean {
  for (const [key, item] of items)
    if (item !== undefined && !held.isCorrupt(key) && item.version < (held.peek(key)?.version ?? 0)) return true
  return false
}
