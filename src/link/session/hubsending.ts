/**
 * What goes out to one edge and when: events as far as its window has room, marks that pass no event, answers of comparisons and blocks
 * as far as bulk has room, and the word that an interest is complete. Whatever is not sent stays conflated in its interest.
 */
import { answerComparison } from '../digest/answer.ts'
import { LinkFault } from '../frames/bytes.ts'
import { encodeChange } from '../frames/change.ts'
import { changeBytesMax, type LinkFrame } from '../frames/frames.ts'
import type { WaitingChange, WaitingTally } from './conflation.ts'
import type { HubInterest, MadeBlock } from './hubinterest.ts'
import type { HubLabour } from './hublabour.ts'
import type { SessionLimits } from './limits.ts'
import { BulkPace } from './pace.ts'
import type { InterestView, LinkObject } from './session.ts'
import type { SharedChanges } from './sharedchanges.ts'

type OutgoingEvent = { readonly interest: number; readonly change: Buffer }
type Moving = { readonly interest: HubInterest; readonly block: MadeBlock; at: number }
type ComparisonAsked = { readonly interest: HubInterest; readonly comparison: number; readonly request: Buffer }
type SourceMark = { wanted: number; sent: number }

type Parts = {
  readonly changes: SharedChanges
  readonly limits: SessionLimits
  /** Bytes of objects that may be packed. */
  readonly packing: HubLabour
}

type Ways = {
  readonly send: (frame: LinkFrame) => void
  /** More differs than is found one by one: everything is sent instead. */
  readonly tooDifferent: (interest: HubInterest) => void
  /** Streams have something to be sent too. */
  readonly areStreamsWaiting: () => boolean
  /** It cannot be sent at all. */
  readonly impossible: (interest: HubInterest, sentence: string) => void
}

export class HubSending {
  readonly tally: WaitingTally = { bytes: 0 }
  readonly #limits: SessionLimits
  readonly #changes: SharedChanges
  readonly #ways: Ways
  readonly #pace: BulkPace
  readonly #packing: HubLabour
  readonly #busy = new Set<HubInterest>()
  readonly #marks = new Map<number, SourceMark>()
  /** One of them is further than what was sent: most events come between marks, which come once a minute. */
  #isMarkDue = false
  #window = 0
  #position = 0
  #acknowledged = 0
  /** Frames of events that are not acknowledged. */
  #frames: { readonly position: number; readonly bytes: number }[] = []
  #unacknowledged = 0
  /** What waits first did not fit: nothing is packed until something is acknowledged. */
  #isFull = false
  #moving: Moving | undefined
  #requests: ComparisonAsked[] = []
  /** While blocks and streams both have something to be sent: by how many bytes blocks had more of the line. */
  #lead = 0
  /** When a block may be packed that waits for nothing else. */
  #packsAt = Number.POSITIVE_INFINITY

  constructor({ changes, limits, packing }: Parts, ways: Ways) {
    this.#limits = limits
    this.#packing = packing
    this.#pace = new BulkPace(limits)
    this.#changes = changes
    this.#ways = ways
  }

  set window(bytes: number) {
    this.#window = Math.min(bytes, this.#limits.windowWanted)
  }

  /** Events that are not acknowledged. */
  get behind(): number {
    return this.#position - this.#acknowledged
  }

  /** The edge owes an acknowledgement. */
  get isWaiting(): boolean {
    return this.#acknowledged < this.#position || this.#pace.isLate
  }

