/**
 * Whether the other side is still there (L3): while something waits for it, silence is broken by a ping after 2 s and is its
 * end after 5; an idle link is asked once in a while, so that middleboxes remember it and a dead one is found.
 */
import { sessionLimits } from './limits.ts'

const { askAfterMs, deadAfterMs, keepaliveMsMax, keepaliveMsMin, keepaliveProvenMs } = sessionLimits

export class Liveness {
  readonly #keepaliveMs: number
  #heardAt: number
  #waitingSince: number | undefined
  /** When the last ping went out that nothing was heard since. */
  #askedAt: number | undefined
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
    if (this.#waitingSince !== undefined) this.#waitingSince = now
  }

  /** A sign of life is wanted now, though nothing waits for one: the next `due` asks for it, unless one is asked for. */
  want(): void {
    this.#isWanted = true
  }

  /** What is due: a ping (its number is the next one), or the end. `isWaiting`: the other side owes something. */
  due(isWaiting: boolean, now: number): 'ping' | 'dead' | undefined {
    if (isWaiting || this.#askedAt !== undefined) this.#waitingSince ??= now
    else this.#waitingSince = undefined
    if (this.#waitingSince !== undefined && now >= this.#waitingSince + deadAfterMs) return 'dead'
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
    const end = this.#waitingSince + deadAfterMs
    return this.#askedAt === undefined ? Math.min(end, this.#askAt()) : end
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
