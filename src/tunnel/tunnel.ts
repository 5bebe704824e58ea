/**
 * Streams over a link: bytes both ways in order, opened by either side, many at once. An edge's requests to the API server are
 * the first of them (`tunnel/request`); logs, exec and any TCP from the cloud to an edge will only be opened from the other end.
 * A stream is frames of the link and not HTTP/2 inside it, so that events, requests and bulk wait in one queue whose order we
 * choose, one set of limits holds, and a token is sent once; `docs/link.md` has the frames, the rules and the figures.
 *
 * `Tunnel` is the whole of the rules as a state machine without sockets, timers or promises: what came goes into `receive`,
 * what a stream's owner does into `open`, `write`, `end`, `reset` and `read`, and the link takes frames out with `next` when it
 * has room for them. Nothing depends on the time: how long a stream may be silent is its owner's affair. `TunnelStreams`
 * (`streams.ts`) drives it and shows each stream as a Duplex of Node.
 *
 * Each direction of a stream ends by itself (`end`), both at once by `reset`, which is answered by a reset, so that a side knows
 * when nothing more can come: what crossed a reset is passed over, and any other frame about a stream that is over is a fault.
 */
import { LinkFault } from '../link/frames/bytes.ts'
import {
  HeldCredentials,
  isBearable,
  isCarriedChain,
  noCredential,
  SentCredentials,
  type ShownCredential,
  type StreamOpening,
  shownBy,
} from './credentials.ts'
import { type TakenFrame, type TunnelEffect, takenFrame } from './effects.ts'
import { type CarriedFrame, decodeTunnelFrame, type ResetReason, type TunnelFrame } from './frames.ts'
import { creditBytesMax, cutBytesMin, keptFrameBytesMax, pieceBytesMax, type TunnelLimits } from './limits.ts'
import { TunnelPacking } from './packing.ts'
import { TunnelStream } from './stream.ts'
import { Windows } from './windows.ts'

/** Streams of an edge have odd numbers, those of a hub even ones. */
export type TunnelSide = 'edge' | 'hub'

type Parts = { readonly side: TunnelSide; readonly limits: TunnelLimits }

export class Tunnel {
  readonly #side: TunnelSide
  readonly #limits: TunnelLimits
  readonly #windows: Windows
  readonly #sent = new SentCredentials()
  readonly #held: HeldCredentials
  readonly #packing: TunnelPacking
  /** What the other side takes; until it says so nothing is opened. */
  #peer: (TunnelFrame & { kind: 'begin' }) | undefined
  #hasBegun = false
  readonly #streams = new Map<number, TunnelStream>()
  /** Not sent yet, with the credential each bears. */
  readonly #opening = new Map<TunnelStream, ShownCredential | undefined>()
  /** With a reset or a credit to be sent. */
  readonly #control = new Set<TunnelStream>()
  /** With bytes or an end that can be sent, in turn. */
  readonly #ring = new Set<TunnelStream>()
  readonly #own: Opened
  readonly #others: Opened

  constructor({ side, limits }: Parts) {
    this.#side = side
    this.#limits = limits
    this.#windows = new Windows(limits)
    this.#held = new HeldCredentials(limits.credentialsMax)
    this.#packing = new TunnelPacking(limits.contextBytes)
    this.#own = { next: side === 'edge' ? 1 : 2, alive: 0, unread: 0 }
    this.#others = { next: side === 'edge' ? 2 : 1, alive: 0, unread: 0 }
  }

