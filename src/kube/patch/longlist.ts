/**
 * A long list while a patch works on it, kept in chunks: an item that comes or goes moves the items of its chunk and
 * not all behind it. A patch of 10,000 operations would otherwise move a million items 10,000 times.
 */

import type { Json } from '../json/json.ts'

/** Items of a chunk; twice as many and it is divided. Finding a chunk among those of a body costs about as much. */
const CHUNK_ITEMS = 1024

/** From here on a list is long; to move fewer items costs less than chunks do. */
export const LONG_ITEMS = 4 * CHUNK_ITEMS

export class LongList {
  readonly #chunks: Json[][] = []
  #length: number

  constructor(items: readonly Json[]) {
    this.#length = items.length
    for (let at = 0; at < items.length; at += CHUNK_ITEMS) this.#chunks.push(items.slice(at, at + CHUNK_ITEMS))
  }

  get length(): number {
    return this.#length
  }

  at(index: number): Json | undefined {
    const { chunk, offset } = this.#find(index)
    return this.#chunks[chunk]?.[offset]
  }

  set(index: number, item: Json): void {
    const { chunk, offset } = this.#find(index)
    this.#chunks[chunk]![offset] = item
  }

  /** `index` may be the length: the item comes last. */
  insert(index: number, item: Json): void {
    const { chunk, offset } = this.#find(index)
    const items = this.#chunks[chunk]
    if (items === undefined) this.#chunks.push([item])
    else {
      items.splice(offset, 0, item)
      if (items.length > 2 * CHUNK_ITEMS) this.#chunks.splice(chunk + 1, 0, items.splice(CHUNK_ITEMS))
    }
    this.#length++
  }

  remove(index: number): void {
    const { chunk, offset } = this.#find(index)
    const items = this.#chunks[chunk]!
    items.splice(offset, 1)
    if (items.length === 0) this.#chunks.splice(chunk, 1)
    this.#length--
  }

  /** Makes an array of what is in the list now. */
  settle(array: Json[]): void {
    array.length = 0
    for (const items of this.#chunks) for (const item of items) array.push(item)
  }

  /** The end of the list is the end of its last chunk. */
  #find(index: number): { chunk: number; offset: number } {
    let offset = index
    let chunk = 0
    for (; chunk < this.#chunks.length - 1; chunk++) {
      const { length } = this.#chunks[chunk]!
      if (offset < length) break
      offset -= length
    }
    return { chunk, offset }
  }
}
