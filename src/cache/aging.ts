/**
 * History is bounded by age too: a caller that may list Secrets today has no claim to what was rotated last month. Now and then
 * it is noted how far each interest has come; once such a mark is old enough everything up to it is forgotten, by a floor
 * that is committed like any change, so that the log itself tells it.
 *
 * Age is time in which this process ran, at an edge with the cloud reachable: a device without a battery learns the time
 * of day late, and a client that slept through an outage resumes after it. No clock that an operator sets is asked.
 */
import type { Clock } from '../base/clock.ts'
import type { Batch, InterestChange } from '../store/store.ts'
import type { Cache } from './cache.ts'

/** Marks in the time that history is kept: so much longer than that its oldest part is kept. */
const marksPerAge = 24
/** How long it has run is written down this often: a crash or a power cut makes it forget no more. */
const saveEveryMs = 600_000

export const agingRecord = { kind: 'aging', key: 'marks' }

export type AgingOptions = {
  readonly ageMs: number
  /** Whether time counts now; without it all does. */
  readonly counts?: () => boolean
}

/** Where an interest's history ended, and when that was. */
type Mark = { readonly atMs: number; readonly version: number; readonly position: number }
type Saved = { readonly ranMs: number; readonly marks: Readonly<Record<string, readonly Mark[]>> }

type Parts = AgingOptions & {
  readonly clock: Clock
  readonly caches: ReadonlyMap<string, Cache>
  readonly commit: (batch: Batch) => Promise<void>
  /** What was written down last. */
  readonly saved?: Buffer | undefined
}

export class Aging {
  readonly #parts: Parts
  readonly #marks = new Map<string, Mark[]>()
  #ranMs: number
  #lastMs: number
  #markedMs: number
  #savedMs: number

  constructor(parts: Parts) {
    this.#parts = parts
    const { ranMs, marks } = readSaved(parts.saved)
    this.#ranMs = this.#markedMs = this.#savedMs = ranMs
    this.#lastMs = parts.clock.steady()
    for (const [interest, list] of Object.entries(marks)) this.#marks.set(interest, [...list])
    this.#mark()
  }

  /** Called every second or so. */
  tick(): void {
    const nowMs = this.#parts.clock.steady()
    if (this.#parts.counts?.() ?? true) this.#ranMs += nowMs - this.#lastMs
    this.#lastMs = nowMs
    const isDue = this.#ranMs - this.#markedMs >= this.#parts.ageMs / marksPerAge
    if (isDue) this.#forget()
    else if (this.#ranMs - this.#savedMs >= saveEveryMs) this.#commit([])
  }

  /** For the end of the process. */
  save(): void {
    if (this.#ranMs > this.#savedMs) this.#commit([])
  }

  #mark(): void {
    const { caches } = this.#parts
    for (const interest of this.#marks.keys()) if (!caches.has(interest)) this.#marks.delete(interest)
    for (const [interest, { lastVersion: version, lastPosition: position }] of caches) {
      // An interest that began anew counts positions, and perhaps versions, anew: marks of the one before say nothing.
      const marks = (this.#marks.get(interest) ?? []).filter(
        (one) => one.version <= version && one.position <= position,
      )
      if (version > 0 && marks.at(-1)?.version !== version) marks.push({ atMs: this.#ranMs, version, position })
      this.#marks.set(interest, marks)
    }
    this.#markedMs = this.#ranMs
  }

  #forget(): void {
    this.#mark()
    const interests: InterestChange[] = []
    for (const [interest, marks] of this.#marks) {
      const old = marks.findLast(({ atMs }) => atMs <= this.#ranMs - this.#parts.ageMs)
      const cache = this.#parts.caches.get(interest)
      const floor = old && cache?.history.floorUpTo(old)
      if (old === undefined || cache === undefined || floor === undefined) continue
      this.#marks.set(interest, marks.slice(marks.indexOf(old) + 1))
      if (floor <= cache.history.floor || floor > cache.version) continue
      interests.push({ interest, synced: cache.version, floor })
    }
    this.#commit(interests)
  }

  #commit(interests: readonly InterestChange[]): void {
    this.#savedMs = this.#ranMs
    const saved: Saved = { ranMs: this.#ranMs, marks: Object.fromEntries(this.#marks) }
    const records = [{ ...agingRecord, value: Buffer.from(JSON.stringify(saved)) }]
    // A disk that refuses is told about elsewhere; what was not forgotten now is with the next mark.
    void this.#parts.commit({ changes: [], interests, records, synced: false }).catch(() => {})
  }
}

function readSaved(saved: Buffer | undefined): Saved {
  try {
    const { ranMs, marks } = JSON.parse(String(saved)) as Saved
    if (Number.isFinite(ranMs) && typeof marks === 'object' && marks !== null) return { ranMs, marks }
  } catch {
    // Nothing was written down, or it is damaged: age begins now.
  }
  return { ranMs: 0, marks: {} }
}
