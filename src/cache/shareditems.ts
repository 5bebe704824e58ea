/**
 * The objects that a mirror's interests of one resource hold: each version once, however many of them hold it, in memory
 * and in the store. Twenty selectors over one collection cost little more than one.
 *
 * Two are the same if key, version and all bytes are: a version alone does not tell, since another cluster, another past
 * of this one or a definition with other defaults may give other bytes under it. Holders are counted, so that the store
 * hears when no change can bring the bytes again: an item is held while its change is under way, then by the cache whose
 * object it is, then by the window whose event has it as the object before.
 */
import type { FieldPlan } from '../kube/object.ts'
import type { Change, Cursor, LoadedObject, SharedBody, Store } from '../store/store.ts'
import { type Item, makeItem, type Sharing } from './item.ts'

export class SharedItems {
  readonly #store: Pick<Store, 'release'>
  /** The newest version of each key; older ones hang behind it. */
  readonly #newest = new Map<string, SharedItem>()
  /** How many there are, and what their bytes take. */
  size = 0
  bytes = 0

  constructor(store: Pick<Store, 'release'>) {
    this.#store = store
  }

  /** The item to use in place of this one, read by the plan, with one holder more: the caller. */
  take(item: Item, plan: FieldPlan): Item {
    const { key, version, bytes } = item
    let newer: SharedItem | undefined
    let one = this.#newest.get(key)
    while (one !== undefined && one.item.version >= version) {
      if (one.item.version === version && one.item.bytes.equals(bytes)) {
        one.holders++
        return item.bytes === one.item.bytes && item.shared === one ? item : one.readBy(plan)
      }
      newer = one
      one = one.older
    }
    const added = new SharedItem(this, item, plan)
    added.older = one
    added.newer = newer
    if (one !== undefined) one.newer = added
    if (newer === undefined) this.#newest.set(key, added)
    else newer.older = added
    this.size++
    this.bytes += bytes.length
    return item
  }

  /** What is held of a key in this version and read by the plan; without a holder more. */
  find(key: string, version: number, plan: FieldPlan): Item | undefined {
    for (let one = this.#newest.get(key); one !== undefined; one = one.older) {
      if (one.item.version === version && one.isReadBy(plan)) return one.item
    }
    return undefined
  }

  /** An object of the store, held by the caller. It is read once, however many interests have it. */
  load({ key, version, body, shared }: LoadedObject, plan: FieldPlan, make: () => Item): Item {
    for (let one = this.#newest.get(key); one !== undefined; one = one.older) {
      if (one.item.bytes !== body) continue
      one.holders++
      return one.readBy(plan)
    }
    const item = this.take(make(), plan)
    const own = item.shared as SharedItem
    // The store has it under another label, or twice: as a folder of an older ake has what overlaps.
    if (own.name === 0 && item.version === version) own.name = shared?.name ?? 0
    else if (shared !== undefined) this.#store.release(shared)
    return item
  }

  /** Its last holder is gone. */
  drop(gone: SharedItem): void {
    const { newer, older, item } = gone
    if (older !== undefined) older.newer = newer
    if (newer !== undefined) newer.older = older
    else if (older !== undefined) this.#newest.set(item.key, older)
    else this.#newest.delete(item.key)
    this.size--
    this.bytes -= item.bytes.length
    this.#store.release(gone)
  }
}

class SharedItem implements SharedBody, Sharing {
  readonly #items: SharedItems
  item: Item
  #plan: FieldPlan
  name = 0
  holders = 1
  newer: SharedItem | undefined = undefined
  older: SharedItem | undefined = undefined

  constructor(items: SharedItems, item: Item, plan: FieldPlan) {
    this.#items = items
    this.item = item
    this.#plan = plan
    item.shared = this
  }

  isReadBy(plan: FieldPlan): boolean {
    return plan === this.#plan
  }

  readBy(plan: FieldPlan): Item {
    if (!this.isReadBy(plan)) {
      this.item = makeItem(this.item.bytes, this.item.version, plan)
      this.item.shared = this
      this.#plan = plan
    }
    return this.item
  }

  letGo(): void {
    if (--this.holders === 0) this.#items.drop(this)
  }
}

/** An item as an object without history. */
export function seedOf(interest: string, { key, version, bytes, shared }: Item): Change {
  return { interest, key, version, kind: 'seed', position: 0, body: bytes, shared }
}

/** An item as a step of history under a label. One that was put back under another label than its own shares nothing. */
export function putOf(interest: string, item: Item, { version, position }: Cursor): Change {
  const shared = version === item.version ? item.shared : undefined
  return { interest, key: item.key, version, kind: 'put', body: item.bytes, position, shared }
}
