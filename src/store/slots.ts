/**
 * Bodies that nobody refers to any more, waiting to be overwritten by new ones of their size. Deleting a row and adding
 * another moves its neighbours in the b-tree and touches half a dozen pages; overwriting one writes its own page only.
 */
import type { Statements } from './connection.ts'

/** Beyond so many the rest is deleted: the list is kept in memory. */
const slotsMax = 4_096

type Slot = { readonly body: number; readonly size: number }

export class Slots {
  readonly #use: Statements
  /** What lies idle on the disk for the sake of this. */
  readonly #bytesMax: number
  readonly #free = new Map<number, Slot[]>()
  readonly #given: Slot[] = []
  /** Used again, but still in the table: struck out together with the next that are added. */
  readonly #taken = new Set<number>()
  #bytes = 0
  #count = 0

  constructor(parts: { statements: Statements; bytesMax: number }) {
    this.#use = parts.statements
    this.#bytesMax = parts.bytesMax
    for (const row of this.#use.slots.all()) {
      const [body, size, used] = row as unknown as [number, number, number]
      if (used === 1) this.#taken.add(body)
      else this.#add({ body, size })
    }
  }

  #add(slot: Slot): void {
    const alike = this.#free.get(sizeClass(slot.size))
    if (alike === undefined) this.#free.set(sizeClass(slot.size), [slot])
    else alike.push(slot)
    this.#bytes += slot.size
    this.#count++
  }

  /** A body of about this size to overwrite. */
  take(size: number): number | undefined {
    const slot = this.#free.get(sizeClass(size))?.pop()
    if (slot === undefined) return undefined
    this.#bytes -= slot.size
    this.#count--
    this.#taken.add(slot.body)
    return slot.body
  }

  /** Nobody refers to this body any more, once the transaction under way is committed. */
  give(body: number, size: number): void {
    this.#given.push({ body, size })
  }

  /** The last step of a transaction. */
  store(): void {
    if (this.#given.length === 0) return
    for (const slot of this.#given.splice(0)) {
      if (this.#count >= slotsMax || this.#bytes + slot.size > this.#bytesMax) {
        this.#use.dropBody.run(slot.body)
        continue
      }
      this.#use.addSlot.run(slot.body, slot.size)
      this.#taken.delete(slot.body)
      this.#add(slot)
    }
    this.strikeOut()
  }

  /** Needed before bodies are deleted by other ways: the table must not name one that is gone. */
  strikeOut(): void {
    for (const body of this.#taken) this.#use.dropSlot.run(body)
    this.#taken.clear()
  }
}

/** By doublings that end where a page does: what goes into a slot needs as many pages as what was there. */
function sizeClass(size: number): number {
  return Math.ceil(Math.log2(size + 64))
}
