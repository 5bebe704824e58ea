/**
 * One watch: an async iterable of frames, pulled by whoever writes them to a client.
 *
 * It goes through its first objects (if asked for), then reads history until it has caught up, then lives on a queue that
 * events are pushed to. A reader that does not keep up overflows its bounded queue and goes back to reading history at its
 * own pace: it delays nobody and costs no memory (A8). Below the floor of history it gets 410, as from kube-apiserver.
 */
import { pieceMsMax, turns } from '../base/turns.ts'
import { type Status, StatusError, tooOld } from '../kube/status.ts'
import { afterAll, type Cursor, HistoryGone } from '../store/store.ts'
import type { Dispatch, Receiver } from './dispatch.ts'
import type { Event, Form, FrameType } from './event.ts'
import type { Filter } from './filter.ts'
import type { History } from './history.ts'
import { type Item, relabel } from './item.ts'
import { join } from './join.ts'
import type { Held, Pace } from './pace.ts'
import { WaitingFrames } from './waiting.ts'

/** A chunk handed to the stream at once: large enough to fill TLS records, small enough to share a connection. */
const chunkBytesMax = 128 * 1024
/** client-go takes a watch that ends within a second without an event for a fault and lists again. */
const ageMsMin = 1_000

export type WatchStart =
  | { readonly kind: 'after'; readonly version: number }
  | { readonly kind: 'state'; readonly items: readonly Item[]; readonly closingBookmark: boolean }
  | { readonly kind: 'now' }

/** What a watcher needs of the cache it belongs to. */
export type WatchSource = {
  readonly history: History
  readonly dispatch: Dispatch<Watcher>
  readonly pace: Pace
  /** The version up to which everything published is known. */
  version(): number
  /** Calls once everything up to the version is published; answers how to stop waiting. */
  reached(version: number, then: () => void): () => void
  /** A clock nobody sets: devices without a battery learn the time of day late. */
  steady(): number
}

type Mode =
  | { readonly kind: 'state'; readonly items: readonly Item[]; next: number; readonly closing: number | undefined }
  /** The client saw more elsewhere than we have: silent until we have passed it (decision 3 of docs/architecture.md). */
  | { readonly kind: 'ahead'; readonly version: number }
  | { readonly kind: 'gap'; readonly version: number }
  | { readonly kind: 'history' }
  | { readonly kind: 'live' }
  | { readonly kind: 'failing'; readonly frame: Buffer }
  | { readonly kind: 'ended' }

const noWork = () => false
const done: IteratorResult<Buffer> = { value: undefined, done: true }

export class Watcher implements Receiver, Held, AsyncIterableIterator<Buffer> {
  readonly filter: Filter
  readonly bookmarks: boolean
  readonly #source: WatchSource
  readonly #form: Form
  readonly #openedMs: number
  readonly #resumes: boolean
  readonly #endings: (() => void)[] = []
  readonly #errorFrame: (status: Status) => Buffer
  #mode: Mode
  #cursor: Cursor
  readonly #queue = new WaitingFrames()
  #waiting: ((result: IteratorResult<Buffer>) => void) | undefined
  #wake: (() => void) | undefined
  #finishing = false
  /** Whether anything was ever handed out. */
  #spoke = false
  #bookmarkAtMs: number

  constructor(parts: {
    source: WatchSource
    filter: Filter
    form: Form
    start: WatchStart
    bookmarks: boolean
    errorFrame: (status: Status) => Buffer
  }) {
    this.filter = parts.filter
    this.bookmarks = parts.bookmarks
    this.#source = parts.source
    this.#form = parts.form
    this.#errorFrame = parts.errorFrame
    this.#openedMs = parts.source.steady()
    this.#resumes = parts.start.kind === 'after'
    this.#bookmarkAtMs = this.#openedMs
    const { start, source } = parts
    if (start.kind === 'after') {
      this.#cursor = { version: start.version, position: afterAll }
      const { version } = start
      if (version > source.version()) this.#mode = { kind: 'ahead', version }
      else this.#mode = this.#resumeAt(version)
    } else {
      this.#cursor = source.history.window.end
      const closing = start.kind === 'state' && start.closingBookmark ? source.version() : undefined
      this.#mode = { kind: 'state', items: start.kind === 'state' ? start.items : [], next: 0, closing }
    }
  }

