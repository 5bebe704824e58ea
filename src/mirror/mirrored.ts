/** One interest being kept: by a reflector of its own, or fed from a wider interest; and the reads that wait for its first sync. */
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Cache } from '../cache/cache.ts'
import type { Filter } from '../cache/filter.ts'
import type { MirrorCopy } from '../cache/mirrorcopy.ts'
import type { FieldPlan } from '../kube/object.ts'
import type { Collection, Follower, Identities, OpenFollow } from '../upstream/follow/follow.ts'
import type { Upstream } from '../upstream/upstream.ts'
import { Feed } from './feed.ts'
import type { Interest } from './interest.ts'
import { mirrorLimits } from './mirror.ts'
import { type InterestRecord, type KeptOut, noteKeptOut } from './records.ts'
import { Reflector, type ReflectorState } from './reflector.ts'
import type { RefusalCauses } from './refusalcauses.ts'
import { WayBack } from './wayback.ts'

export type MirroredInterestParts = {
  readonly interest: Interest
  readonly record: InterestRecord
  readonly plan: () => FieldPlan
  readonly upstream: Upstream
  readonly follow: OpenFollow
  readonly random?: (() => number) | undefined
  readonly spreadMs?: number | undefined
  readonly copy: MirrorCopy
  readonly clock: Clock
  readonly log: Log
  readonly refusals: RefusalCauses
  readonly firstVersion?: number | undefined
  /** How many bytes its first list may bring. */
  readonly room: () => number
  /** Writes the record down. */
  readonly save: (mirrored: MirroredInterest) => Promise<void>
  readonly onSynced: (mirrored: MirroredInterest) => void
  /** It found the cluster put back to an earlier state. */
  readonly onRestored: (mirrored: MirroredInterest) => void
  /** It may no longer be read, while what it holds stays. */
  readonly onForbidden: (mirrored: MirroredInterest) => void
}

/** How often a caller that waits for a first sync looks whether it can still be had. */
const lookEveryMs = 100

/** What has happened by now comes by its own watch within this time, or there was nothing. */
const ownWatchMsMax = 2_000

type Outcome = 'synced' | 'refused' | 'late'

export class MirroredInterest {
  readonly interest: Interest
  readonly record: InterestRecord
  readonly #parts: MirroredInterestParts
  readonly #way: WayBack
  readonly #follower: Follower
  readonly #stopping = new AbortController()
  readonly #waiting = new Set<(outcome: Outcome) => void>()
  #reflector: Reflector | undefined
  #feed: Feed | undefined
  #running: Promise<void> = Promise.resolve()
  #stopRun: AbortController | undefined
  /** What it finds to be lost is then no news to the others, which are in doubt as well. */
  #isDoubtedByOther = false
  #heardBefore = Number.NEGATIVE_INFINITY
  /** The cloud has confirmed that it may not be read, or is no more: it answers no read. */
  withdrawnAtMs: number | undefined
  /** What was held of it was removed for a refusal that lasts. */
  isEmptied = false

  constructor(parts: MirroredInterestParts) {
    this.#parts = parts
    this.interest = parts.interest
    this.record = parts.record
    const { interest, record, copy, plan, room } = parts
    const { custom, kind } = record
    const planNow = () => copy.caches.get(interest.name)?.plan ?? plan()
    const known: Collection['known'] = (...object) => copy.known(interest.name, ...object)
    this.#follower = parts.follow({ scope: interest, custom, kind, room, known, plan: planNow })
    this.#way = new WayBack({ clock: parts.clock, isHeld: parts.copy.caches.has(parts.interest.name) })
  }

  get cache(): Cache | undefined {
    return this.withdrawnAtMs === undefined ? this.#parts.copy.caches.get(this.interest.name) : undefined
  }

  /** The cache, if reads may be answered from it now: not while it may be of a past that another interest found lost. */
  get readable(): Cache | undefined {
    // What was lost of it may be anything: until it was compared with the cloud it is as good as never synced.
    if (this.cache?.isDoubted === true) return undefined
    const isDoubted =
      this.#feed === undefined
        ? this.#way.doubtedAtMs !== undefined || this.#reflector?.isLate === true
        : !this.#feed.isSound
    return isDoubted && this.#parts.upstream.reachability.state === 'reachable' ? undefined : this.cache
  }

