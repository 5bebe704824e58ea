/**
 * One link from hello to its end: drives an `EdgeSession` over a socket and by the clock, carries the frames of its streams, and
 * hands what is told of each interest to its listener. What the session sends goes out at once, since it is little
 * and bounded; bytes of streams go out while the socket has room.
 */
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { DigestTree } from '../../link/digest/digest.ts'
import { LinkFault } from '../../link/frames/bytes.ts'
import { decodeFrame, encodeFrame, type LinkFrame } from '../../link/frames/frames.ts'
import { EdgeSession } from '../../link/session/edge.ts'
import type { InterestHeld } from '../../link/session/edgeinterest.ts'
import type { EdgeEffect, EndReason, LinkTerms, ReceivedChange } from '../../link/session/session.ts'
import type { LinkEnd, LinkSocket } from '../../link/socket/linksocket.ts'
import { standardTunnelLimits } from '../../tunnel/limits.ts'
import { type IncomingStream, TunnelStreams } from '../../tunnel/streams.ts'
import { HandedOver } from './handedover.ts'
import type { HubPeer } from './hubdial.ts'
import { PingAnswers } from './pinganswers.ts'

/** What a link needs of its socket. */
export type LinkWire = Pick<LinkSocket<HubPeer>, 'begin' | 'send' | 'close' | 'cut' | 'peer'>

export type InterestEffect = Extract<EdgeEffect, { readonly interest: number }>

/** What follows an interest over a link. None of these throws, and whatever they call on the link is done after they have returned. */
export interface InterestListener {
  /** What the copy will have of a key when everything that was told is taken over. */
  held(key: string): Buffer | undefined
  /** All but `compare` and `begins` may come in any order that the session explains. */
  told(effect: InterestEffect): void
  /** In this order; `taken` is called once they are taken over, or will never be. */
  changed(changes: readonly ReceivedChange[], taken: () => void): void
  /** Nothing more is told. `isOver`: the hub asked for it, and whatever answers next is of the same cluster. */
  broken(why: string, isOver: boolean): void
}

export type LinkedInterest = {
  restart(held: InterestHeld): void
  walk(comparison: number, tree: DigestTree): void
  /** When all of it was what the cluster had, by the steady clock. */
  freshAt(): number
  leave(): void
}

export type LinkOver = {
  readonly why: string
  /** What the session ended for; undefined where its line broke. */
  readonly reason: EndReason | undefined
  /** How long the hub wants to be left alone. */
  readonly retryAfterMs: number
  /** What the next link should keep alive by. */
  readonly keepaliveMs: number
}

export type LiveLinkParts = {
  readonly wire: LinkWire
  readonly edge: string
  readonly release: string
  readonly cluster: string
  readonly epoch: number
  readonly keepaliveMs: number
  readonly clock: Clock
  readonly log: Log
  /** What the hub opens; a purpose that is not known here is given up as such. */
  readonly accept: (incoming: IncomingStream) => void
  readonly welcomed: (link: LiveLink) => void
  /** The hub has said something of its documents. */
  readonly signed: () => void
  /** The hub asks to be left within this time. */
  readonly asked: (withinMs: number) => void
  /** Policies say something else of this edge. */
  readonly termsTold: (link: LiveLink) => void
}

/** What a hub says of itself. */
type Welcome = Omit<Extract<EdgeEffect, { effect: 'welcomed' }>, 'effect'>

export class LiveLink {
  readonly ended: Promise<LinkOver>
  readonly #parts: LiveLinkParts
  readonly #session: EdgeSession
  readonly #listeners = new Map<number, InterestListener>()
  readonly #handedOver = new HandedOver((position) => this.#committed(position))
  #streams: TunnelStreams | undefined
  #welcome: Welcome | undefined
  #terms: LinkTerms | undefined
  #signs: readonly Buffer[] = []
  #heardAt: number
  #isFull = false
  #isPoked = false
  #isOver = false
  #isMoving = false
  /** Why the session has ended, which the socket below does not know. */
  #ending: { readonly why: string; readonly reason: EndReason; readonly retryAfterMs: number } | undefined
  #cancelTimer: (() => void) | undefined
  #dueAt = Number.POSITIVE_INFINITY
  readonly #asking: PingAnswers
  #end: (over: LinkOver) => void = () => {}