  #resumeAt(version: number): Mode {
    const { history, version: newest } = this.#source
    // Up to date by position too: the deletions of a gap that opens here will have this very label.
    if (version === newest()) this.#cursor = { version, position: history.window.end.position }
    return this.#source.history.gapAt(version) === undefined ? { kind: 'history' } : { kind: 'gap', version }
  }

  /** Called once, however the watch ends. */
  onEnd(ending: () => void): void {
    this.#endings.push(ending)
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  /** Chunks of whole frames. */
  next(): Promise<IteratorResult<Buffer>> {
    if (this.#mode.kind === 'live') {
      const chunk = this.#takeQueued()
      if (chunk !== undefined) return Promise.resolve({ value: chunk, done: false })
      if (this.#finishing) return this.#end()
      return new Promise((resolve) => {
        this.#waiting = resolve
      })
    }
    return this.#nextSlow()
  }

  return(): Promise<IteratorResult<Buffer>> {
    this.#close()
    return Promise.resolve(done)
  }

  async #nextSlow(): Promise<IteratorResult<Buffer>> {
    try {
      for (;;) {
        const { kind } = this.#mode
        if (kind === 'ended') return done
        if (this.#mode.kind === 'failing') {
          const { frame } = this.#mode
          this.#close()
          return { value: frame, done: false }
        }
        if (kind === 'live') return await this.next()
        if (this.#mode.kind === 'ahead') {
          if (!this.#spoke && this.bookmarks) {
            this.#spoke = true
            return { value: this.#form.bookmark(this.#mode.version, false), done: false }
          }
          await this.#passed(this.#mode.version)
          continue
        }
        if (this.#form.isLaborious === true) {
          await turns.take()
          if (this.#mode.kind !== kind) continue
        }
        const chunk =
          this.#mode.kind === 'state'
            ? this.#takeState(this.#mode)
            : this.#mode.kind === 'gap'
              ? await this.#takeGap(this.#mode.version)
              : await this.#takeHistory()
        if (chunk !== undefined) {
          this.#spoke = true
          return { value: chunk, done: false }
        }
      }
    } catch (error) {
      return this.#fail(error)
    }
  }

  #takeState(mode: Extract<Mode, { kind: 'state' }>): Buffer | undefined {
    const frames: Buffer[] = []
    let bytes = 0
    const isSpent = this.#budget()
    while (mode.next < mode.items.length && bytes < chunkBytesMax && !isSpent()) {
      const frame = this.#form.frame('ADDED', mode.items[mode.next++] as Item)
      frames.push(frame)
      bytes += frame.length
    }
    if (mode.next === mode.items.length) {
      // And another: client-go counts from the closing one on, and a stream cut in its first second without a word since
      // would make it list again.
      if (mode.closing !== undefined)
        frames.push(this.#form.bookmark(mode.closing, true), this.#form.bookmark(mode.closing, false))
      this.#mode = { kind: 'history' }
    }
    return join(frames)
  }

  /** Whether the time of one piece of work is over. What is spliced takes none. */
  #budget(): () => boolean {
    if (this.#form.isLaborious !== true) return noWork
    const { steady } = this.#source
    const untilMs = steady() + pieceMsMax
    return () => steady() >= untilMs
  }

  /** Waits until we are no longer behind the client, or the watch has ended. */
  async #passed(version: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const cancel = this.#source.reached(version, resolve)
      this.#wake = () => {
        cancel()
        resolve()
      }
    })
    this.#wake = undefined
    if (this.#mode.kind === 'ahead') this.#mode = this.#resumeAt(version)
  }

  async #takeGap(version: number): Promise<Buffer | undefined> {
    const gap = this.#source.history.gapAt(version)
    const events = gap === undefined ? [] : await this.#source.history.gapDeletions(gap, version)
    if (this.#mode.kind === 'gap') this.#mode = { kind: 'history' }
    return join(events.flatMap((event) => this.#deletionAt(event, version) ?? []))
  }

  /** Labelled with the version its reader is at, not with the gap's: versions never go back, and n brings all of it again. */
  #deletionAt(event: Event, version: number): Buffer | undefined {
    if (event.previous === undefined || event.typeFor(this.filter.matches) === undefined) return undefined
    return this.#form.frame('DELETED', relabel(event.previous, version))
  }

  /** A chunk of what history has after the cursor; undefined after switching to live, or when a page had no match. */
  async #takeHistory(): Promise<Buffer | undefined> {
    const { floor } = this.#source.history.window
    const found = this.#source.history.next(this.#cursor)
    const fromDisk = found instanceof Promise
    const events = fromDisk ? await found : found
    if (this.#mode.kind !== 'history') return undefined
    const frames: Buffer[] = []
    let bytes = 0
    let seen = 0
    const isSpent = this.#budget()
    for (const event of events) {
      if (bytes >= chunkBytesMax || isSpent()) return join(frames)
      seen++
      this.#cursor = { version: event.version, position: event.position }
      const frame = this.#frameFor(event)
      if (frame === undefined) continue
      frames.push(frame)
      bytes += frame.length
    }
    if (!fromDisk) this.#goLive(frames.length === 0 && !this.#spoke)
    // The disk had nothing more that is published: the window, as it was before the read, continues from here.
    else if (seen === 0) this.#cursor = laterOf(this.#cursor, floor)
    return join(frames)
  }

  /** From here on events are pushed. Nothing can be missed: this runs in the same turn as the read that found the end. */
  #goLive(silent: boolean): void {
    this.#mode = { kind: 'live' }
    this.#source.dispatch.add(this)
    // Whoever resumes and missed nothing is told so at once: should we crash within its first second, it resumes again.
    if (silent && this.#resumes && this.bookmarks) this.#pushBookmark()
  }

  #frameFor(event: Event, shared = false): Buffer | undefined {
    const type = event.typeFor(this.filter.matches)
    if (type === undefined) return undefined
    if (event.item !== undefined && event.item.version < event.version) return this.#putBack(event, type)
    if (shared) return event.frame(this.#form, type)
    return this.#form.frame(type, (type === 'DELETED' ? event.removed : event.item) as Item)
  }

  /**
   * An object that was put back to an older version (a restore that let versions go on) takes its reader's version back with
   * it: a bookmark behind it tells where the reader is, which is before the rest of its gap.
   */
  #putBack({ item, previous, version }: Event, type: FrameType): Buffer {
    if (type === 'DELETED') return this.#form.frame(type, relabel(previous as Item, version - 1))
    const frame = this.#form.frame(type, item as Item)
    return this.bookmarks ? Buffer.concat([frame, this.#form.bookmark(version - 1, false)]) : frame
  }

  receive(event: Event): void {
    try {
      const frame = this.#frameFor(event, true)
      if (frame !== undefined) this.#push(frame, { version: event.version, position: event.position - 1 })
    } catch {
      // An object that cannot be spelled for this one reader: its stream ends, all others hear of the change.
      this.#close()
    }
  }

  /** `before` is the place from which history would bring this frame again. */
  #push(frame: Buffer, before: Cursor): void {
    const { pace } = this.#source
    const reading = this.#waiting !== undefined
    if (reading && !pace.holding && this.#queue.isEmpty) {
      this.#spoke = true
      pace.delivered()
      this.#give({ value: frame, done: false })
      return
    }
    if (!this.#queue.hasRoomFor(frame)) {
      // A reader that waits is not slow: it gets what is held for it. Any other has to read history.
      if (!reading) {
        this.#fallBack()
        return
      }
      this.release()
    }
    this.#queue.push(frame, before)
    if (reading) pace.hold(this)
  }

  /** Hands out what was held back. */
  release(): void {
    if (this.#waiting === undefined) return
    const chunk = this.#takeQueued()
    if (chunk !== undefined) this.#give({ value: chunk, done: false })
  }

  #fallBack(): void {
    this.#cursor = this.#queue.before as Cursor
    this.#source.dispatch.delete(this)
    this.#queue.clear()
    this.#form.dropped?.()
    this.#mode = { kind: 'history' }
  }

  #takeQueued(): Buffer | undefined {
    if (!this.#queue.isEmpty) this.#spoke = true
    return this.#queue.take()
  }

  /** Tells how far the stream is, if its client asked to know and nothing else is on the way to it. */
  bookmark(dueMs: number): void {
    // A stream that is ending has had its last one, and perhaps hears of no further event.
    if (!this.bookmarks || this.#mode.kind !== 'live' || this.#finishing) return
    const nowMs = this.#source.steady()
    if (nowMs - this.#bookmarkAtMs < dueMs) return
    this.#bookmarkAtMs = nowMs
    this.#pushBookmark()
  }

  #pushBookmark(): void {
    const { position } = this.#source.history.window.end
    const version = this.#source.version()
    this.#push(this.#form.bookmark(version, false), { version, position })
  }

  /** Ends the stream in order: what is queued, a bookmark for who asked, then the end. Returns how long to wait first. */
  finish(): number {
    if (this.#mode.kind === 'ended' || this.#finishing) return 0
    const young = ageMsMin - (this.#source.steady() - this.#openedMs)
    const canSpeak = this.bookmarks && this.#mode.kind === 'live'
    if (!this.#spoke && !canSpeak && young > 0) return young
    if (canSpeak) this.#pushBookmark()
    if (this.#mode.kind === 'live') {
      this.#finishing = true
      this.release()
      if (this.#waiting !== undefined) void this.#end()
    } else {
      // Still catching up: the client resumes from the last event it got.
      this.#close()
    }
    return 0
  }

  /** Ends the stream with an error its client has to act on. */
  fail(status: Status): void {
    if (this.#mode.kind === 'ended') return
    const frame = this.#errorFrame(status)
    if (this.#mode.kind === 'live') this.#source.dispatch.delete(this)
    this.#queue.clear()
    this.#mode = { kind: 'failing', frame }
    this.#wake?.()
    const waiting = this.#waiting
    this.#waiting = undefined
    if (waiting !== undefined) void this.#nextSlow().then(waiting)
  }

  #end(): Promise<IteratorResult<Buffer>> {
    this.#close()
    return Promise.resolve(done)
  }

  #fail(error: unknown): IteratorResult<Buffer> {
    let status: Status
    if (error instanceof HistoryGone) status = tooOld(this.#cursor.version, error.floor).status
    else if (error instanceof StatusError) status = error.status
    else throw error
    const frame = this.#errorFrame(status)
    this.#close()
    return { value: frame, done: false }
  }

  #close(): void {
    if (this.#mode.kind === 'ended') return
    if (this.#mode.kind === 'live') this.#source.dispatch.delete(this)
    this.#mode = { kind: 'ended' }
    this.#queue.clear()
    this.#wake?.()
    this.#give(done)
    for (const ending of this.#endings) ending()
  }

  #give(result: IteratorResult<Buffer>): void {
    const waiting = this.#waiting
    this.#waiting = undefined
    waiting?.(result)
  }
}

function laterOf(a: Cursor, b: Cursor): Cursor {
  return a.version > b.version || (a.version === b.version && a.position > b.position) ? a : b
}
