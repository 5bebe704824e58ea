/** How often something may be done, with a burst: what is not used is saved up to that. */
import type { Clock } from '../../base/clock.ts'

export class AskingRate {
  readonly #clock: Clock
  #perMs: number
  #burst: number
  #left: number
  #at: number

  constructor(clock: Clock, perSecond: number, burst: number) {
    this.#clock = clock
    this.#perMs = perSecond / 1_000
    this.#burst = burst
    this.#left = burst
    this.#at = clock.steady()
  }

  /** From here on; what was saved up counts as far as the burst now goes. */
  set(perSecond: number, burst: number): void {
    this.#perMs = perSecond / 1_000
    this.#burst = burst
  }

  /** 0: now; otherwise the milliseconds after which one more may be asked for. */
  take(): number {
    const now = this.#clock.steady()
    this.#left = Math.min(this.#burst, this.#left + (now - this.#at) * this.#perMs)
    this.#at = now
    if (this.#left < 1) return (1 - this.#left) / this.#perMs
    this.#left--
    return 0
  }
}

/** Those of many, by whatever names them; the one that asked longest ago is forgotten first: its burst has most likely been saved up anew. */
export class AskingRates {
  readonly #clock: Clock
  readonly #max: number
  readonly #rates = new Map<string, AskingRate>()

  constructor(clock: Clock, max: number) {
    this.#clock = clock
    this.#max = max
  }

  /** The rate counts from here on: callers that share a name have to be given the same one. */
  take(name: string, perSecond: number, burst: number): number {
    const rate = this.#rates.get(name) ?? new AskingRate(this.#clock, perSecond, burst)
    this.#rates.delete(name)
    this.#rates.set(name, rate)
    if (this.#rates.size > this.#max) this.#rates.delete(this.#rates.keys().next().value as string)
    rate.set(perSecond, burst)
    return rate.take()
  }
}
