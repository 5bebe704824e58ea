/**
 * What a snapshot or a comparison has brought so far, put aside until it is whole. A snapshot that was cut is gone on with over the
 * next link, so this outlives the one it began with.
 */
import { type Item, makeItem } from '../../cache/item.ts'
import type { FieldPlan } from '../../kube/object.ts'
import type { PartialSnapshot, StagedChange } from '../../link/session/session.ts'
import { type Collection, TooLarge } from '../follow/follow.ts'
import type { ListingLimits } from '../follow/listing.ts'

export class PutAside {
  readonly #collection: Collection
  /** Undefined: it was removed. */
  readonly #items = new Map<string, Item | undefined>()
  #bytes = 0
  /** Where it goes on after a cut. */
  resume: PartialSnapshot | undefined

  constructor(collection: Collection) {
    this.#collection = collection
  }

  get items(): ReadonlyMap<string, Item | undefined> {
    return this.#items
  }

  /** Throws where one is not what its key says. */
  add(changes: readonly StagedChange[], plan: FieldPlan): void {
    for (const change of changes) {
      const item = change.type === 'remove' ? undefined : this.#itemOf(change, plan)
      this.#bytes += (item?.bytes.length ?? 0) - (this.#items.get(change.key)?.bytes.length ?? 0)
      this.#items.set(change.key, item)
    }
  }

  /** Throws `TooLarge`. */
  limit(limits: ListingLimits): void {
    const bytesMax = Math.min(limits.bytes, this.#collection.room?.() ?? limits.bytes)
    if (this.#items.size > limits.objects) throw new TooLarge(`more than ${limits.objects} objects`)
    if (this.#bytes > bytesMax) throw new TooLarge(`more than ${bytesMax} bytes`)
  }

  #itemOf({ key, version, bytes }: Extract<StagedChange, { type: 'put' }>, plan: FieldPlan): Item {
    const known = this.#collection.known?.(key, version, plan)
    // Only where it is the very same: what is counted in a digest is what is kept.
    if (known?.bytes.equals(bytes) === true) return known
    return itemOfChange({ key, version, bytes: Buffer.from(bytes) }, plan)
  }
}

/** Throws where it is no object, or another one. */
export function itemOfChange(
  { key, version, bytes }: { readonly key: string; readonly version: number; readonly bytes: Buffer },
  plan: FieldPlan,
): Item {
  const item = makeItem(bytes, version, plan)
  if (item.key !== key) throw new Error(`the hub calls ${key} what is ${item.key}`)
  return item
}
