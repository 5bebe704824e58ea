/**
 * One edge at this hub: drives its session over its socket. Frames that came and events of its interests are told to the
 * session; what that wants sent goes out, as far as the socket takes it: while that is full the session holds back what is new
 * and conflates it. Streams share the line with blocks (`streamsending.ts`).
 */
import type { Clock } from '../../base/clock.ts'
import { reasonOf } from '../../base/fault.ts'
import type { Log } from '../../base/log.ts'
import type { Warnings } from '../../base/warnings.ts'
import { LinkFault } from '../../link/frames/bytes.ts'
import { decodeFrame, encodeFrame } from '../../link/frames/frames.ts'
import { HubSession } from '../../link/session/hub.ts'
import type { SessionRefusal } from '../../link/session/hubgreeting.ts'
import type { HubSessionParts } from '../../link/session/hubparts.ts'
import { sessionLimits } from '../../link/session/limits.ts'
import type { HubEffect } from '../../link/session/session.ts'
import type { LinkClose, LinkEnd, LinkSocket } from '../../link/socket/linksocket.ts'
import { sentenceOf } from '../../tunnel/frames.ts'
import { standardTunnelLimits } from '../../tunnel/limits.ts'
import { type IncomingStream, TunnelStreams } from '../../tunnel/streams.ts'
import { anotherBy, type EdgePeer } from '../sockets/edgepeer.ts'
import type { HubSources } from '../sources/sources.ts'
import { peerLimits } from './limits.ts'
import { sayable } from './peerinterest.ts'
import { PeerInterests } from './peerinterests.ts'
import type { EdgeRights, PeerPolicies } from './rights.ts'
import type { LookingBudgets } from './selections.ts'
import { StreamSending } from './streamsending.ts'

export type PeerSocket = Pick<LinkSocket<EdgePeer>, 'peer' | 'begin' | 'send' | 'close' | 'cut' | 'bufferedBytes'>

/** What went over links: of one, and of all together. */
export type PeerTraffic = { sentBytes: number; receivedBytes: number; events: number }

/** For an edge that says hello while its hub ends. */
export const hubEnds: SessionRefusal = {
  ...{ reason: 'busy', retryAfterMs: peerLimits.endingRetryMs, sentence: 'this hub ends' },
}

type LinkedEdgeParts = {
  readonly link: PeerSocket
  readonly session: Omit<HubSessionParts, 'admit' | 'now' | 'ageMs' | 'areStreamsWaiting'>
  readonly sources: Pick<HubSources, 'open' | 'heardAt' | 'present'>
  readonly rights: EdgeRights
  readonly policies?: PeerPolicies
  readonly looking: LookingBudgets
  /** Takes the streams that this edge opens. */
  readonly accept: (incoming: IncomingStream) => void
  /** Whether it may stay beside others of its name; undefined: it is in. */
  readonly admit: (peer: LinkedEdge) => SessionRefusal | undefined
  /** It has something to be sent: `flush` is called in a moment. */
  readonly wake: (peer: LinkedEdge) => void
  readonly ended: (peer: LinkedEdge) => void
  /** Of all links of this hub. */
  readonly all: PeerTraffic
  readonly clock: Clock
  readonly log: Log
  readonly warnings: Pick<Warnings, 'warn'>
}

export class LinkedEdge {
  readonly #parts: LinkedEdgeParts
  readonly #session: HubSession
  readonly #interests: PeerInterests
  readonly #cameAt: number
  readonly #traffic: PeerTraffic = { sentBytes: 0, receivedBytes: 0, events: 0 }
  #streams: TunnelStreams | undefined
  #streamSending: StreamSending | undefined
  #hasRoom = true
  #isOver = false
  #timer: { readonly at: number; readonly cancel: () => void } | undefined
  /** What policies said of it when it was last told. */
  #rules: ReturnType<PeerPolicies['rulesOf']> | undefined