  /** Streams of both sides that are alive or unread, what is unread in them, and by how much their windows grew. */
  figures(): { readonly streams: number; readonly grown: number } {
    const { alive, unread } = this.#others
    return { streams: this.#own.alive + this.#own.unread + alive + unread, grown: this.#windows.grown }
  }

  /** Whether the other side takes certificates; not known, and so not, before it has begun. */
  get takesCertificates(): boolean {
    return this.#peer !== undefined && this.#peer.certificates > 0
  }

  /** Undefined where there are as many as either side takes. The credential travels with it, and is what its far end goes by. */
  open(opening: StreamOpening): TunnelStream | undefined {
    const { purpose, token, certificate, isAwaited = false } = opening
    const max = Math.min(this.#limits.streamsMax, this.#peer?.streams ?? Number.POSITIVE_INFINITY)
    if (this.#own.alive + this.#own.unread >= max) return undefined
    if (token !== undefined && !isBearable(token)) throw new LinkFault('a credential that no header can carry')
    if (certificate !== undefined && !(this.takesCertificates && isCarriedChain(certificate)))
      throw new LinkFault('a certificate that the other side does not take')
    const stream = new TunnelStream({ number: 0, isOwn: true, purpose, state: 'waiting' })
    this.#own.alive++
    stream.isAwaited = isAwaited
    this.#opening.set(stream, shownBy(opening))
    return stream
  }

  /** How much of it waits is the writer's affair: it writes no more until it hears that all was taken. */
  write(stream: TunnelStream, bytes: Buffer): void {
    if (!stream.isWritable) return
    stream.put(bytes)
    // More than a first frame that is of use to the next one: nothing is gained by waiting.
    if (stream.waitingBytes > keptFrameBytesMax) stream.isHeld = false
    this.#turn(stream)
  }

  /** What its writer held back may be sent. */
  release(stream: TunnelStream): void {
    stream.isHeld = false
    this.#turn(stream)
  }

  end(stream: TunnelStream): void {
    if (!stream.isWritable) return
    stream.isEnding = true
    stream.isHeld = false
    this.#turn(stream)
  }

  /** Gives it up in both directions, with what was not read. The other side hears why, if it ever heard of it. */
  reset(stream: TunnelStream, reason: ResetReason, sentence: string): void {
    const { state } = stream
    if (state === 'resetting' || state === 'answering') return
    this.#drop(stream)
    if (state === 'waiting') {
      this.#opening.delete(stream)
      stream.state = 'over'
      this.#own.alive--
    } else if (state !== 'over') {
      stream.state = 'resetting'
      stream.reset = { reason, sentence }
      this.#control.add(stream)
    }
  }

  /** Its reader took so many bytes. */
  read(stream: TunnelStream, bytes: number): void {
    if (bytes > stream.unread) throw new RangeError(`${bytes} bytes read of ${stream.unread}`)
    stream.unread -= bytes
    const { state } = stream
    if (state === 'over') {
      if (stream.unread === 0) this.#emptied(stream)
    } else if (stream.hasHeardEnd) {
      if (stream.unread === 0) this.#windows.end(stream)
    } else if (this.#windows.read(stream)) this.#control.add(stream)
  }

  /** Whether `next` has something. */
  isWaiting(isBulkTaken: boolean): boolean {
    if (!this.#hasBegun || this.#control.size > 0) return true
    return isBulkTaken && (this.#ring.size > 0 || this.#nextToOpen() !== undefined)
  }

  /**
   * The next frame to be sent, once: what controls streams first, then new streams, then the bytes of all in turn. Without
   * `isBulkTaken` only the first: the link decides how much of the others may be on its way, and how many bytes of a stream one may bring.
   */
  next(isBulkTaken: boolean, bytesMax = pieceBytesMax): TakenFrame | undefined {
    if (!this.#hasBegun) return this.#begin()
    for (const stream of this.#control) {
      this.#control.delete(stream)
      return takenFrame(stream.reset === undefined ? this.#credit(stream) : this.#resetting(stream, stream.reset))
    }
    if (!isBulkTaken) return undefined
    const opening = this.#nextToOpen()
    if (opening !== undefined) return this.#open(...opening)
    for (const stream of this.#ring) return this.#send(stream, bytesMax)
    return undefined
  }

  /** Throws `LinkFault` for what only a broken or hostile side sends: the link is to be closed, and nothing here used again. */
  receive(carried: CarriedFrame): TunnelEffect[] {
    const frame = decodeTunnelFrame(carried)
    if (frame === undefined) return []
    if ((frame.kind === 'begin') !== (this.#peer === undefined))
      throw new LinkFault(`${frame.kind} ${this.#peer === undefined ? 'before begin' : 'twice'}`)
    if (frame.kind === 'begin') this.#begun(frame)
    else if (frame.kind === 'credential') this.#held.hold(frame.number, { kind: frame.is, text: frame.token })
    else if (frame.kind === 'packed') return this.receive(this.#packing.unpack(frame))
    else if (frame.kind === 'open') return this.#opened(frame)
    else return this.#about(frame)
    return []
  }

  /** The link is gone, and what was known by it. */
  forget(): void {
    this.#sent.forget()
    this.#held.forget()
    this.#packing.forget()
    this.#opening.clear()
  }

  #begin(): TakenFrame {
    this.#hasBegun = true
    const { streamsMax: streams, windowBytes: window, credentialsMax: credentials, contextBytes } = this.#limits
    return takenFrame({
      kind: 'begin',
      streams,
      window,
      credentials,
      contexts: contextBytes,
      certificates: this.#side === 'hub' ? 1 : 0,
    })
  }

  #begun(frame: TunnelFrame & { kind: 'begin' }): void {
    this.#peer = frame
    this.#packing.begun(frame.contexts)
  }

  #nextToOpen(): [TunnelStream, shown: ShownCredential | undefined] | undefined {
    if (this.#peer === undefined || this.#own.alive - this.#opening.size >= this.#peer.streams) return undefined
    for (const opening of this.#opening) if (!opening[0].isHeld) return opening
    return undefined
  }

  #open(stream: TunnelStream, shown: ShownCredential | undefined): TakenFrame {
    const { window, credentials } = this.#peer!
    let credential = 0
    if (shown !== undefined) {
      const { number, isNew } = this.#sent.use(shown, credentials)
      if (isNew) return takenFrame({ kind: 'credential', number, token: shown.text, is: shown.kind })
      credential = number + 1
    }
    this.#opening.delete(stream)
    stream.number = this.#own.next
    this.#own.next += 2
    this.#streams.set(stream.number, stream)
    stream.state = 'open'
    stream.credit = window
    this.#windows.begin(stream)
    const bytes = stream.take(Math.min(stream.waitingBytes, stream.credit, pieceBytesMax))
    const isLast = this.#spent(stream, bytes)
    const { number, purpose } = stream
    return this.#bringing(stream, { kind: 'open', stream: number, purpose, credential, last: isLast ? 1 : 0, bytes })
  }

  /** Undefined where it waits for more room: what would be hardly worth a frame, and a first frame, which is like others as a whole. */
  #send(stream: TunnelStream, bytesMax: number): TakenFrame | undefined {
    const wanted = Math.min(stream.waitingBytes, stream.credit, pieceBytesMax)
    if (wanted > bytesMax && (bytesMax < cutBytesMin || stream.context !== undefined)) return undefined
    const bytes = stream.take(Math.min(wanted, bytesMax))
    const isLast = this.#spent(stream, bytes)
    return this.#bringing(stream, { kind: isLast ? 'end' : 'data', stream: stream.number, bytes })
  }

  #bringing(stream: TunnelStream, brought: TunnelFrame & { readonly bytes: Buffer }): TakenFrame {
    return { frame: this.#packing.pack(stream, brought), drained: stream.waitingBytes === 0 ? stream : undefined }
  }

  /** Answers whether these bytes are its last. */
  #spent(stream: TunnelStream, bytes: Buffer): boolean {
    stream.credit -= bytes.length
    const isLast = stream.isEnding && stream.waitingBytes === 0
    if (isLast) {
      stream.hasSentEnd = true
      if (stream.state === 'heard') this.#finish(stream)
      else stream.state = 'ended'
    }
    // At the end of the ring, behind those that waited meanwhile.
    this.#ring.delete(stream)
    this.#turn(stream)
    return isLast
  }

  #credit(stream: TunnelStream): TunnelFrame {
    return { kind: 'credit', stream: stream.number, bytes: this.#windows.grant(stream) }
  }

  #resetting(stream: TunnelStream, reset: NonNullable<TunnelStream['reset']>): TunnelFrame {
    if (stream.state === 'answering') this.#finish(stream)
    return { kind: 'reset', stream: stream.number, ...reset }
  }

  #opened(frame: TunnelFrame & { kind: 'open' }): TunnelEffect[] {
    const { stream: number, purpose, bytes } = frame
    const { alive, unread, next } = this.#others
    if (number !== next) throw new LinkFault(`stream ${number} was opened where ${next} is the next one`)
    // It counts its own as alive for at least as long as we do, so this is no race.
    if (alive >= this.#limits.streamsMax) throw new LinkFault(`more than ${this.#limits.streamsMax} streams`)
    const credential = frame.credential === 0 ? noCredential : this.#held.find(frame.credential - 1)
    const stream = new TunnelStream({ number, isOwn: false, purpose, state: 'open' })
    this.#streams.set(number, stream)
    this.#others.next += 2
    this.#others.alive++
    stream.credit = this.#peer!.window
    this.#windows.begin(stream)
    // What is over and unread still takes memory: the other side cannot know, and hears that it is to try again.
    const isRefused = alive + unread >= this.#limits.streamsMax
    if (isRefused) this.reset(stream, 'busy', 'too many streams are not read')
    const effects: TunnelEffect[] = isRefused ? [] : [{ type: 'opened', stream, credential }]
    return [...effects, ...this.#came(stream, bytes, frame.last !== 0)]
  }

  #about(frame: TunnelFrame & { kind: 'data' | 'end' | 'reset' | 'credit' }): TunnelEffect[] {
    const stream = this.#streams.get(frame.stream)
    if (stream === undefined && !this.#wasOpened(frame.stream))
      throw new LinkFault(`${frame.kind} of stream ${frame.stream}, which was never opened`)
    if (frame.kind === 'reset') return stream === undefined ? [] : this.#wasReset(stream, frame)
    if (frame.kind === 'credit') {
      if (stream !== undefined) this.#credited(stream, frame.bytes)
      return []
    }
    if (stream === undefined) throw new LinkFault(`${frame.kind} of stream ${frame.stream}, which is over`)
    if (frame.kind === 'data' && frame.bytes.length === 0) throw new LinkFault('data without a byte')
    return this.#came(stream, frame.bytes, frame.kind === 'end')
  }

  /** Numbers have no gaps. */
  #wasOpened(number: number): boolean {
    const isOwn = number % 2 === (this.#side === 'edge' ? 1 : 0)
    return number > 0 && number < (isOwn ? this.#own.next : this.#others.next)
  }

  #came(stream: TunnelStream, bytes: Buffer, isLast: boolean): TunnelEffect[] {
    if (stream.hasHeardEnd || stream.state === 'answering')
      throw new LinkFault(`bytes of stream ${stream.number} behind its end`)
    this.#windows.spend(stream, bytes.length)
    if (bytes.length > 0 || isLast) stream.isAwaited = false
    stream.hasHeardEnd = isLast
    if (stream.state === 'resetting') {
      // It ended both directions before it can have heard of our reset, and will not answer that.
      if (isLast && stream.hasSentEnd) this.#finish(stream)
      return []
    }
    const effects: TunnelEffect[] = []
    if (bytes.length > 0) {
      stream.unread += bytes.length
      effects.push({ type: 'data', stream, bytes })
    }
    if (isLast) {
      effects.push({ type: 'ended', stream })
      // No credit is of use any more.
      this.#control.delete(stream)
      if (stream.unread === 0) this.#windows.end(stream)
      if (stream.state === 'ended') this.#finish(stream)
      else stream.state = 'heard'
    }
    return effects
  }

  #credited(stream: TunnelStream, bytes: number): void {
    if (bytes === 0) throw new LinkFault('a credit of nothing')
    stream.credit += bytes
    if (stream.credit > creditBytesMax) throw new LinkFault(`a credit of ${stream.credit} bytes`)
    this.#turn(stream)
  }

  #wasReset(stream: TunnelStream, { reason, sentence }: { reason: ResetReason; sentence: string }): TunnelEffect[] {
    if (stream.state === 'answering') return []
    const isAnswer = stream.state === 'resetting'
    if (isAnswer && !this.#control.has(stream)) {
      this.#finish(stream)
      return []
    }
    this.#drop(stream)
    stream.state = 'answering'
    stream.reset ??= { reason: 'cancelled', sentence: '' }
    this.#control.add(stream)
    return isAnswer ? [] : [{ type: 'reset', stream, reason, sentence }]
  }

  #turn(stream: TunnelStream): void {
    if (stream.isSendable) this.#ring.add(stream)
  }

  /** Nothing of it is sent or read any more. */
  #drop(stream: TunnelStream): void {
    stream.dropWaiting()
    this.#ring.delete(stream)
    this.#control.delete(stream)
    const hadUnread = stream.unread > 0
    stream.unread = 0
    if (stream.state === 'over' && hadUnread) this.#emptied(stream)
  }

  /** Both sides know that nothing more is sent. What is unread is remembered until it is read. */
  #finish(stream: TunnelStream): void {
    stream.state = 'over'
    this.#streams.delete(stream.number)
    this.#control.delete(stream)
    this.#ring.delete(stream)
    const opened = stream.isOwn ? this.#own : this.#others
    opened.alive--
    if (stream.unread > 0) opened.unread++
    else this.#windows.end(stream)
  }

  #emptied(stream: TunnelStream): void {
    const opened = stream.isOwn ? this.#own : this.#others
    opened.unread--
    this.#windows.end(stream)
  }
}

/** The streams that one side opened: the number of the next, how many are alive, how many are over and not read. */
type Opened = { next: number; alive: number; unread: number }
