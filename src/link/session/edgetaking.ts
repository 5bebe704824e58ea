/**
 * What an edge does with the frames about its interests, in their order: it unpacks changes against what is held, puts
 * blocks together, walks comparisons, and hands everything over. Frames of an interest that was given up are passed over: the hub
 * had not heard of it.
 */
import { decodeDelta, WrongBase } from '../delta.ts'
import { LinkFault } from '../frames/bytes.ts'
import { decodeChange, type LinkChange } from '../frames/change.ts'
import type { LinkFrame } from '../frames/frames.ts'
import { BlockAssembly } from './assembly.ts'
import type { BlockContent } from './block.ts'
import type { EdgeInterest } from './edgeinterest.ts'
import type { SessionLimits } from './limits.ts'
import type { EdgeEffect, PartialSnapshot, ReceivedChange, StagedChange } from './session.ts'

type FrameAt<Kind extends LinkFrame['kind']> = Extract<LinkFrame, { readonly kind: Kind }>
type Held = (interest: number, key: string) => Buffer | undefined

export class EdgeTaking {
  /** The epoch of what was taken last. */
  epoch: number
  /** The hub wants bytes of streams acknowledged too. */
  countsStreams = false
  readonly #held: Held
  readonly #limits: SessionLimits
  readonly #tell: (effect: EdgeEffect) => void
  readonly #interests = new Map<number, EdgeInterest>()
  #lastNumber = 0
  readonly #inbox: { readonly frame: LinkFrame; readonly bytes: number }[] = []
  #inboxBytes = 0
  readonly #assembly = new BlockAssembly()
  /** What a block brought, until its event says where it belongs. */
  #large: ReceivedChange | undefined
  /** Of the frame of events that is being taken: how many of it were. */
  #taken = 0
  /** Handed over, committed and acknowledged. */
  #handed = 0
  #committed = 0
  #acknowledged = 0
  /** Bytes of bulk: received, and acknowledged. */
  #bulk = 0
  #bulkAcknowledged = 0
  /** Some of it was not of streams, and is acknowledged however little it is. */
  #isPrompt = false
  /** What is not committed: of events as they came, and of changes as they were handed over. */
  #frames: { readonly position: number; readonly bytes: number }[] = []
  #uncommitted: { readonly position: number; readonly bytes: number }[] = []

  constructor(
    { held, epoch }: { readonly held: Held; readonly epoch: number },
    limits: SessionLimits,
    tell: (effect: EdgeEffect) => void,
  ) {
    this.#held = held
    this.epoch = epoch
    this.#limits = limits
    this.#tell = tell
  }

