/** What waits for one reader while it is live, bounded by bytes, and the place from which history would bring it again. */
import type { Cursor } from '../store/store.ts'

/** What may wait for one reader before it has to read history instead: a burst, not a backlog. */
const bytesMax = 1024 * 1024

export class ReaderQueue<T> {
  #waiting: T[] = []
  #bytes = 0
  #version = 0
  #position = 0

  get isEmpty(): boolean {
    return this.#waiting.length === 0
  }

  /** Before the first that waits. */
  get before(): Cursor {
    return { version: this.#version, position: this.#position }
  }

  /** A single one always has room, whatever its size. */
  hasRoomFor(bytes: number): boolean {
    return this.isEmpty || this.#bytes + bytes <= bytesMax
  }

  /** History brings it after this version and position. */
  push(one: T, bytes: number, version: number, position: number): void {
    if (this.isEmpty) {
      this.#version = version
      this.#position = position
    }
    this.#waiting.push(one)
    this.#bytes += bytes
  }

  take(): T[] {
    const taken = this.#waiting
    this.clear()
    return taken
  }

  clear(): void {
    this.#waiting = []
    this.#bytes = 0
  }
}
