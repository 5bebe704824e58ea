/** Bodies both ways at the pace of the slower side: an answer pulled from a stream, a request's body pushed into one. */
import type { Readable, Writable } from 'node:stream'
import type { Unreachable } from './upstream.ts'

type Parts = {
  readonly stream: Readable
  /** Asked at the end: why it is not the real one. */
  readonly failure: () => Unreachable | undefined
  /** Ends the stream before its time. */
  readonly cancel: () => void
  /** Bytes came. */
  readonly heard: () => void
}

/** One reader, one `next` at a time. */
export class Flow implements AsyncIterableIterator<Buffer> {
  readonly #parts: Parts
  #over = false
  #ended = false
  #wake: (() => void) | undefined

  constructor(parts: Parts) {
    this.#parts = parts
    const { stream } = parts
    const wake = () => this.#wake?.()
    const end = () => {
      this.#ended = true
      wake()
    }
    stream.on('readable', () => {
      parts.heard()
      wake()
    })
    stream.on('end', end).on('error', end).on('close', end)
  }

  async next(): Promise<IteratorResult<Buffer>> {
    for (;;) {
      if (this.#over) return { done: true, value: undefined }
      const chunk = this.#parts.stream.read() as Buffer | null
      if (chunk !== null) return { done: false, value: chunk }
      if (this.#ended) {
        this.#over = true
        const failure = this.#parts.failure()
        if (failure !== undefined) throw failure
        continue
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
      this.#wake = undefined
    }
  }

  async return(): Promise<IteratorResult<Buffer>> {
    if (!this.#over) {
      this.#over = true
      this.#parts.cancel()
      this.#wake?.()
    }
    return { done: true, value: undefined }
  }

  [Symbol.asyncIterator](): this {
    return this
  }
}

/** A body of another length than its request declares. */
class WrongLength extends Error {}

/** Of a request whose body `pour` could not send. */
export function bodyBroke(error: unknown): string {
  return error instanceof WrongLength ? error.message : 'the body of the request broke off'
}

/**
 * Sends a body; rejects only when the body itself breaks off, or is not of `bytes` where so many are declared: what came behind them
 * would be another request to a server of HTTP/1.1, in the name of the caller whose connection it is. The caller of this function ends the stream
 * then, since it cannot be used again. A stream that closes takes no more, and says so by itself.
 */
export async function pour(
  body: Buffer | AsyncIterable<Buffer>,
  stream: Writable,
  bytes: number | undefined,
): Promise<void> {
  if (!(Symbol.asyncIterator in body)) {
    stream.end(body)
    return
  }
  let wake = () => {}
  const woken = () => wake()
  stream.on('drain', woken).on('close', woken)
  let left = bytes
  for await (const chunk of body) {
    if (stream.destroyed) return
    if (left !== undefined) left -= chunk.length
    if (left !== undefined && left < 0) throw new WrongLength(`the body of the request is longer than ${bytes} bytes`)
    if (!stream.write(chunk) && !stream.destroyed) {
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
    if (stream.destroyed) return
  }
  if (left !== undefined && left > 0) throw new WrongLength(`the body of the request is shorter than ${bytes} bytes`)
  stream.end()
}