  /** Bytes that are held for this edge: what waits for it, a block, and requests. */
  get heldBytes(): number {
    const requests = this.#requests.reduce((sum, { request }) => sum + request.length, 0)
    return this.tally.bytes + (this.#moving?.block.bytes.length ?? 0) + requests + this.#frames.length * 16
  }

  /** When `flush` is due if nothing else happens. */
  get nextTick(): number {
    return this.#packsAt
  }

  get bulkLimit(): number {
    return this.#pace.limit
  }

  /** How much of streams may be sent now: their half of what bulk may have on its way, all of it where there are no blocks. */
  streamRoom(now: number): number {
    return this.#lead < 0 && this.#hasBlock ? 0 : this.#pace.room(now)
  }

  /** So much of streams is sent now. */
  streamed(bytes: number, now: number): void {
    this.#lead = this.#hasBlock ? this.#lead - bytes : 0
    this.#pace.send(bytes, now, false)
  }

  /** Of which something can be sent once there is room. */
  get #hasBlock(): boolean {
    if (this.#moving !== undefined) return true
    if (this.#packsAt < Number.POSITIVE_INFINITY) return false
    for (const interest of this.#busy) if (interest.hasBlock) return true
    return false
  }

  wake(interest: HubInterest): void {
    if (interest.isBusy) this.#busy.add(interest)
  }

  /** What was being sent of it is not: it begins again, or is gone. */
  abandon(interest: HubInterest): void {
    this.#busy.delete(interest)
    if (this.#moving?.interest === interest) this.#moving = undefined
    this.#requests = this.#requests.filter((request) => request.interest !== interest)
  }

  mark(source: number, version: number): void {
    const known = this.#marks.get(source)
    if (known === undefined) this.#marks.set(source, { wanted: version, sent: 0 })
    else known.wanted = Math.max(known.wanted, version)
    this.#isMarkDue = true
  }

  /** No interest of it is left, or its past is not. */
  forgetMark(source: number): void {
    this.#marks.delete(source)
  }

  /** False if there are more than an edge may have waiting. */
  ask(asked: ComparisonAsked): boolean {
    this.#requests.push(asked)
    return this.#requests.length <= this.#limits.requestsWaitingMax
  }

  /** False if so much was never sent. */
  acknowledge(position: number, bulk: number, now: number): boolean {
    if (position < this.#acknowledged || position > this.#position) return false
    this.#acknowledged = position
    let done = 0
    for (const frame of this.#frames) {
      if (frame.position > position) break
      this.#unacknowledged -= frame.bytes
      done++
    }
    if (done > 0) this.#frames.splice(0, done)
    this.#isFull = false
    return this.#pace.acknowledge(bulk, now)
  }

  flush(now: number): void {
    this.#sendEvents()
    this.#answer(now)
    this.#sendBulk(now)
    this.#complete()
    this.#sendMarks()
  }

  #sendEvents(): void {
    while (this.#busy.size > 0 && !this.#isFull && this.#frames.length < this.#limits.framesOnTheWayMax) {
      const events: OutgoingEvent[] = []
      let bytes = 0
      for (const interest of [...this.#busy]) {
        const taken = this.#take(interest, events, bytes)
        bytes += taken
        // An interest that had a turn is the last to have the next one.
        if (taken > 0 && this.#busy.delete(interest) && interest.isBusy) this.#busy.add(interest)
      }
      if (events.length === 0) return
      this.#send(events, bytes)
    }
  }

  #send(events: readonly OutgoingEvent[], bytes: number): void {
    this.#position += events.length
    this.#unacknowledged += bytes
    this.#frames.push({ position: this.#position, bytes })
    this.#ways.send({ kind: 'events', position: this.#position, events })
  }

  /** Of a change that came as a block: it is so small that it need not fit the window. */
  #sendEvent(event: OutgoingEvent): void {
    this.#send([event], event.change.length + this.#limits.eventOverheadBytes)
  }

  /** Moves what fits into the frame; how many bytes that was. */
  #take(interest: HubInterest, events: OutgoingEvent[], before: number): number {
    let bytes = 0
    while (interest.isTelling) {
      const first = interest.queue.first()
      if (first === undefined) break
      const change = this.#encode(interest, first)
      if (change === undefined) break
      if (change === 'large' || change.length > this.#limits.batchBytes) {
        interest.largeIsDue()
        break
      }
      const more = change.length + this.#limits.eventOverheadBytes
      if (!this.#hasRoom(before + bytes, more, events.length)) {
        this.#isFull ||= before + bytes === 0
        break
      }
      interest.queue.take()
      interest.sent(first.version)
      events.push({ interest: interest.number, change })
      bytes += more
    }
    return bytes
  }

  #hasRoom(inFrame: number, more: number, events: number): boolean {
    if (inFrame === 0) return this.#unacknowledged === 0 || this.#unacknowledged + more <= this.#window
    if (inFrame + more > this.#limits.batchBytes || events >= this.#limits.batchEventsMax) return false
    return this.#unacknowledged + inFrame + more <= this.#window
  }

  #encode(interest: HubInterest, waiting: WaitingChange): Buffer | 'large' | undefined {
    const change = interest.changeOf(waiting)
    const { item, held } = waiting
    try {
      if (change.type === 'remove') return encodeChange(change, changeBytesMax)
      return this.#changes.put(item as LinkObject, held ?? this.#like(interest, change.key))
    } catch (error) {
      if (!(error instanceof LinkFault)) throw error
      this.#ways.impossible(interest, error.message)
      return undefined
    }
  }

  /** Another object that the edge holds as it is here: nothing of it waits. */
  #like({ canResemble, view, queue }: HubInterest, key: string) {
    const near = canResemble ? view?.near(key) : undefined
    return near === undefined || near.key === key || queue.has(near.key) ? undefined : near
  }

  /** Only while little waits: what an answer finds has to be sent first. */
  #answer(now: number): void {
    while (this.#requests[0] !== undefined) {
      const { interest, comparison, request } = this.#requests[0]
      const room = this.tally.bytes <= this.#limits.waitingBytesMax / 2 && this.#pace.hasRoom(now)
      if (!room) return
      this.#requests.shift()
      if (interest.comparison !== comparison || !['invited', 'walking'].includes(interest.phase)) continue
      interest.asked(request.length === 0)
      if (request.length > 0) this.#answerOne(interest, request, now)
      this.wake(interest)
    }
  }

