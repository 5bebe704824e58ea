/**
 * Whether the other side is still there (L3): while something waits for it, silence is broken by a ping after 2 s and is its
 * end after 5; an idle link is asked once in a while, so that middleboxes remember it and a dead one is found.
 *
 * Silence is what was not there when this side looked, and a process that was stopped, or had no processor, did not look: what came
 * meanwhile waits on the socket, which is read only after the timers that were due. So it takes two looks to find the other
 * side dead, half a second apart and the second one in time.
 */
import { sessionLimits } from './limits.ts'

const { askAfterMs, deadAfterMs, deafMsMax, lastLookMs, lateMs } = sessionLimits
const { keepaliveMsMax, keepaliveMsMin, keepaliveProvenMs } = sessionLimits

export class Liveness {
  readonly #keepaliveMs: number
  #heardAt: number
  #waitingSince: number | undefined
  /** When the last ping went out that nothing was heard since. */
  #askedAt: number | undefined
  /** When it was last found silent for too long; what is on the socket then is read before the next look. */
  #missedAt: number | undefined
  #number = 0
  #isWanted = false

  constructor(keepaliveMs: number, now: number) {
    this.#keepaliveMs = keepaliveMs
    this.#heardAt = now
  }

  get number(): number {
    return this.#number
  }

  heard(now: number): void {
    this.#heardAt = now
    this.#askedAt = undefined
    this.#missedAt = undefined
    if (this.#waitingSince !== undefined) this.#waitingSince = now
  }

  /** A sign of life is wanted now, though nothing waits for one: the next `due` asks for it, unless one is asked for. */
  want(): void {
    this.#isWanted = true
  }

  /** What is due: a ping (its number is the next one), or the end. `isWaiting`: the other side owes something. */
  due(isWaiting: boolean, now: number): 'ping' | 'dead' | undefined {
    if (isWaiting || this.#askedAt !== undefined) this.#waitingSince ??= now
    else this.#waitingSince = this.#missedAt = undefined
    if (this.#waitingSince !== undefined && this.#isDead(this.#waitingSince, now)) return 'dead'
    const isWanted = this.#isWanted
    this.#isWanted = false
    if (this.#askedAt !== undefined || (now < this.#askAt() && !isWanted)) return undefined
    this.#askedAt = now
    this.#waitingSince ??= now
    this.#number++
    return 'ping'
  }

  /** When `due` should be asked again. */
  next(): number {
    if (this.#waitingSince === undefined) return this.#askAt()
    const end = this.#endAt(this.#waitingSince)
    return this.#askedAt === undefined ? Math.min(end, this.#askAt()) : end
  }

  #isDead(since: number, now: number): boolean {
    const at = this.#endAt(since)
    if (now < at) return false
    const isSecond = this.#missedAt !== undefined
    if (isSecond && (now <= at + lateMs || now >= since + deafMsMax)) return true
    this.#missedAt = now
    return false
  }

  /** When the next look for its end is due, of which there are two. */
  #endAt(since: number): number {
    if (this.#missedAt === undefined) return since + deadAfterMs - lastLookMs
    return Math.max(this.#missedAt + lastLookMs, since + deadAfterMs)
  }

  #askAt(): number {
    return this.#waitingSince === undefined ? this.#heardAt + this.#keepaliveMs : this.#waitingSince + askAfterMs
  }
}

/** What the next link should keep alive by, after one that lived so long and ended so: a path that forgot an idle one is asked more often. */
export function nextKeepalive(
  keepaliveMs: number,
  ended: { readonly isSilent: boolean; readonly livedMs: number },
): number {
  if (ended.isSilent) return Math.max(keepaliveMsMin, Math.floor(keepaliveMs / 2))
  return ended.livedMs < keepaliveProvenMs ? keepaliveMs : Math.min(keepaliveMsMax, keepaliveMs * 2)
}
