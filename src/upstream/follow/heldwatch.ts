/** A watch that is not read yet, while the pages of its list are: its frames are kept until it is. */
import type { WatchFrame } from '../../kube/frames.ts'
import { Busy } from './follow.ts'
import type { WatchStream } from './source.ts'

/** Frames that came while pages were read: a list takes seconds, so this is thousands of changes. */
const heldBytesMax = 32 * 1024 * 1024

export class HeldWatch {
  readonly #stream: WatchStream
  #standing: (readonly WatchFrame[])[] = []
  #bytes = 0
  #fault: unknown
  #ended = false
  #isPulling = true
  #isHandedOver = false
  #wake: (() => void) | undefined

  constructor(stream: WatchStream) {
    this.#stream = stream
    void this.#pull()
  }

  async #pull(): Promise<void> {
    try {
      while (!this.#isHandedOver) {
        const { value, done } = await this.#stream.frames.next()
        if (done === true) {
          this.#ended = true
          break
        }
        this.#standing.push(value)
        for (const { object } of value) this.#bytes += object.length
        this.#wake?.()
        if (this.#bytes > heldBytesMax) throw new Busy('too much changed while the list was read', 0)
      }
    } catch (error) {
      this.#fault = error
    }
    this.#isPulling = false
    this.#wake?.()
  }

  get isOver(): boolean {
    return this.#ended || this.#fault !== undefined
  }

  /** Throws when the watch no longer lives: without it a list at two versions cannot be put right. */
  check(): void {
    if (this.#fault !== undefined) throw this.#fault
    if (this.#ended) throw new Busy('the watch ended while the list was read', 0)
  }

  async take(): Promise<readonly WatchFrame[]> {
    for (;;) {
      const frames = this.#standing.shift()
      if (frames !== undefined) {
        for (const { object } of frames) this.#bytes -= object.length
        return frames
      }
      this.check()
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  /** Ends it with this: a reader that waits for its next frame hears it. */
  fail(why: Error): void {
    this.#fault ??= why
    this.close()
    this.#wake?.()
  }

  close(): void {
    this.#stream.close()
  }

  /** The same watch, what was held first; after that its reader asks the stream itself. */
  handOver(): WatchStream {
    this.#isHandedOver = true
    const frames: AsyncIterableIterator<readonly WatchFrame[]> = {
      next: () => (this.#isDrained ? this.#stream.frames.next() : this.#nextHeld()),
      return: async () => {
        this.close()
        return over
      },
      [Symbol.asyncIterator]: () => frames,
    }
    return { frames, heardAt: () => this.#stream.heardAt(), close: () => this.close() }
  }

  get #isDrained(): boolean {
    return !this.#isPulling && !this.isOver && this.#standing.length === 0
  }

  async #nextHeld(): Promise<IteratorResult<readonly WatchFrame[]>> {
    for (;;) {
      const value = this.#standing.shift()
      if (value !== undefined) return { value, done: false }
      if (this.#fault !== undefined) throw this.#fault
      if (this.#ended) return over
      if (this.#isDrained) return await this.#stream.frames.next()
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }
}

const over: IteratorReturnResult<undefined> = { value: undefined, done: true }
