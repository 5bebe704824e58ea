/** A stream of a link as a Duplex of Node: what it has received is taken at its reader's pace, and its writer waits for the link. */
import { Duplex } from 'node:stream'
import type { StreamContext } from './contexts.ts'
import { type ResetReason, sentenceOf } from './frames.ts'
import type { TunnelStream } from './stream.ts'
import type { Tunnel } from './tunnel.ts'

/** What may wait in a stream before its writer does: one frame is on its way while the next is made ready. */
const waitingBytesMax = 16 * 1024

/** Why a stream broke off: the other side's word, or `link` where the link went. */
export class StreamBroken extends Error {
  override readonly name = 'StreamBroken'
  readonly reason: ResetReason | 'link'

  constructor(reason: ResetReason | 'link', sentence: string) {
    super(sentence === '' ? 'the other side gave it up' : sentence)
    this.reason = reason
  }
}

type Parts = {
  readonly tunnel: Tunnel
  readonly stream: TunnelStream
  /** Something may be there to be sent. */
  readonly changed: () => void
  readonly closed: () => void
}

export class TunnelDuplex extends Duplex {
  readonly #parts: Parts
  readonly #received: Buffer[] = []
  #isWanted = false
  #hasEnded = false
  #goOn: (() => void) | undefined

  constructor(parts: Parts) {
    // What Node holds for a reader counts as read: no more than a piece.
    super({ readableHighWaterMark: 1, writableHighWaterMark: waitingBytesMax })
    this.#parts = parts
    // One that its owner listens to no more must not end the process.
    this.on('error', () => {})
  }

  /** Whether any of it was handed to the link: then the other side may have seen it, and acted on it. */
  get isSent(): boolean {
    return this.#parts.stream.isSent
  }

  /** What the first bytes that are written are like. */
  likened(context: StreamContext): void {
    this.#parts.stream.context = context
  }

  /**
   * Holds back what is written next: until the end where that is known to be near, else for what is written in this turn. What is
   * small is then one frame: each more would cost as much as all that is new in a renewed lease.
   */
  gather(isSmall: boolean): void {
    const { tunnel, stream, changed } = this.#parts
    stream.isHeld = true
    if (isSmall) return
    setImmediate(() => {
      tunnel.release(stream)
      changed()
    })
  }

  /** Ends it in both directions, and tells the other side why. */
  giveUp(reason: ResetReason, sentence: string): void {
    this.destroy(new StreamBroken(reason, sentence))
  }

  /** What came; its reader may be slower. */
  arrive(bytes: Buffer): void {
    this.#received.push(bytes)
    this.#flow()
  }

  /** The other side's last bytes have come. */
  arriveEnd(): void {
    this.#hasEnded = true
    this.#flow()
  }

  /** All that waited was taken by the link. */
  drained(): void {
    const goOn = this.#goOn
    this.#goOn = undefined
    goOn?.()
  }

  /** The end travels with the last bytes where these have not been taken yet. */
  override end(...last: unknown[]): this {
    super.end(...(last as []))
    if (this.writableLength === 0 && !this.destroyed) this.#end()
    return this
  }

  override _read(): void {
    this.#isWanted = true
    this.#flow()
  }

  override _write(bytes: Buffer, _encoding: BufferEncoding, done: () => void): void {
    const { tunnel, stream, changed } = this.#parts
    tunnel.write(stream, bytes)
    changed()
    if (stream.waitingBytes <= waitingBytesMax) done()
    else this.#goOn = done
  }

  override _final(done: () => void): void {
    this.#end()
    if (this.#parts.stream.hasSentEnd) done()
    else this.#goOn = done
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    const { tunnel, stream, changed, closed } = this.#parts
    this.#received.length = 0
    // An error of its owner may hold anything, and stays here.
    if (error instanceof StreamBroken && error.reason !== 'link')
      tunnel.reset(stream, error.reason, sentenceOf(error.message))
    else tunnel.reset(stream, 'cancelled', '')
    changed()
    closed()
    done(error)
  }

  #end(): void {
    const { tunnel, stream, changed } = this.#parts
    tunnel.end(stream)
    changed()
  }

  #flow(): void {
    const { tunnel, stream, changed } = this.#parts
    while (this.#isWanted) {
      const bytes = this.#received.shift()
      if (bytes === undefined) {
        if (this.#hasEnded) {
          this.#isWanted = false
          this.push(null)
        }
        return
      }
      tunnel.read(stream, bytes.length)
      changed()
      this.#isWanted = this.push(bytes)
    }
  }
}