  constructor(parts: LiveLinkParts) {
    const { wire, edge, release, cluster, epoch, keepaliveMs, clock } = parts
    this.#parts = parts
    const now = clock.steady()
    this.#heardAt = now
    this.#asking = new PingAnswers(clock)
    const held = (interest: number, key: string) => this.#listeners.get(interest)?.held(key)
    const isAwaiting = () => this.#streams?.isAwaiting ?? false
    this.#session = new EdgeSession({ edge, release, cluster, epoch, keepaliveMs, held, isAwaiting, now })
    this.ended = new Promise((resolve) => {
      this.#end = resolve
    })
    wire.begin({
      frame: (frame) => this.#frame(frame),
      ready: () => {
        this.#isFull = false
        this.#pump()
      },
      closed: (end) => this.#closed(end),
    })
    this.#tick()
  }

  /** Whether anything can be asked for over it. */
  get isOpen(): boolean {
    return !this.#isOver && (this.#session.state === 'open' || this.#session.state === 'leaving')
  }

  /** Undefined until the hub has said who it is. */
  get welcome(): Welcome | undefined {
    return this.#welcome
  }

  /** What policies say of this edge; undefined until it was told, which a hub of an older release never does. */
  get terms(): LinkTerms | undefined {
    return this.#terms
  }

  /** The epoch of what is told: it grows when the cluster was put back. */
  get epoch(): number {
    return this.#welcome?.epoch ?? this.#parts.epoch
  }

  /** What the hub has said of its documents (`upstream/told`). */
  get signs(): readonly Buffer[] {
    return this.#signs
  }

  get streams(): TunnelStreams | undefined {
    return this.#streams
  }

  /** When anything last came, by the steady clock. */
  get heardAt(): number {
    return this.#heardAt
  }

  /** When anything that is told was what the cluster had, by the steady clock. */
  get freshAt(): number {
    return this.#session.freshAt
  }

  /** Asks the hub how fresh what it tells is; resolves when that is known, and taken over what it had to tell, or when the time is over. */
  async freshen(msMax: number): Promise<void> {
    const endsAt = this.#parts.clock.steady() + msMax
    if (!(await this.ask(msMax))) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const cancel = this.#parts.clock.setTimer(Math.max(0, endsAt - this.#parts.clock.steady()), resolve)
    await Promise.race([this.#handedOver.all(), promise])
    cancel()
  }

  /** Over one that has ended it is heard at once that it has. */
  subscribe(name: string, held: InterestHeld, listener: InterestListener): LinkedInterest {
    if (this.#isOver) queueMicrotask(() => listener.broken(this.#ending?.why ?? 'the link has ended', false))
    let number = this.#session.subscribe(name, held)
    this.#listeners.set(number, listener)
    // What is asked for in one round of the loop, as all of it after a cut, is asked for in one frame.
    setImmediate(() => this.#poke())
    return {
      restart: (again) => {
        if (!this.#listeners.delete(number)) return
        number = this.#session.restart(number, again)
        this.#listeners.set(number, listener)
        this.#poke()
      },
      walk: (comparison, tree) => {
        this.#session.walk(number, comparison, tree)
        this.#poke()
      },
      freshAt: () => this.#session.freshAtOf(number),
      leave: () => {
        if (!this.#listeners.delete(number)) return
        this.#session.unsubscribe(number)
        this.#poke()
      },
    }
  }

  /** Whether the hub answers a ping within the time. */
  ask(msMax: number): Promise<boolean> {
    if (this.#isOver) return Promise.resolve(false)
    const answered = this.#asking.wait(msMax)
    this.#session.ask()
    this.#poke()
    return answered
  }

  /** It ends by our own wish. */
  leave(why: string): void {
    this.#session.close(why)
    this.#tick()
  }

  #frame(bytes: Buffer): void {
    const now = this.#parts.clock.steady()
    this.#heardAt = now
    let frame: LinkFrame | undefined
    try {
      frame = decodeFrame(bytes)
    } catch (error) {
      this.#fault(error)
      return
    }
    if (frame?.kind === 'pong') this.#asking.settle(true)
    if (frame === undefined) this.#session.heard(now)
    else this.#act(this.#session.receive(frame, now))
  }

  /** Only what the other side has sent may be at fault; anything else is a mistake of ours. */
  #fault(error: unknown): void {
    if (!(error instanceof LinkFault)) throw error
    this.leave(error.message)
  }

  /** Things that happen in one turn go out together. */
  #poke(): void {
    if (this.#isPoked || this.#isOver) return
    this.#isPoked = true
    queueMicrotask(() => {
      this.#isPoked = false
      this.#tick()
    })
  }

  #tick(): void {
    if (!this.#isOver) this.#act(this.#session.tick(this.#parts.clock.steady()))
  }

  #act(effects: readonly EdgeEffect[]): void {
    for (const effect of effects) this.#do(effect)
    this.#schedule()
  }

  #do(effect: EdgeEffect): void {
    switch (effect.effect) {
      case 'send':
        this.#send(effect.frame)
        break
      case 'close':
        this.#close(effect)
        break
      case 'log':
        this.#parts.log.info(effect.what, { why: effect.sentence })
        break
      case 'tunnel':
        this.#carry(effect.frame)
        break
      case 'welcomed':
        this.#welcomed(effect)
        break
      case 'commit':
        this.#commit(effect)
        break
      case 'move':
        this.#isMoving = true
        this.#parts.asked(effect.withinMs)
        break
      case 'terms':
        this.#termsTold(effect)
        break
      case 'lost':
        this.#lost(effect)
        break
      case 'documents':
        // Views of the frame as it came.
        this.#signs = effect.signs.map((sign) => Buffer.from(sign))
        this.#parts.signed()
        break
      default:
        this.#listeners.get(effect.interest)?.told(effect)
    }
  }

  #welcomed(welcome: Welcome): void {
    this.#welcome = welcome
    const { accept } = this.#parts
    this.#streams = new TunnelStreams({
      ...{ side: 'edge', limits: standardTunnelLimits, accept },
      ready: () => this.#pump(),
    })
    this.#parts.welcomed(this)
  }