  #answerOne(interest: HubInterest, request: Buffer, now: number): void {
    const view = interest.view as InterestView
    const { answer, differing } = answerComparison(view.digest, request)
    if (differing.length > this.#limits.differingMax) {
      this.#ways.tooDifferent(interest)
      return
    }
    for (const key of differing) {
      const item = view.get(key)
      if (item !== undefined) interest.queue.want(item)
    }
    this.#pace.send(answer.length, now)
    const { number, comparison } = interest
    this.#ways.send({ kind: 'compared', interest: number, version: comparison, answer })
  }

  #sendBulk(now: number): void {
    for (;;) {
      this.#moving ??= this.#nextBlock(now)
      if (this.#moving === undefined) return
      const { interest, block, at } = this.#moving
      const share = this.#pace.share(Math.min(this.#limits.pieceBytes, block.bytes.length - at), now)
      const areStreamsWaiting = this.#ways.areStreamsWaiting()
      if (share === 0 || (areStreamsWaiting && this.#lead > 0)) return
      this.#lead = areStreamsWaiting ? this.#lead + share : 0
      const piece = block.bytes.subarray(at, at + share)
      this.#pace.send(piece.length, now)
      const { version, after, bytes } = block
      const frame = { version, after, size: bytes.length, offset: at, piece }
      this.#ways.send({ kind: 'block', interest: interest.number, ...frame })
      this.#moving.at += piece.length
      if (this.#moving.at < bytes.length) continue
      this.#moving = undefined
      if (block.event !== undefined) this.#sendEvent({ interest: interest.number, change: block.event })
      interest.blockSent()
      this.#complete()
      // What waited behind a large change may follow it.
      if (block.event !== undefined) this.#sendEvents()
    }
  }

  /** Of the interests that have one, in turn; packed once there is room for it, and not for an edge that had more packed than it may. */
  #nextBlock(now: number): Moving | undefined {
    this.#packsAt = Number.POSITIVE_INFINITY
    if (!this.#pace.hasRoom(now)) return undefined
    for (const interest of this.#busy) {
      if (!interest.hasBlock) continue
      if (this.#packing.draw(0, now) < 0) {
        this.#packsAt = this.#packing.earnedAt
        return undefined
      }
      try {
        const block = interest.nextBlock()
        if (block === undefined) continue
        this.#packing.draw(block.packedBytes, now)
        this.#busy.delete(interest)
        this.#busy.add(interest)
        return { interest, block, at: 0 }
      } catch (error) {
        if (!(error instanceof LinkFault)) throw error
        this.#ways.impossible(interest, error.message)
      }
    }
    return undefined
  }

  #complete(): void {
    for (const interest of this.#busy) {
      if (this.#moving?.interest === interest) continue
      const complete = interest.takeComplete()
      if (complete !== undefined) this.#ways.send({ kind: 'complete', interest: interest.number, ...complete })
      if (!interest.isBusy) this.#busy.delete(interest)
    }
  }

  #marked(interest: HubInterest, version: number): void {
    if (interest.phase === 'live') interest.sent(version)
    if (!interest.isBusy) this.#busy.delete(interest)
  }

  /** Once for each source, and never past an event of it that was not sent. */
  #sendMarks(): void {
    if (!this.#isMarkDue) return
    this.#isMarkDue = false
    const marks: { source: number; version: number }[] = []
    for (const [source, mark] of this.#marks) {
      if (mark.wanted <= mark.sent) continue
      if (marks.length === this.#limits.batchEventsMax) {
        this.#isMarkDue = true
        continue
      }
      const concerned = [...this.#busy].filter((interest) => interest.view?.source === source)
      let version = mark.wanted
      // What one interest takes off may bring the mark to where it may not stand for another.
      for (let before = -1; before !== version; ) {
        before = version
        for (const interest of concerned) version = interest.markUpTo(version)
      }
      if (version < mark.wanted) this.#isMarkDue = true
      if (version <= mark.sent) continue
      mark.sent = version
      marks.push({ source, version })
      for (const interest of concerned) this.#marked(interest, version)
    }
    if (marks.length > 0) this.#ways.send({ kind: 'progress', marks })
  }
}
