/**
 * What time it is at least. A small device may start with a clock that stands years back, which would bring expired tokens
 * to life again: so the newest time ever seen is kept, and time goes on from there. The API server's own time corrects it,
 * also downwards, because a clock that once ran ahead must not expire everything for good.
 */
import { type Clock, sleep } from '../base/clock.ts'
import type { WriteBehind } from './writebehind.ts'

const recordEveryMs = 60_000 // what a power cut may take back
const aheadMsMax = 300_000 // clocks a few minutes apart are usual; more than that is an error of ours

const kind = 'access'
const key = 'newest'

type Parts = { readonly clock: Clock; readonly behind: WriteBehind; readonly stored: Buffer | undefined }

export class TrustedTime {
  static readonly kind = kind
  static readonly key = key
  readonly #clock: Clock
  readonly #behind: WriteBehind
  /** The newest time known, and when that was by the steady clock. */
  #newestMs: number
  #at: number

  constructor({ clock, behind, stored }: Parts) {
    this.#clock = clock
    this.#behind = behind
    const ms = stored === undefined ? 0 : Number(stored.toString('latin1'))
    this.#newestMs = Number.isFinite(ms) ? ms : 0
    this.#at = clock.steady()
  }

  nowMs(): number {
    return Math.max(this.#clock.now(), this.#kept())
  }

  /** The API server's time. */
  hear(ms: number): void {
    const ours = this.#kept()
    if (ms > ours || ours > ms + aheadMsMax) this.#set(ms)
  }

  /** A moment in the past that the API server has vouched for. */
  atLeast(ms: number): void {
    if (ms > this.#kept()) this.#set(ms)
  }

  /** Keeps the record not much older than the time. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#record()
      await sleep(this.#clock, recordEveryMs, signal)
    }
    this.#record()
  }

  #record(): void {
    this.#set(this.nowMs())
    this.#behind.put(kind, key, Buffer.from(String(Math.floor(this.#newestMs)), 'latin1'))
  }

  #kept(): number {
    return this.#newestMs + (this.#clock.steady() - this.#at)
  }

  #set(ms: number): void {
    this.#newestMs = ms
    this.#at = this.#clock.steady()
  }
}
