/**
 * Interests that are further at their edge than at this hub. Each waits until the hub has come as far. Whether the hub is behind, or the
 * edge is of a past that no longer exists, only the API server can tell, so it is asked about those that wait longer.
 */
import type { HubInterest } from './hubinterest.ts'
import type { SessionLimits } from './limits.ts'
import type { HubEffect } from './session.ts'

export class InterestsAhead {
  readonly #limits: Pick<SessionLimits, 'aheadMs' | 'aheadAgainMs'>
  /** Each with when the API server is asked about it: a moment after it is first looked at. */
  readonly #waiting = new Map<HubInterest, number>()
  #dueAt = Number.POSITIVE_INFINITY

  constructor(limits: Pick<SessionLimits, 'aheadMs' | 'aheadAgainMs'>) {
    this.#limits = limits
  }

  /** When `look` is due if nothing else happens. */
  get nextTick(): number {
    return this.#dueAt
  }

  all(): Iterable<HubInterest> {
    return this.#waiting.keys()
  }

  wait(interest: HubInterest): void {
    this.#waiting.set(interest, Number.NaN)
  }

  /** It has begun, or is gone. */
  leave(interest: HubInterest): void {
    this.#waiting.delete(interest)
  }

  /** Asks about those of which it is time. */
  look(now: number, effects: HubEffect[]): void {
    this.#dueAt = Number.POSITIVE_INFINITY
    for (const [interest, known] of this.#waiting) {
      const isDue = now >= known
      if (isDue) effects.push({ effect: 'ahead', interest: interest.number })
      const at = isDue ? now + this.#limits.aheadAgainMs : Number.isNaN(known) ? now + this.#limits.aheadMs : known
      this.#waiting.set(interest, at)
      this.#dueAt = Math.min(this.#dueAt, at)
    }
  }
}
