/**
 * One interest of an edge at the hub: how it begins and what it still has to be sent. Pure bookkeeping; what goes out when is
 * `hubsending.ts`.
 */
import { encodeChange } from '../frames/change.ts'
import { changeBytesMax } from '../frames/frames.ts'
import { encodeBlock } from './block.ts'
import { ConflatedQueue, type WaitingChange, type WaitingTally } from './conflation.ts'
import type { ConfirmedVersion } from './hubconfirmed.ts'
import type { SessionLimits } from './limits.ts'
import type { InterestStart, InterestView, InterestWish, LinkEvent, PartialSnapshot, StagedChange } from './session.ts'

/**
 * `asked`: the hub's world has not answered. `waiting`: it is behind the edge. `invited`: the edge is to compare; until
 * its first request nothing has to be remembered. `walking`, `walked`: it compares, it has compared. Then `live`.
 */
type HubPhase = 'asked' | 'waiting' | 'invited' | 'walking' | 'walked' | 'snapshot' | 'live'

type SharedByInterests = {
  readonly tally: WaitingTally
  readonly confirmed: Pick<ConfirmedVersion, 'told'>
  readonly limits: SessionLimits
}

type Wanted = {
  readonly name: string
  readonly version: number
  readonly wish: InterestWish
  readonly partial: PartialSnapshot | undefined
}

/** A block that is to be sent: what it is, and how it is to be taken. */
export type MadeBlock = {
  readonly version: number
  readonly after: string
  readonly bytes: Buffer
  /** Of what is in it, before it was packed. */
  readonly packedBytes: number
  /** The event that says what it was, when it has been sent. */
  readonly event: Buffer | undefined
}

export class HubInterest {
  readonly number: number
  readonly name: string
  readonly #limits: SessionLimits
  readonly #confirmed: SharedByInterests['confirmed']
  readonly queue: ConflatedQueue
  /** Objects of another key may be taken as bases: not where the edge was found to hold something else. */
  readonly canResemble: boolean
  #phase: HubPhase = 'asked'
  #view: InterestView | undefined
  #wanted: Wanted
  /** What requests of the present comparison name. */
  #comparison = 0
  /** How far a snapshot is, and of which version its first object was. */
  #cursor = ''
  #isAtEnd = false
  #snapshotVersion = 0
  /** Nothing before it is left to be sent. */
  #sentVersion = 0
  #owesRoot = false
  /** The first that waits is too large for an event; the version of one that is on its way as a block. */
  #isLargeDue = false
  #largeVersion: number | undefined
  #largeSince = Number.POSITIVE_INFINITY

  constructor(number: number, wanted: Wanted, parts: SharedByInterests) {
    this.#limits = parts.limits
    this.#confirmed = parts.confirmed
    this.number = number
    this.name = wanted.name
    this.#wanted = wanted
    this.canResemble = wanted.wish === 'resume'
    this.queue = new ConflatedQueue(parts.tally)
  }

  get phase(): HubPhase {
    return this.#phase
  }

  get view(): InterestView | undefined {
    return this.#view
  }

  get comparison(): number {
    return this.#comparison
  }

  /** Whether events of it may be sent now. */
  get isTelling(): boolean {
    return this.#phase === 'live' && !this.#isLargeDue && this.#largeVersion === undefined
  }

