/**
 * When roles or bindings last changed, as far as the mirror shows them: what was decided before that is asked again at its
 * next use. What lies in a namespace gives rights in that namespace only.
 */
import type { Clock } from '../base/clock.ts'

const everyMs = 1000 // a cluster that changes its roles all the time must not make every read wait every time
const namespacesMax = 64 // that change within one such time; where more do, everything counts as changed

const never = Number.NEGATIVE_INFINITY

/** Everything, as the namespace of what is in none. */
export const everywhere = ''

export class Changes {
  readonly #clock: Clock
  readonly #listeners: ((namespace: string) => void)[] = []
  #everywhereAt = never
  /** By namespace; only those of the last moments matter, and they are let go when there are many. */
  readonly #changedAt = new Map<string, number>()
  readonly #waiting = new Set<string>()
  #resting = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Since when decisions in that namespace have to be from. */
  since(namespace: string): number {
    if (this.#changedAt.size === 0) return this.#everywhereAt
    return Math.max(this.#everywhereAt, this.#changedAt.get(namespace) ?? never)
  }

  observe(listener: (namespace: string) => void): void {
    this.#listeners.push(listener)
  }

  /** The first counts at once, more of them within a second together. */
  note(namespace: string): void {
    this.#waiting.add(namespace)
    if (!this.#resting) this.#take()
  }

  #take(): void {
    const many = this.#waiting.has(everywhere) || this.#waiting.size > namespacesMax
    const changed = many ? [everywhere] : [...this.#waiting]
    this.#waiting.clear()
    this.#resting = changed.length > 0
    if (!this.#resting) return
    const now = this.#clock.steady()
    for (const namespace of changed) {
      if (namespace === everywhere) {
        this.#everywhereAt = now
        this.#changedAt.clear()
      } else this.#changedAt.set(namespace, now)
    }
    if (this.#changedAt.size > namespacesMax * 16) {
      this.#everywhereAt = now
      this.#changedAt.clear()
    }
    this.#clock.setTimer(everyMs, () => this.#take())
    for (const namespace of changed) for (const tell of this.#listeners) tell(namespace)
  }
}
