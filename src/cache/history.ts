/**
 * Reading an interest's history from any version: from memory where the window reaches, from the store below it. Pages
 * are pulled, so a reader that falls behind costs no memory. Gaps (decision 3 of docs/architecture.md) are told here:
 * a watch that resumes inside one first hears of every deletion of that gap.
 */
import type { FieldPlan } from '../kube/object.ts'
import { afterAll, type Cursor, type Entry, type Gap, HistoryGone, type Store } from '../store/store.ts'
import { Event } from './event.ts'
import { type Item, makeItem } from './item.ts'
import { Window } from './window.ts'

/** One page, from disk or memory: enough to keep a stream busy, little enough to hold for each of many readers. */
export const pageLimit = { entries: 256, bytes: 512 * 1024 }

export class History {
  readonly #interest: string
  readonly #store: Store
  readonly #gaps: Gap[]
  readonly #loaded: Cursor | undefined
  #plan: FieldPlan
  readonly window: Window

  constructor(parts: {
    interest: string
    store: Store
    plan: FieldPlan
    end: Cursor
    gaps: readonly Gap[]
    /** It was read from the disk: what was told up to now is not known any more. */
    isLoaded?: boolean
  }) {
    this.#interest = parts.interest
    this.#store = parts.store
    this.#plan = parts.plan
    this.#gaps = [...parts.gaps]
    this.#loaded = parts.isLoaded === true ? parts.end : undefined
    this.window = new Window(parts.end)
  }

  /** Versions below this one are too old to resume from. */
  get floor(): number {
    return this.#store.floor(this.#interest)
  }

  set plan(plan: FieldPlan) {
    this.#plan = plan
  }

  noteGap(gap: Gap): void {
    this.#gaps.push(gap)
  }

  /**
   * The next events after the cursor: `ready` from memory (all there are), or a promise of a page from disk. Entries the
   * disk holds but that are not published yet are left for the window to bring.
   */
  next(cursor: Cursor): Iterable<Event> | Promise<Event[]> {
    return this.window.reaches(cursor) ? this.window.after(cursor) : this.#page(cursor)
  }

  async #page(cursor: Cursor): Promise<Event[]> {
    const page = await this.#store.history(this.#interest, cursor, pageLimit)
    const published = this.window.end.position
    const entries = page.entries.filter((entry) => entry.position <= published)
    return entries.map((entry) => this.#event(entry))
  }

  /** A gap's own entry becomes an event that concerns no object, and so no watcher. */
  #event(entry: Entry): Event {
    const { position, version, key } = entry
    // What was put back to an older version is on the disk under its label.
    const previous =
      entry.previous && asSpelled(makeItem(entry.previous, entry.previousVersion, this.#plan), this.#plan)
    let item = entry.body && makeItem(entry.body, version, this.#plan)
    // The first label of a gap is also that of objects that were put back to an older version.
    if (item !== undefined && this.#gaps.some((one) => one.from + 1 === version)) item = asSpelled(item, this.#plan)
    const gap = item === undefined ? this.#gaps.findLast((one) => isIn(one, position, version)) : undefined
    return new Event({ position, version, key, item, previous, gap })
  }

  /**
   * The floor under which nothing is left when everything up to this place is forgotten: a gap goes as a whole. undefined
   * while that would take what came later under the same label: the deletions of a gap that opened right there.
   */
  floorUpTo({ version, position }: Cursor): number | undefined {
    let floor = version
    for (const gap of this.#gaps) if (gap.position <= position) floor = Math.max(floor, gap.to)
    return this.#gaps.some((gap) => gap.position > position && gap.from <= floor) ? undefined : floor
  }

  /**
   * The gap a watch from version n falls into, if any: from ≤ n < to. One that the disk has forgotten counts as well: what came
   * behind its deletions may still be in memory, and a reader that hears only that would keep what was deleted.
   */
  gapAt(version: number): Gap | undefined {
    return this.#gaps.findLast((gap) => gap.from <= version && version < gap.to)
  }

  /**
   * The gap around a version that its history never gave out: what a client there has seen, and what became of it up to the
   * gap's end, was never known here. Not one from before a start, nor the first after it: how far bookmarks had come in that
   * life is not all on the disk.
   */
  unknownAt(version: number): Gap | undefined {
    const gap = this.gapAt(version)
    if (gap === undefined || gap.from === version) return undefined
    const isOfOldLife =
      this.#loaded !== undefined && (gap.position <= this.#loaded.position || gap.from === this.#loaded.version)
    return isOfOldLife ? undefined : gap
  }

  /**
   * What a watch that resumes at version n inside a gap hears first: every deletion of the gap, except of keys that were
   * added again at a label not above n. In doubt twice, never skipped. At a version that is no label of the gap its client
   * was not told by this history, which is too old for it then.
   */
  async gapDeletions(gap: Gap, version: number): Promise<Event[]> {
    const deletions: Event[] = []
    const addedAgain = new Set<string>()
    const last: Cursor = { version, position: afterAll }
    let isUnknown = this.unknownAt(version) !== undefined
    for await (const event of this.#between({ version: gap.from, position: gap.position }, last)) {
      if (event.item !== undefined) addedAgain.add(event.key)
      else if (event.gap?.position === gap.position) deletions.push(event)
      if (event.version === version) isUnknown = false
    }
    if (isUnknown) throw new HistoryGone(this.#interest, gap.to)
    return deletions.filter((event) => !addedAgain.has(event.key))
  }

  /** Every event in (after, upTo]. */
  async *#between(after: Cursor, upTo: Cursor): AsyncIterable<Event> {
    let cursor = after
    for (;;) {
      let seen = 0
      // Taken at once: while the reader waits between two events, the window moves on.
      for (const event of [...(await this.next(cursor))]) {
        if (event.version > upTo.version) return
        seen++
        cursor = { version: event.version, position: event.position }
        yield event
      }
      if (seen === 0) return
    }
  }

  /**
   * Hands over, for each key changed after `version`, the state it had then (undefined: it was not there), in the same turn
   * as the read that found the end: nothing is published in between.
   */
  async undo<Result>(version: number, use: (before: Map<string, Event['previous']>) => Result): Promise<Result> {
    const before = new Map<string, Event['previous']>()
    let cursor: Cursor = { version, position: afterAll }
    for (;;) {
      const { floor } = this.window
      const found = this.next(cursor)
      const events = found instanceof Promise ? await found : found
      let seen = 0
      for (const event of events) {
        seen++
        cursor = { version: event.version, position: event.position }
        const concernsObject = event.item !== undefined || event.previous !== undefined
        if (concernsObject && !before.has(event.key)) before.set(event.key, event.previous)
      }
      if (!(found instanceof Promise)) return use(before)
      // The disk had nothing more that is published: the window, as it was before the read, continues from here.
      if (seen === 0) cursor = floor
    }
  }
}

/** The same item under the version that its bytes tell. */
export function asSpelled(item: Item, plan: FieldPlan): Item {
  const version = Number(item.bytes.toString('latin1', item.versionStart, item.versionEnd))
  return version === item.version ? item : makeItem(item.bytes, version, plan)
}

/** A gap's deletions follow its own entry under the same label; nothing else does, since all later labels are higher. */
function isIn(gap: Gap, position: number, version: number): boolean {
  return version === gap.from && position > gap.position
}
