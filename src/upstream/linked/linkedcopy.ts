/**
 * What the copy of one interest will hold when everything that was told is taken over. The hub's deltas are against these bytes, and its
 * roots are compared with theirs. The items are those that were told, so that an object is held once more by name only.
 */
import { crc32 } from 'node:zlib'
import type { Item } from '../../cache/item.ts'
import { DigestTree } from '../../link/digest/digest.ts'
import type { HeldState } from '../follow/follow.ts'

export class LinkedCopy {
  readonly #items = new Map<string, Item>()

  /** Of what is held and whole. */
  static of(held: HeldState | undefined): LinkedCopy {
    const copy = new LinkedCopy()
    for (const { key } of held?.all() ?? []) {
      const item = held?.peek(key)
      if (item !== undefined) copy.#items.set(key, item)
    }
    return copy
  }

  get size(): number {
    return this.#items.size
  }

  get(key: string): Item | undefined {
    return this.#items.get(key)
  }

  all(): Iterable<Item> {
    return this.#items.values()
  }

  set(key: string, item: Item | undefined): void {
    if (item === undefined) this.#items.delete(key)
    else this.#items.set(key, item)
  }

  /** Made when it is wanted: a live interest needs none. */
  tree(secret: Buffer): DigestTree {
    const tree = new DigestTree(secret)
    for (const [key, item] of this.#items) tree.put(entryOf(key, item))
    return tree
  }
}

/** As the hub has it (`digestEntry`). */
export function entryOf(key: string, item: Item): Parameters<DigestTree['put']>[0] {
  return { key, uid: item.uid, version: item.version, content: crc32(item.bytes) }
}