  #termsTold({ trusts, tokenAgeMs, serveAgeMs }: LinkTerms): void {
    this.#terms = { trusts, tokenAgeMs, serveAgeMs }
    if (this.#welcome !== undefined) this.#welcome = { ...this.#welcome, trustsEdges: trusts }
    this.#parts.termsTold(this)
  }

  #lost(effect: Extract<EdgeEffect, { effect: 'lost' }>): void {
    if (this.#welcome !== undefined) this.#welcome = { ...this.#welcome, epoch: effect.epoch }
    const concerned = effect.interest === 0 ? [...this.#listeners.values()] : [this.#listeners.get(effect.interest)]
    for (const listener of concerned) listener?.told(effect)
  }

  #commit({ position, changes }: Extract<EdgeEffect, { effect: 'commit' }>): void {
    const heard = [...Map.groupBy(changes, ({ interest }) => interest)].flatMap(([interest, told]) => {
      const listener = this.#listeners.get(interest)
      return listener === undefined ? [] : [{ listener, told }]
    })
    const taken = this.#handedOver.add(position, heard.length)
    for (const { listener, told } of heard) listener.changed(told, taken)
  }

  #committed(position: number): void {
    this.#session.committed(position)
    this.#poke()
  }

  #carry(frame: Extract<LinkFrame, { kind: 'tunnel' }>): void {
    try {
      this.#streams?.receive(frame)
    } catch (error) {
      this.#fault(error)
    }
  }

  /** What controls streams always, their bytes while there is room. */
  #pump(): void {
    const now = this.#parts.clock.steady()
    for (;;) {
      const frame = this.#streams?.next(!this.#isFull)
      if (frame === undefined) return
      this.#session.streamed(frame.payload.length, now)
      this.#send(frame)
      // The hub may owe an answer from now on.
      this.#poke()
    }
  }

  #send(frame: LinkFrame): void {
    if (!this.#parts.wire.send(encodeFrame(frame))) this.#isFull = true
  }

  #close({ reason, retryAfterMs, sentence }: Extract<EdgeEffect, { effect: 'close' }>): void {
    const { wire } = this.#parts
    this.#ending = { why: sentence, reason, retryAfterMs }
    if (reason === 'silent') wire.cut(sentence)
    else wire.close(reason === 'frame' ? 'fault' : 'done', sentence)
  }

  #closed({ why: said }: LinkEnd): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#cancelTimer?.()
    const { why = said, reason, retryAfterMs = 0 } = this.#ending ?? {}
    this.#asking.settle(false)
    this.#streams?.close(why)
    const listeners = [...this.#listeners.values()]
    this.#listeners.clear()
    for (const listener of listeners) listener.broken(why, this.#isMoving)
    this.#end({ why, reason, retryAfterMs, keepaliveMs: this.#session.nextKeepaliveMs(this.#parts.clock.steady()) })
  }

  /** One timer, which is moved only where something is due before it. */
  #schedule(): void {
    const { nextTick } = this.#session
    // One that has closed only waits for its socket to do so.
    if (this.#session.state === 'closed' || (this.#cancelTimer !== undefined && this.#dueAt <= nextTick)) return
    this.#cancelTimer?.()
    this.#dueAt = nextTick
    this.#cancelTimer = this.#parts.clock.setTimer(Math.max(0, nextTick - this.#parts.clock.steady()), () => {
      this.#cancelTimer = undefined
      this.#tick()
    })
  }
}
