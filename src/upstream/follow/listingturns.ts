/**
 * Large first lists of one resource and namespace come one after the other: where they overlap, each finds what the one
 * before has brought (`Collection.known`) and holds nothing of its own. All at once they would take as many times the memory
 * as there are selectors, and be no sooner done on one line.
 */
import type { Clock } from '../../base/clock.ts'

/**
 * One that takes longer is waited for no more: it may be the only one for which the API server is slow. Half of what a first
 * sync may take before reads are passed on.
 */
const turnMsMax = 10_000

export class ListingTurns {
  readonly #clock: Clock
  /** By resource and namespace; the first in each line reads. */
  readonly #lines = new Map<string, ListingTurn[]>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  of(collection: string): ListingTurn {
    return new ListingTurn(this.#clock, this.#lines, collection)
  }
}

export class ListingTurn {
  readonly #clock: Clock
  readonly #lines: Map<string, ListingTurn[]>
  readonly #collection: string
  #begun: () => void = () => {}
  #cancel: () => void = () => {}

  constructor(clock: Clock, lines: Map<string, ListingTurn[]>, collection: string) {
    this.#clock = clock
    this.#lines = lines
    this.#collection = collection
  }

  get #line(): ListingTurn[] {
    return this.#lines.get(this.#collection) ?? []
  }

  /** Stands in line; answers whether it is first. */
  join(): boolean {
    const line = this.#line
    if (!line.includes(this)) this.#lines.set(this.#collection, [...line, this])
    if (this.#line[0] !== this) return false
    this.#begin()
    return true
  }

  /** Resolves when it is first, or on the signal. */
  async wait(signal: AbortSignal): Promise<void> {
    if (signal.aborted || this.#line[0] === this) return
    await new Promise<void>((resolve) => {
      this.#begun = resolve
      signal.addEventListener('abort', () => resolve(), { once: true })
    })
  }

  #begin(): void {
    this.#cancel()
    this.#cancel = this.#clock.setTimer(turnMsMax, () => this.leave())
    this.#begun()
  }

  /** What it has read is taken over, or will not be; or the others have waited long enough. */
  leave(): void {
    this.#cancel()
    const line = this.#line
    const left = line.filter((one) => one !== this)
    if (left.length === 0) this.#lines.delete(this.#collection)
    else this.#lines.set(this.#collection, left)
    const [next] = left
    if (next !== undefined && next !== line[0]) next.#begin()
  }
}
