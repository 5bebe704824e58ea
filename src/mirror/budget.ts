/**
 * How much may be mirrored: bytes over all interests, interests in all and per caller. What is evicted and what is passed
 * through is decided in `eviction`; here is what it is decided from, and what is told of it. Nothing goes while the cloud is away.
 */
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import { Counter, counter, gauge, seriesOf } from '../base/metrics.ts'
import type { InterestBytes } from '../cache/holdings.ts'
import type { MirrorCopy } from '../cache/mirrorcopy.ts'
import type { Upstream } from '../upstream/upstream.ts'
import {
  type Admission,
  admit,
  type BudgetLimits,
  type EvictionCandidate,
  type Newcomer,
  overweight,
  roomFor,
} from './eviction.ts'
import type { Interest } from './interest.ts'
import { mirrorLimits } from './mirror.ts'
import type { MirroredInterest } from './mirrored.ts'
import { type InterestRecord, isByName } from './records.ts'

/** That there is no room is logged this often, and shown for this long. */
const complainEveryMs = 600_000
/** What was passed through for want of room, as far as it is shown: the latest. */
const turnedAwayMax = 50

type Parts = {
  readonly budget?: Partial<BudgetLimits>
  readonly upstream: Pick<Upstream, 'reachability'>
  readonly clock: Clock
  readonly log: Log
  readonly all: () => Iterable<MirroredInterest>
  readonly copy: () => MirrorCopy | undefined
}

/** What a newcomer may bring is worked out this often. */
const roomMsMax = 1_000
/** What it is worked out from costs some 0.1 to 0.5 µs for each object of each interest: it counts longer where there are many. */
const objectsPerWeighedMs = 100

type Holdings = ReadonlyMap<string, InterestBytes>

type MirroredHeld = EvictionCandidate & { readonly mirrored: MirroredInterest }

export class Budget {
  readonly #parts: Parts
  readonly #limits: BudgetLimits
  /** Callers, and for what, who found no room since the last tick: a caller that floods is refused at the price of a look. */
  readonly #full = new Map<string, string>()
  readonly #turnedAway = new Map<
    string,
    { readonly interest: Interest; readonly why: string; readonly untilMs: number }
  >()
  /** When each was evicted lately. */
  readonly #evictedAt = new Map<string, number>()
  /** The room of newcomers by kind and caller, since the last tick at most: after a start hundreds ask page by page. */
  readonly #rooms = new Map<string, { readonly room: number; readonly atMs: number }>()
  /** What they are worked out from, for all of them. */
  #weighed: { readonly holdings: Holdings; readonly untilMs: number } | undefined
  readonly #evictions = new Counter()
  #refusals = 0
  #quietUntilMs = 0

  constructor(parts: Parts) {
    this.#parts = parts
    this.#limits = { ...mirrorLimits, ...parts.budget }
  }

  /** What all interests hold together, each object once however many of them hold it. */
  get bytes(): number {
    return this.#parts.copy()?.bytes ?? 0
  }

  get bytesMax(): number {
    return this.#limits.bytesMax
  }

