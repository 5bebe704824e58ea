/**
 * The streams of one link as Duplexes: a thin driver of `Tunnel`. The link hands it each frame that came, and takes frames when
 * it has room; in between nothing is done, so that the link alone decides what is sent when.
 */
import type { HeldCredential, StreamOpening } from './credentials.ts'
import { StreamBroken, TunnelDuplex } from './duplex.ts'
import type { CarriedFrame } from './frames.ts'
import type { TunnelLimits } from './limits.ts'
import type { TunnelStream } from './stream.ts'
import { Tunnel, type TunnelSide } from './tunnel.ts'

/** A stream that the other side opened. */
export type IncomingStream = HeldCredential & {
  readonly stream: TunnelDuplex
  /** What it is for; an acceptor that does not know the word gives it up as `unknown`. */
  readonly purpose: string
}

type Parts = {
  readonly side: TunnelSide
  readonly limits: TunnelLimits
  /** There is something for `next`: told once, until `next` had nothing to give. Bytes that are written together travel together. */
  readonly ready: () => void
  readonly accept: (incoming: IncomingStream) => void
}

export class TunnelStreams {
  readonly #parts: Parts
  readonly #tunnel: Tunnel
  readonly #duplexes = new Map<TunnelStream, TunnelDuplex>()
  #isTold = false
  #closed: string | undefined

  constructor(parts: Parts) {
    this.#parts = parts
    this.#tunnel = new Tunnel(parts)
    this.#changed()
  }

  /** Why nothing can be opened any more, once the link is gone. */
  get closed(): string | undefined {
    return this.#closed
  }

  /** Whether a stream can be opened with a certificate. */
  get takesCertificates(): boolean {
    return this.#closed === undefined && this.#tunnel.takesCertificates
  }

  figures(): ReturnType<Tunnel['figures']> {
    return this.#tunnel.figures()
  }

  /** Whether `next` has something, given room. */
  get isWaiting(): boolean {
    return this.#closed === undefined && this.#tunnel.isWaiting(true)
  }

  /** How many streams there are for anything else than these purposes. */
  countBeside(purposes: ReadonlySet<string>): number {
    let count = 0
    for (const { purpose } of this.#duplexes.keys()) if (!purposes.has(purpose)) count++
    return count
  }

  /** Whether of a stream whose opener said that it is awaited nothing came yet. */
  get isAwaiting(): boolean {
    for (const { isAwaited } of this.#duplexes.keys()) if (isAwaited) return true
    return false
  }

  /** Undefined where there are as many as either side takes, or the link is gone. Nothing is sent before its opener has returned. */
  open(asked: StreamOpening): TunnelDuplex | undefined {
    if (this.#closed !== undefined) return undefined
    const stream = this.#tunnel.open(asked)
    if (stream === undefined) return undefined
    this.#changed()
    return this.#show(stream)
  }

  /** Throws `LinkFault`: the link is to be closed then. */
  receive(frame: CarriedFrame): void {
    if (this.#closed !== undefined) return
    for (const effect of this.#tunnel.receive(frame)) {
      const { stream } = effect
      if (effect.type === 'opened') {
        const incoming = { stream: this.#show(stream), purpose: stream.purpose, ...effect.credential }
        this.#parts.accept(incoming)
        continue
      }
      const duplex = this.#duplexes.get(stream)
      if (effect.type === 'data') duplex?.arrive(effect.bytes)
      else if (effect.type === 'ended') duplex?.arriveEnd()
      else duplex?.destroy(new StreamBroken(effect.reason, effect.sentence))
    }
    this.#changed()
  }

  /** The next frame, once; without `isBulkTaken` only what controls streams and is a few bytes. */
  next(isBulkTaken: boolean, bytesMax?: number): CarriedFrame | undefined {
    if (this.#closed !== undefined) return undefined
    const taken = this.#tunnel.next(isBulkTaken, bytesMax)
    if (taken === undefined) {
      this.#isTold = false
      return undefined
    }
    const { frame, drained } = taken
    if (drained !== undefined) this.#duplexes.get(drained)?.drained()
    return frame
  }

  /** The link is gone: every stream breaks off, and tokens are forgotten. */
  close(why: string): void {
    if (this.#closed !== undefined) return
    this.#closed = why
    for (const duplex of [...this.#duplexes.values()]) duplex.destroy(new StreamBroken('link', why))
    this.#tunnel.forget()
  }

  #show(stream: TunnelStream): TunnelDuplex {
    const duplex = new TunnelDuplex({
      tunnel: this.#tunnel,
      stream,
      changed: () => this.#changed(),
      closed: () => void this.#duplexes.delete(stream),
    })
    this.#duplexes.set(stream, duplex)
    return duplex
  }

  #changed(): void {
    if (this.#isTold || this.#closed !== undefined || !this.#tunnel.isWaiting(true)) return
    this.#isTold = true
    queueMicrotask(this.#parts.ready)
  }
}
