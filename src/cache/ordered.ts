/** The objects of one interest by key, in key order: lists are ordered by storage key, and a namespace is a range of it. */
import type { Item } from './item.ts'

export class Ordered {
  readonly #byKey = new Map<string, Item>()
  readonly #items: Item[] = []

  get size(): number {
    return this.#items.length
  }

  get(key: string): Item | undefined {
    return this.#byKey.get(key)
  }

  set(item: Item): void {
    const at = this.#lowerBound(item.key)
    if (this.#byKey.has(item.key)) this.#items[at] = item
    else if (at === this.#items.length) this.#items.push(item)
    else this.#items.splice(at, 0, item)
    this.#byKey.set(item.key, item)
  }

  delete(key: string): void {
    if (this.#byKey.delete(key)) this.#items.splice(this.#lowerBound(key), 1)
  }

  all(): Item[] {
    return this.#items.slice()
  }

  /** Every item whose key begins with `namespace/`. '0' is the character after '/'. */
  inNamespace(namespace: string): Item[] {
    return this.#items.slice(this.#lowerBound(`${namespace}/`), this.#lowerBound(`${namespace}0`))
  }

  #lowerBound(key: string): number {
    let low = 0
    let high = this.#items.length
    // Objects arrive in key order when a store is loaded.
    if (high > 0 && (this.#items[high - 1] as Item).key < key) return high
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#items[middle] as Item).key < key) low = middle + 1
      else high = middle
    }
    return low
  }
}