  /** Which ones go for a new interest; undefined where it has to be passed through. */
  admit(interest: Interest, record: InterestRecord): readonly MirroredInterest[] | undefined {
    if (interest.name.length > mirrorLimits.nameCharactersMax)
      return this.#refuse(interest, 'its selectors are too long')
    const newcomer = this.#newcomerOf(interest, record)
    // What stands comes on top of all: a node's pods name hundreds at once.
    if (newcomer.isStanding) return []
    const kind = kindOf(newcomer)
    const known = this.#full.get(kind)
    if (known !== undefined) return this.#refuse(interest, known)
    const found: Admission<MirroredHeld> = admit(this.#held(), newcomer, this.#limits)
    if (found.kind === 'admitted' && (found.evicted.length === 0 || this.#mayEvict)) {
      this.#turnedAway.delete(interest.name)
      return found.evicted.map(({ mirrored }) => mirrored)
    }
    const { interestsPerCallerMax, interestsMax } = this.#limits
    const isCallers = found.kind === 'full' && found.of === 'caller'
    const why = isCallers ? `its caller has ${interestsPerCallerMax} interests` : `there are ${interestsMax} interests`
    this.#full.set(kind, why)
    return this.#refuse(interest, why)
  }

  /** What has to go now because all of it weighs too much, after the first sync of one or because it has grown. */
  overweight(synced?: MirroredInterest): readonly MirroredInterest[] {
    const { bytes } = this
    if (bytes <= this.bytesMax || !this.#mayEvict || !this.#mayAnyGo) return []
    const held = this.#held(this.#weigh())
    const newcomer = held.find(({ mirrored }) => mirrored === synced)
    return overweight(held, this.#limits, bytes, newcomer).map(({ mirrored }) => mirrored)
  }

  /** What was full may have room again. */
  tick(): void {
    this.#full.clear()
    this.#rooms.clear()
  }

  evicted({ interest: { name } }: MirroredInterest, reason: 'bytes' | 'interests'): void {
    this.#full.clear()
    this.#evictedAt.delete(name)
    this.#evictedAt.set(name, this.#parts.clock.steady())
    const [oldest] = this.#evictedAt.keys()
    if (this.#evictedAt.size > this.#limits.interestsMax) this.#evictedAt.delete(oldest as string)
    this.#evictions.add(seriesOf({ reason }))
  }

  /** What found no room lately, the latest last. */
  get turnedAway(): readonly { readonly interest: Interest; readonly why: string }[] {
    const nowMs = this.#parts.clock.steady()
    for (const [name, { untilMs }] of this.#turnedAway) if (untilMs <= nowMs) this.#turnedAway.delete(name)
    return [...this.#turnedAway.values()]
  }

  /** Why the first list of one was too large: in itself, or for what others have left of the budget. */
  whyTooLarge({ interest, record }: MirroredInterest, why: string): string {
    return `${why}, where --mirror-bytes has room for ${this.roomOf(interest, record)}`
  }

  /** How full it is. What an option names comes on top of the number of interests. */
  status() {
    const { bytesMax, interestsMax } = this.#limits
    const counted = [...this.#parts.all()].filter(({ record }) => !record.standing)
    return { bytes: this.bytes, bytesMax, interests: counted.length, interestsMax }
  }

  figures(): string[] {
    return [
      gauge('ake_mirror_bytes', 'Bytes of all objects mirrored.', [['', this.bytes]]),
      gauge('ake_mirror_bytes_max', 'How many there may be.', [['', this.bytesMax]]),
      this.#evictions.render('ake_evicted_interests_total', 'Interests that ended for want of room.'),
      counter('ake_turned_away_total', 'Reads passed through for want of room.', [['', this.#refusals]]),
    ]
  }

  /** How many bytes a first list may bring now: what is free, and what would go for it. */
  roomOf(interest: Interest, record: InterestRecord): number {
    const newcomer = this.#newcomerOf(interest, record)
    const isGiven = this.#mayEvict && this.#mayAnyGo
    const room = isGiven ? this.#roomFor(newcomer) : Math.max(0, this.bytesMax - this.bytes)
    // What other interests of its resource hold may be all it brings: whether it is, only the list can tell.
    const shared = newcomer.isBack ? 0 : (this.#parts.copy()?.bytesLike(interest.name) ?? 0)
    return Math.min(this.bytesMax, room + shared)
  }

  #roomFor(newcomer: Newcomer): number {
    const kind = kindOf(newcomer)
    const nowMs = this.#parts.clock.steady()
    const last = this.#rooms.get(kind)
    if (last !== undefined && nowMs - last.atMs < roomMsMax) return last.room
    const room = roomFor(this.#held(this.#weighedLately(nowMs)), newcomer, this.#limits, this.bytes)
    this.#rooms.set(kind, { room, atMs: nowMs })
    return room
  }

  get #mayEvict(): boolean {
    return this.#parts.upstream.reachability.state === 'reachable'
  }

  /** Where all are the node's own, as at a hub, nothing has to be weighed: that is a look at every object. */
  get #mayAnyGo(): boolean {
    for (const { record } of this.#parts.all()) if (!isOwn(record)) return true
    return false
  }

  #newcomerOf(interest: Interest, record: InterestRecord) {
    return {
      isOwn: isOwn(record),
      isStanding: record.standing,
      isName: isByName(interest, record),
      isBack:
        this.#parts.clock.steady() - (this.#evictedAt.get(interest.name) ?? Number.NEGATIVE_INFINITY) <
        this.#limits.idleMsMin,
      callers: record.by,
    }
  }

  #weighedLately(nowMs: number): Holdings {
    if (this.#weighed === undefined || nowMs >= this.#weighed.untilMs) {
      let objects = 0
      for (const { size } of this.#parts.copy()?.caches.values() ?? []) objects += size
      this.#weighed = { holdings: this.#weigh(), untilMs: nowMs + Math.max(roomMsMax, objects / objectsPerWeighedMs) }
    }
    return this.#weighed.holdings
  }

  #weigh(): Holdings {
    return this.#parts.copy()?.holdings() ?? weightless
  }

  /** Without what it weighs where only numbers of interests count. */
  #held(holdings = weightless): MirroredHeld[] {
    const caches = this.#parts.copy()?.caches
    return [...this.#parts.all()].map((mirrored) => {
      const { interest, record } = mirrored
      const cache = caches?.get(interest.name)
      return {
        ...this.#newcomerOf(interest, record),
        name: interest.name,
        isWatched: (cache?.watchers.size ?? 0) > 0,
        unaskedMs: record.unaskedMs,
        askedAtMs: record.askedAtMs,
        bytes: holdings.get(interest.name)?.alone ?? 0,
        shared: holdings.get(interest.name)?.shared ?? [],
        mirrored,
      }
    })
  }

  #refuse(interest: Interest, why: string): undefined {
    const { clock, log } = this.#parts
    const nowMs = clock.steady()
    this.#refusals++
    this.#turnedAway.delete(interest.name)
    this.#turnedAway.set(interest.name, { interest, why, untilMs: nowMs + complainEveryMs })
    const [oldest] = this.#turnedAway.keys()
    if (this.#turnedAway.size > turnedAwayMax) this.#turnedAway.delete(oldest as string)
    if (nowMs < this.#quietUntilMs) return undefined
    this.#quietUntilMs = nowMs + complainEveryMs
    log.warn('interest.passedThrough', { interest: interest.name, why })
    return undefined
  }
}

const weightless: Holdings = new Map()

function isOwn({ standing, node }: InterestRecord): boolean {
  return standing || node
}

/** What is decided alike. */
function kindOf({ isOwn, isName, isBack, callers }: Newcomer): string {
  return `${isOwn} ${isName} ${isBack} ${callers.join()}`
}
