/**
 * Whether an interest has come about: its first list is committed and a watch after it lived. What has not within its time is
 * passed through, because a caller wants an answer and not a place in a queue; it is tried on, rarely.
 */
import type { Clock } from '../base/clock.ts'
import { mirrorLimits } from './mirror.ts'

export class FirstSync {
  readonly #clock: Clock
  isDone = false
  #sinceMs: number | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** It is being tried. */
  tried(): void {
    if (!this.isDone) this.#sinceMs ??= this.#clock.steady()
  }

  /** The list is committed: from here on the watch has its own time. */
  listed(): void {
    if (!this.isDone) this.#sinceMs = this.#clock.steady()
  }

  /** The cloud was away: that time does not count, but what was late before still is. */
  interrupted(): void {
    if (!this.isLate) this.#sinceMs = undefined
  }

  done(): void {
    this.isDone = true
    this.#sinceMs = undefined
  }

  get isLate(): boolean {
    return this.#sinceMs !== undefined && this.#clock.steady() - this.#sinceMs >= mirrorLimits.firstSyncMsMax
  }
}
