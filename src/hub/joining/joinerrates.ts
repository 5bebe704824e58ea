/**
 * How much joiners may ask: each address, all of them, those whose token was not seen to count yet, and those whose token did not. So a
 * stranger who invents tokens is slowed down alone, and keeps out no joiner that has a good one for longer than its first request waits.
 */
import { hash } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'
import { AskingRate, AskingRates } from '../forwarding/rate.ts'
import type { JoiningLimits } from './limits.ts'

export class JoinerRates {
  readonly #clock: Clock
  readonly #limits: JoiningLimits
  readonly #all: AskingRate
  readonly #strangers: AskingRate
  readonly #addresses: AskingRates
  readonly #refused: AskingRates
  /** Until when each address that was refused too often waits, by the steady clock. */
  readonly #waiting = new Map<string, number>()
  /** By the digest of a token, when it was last seen to count. */
  readonly #known = new Map<string, number>()
  #underWay = 0

  constructor(clock: Clock, limits: JoiningLimits) {
    this.#clock = clock
    this.#limits = limits
    const rate = (perSecond: number, burst: number) => new AskingRate(clock, perSecond, burst)
    this.#all = rate(limits.allPerSecond, limits.allBurst)
    this.#strangers = rate(limits.strangersPerSecond, limits.strangersBurst)
    this.#addresses = new AskingRates(clock, limits.addressesMax)
    this.#refused = new AskingRates(clock, limits.addressesMax)
  }

  /** Milliseconds to wait; 0: it has begun, and `end` is to be called. */
  begin(from: string, token: string | undefined): number {
    const waitMs = this.#waitMs(from, token)
    if (waitMs === 0) this.#underWay++
    return waitMs
  }

  end(): void {
    this.#underWay--
  }

  /** Milliseconds to wait until the API server may be asked with this token: what strangers share is spent on nothing else. */
  asks(token: string): number {
    return this.knows(token) ? 0 : this.#strangers.take()
  }

  /** The API server took this token. */
  known(token: string): void {
    const digest = digestOf(token)
    this.#known.delete(digest)
    this.#known.set(digest, this.#clock.steady())
    if (this.#known.size > this.#limits.tokensMax) this.#known.delete(this.#known.keys().next().value as string)
  }

  knows(token: string): boolean {
    const atMs = this.#known.get(digestOf(token))
    return atMs !== undefined && this.#clock.steady() - atMs < this.#limits.tokenMs
  }

  /** A token from there did not count. */
  refused(from: string): void {
    const waitMs = this.#refused.take(from, this.#limits.refusedPerSecond, this.#limits.refusedBurst)
    if (waitMs === 0) return
    this.#waiting.delete(from)
    this.#waiting.set(from, this.#clock.steady() + waitMs)
    if (this.#waiting.size > this.#limits.addressesMax)
      this.#waiting.delete(this.#waiting.keys().next().value as string)
  }

  #waitMs(from: string, token: string | undefined): number {
    const now = this.#clock.steady()
    if (this.#underWay >= this.#limits.underWayMax) return busyMs
    const isKnown = token !== undefined && this.knows(token)
    if (!isKnown) {
      const untilMs = (this.#waiting.get(from) ?? 0) - now
      if (untilMs > 0) return untilMs
    }
    // Of an address first: one that asks too often takes nothing of the others' share.
    const { addressPerSecond, addressBurst } = this.#limits
    const ofAddressMs = this.#addresses.take(from, addressPerSecond, addressBurst)
    return ofAddressMs || (isKnown ? this.#all.take() : 0)
  }
}

/** Where so many are under way that one more has to come back. */
const busyMs = 1_000

/** What is remembered of a token is none. */
function digestOf(token: string): string {
  return hash('sha256', token, 'base64url')
}
