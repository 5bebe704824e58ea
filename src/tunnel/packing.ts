/**
 * Frames that are like ones before them: the first frame of a stream (the head of a request, of a reply) mostly repeats what an earlier
 * stream said in its place. Both sides keep what was said, within a limit that both named, and only the difference travels.
 */
import { HeldContexts, SentContexts } from './contexts.ts'
import { type CarriedFrame, encodeTunnelFrame, type TunnelFrame } from './frames.ts'
import type { TunnelStream } from './stream.ts'

export class TunnelPacking {
  readonly #bytesMax: number
  readonly #held: HeldContexts
  /** Undefined until the other side has said that it keeps any. */
  #sent: SentContexts | undefined

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
    this.#held = new HeldContexts(bytesMax)
  }

  /** The other side keeps so much. */
  begun(theirBytesMax: number): void {
    const bytesMax = Math.min(theirBytesMax, this.#bytesMax)
    if (bytesMax > 0) this.#sent = new SentContexts(bytesMax)
  }

  /** As it travels: a stream's first frame is packed, if the other side keeps what it is like. */
  pack(stream: TunnelStream, brought: TunnelFrame & { readonly bytes: Buffer }): CarriedFrame {
    const plain = encodeTunnelFrame(brought)
    const { context } = stream
    stream.context = undefined
    if (context === undefined || this.#sent === undefined) return plain
    const headBytes = plain.payload.length - brought.bytes.length + context.headBytes
    const packed = this.#sent.pack({ ...context, headBytes }, plain)
    return packed === undefined ? plain : encodeTunnelFrame(packed)
  }

  unpack(frame: TunnelFrame & { kind: 'packed' }): CarriedFrame {
    return this.#held.unpack(frame)
  }

  /** The link is gone. */
  forget(): void {
    this.#sent?.forget()
    this.#held.forget()
  }
}
