/** How large each segment is and how much of it is still referred to, as the table has it and the transaction changes it. */
import type { Statements } from './connection.ts'

/** The segment of bodies that could not be read when they had to move. */
export const nowhere = 0

type Counts = { size: number; live: number }

export class Segments {
  readonly #use: Statements
  readonly #counts = new Map<number, Counts>()
  readonly #changed = new Set<number>()
  size = 0
  live = 0

  constructor(statements: Statements) {
    this.#use = statements
    for (const row of statements.segments.all()) {
      const [number, size, live] = row as unknown as [number, number, number]
      this.#counts.set(number, { size, live })
      this.size += size
      this.live += live
    }
  }

  get counts(): ReadonlyMap<number, Readonly<Counts>> {
    return this.#counts
  }

  #of(segment: number): Counts {
    let counts = this.#counts.get(segment)
    if (counts === undefined) {
      counts = { size: 0, live: 0 }
      this.#counts.set(segment, counts)
    }
    this.#changed.add(segment)
    return counts
  }

  /** The segment reaches at least so far. */
  reach(segment: number, size: number): void {
    const counts = this.#of(segment)
    if (size <= counts.size) return
    this.size += size - counts.size
    counts.size = size
  }

  /** So many bytes of it are referred to from now on; fewer, where negative. */
  refer(segment: number, bytes: number): void {
    if (segment === nowhere) return
    this.#of(segment).live += bytes
    this.live += bytes
  }

  remove(segment: number): void {
    this.size -= this.#of(segment).size
    this.#counts.delete(segment)
  }

  /** The last step of a transaction. */
  store(): void {
    for (const segment of this.#changed) {
      const counts = this.#counts.get(segment)
      if (counts === undefined) this.#use.dropSegment.run(segment)
      else this.#use.setSegment.run(segment, counts.size, counts.live)
    }
    this.#changed.clear()
  }
}
