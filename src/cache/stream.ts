/**
 * The events of an interest from a cursor on, as an async iterable of batches: a feed copies them, a peer sends them, a
 * controller acts on them. A reader that takes its time holds no more than a burst and delays no other (A8): beyond that its
 * events are read from history when it comes for them.
 */
import type { StatusError } from '../kube/status.ts'
import type { WatchEvent } from './event.ts'
import type { Filter } from './filter.ts'
import type { Progress } from './progress.ts'
import { ReaderQueue } from './readerqueue.ts'
import { type StreamEvent, type StreamStart, Subscription, type SubscriptionSource } from './subscription.ts'

/** What one event costs beside its object, in bytes. */
const eventOverheadBytes = 256

type Result = IteratorResult<readonly StreamEvent[], undefined>

const done: Result = { value: undefined, done: true }

export class Stream extends Subscription implements AsyncIterableIterator<readonly StreamEvent[]> {
  readonly #progress: Progress | undefined
  readonly #queue = new ReaderQueue<StreamEvent>()
  readonly #onEnd: () => void
  #waiting: { resolve(result: Result): void; reject(error: unknown): void } | undefined
  readonly #stopHearing: (() => void) | undefined
  /** The version of the last bookmark. */
  #told = 0
  #isOver = false

  /** `bookmarks`: whether its reader is told how far it is whenever there is nothing else to tell. `onEnd` is called once. */
  constructor(parts: {
    source: SubscriptionSource
    filter: Filter
    start: StreamStart
    bookmarks: boolean
    onEnd: () => void
  }) {
    super(parts)
    this.#progress = parts.bookmarks ? parts.source.progress : undefined
    this.#onEnd = parts.onEnd
    this.#stopHearing = this.#progress?.observe(() => this.#waiting && this.#give(this.#take()))
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  /** Whole batches, never empty. One call at a time. */
  async next(): Promise<Result> {
    while (!this.isLive) {
      if (this.hasEnded) return done
      const page = await this.#read()
      if (page.length > 0) return { value: page, done: false }
    }
    const batch = this.#take()
    if (batch.length > 0) return { value: batch, done: false }
    return await new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject }
    })
  }

  async #read(): Promise<readonly StreamEvent[]> {
    try {
      return await this.read()
    } catch (error) {
      this.#end()
      throw error
    }
  }

  return(): Promise<Result> {
    this.#end()
    return Promise.resolve(done)
  }

  /** The reader's next batch is this error, and then the end: its cursor is of a past that no longer exists. */
  fail(error: StatusError): void {
    const waiting = this.#waiting
    this.#waiting = undefined
    this.#queue.clear()
    this.leave(error)
    if (waiting !== undefined) this.next().then(waiting.resolve, waiting.reject)
  }

  protected hear(event: WatchEvent): void {
    // Alone: how far the copy is after it is known only when all of its commit is published.
    if (this.#waiting !== undefined) {
      this.#give([event])
      return
    }
    const bytes = event.item.bytes.length + eventOverheadBytes
    if (this.#queue.hasRoomFor(bytes)) this.#queue.push(event, bytes, event.version, event.position - 1)
    else {
      this.rewind(this.#queue.before)
      this.#queue.clear()
    }
  }

  /** What waits, and how far that is: everything published up to the version of the copy is among it or was before. */
  #take(): readonly StreamEvent[] {
    const batch = this.#queue.take()
    const version = this.#progress?.version ?? 0
    if (version > this.#told) {
      this.#told = version
      batch.push({ type: 'BOOKMARK', version, endsState: false })
    }
    return batch
  }

  #give(batch: readonly StreamEvent[]): void {
    const waiting = this.#waiting
    this.#waiting = undefined
    waiting?.resolve({ value: batch, done: false })
  }

  #end(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.leave()
    this.#queue.clear()
    this.#stopHearing?.()
    this.#waiting?.resolve(done)
    this.#waiting = undefined
    this.#onEnd()
  }
}
