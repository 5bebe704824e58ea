/**
 * Bodies on their way in: read whole within limits, or handed on piece by piece, no faster than they are taken. What is
 * read whole counts for its holder, so that no client's half-sent bodies take the memory for those of others.
 */
import type { Readable, Writable } from 'node:stream'
import { badRequest, failure, StatusError, tooManyRequests } from '../../kube/status.ts'
import type { Traffic } from '../documents/measures.ts'
import type { Holder } from '../holder.ts'
import { Shares } from '../shares.ts'
import type { SocketLimits } from './limits.ts'

type Asked = {
  /** What the head says about its length. */
  readonly declared: string | undefined
  readonly holder: Holder
  /** When this closes the request is done with: what waits for a lock or the disk is still in memory. */
  readonly answer: Writable
}

export class RequestBodies {
  readonly #limits: SocketLimits
  readonly #traffic: Traffic
  /** The bytes of all that are read whole. */
  readonly #shares: Shares
  readonly #late = new WeakSet<Readable>()

  constructor(parts: { limits: SocketLimits; traffic: Traffic }) {
    this.#limits = parts.limits
    this.#traffic = parts.traffic
    this.#shares = new Shares(parts.limits.bodiesBytesMax)
  }

  read(stream: Readable, { declared, holder, answer }: Asked): Promise<Buffer> {
    if (Number(declared ?? 0) > this.#limits.bodyBytesMax) return Promise.reject(this.#tooLarge())
    const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
    const chunks: Buffer[] = []
    let size = 0
    const release = () => {
      if (size > 0) this.#shares.give(holder, size)
      size = 0
    }
    const settle = () => {
      clearTimeout(late)
      stream.off('data', take).off('end', end).off('error', fail).off('close', leave)
    }
    const fail = (error: Error) => {
      settle()
      release()
      // The rest stays with its sender until the refusal has gone out.
      if (!stream.destroyed) stream.pause()
      reject(broken(error))
    }
    const take = (chunk: Buffer) => {
      if (size + chunk.length > this.#limits.bodyBytesMax) return fail(this.#tooLarge())
      if (!this.#shares.take(holder, chunk.length)) return fail(this.#flooded())
      size += chunk.length
      chunks.push(chunk)
    }
    const end = () => {
      settle()
      this.#traffic.bytesIn += size
      if (answer.closed) release()
      else answer.once('close', release)
      resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks))
    }
    const leave = () => fail(new Error('its client has left'))
    const late = setTimeout(() => fail(this.#tooLate(stream)), this.#limits.bodyMsMax)
    if (stream.readableEnded) end()
    else if (stream.destroyed) leave()
    else stream.on('data', take).once('end', end).once('error', fail).once('close', leave)
    return promise
  }

  /**
   * Nothing is gathered: what is not taken stays with its sender. Only each next piece has to come in time; a stranger's
   * body as a whole, too.
   */
  async *pass(stream: Readable, { standing }: Holder): AsyncGenerator<Buffer, void, void> {
    const pieces = stream.iterator({ destroyOnReturn: false })
    const { bodyMsMax } = this.#limits
    const wholeAtMs = performance.now() + bodyMsMax
    try {
      for (;;) {
        const withinMs = standing === 'stranger' ? wholeAtMs - performance.now() : bodyMsMax
        const { value, done } = await this.#inTime(stream, pieces.next(), withinMs)
        if (done === true) return
        this.#traffic.bytesIn += (value as Buffer).length
        yield value as Buffer
      }
    } catch (error) {
      throw broken(error)
    } finally {
      // Not waited for: it ends with the next piece, which may never come.
      pieces.return?.().catch(() => {})
    }
  }

  #inTime<T>(stream: Readable, piece: Promise<T>, withinMs: number): Promise<T> {
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(this.#tooLate(stream)), withinMs)
      piece.then(resolve, reject).finally(() => clearTimeout(late))
    })
  }

  /** The answer to a request whose body did not come in time: whatever became of the request meanwhile. */
  lateness(stream: Readable): StatusError | undefined {
    return this.#late.has(stream) ? tooLate() : undefined
  }

  #tooLarge(): StatusError {
    return failure(413, 'RequestEntityTooLarge', `Request entity too large: limit is ${this.#limits.bodyBytesMax}`)
  }

  #tooLate(stream: Readable): StatusError {
    this.#late.add(stream)
    this.#traffic.stalled++
    return tooLate()
  }

  #flooded(): StatusError {
    this.#traffic.refused++
    return tooManyRequests('too many request bodies of this caller are being received', 1)
  }
}

function tooLate(): StatusError {
  return failure(408, 'Timeout', 'the body of the request took too long')
}

/** The client went away in the middle: no fault of ours. */
function broken(error: unknown): Error {
  return error instanceof StatusError ? error : badRequest(`the body could not be read: ${(error as Error).message}`)
}
