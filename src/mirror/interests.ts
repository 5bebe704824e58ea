/**
 * All interests of this edge: which there are, which covers a read, when one begins and when one ends. Written down as they
 * come and go; nothing is dropped while the cloud is away.
 */
import { type Clock, sleep } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Cache } from '../cache/cache.ts'
import type { MirrorCopy } from '../cache/mirrorcopy.ts'
import type { FieldPlan } from '../kube/object.ts'
import type { Scope } from '../kube/scope.ts'
import type { Store } from '../store/store.ts'
import type { OpenFollow } from '../upstream/follow/follow.ts'
import type { Upstream } from '../upstream/upstream.ts'
import { Budget } from './budget.ts'
import { coveringOf, holdingOf } from './covering.ts'
import type { BudgetLimits } from './eviction.ts'
import { feedAround } from './feeding.ts'
import { Gathering } from './gathering.ts'
import { type Interest, interestOf, resourceName } from './interest.ts'
import { type ConfirmRefusal, Leaving, tickMs } from './leaving.ts'
import type { Mirrored } from './mirror.ts'
import { MirroredInterest } from './mirrored.ts'
import { type Beginning, type InterestRecord, InterestRecords, isNode, noteBeginning, noteCaller } from './records.ts'
import { RefusalCauses } from './refusalcauses.ts'

/** The time in which no caller asked is written down this often: a restart may forget as much of it. */
const saveEveryMs = 600_000

type Options = Beginning & {
  readonly firstVersion?: number
  /** Many of its names were asked for. */
  readonly gathered?: boolean
}

/** A read, as far as interests are concerned. */
type Asked = {
  readonly scope: Scope
  readonly known: Mirrored
  readonly caller: string
  readonly verb: 'get' | 'list' | 'watch'
}

export type InterestsParts = {
  readonly store: Store
  readonly upstream: Upstream
  /** Where the truth about an interest comes from. */
  readonly follow: OpenFollow
  /** Spreads what would come at once; from 0 up to 1. */
  readonly random?: () => number
  /** Over which time interests come back after an outage, where it is not what is usual. */
  readonly spreadMs?: number | undefined
  readonly clock: Clock
  readonly log: Log
  /** What discovery knows of a resource; undefined while nothing does. */
  readonly find: (group: string, version: string, resource: string) => Mirrored | undefined
  readonly confirm: ConfirmRefusal
  /** The newest version that clients may have of another cluster; 0: there was none. */
  readonly lost?: number
  /** Hears, once for all of them, that the cluster was put back to an earlier state; in the turn in which all are doubted. */
  readonly onRestored?: () => void
  /** What all interests together may hold, where it is not as usual. */
  readonly budget?: Partial<BudgetLimits>
}

export class Interests {
  readonly #parts: InterestsParts
  readonly #mirrored = new Map<string, MirroredInterest>()
  readonly #byResource = new Map<string, Set<MirroredInterest>>()
  readonly #records: InterestRecords
  readonly #restore: Interest[] = []
  readonly #hooks: { readonly of: string; readonly tell: (cache: Cache) => void }[] = []
  readonly #told = new WeakSet<Cache>()
  readonly #leaving: Leaving
  readonly #gathering: Gathering
  readonly budget: Budget
  readonly #refusals = new RefusalCauses()
  /** Those of resources that the catalog does not know now. */
  readonly #unknown = new WeakSet<MirroredInterest>()
  #copy: MirrorCopy | undefined
  #evicting: Promise<void> = Promise.resolve()
  #started = false
  #ended = false

  private constructor(parts: InterestsParts) {
    this.#parts = parts
    this.#records = new InterestRecords(parts.store)
    const end = (mirrored: MirroredInterest, why: string) => this.end(mirrored, why)
    this.#leaving = new Leaving({ ...parts, end, empty: (mirrored) => this.#empty(mirrored) })
    this.budget = new Budget({ ...parts, all: () => this.all, copy: () => this.#copy })
    this.#gathering = new Gathering({
      ...parts,
      end,
      of: ({ group, version, resource }) => this.of(group, version, resource),
      covering: (scope) => this.covering(scope),
      begin: (namespace, callers) => this.#gather(namespace, callers),
    })
  }

