/** How far a copy has come: the version up to which everything is published, and the readers that wait for it to pass one. */
import type { Clock } from '../base/clock.ts'

export class Progress {
  #version: number
  readonly #listeners = new Set<(version: number) => void>()
  readonly #waiting = new Set<{ readonly version: number; resolve(reached: boolean): void }>()

  constructor(version: number) {
    this.#version = version
  }

  get version(): number {
    return this.#version
  }

  /** Hears of every step forward; answers how to stop hearing. */
  observe(listener: (version: number) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  advance(version: number): void {
    if (version <= this.#version) return
    this.#version = version
    for (const listener of this.#listeners) listener(version)
    if (this.#waiting.size === 0) return
    for (const waiter of this.#waiting) if (waiter.version <= version) waiter.resolve(true)
  }

  /** Calls once `version` is reached; answers how to stop waiting. */
  whenReached(version: number, then: () => void): () => void {
    if (version <= this.#version) {
      then()
      return () => {}
    }
    const waiter = {
      version,
      resolve: () => {
        this.#waiting.delete(waiter)
        then()
      },
    }
    this.#waiting.add(waiter)
    return () => void this.#waiting.delete(waiter)
  }

  /** Resolves true once `version` is reached, false when it was not within the time. */
  reach(version: number, withinMs: number, clock: Clock): Promise<boolean> {
    if (version <= this.#version) return Promise.resolve(true)
    return new Promise((resolve) => {
      const waiter = {
        version,
        resolve: (reached: boolean) => {
          cancel()
          this.#waiting.delete(waiter)
          resolve(reached)
        },
      }
      const cancel = clock.setTimer(withinMs, () => waiter.resolve(false))
      this.#waiting.add(waiter)
    })
  }
}