  get isWaiting(): boolean {
    for (const interest of this.#interests.values()) if (interest.isWaiting) return true
    return false
  }

  get heldBytes(): number {
    return this.#inboxBytes + this.#assembly.bytes + sum(this.#uncommitted)
  }

  add(interest: EdgeInterest): void {
    this.#interests.set(interest.number, interest)
    this.#lastNumber = interest.number
  }

  forget(interest: EdgeInterest): void {
    this.#interests.delete(interest.number)
    this.#dropBlock(interest.number)
  }

  #dropBlock(interest: number): void {
    this.#assembly.drop(interest)
    if (this.#large?.interest === interest) this.#large = undefined
  }

  put(frame: LinkFrame): void {
    const bytes = bytesOf(frame, this.#limits)
    if (frame.kind === 'events') this.#expect(frame, bytes)
    this.#inbox.push({ frame, bytes })
    this.#inboxBytes += bytes
    if (this.#inboxBytes > this.#limits.inboxBytesMax) throw new LinkFault('sends more than was asked for')
  }

  /** As much as the copy keeps up with. */
  work(): void {
    for (let first = this.#inbox[0]; first !== undefined && this.#hasRoom; first = this.#inbox[0]) {
      if (!this.#take(first.frame)) return
      this.#inbox.shift()
      this.#inboxBytes -= first.bytes
    }
    this.#walkOn()
  }

  committed(position: number): void {
    if (position > this.#handed) throw new Error(`position ${position} was not handed over`)
    this.#committed = Math.max(this.#committed, position)
    this.#frames = this.#frames.filter((frame) => frame.position > position)
    this.#uncommitted = this.#uncommitted.filter((part) => part.position > position)
  }

  acknowledge(): void {
    const bulk = this.#hasRoom ? this.#bulk : this.#bulkAcknowledged
    const unsaid = bulk - this.#bulkAcknowledged
    const isBulkDue = unsaid >= this.#limits.unsaidBytes || (this.#isPrompt && unsaid > 0)
    if (this.#committed === this.#acknowledged && !isBulkDue) return
    if (unsaid > 0) this.#isPrompt = false
    this.#acknowledged = this.#committed
    this.#bulkAcknowledged = bulk
    this.#tell({ effect: 'send', frame: { kind: 'acknowledge', position: this.#committed, bulk } })
  }

  get #hasRoom(): boolean {
    return sum(this.#uncommitted) <= this.#limits.uncommittedBytesMax
  }

  /** Nothing is left out, nothing comes twice, and no more than the window. */
  #expect({ position, events }: FrameAt<'events'>, bytes: number): void {
    if (events.length === 0 || this.#frames.length >= 2 * this.#limits.framesOnTheWayMax)
      throw new LinkFault('events of no use')
    this.#frames.push({ position, bytes })
    if (this.#frames.length > 1 && sum(this.#frames) > this.#limits.windowWanted)
      throw new LinkFault('more than the window')
  }

  /** False where it has to be gone on with later. */
  #take(frame: LinkFrame): boolean {
    if (frame.kind === 'events') return this.#events(frame)
    if (frame.kind === 'accepted') for (const entry of frame.interests) this.#accepted(entry)
    else if (frame.kind === 'block') this.#block(frame)
    else if (frame.kind === 'complete') this.#complete(frame)
    else if (frame.kind === 'progress') for (const mark of frame.marks) this.#progress(mark)
    else if (frame.kind === 'compared') this.#compared(frame)
    else if (frame.kind === 'lost') this.#lost(frame)
    else if (frame.kind === 'refused') this.#refused(frame)
    else if (frame.kind === 'tunnel') this.#carry(frame)
    return true
  }

  #carry(frame: FrameAt<'tunnel'>): void {
    if (this.countsStreams) this.#bulk += frame.payload.length
    this.#tell({ effect: 'tunnel', frame })
  }

  #received(bytes: number): void {
    this.#bulk += bytes
    this.#isPrompt = true
  }

  /** Undefined for one that was given up, or is astray. */
  #interestOf(number: number): EdgeInterest | undefined {
    if (number === 0 || number > this.#lastNumber) throw new LinkFault(`interest ${number} is unknown`)
    const interest = this.#interests.get(number)
    return interest?.phase === 'astray' ? undefined : interest
  }

  #accepted(entry: FrameAt<'accepted'>['interests'][number]): void {
    const interest = this.#interestOf(entry.interest)
    if (interest === undefined) return
    this.#dropBlock(interest.number)
    const resumes = interest.begin(entry.start, entry.version, entry.source)
    const { number, comparison } = interest
    this.#tell({ effect: 'begins', interest: number, start: entry.start, resumes })
    if (entry.start === 'compare') this.#tell({ effect: 'compare', interest: number, comparison })
  }

  #events({ position, events }: FrameAt<'events'>): boolean {
    if (position - events.length !== this.#handed - this.#taken) throw new LinkFault('events that do not follow')
    const changes: ReceivedChange[] = []
    let bytes = 0
    while (this.#taken < events.length && bytes <= this.#limits.uncommittedBytesMax) {
      const event = events[this.#taken] as (typeof events)[number]
      this.#taken++
      this.#handed++
      const interest = this.#interestOf(event.interest)
      if (interest === undefined) continue
      const change = this.#read(interest, decodeChange(event.change), changes)
      if (change === undefined) continue
      bytes += this.#limits.waitingOverheadBytes + (change.type === 'put' ? change.bytes.length : 0)
      changes.push(change)
    }
    this.#handOver(changes, bytes)
    if (this.#taken < events.length) return false
    this.#taken = 0
    return true
  }

  #handOver(changes: readonly ReceivedChange[], bytes: number): void {
    this.#uncommitted.push({ position: this.#handed, bytes })
    this.#tell({ effect: 'commit', position: this.#handed, changes })
  }

  /** Undefined where it does not fit what is held: then nothing more of the interest is taken. */
  #read(interest: EdgeInterest, change: LinkChange, before: readonly ReceivedChange[]): ReceivedChange | undefined {
    const { number } = interest
    if (interest.phase !== 'live') throw new LinkFault(`an event of an interest that is ${interest.phase}`)
    if (change.version < interest.version) throw new LinkFault('a version that went back')
    const { key, version } = change
    if (change.type === 'remove') {
      interest.version = version
      // Hubs of older releases sent a removal as a block too, where it stood in place of a large change.
      if (this.#large?.interest === number) this.#large = undefined
      return { interest: number, type: 'remove', key, version }
    }
    if (change.base === '' && change.delta.length === 0) {
      interest.version = version
      return this.#takeLarge(interest, change)
    }
    const base = change.base === '' ? undefined : this.#baseOf(number, change.base, before)
    if (change.base !== '' && base === undefined) return this.#astray(interest, `${change.base} is not held`)
    try {
      const bytes = decodeDelta(change.delta, base)
      interest.version = version
      return { interest: number, type: 'put', key, version, bytes }
    } catch (error) {
      if (!(error instanceof WrongBase)) throw error
      return this.#astray(interest, `${change.base} is held otherwise`)
    }
  }

  /** What was read in the same turn is not handed over yet. */
  #baseOf(interest: number, key: string, before: readonly ReceivedChange[]): Buffer | undefined {
    const last = before.findLast((change) => change.key === key && change.interest === interest)
    if (last === undefined) return this.#held(interest, key)
    return last.type === 'put' ? last.bytes : undefined
  }

  #astray(interest: EdgeInterest, sentence: string): undefined {
    interest.phase = 'astray'
    this.#dropBlock(interest.number)
    this.#tell({ effect: 'astray', interest: interest.number, sentence })
  }

  #block(frame: FrameAt<'block'>): void {
    this.#received(frame.piece.length)
    const interest = this.#interestOf(frame.interest)
    if (interest === undefined) return
    const block = this.#assembly.add(frame)
    if (block === undefined) return
    const { of, changes } = block
    const last = changes.at(-1)
    if (last === undefined || (of === 'event' && changes.length > 1)) throw new LinkFault('a block of no use')
    if (of === 'event') this.#keep(interest, last)
    else
      this.#stage(interest, of, changes, { version: frame.version, after: of === 'objects' ? last.key : frame.after })
  }

  #stage(
    { number, phase }: EdgeInterest,
    of: BlockContent,
    changes: readonly StagedChange[],
    resume: PartialSnapshot,
  ): void {
    if (phase !== 'snapshot' && (phase !== 'comparing' || of === 'objects'))
      throw new LinkFault(`a block of ${of} of an interest that is ${phase}`)
    this.#tell({ effect: 'stage', interest: number, changes, resume: phase === 'snapshot' ? resume : undefined })
  }

