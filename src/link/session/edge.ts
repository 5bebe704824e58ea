/**
 * The edge's side of one link. Frames about interests are taken in the order they came, as far as what was handed over before
 * is committed (`uncommittedBytesMax`); until then they wait as they are. What does not fit the copy makes its interest
 * astray, what does not fit the protocol closes the link (L8).
 */
import type { DigestTree } from '../digest/digest.ts'
import { LinkFault } from '../frames/bytes.ts'
import { type LinkFrame, newestProtocol, oldestProtocol } from '../frames/frames.ts'
import { EdgeInterest, type InterestHeld } from './edgeinterest.ts'
import { EdgeTaking } from './edgetaking.ts'
import { type SessionLimits, sessionLimits } from './limits.ts'
import { Liveness, nextKeepalive } from './liveness.ts'
import { OwedAnswers } from './owedanswers.ts'
import type { EdgeEffect, RefusalReason } from './session.ts'
import { edgeTakes, type SessionState } from './table.ts'

export type EdgeSessionParts = {
  readonly edge: string
  readonly release: string
  /** The cluster that the copy is of, and its epoch; '' where there is no copy. */
  readonly cluster: string
  readonly epoch: number
  /** What the other side may not be silent for on an idle link (`nextKeepalive`). */
  readonly keepaliveMs: number
  /** What the copy will have of a key when everything that was handed over is committed. */
  readonly held: (interest: number, key: string) => Buffer | undefined
  /** Whether a caller waits for the answer to a request over streams, of which nothing came yet: the hub is asked for signs of life meanwhile. */
  readonly isAwaiting?: () => boolean
  readonly now: number
  readonly limits?: SessionLimits
}

type LinkEnding = {
  readonly reason: RefusalReason | 'silent'
  readonly retryAfterMs: number
  readonly sentence: string
}

/** Of names in one frame: as many as surely fit. */
const subscribeBytesMax = 32 * 1024
const subscribeEntriesMax = 1_024

export class EdgeSession {
  readonly #parts: EdgeSessionParts
  readonly #liveness: Liveness
  readonly #interests = new Map<number, EdgeInterest>()
  readonly #taking: EdgeTaking
  readonly #owed: OwedAnswers
  #effects: EdgeEffect[] = []
  #state: SessionState = 'greeting'
  #lastNumber = 0
  #leaving: number[] = []
  #isSilent = false
  /** When the last ping went out. */
  #pingedAt = Number.NEGATIVE_INFINITY
  #freshAt = Number.NEGATIVE_INFINITY

