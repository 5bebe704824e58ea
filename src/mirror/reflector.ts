/**
 * The list-then-watch loop that keeps one interest in step with the cloud. It resumes from the version the copy has; where
 * that is too old it lists again and writes only the difference. Nothing it meets changes data by itself: a refusal is
 * retried and told, an outage is waited out, a frame that is not whole is never committed.
 */
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Cache } from '../cache/cache.ts'
import { differ } from '../cache/differ.ts'
import { Intake } from '../cache/intake.ts'
import type { Item } from '../cache/item.ts'
import type { MirrorCopy } from '../cache/mirrorcopy.ts'
import type { Frame } from '../kube/frames.ts'
import { type FieldPlan, scanObject } from '../kube/object.ts'
import { objectKey } from '../kube/resource.ts'
import {
  type Listing,
  type ListingLimits,
  listItemOf,
  readListing,
  statusCode,
  versionOf,
} from '../upstream/follow/listing.ts'
import {
  Ahead,
  Ended,
  Expired,
  errorOf,
  Refused,
  Source,
  TooLarge,
  type WatchStream,
  watchSecondsMin,
} from '../upstream/follow/source.ts'
import { Unreachable, type Upstream } from '../upstream/upstream.ts'
import { FirstSync } from './firstsync.ts'
import type { Interest } from './interest.ts'
import { livedMsMin, Retries } from './retries.ts'

/** What may wait for the disk before the watch is read no further. */
const queuedBytesMax = 8 * 1024 * 1024
/** A list of what is mirrored may be so many times what is held, or may be held, before memory is spared. */
const relistTimesMax = 4
/** After an outage the interests come back spread over this time. */
const spreadMs = 1_000

export type ReflectorState =
  | { readonly kind: 'waiting'; readonly why: string }
  | { readonly kind: 'syncing' }
  | { readonly kind: 'synced' }
  | { readonly kind: 'refused'; readonly code: number; readonly why: string; readonly sinceMs: number }
  | { readonly kind: 'tooLarge'; readonly why: string }
  /** Its first sync does not come about: it is passed through, and tried again later. */
  | { readonly kind: 'failing'; readonly why: string }

export type ReflectorParts = {
  readonly interest: Interest
  readonly custom: boolean
  readonly kind: string
  readonly plan: () => FieldPlan
  readonly upstream: Upstream
  readonly copy: MirrorCopy
  readonly limits: ListingLimits
  readonly clock: Clock
  readonly log: Log
  readonly random?: () => number
  /** A watch came first, with this version: the first sync is taken at exactly that, where the API server still has it. */
  readonly firstVersion?: number | undefined
  /** The first sync is committed, or the interest began anew. */
  readonly onBegun: (cache: Cache) => void
  /** All of it was read, first or again: how the API server calls the list. */
  readonly onListed: (listKind: string) => void
  /** The cluster is still the one we know. */
  readonly onVerified: () => void
  /** Before an interest begins anew: everything up to this version is of a past that no longer exists. */
  readonly onLost: (version: number) => Promise<void>
}

export class Reflector {
  readonly #parts: ReflectorParts
  readonly #source: Source
  readonly #random: () => number
  #state: ReflectorState = { kind: 'waiting', why: 'not begun' }
  readonly #retries: Retries
  readonly #first: FirstSync
  /** What went wrong last. */
  #why = ''
  /** What was said of a refusal: the same again is not news. */
  #said = ''
  /** Ends the pause under way. */
  #wake: () => void = () => {}
  /** Something came from the last watch. */
  #gained = false
  #watch: WatchStream | undefined
  #openedAtMs = 0
  /** We were not connected all the time: whether the cluster is still the one we know has to be asked. */
  #unsure = true
  /** It is not: what we hold is of another past, however far the new one has come. */
  #restored = false
  #mustList = false
  #exactly: number | undefined
  #heardAtMs: number

