/** Lets so many through in a second, the others in their turn; one that would wait for too long hears so at once. */
import type { Clock } from '../../base/clock.ts'

type Parts = { readonly perSecond: number; readonly lineMsMax: number; readonly clock: Clock }

export class HandshakeLine {
  readonly #parts: Parts
  readonly #lineMax: number
  /** A set, since connections leave from anywhere in it. */
  readonly #line = new Set<() => void>()
  #allowed: number
  #countedAtMs: number
  #isWaiting = false

  /** What may go at once is a tenth of a second's: handshakes of one round of the loop delay everything else by their sum. */
  constructor(parts: Parts) {
    this.#parts = parts
    this.#lineMax = Math.max(1, Math.floor((parts.perSecond * parts.lineMsMax) / 1_000))
    this.#allowed = this.#atOnce
    this.#countedAtMs = parts.clock.steady()
  }

  get waiting(): number {
    return this.#line.size
  }

  /** Calls `go` now or in its turn, and answers how to leave the line; undefined: it is too long. */
  enter(go: () => void): (() => void) | undefined {
    this.#count()
    if (this.#line.size === 0 && this.#allowed >= 1) {
      this.#allowed--
      go()
      return () => {}
    }
    if (this.#line.size >= this.#lineMax) return undefined
    this.#line.add(go)
    this.#wait()
    return () => void this.#line.delete(go)
  }

  /** One went by another way and cost as much: others wait for it. What it cannot do is keep them for longer than a line does. */
  charge(): void {
    this.#count()
    this.#allowed = Math.max(this.#allowed - 1, -this.#lineMax)
  }

  get #atOnce(): number {
    return Math.max(1, this.#parts.perSecond / 10)
  }

  #count(): void {
    const { perSecond, clock } = this.#parts
    const now = clock.steady()
    this.#allowed = Math.min(this.#atOnce, this.#allowed + ((now - this.#countedAtMs) * perSecond) / 1_000)
    this.#countedAtMs = now
  }

  #wait(): void {
    if (this.#isWaiting || this.#line.size === 0) return
    this.#isWaiting = true
    const ms = Math.max(1, ((1 - this.#allowed) * 1_000) / this.#parts.perSecond)
    this.#parts.clock.setTimer(ms, () => {
      this.#isWaiting = false
      this.#count()
      for (const go of this.#line) {
        if (this.#allowed < 1) break
        this.#allowed--
        this.#line.delete(go)
        go()
      }
      this.#wait()
    })
  }
}
