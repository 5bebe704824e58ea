/**
 * The hub's side of one link. Frames come in by `receive`; what happens in the hub (a source was opened, an event, how far a source
 * is, the cluster put back) is told by the other calls, which only note it; both leave what is to be done to the effects
 * of the same `receive` or the next `tick`. A frame that is wrong here closes the link with its reason (L8).
 */
import { LinkFault } from '../frames/bytes.ts'
import type { LinkFrame } from '../frames/frames.ts'
import { sayAccepted } from './hubaccepted.ts'
import { ageOf } from './hubage.ts'
import { InterestsAhead } from './hubahead.ts'
import { ConfirmedVersion, type UnliveInterests, unliveOf } from './hubconfirmed.ts'
import type { SessionRefusal } from './hubgreeting.ts'
import { HubInterest } from './hubinterest.ts'
import { HubLabour } from './hublabour.ts'
import type { HubSessionParts } from './hubparts.ts'
import { HubSending } from './hubsending.ts'
import { HubWelcome } from './hubwelcome.ts'
import { type SessionLimits, sessionLimits } from './limits.ts'
import { Liveness } from './liveness.ts'
import type { HubEffect, InterestStart, InterestView, LinkEvent, LinkTerms } from './session.ts'
import { hubTakes, type SessionState } from './table.ts'

type FrameFor<Kind extends LinkFrame['kind']> = Extract<LinkFrame, { readonly kind: Kind }>

export class HubSession {
  readonly #parts: HubSessionParts
  readonly #limits: SessionLimits
  readonly #sending: HubSending
  readonly #welcome: HubWelcome
  readonly #liveness: Liveness
  readonly #interests = new Map<number, HubInterest>()
  readonly #ahead: InterestsAhead
  /** How many interests of this edge each source has. */
  readonly #sources = new Map<number, number>()
  #effects: HubEffect[] = []
  #state: SessionState = 'greeting'
  #lastNumber = 0
  #nameBytes = 0
  readonly #labour: HubLabour
  readonly #confirmed = new ConfirmedVersion()
  #leaveAt = Number.POSITIVE_INFINITY
  /** Answered behind everything that there is to tell. */
  #pinged: number | undefined
  /** What runs at the other end, as its hello says; '' before that. */
  release = ''
  /** Streams are bulk: an edge of an older release does not acknowledge them, and has them as its socket takes them. */
  isStreamPaced = false

