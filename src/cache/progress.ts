/** How far a copy has come: the version up to which everything is published, and who waits for it to pass one. */
import type { Clock } from '../base/clock.ts'

export class Progress {
  #version: number
  readonly #waiting = new Set<{ readonly version: number; resolve(reached: boolean): void }>()

  constructor(version: number) {
    this.#version = version
  }

  get version(): number {
    return this.#version
  }

  advance(version: number): void {
    if (version <= this.#version) return
    this.#version = version
    if (this.#waiting.size === 0) return
    for (const waiter of this.#waiting) if (waiter.version <= version) waiter.resolve(true)
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
