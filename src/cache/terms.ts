/** Indexes over equality terms that requests really use: made at first use, kept up to date, few per interest. */
import type { FieldPlan } from '../kube/object.ts'
import { termReader } from './filter.ts'
import type { Item } from './item.ts'

/** Below this many objects a scan is as quick as an index. */
export const indexFromObjects = 64
/** Each index costs a set entry per object; clients of one resource rarely use more than a few left sides. */
const indexesMax = 8

type TermIndex = {
  readonly read: (item: Item) => string | undefined
  readonly byValue: Map<string, Set<Item>>
  lastUse: number
}

export class Terms {
  readonly #plan: FieldPlan
  readonly #indexes = new Map<string, TermIndex>()
  #uses = 0

  constructor(plan: FieldPlan) {
    this.#plan = plan
  }

  /** Items that have `value` on the term's left side, in no order. */
  find(on: string, value: string, items: () => Iterable<Item>): ReadonlySet<Item> {
    let index = this.#indexes.get(on)
    if (index === undefined) {
      this.#makeRoom()
      index = { read: termReader(on, this.#plan), byValue: new Map(), lastUse: 0 }
      for (const item of items()) add(index, item)
      this.#indexes.set(on, index)
    }
    index.lastUse = ++this.#uses
    return index.byValue.get(value) ?? none
  }

  update(previous: Item | undefined, item: Item | undefined): void {
    for (const index of this.#indexes.values()) {
      if (previous !== undefined) remove(index, previous)
      if (item !== undefined) add(index, item)
    }
  }

  #makeRoom(): void {
    if (this.#indexes.size < indexesMax) return
    let oldest: [string, TermIndex] | undefined
    for (const entry of this.#indexes) if (oldest === undefined || entry[1].lastUse < oldest[1].lastUse) oldest = entry
    if (oldest !== undefined) this.#indexes.delete(oldest[0])
  }
}

const none: ReadonlySet<Item> = new Set()

function add(index: TermIndex, item: Item): void {
  const value = index.read(item)
  if (value === undefined) return
  const items = index.byValue.get(value)
  if (items === undefined) index.byValue.set(value, new Set([item]))
  else items.add(item)
}

function remove(index: TermIndex, item: Item): void {
  const value = index.read(item)
  if (value === undefined) return
  const items = index.byValue.get(value)
  items?.delete(item)
  if (items?.size === 0) index.byValue.delete(value)
}