  constructor(parts: HubSessionParts) {
    this.#parts = parts
    const limits = parts.limits ?? sessionLimits
    this.#limits = limits
    this.#labour = new HubLabour({ max: limits.labourMax, perMs: limits.labourPerMs }, parts.now)
    const packing = new HubLabour({ max: limits.packedBytesMax, perMs: limits.packedBytesPerMs }, parts.now)
    this.#ahead = new InterestsAhead(limits)
    this.#welcome = new HubWelcome({ own: parts, limits, send: (frame) => this.#send(frame) })
    this.#liveness = new Liveness(limits.keepaliveMsMax + limits.hubPatienceMs, parts.now)
    this.#sending = new HubSending(
      { changes: parts.changes, limits, packing },
      {
        send: (frame) => {
          if (frame.kind === 'events') this.#confirmed.sent(frame.position)
          this.#send(frame)
        },
        areStreamsWaiting: () => this.isStreamPaced && (parts.areStreamsWaiting?.() ?? false),
        tooDifferent: (interest) => this.#accept(interest, interest.snapshot()),
        impossible: (interest, sentence) => {
          this.refuse(interest.number, { reason: 'limit', retryAfterMs: 0, sentence })
          this.#effects.push({ effect: 'release', interest: interest.number })
        },
      },
    )
  }

  get state(): SessionState {
    return this.#state
  }

  /** When `tick` is due if nothing else happens. */
  get nextTick(): number {
    return Math.min(this.#liveness.next(), this.#leaveAt, this.#ahead.nextTick, this.#sending.nextTick)
  }

  /** What this edge makes the hub hold, beside its interests. */
  get heldBytes(): number {
    return this.#sending.heldBytes
  }

  /** Events that were sent and the edge has not committed yet. */
  get behind(): number {
    return this.#sending.behind
  }

  /** How far the edge has come, by its own word. */
  get confirmed(): { readonly version: number; readonly unlive: UnliveInterests } {
    return { version: this.#confirmed.version, unlive: unliveOf(this.#interests.values()) }
  }

  /** How many bytes of streams may be sent now, where they are paced. */
  streamRoom(now: number): number {
    return this.#sending.streamRoom(now)
  }

  /** So many are: at once, or as far as there was room. */
  streamed(bytes: number, now: number): void {
    if (this.isStreamPaced) this.#sending.streamed(bytes, now)
  }

  /** How much bulk may be on its way. */
  get bulkLimit(): number {
    return this.#sending.bulkLimit
  }

  receive(frame: LinkFrame, now: number): readonly HubEffect[] {
    if (this.#state === 'closed') return []
    this.#liveness.heard(now)
    try {
      if (!hubTakes[this.#state].includes(frame.kind)) throw new LinkFault(`${frame.kind} while ${this.#state}`)
      this.#take(frame, now)
    } catch (error) {
      if (!(error instanceof LinkFault)) throw error
      this.#refuse({ reason: 'frame', retryAfterMs: this.#limits.busyRetryMs, sentence: error.message })
    }
    return this.tick(now)
  }

  /** Some bytes have come that are no whole frame yet. */
  heard(now: number): void {
    this.#liveness.heard(now)
  }

  tick(now: number): readonly HubEffect[] {
    if (this.#state === 'open' || this.#state === 'leaving') this.#flush(now)
    this.#answerPing()
    if (this.#state !== 'closed') this.#look(now)
    const effects = this.#effects
    this.#effects = []
    return effects
  }

  #answerPing(): void {
    const number = this.#pinged
    if (number === undefined || this.#state === 'closed') return
    this.#pinged = undefined
    const { ageMs = () => 0 } = this.#parts
    this.#send({ kind: 'pong', number, ...ageOf(this.#interests.values(), ageMs, this.#limits) })
  }

  /** The answer to `open`. From here on every event of the interest is told. */
  opened(number: number, view: InterestView): void {
    const interest = this.#interests.get(number)
    if (interest === undefined || interest.view !== undefined) return
    this.#sources.set(view.source, (this.#sources.get(view.source) ?? 0) + 1)
    this.#accept(interest, interest.open(view))
  }

  /** The other answer, or the end of one that was opened. */
  refuse(number: number, { reason, retryAfterMs, sentence }: SessionRefusal): void {
    const interest = this.#interests.get(number)
    if (interest === undefined) return
    this.#forget(interest)
    this.#send({ kind: 'refused', interest: number, reason, retryAfterMs, sentence })
  }

  event(number: number, event: LinkEvent): void {
    const interest = this.#interests.get(number)
    if (interest === undefined) return
    if (interest.tell(event)) this.#sending.wake(interest)
    else this.#accept(interest, interest.invite())
    if (this.#sending.tally.bytes > this.#limits.waitingBytesMax) this.#relieve()
  }

  /** Every event of the source up to this version was told. */
  progress(source: number, version: number): void {
    if (this.#sources.has(source)) this.#sending.mark(source, version)
  }

  /** Documents of the cluster have changed. */
  signed(): void {
    if (this.#state === 'open' || this.#state === 'leaving') this.#welcome.tellSigns()
  }

  /** The cluster was put back: nothing up to this version is true any more, and every interest is compared. */
  lost(epoch: number, version: number): void {
    if (this.#state === 'closed') return
    this.#welcome.putBack(epoch, version)
    this.#confirmed.forget()
    if (this.#state === 'greeting') return
    this.#send({ kind: 'lost', interest: 0, epoch, version })
    for (const interest of this.#interests.values()) {
      interest.forgetPast()
      if (interest.view === undefined) continue
      this.#sending.forgetMark(interest.view.source)
      this.#accept(interest, interest.begin())
    }
  }

  /**
   * How far the API server was when it was asked, which was after `ahead`. What was given out before was no further, so an edge
   * that is has it from a past that no longer exists: it alone is told, and compares. Answers whether that is so. An edge that lies harms itself.
   */
  measured(number: number, version: number): boolean {
    const interest = this.#interests.get(number)
    if (interest?.phase !== 'waiting' || interest.claimed <= version) return false
    this.#send({ kind: 'lost', interest: number, epoch: this.#welcome.epoch, version: interest.claimed })
    interest.forgetPast()
    this.#accept(interest, interest.begin())
    return true
  }

  /** What policies say of the edge; it is told behind the welcome, or now. */
  terms(terms: LinkTerms): void {
    this.#welcome.terms = terms
    if (this.#state === 'open' || this.#state === 'leaving') this.#welcome.tellTerms()
  }

  /** The edge is asked to go elsewhere; the link ends when the time is over. */
  drain(withinMs: number, sentence: string, now: number): void {
    if (this.#state !== 'open' && this.#state !== 'leaving') return
    this.#state = 'leaving'
    this.#leaveAt = now + withinMs
    this.#send({ kind: 'drain', withinMs, sentence })
  }

  /** The link ends by the hub's own wish. */
  close(refusal: SessionRefusal): void {
    if (this.#state !== 'closed') this.#refuse(refusal)
  }

  #take(frame: LinkFrame, now: number): void {
    if (frame.kind === 'hello') this.#greet(frame)
    else if (frame.kind === 'subscribe') this.#subscribe(frame, now)
    else if (frame.kind === 'unsubscribe') for (const number of frame.interests) this.#unsubscribe(number)
    else if (frame.kind === 'compare') this.#compare(frame, now)
    else if (frame.kind === 'acknowledge') {
      if (!this.#sending.acknowledge(frame.position, frame.bulk, now))
        throw new LinkFault('acknowledges what was not sent')
      this.#confirmed.acknowledged(frame.position, !this.#sending.isWaiting)
    } else if (frame.kind === 'ping') this.#pinged = frame.number
    else if (frame.kind === 'pong') {
      if (frame.number > this.#liveness.number) throw new LinkFault('answers what was not asked')
    } else if (frame.kind === 'tunnel') this.#effects.push({ effect: 'tunnel', frame })
    else if (frame.kind === 'refused') this.#refused(frame)
  }

  #greet(hello: FrameFor<'hello'>): void {
    const isStreamPaced = hello.counts === 1 && this.#parts.areStreamsWaiting !== undefined
    const refusal = this.#welcome.greet(hello, isStreamPaced)
    if (refusal !== undefined) {
      this.#refuse(refusal)
      return
    }
    this.#state = 'open'
    this.release = hello.release
    this.#sending.window = hello.window
    this.isStreamPaced = isStreamPaced
  }

  #subscribe({ interests, epoch }: FrameFor<'subscribe'>, now: number): void {
    this.#labour.spend(interests.length, now)
    const parts = { tally: this.#sending.tally, confirmed: this.#confirmed, limits: this.#limits }
    for (const { interest: number, name, version, wish, partial, after } of interests) {
      if (number <= this.#lastNumber) throw new LinkFault(`interest ${number} is not a new one`)
      this.#lastNumber = number
      this.#nameBytes += name.length
      if (this.#interests.size >= this.#limits.interestsMax || this.#nameBytes > this.#limits.nameBytesTotalMax) {
        this.#refuse({
          reason: 'limit',
          retryAfterMs: this.#limits.busyRetryMs,
          sentence: 'more interests than a link may have',
        })
        return
      }
      const unfinished = partial > 0 ? { version: partial, after } : undefined
      const interest = new HubInterest(number, { name, version, wish, partial: unfinished }, parts)
      // It was sent before its edge had heard that the cluster was put back.
      if (epoch !== this.#welcome.epoch && (version > 0 || partial > 0)) interest.forgetPast()
      this.#interests.set(number, interest)
      this.#effects.push({ effect: 'open', interest: number, name })
    }
  }

  #unsubscribe(number: number): void {
    if (number > this.#lastNumber || number === 0) throw new LinkFault(`interest ${number} is unknown`)
    const interest = this.#interests.get(number)
    if (interest === undefined) return
    this.#forget(interest)
    this.#effects.push({ effect: 'release', interest: number })
  }

  #compare({ interest: number, version, request }: FrameFor<'compare'>, now: number): void {
    if (number > this.#lastNumber || number === 0) throw new LinkFault(`interest ${number} is unknown`)
    this.#labour.spend(Math.ceil(request.length / 64), now)
    const interest = this.#interests.get(number)
    // It has begun again, or has gone, while this was on its way.
    if (interest === undefined || interest.comparison !== version) return
    if (!this.#sending.ask({ interest, comparison: version, request }))
      this.#refuse({
        reason: 'limit',
        retryAfterMs: this.#limits.busyRetryMs,
        sentence: 'more comparisons than are answered',
      })
  }

  #refused({ interest, reason, retryAfterMs, sentence }: FrameFor<'refused'>): void {
    if (interest === 0) this.#close({ reason, retryAfterMs, sentence })
    else this.#unsubscribe(interest)
  }

  #accept(interest: HubInterest, start: InterestStart): void {
    this.#sending.abandon(interest)
    if (start === 'wait') this.#ahead.wait(interest)
    else this.#ahead.leave(interest)
    // Said before anything else is sent of it, with others that begin in the same turn.
    const { source } = interest.view as InterestView
    const entry = { interest: interest.number, source, start, version: interest.startVersion }
    sayAccepted(this.#effects, entry, this.#limits.batchEventsMax)
    this.#sending.wake(interest)
  }

  /** More waits than may: bases go first, then an interest is compared once its edge takes something. */
  #relieve(): void {
    while (this.#sending.tally.bytes > this.#limits.waitingBytesMax) {
      let largest: HubInterest | undefined
      for (const interest of this.#interests.values())
        if (interest.queue.bytes > (largest?.queue.bytes ?? 0)) largest = interest
      if (largest === undefined) return
      if (largest.phase === 'live') {
        largest.queue.forgetBases()
        if (this.#sending.tally.bytes <= this.#limits.waitingBytesMax / 2) return
      }
      this.#effects.push({ effect: 'log', what: 'link.behind', sentence: `${largest.name} is compared again` })
      this.#accept(largest, largest.phase === 'snapshot' ? largest.snapshot() : largest.invite())
    }
  }

  #forget(interest: HubInterest): void {
    this.#interests.delete(interest.number)
    this.#ahead.leave(interest)
    this.#sending.abandon(interest)
    this.#nameBytes -= interest.name.length
    interest.queue.clear()
    const source = interest.view?.source
    if (source === undefined) return
    const others = (this.#sources.get(source) ?? 1) - 1
    this.#sources.set(source, others)
    if (others > 0) return
    this.#sources.delete(source)
    this.#sending.forgetMark(source)
  }

  #flush(now: number): void {
    for (const interest of this.#ahead.all()) if (interest.mayBegin) this.#accept(interest, interest.begin())
    this.#ahead.look(now, this.#effects)
    try {
      this.#sending.flush(now)
    } catch (error) {
      if (!(error instanceof LinkFault)) throw error
      this.#refuse({ reason: 'frame', retryAfterMs: this.#limits.busyRetryMs, sentence: error.message })
    }
  }

  #look(now: number): void {
    if (now >= this.#leaveAt) {
      this.#close({ reason: 'drained', retryAfterMs: 0, sentence: 'the time to move is over' })
      return
    }
    const due = this.#liveness.due(this.#state === 'greeting' || this.#sending.isWaiting, now)
    if (due === 'dead') this.#close({ reason: 'silent', retryAfterMs: 0, sentence: 'no sign of life' })
    else if (due === 'ping' && this.#state !== 'greeting') this.#send({ kind: 'ping', number: this.#liveness.number })
  }

  #send(frame: LinkFrame): void {
    this.#effects.push({ effect: 'send', frame })
  }

  #refuse(refusal: SessionRefusal): void {
    this.#send({ kind: 'refused', interest: 0, ...refusal })
    this.#close(refusal)
  }

  #close(end: Omit<Extract<HubEffect, { effect: 'close' }>, 'effect'>): void {
    this.#state = 'closed'
    for (const interest of [...this.#interests.values()]) {
      this.#forget(interest)
      this.#effects.push({ effect: 'release', interest: interest.number })
    }
    this.#effects.push({ effect: 'close', ...end })
  }
}
