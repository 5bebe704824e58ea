/**
 * When thousands of streams hear of a hundred changes a second, writing to each of them costs more than the bytes: so
 * beyond a number of deliveries in a short while, further ones wait for its end and go out together. Where few watch, or
 * little happens, nothing ever waits.
 */
import type { Clock } from '../base/clock.ts'

/** Two events at 100 a second; well under what a client notices. */
const windowMs = 20
/** Deliveries in one window before the next ones wait: a whole edge node's watches hear of an event at once. */
const promptMax = 256

export interface Paced {
  /** Hands out what has come meanwhile. */
  release(): void
}

export class Pace {
  readonly #clock: Clock
  readonly #held = new Set<Paced>()
  #windowEndsMs = 0
  #deliveries = 0
  /** Whether the deliveries of the event under way wait. */
  holding = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Before an event goes to its receivers: all of them hear of it now, or all of them wait. */
  begin(): void {
    const nowMs = this.#clock.steady()
    if (nowMs >= this.#windowEndsMs && this.#held.size === 0) this.#open(nowMs, 0)
    this.holding = this.#deliveries >= promptMax
  }

  /** After it: whatever else is pushed goes out at once. */
  end(): void {
    this.holding = false
  }

  delivered(): void {
    this.#deliveries++
  }

  hold(receiver: Paced): void {
    if (this.#held.size === 0) {
      const waitMs = Math.max(0, this.#windowEndsMs - this.#clock.steady())
      this.#clock.setTimer(waitMs, () => this.#release())
    }
    this.#held.add(receiver)
  }

  #release(): void {
    const held = [...this.#held]
    this.#held.clear()
    this.#open(this.#clock.steady(), held.length)
    for (const receiver of held) receiver.release()
  }

  #open(nowMs: number, deliveries: number): void {
    this.#windowEndsMs = nowMs + windowMs
    this.#deliveries = deliveries
  }
}
