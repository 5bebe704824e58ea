/** Frames that wait for one reader of a watch, bounded by bytes, and the place from which history would bring them again. */
import type { Cursor } from '../store/store.ts'
import { join } from './join.ts'

/** What may wait for one reader before it has to read history instead: a burst, not a backlog. */
const bytesMax = 1024 * 1024

export class WaitingFrames {
  #frames: Buffer[] = []
  #bytes = 0
  /** Before the first of them. */
  before: Cursor | undefined

  get isEmpty(): boolean {
    return this.#frames.length === 0
  }

  /** A single frame always has room, whatever its size. */
  hasRoomFor(frame: Buffer): boolean {
    return this.isEmpty || this.#bytes + frame.length <= bytesMax
  }

  push(frame: Buffer, before: Cursor): void {
    this.before ??= before
    this.#frames.push(frame)
    this.#bytes += frame.length
  }

  /** All of them as one chunk. */
  take(): Buffer | undefined {
    if (this.isEmpty) return undefined
    const chunk = join(this.#frames)
    this.clear()
    return chunk
  }

  clear(): void {
    this.#frames = []
    this.#bytes = 0
    this.before = undefined
  }
}
