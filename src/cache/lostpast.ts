/**
 * Which versions are of a past that no longer exists. After a cluster was put back to an earlier state it gives out the same
 * numbers again, so a version up to the lost one may mean either past: a client that names one is told 410, also when the
 * new past has grown beyond it. While it has not grown beyond the lost version, clients of the new past stand at such versions
 * too; those are known by having been given out here lately.
 */
import type { Clock } from '../base/clock.ts'
import type { Progress } from './progress.ts'

/** A client that watches has a bookmark every minute, and comes back within seconds of a cut: this is twice as long. */
const givenMsMax = 120_000

type Parts = {
  readonly progress: Progress
  /** The newest version of the lost past; 0 if there is none. */
  readonly lost: () => number
  readonly clock: Clock
  /** What was given out before is not known: this process has just begun. */
  readonly isLoaded?: boolean
}

export class LostPast {
  readonly #parts: Parts
  /** Until when a version counts as given out by the new past. */
  readonly #given = new Map<number, number>()
  readonly #anyUntilMs: number
  #last: number

  constructor(parts: Parts) {
    this.#parts = parts
    const { progress, lost, clock, isLoaded = false } = parts
    this.#last = progress.version
    this.#anyUntilMs = isLoaded ? clock.steady() + givenMsMax : Number.NEGATIVE_INFINITY
    if (progress.version > lost()) return
    const deafen = progress.observe((version) => {
      this.#give(this.#last)
      this.#last = version
      if (version <= lost()) return
      this.#given.clear()
      deafen()
    })
  }

  /** The copy has left this version: clients may have been given it until now. */
  #give(version: number): void {
    const nowMs = this.#parts.clock.steady()
    this.#given.set(version, nowMs + givenMsMax)
    for (const [old, untilMs] of this.#given) {
      if (untilMs > nowMs) break
      this.#given.delete(old)
    }
  }

  /** Whether what comes after the version is not what its owner waits for. */
  isGone(version: number): boolean {
    const { progress, lost, clock } = this.#parts
    const isSetBack = progress.version <= lost()
    // A version that lies ahead is waited for, unless it went with the lost past.
    if (version > progress.version) return isSetBack
    if (version > lost()) return false
    if (!isSetBack) return true
    if (version === progress.version) return false
    return Math.max(this.#anyUntilMs, this.#given.get(version) ?? this.#anyUntilMs) <= clock.steady()
  }
}
