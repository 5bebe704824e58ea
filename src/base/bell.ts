/** Lets a loop wait for a time, for news, or for its end, whichever comes first. Ringing before the wait is not lost. */
import type { Clock } from './clock.ts'

export class Bell {
  readonly #clock: Clock
  #rung = false
  #wake: () => void = () => {}

  constructor(clock: Clock) {
    this.#clock = clock
  }

  ring(): void {
    this.#rung = true
    this.#wake()
  }

  /** What rang before counts no more. */
  still(): void {
    this.#rung = false
  }

  /** Without a time only a ring or the end of the signal ends it. One loop waits at a bell. */
  async wait(signal: AbortSignal, ms?: number): Promise<void> {
    if (!this.#rung && !signal.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>()
      const cancel = ms === undefined ? () => {} : this.#clock.setTimer(ms, resolve)
      this.#wake = resolve
      signal.addEventListener('abort', this.#wake)
      await promise
      cancel()
      signal.removeEventListener('abort', this.#wake)
      this.#wake = () => {}
    }
    this.#rung = false
  }
}
