/**
 * When a reflector asks again. Every failure is followed by a pause that doubles, with jitter, and only a watch that lived
 * ends the series: an API server that opens each watch, says a word and ends it gets no more requests than one that says no.
 */
import { backoffMs } from '../base/backoff.ts'
import { Busy, Expired, neverKept, Refused, TooLarge } from '../upstream/follow/follow.ts'
import { Unreachable } from '../upstream/upstream.ts'

/** The first pause and, while what is mirrored falls behind, the longest one, in ms. */
const pauseMsMin = 500
const pauseMsMax = 30_000
/** A watch that lived for this long was one. Its successors, that far apart, cost an API server nothing. */
export const livedMsMin = 5_000
/** Some proxies cut every stream within seconds: where something came each time the copy stays as close behind as this. */
const cutPauseMsMax = 5_000
/** Each relist reads everything: one is what it takes after an outage, more are of an API server that forgets at once. */
const relistPauseMsMax = 5 * 60_000
/** A resource that is no more is asked for this rarely; the catalog tells when it is back. */
const gonePauseMsMax = 2 * 60_000
/** What was never mirrored is passed through meanwhile: its list is large, or fails, and is tried again this rarely. */
const firstPauseMsMax = 5 * 60_000
const tooLargePauseMs = 10 * 60_000
/** Where it takes a reading of all that fits to see that there is more: as much as the budget is, each time. */
const tooLargePauseMsMax = 2 * 60 * 60_000

const rarely: ReadonlySet<number> = new Set([404, 405, neverKept])

/** The API server ended a watch long before its time. */
export class Ended extends Error {}

export class Retries {
  readonly #random: () => number
  #failures = 0
  #expiries = 0
  /** Lists that were read as far as they fit. */
  #readings = 0

  constructor(random: () => number) {
    this.#random = random
  }

  /** The series is over: a watch lived. */
  lived(): void {
    this.#failures = 0
    this.#expiries = 0
    this.#readings = 0
  }

  /** What failed was the line, and that is back. */
  afresh(): void {
    this.#failures = 0
  }

  /** How long to wait after this error: `passed` while reads go past the interest anyway, `gained` if something came before. */
  failed(error: unknown, { passed, gained }: { passed: boolean; gained: boolean }): number {
    if (error instanceof Expired) {
      this.#expiries++
      return this.#expiries === 1 ? 0 : this.#pause(this.#expiries, relistPauseMsMax)
    }
    this.#failures++
    if (error instanceof TooLarge) {
      return error.foreseen
        ? this.#pause(1, tooLargePauseMs, tooLargePauseMs)
        : this.#pause(++this.#readings, tooLargePauseMsMax, tooLargePauseMs)
    }
    if (gained && (error instanceof Ended || error instanceof Unreachable))
      return this.#pause(this.#failures, cutPauseMsMax)
    const pauseMs = this.#pause(this.#failures, pauseMsMaxOf(error, passed))
    // Reflectors that were told the same time come spread over pauses of their own.
    return error instanceof Busy && error.retryMs > 0 ? error.retryMs + pauseMs : pauseMs
  }

  #pause(failures: number, maxMs: number, firstMs = pauseMsMin): number {
    return backoffMs(failures, { firstMs, maxMs, random: this.#random })
  }
}

/** A right that is missing may be given any minute; a policy that changes is told. */
function pauseMsMaxOf(error: unknown, passed: boolean): number {
  if (error instanceof Refused) return rarely.has(error.code) ? gonePauseMsMax : pauseMsMax
  return passed ? firstPauseMsMax : pauseMsMax
}
