/** Bodies on their way out: as fast as their reader takes them, and no further ahead of it than a few buffers. */
import { constants, type ServerHttp2Stream } from 'node:http2'
import type { Writable } from 'node:stream'
import { BatchPool, Packer } from '../answer/batches.ts'
import { cancel, leave } from '../answer/pieces.ts'
import type { Traffic } from '../documents/measures.ts'
import type { Response } from '../endpoint.ts'
import { Shares } from '../shares.ts'
import type { SocketLimits } from './limits.ts'

/** What is no list: head, body and end of one object. */
const fewPieces = 3
/** A watch that ends earlier without an event is a fault to client-go, which then lists again. */
const watchMsMin = 1_000

type Cuttable = { readonly openedAt: number; end(): void }

export class Sender {
  readonly #limits: SocketLimits
  readonly #traffic: Traffic
  readonly #batches = new BatchPool()
  readonly #lists: Shares
  readonly #watches: Shares
  /** Streams of others that may end at any moment. */
  readonly #cuttable = new Set<Cuttable>()

  constructor(parts: { limits: SocketLimits; traffic: Traffic }) {
    this.#limits = parts.limits
    this.#traffic = parts.traffic
    this.#lists = new Shares(parts.limits.listsMax)
    this.#watches = new Shares(parts.limits.watchesMax)
  }

  /** What an answer needs a place of: our own lists and watches, whose end is up to their readers. */
  sharesOf(response: Response): Shares | undefined {
    if (response.isWatch === true) return this.#watches
    return isList(response) ? this.#lists : undefined
  }

  /** `over` is called once all of it is sent, or its client wants it no more. What is sent when it returns has no promise. */
  send(response: Response, out: Writable, over: () => void = () => {}): Promise<void> | undefined {
    const { body } = response
    if (Buffer.isBuffer(body)) {
      this.#traffic.bytesOut += body.length
      this.#end(out, body)
      over()
    } else if (Symbol.asyncIterator in body) {
      // It goes on by itself: a watch lives for an hour, and the request it came by need not.
      void this.#stream(body, out, { cutCleanly: response.cutCleanly === true, over })
    } else if (body.length <= fewPieces) {
      this.#sendFew(body, out)
      over()
    } else {
      return this.#sendPieces(body, out).finally(over)
    }
    return undefined
  }

  /** Ends watches that the API server feeds, in order; those of our own copy are ended by it. */
  finish(): void {
    for (const { openedAt, end } of this.#cuttable) {
      const youngMs = watchMsMin - (performance.now() - openedAt)
      if (youngMs <= 0) end()
      else setTimeout(end, youngMs)
    }
  }