  constructor(parts: LinkedEdgeParts) {
    this.#parts = parts
    const { link, sources, rights, looking, clock, warnings } = parts
    this.#cameAt = clock.steady()
    this.#session = new HubSession({
      ...parts.session,
      admit: (edge) => this.#admit(edge),
      now: this.#cameAt,
      ageMs: (source) => this.#now - sources.heardAt(source),
      areStreamsWaiting: () => this.#streams?.isWaiting ?? false,
    })
    const [edge, session] = [link.peer, this.#session]
    this.#interests = new PeerInterests({ edge, link: this, session, sources, rights, looking, warnings })
    link.begin({
      frame: (bytes) => this.#receive(bytes),
      ready: () => this.#ready(),
      closed: (end) => this.#closed(end),
    })
    this.policed()
    if (!this.#isOver) this.#wait()
  }

  /** Its link has ended, perhaps before it began. */
  get isOver(): boolean {
    return this.#isOver
  }

  get edge(): EdgePeer {
    return this.#parts.link.peer
  }

  get figures() {
    const { name: edge, from, certificate } = this.edge
    const livedMs = this.#parts.clock.steady() - this.#cameAt
    const { heldBytes, state, release, behind, confirmed } = this.#session
    const held = { interests: this.#interests.size, heldBytes, bufferedBytes: this.bufferedBytes, behind, ...confirmed }
    return { edge, from, certificate, release, state, livedMs, ...held, ...this.#traffic }
  }

  /** An event of one of its interests. */
  told(): void {
    this.#traffic.events++
    this.#parts.all.events++
    this.wake()
  }

  wake(): void {
    if (!this.#isOver) this.#parts.wake(this)
  }

  /** Sends what there is, if the line takes anything: what it does not take is conflated meanwhile. */
  flush(): void {
    if (this.#hasRoom) this.#tick()
  }

  /** How far its sources are. */
  mark(versions: ReadonlyMap<number, number>): void {
    for (const source of this.#interests.sources) {
      const version = versions.get(source)
      if (version !== undefined) this.#session.progress(source, version)
    }
    this.wake()
  }

  /** Whether it may still have what it has. */
  judgeAgain(): Promise<void> {
    return this.#interests.judgeAgain()
  }

  /** Policies may say something else of it: what it has is judged again, and it is told what concerns it. */
  policed(): void {
    const { policies, session } = this.#parts
    if (policies?.isKnown !== true || this.#isOver) return
    const rules = policies.rulesOf(this.edge.name)
    if (rules === this.#rules) return
    const isFirst = this.#rules === undefined
    this.#rules = rules
    const { tokenAgeMs = 0, serveAgeMs = 0 } = rules.offline
    this.#session.terms({ trusts: session.trustsEdges === true || rules.trusts, tokenAgeMs, serveAgeMs })
    this.wake()
    if (!isFirst) void this.judgeAgain()
  }

  /** Documents of the cluster have changed. */
  signed(): void {
    this.#session.signed()
    this.wake()
  }

  lost(epoch: number, version: number): void {
    this.#session.lost(epoch, version)
    this.wake()
  }

  drain(withinMs: number, sentence: string): void {
    // An edge that has not said hello has nothing here, and is told by a refusal.
    if (this.#session.state === 'greeting') this.close(hubEnds)
    this.#session.drain(withinMs, sentence, this.#now)
    this.#tick()
  }

  close(refusal: SessionRefusal): void {
    this.#session.close(sayable(refusal))
    this.#tick()
  }

  /** The socket takes more. */
  get hasRoom(): boolean {
    return this.#hasRoom && !this.#isOver
  }

  /** What it has not passed on. */
  get bufferedBytes(): number {
    return this.#parts.link.bufferedBytes
  }

  get #now(): number {
    return this.#parts.clock.steady()
  }

  #tick(): void {
    if (!this.#isOver) this.#guarded(() => this.#do(this.#session.tick(this.#now)))
  }

  /** The link's certificate says who it is; its hello may only repeat that. */
  #admit(edge: string): SessionRefusal | undefined {
    if (edge === this.edge.name) return this.#parts.admit(this)
    const sentence = `the certificate is that of node "${this.edge.name}", and not of "${edge}"`
    return { reason: 'identity', retryAfterMs: peerLimits.replacedRetryMs, sentence }
  }

  #receive(bytes: Buffer): void {
    if (this.#isOver) return
    this.#traffic.receivedBytes += bytes.length
    this.#parts.all.receivedBytes += bytes.length
    this.#guarded(() => {
      const frame = decodeFrame(bytes)
      if (frame === undefined) this.#session.heard(this.#now)
      else this.#do(this.#session.receive(frame, this.#now))
    })
  }

  #do(effects: readonly HubEffect[]): void {
    for (const effect of effects) {
      // Something of it broke: nothing more is begun for it.
      if (this.#isOver) return
      if (effect.effect === 'send') this.#send(encodeFrame(effect.frame))
      else if (effect.effect === 'open') this.#interests.open(effect.interest, effect.name)
      else if (effect.effect === 'release') this.#interests.release(effect.interest)
      else if (effect.effect === 'ahead') this.#interests.measure(effect.interest)
      else if (effect.effect === 'tunnel') this.#guarded(() => this.#streams?.receive(effect.frame))
      else if (effect.effect === 'log')
        this.#parts.log.debug(effect.what, { edge: this.edge.name, why: effect.sentence })
      else this.#end(effect)
    }
    if (this.#isOver) return
    if (this.#streams === undefined && this.#session.state !== 'greeting') this.#beginStreams()
    // What was acknowledged made room; most links have nothing that waits for it.
    if (this.#session.isStreamPaced && this.#streams?.isWaiting === true) this.#streamSending?.flush()
    this.#wait()
  }

  #send(bytes: Buffer): void {
    this.#traffic.sentBytes += bytes.length
    this.#parts.all.sentBytes += bytes.length
    if (!this.#parts.link.send(bytes)) this.#hasRoom = false
  }

  #ready(): void {
    this.#hasRoom = true
    this.#tick()
    this.#streamSending?.flush()
  }

  #guarded(run: () => void): void {
    try {
      run()
    } catch (error) {
      this.broke(error)
    }
  }

  /** Of this edge's making, or a mistake of ours that it met: it closes this link, and no other notices. */
  broke(error: unknown): void {
    if (this.#isOver) return
    const isFault = error instanceof LinkFault
    if (!isFault) this.#parts.log.error('edge.broke', { edge: this.edge.name, why: reasonOf(error) })
    const sentence = sentenceOf(isFault ? error.message : 'the hub made a mistake with this link')
    const refusal = { reason: isFault ? 'frame' : 'other', retryAfterMs: sessionLimits.busyRetryMs, sentence } as const
    // Past the session, which may be what broke.
    this.#parts.link.send(encodeFrame({ kind: 'refused', interest: 0, ...refusal }))
    this.#end({ effect: 'close', ...refusal })
  }

  #beginStreams(): void {
    const { accept, clock } = this.#parts
    const ready = () => this.#streamSending?.flush()
    this.#streams = new TunnelStreams({ side: 'hub', limits: standardTunnelLimits, accept, ready })
    this.#streamSending = new StreamSending({
      ...{ streams: this.#streams, session: this.#session, clock, line: this },
      send: (frame) => this.#send(encodeFrame(frame)),
      sent: () => this.wake(),
    })
  }

  /**
   * One timer for what is due next: a sign of life, the end of a drain, the end of the certificate by the clock as it is then. One that
   * comes soon enough stays, which is looked at with each event, before any clock is.
   */
  #wait(): void {
    const { nextTick } = this.#session
    if (this.#timer !== undefined && this.#timer.at <= nextTick) return
    this.#timer?.cancel()
    const { clock } = this.#parts
    const now = this.#now
    const at = Math.min(nextTick, now + this.edge.certificate.endsAtMs - clock.now())
    this.#timer = { at, cancel: clock.setTimer(Math.max(0, at - now), () => this.#due()) }
  }

  #due(): void {
    this.#timer = undefined
    if (this.#parts.clock.now() >= this.edge.certificate.endsAtMs) this.close(overdue(this.edge.certificate.signer))
    else this.#tick()
  }

  /** The session's last effect. */
  #end({ reason, sentence }: Extract<HubEffect, { effect: 'close' }>): void {
    const { link } = this.#parts
    if (this.#isOver) return
    this.#leave(reason, sentence)
    if (reason === 'silent') link.cut(sentence)
    else link.close(codes[reason] ?? 'refused', sentence)
  }

  #closed({ by, why }: LinkEnd): void {
    if (!this.#isOver) this.#leave(by, why)
  }

  #leave(reason: string, why: string): void {
    const { log, warnings, rights, ended } = this.#parts
    const { name: edge, from } = this.edge
    this.#isOver = true
    this.#timer?.cancel()
    this.#streamSending?.stop()
    this.#streams?.close(why)
    this.#interests.forgetAll()
    const fields = { edge, from, reason, why, livedMs: Math.round(this.#now - this.#cameAt) }
    if (faults.has(reason)) warnings.warn('edge.left', { who: edge, kind: 'link', same: `${reason} ${why}` }, fields)
    else log.debug('edge.left', fields)
    rights.left(this.edge)
    ended(this)
  }
}

const codes: Readonly<Partial<Record<string, LinkClose>>> = {
  ...{ frame: 'fault', drained: 'away', busy: 'away', other: 'broken' },
}
/** What an operator should look at: a stranger, another release, two boxes with one name. */
const faults: ReadonlySet<string> = new Set(['frame', 'identity', 'protocol', 'cluster', 'replaced', 'limit'])

function overdue(signer: keyof typeof anotherBy): SessionRefusal {
  const sentence = `the certificate has ended: ${anotherBy[signer]}`
  return { reason: 'identity', retryAfterMs: peerLimits.replacedRetryMs, sentence }
}
