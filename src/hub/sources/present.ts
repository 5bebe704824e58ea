/**
 * How far the API server itself is with what a source follows. An edge that says to be further than this hub is ahead of its watch, or of
 * a past that no longer exists: a read of the newest state tells which. Asked seldom, once for all edges, whatever they say.
 */
import { type Clock, sleep } from '../../base/clock.ts'

/** Edges that lie about how far they are have one list of one object made in this time, for each source that they may have. */
const readEveryMs = 60_000

type Parts = {
  /** Of a linearizable read. */
  readonly read: (signal: AbortSignal) => Promise<number>
  readonly clock: Clock
}

export class PresentVersion {
  readonly #parts: Parts
  readonly #ending = new AbortController()
  /** Of a read that has not begun. */
  #next: Promise<number | undefined> | undefined
  #last: Promise<number | undefined> = Promise.resolve(undefined)
  #mayAt = Number.NEGATIVE_INFINITY

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** By a read that begins after this call; undefined where it does not tell. */
  ask(): Promise<number | undefined> {
    this.#next ??= this.#read()
    return this.#next
  }

  stop(): void {
    this.#ending.abort()
  }

  async #read(): Promise<number | undefined> {
    const { clock, read } = this.#parts
    const { signal } = this.#ending
    await this.#last
    await sleep(clock, Math.max(0, this.#mayAt - clock.steady()), signal)
    // Who asks from here on has to be told by another one.
    this.#last = this.#next as Promise<number | undefined>
    this.#next = undefined
    this.#mayAt = clock.steady() + readEveryMs
    return signal.aborted ? undefined : await read(signal).catch(() => undefined)
  }
}