  get state(): ReflectorState | { readonly kind: 'fed'; readonly by: string } {
    if (this.#feed !== undefined) return { kind: 'fed', by: this.#feed.wide.interest.name }
    return this.#reflector?.state ?? { kind: 'waiting', why: 'not begun' }
  }

  /** What the API server, or its size, has kept it from being mirrored with; it holds while the line is cut, and over a restart. */
  get refusal(): KeptOut | undefined {
    return this.#feed === undefined ? this.record.refusal : undefined
  }

  /** Whether nothing of it comes for want of a right, which a part of it may have all the same. */
  get isForbidden(): boolean {
    const { refusal } = this
    return refusal?.kind === 'refused' && refusal.code === 403
  }

  /** When the cloud was last known to be there for this interest, by the steady clock. */
  get heardAt(): number {
    return this.#feed?.wide.heardAt ?? this.#reflector?.heardAt ?? Number.NEGATIVE_INFINITY
  }

  /** The same of all its watches in this life of the process. */
  get lastHeardAt(): number {
    return Math.max(this.#heardBefore, this.#feed?.wide.lastHeardAt ?? this.heardAt)
  }

  /** Written down where it was not heard when the API server last was; 0: it was. */
  noteHeard(ms: number): void {
    this.record.heardMs = ms
    void this.#parts.save(this).catch(() => {})
  }

  /** What keeps it in step, itself or what feeds it. */
  get watch(): ReflectorState | undefined {
    return this.#feed === undefined ? this.#reflector?.state : this.#feed.wide.watch
  }

  /** How the API server called its list when it was last read. */
  get listKind(): string {
    return this.#feed?.wide.listKind ?? this.record.listKind
  }

  get fed(): boolean {
    return this.#feed !== undefined
  }

  /** Whether its list was had and no watch after it: it would show the same for ever. */
  get isBlind(): boolean {
    return this.cache !== undefined && this.#reflector?.isLate === true
  }

  /** Whether reads go past it: too large for this edge, refused, not synced or in doubt for too long. */
  get hopeless(): boolean {
    if (this.readable !== undefined) return false
    if (this.#feed !== undefined) return this.#feed.wide.hopeless
    const { kind } = this.state
    if (kind === 'failing' || this.isBlind) return true
    if (this.cache === undefined) return kind === 'refused' || kind === 'tooLarge'
    const doubtedMs = this.#parts.clock.steady() - (this.#way.doubtedAtMs ?? Number.POSITIVE_INFINITY)
    return doubtedMs >= mirrorLimits.firstSyncMsMax
  }

  asked(nowMs: number): void {
    this.record.unaskedMs = 0
    this.record.askedAtMs = nowMs
  }

  /** Begins to keep it with a reflector of its own. */
  start(): void {
    const { interest, upstream, copy, random, spreadMs, clock, log, refusals, firstVersion } = this.#parts
    const stop = this.#nextRun()
    this.#way.take('broken')
    const reflector = new Reflector({
      interest: interest.name,
      follow: this.#follower.follow,
      way: this.#way,
      reachability: upstream.reachability,
      copy,
      random,
      spreadMs,
      clock,
      log,
      refusals,
      firstVersion,
      onBegun: () => this.#begun(),
      onListed: (listKind) => this.#listed(listKind),
      onLost: async (version) => {
        this.record.lost = Math.max(this.record.lost, version)
        await this.#parts.save(this)
        if (!this.#isDoubtedByOther) this.#parts.onRestored(this)
      },
      onKeptOut: (why) => this.#heardOf(why),
      onTrusted: (wasDoubted) => this.#trusted(wasDoubted),
    })
    this.#reflector = reflector
    this.#running = this.#running.then(() => reflector.run(stop.signal))
  }

  /**
   * Another interest is of a lost past, or it was heard from elsewhere that the cluster was put back: while the cloud can say, nothing is read
   * here before it has, by an answer that was asked for from now on.
   */
  doubt(by: 'other' | 'elsewhere' = 'other'): void {
    // One that is fed is as sound as what feeds it.
    if (this.withdrawnAtMs !== undefined || this.#feed !== undefined) return
    this.#isDoubtedByOther = true
    // It has found the same, and is being read anew since.
    if (by === 'other' && this.#way.state === 'lost') return
    if (this.#way.take('doubt') === 'again' && this.#reflector !== undefined) this.start()
  }

  /** It was seen to differ from what the cloud has: all of it is compared. */
  differs(): void {
    if (this.#way.take('differs') === 'again' && this.#reflector !== undefined) this.start()
  }

  /** What the API server has of it, without the contents. */
  identities(of: Parameters<Follower['identities']>[0], signal: AbortSignal): Promise<Identities> {
    return this.#follower.identities(of, signal)
  }

  /** Whether its past may be a lost one. */
  get isDoubted(): boolean {
    return this.#way.doubtedAtMs !== undefined
  }

  #trusted(wasDoubted: boolean): void {
    // It may have come into doubt again while its new beginning was written.
    if (!this.isDoubted) this.#isDoubtedByOther = false
    if (this.readable !== undefined) this.#settle('synced')
    // What was in doubt was fed by none, and fed none.
    if (wasDoubted) this.#parts.onSynced(this)
  }

  /** Whatever it was refused for may be over, or what else it waits for. */
  hurry(): void {
    if (this.#reflector?.state.kind !== 'synced') this.#reflector?.hurry()
  }

  /** Why it was refused is over: callers that wait for it may hope again. */
  proven(): void {
    this.#reflector?.hope()
    this.hurry()
  }

  /** Ends what is watched here, cleanly; one that is too young for that without alarming its client ends at a later call. */
  finishWatches(): void {
    for (const watcher of this.#parts.copy.caches.get(this.interest.name)?.watchers ?? []) watcher.finish()
  }

  /**
   * Calls back when its own watch has brought it to this version, where the history of a wider one begins: what happened
   * before that the wider one knows by its outcome alone. One that has no watch, or hears of nothing, is not waited for.
   */
  whenAt(version: number, then: () => void): void {
    const { cache } = this
    if (cache === undefined || this.#reflector?.state.kind !== 'synced') then()
    else void cache.cloud.progress.reach(version, ownWatchMsMax, this.#parts.clock).then(() => then())
  }

  /** Goes on as a part of a wider interest that covers this one. */
  feedFrom(wide: MirroredInterest, filter: (plan: FieldPlan) => Filter): void {
    const stop = this.#nextRun()
    const feed = new Feed({ wide, narrow: this, filter, copy: this.#parts.copy, clock: this.#parts.clock })
    this.#reflector = undefined
    this.#keptOut(undefined)
    this.#running = this.#running.then(async () => {
      if (stop.signal.aborted) return
      this.#feed = feed
      await feed.run(stop.signal)
      if (this.#feed === feed) this.#feed = undefined
      if (stop.signal.aborted) return
      // The wider one is no more, or begins anew: back to an own reflector, from where we are, or to another wider one. While
      // its new beginning is written it has no cache, as one that is no more: that it is in doubt tells them apart.
      const isGone = wide.cache === undefined && !wide.isDoubted
      // That the past is lost the wider one has told.
      if (!isGone) this.#isDoubtedByOther = true
      this.#way.take(isGone ? 'unfed' : 'doubt')
      this.start()
      if (this.cache !== undefined) this.#parts.onSynced(this)
    })
  }

  #nextRun(): AbortController {
    this.#heardBefore = this.lastHeardAt
    this.#stopRun?.abort()
    const stop = new AbortController()
    this.#stopRun = stop
    if (this.#stopping.signal.aborted) stop.abort()
    return stop
  }

  /** A definition that was made anew may call its lists otherwise. */
  #listed(listKind: string): void {
    if (this.record.listKind === listKind) return
    this.record.listKind = listKind
    void this.#parts.save(this).catch(() => {})
  }

  #begun(): void {
    void this.#parts.save(this).catch(() => {})
    this.#trusted(false)
    this.#parts.onSynced(this)
  }

  #keptOut(why: KeptOut | undefined): void {
    if (noteKeptOut(this.record, why)) void this.#parts.save(this).catch(() => {})
  }

  /** While it may not be read it feeds no other. */
  #heardOf(why: KeptOut | undefined): void {
    const wasForbidden = this.isForbidden
    this.#keptOut(why)
    if (this.isForbidden === wasForbidden || this.cache === undefined) return
    if (wasForbidden) this.#parts.onSynced(this)
    else this.#parts.onForbidden(this)
  }

  #settle(outcome: Outcome): void {
    for (const tell of [...this.#waiting]) tell(outcome)
  }

  /** Resolves when the first sync is committed, when it cannot be, or when it takes too long. */
  synced(withinMs: number): Promise<Outcome> {
    if (this.readable !== undefined) return Promise.resolve('synced')
    if (this.hopeless) return Promise.resolve('refused')
    return new Promise((resolve) => {
      const { clock } = this.#parts
      const endMs = clock.steady() + withinMs
      const tell = (outcome: Outcome) => {
        cancel()
        this.#waiting.delete(tell)
        resolve(outcome)
      }
      // Waiting callers are told as soon as it is hopeless.
      const look = () => {
        if (this.hopeless) tell('refused')
        else if (this.readable !== undefined) tell('synced')
        else if (clock.steady() >= endMs) tell('late')
        else cancel = clock.setTimer(Math.min(lookEveryMs, endMs - clock.steady()), look)
      }
      let cancel = clock.setTimer(Math.min(lookEveryMs, withinMs), look)
      this.#waiting.add(tell)
    })
  }

  /** Ends keeping it; its data stay. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    this.#stopRun?.abort()
    this.#settle('refused')
    await this.#running
  }
}