  /** Whether it has anything to be sent. */
  get isBusy(): boolean {
    if (this.#phase === 'live')
      return this.#owesRoot || this.queue.size > 0 || this.queue.isHiding || this.#largeVersion !== undefined
    return this.#phase === 'snapshot' || this.#phase === 'walked' || this.queue.size > 0
  }

  /** How far a mark of its source may go, for its sake. */
  markUpTo(version: number): number {
    if (this.#phase !== 'live') return version
    // An edge that was cut while it was conflated may lack something behind its version: its root is compared first.
    if (this.#owesRoot) return Math.min(version, this.#sentVersion)
    return this.queue.markUpTo(Math.min(version, this.#largeSince - 1))
  }

  /** The hub has a copy of it: how it begins. */
  open(view: InterestView): InterestStart {
    this.#view = view
    return this.begin()
  }

  /** How far the edge says to be. */
  get claimed(): number {
    const { version, partial } = this.#wanted
    return Math.max(version, partial?.version ?? 0)
  }

  /** The edge's versions are of a past that no longer exists. */
  forgetPast(): void {
    this.#wanted = { ...this.#wanted, version: 0, wish: 'compare', partial: undefined }
  }

  begin(): InterestStart {
    const view = this.#view as InterestView
    const { version, wish, partial } = this.#wanted
    this.#reset()
    if (this.claimed > view.version) {
      this.#phase = 'waiting'
      return 'wait'
    }
    if (wish === 'resume' && version > 0 && view.floor <= version) return this.#replay(view, version)
    if (wish === 'anew' || (wish === 'resume' && version === 0)) return this.snapshot(partial)
    return this.invite()
  }

  invite(): InterestStart {
    this.#reset()
    this.#phase = 'invited'
    this.#comparison = Math.max((this.#view as InterestView).version, this.#comparison + 1)
    return 'compare'
  }

  /** Everything, from where an unfinished one ended if what changed since then is known. */
  snapshot(partial?: PartialSnapshot): InterestStart {
    const view = this.#view as InterestView
    this.#reset()
    this.#phase = 'snapshot'
    this.#snapshotVersion = view.version
    if (partial === undefined || partial.after === '' || partial.version < view.floor) return 'snapshot'
    for (const event of view.since(partial.version)) {
      if (event.key <= partial.after) this.queue.add(event, false)
      if (this.queue.bytes > this.#limits.waitingBytesMax) return this.snapshot()
    }
    this.#cursor = partial.after
    this.#snapshotVersion = partial.version
    return 'snapshot'
  }

  /** What its `accepted` names. */
  get startVersion(): number {
    const { version } = this.#view as InterestView
    if (this.#phase === 'invited') return this.#comparison
    if (this.#phase === 'snapshot') return this.#snapshotVersion
    return this.#phase === 'live' ? this.#sentVersion : version
  }

  /** Whether what it waited for has come. */
  get mayBegin(): boolean {
    return this.#phase === 'waiting' && this.claimed <= (this.#view as InterestView).version
  }

  /** False where it has to be compared: no event can say what happened. */
  tell(event: LinkEvent): boolean {
    if (this.#phase === 'live') {
      // Its edge could tell its own clients neither when it happened nor all that did under one version: it has a gap of its own.
      if (event.isRelabelled === true) return false
      this.queue.add(event, true)
      // What was too large is gone, or behind a removal: that is an event, as small as any.
      if (this.#isLargeDue && this.queue.first()?.item === undefined) this.#isLargeDue = false
    } else if (this.#phase === 'walking' || this.#phase === 'walked') this.queue.add(event, false)
    else if (this.#phase === 'snapshot' && (this.#isAtEnd || event.key <= this.#cursor)) this.queue.add(event, false)
    return true
  }

  /** A request of the present comparison has come; the last one is empty. */
  asked(isLast: boolean): void {
    this.#phase = isLast ? 'walked' : 'walking'
  }

  /** The edge is told of everything up to this version. */
  sent(version: number): void {
    this.#sentVersion = Math.max(this.#sentVersion, version)
    this.queue.reached(version)
    this.#confirmed.told(version)
  }

  largeIsDue(): void {
    this.#isLargeDue = true
  }

  /** Versions never fall: a removal that was overtaken is told at the version that its reader is at. */
  changeOf({ key, version, item }: WaitingChange): StagedChange {
    if (item === undefined) return { type: 'remove', key, version: Math.max(version, this.#sentVersion) }
    return { type: 'put', key, version, bytes: item.bytes }
  }

  /** Whether `nextBlock` has something to look for: it may find that there is nothing. */
  get hasBlock(): boolean {
    if (this.#phase === 'live') return this.#isLargeDue
    return this.#isFlushed || (this.#phase === 'snapshot' && !this.#isAtEnd)
  }

  /** The next block, if there is one. Throws `LinkFault` where an object is too large for any. */
  nextBlock(): MadeBlock | undefined {
    if (!this.hasBlock) return undefined
    if (this.#phase === 'live') return this.#largeBlock()
    return this.#isFlushed ? this.#changesBlock() : this.#objectsBlock()
  }

  /** Changes that came meanwhile are due: those behind a snapshot wait for its end, as far as there is room. */
  get #isFlushed(): boolean {
    if (this.queue.size === 0) return false
    return this.#phase !== 'snapshot' || this.#isAtEnd || this.queue.bytes > this.#limits.waitingBytesMax / 4
  }

  /** A block of it has been sent to its end. */
  blockSent(): void {
    if (this.#largeVersion === undefined) return
    this.sent(this.#largeVersion)
    this.#largeVersion = undefined
    this.#largeSince = Number.POSITIVE_INFINITY
  }

  /** Everything was sent and it has not been told yet; from here on it is. */
  takeComplete(): { readonly version: number; readonly root: number } | undefined {
    const isGathered = this.#phase === 'walked' || (this.#phase === 'snapshot' && this.#isAtEnd)
    const isDue = this.#phase === 'live' ? this.#owesRoot && this.#largeVersion === undefined : isGathered
    if (!isDue || this.queue.size > 0) return undefined
    const { version, digest } = this.#view as InterestView
    this.#phase = 'live'
    this.#owesRoot = false
    this.sent(version)
    return { version, root: digest.root }
  }

  #reset(): void {
    this.queue.clear()
    this.#cursor = ''
    this.#sentVersion = 0
    this.#isAtEnd = false
    this.#owesRoot = false
    this.#isLargeDue = false
    this.#largeVersion = undefined
    this.#largeSince = Number.POSITIVE_INFINITY
  }

  #replay(view: InterestView, version: number): InterestStart {
    this.#phase = 'live'
    this.#sentVersion = version
    this.#owesRoot = true
    for (const event of view.since(version)) {
      this.queue.add(event, true)
      if (event.isRelabelled === true || this.queue.bytes > this.#limits.waitingBytesMax) return this.invite()
    }
    return 'replay'
  }

  #largeBlock(): MadeBlock {
    this.#isLargeDue = false
    const entry = this.queue.take() as WaitingChange
    const change = this.changeOf(entry)
    const { key, version } = change
    this.#largeVersion = entry.version
    this.#largeSince = entry.since
    return {
      ...{ version, after: '', bytes: encodeBlock('event', [change]), packedBytes: bytesOf([change]) },
      event: encodeChange({ type: 'put', key, version, base: '', delta: Buffer.alloc(0) }, changeBytesMax),
    }
  }

  #changesBlock(): MadeBlock {
    const changes: StagedChange[] = []
    for (let bytes = 0; bytes < this.#limits.blockObjectBytes && this.queue.size > 0; ) {
      const { key, version, item } = this.queue.take() as WaitingChange
      changes.push(item === undefined ? { type: 'remove', key, version } : { type: 'put', ...item })
      bytes += key.length + (item?.bytes.length ?? 0)
    }
    return this.#gathered('changes', changes, this.#cursor)
  }

  #objectsBlock(): MadeBlock | undefined {
    const after = this.#cursor
    const changes: StagedChange[] = []
    let bytes = 0
    for (const item of (this.#view as InterestView).behind(after)) {
      if (changes.length > 0 && bytes + item.bytes.length > this.#limits.blockObjectBytes) {
        this.#cursor = changes.at(-1)?.key as string
        return this.#gathered('objects', changes, after)
      }
      changes.push({ type: 'put', ...item })
      bytes += item.key.length + item.bytes.length
    }
    this.#isAtEnd = true
    this.#cursor = changes.at(-1)?.key ?? after
    return changes.length === 0 ? undefined : this.#gathered('objects', changes, after)
  }

  #gathered(of: 'objects' | 'changes', changes: readonly StagedChange[], after: string): MadeBlock {
    const bytes = encodeBlock(of, changes)
    return { version: this.#snapshotVersion, after, bytes, packedBytes: bytesOf(changes), event: undefined }
  }
}

function bytesOf(changes: readonly StagedChange[]): number {
  return changes.reduce((sum, change) => sum + change.key.length + (change.type === 'put' ? change.bytes.length : 0), 0)
}
