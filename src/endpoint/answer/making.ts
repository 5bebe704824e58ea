/**
 * Bodies that are made while they are sent: a little at a time, in turns with the other answers that are made, and no faster
 * than their reader takes them. What is held of one is a batch, whatever its size as a whole.
 */
import { pieceMsMax, turns } from '../../base/turns.ts'
import { batchBytes } from './batches.ts'

export class Making {
  readonly #pieces: Iterator<Buffer>
  readonly #steady: () => number
  /** What was made beyond the last batch. */
  #rest: Buffer | undefined
  #isDone = false

  /** Nothing is made before it is asked for. */
  constructor(pieces: Iterable<Buffer>, steady: () => number = () => performance.now()) {
    this.#pieces = pieces[Symbol.iterator]()
    this.#steady = steady
  }

  get isDone(): boolean {
    return this.#isDone && this.#rest === undefined
  }

  /** As much as fits into a batch and can be made in a few milliseconds. */
  batch(): Buffer {
    const untilMs = this.#steady() + pieceMsMax
    const parts: Buffer[] = []
    let left = batchBytes
    while (left > 0 && !this.isDone) {
      const part = this.#rest ?? this.#next()
      this.#rest = part.length > left ? part.subarray(left) : undefined
      parts.push(this.#rest === undefined ? part : part.subarray(0, left))
      left -= part.length
      if (this.#steady() >= untilMs) break
    }
    return parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts)
  }

  #next(): Buffer {
    const { value, done } = this.#pieces.next()
    if (done === true) this.#isDone = true
    return done === true ? Buffer.alloc(0) : value
  }

  /** Its reader no longer wants it. */
  leave(): void {
    this.#isDone = true
    this.#rest = undefined
    this.#pieces.return?.()
  }
}

/** What was made already, then the rest, each batch in a turn of the caller that asked for it. */
export async function* madeInTurns(
  first: readonly Buffer[],
  making: Making,
  who: string,
): AsyncGenerator<Buffer, void, void> {
  try {
    yield* first
    while (!making.isDone) {
      await turns.take(who)
      const batch = making.batch()
      if (batch.length > 0) yield batch
    }
  } finally {
    making.leave()
  }
}
