/**
 * Lists without a version and names that callers asked for lately, by caller: what one of them asks for again is worth an
 * interest. Each caller has its share, and where all of it is full the caller who has the most gives, so that the names that
 * one invents displace its own.
 */
import { hash } from 'node:crypto'
import type { Clock } from '../../../base/clock.ts'
import { mirrorLimits } from '../../../mirror/mirror.ts'

/** Of all callers: a hash and a time each, some 100 bytes. */
const repeatsMax = 10_000
/** Of one: a loop over all names of a large namespace is remembered as a whole. */
const repeatsPerCallerMax = 2_000

export class Repeats {
  readonly #clock: Pick<Clock, 'steady'>
  /** When each was asked for, the oldest first. */
  readonly #byCaller = new Map<string, Map<string, number>>()
  #size = 0

  constructor(clock: Pick<Clock, 'steady'>) {
    this.#clock = clock
  }

  get size(): number {
    return this.#size
  }

  /** The caller asks for it now: whether it did so lately. */
  note(caller: string, what: string): boolean {
    // Selectors may be long, and these are many.
    const key = hash('sha256', what, 'base64url')
    const nowMs = this.#clock.steady()
    const asked = this.#byCaller.get(caller) ?? new Map<string, number>()
    const before = asked.get(key)
    if (before !== undefined) this.#forget(caller, asked, key)
    this.#byCaller.set(caller, asked.set(key, nowMs))
    this.#size++
    if (asked.size > repeatsPerCallerMax) this.#forgetOldest(caller, asked)
    if (this.#size > repeatsMax) this.#makeRoom()
    return before !== undefined && nowMs - before <= mirrorLimits.repeatedWithinMs
  }

  /** What is too old to count goes first, of every caller; then the oldest of the one who has the most. */
  #makeRoom(): void {
    const countsFrom = this.#clock.steady() - mirrorLimits.repeatedWithinMs
    let most: readonly [caller: string, asked: Map<string, number>] | undefined
    for (const [caller, asked] of this.#byCaller) {
      for (const [key, atMs] of asked) {
        if (atMs >= countsFrom) break
        this.#forget(caller, asked, key)
      }
      if (asked.size > (most?.[1].size ?? 0)) most = [caller, asked]
    }
    if (this.#size > repeatsMax && most !== undefined) this.#forgetOldest(...most)
  }

  #forgetOldest(caller: string, asked: Map<string, number>): void {
    this.#forget(caller, asked, asked.keys().next().value as string)
  }

  #forget(caller: string, asked: Map<string, number>, key: string): void {
    asked.delete(key)
    this.#size--
    if (asked.size === 0) this.#byCaller.delete(caller)
  }
}
