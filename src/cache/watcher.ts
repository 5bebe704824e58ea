/**
 * One watch: an async iterable of chunks of frames, pulled by what writes them to a client. Its events come from a
 * subscription; here they are spelled in the form the client asked for, joined, paced and bounded. A live client that reads
 * gets the frame that all watchers of its form share, in the turn in which the event is published.
 */
import type { Clock } from '../base/clock.ts'
import { pieceMsMax, turns } from '../base/turns.ts'
import { type Status, StatusError } from '../kube/status.ts'
import type { Bookmark, Form, SharedEvent, WatchEvent } from './event.ts'
import type { Filter } from './filter.ts'
import { join } from './join.ts'
import type { Pace, Paced } from './pace.ts'
import { ReaderQueue } from './readerqueue.ts'
import { type StreamEvent, type StreamStart, Subscription, type SubscriptionSource } from './subscription.ts'

/** A chunk handed to the stream at once: large enough to fill TLS records, small enough to share a connection. */
const chunkBytesMax = 128 * 1024
/** client-go takes a watch that ends within a second without an event for a fault and lists again. */
const ageMsMin = 1_000

export type WatchStart =
  | Exclude<StreamStart, { kind: 'state' }>
  | (Extract<StreamStart, { kind: 'state' }> & { readonly closingBookmark: boolean })

/** What a watcher needs of the cache it belongs to. */
export type WatchSource = SubscriptionSource & { readonly pace: Pace; readonly clock: Clock }

const noWork = () => false
const done: IteratorResult<Buffer> = { value: undefined, done: true }

