/**
 * How old the copy is, also after a restart: when the API server was last heard, written down once a minute while it is there
 * and at the moment it is lost. Each interest was heard then too, except those whose record says that they were behind it.
 * Times are kept by the wall's clock, because a steady one ends with its process.
 */
import { type Clock, sleep } from '../base/clock.ts'
import type { Store } from '../store/store.ts'
import type { Reachability } from '../upstream/upstream.ts'
import type { Interests } from './interests.ts'
import type { MirroredInterest } from './mirrored.ts'

/** A kill or a power cut makes the copy look older by at most this; more often would wear the flash for nothing. */
const recordEveryMs = 60_000
/** A watch that lives gives a sign of life every few seconds: one that was not heard for this long was behind. */
const behindMs = 30_000
/** Two readings of the same moment differ by the drift of two clocks. */
const sameMs = 1_000

const kind = 'contact'
const key = 'last'

type Parts = {
  readonly store: Pick<Store, 'record' | 'commit'>
  readonly interests: Pick<Interests, 'all'>
  readonly reachability: Reachability
  readonly clock: Clock
  /** The time as far as it can be trusted: a device may start with a clock that stands years back. */
  readonly nowMs: () => number
}

export class Contact {
  readonly #parts: Parts
  /** The last one of lives before this. */
  readonly #storedMs: number | undefined
  #writtenMs: number

  private constructor(parts: Parts, storedMs: number | undefined) {
    this.#parts = parts
    this.#storedMs = storedMs
    this.#writtenMs = storedMs ?? Number.NEGATIVE_INFINITY
  }

  static async open(parts: Parts): Promise<Contact> {
    const stored = await parts.store.record(kind, key)
    const ms = stored === undefined ? Number.NaN : Number(stored.toString('latin1'))
    return new Contact(parts, Number.isFinite(ms) ? ms : undefined)
  }

  /** When the API server was last heard, by the wall's clock; undefined: never. */
  get lastMs(): number | undefined {
    const { interests, reachability } = this.#parts
    let heardAt = reachability.heardAt
    for (const mirrored of interests.all) heardAt = Math.max(heardAt, mirrored.lastHeardAt)
    return Number.isFinite(heardAt) ? this.#wallOf(heardAt) : this.#storedMs
  }

  /** How long ago the interest was as the API server had it; undefined where that is not known. */
  ageMsOf(mirrored: MirroredInterest): number | undefined {
    const heardMs = this.#heardMsOf(mirrored)
    return heardMs === undefined ? undefined : Math.max(0, this.#parts.nowMs() - heardMs)
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, reachability } = this.#parts
    const deaf = reachability.observe((state) => {
      if (state !== 'reachable') void this.#record()
    })
    while (!signal.aborted) {
      await sleep(clock, recordEveryMs, signal)
      await this.#record()
    }
    deaf()
  }

  #heardMsOf({ lastHeardAt, record }: MirroredInterest): number | undefined {
    if (Number.isFinite(lastHeardAt)) return this.#wallOf(lastHeardAt)
    return record.heardMs === 0 ? this.#storedMs : record.heardMs
  }

  #wallOf(steadyMs: number): number {
    const { clock, nowMs } = this.#parts
    return nowMs() - (clock.steady() - steadyMs)
  }

  /** Nothing is written while nothing changes, as during an outage. What the disk refuses is written with the next. */
  async #record(): Promise<void> {
    const { lastMs } = this
    if (lastMs === undefined || Math.abs(lastMs - this.#writtenMs) < sameMs) return
    for (const mirrored of this.#parts.interests.all) this.#noteBehind(mirrored, lastMs)
    const value = Buffer.from(String(Math.floor(lastMs)), 'latin1')
    try {
      await this.#parts.store.commit({ changes: [], records: [{ kind, key, value }], synced: false })
      this.#writtenMs = lastMs
    } catch {}
  }

  #noteBehind(mirrored: MirroredInterest, lastMs: number): void {
    const heardMs = this.#heardMsOf(mirrored)
    if (mirrored.cache === undefined || heardMs === undefined) return
    const noted = lastMs - heardMs > behindMs ? Math.floor(heardMs) : 0
    if (Math.abs(noted - mirrored.record.heardMs) >= sameMs) mirrored.noteHeard(noted)
  }
}
