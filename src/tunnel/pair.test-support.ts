/** Both ends of a link in memory: frames come after a delay, no more of them on the way than a line would take; it can be cut. */
import { decodeFrame, encodeFrame } from '../link/frames/frames.ts'
import type { CarriedFrame } from './frames.ts'
import { standardTunnelLimits, type TunnelLimits } from './limits.ts'
import { type IncomingStream, TunnelStreams } from './streams.ts'

export type PairParts = {
  readonly edgeAccepts?: (incoming: IncomingStream) => void
  readonly hubAccepts?: (incoming: IncomingStream) => void
  readonly limits?: Partial<TunnelLimits>
  /** One way. */
  readonly delayMs?: number
  /** Of new streams and data on the way in one direction. */
  readonly bulkBytesMax?: number
  /** It is cut when so many frames have arrived. */
  readonly framesMax?: number | undefined
}

export class TunnelPair {
  readonly edge: TunnelStreams
  readonly hub: TunnelStreams
  /** Frames and bytes that were sent, by the side that sent them. */
  readonly sent = { edge: { frames: 0, bytes: 0 }, hub: { frames: 0, bytes: 0 } }
  /** Nothing is delivered meanwhile, and nothing lost. */
  isHeld = false
  readonly #parts: PairParts
  readonly #waiting = { edge: 0, hub: 0 }
  readonly #held: (() => void)[] = []
  #arrived = 0

  constructor(parts: PairParts = {}) {
    this.#parts = parts
    const limits = { ...standardTunnelLimits, ...parts.limits }
    const refuse = ({ stream }: IncomingStream) => stream.giveUp('unknown', 'not taken here')
    const [edgeAccepts = refuse, hubAccepts = refuse] = [parts.edgeAccepts, parts.hubAccepts]
    this.edge = new TunnelStreams({ side: 'edge', limits, accept: edgeAccepts, ready: () => this.#pump('edge') })
    this.hub = new TunnelStreams({ side: 'hub', limits, accept: hubAccepts, ready: () => this.#pump('hub') })
  }

  release(): void {
    this.isHeld = false
    for (const deliver of this.#held.splice(0)) deliver()
  }

  [Symbol.dispose](): void {
    this.cut()
  }

  cut(why = 'the link broke'): void {
    this.edge.close(why)
    this.hub.close(why)
  }

  #pump(from: 'edge' | 'hub'): void {
    const { bulkBytesMax = 64 * 1024 } = this.#parts
    const streams = this[from]
    for (;;) {
      const frame = streams.next(this.#waiting[from] < bulkBytesMax)
      if (frame === undefined) return
      const message = encodeFrame(frame)
      const sent = this.sent[from]
      sent.frames++
      sent.bytes += message.length
      this.#waiting[from] += message.length
      this.#later(() => {
        if (this.#arrived++ === this.#parts.framesMax) this.cut()
        this.#waiting[from] -= message.length
        // The system's buffers are written to again: other bytes must not change these.
        this[from === 'edge' ? 'hub' : 'edge'].receive(decodeFrame(Buffer.from(message)) as CarriedFrame)
        this.#pump(from)
      })
    }
  }

  #later(deliver: () => void): void {
    const { delayMs } = this.#parts
    const arrive = () => (this.isHeld ? void this.#held.push(deliver) : deliver())
    if (delayMs === undefined) setImmediate(arrive)
    else setTimeout(arrive, delayMs)
  }
}
