/** Bodies on their way in: read whole within limits, or handed on piece by piece, no faster than they are taken. */
import type { Readable } from 'node:stream'
import { badRequest, failure, StatusError, tooManyRequests } from '../kube/status.ts'
import type { Limits } from './limits.ts'
import type { Traffic } from './measures.ts'

export class Bodies {
  readonly #limits: Limits
  readonly #traffic: Traffic
  /** What all bodies that are read whole hold together. */
  #bytes = 0

  constructor(parts: { limits: Limits; traffic: Traffic }) {
    this.#limits = parts.limits
    this.#traffic = parts.traffic
  }

  async read(stream: Readable, declared: string | undefined): Promise<Buffer> {
    const tooLarge = () =>
      failure(413, 'RequestEntityTooLarge', `Request entity too large: limit is ${this.#limits.bodyBytesMax}`)
    if (Number(declared ?? 0) > this.#limits.bodyBytesMax) throw tooLarge()
    const chunks: Buffer[] = []
    let size = 0
    const late = setTimeout(() => stream.destroy(new Error('the body took too long')), this.#limits.bodyMsMax)
    const release = () => {
      this.#bytes -= size
      size = 0
    }
    try {
      for await (const chunk of stream.iterator({ destroyOnReturn: false })) {
        size += (chunk as Buffer).length
        this.#bytes += (chunk as Buffer).length
        if (size > this.#limits.bodyBytesMax) throw tooLarge()
        if (this.#bytes > this.#limits.bodiesBytesMax) throw this.#flooded()
        chunks.push(chunk as Buffer)
      }
      // It counts until its request is done with: what waits for a lock or the disk is still in memory.
      if (!stream.closed) stream.once('close', release)
    } catch (error) {
      release()
      throw broken(error)
    } finally {
      clearTimeout(late)
    }
    this.#traffic.bytesIn += size
    if (stream.closed) release()
    return chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)
  }

  /** Nothing is gathered: what is not taken stays with its sender. Only each next piece has to come in time. */
  async *pass(stream: Readable): AsyncGenerator<Buffer, void, void> {
    const pieces = stream.iterator({ destroyOnReturn: false })
    try {
      for (;;) {
        const late = setTimeout(() => stream.destroy(new Error('the body took too long')), this.#limits.bodyMsMax)
        const { value, done } = await pieces.next().finally(() => clearTimeout(late))
        if (done === true) return
        this.#traffic.bytesIn += (value as Buffer).length
        yield value as Buffer
      }
    } catch (error) {
      throw broken(error)
    } finally {
      void pieces.return?.()
    }
  }

  #flooded(): Error {
    this.#traffic.refused++
    return tooManyRequests('too many request bodies are being received', 1)
  }
}

/** The client went away in the middle, or was cut for taking too long: no fault of ours. */
function broken(error: unknown): Error {
  return error instanceof StatusError ? error : badRequest(`the body could not be read: ${(error as Error).message}`)
}
