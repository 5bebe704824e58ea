/**
 * One reader's way through an interest's history: the objects it begins with (if asked for), then what history has after
 * its cursor, then live, where it is told each event in the turn that publishes it. Until it is live the reader reads pages
 * at its own pace. A live reader that has no room goes back to history: it delays no other and costs no memory (A8). Below
 * the floor of history it gets 410, as from kube-apiserver.
 *
 * It knows neither frames nor queues: `stream.ts` makes batches of events of it, `watcher.ts` frames for a client. Both
 * extend it: with thousands of watches every event meets one object for each of them, and not two.
 */
import { type StatusError, tooOld } from '../kube/status.ts'
import { afterAll, type Cursor, type Gap, HistoryGone } from '../store/store.ts'
import type { Dispatch, Receiver } from './dispatch.ts'
import type { Bookmark, Event, SharedEvent, WatchEvent } from './event.ts'
import { type Filter, mayHave } from './filter.ts'
import { type History, pageLimit } from './history.ts'
import { type Item, relabel } from './item.ts'
import type { Progress } from './progress.ts'

export type StreamStart =
  | { readonly kind: 'after'; readonly version: number }
  | { readonly kind: 'state'; readonly items: readonly Item[] }
  | { readonly kind: 'now' }

export type StreamEvent = WatchEvent | Bookmark

/** What a subscription needs of the cache it belongs to. */
export type SubscriptionSource = {
  readonly history: History
  readonly dispatch: Dispatch<Subscription>
  readonly progress: Progress
}

type Mode =
  | { readonly kind: 'state'; readonly items: readonly Item[]; next: number; readonly version: number }
  /** The reader saw more elsewhere than we have: silent until we have passed it (decision 3 of docs/architecture.md). */
  | { readonly kind: 'ahead'; readonly version: number }
  | { readonly kind: 'gap'; readonly version: number; readonly gap: Gap }
  | { readonly kind: 'history' }
  | { readonly kind: 'live' }
  | { readonly kind: 'failing'; readonly error: StatusError }
  | { readonly kind: 'ended' }

const reading: Mode = { kind: 'history' }
const live: Mode = { kind: 'live' }
const ended: Mode = { kind: 'ended' }
const nothing: readonly StreamEvent[] = []

export abstract class Subscription implements Receiver {
  readonly filter: Filter
  readonly #source: SubscriptionSource
  #mode: Mode
  #cursor: Cursor
  #wake: (() => void) | undefined

  constructor(parts: { source: SubscriptionSource; filter: Filter; start: StreamStart }) {
    const { source, start } = parts
    this.filter = parts.filter
    this.#source = source
    const { version } = source.progress
    if (start.kind === 'after') {
      this.#cursor = { version: start.version, position: afterAll }
      this.#mode = start.version > version ? { kind: 'ahead', version: start.version } : this.#resumeAt(start.version)
    } else {
      this.#cursor = source.history.window.end
      this.#mode = start.kind === 'now' ? reading : { kind: 'state', items: start.items, next: 0, version }
    }
  }

