/**
 * The newest part of an interest's history, in memory: from here most watches resume without touching the disk. What it
 * drops stays on disk, so dropping costs no client a relist.
 */
import type { Cursor } from '../store/store.ts'
import type { Event } from './event.ts'

/** The same measure as the store's: what an entry keeps alive is the object it replaced. */
const entryOverheadBytes = 256

export class Window {
  readonly #events: Event[] = []
  #first = 0
  /** Everything after this place is in the window. */
  #floor: Cursor
  bytes = 0

  constructor(floor: Cursor) {
    this.#floor = floor
  }

  get size(): number {
    return this.#events.length - this.#first
  }

  get floor(): Cursor {
    return this.#floor
  }

  /** The place after the newest event. */
  get end(): Cursor {
    const last = this.#events.at(-1)
    return last === undefined ? this.#floor : { version: last.version, position: last.position }
  }

  push(event: Event): void {
    // What left the window's tail is older than what streams are sent now: its frames have been built and delivered.
    this.#events.at(-2)?.dropShared()
    this.#events.push(event)
    this.bytes += sizeOf(event)
  }

  /** Forgets the oldest half of its bytes, or less if `bytes` is reached before. */
  shrink(bytes: number): void {
    let left = bytes
    while (left > 0 && this.#first < this.#events.length) {
      const event = this.#events[this.#first] as Event
      this.#first++
      const size = sizeOf(event)
      left -= size
      this.bytes -= size
      event.previous?.shared?.letGo()
      this.#floor = { version: event.version, position: event.position }
    }
    if (this.#first > 1024 && this.#first * 2 > this.#events.length) {
      this.#events.splice(0, this.#first)
      this.#first = 0
    } else {
      this.#events.fill(undefined as never, 0, this.#first)
    }
  }

  /** Whether every event after the cursor is here. */
  reaches(after: Cursor): boolean {
    const { version, position } = this.#floor
    return after.version > version || (after.version === version && after.position >= position)
  }

  /** Events after the cursor, in order. */
  *after(cursor: Cursor): Iterable<Event> {
    let low = this.#first
    let high = this.#events.length
    while (low < high) {
      const middle = (low + high) >>> 1
      const event = this.#events[middle] as Event
      const past =
        event.version > cursor.version || (event.version === cursor.version && event.position > cursor.position)
      if (past) high = middle
      else low = middle + 1
    }
    for (let at = low; at < this.#events.length; at++) yield this.#events[at] as Event
  }
}

function sizeOf(event: Event): number {
  return entryOverheadBytes + (event.previous?.bytes.length ?? 0)
}
