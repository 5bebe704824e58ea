/** The floors of all interests as the main thread knows them: what was said counts at once, what was forgotten when it is told. */
import type { Batch } from './store.ts'
import type { FloorEntries } from './wire.ts'

export class Floors {
  readonly #floors = new Map<string, number>()
  /** When an interest was last forgotten: what the index says of the time before is about another. */
  readonly #forgotten = new Map<string, number>()

  of(interest: string): number {
    return this.#floors.get(interest) ?? 0
  }

  commit({ interests = [] }: Batch, sequence: number): void {
    for (const change of interests) {
      if (!('forget' in change)) continue
      this.#floors.delete(change.interest)
      this.#forgotten.set(change.interest, sequence)
    }
    for (const change of interests) if (!('forget' in change)) this.#raise(change.interest, change.floor ?? 0)
  }

  /** The index has every frame before this sequence. */
  applied(sequence: number): void {
    for (const [interest, at] of this.#forgotten) if (at < sequence) this.#forgotten.delete(interest)
  }

  /** What the index says after the frames that were told as applied. */
  told(floors: FloorEntries): void {
    for (const [interest, floor] of floors) if (!this.#forgotten.has(interest)) this.#raise(interest, floor)
  }

  #raise(interest: string, floor: number): void {
    if (floor > this.of(interest)) this.#floors.set(interest, floor)
  }
}
