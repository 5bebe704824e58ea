/**
 * Lets so many through in a second, the others in their turn; one that would wait for too long hears so at once. A line that is full has room for
 * a newcomer whose source has fewer in it than another: the last one of that goes instead, so that no source keeps others out.
 */
import type { Clock } from '../../base/clock.ts'
import { SourceShares } from './sourceshares.ts'

/** One connection, of which one of both is called, once. */
type InLine = {
  /** Where it comes from (`sourceshares.ts`). */
  readonly source: string
  /** It is its turn. */
  readonly go: () => void
  /** It would wait for too long, or has to give way. */
  readonly away: () => void
}

type Parts = { readonly perSecond: number; readonly lineMsMax: number; readonly clock: Clock }

export class HandshakeLine {
  readonly #parts: Parts
  readonly #lineMax: number
  /** A set, since connections leave from anywhere in it. */
  readonly #line = new Set<InLine>()
  readonly #shares = new SourceShares<InLine>()
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

  /** Answers how to leave the line. */
  enter(one: InLine): () => void {
    this.#count()
    if (this.#line.size === 0 && this.#allowed >= 1) {
      this.#allowed--
      one.go()
      return () => {}
    }
    if (this.#line.size >= this.#lineMax && !this.#makeRoom(one)) {
      one.away()
      return () => {}
    }
    this.#line.add(one)
    this.#shares.add(one)
    this.#wait()
    return () => this.#leave(one)
  }

  /** One went by another way and cost as much: others wait for it. What it cannot do is keep them for longer than a line does. */
  charge(): void {
    this.#count()
    this.#allowed = Math.max(this.#allowed - 1, -this.#lineMax)
  }

  /** Not where both sources would have as many afterwards: they would take each other's places for ever. */
  #makeRoom({ source }: InLine): boolean {
    const largest = this.#shares.largest()
    if (this.#shares.of(source) + 1 >= largest.size) return false
    const last = [...largest].at(-1) as InLine
    this.#leave(last)
    last.away()
    return true
  }

  #leave(one: InLine): void {
    if (this.#line.delete(one)) this.#shares.delete(one)
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
      for (const one of this.#line) {
        if (this.#allowed < 1) break
        this.#allowed--
        this.#leave(one)
        one.go()
      }
      this.#wait()
    })
  }
}