  /** Reads what was written down; the copy is opened next, with `planOf` and `lostOf`. */
  static async open(parts: InterestsParts): Promise<Interests> {
    const interests = new Interests(parts)
    interests.#restore.push(...(await interests.#records.read()))
    return interests
  }

  readonly planOf = (name: string): FieldPlan => this.#records.planOf(name)

  readonly lostOf = (name: string): number => Math.max(this.#records.get(name)?.lost ?? 0, this.#parts.lost ?? 0)

  /** Is told of every cache that an interest of this resource (`v1/pods`) has, now and whenever one begins. */
  onResource(resource: string, tell: (cache: Cache) => void): void {
    this.#hooks.push({ of: resource, tell })
    for (const { cache } of this.#byResource.get(resource) ?? []) if (cache !== undefined) tell(cache)
  }

  #tell({ interest, cache }: MirroredInterest): void {
    const name = resourceName(interest.group, interest.version, interest.resource)
    // One cache is told of once, however often its interest is taken up again.
    if (cache === undefined || this.#told.has(cache)) return
    this.#told.add(cache)
    for (const { of, tell } of this.#hooks) if (of === name) tell(cache)
  }

  /** Takes over the opened copy: from here on what was written down can be read. */
  attach(copy: MirrorCopy): void {
    this.#copy = copy
    this.#records.attach((batch) => copy.commit(batch))
    for (const interest of this.#restore.splice(0)) {
      this.#tell(this.#add(interest, this.#records.get(interest.name) as InterestRecord))
    }
    for (const [name, cache] of [...copy.caches]) {
      if (this.#mirrored.has(name)) continue
      // Objects without a record: it was being ended, unless the disk has lost the record.
      if (this.#records.isLost(name)) {
        cache.isDoubted = true
        this.#records.replan(name)
      } else void copy.end(name, 'over').catch(() => {})
    }
  }

  /** Those the disk has lost the record of: they are doubted, and read again once a caller asks for them. */
  get lost(): string[] {
    return [...(this.#copy?.caches.keys() ?? [])].filter(
      (name) => !this.#mirrored.has(name) && this.#records.isLost(name),
    )
  }

  get all(): Iterable<MirroredInterest> {
    return this.#mirrored.values()
  }

  named(name: string): MirroredInterest | undefined {
    return this.#mirrored.get(name)
  }

  get size(): number {
    return this.#mirrored.size
  }

  of(group: string, version: string, resource: string): ReadonlySet<MirroredInterest> {
    return this.#byResource.get(resourceName(group, version, resource)) ?? none
  }

  covering(scope: Scope, version = 0): MirroredInterest | undefined {
    return coveringOf(this.of(scope.group, scope.version, scope.resource), scope, version)
  }

  holding(scope: Scope, key: string): MirroredInterest | undefined {
    return holdingOf(this.of(scope.group, scope.version, scope.resource), key)
  }

  /** Begins an interest, unless there is no room for another. */
  begin(scope: Scope, known: Mirrored, options: Options = {}): MirroredInterest | undefined {
    const interest = interestOf(scope)
    const present = this.#mirrored.get(interest.name)
    if (present !== undefined) {
      if (noteBeginning(present.record, options)) this.#save(present)
      // The cloud has said no to it: its callers are passed on, and told so by the cloud itself.
      return present.withdrawnAtMs === undefined ? present : undefined
    }
    if (this.#ended) return undefined
    const { resource, plan } = known
    const record: InterestRecord = {
      custom: resource.custom,
      namespaced: resource.namespaced,
      kind: resource.kind,
      listKind: resource.listKind,
      paths: plan.paths,
      standing: false,
      lost: 0,
      unaskedMs: 0,
      askedAtMs: this.#parts.clock.now(),
      by: [],
      node: false,
      watched: false,
      gathered: options.gathered ?? false,
      heardMs: 0,
      refusal: undefined,
    }
    noteBeginning(record, options)
    const evicted = this.budget.admit(interest, record)
    this.#gathering.look({ interest, record }, evicted !== undefined)
    if (evicted === undefined) return undefined
    for (const one of evicted) void this.#evict(one, 'interests')
    const { firstVersion = 0 } = options
    // What may be a version of another cluster says nothing about this one.
    const mirrored = this.#add(interest, record, firstVersion > this.lostOf(interest.name) ? firstVersion : undefined)
    // What is here of one whose record was lost was read without knowing its fields.
    mirrored.cache?.replan(this.planOf(interest.name))
    this.#parts.log.debug('interest.begun', { interest: interest.name })
    this.#save(mirrored)
    if (this.#started) mirrored.start()
    return mirrored
  }

  /** A read that this one covers was asked for. The node's own has an interest of its own, whichever else may go. */
  asked(mirrored: MirroredInterest, { scope, known, caller, verb }: Asked): void {
    mirrored.asked(this.#parts.clock.now())
    const isWatch = verb === 'watch'
    if (noteCaller(mirrored.record, caller, isWatch)) this.#save(mirrored)
    if (mirrored.record.node || !isNode(caller) || mirrored.cache === undefined) return
    this.begin(scope, known, { by: [caller], isWatch })
  }

  /** What it stood for needs it no more: from here on it stays as long as callers ask for it, a day at least. */
  release(mirrored: MirroredInterest): void {
    mirrored.record.standing = false
    mirrored.record.unaskedMs = 0
    this.#save(mirrored)
  }

  /** All of a namespace, for the callers who asked for its names. */
  #gather(namespace: Interest, by: readonly string[]): MirroredInterest | undefined {
    const known = this.#parts.find(namespace.group, namespace.version, namespace.resource)
    return known === undefined ? undefined : this.begin(namespace, known, { by, gathered: true })
  }

  #save(mirrored: MirroredInterest): void {
    void this.#records.save(mirrored).catch(() => {})
  }

  async #evict(mirrored: MirroredInterest, reason: 'bytes' | 'interests'): Promise<void> {
    this.budget.evicted(mirrored, reason)
    await this.end(mirrored, reason === 'bytes' ? 'its bytes are needed' : 'its place is needed')
  }

  /** One at a time: what is about to go would count as held, and others would go for it as well. */
  #evictOverweight(synced?: MirroredInterest): Promise<void> {
    const evict = async () => {
      for (const mirrored of this.budget.overweight(synced)) await this.#evict(mirrored, 'bytes')
    }
    this.#evicting = this.#evicting.then(evict, evict)
    return this.#evicting
  }

  #add(interest: Interest, record: InterestRecord, firstVersion?: number): MirroredInterest {
    const { upstream, follow, random, spreadMs, clock, log } = this.#parts
    this.#records.set(interest.name, record)
    const mirrored = new MirroredInterest({
      interest,
      record,
      plan: () => this.planOf(interest.name),
      upstream,
      follow,
      random,
      spreadMs,
      copy: this.#copy as MirrorCopy,
      room: () => this.budget.roomOf(interest, record),
      clock,
      log,
      refusals: this.#refusals,
      firstVersion,
      save: (one) => this.#records.save(one),
      onRestored: (one) => {
        // A cluster is put back as a whole, and the newest objects of another resource may look the same by chance.
        this.doubt(one)
        this.#parts.onRestored?.()
      },
      onForbidden: (one) => {
        for (const other of this.of(interest.group, interest.version, interest.resource))
          if (other.state.kind === 'fed' && other.state.by === one.interest.name) other.start()
      },
      onSynced: (one) => {
        this.#tell(one)
        this.#widened(one)
        void this.#evictOverweight(one)
      },
    })
    this.#mirrored.set(interest.name, mirrored)
    const name = resourceName(interest.group, interest.version, interest.resource)
    const sharing = this.#byResource.get(name) ?? new Set()
    this.#byResource.set(name, sharing.add(mirrored))
    return mirrored
  }

  /** What the new one covers needs no watch of its own any more; nor does it itself where a wider one is there already. */
  #widened(begun: MirroredInterest): void {
    const { group, version, resource } = begun.interest
    feedAround(begun, this.of(group, version, resource), this.#parts.find)
  }

  /** Discovery has changed: other fields may be selectable, of objects that are here already. */
  replan(): void {
    for (const mirrored of this.#mirrored.values()) {
      const { group, version, resource, name } = mirrored.interest
      const known = this.#parts.find(group, version, resource)
      // One that is back is asked for at once.
      if (known === undefined) this.#unknown.add(mirrored)
      else if (this.#unknown.delete(mirrored)) mirrored.hurry()
      if (known === undefined || known.plan.paths.join() === mirrored.record.paths.join()) continue
      mirrored.record.paths = known.plan.paths
      this.#records.replan(name)
      mirrored.cache?.replan(this.planOf(name))
      this.#save(mirrored)
    }
    // Those whose fields were unknown until now can be fed.
    if (this.#started) for (const mirrored of this.#mirrored.values()) this.#widened(mirrored)
  }

  /** The cluster may have been put back: nothing is read, but what knows of it already, until it was compared. */
  doubt(knowing?: MirroredInterest): void {
    const by = knowing === undefined ? 'elsewhere' : 'other'
    for (const other of this.#mirrored.values()) if (other !== knowing) other.doubt(by)
  }

  /** The API server may accept now what it refused: all that wait ask again, spread over a moment. */
  hurry(): void {
    for (const mirrored of this.#mirrored.values()) mirrored.hurry()
  }

  async end(mirrored: MirroredInterest, why: string): Promise<void> {
    const { name, group, version, resource } = mirrored.interest
    // It has ended for another reason while this one waited, and a caller may have begun it again: that one lives on.
    if (this.#mirrored.get(name) !== mirrored) return await mirrored.stop()
    this.#parts.log.debug('interest.ended', { interest: name, why })
    this.#mirrored.delete(name)
    this.#byResource.get(resourceName(group, version, resource))?.delete(mirrored)
    await mirrored.stop()
    // A caller asked for it again meanwhile, and goes on with what is here.
    if (this.#mirrored.has(name)) return
    // In one turn: a caller that asks from here on begins with nothing.
    await Promise.allSettled([this.#records.drop(mirrored), this.#copy?.end(name, 'over')])
  }

  /** Its data go from the disk, and it is as one that was never synced. */
  async #empty({ interest }: MirroredInterest): Promise<void> {
    await this.#copy?.end(interest.name, 'over').catch(() => {})
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#parts
    this.#started = true
    for (const mirrored of this.#mirrored.values()) mirrored.start()
    for (const mirrored of this.#mirrored.values()) if (mirrored.cache !== undefined) this.#widened(mirrored)
    let savedAtMs = clock.steady()
    while (!signal.aborted) {
      await sleep(clock, tickMs, signal)
      if (signal.aborted) break
      this.#records.saveRest()
      this.budget.tick()
      await this.#leaving.tick([...this.#mirrored.values()], signal)
      await this.#gathering.tick([...this.#mirrored.values()])
      await this.#evictOverweight()
      if (clock.steady() - savedAtMs < saveEveryMs) continue
      savedAtMs = clock.steady()
      for (const mirrored of this.#mirrored.values()) this.#save(mirrored)
    }
    this.#ended = true
    await Promise.all([...this.#mirrored.values()].map((mirrored) => mirrored.stop()))
  }
}

const none: ReadonlySet<MirroredInterest> = new Set()