export class Watcher extends Subscription implements Paced, AsyncIterableIterator<Buffer> {
  readonly bookmarks: boolean
  readonly #source: WatchSource
  readonly #form: Form
  readonly #openedMs: number
  readonly #resumes: boolean
  readonly #closingBookmark: boolean
  readonly #endings: (() => void)[] = []
  readonly #errorFrame: (status: Status) => Buffer
  readonly #who: string | undefined
  /** What was read and not yet spelled: it comes before whatever waits. */
  #page: { readonly events: readonly StreamEvent[]; next: number } | undefined
  readonly #queue = new ReaderQueue<Buffer>()
  #waiting: ((result: IteratorResult<Buffer>) => void) | undefined
  #finishing = false
  #isOver = false
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
    /** Whose turns it takes for what is laborious. */
    who?: string
  }) {
    super(parts)
    const { source, start } = parts
    this.bookmarks = parts.bookmarks
    this.#source = source
    this.#form = parts.form
    this.#errorFrame = parts.errorFrame
    this.#who = parts.who
    this.#openedMs = source.clock.steady()
    this.#resumes = start.kind === 'after'
    this.#closingBookmark = start.kind === 'state' && start.closingBookmark
    this.#bookmarkAtMs = this.#openedMs
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
    if (!this.isLive || this.#page !== undefined) return this.#nextSlow()
    const chunk = this.#takeQueued()
    if (chunk !== undefined) return Promise.resolve({ value: chunk, done: false })
    if (this.#finishing) return this.#end()
    return new Promise((resolve) => {
      this.#waiting = resolve
    })
  }

  return(): Promise<IteratorResult<Buffer>> {
    return this.#end()
  }

  async #nextSlow(): Promise<IteratorResult<Buffer>> {
    try {
      while (!this.#isOver) {
        if (this.#page !== undefined) {
          if (this.#form.isLaborious === true) await turns.take(this.#who)
          const chunk = this.#spellPage()
          if (chunk !== undefined) return this.#said(chunk)
        } else {
          // Not awaited: while a live watch waits, nothing of this is held for it.
          if (this.isLive) return this.next()
          const { aheadAt } = this
          if (aheadAt !== undefined && this.#owesWord) return this.#said(this.#form.bookmark(aheadAt, false))
          await this.#read()
        }
      }
      return done
    } catch (error) {
      this.#close()
      if (error instanceof StatusError) return { value: this.#errorFrame(error.status), done: false }
      throw error
    }
  }

  /** A client that resumes and missed nothing is told so at once: should we crash within its first second, it resumes again. */
  get #owesWord(): boolean {
    return this.#resumes && this.bookmarks && !this.#spoke && this.#queue.isEmpty
  }

  async #read(): Promise<void> {
    const events = await this.read()
    if (events.length > 0) this.#page = { events, next: 0 }
    else if (this.isLive && this.#owesWord) this.#pushBookmark()
  }

  #said(chunk: Buffer): IteratorResult<Buffer> {
    this.#spoke = true
    return { value: chunk, done: false }
  }

  /** As much of the page as one chunk takes; undefined if that comes to nothing. */
  #spellPage(): Buffer | undefined {
    const page = this.#page
    if (page === undefined) return undefined
    const frames: Buffer[] = []
    let bytes = 0
    const isSpent = this.#budget()
    while (page.next < page.events.length && bytes < chunkBytesMax && !isSpent()) {
      const event = page.events[page.next++] as StreamEvent
      const frame = this.#spell(event)
      if (frame === undefined) continue
      frames.push(frame)
      bytes += frame.length
    }
    if (page.next === page.events.length) this.#page = undefined
    return join(frames)
  }

  #spell(event: StreamEvent): Buffer | undefined {
    if (event.type === 'BOOKMARK') return this.#closing(event)
    return this.#placed(this.#form.frame(event.type, event.item), event)
  }

  /** Whether the time of one piece of work is over. What is spliced takes none. */
  #budget(): () => boolean {
    if (this.#form.isLaborious !== true) return noWork
    const { clock } = this.#source
    const untilMs = clock.steady() + pieceMsMax
    return () => clock.steady() >= untilMs
  }

  /**
   * The end of the first objects, and another bookmark: client-go counts from the closing one on, and a stream cut in its
   * first second without a word since would make it list again.
   */
  #closing({ version }: Bookmark): Buffer | undefined {
    if (!this.#closingBookmark) return undefined
    return Buffer.concat([this.#form.bookmark(version, true), this.#form.bookmark(version, false)])
  }

  /**
   * An object that was put back to an older version (a restore that let versions go on) takes its reader's version back with
   * it: a bookmark behind it tells where the reader is, which is before the rest of its gap.
   */
  #placed(frame: Buffer, { type, isRelabelled, version }: WatchEvent): Buffer {
    if (!isRelabelled || type === 'DELETED' || !this.bookmarks) return frame
    return Buffer.concat([frame, this.#form.bookmark(version - 1, false)])
  }

  protected hear(event: SharedEvent): void {
    try {
      this.#push(this.#placed(event.frame(this.#form), event), event.version, event.position - 1)
    } catch {
      // An object that cannot be spelled for this one reader: its stream ends, all others hear of the change.
      this.#close()
    }
  }

  /** After this version and position history would bring the frame again. */
  #push(frame: Buffer, version: number, position: number): void {
    const { pace } = this.#source
    const reading = this.#waiting !== undefined
    if (reading && !pace.holding && this.#queue.isEmpty) {
      pace.delivered()
      this.#give(this.#said(frame))
      return
    }
    if (!this.#queue.hasRoomFor(frame.length)) {
      // A reader that waits is not slow: it gets what is held for it. Any other has to read history.
      if (!reading) {
        this.#fallBack()
        return
      }
      this.release()
    }
    this.#queue.push(frame, frame.length, version, position)
    if (reading) pace.hold(this)
  }

  /** Hands out what was held back. */
  release(): void {
    if (this.#waiting === undefined) return
    const chunk = this.#takeQueued()
    if (chunk !== undefined) this.#give({ value: chunk, done: false })
  }

  #fallBack(): void {
    this.rewind(this.#queue.before)
    this.#queue.clear()
    this.#form.dropped?.()
  }

  #takeQueued(): Buffer | undefined {
    if (this.#queue.isEmpty) return undefined
    this.#spoke = true
    return join(this.#queue.take())
  }

  /** Tells how far the stream is, if its client asked to know and nothing else is on the way to it. */
  bookmark(dueMs: number): void {
    // A stream that is ending has had its last one, and perhaps hears of no further event.
    if (!this.bookmarks || !this.isLive || this.#finishing) return
    const nowMs = this.#source.clock.steady()
    if (nowMs - this.#bookmarkAtMs < dueMs) return
    this.#bookmarkAtMs = nowMs
    this.#pushBookmark()
  }

  #pushBookmark(): void {
    const { history, progress } = this.#source
    this.#push(this.#form.bookmark(progress.version, false), progress.version, history.window.end.position)
  }

  /** Ends the stream in order: what is queued, a bookmark for a client that asked for them, then the end. Returns how long to wait first. */
  finish(): number {
    if (this.#isOver || this.#finishing) return 0
    const young = ageMsMin - (this.#source.clock.steady() - this.#openedMs)
    const canSpeak = this.bookmarks && this.isLive
    if (!this.#spoke && !canSpeak && young > 0) return young
    if (canSpeak) this.#pushBookmark()
    if (this.isLive) {
      this.#finishing = true
      this.release()
      if (this.#waiting !== undefined) this.#close()
    } else {
      // Still catching up: the client resumes from the last event it got.
      this.#close()
    }
    return 0
  }

  /** Ends the stream with an error its client has to act on. */
  fail(status: Status): void {
    if (this.#isOver) return
    this.#page = undefined
    this.#queue.clear()
    this.leave(new StatusError(status))
    const waiting = this.#waiting
    this.#waiting = undefined
    if (waiting !== undefined) void this.#nextSlow().then(waiting)
  }

  #end(): Promise<IteratorResult<Buffer>> {
    this.#close()
    return Promise.resolve(done)
  }

  #close(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.leave()
    this.#page = undefined
    this.#queue.clear()
    this.#give(done)
    for (const ending of this.#endings) ending()
  }

  #give(result: IteratorResult<Buffer>): void {
    const waiting = this.#waiting
    this.#waiting = undefined
    waiting?.(result)
  }
}
