/**
 * The objects of one interest by key, in key order: lists are ordered by storage key, and a namespace is a range of it. A
 * sorted array and nothing besides: where many interests overlap, it is most of what each of them has of its own.
 */
import type { Item } from './item.ts'

export class Ordered {
  readonly #items: Item[] = []
  /** Where the last key was found: a change looks for its key several times. */
  #found = 0

  get size(): number {
    return this.#items.length
  }

  get(key: string): Item | undefined {
    const item = this.#items[this.#lowerBound(key)]
    return item?.key === key ? item : undefined
  }

  set(item: Item): void {
    const at = this.#lowerBound(item.key)
    if (this.#items[at]?.key === item.key) this.#items[at] = item
    else if (at === this.#items.length) this.#items.push(item)
    else this.#items.splice(at, 0, item)
  }

  delete(key: string): void {
    const at = this.#lowerBound(key)
    if (this.#items[at]?.key === key) this.#items.splice(at, 1)
  }

  all(): Item[] {
    return this.#items.slice()
  }

  /** Every item whose key begins with `namespace/`. '0' is the character after '/'. */
  inNamespace(namespace: string): Item[] {
    return this.#items.slice(this.#lowerBound(`${namespace}/`), this.#lowerBound(`${namespace}0`))
  }

  #lowerBound(key: string): number {
    if (this.#items[this.#found]?.key === key) return this.#found
    let low = 0
    let high = this.#items.length
    // Objects arrive in key order when a store is loaded.
    if (high > 0 && (this.#items[high - 1] as Item).key < key) return high
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#items[middle] as Item).key < key) low = middle + 1
      else high = middle
    }
    this.#found = low
    return low
  }
}