  constructor(parts: ReflectorParts) {
    this.#parts = parts
    // Lists of custom objects are named as their definition says, which may not be known yet.
    this.#source = new Source({ ...parts, scope: parts.interest, kind: parts.custom ? '' : parts.kind })
    this.#random = parts.random ?? Math.random
    this.#retries = new Retries(this.#random)
    this.#first = new FirstSync(parts.clock)
    this.#exactly = parts.firstVersion
    this.#heardAtMs = Number.NEGATIVE_INFINITY
  }

  get state(): ReflectorState {
    const { kind } = this.#state
    if (kind === 'refused' || kind === 'tooLarge' || !this.isLate) return this.#state
    if (this.#parts.upstream.reachability.state === 'unreachable') return this.#state
    return { kind: 'failing', why: this.#why === '' ? 'its first list takes too long' : this.#why }
  }

  /** Whether the first sync has not come about in its time. */
  get isLate(): boolean {
    if (this.#first.isDone) return false
    if (this.#watch !== undefined && this.#parts.clock.steady() - this.#openedAtMs >= livedMsMin) this.#first.done()
    return this.#first.isLate
  }

  /** When the cloud was last known to be at the other end of this interest's watch, by the steady clock. */
  get heardAt(): number {
    return this.#watch === undefined ? this.#heardAtMs : Math.max(this.#heardAtMs, this.#watch.heardAt())
  }

  get watching(): boolean {
    return this.#watch !== undefined
  }

  async run(signal: AbortSignal): Promise<void> {
    // One whose disk has lost something of it is as good as never synced.
    if (this.#cache?.isDoubted === false) this.#first.done()
    await this.#pause(this.#cache === undefined ? 0 : this.#random() * spreadMs, signal)
    while (!signal.aborted) {
      try {
        await this.#reachable(signal)
        if (signal.aborted) break
        this.#first.tried()
        await this.#turn(signal)
      } catch (error) {
        if (signal.aborted) break
        await this.#pause(this.#note(error), signal, error instanceof Unreachable)
      }
    }
    this.#watch = undefined
  }

  get #cache(): Cache | undefined {
    return this.#parts.copy.caches.get(this.#parts.interest.name)
  }

  /** One list, if one is needed, and one watch. */
  async #turn(signal: AbortSignal): Promise<void> {
    const cache = this.#cache
    let watch: WatchStream | undefined
    if (cache !== undefined && this.#unsure && !this.#restored) this.#restored = await this.#wentBack(cache, signal)
    this.#unsure = false
    if (cache !== undefined && !this.#restored) this.#parts.onVerified()
    const mustList = cache === undefined || this.#mustList || this.#restored || cache.isDamaged
    if (mustList) watch = await this.#list(signal)
    this.#mustList = false
    await this.#follow(watch, signal)
  }

  /** Whether a linearizable read is older than we are: then the cluster was put back to an earlier state. */
  async #wentBack(cache: Cache, signal: AbortSignal): Promise<boolean> {
    const { version } = await this.#source.page({ objects: 1 }, signal)
    return version < cache.version
  }

  async #list(signal: AbortSignal): Promise<WatchStream | undefined> {
    const { copy, interest, plan, custom, limits, clock, log } = this.#parts
    const cache = this.#cache
    // What is known of it holds until something else is: a refusal does not become hope by being asked again.
    if (cache === undefined && this.#state.kind === 'waiting') this.#state = { kind: 'syncing' }
    const exactly = cache === undefined ? this.#exactly : undefined
    const standing = (key: string) =>
      cache === undefined || this.#restored || cache.isCorrupt(key) ? undefined : cache.peek(key)?.version
    // A list is as new as the moment it was asked for.
    const askedAtMs = clock.steady()
    const parts = { source: this.#source, custom, plan: cache?.plan ?? plan(), standing, clock, signal }
    let listing: Listing
    try {
      listing = await readListing({
        ...parts,
        limits: cache === undefined ? limits : relistLimits(limits, cache),
        ...(exactly === undefined ? {} : { exactly }),
      })
    } catch (error) {
      // That version is gone or not yet there: the newest one will do.
      if (exactly !== undefined && (error instanceof Expired || error instanceof Ahead)) {
        this.#exactly = undefined
        return await this.#list(signal)
      }
      throw error
    }
    this.#exactly = undefined
    this.#heardAtMs = Math.max(this.#heardAtMs, askedAtMs)
    if (cache !== undefined && !this.#restored && listing.version < cache.version) {
      // A version of another past may be the same and its object another: all of it is read again.
      this.#restored = true
      listing.watch?.close()
      return await this.#list(signal)
    }
    this.#parts.onListed(listing.listKind)
    try {
      if (cache !== undefined && !this.#restored) {
        // After an expiry nobody knows what those who watch have.
        const { repaired, ...difference } = differ(cache, listing.objects, !this.#mustList)
        const intake = new Intake({ copy, cache })
        await intake.repair(repaired)
        await intake.differ({ version: listing.version, ...difference })
        this.#first.listed()
        return listing.watch
      }
      if (cache !== undefined) {
        log.warn('mirror.restored', { interest: interest.name, had: cache.version, found: listing.version })
        await this.#parts.onLost(cache.version)
      }
      const items = [...listing.objects.values()].filter((found) => found !== 'same')
      const begun = await copy.begin(interest.name, listing.version, items.sort(byKey))
      this.#restored = false
      this.#first.listed()
      this.#parts.onBegun(begun)
      return listing.watch
    } catch (error) {
      listing.watch?.close()
      throw error
    }
  }

  async #follow(opened: WatchStream | undefined, signal: AbortSignal): Promise<void> {
    const { copy, clock } = this.#parts
    const cache = this.#cache as Cache
    const watch = opened ?? (await this.#source.watch(cache.version, signal))
    const openedAtMs = clock.steady()
    this.#openedAtMs = openedAtMs
    // What the disk refused is asked for again: on a quiet watch nothing else would tell that it is missing.
    let refusal: Error | undefined
    const refused = (fault: Error) => {
      refusal = fault
      watch.close()
    }
    const intake = new Intake({ copy, cache, onFault: refused })
    this.#watch = watch
    this.#state = { kind: 'synced' }
    let tookAll = true
    try {
      for await (const frames of watch.frames) {
        for (const frame of frames) if (this.#take(frame, intake)) this.#gained = true
        if (this.#gained) this.#first.done()
        if (intake.queuedBytes > queuedBytesMax) await intake.settled()
        if (signal.aborted) break
      }
      await intake.settled()
      // Not by its own time: the API server went away, and whatever comes back may be another.
      if (clock.steady() - openedAtMs < 1000 * watchSecondsMin) this.#unsure = true
    } catch (error) {
      tookAll = refusal === undefined && error instanceof Unreachable
      throw refusal ?? error
    } finally {
      if (clock.steady() - openedAtMs >= livedMsMin) {
        this.#retries.lived()
        this.#first.done()
        this.#said = ''
      }
      // What it said last could not be taken: from there on the copy is behind, however alive the connection is.
      if (tookAll) this.#heardAtMs = Math.max(this.#heardAtMs, watch.heardAt())
      this.#watch = undefined
      watch.close()
      // What was handed over is whole: it is committed, whatever ended the watch.
      await intake.settled().catch(() => {})
    }
    const livedMs = clock.steady() - openedAtMs
    if (livedMs < livedMsMin) throw new Ended(`the API server ended the watch after ${Math.round(livedMs)} ms`)
  }

  /** Whether it was news. */
  #take(frame: Frame, intake: Intake): boolean {
    const { custom } = this.#parts
    if (frame.type === 'ERROR') throw errorOf(statusCode(frame.object), frame.object)
    const { cache } = intake
    const mirrored = frame.type === 'ADDED' || frame.type === 'MODIFIED'
    const scan = mirrored ? scanObject(frame.object, cache.plan) : scanObject(frame.object)
    const version = versionOf(scan.resourceVersion)
    if (frame.type === 'BOOKMARK') {
      intake.reach(version)
      return false
    }
    // Seen already, from a list that was newer than its own label.
    if (version <= intake.version) return false
    this.#source.check(frame.object, scan)
    if (frame.type === 'DELETED') intake.remove(objectKey(scan.namespace, scan.name), version)
    else intake.put(listItemOf(frame.object, scan, { custom, version }))
    return true
  }

  /** Tells what went wrong and answers how long to wait. */
  #note(error: unknown): number {
    const { interest, log, clock } = this.#parts
    const why = error instanceof Error ? error.message : String(error)
    const waitMs = this.#retries.failed(error, { passed: this.isLate, gained: this.#gained })
    this.#gained = false
    this.#why = why
    if (error instanceof Expired) {
      this.#mustList = true
      log.info('mirror.expired', { interest: interest.name, why })
      return waitMs
    }
    this.#unsure = true
    if (error instanceof Refused) {
      const sinceMs = this.#state.kind === 'refused' ? this.#state.sinceMs : clock.steady()
      if (this.#said !== `${error.code} ${why}`)
        log.warn('mirror.refused', { interest: interest.name, code: error.code, why })
      this.#said = `${error.code} ${why}`
      this.#state = { kind: 'refused', code: error.code, why, sinceMs }
    } else if (error instanceof TooLarge) {
      log.warn('mirror.tooLarge', { interest: interest.name, why })
      this.#state = { kind: 'tooLarge', why }
    } else {
      log.debug('mirror.retry', { interest: interest.name, why })
      this.#state = { kind: 'waiting', why }
    }
    return waitMs
  }

  /** Resolves as soon as it makes sense to ask. */
  async #reachable(signal: AbortSignal): Promise<void> {
    const { reachability } = this.#parts.upstream
    if (reachability.state !== 'unreachable') return
    this.#first.interrupted()
    this.#state = { kind: 'waiting', why: reachability.why }
    await new Promise<void>((resolve) => {
      const end = () => {
        stop()
        signal.removeEventListener('abort', end)
        resolve()
      }
      const stop = reachability.observe((state) => {
        if (state !== 'unreachable') end()
      })
      signal.addEventListener('abort', end)
      if (signal.aborted) end()
    })
    this.#retries.afresh()
    this.#unsure = true
    await this.#pause(this.#random() * spreadMs, signal)
  }

  /** Asks again now: there is news that may concern it. */
  hurry(): void {
    this.#wake()
  }

  /** What waits for the line is cut short when that comes back: nobody sleeps on through good news. */
  #pause(ms: number, signal: AbortSignal, forLine = false): Promise<void> {
    const { clock, upstream } = this.#parts
    if (ms <= 0 || signal.aborted) return Promise.resolve()
    return new Promise((resolve) => {
      const end = () => {
        cancel()
        stop()
        signal.removeEventListener('abort', end)
        this.#wake = () => {}
        resolve()
      }
      let cancel = clock.setTimer(ms, end)
      const soon = () => {
        cancel()
        cancel = clock.setTimer(this.#random() * spreadMs, end)
      }
      const stop = upstream.reachability.observe((state) => {
        if (forLine && state === 'reachable') soon()
      })
      this.#wake = soon
      signal.addEventListener('abort', end)
    })
  }
}

/** What is mirrored already stays mirrored, however it grew; what grows without end between two lists is no cluster. */
function relistLimits({ objects, bytes }: ListingLimits, cache: Cache): ListingLimits {
  return {
    objects: relistTimesMax * Math.max(objects, cache.size),
    bytes: relistTimesMax * Math.max(bytes, cache.bytes),
  }
}

function byKey(a: Item, b: Item): number {
  return a.key < b.key ? -1 : 1
}