  #resumeAt(version: number): Mode {
    const { history, progress } = this.#source
    // Up to date by position too: the deletions of a gap that opens here will have this very label.
    if (version === progress.version) this.#cursor = { version, position: history.window.end.position }
    const gap = history.gapAt(version)
    return gap === undefined ? reading : { kind: 'gap', version, gap }
  }

  protected get isLive(): boolean {
    return this.#mode === live
  }

  protected get hasEnded(): boolean {
    return this.#mode === ended
  }

  /** The version its reader is at, while that lies ahead of us. */
  protected get aheadAt(): number | undefined {
    return this.#mode.kind === 'ahead' ? this.#mode.version : undefined
  }

  /** The next page, at most as large as one of history; empty when it held nothing for this reader, or when it is live now. */
  protected async read(): Promise<readonly StreamEvent[]> {
    const mode = this.#mode
    try {
      if (mode.kind === 'state') return this.#readState(mode)
      if (mode.kind === 'gap') return await this.#readGap(mode)
      if (mode.kind === 'history') return await this.#readHistory()
    } catch (error) {
      this.leave()
      throw error instanceof HistoryGone ? tooOld(this.#cursor.version, error.floor) : error
    }
    if (mode.kind === 'ahead') await this.#passed(mode.version)
    if (mode.kind === 'failing') {
      this.leave()
      throw mode.error
    }
    return nothing
  }

  #readState(mode: Extract<Mode, { kind: 'state' }>): readonly StreamEvent[] {
    const page: StreamEvent[] = []
    const { position } = this.#cursor
    for (let bytes = 0; mode.next < mode.items.length && hasRoom(page, bytes); mode.next++) {
      const item = mode.items[mode.next] as Item
      page.push({ type: 'ADDED', item, previous: undefined, version: item.version, position, isRelabelled: false })
      bytes += item.bytes.length
    }
    if (mode.next === mode.items.length) {
      page.push({ type: 'BOOKMARK', version: mode.version, endsState: true })
      this.#mode = reading
    }
    return page
  }

  /** Waits until we are no longer behind the reader, or the subscription has ended. */
  async #passed(version: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const cancel = this.#source.progress.whenReached(version, resolve)
      this.#wake = () => {
        cancel()
        resolve()
      }
    })
    this.#wake = undefined
    if (this.#mode.kind !== 'ahead') return
    // Passed by a list, and not change by change: what became of what its reader has seen elsewhere is not known here.
    const gap = this.#source.history.unknownAt(version)
    this.#mode = gap === undefined ? this.#resumeAt(version) : { kind: 'failing', error: tooOld(version, gap.to) }
  }

  /** Labelled with the version its reader is at, not with the gap's: versions never go back, and n brings all of it again. */
  async #readGap({ version, gap }: Extract<Mode, { kind: 'gap' }>): Promise<readonly StreamEvent[]> {
    const events = await this.#source.history.gapDeletions(gap, version)
    if (this.#mode.kind !== 'gap') return nothing
    this.#mode = reading
    const { position } = this.#cursor
    return events.flatMap(({ previous }): WatchEvent[] => {
      if (previous === undefined || !mayHave(this.filter, previous)) return []
      const item = relabel(previous, version)
      return [{ type: 'DELETED', item, previous, version, position, isRelabelled: true }]
    })
  }

  /** What history has after the cursor, from memory or disk. */
  async #readHistory(): Promise<readonly StreamEvent[]> {
    const { history } = this.#source
    const { floor } = history.window
    const found = history.next(this.#cursor)
    const fromDisk = found instanceof Promise
    const events = fromDisk ? await found : found
    if (this.#mode !== reading) return nothing
    const page: StreamEvent[] = []
    let [seen, bytes] = [0, 0]
    for (const event of events) {
      if (!hasRoom(page, bytes)) return page
      seen++
      this.#cursor = { version: event.version, position: event.position }
      const type = event.typeFor(this.filter)
      if (type === undefined) continue
      const one = event.seen(type)
      page.push(one)
      bytes += one.item.bytes.length
    }
    if (!fromDisk) this.#goLive()
    // The disk had nothing more that is published: the window, as it was before the read, continues from here.
    else if (seen === 0) this.#cursor = laterOf(this.#cursor, floor)
    return page
  }

  /** From here on events are told. None can be missed: this runs in the same turn as the read that found the end. */
  #goLive(): void {
    this.#mode = live
    this.#source.dispatch.add(this)
  }

  receive(event: Event): void {
    const type = event.typeFor(this.filter)
    if (type !== undefined) this.hear(event.shared(type))
  }

  /** A live event. One that finds no room is read again from history: see `rewind`. */
  protected abstract hear(event: SharedEvent): void

  /** There is no room: what was heard after this place is read from history. */
  protected rewind(cursor: Cursor): void {
    if (!this.isLive) return
    this.#source.dispatch.delete(this)
    this.#cursor = cursor
    this.#mode = reading
  }

  /** The end. With an error the next read throws that, and is the last. */
  protected leave(error?: StatusError): void {
    if (this.hasEnded) return
    if (this.isLive) this.#source.dispatch.delete(this)
    this.#mode = error === undefined ? ended : { kind: 'failing', error }
    this.#wake?.()
  }
}

function hasRoom(page: readonly StreamEvent[], bytes: number): boolean {
  return page.length < pageLimit.entries && bytes < pageLimit.bytes
}

function laterOf(a: Cursor, b: Cursor): Cursor {
  return a.version > b.version || (a.version === b.version && a.position > b.position) ? a : b
}
