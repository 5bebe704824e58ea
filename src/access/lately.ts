/** What failed lately: it is not tried again by every request in between. */
import type { Clock } from '../base/clock.ts'

const failedMs = 1000 // an API server that is too busy to answer is not asked more often for one thing
const entriesMax = 4096 // questions and credentials whose review failed lately

export class Lately {
  readonly #clock: Clock
  readonly #failedAt = new Map<string, number>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  has(key: string): boolean {
    return this.#clock.steady() - (this.#failedAt.get(key) ?? Number.NEGATIVE_INFINITY) < failedMs
  }

  add(key: string): void {
    if (this.#failedAt.size >= entriesMax) this.#failedAt.clear()
    this.#failedAt.set(key, this.#clock.steady())
  }

  delete(key: string): void {
    this.#failedAt.delete(key)
  }
}