  constructor(parts: EdgeSessionParts) {
    this.#parts = parts
    this.#liveness = new Liveness(parts.keepaliveMs, parts.now)
    const limits = parts.limits ?? sessionLimits
    this.#taking = new EdgeTaking(parts, limits, (effect) => this.#effects.push(effect))
    this.#owed = new OwedAnswers(limits, parts.isAwaiting ?? (() => false))
    const { edge, release, cluster, epoch } = parts
    const window = limits.windowWanted
    this.#send({
      ...{ kind: 'hello', oldest: oldestProtocol, newest: newestProtocol },
      ...{ edge, release, cluster, epoch, window, counts: 1 },
    })
  }

  get state(): SessionState {
    return this.#state
  }

  /** When `tick` is due if nothing else happens. */
  get nextTick(): number {
    return Math.min(this.#liveness.next(), this.#owed.next())
  }

  /** What the next link should keep alive by: a path that forgot this one while it was idle is asked more often. */
  nextKeepaliveMs(now: number): number {
    const { keepaliveMs, now: began } = this.#parts
    return nextKeepalive(keepaliveMs, { isSilent: this.#isSilent, livedMs: now - began })
  }

  /** When something of what is told was what the cluster had, or the hub was there where nothing is, by the clock of this side. */
  get freshAt(): number {
    return this.#freshAt
  }

  /** When all of an interest was what the cluster had, and told. */
  freshAtOf(number: number): number {
    return this.#interests.get(number)?.freshAt ?? Number.NEGATIVE_INFINITY
  }

  /** What waits in memory for the copy. */
  get heldBytes(): number {
    return this.#taking.heldBytes
  }

  receive(frame: LinkFrame, now: number): readonly EdgeEffect[] {
    if (this.#state === 'closed') return []
    this.#liveness.heard(now)
    this.#guarded(() => {
      if (!edgeTakes[this.#state].includes(frame.kind)) throw new LinkFault(`${frame.kind} while ${this.#state}`)
      this.#take(frame, now)
    })
    return this.tick(now)
  }

  /** Some bytes have come that are no whole frame yet. */
  heard(now: number): void {
    this.#liveness.heard(now)
  }

  tick(now: number): readonly EdgeEffect[] {
    if (this.#state === 'open' || this.#state === 'leaving') {
      this.#guarded(() => this.#taking.work())
      this.#subscribeWanted()
      this.#taking.acknowledge()
    }
    if (this.#state !== 'closed') this.#look(now)
    const effects = this.#effects
    this.#effects = []
    return effects
  }

  /** The number of the interest in all that is told of it; numbers go up, and none is used twice. */
  subscribe(name: string, held: InterestHeld): number {
    const number = ++this.#lastNumber
    this.#interests.set(number, new EdgeInterest(number, name, held))
    return number
  }

  unsubscribe(number: number): void {
    const interest = this.#interests.get(number)
    if (interest === undefined) return
    this.#interests.delete(number)
    this.#taking.forget(interest)
    if (interest.phase !== 'wanted') this.#leaving.push(number)
  }

  /** It begins again: the copy has not the root it should have, a change did not fit, or it is looked after from time to time (L6). */
  restart(number: number, held: InterestHeld): number {
    const name = this.#interests.get(number)?.name
    if (name === undefined) throw new Error(`interest ${number} is unknown`)
    this.unsubscribe(number)
    return this.subscribe(name, held)
  }

  /** Everything that was handed over up to this position is on the disk. */
  committed(position: number): void {
    this.#taking.committed(position)
  }

  /** The answer to `compare`. The tree does not change until the interest is whole, or begins again. */
  walk(number: number, comparison: number, tree: DigestTree): void {
    const interest = this.#interests.get(number)
    if (interest?.phase === 'comparing' && interest.comparison === comparison && interest.walkState === 'treeless')
      interest.take(tree)
  }

  /** So much of streams is sent now. */
  streamed(bytes: number, now: number): void {
    this.#owed.sent(bytes, now)
  }

  /** Whether the hub is there is to be asked with the next `tick`, however idle the link is. */
  ask(): void {
    if (this.#state === 'open' || this.#state === 'leaving') this.#liveness.want()
  }

  /** The link ends by the edge's own wish. */
  close(sentence: string): void {
    if (this.#state !== 'closed') this.#refuse({ reason: 'other', retryAfterMs: 0, sentence })
  }

  #take(frame: LinkFrame, now: number): void {
    if (frame.kind === 'welcome') this.#welcome(frame)
    else if (frame.kind === 'ping') this.#send({ kind: 'pong', number: frame.number, ageMs: 0, stale: [] })
    else if (frame.kind === 'pong') {
      if (frame.number > this.#liveness.number) throw new LinkFault('answers what was not asked')
      if (frame.number === this.#liveness.number) this.#answered(frame, now)
    } else if (frame.kind === 'drain') {
      this.#state = 'leaving'
      this.#effects.push({ effect: 'move', withinMs: frame.withinMs, sentence: frame.sentence })
    } else if (frame.kind === 'terms') this.#effects.push({ ...frame, effect: 'terms', trusts: frame.trusts === 1 })
    else if (frame.kind === 'documents') this.#effects.push({ effect: 'documents', signs: frame.signs })
    else if (frame.kind === 'refused' && frame.interest === 0)
      this.#close({ reason: frame.reason, retryAfterMs: frame.retryAfterMs, sentence: frame.sentence })
    else if (this.#state === 'greeting') throw new LinkFault('refuses an interest while greeting')
    else this.#taking.put(frame)
  }

  #answered({ ageMs, stale }: Extract<LinkFrame, { kind: 'pong' }>, now: number): void {
    this.#owed.answered(now)
    this.#freshen(this.#pingedAt - ageMs, new Set(stale))
  }

  #freshen(at: number, stale: ReadonlySet<number>): void {
    const live = [...this.#interests.values()].filter(({ phase }) => phase === 'live')
    const fresh = live.filter(({ number }) => !stale.has(number))
    for (const interest of fresh) interest.freshAt = Math.max(interest.freshAt, at)
    if (fresh.length > 0 || live.length === 0) this.#freshAt = Math.max(this.#freshAt, at)
  }

  #welcome(frame: Extract<LinkFrame, { kind: 'welcome' }>): void {
    const { protocol, hub, cluster, epoch, digestKey, trusts, counts } = frame
    if (protocol < oldestProtocol || protocol > newestProtocol) throw new LinkFault(`protocol ${protocol}`)
    if (this.#parts.cluster !== '' && this.#parts.cluster !== cluster) {
      this.#refuse({ reason: 'cluster', retryAfterMs: 0, sentence: `the hub is of cluster ${cluster}` })
      return
    }
    if (this.#parts.cluster !== '' && epoch < this.#taking.epoch) {
      const sentence = `the hub has not heard yet of epoch ${this.#taking.epoch}`
      this.#refuse({ reason: 'busy', retryAfterMs: sessionLimits.busyRetryMs, sentence })
      return
    }
    if (this.#parts.cluster === '') this.#taking.epoch = epoch
    this.#taking.countsStreams = counts === 1
    this.#state = 'open'
    this.#effects.push({ effect: 'welcomed', hub, cluster, epoch, digestKey, trustsEdges: trusts === 1 })
  }

  /** In few frames. */
  #subscribeWanted(): void {
    for (let at = 0; at < this.#leaving.length; at += subscribeEntriesMax)
      this.#send({ kind: 'unsubscribe', interests: this.#leaving.slice(at, at + subscribeEntriesMax) })
    this.#leaving = []
    type Entry = Extract<LinkFrame, { kind: 'subscribe' }>['interests'][number]
    let entries: Entry[] = []
    let bytes = 0
    const flush = () => {
      if (entries.length > 0) this.#send({ kind: 'subscribe', interests: entries, epoch: this.#taking.epoch })
      entries = []
      bytes = 0
    }
    for (const interest of this.#interests.values()) {
      if (interest.phase !== 'wanted') continue
      interest.subscribe(this.#taking.epoch)
      const { version, wish, partial } = interest.held
      this.#taking.add(interest)
      const { number, name } = interest
      entries.push({
        ...{ interest: number, name, version, wish },
        ...{ partial: partial?.version ?? 0, after: partial?.after ?? '' },
      })
      bytes += 3 * (name.length + (partial?.after.length ?? 0)) + 32
      if (bytes > subscribeBytesMax || entries.length === subscribeEntriesMax) flush()
    }
    flush()
  }

  #look(now: number): void {
    const isOwed = this.#owed.isOwed(now)
    const due = this.#liveness.due(this.#state === 'greeting' || this.#taking.isWaiting || isOwed, now)
    if (due === 'dead') this.#close({ reason: 'silent', retryAfterMs: 0, sentence: 'no sign of life' })
    else if (due === 'ping' && this.#state !== 'greeting') {
      this.#pingedAt = now
      this.#owed.pinged()
      this.#send({ kind: 'ping', number: this.#liveness.number })
    }
  }

  #guarded(run: () => void): void {
    try {
      run()
    } catch (error) {
      if (!(error instanceof LinkFault)) throw error
      this.#refuse({ reason: 'frame', retryAfterMs: sessionLimits.busyRetryMs, sentence: error.message })
    }
  }

  #send(frame: LinkFrame): void {
    this.#effects.push({ effect: 'send', frame })
  }

  #refuse(ending: LinkEnding & { readonly reason: RefusalReason }): void {
    this.#send({ kind: 'refused', interest: 0, ...ending })
    this.#close(ending)
  }

  #close(ending: LinkEnding): void {
    this.#state = 'closed'
    this.#isSilent = ending.reason === 'silent'
    this.#effects.push({ effect: 'close', ...ending })
  }
}
