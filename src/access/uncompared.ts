/**
 * Decisions of which roles said nothing when they were reviewed, since the hub had not told the rules of their caller yet: these come a moment
 * after its first question. Compared with them then, a right that goes from the rules later is known to be gone.
 */
import type { KnownCaller } from './knowncaller.ts'
import type { Question } from './question.ts'

/** Rules are told within a round trip; a hub that had no room is asked again after a minute. */
const msMax = 90_000
/** What the callers of a node ask within that time when all of them begin. */
const entriesMax = 1_024

type Uncompared = {
  readonly known: KnownCaller
  readonly question: Question
  readonly allowed: boolean
  /** When it was asked, by the steady clock. */
  readonly askedAt: number
}

export class UncomparedDecisions {
  /** By caller and question, the one reviewed longest ago first. */
  readonly #entries = new Map<string, Uncompared>()

  add(place: string, entry: Uncompared): void {
    this.#entries.delete(place)
    this.#entries.set(place, entry)
    if (this.#entries.size > entriesMax) this.#entries.delete(this.#entries.keys().next().value as string)
  }

  /** Those of the last moments; each that is compared now is let go. */
  compare(now: number, isCompared: (entry: Uncompared) => boolean): void {
    for (const [place, entry] of this.#entries)
      if (now - entry.askedAt > msMax || isCompared(entry)) this.#entries.delete(place)
  }
}
