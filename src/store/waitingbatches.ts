/** Batches that wait to be written: those that come while a write is under way go together in the next one. */
import type { Draft } from './frame.ts'
import { type Batch, StoreRefused } from './store.ts'

/** One write takes at most so much, unless a single batch is larger: it must not take long, nor the next wait long. */
const groupBytesMax = 4 * 1024 * 1024
/** What waits for a disk that is too slow is held in memory: twice what the cache lets clients write ahead. */
const waitingBytesMax = 128 * 1024 * 1024

export type WaitingBatch = {
  readonly batch: Batch
  readonly draft: Draft
  resolve(): void
  reject(error: Error): void
}

export class WaitingBatches {
  #batches: WaitingBatch[] = []
  #bytes = 0

  get size(): number {
    return this.#batches.length
  }

  /** Throws where too much waits already. */
  add(waiting: WaitingBatch): void {
    const { bytes } = waiting.draft
    if (this.#bytes > 0 && this.#bytes + bytes > waitingBytesMax)
      throw new StoreRefused('the disk is slower than the writes', false)
    this.#batches.push(waiting)
    this.#bytes += bytes
  }

  /** What the next write takes, in order; empty where nothing waits. */
  takeGroup(): WaitingBatch[] {
    let bytes = 0
    let count = 0
    for (const { draft } of this.#batches) {
      if (count > 0 && bytes + draft.bytes > groupBytesMax) break
      bytes += draft.bytes
      count++
    }
    this.#bytes -= bytes
    return this.#batches.splice(0, count)
  }

  rejectAll(error: Error): void {
    const waiting = this.#batches.splice(0)
    this.#bytes = 0
    for (const { reject } of waiting) reject(error)
  }
}