  /** Pulls the body as fast as the reader reads. All that thousands of open watches hold here is this one call. */
  async #stream(
    body: AsyncIterable<Buffer>,
    out: Writable,
    { cutCleanly, over }: { cutCleanly: boolean; over: () => void },
  ): Promise<void> {
    const chunks = body[Symbol.asyncIterator]()
    // A watcher waits inside next(): the end of its stream has to wake it.
    const left = () => leave(chunks)
    out.once('close', left)
    const cuttable = cutCleanly ? this.#mayCut(body) : undefined
    try {
      for (;;) {
        const { value, done } = await chunks.next()
        if (done === true || out.destroyed) break
        this.#traffic.bytesOut += value.length
        if (!out.write(value) && !(await this.#drained(out))) break
      }
      if (!out.destroyed) this.#end(out)
    } catch (why) {
      cancel(body)
      if (cutCleanly) this.#end(out)
      else breakOff(out, why)
    } finally {
      out.removeListener('close', left)
      left()
      if (cuttable !== undefined) this.#cuttable.delete(cuttable)
      over()
    }
  }

  #mayCut(body: AsyncIterable<Buffer>): Cuttable {
    const cuttable = { openedAt: performance.now(), end: () => cancel(body) }
    this.#cuttable.add(cuttable)
    return cuttable
  }

  /** One object: its pieces go out together as they are. */
  #sendFew(pieces: readonly Buffer[], out: Writable): void {
    out.cork()
    for (const piece of pieces) {
      this.#traffic.bytesOut += piece.length
      out.write(piece)
    }
    this.#end(out)
    out.uncork()
  }

  /**
   * A whole list in batches: two buffers take turns, each filled again once the stream has let go of it. Over HTTP/1.1 there is one at a time:
   * Node would write both together, and for that copy them once more.
   */
  async #sendPieces(pieces: readonly Buffer[], out: Writable): Promise<void> {
    const packer = new Packer(pieces)
    if (!('rstCode' in out)) return await this.#sendOneByOne(packer, out)
    const turns = [this.#batches.take(), this.#batches.take()]
    let pending: Promise<boolean> = Promise.resolve(true)
    while (!packer.done) {
      const written = this.#written(out, packer.fill(turns[0] as Buffer))
      turns.reverse()
      // A buffer of a stream that was cut may still be on its way out: it is not used again.
      if (!(await pending)) return
      pending = written
    }
    if (!(await pending)) return
    for (const buffer of turns) this.#batches.give(buffer)
    this.#end(out)
  }

  async #sendOneByOne(packer: Packer, out: Writable): Promise<void> {
    const buffer = this.#batches.take()
    while (!packer.done) if (!(await this.#written(out, packer.fill(buffer)))) return
    this.#batches.give(buffer)
    this.#end(out)
  }

  /** Resolves when the stream has taken the bytes; false when its reader is gone or takes nothing for too long. */
  #written(out: Writable, bytes: Buffer): Promise<boolean> {
    this.#traffic.bytesOut += bytes.length
    return new Promise((resolve) => {
      const settle = (taken: boolean) => {
        clearTimeout(stalled)
        out.removeListener('close', gone)
        resolve(taken)
      }
      // Node forgets the callbacks of a pipelined answer whose socket goes.
      const gone = () => settle(false)
      const stalled = setTimeout(() => {
        this.#cut(out)
        settle(false)
      }, this.#limits.stalledMsMax)
      out.once('close', gone)
      out.write(bytes, (error) => settle(error === undefined || error === null))
    })
  }

  /** False when the reader is gone, or took nothing for too long and was cut. */
  #drained(out: Writable): Promise<boolean> {
    if (!out.writableNeedDrain) return Promise.resolve(!out.destroyed)
    return new Promise((resolve) => {
      const settle = (alive: boolean) => {
        clearTimeout(stalled)
        out.removeListener('drain', drain)
        out.removeListener('close', close)
        resolve(alive)
      }
      const drain = () => settle(true)
      const close = () => settle(false)
      const stalled = setTimeout(() => {
        this.#cut(out)
        settle(false)
      }, this.#limits.stalledMsMax)
      out.once('drain', drain)
      out.once('close', close)
    })
  }

  /** The last bytes, too, have to be taken in time. Little enough to lie in the system's buffers is left to them. */
  #end(out: Writable, bytes?: Buffer): void {
    out.end(bytes)
    if (out.writableLength < this.#limits.unwatchedBytesMax) return
    const stalled = setTimeout(() => this.#cut(out), this.#limits.stalledMsMax)
    const settle = () => clearTimeout(stalled)
    out.once('finish', settle)
    out.once('close', settle)
  }

  #cut(out: Writable): void {
    this.#traffic.stalled++
    if ('rstCode' in out) (out as ServerHttp2Stream).close(constants.NGHTTP2_CANCEL)
    out.destroy()
  }
}

/** Only what is large is compressed: such a stream is a list too, and holds a compressor besides. */
function isList({ body, headers, passedThrough, isList: isMade }: Response): boolean {
  if (passedThrough === true) return false
  return (
    isMade === true || (Array.isArray(body) && body.length > fewPieces) || headers['content-encoding'] !== undefined
  )
}

/** The reader must not take what it got for the whole: an HTTP/2 stream that is destroyed by an error says so to it. */
function breakOff(out: Writable, why: unknown): void {
  out.destroy('rstCode' in out && why instanceof Error ? why : undefined)
}
