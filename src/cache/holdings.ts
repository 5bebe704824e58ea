/**
 * What goes with each interest of a mirror if it ends: what it alone holds, and what goes with the last of several that
 * hold it (`shareditems.ts`). It takes a walk over all that is held, and is asked for only where that is too much, or a newcomer
 * needs room. What the same interests hold is one part, so that they are weighed by a few numbers and not by objects.
 */
import type { Item, Sharing } from './item.ts'

/** Bytes that several interests hold. */
export type SharedBytes = { readonly bytes: number; readonly holders: number }

export type InterestBytes = { readonly alone: number; readonly shared: readonly SharedBytes[] }

type ItemHolder = {
  readonly interest: string
  /** Everything it holds; the same one may be told twice. */
  held(tell: (item: Item) => void): void
}

type Counted = { alone: number; readonly shared: SharedBytes[] }

/** Objects that the same holders have, as far as these were looked at. */
type Part = {
  holders: Counted[]
  bytes: number
  /** What of it the holder has that is looked at now. */
  split: Part | undefined
}

export function holdingsOf(all: Iterable<ItemHolder>): ReadonlyMap<string, InterestBytes> {
  const holdings = new Map<string, Counted>()
  const partOf = new Map<Sharing, Part>()
  for (const holder of all) {
    const holding: Counted = { alone: 0, shared: [] }
    holdings.set(holder.interest, holding)
    const fresh: Part = { holders: [holding], bytes: 0, split: undefined }
    const touched = new Map<Part, Part>()
    const seen = new Set([fresh])
    holder.held(({ shared, bytes: { length } }) => {
      if (shared === undefined) return
      const before = partOf.get(shared)
      if (before !== undefined && seen.has(before)) return
      let part = fresh
      if (before !== undefined) {
        if (before.split === undefined) {
          before.split = { holders: [], bytes: 0, split: undefined }
          touched.set(before, before.split)
          seen.add(before.split)
        }
        part = before.split
        before.bytes -= length
      }
      part.bytes += length
      partOf.set(shared, part)
    })
    for (const [before, part] of touched) {
      before.split = undefined
      // Of most it has all or nothing: then their holders need not be written down twice.
      part.holders = before.bytes === 0 ? before.holders : [...before.holders]
      part.holders.push(holding)
    }
  }
  for (const part of new Set(partOf.values())) share(part)
  return holdings
}

function share({ holders, bytes }: Part): void {
  const [first] = holders
  if (holders.length === 1 && first !== undefined) {
    first.alone += bytes
    return
  }
  const shared: SharedBytes = { bytes, holders: holders.length }
  for (const holder of holders) holder.shared.push(shared)
}