  /** The event that says its place among the others follows at once. */
  #keep({ number, phase }: EdgeInterest, change: StagedChange): void {
    if (phase !== 'live' || this.#large !== undefined) throw new LinkFault(`a large event while ${phase}`)
    this.#large = { ...change, interest: number }
  }

  #takeLarge({ number }: EdgeInterest, { key, version }: LinkChange): ReceivedChange {
    const large = this.#large
    this.#large = undefined
    if (large?.interest !== number || large.key !== key || large.version !== version)
      throw new LinkFault('an event of a block that did not come')
    return large
  }

  #complete({ interest: number, version, root }: FrameAt<'complete'>): void {
    const interest = this.#interestOf(number)
    if (interest === undefined) return
    const { phase, gone, walkState } = interest
    if (phase === 'live') {
      if (version < interest.version) throw new LinkFault('a version that went back')
      interest.version = version
      this.#tell({ effect: 'check', interest: number, version, root })
      return
    }
    if (phase !== 'snapshot' && !(phase === 'comparing' && walkState === 'done'))
      throw new LinkFault(`complete while ${phase}`)
    // An edge is never rolled back (L7).
    if (version < interest.version) throw new LinkFault('a version that went back')
    interest.phase = 'live'
    interest.version = version
    const of = phase === 'snapshot' ? 'snapshot' : 'difference'
    this.#tell({ effect: 'whole', interest: number, of, version, root, gone })
  }

  #progress({ source, version }: FrameAt<'progress'>['marks'][number]): void {
    for (const interest of this.#interests.values()) {
      if (interest.phase !== 'live' || interest.source !== source || version <= interest.version) continue
      interest.version = version
      this.#tell({ effect: 'synced', interest: interest.number, version })
    }
  }

  #compared({ interest: number, version, answer }: FrameAt<'compared'>): void {
    this.#received(answer.length)
    const interest = this.#interestOf(number)
    if (interest === undefined || interest.comparison !== version) return
    if (interest.phase !== 'comparing' || interest.walkState !== 'asking')
      throw new LinkFault('answers what was not asked')
    this.#compare(interest, interest.ask(answer))
  }

  #compare({ number, comparison }: EdgeInterest, request: Buffer): void {
    this.#tell({ effect: 'send', frame: { kind: 'compare', interest: number, version: comparison, request } })
  }

  /** A few comparisons at a time. */
  #walkOn(): void {
    let asking = 0
    const ready: EdgeInterest[] = []
    for (const interest of this.#interests.values()) {
      if (interest.phase !== 'comparing') continue
      if (interest.walkState === 'asking') asking++
      else if (interest.walkState === 'ready') ready.push(interest)
    }
    for (const interest of ready.slice(0, Math.max(0, this.#limits.walksMax - asking)))
      this.#compare(interest, interest.ask())
  }

  #lost({ interest: number, epoch, version }: FrameAt<'lost'>): void {
    if (epoch < this.epoch) throw new LinkFault('an epoch that has passed')
    this.epoch = epoch
    const concerned = number === 0 ? [...this.#interests.values()] : [this.#interestOf(number)]
    for (const interest of concerned) {
      if (interest === undefined) continue
      this.#dropBlock(interest.number)
      interest.forgetPast()
    }
    this.#tell({ effect: 'lost', interest: number, epoch, version })
  }

  #refused({ interest: number, reason, retryAfterMs, sentence }: FrameAt<'refused'>): void {
    const interest = this.#interestOf(number)
    if (interest === undefined) return
    this.forget(interest)
    this.#tell({ effect: 'refused', interest: number, reason, retryAfterMs, sentence })
  }
}

function sum(parts: readonly { readonly bytes: number }[]): number {
  return parts.reduce((total, { bytes }) => total + bytes, 0)
}

/** What a frame counts for while it waits; of events as the hub counts them. */
function bytesOf(frame: LinkFrame, limits: SessionLimits): number {
  if (frame.kind === 'events')
    return frame.events.reduce((total, { change }) => total + change.length + limits.eventOverheadBytes, 0)
  if (frame.kind === 'block') return frame.piece.length
  if (frame.kind === 'compared') return frame.answer.length
  return frame.kind === 'tunnel' ? frame.payload.length : limits.waitingOverheadBytes
}
