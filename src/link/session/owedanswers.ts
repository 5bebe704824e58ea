/**
 * Whether the hub owes an edge the answer to a request. It does not before the request can have come to it: what is sent on a slow
 * line waits behind what was sent before, and so does a ping. A line is taken for as slow as the slowest that links are made for; a pong
 * says that all of it has come.
 */
import type { SessionLimits } from './limits.ts'

export class OwedAnswers {
  readonly #limits: SessionLimits
  readonly #isAwaited: () => boolean
  /** When all that was sent has come, on such a line. */
  #comesAt = Number.NEGATIVE_INFINITY
  /** Sent behind the last ping. */
  #bytesSince = 0
  /** When the next look is due, for an answer that is not owed yet. */
  #dueAt = Number.POSITIVE_INFINITY

  /** `isAwaited`: of some request nothing was answered yet. */
  constructor(limits: SessionLimits, isAwaited: () => boolean) {
    this.#limits = limits
    this.#isAwaited = isAwaited
  }

  sent(bytes: number, now: number): void {
    const { slowestBytesPerMs, deafMsMax } = this.#limits
    this.#bytesSince += bytes
    this.#comesAt = Math.min(Math.max(this.#comesAt, now) + bytes / slowestBytesPerMs, now + deafMsMax)
  }

  pinged(): void {
    this.#bytesSince = 0
  }

  /** The last ping was answered: the other side has all that was sent before it. */
  answered(now: number): void {
    const behind = this.#bytesSince
    this.#bytesSince = 0
    this.#comesAt = now
    this.sent(behind, now)
  }

  /** Little enough to have come before a ping goes out is owed at once. */
  isOwed(now: number): boolean {
    const from = this.#comesAt - this.#limits.askAfterMs
    const isAwaited = this.#isAwaited()
    this.#dueAt = isAwaited && now < from ? from : Number.POSITIVE_INFINITY
    return isAwaited && now >= from
  }

  /** When it should be asked again. */
  next(): number {
    return this.#dueAt
  }
}
