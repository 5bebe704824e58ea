/**
 * Keeps one interest in step with the cloud: a loop that follows where truth comes from and commits what is told. It goes on
 * from the version the copy has; where that cannot be, only the difference is written. Nothing it meets changes data by
 * itself: a refusal is retried and told, an outage is waited out, a frame that is not whole is never committed.
 */
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Cache } from '../cache/cache.ts'
import { Intake } from '../cache/intake.ts'
import { type Item, makeItem } from '../cache/item.ts'
import type { MirrorCopy } from '../cache/mirrorcopy.ts'
import { Expired, type Follow, type Followed, type From, Refused, TooLarge } from '../upstream/follow/follow.ts'
import { type Reachability, Unreachable } from '../upstream/upstream.ts'
import { FirstSync } from './firstsync.ts'
import type { KeptOut } from './records.ts'
import type { RefusalCauses } from './refusalcauses.ts'
import { Ended, livedMsMin, Retries } from './retries.ts'
import { askOf, type WayBack, type WayInput } from './wayback.ts'

/** What may wait for the disk before the watch is read no further. */
const queuedBytesMax = 8 * 1024 * 1024
/** After an outage the interests come back spread over this time, each with requests of its own. */
const spreadMsUsual = 1_000

export type ReflectorState =
  | { readonly kind: 'waiting'; readonly why: string }
  | { readonly kind: 'syncing' }
  | { readonly kind: 'synced' }
  | { readonly kind: 'refused'; readonly code: number; readonly why: string; readonly sinceMs: number }
  | { readonly kind: 'tooLarge'; readonly why: string }
  /** Its first sync does not come about: it is passed through, and tried again later. */
  | { readonly kind: 'failing'; readonly why: string }

export type ReflectorParts = {
  /** The interest's name. */
  readonly interest: string
  readonly follow: Follow
  readonly way: WayBack
  readonly reachability: Reachability
  readonly copy: MirrorCopy
  readonly clock: Clock
  readonly log: Log
  readonly refusals: RefusalCauses
  readonly random?: (() => number) | undefined
  /** Where it is not what is usual. */
  readonly spreadMs?: number | undefined
  /** A watch came first, with this version: the first sync is taken at exactly that, where the API server still has it. */
  readonly firstVersion?: number | undefined
  /** The first sync is committed, or the interest began anew. */
  readonly onBegun: () => void
  /** All of it was read, first or again: how the API server calls the list. */
  readonly onListed: (listKind: string) => void
  /** The API server, or its size, keeps it from being mirrored; undefined: nothing does, its watch is open. */
  readonly onKeptOut: (why: KeptOut | undefined) => void
  /** The cloud has spoken for the copy: clients may read it, if they could not because it was in doubt. */
  readonly onTrusted: (wasDoubted: boolean) => void
  /** Before an interest begins anew: everything up to this version is of a past that no longer exists. */
  readonly onLost: (version: number) => Promise<void>
}

type Live = Extract<Followed, { kind: 'live' }>

export class Reflector {
  readonly #parts: ReflectorParts
  readonly #random: () => number
  readonly #spreadMs: number
  #state: ReflectorState = { kind: 'waiting', why: 'not begun' }
  readonly #retries: Retries
  readonly #first: FirstSync
  /** What went wrong last. */
  #why = ''
  /** Said once, until its watch is open. */
  #isTooLarge = false
  /** Ends the pause under way. */
  #wake: () => void = () => {}
  /** There was news since it last asked: it does not wait long before it asks again. */
  #hurried = false
  /** Something came from the last watch. */
  #gained = false
  #live: Live | undefined
  #openedAtMs = 0
  #heardAtMs: number

  constructor(parts: ReflectorParts) {
    this.#parts = parts
    this.#random = parts.random ?? Math.random
    this.#spreadMs = parts.spreadMs ?? spreadMsUsual
    this.#retries = new Retries(this.#random)
    this.#first = new FirstSync(parts.clock)
    this.#heardAtMs = Number.NEGATIVE_INFINITY
  }

  get state(): ReflectorState {
    const { kind } = this.#state
    if (kind === 'refused' || kind === 'tooLarge' || !this.isLate) return this.#state
    if (this.#parts.reachability.state === 'unreachable') return this.#state
    return { kind: 'failing', why: this.#why === '' ? 'its first list takes too long' : this.#why }
  }

  /** Whether the first sync has not come about in its time. */
  get isLate(): boolean {
    if (this.#first.isDone) return false
    if (this.#live !== undefined && this.#livedMs >= livedMsMin) this.#first.done()
    return this.#first.isLate
  }

  /** When the cloud was last known to be at the other end of this interest's watch, by the steady clock. */
  get heardAt(): number {
    return this.#live === undefined ? this.#heardAtMs : Math.max(this.#heardAtMs, this.#live.heardAt())
  }

  get #livedMs(): number {
    return this.#parts.clock.steady() - this.#openedAtMs
  }

  get #cache(): Cache | undefined {
    return this.#parts.copy.caches.get(this.#parts.interest)
  }

  async run(signal: AbortSignal): Promise<void> {
    // One whose disk has lost something of it is as good as never synced.
    if (this.#cache?.isDoubted === false) this.#first.done()
    await this.#pause(this.#cache === undefined ? 0 : this.#random() * this.#spreadMs, signal)
    while (!signal.aborted) {
      try {
        await this.#reachable(signal)
        if (signal.aborted) break
        this.#first.tried()
        this.#hurried = false
        await this.#follow(signal)
      } catch (error) {
        if (signal.aborted) break
        await this.#pause(this.#note(error), signal, error instanceof Unreachable)
      }
    }
    this.#parts.refusals.over(this.#parts.interest)
  }

  #from(): From {
    const { way, firstVersion } = this.#parts
    const held = this.#cache?.cloud
    if (held === undefined) return { held, start: 'anew', check: false, exactly: firstVersion }
    const { start, check } = askOf(way.state)
    return { held, start: start === 'resume' && held.isDamaged ? 'repair' : start, check }
  }

  /** Follows until that ends; what was told by then is committed. */
  async #follow(signal: AbortSignal): Promise<void> {
    const { follow, copy, way } = this.#parts
    const { doubts } = way
    const from = this.#from()
    // What is known of it holds until something else is: a refusal does not become hope by being asked again.
    if (from.held === undefined && this.#state.kind === 'waiting') this.#state = { kind: 'syncing' }
    const items: Item[] = []
    const refusing = new AbortController()
    // What the disk refused is asked for again: on a quiet watch nothing else would tell that it is missing.
    let refusal: Error | undefined
    const onFault = (fault: Error) => {
      refusal = fault
      refusing.abort()
    }
    let intake: Intake | undefined
    let tookAll = true
    try {
      for await (const step of follow(from, AbortSignal.any([signal, refusing.signal]))) {
        switch (step.kind) {
          case 'snapshot':
            for (const item of step.items) items.push(item)
            break
          case 'complete':
            // A list that was asked for before a doubt may be of the lost past, however late it comes.
            if (way.doubts > doubts) return
            // Not held any longer: the copy has them, or had what another interest has of them.
            await this.#begin(step, items.splice(0), doubts)
            if (way.doubts > doubts) return
            break
          case 'difference':
            if (way.doubts > doubts) return
            await this.#differ(step, doubts)
            if (way.doubts > doubts) return
            break
          case 'live':
            intake = new Intake({ copy, cache: this.#cache as Cache, onFault })
            this.#opened(step)
            break
          case 'changes':
            this.#take(step, intake as Intake)
            if ((intake as Intake).queuedBytes > queuedBytesMax) await (intake as Intake).settled()
            break
          default:
            this.#advance(step.kind)
            if (step.kind === 'lost') return
        }
        if (signal.aborted) break
      }
      await intake?.settled()
    } catch (error) {
      tookAll = refusal === undefined && error instanceof Unreachable
      throw refusal ?? error
    } finally {
      await this.#ended(intake, tookAll)
    }
    if (way.state === 'live') way.take('broken')
    if (this.#livedMs < livedMsMin)
      throw new Ended(`the API server ended the watch after ${Math.round(this.#livedMs)} ms`)
  }

  /** `doubts`: those there were when it was asked for; another may come while it is written. */
  async #begin(step: Extract<Followed, { kind: 'complete' }>, items: Item[], doubts: number): Promise<void> {
    const { copy, interest, log, way, onBegun, onLost } = this.#parts
    this.#read(step)
    const had = this.#cache?.version
    if (had !== undefined) {
      log.warn('mirror.restored', { interest, had, found: step.version })
      await onLost(had)
    }
    await copy.begin(interest, step.version, items.sort(byKey))
    way.take('listed')
    if (way.doubts > doubts) way.take('doubt')
    this.#first.listed()
    onBegun()
  }

  async #differ(step: Extract<Followed, { kind: 'difference' }>, doubts: number): Promise<void> {
    const { copy, way } = this.#parts
    this.#read(step)
    const intake = new Intake({ copy, cache: this.#cache as Cache })
    await intake.repair(step.repaired)
    await intake.differ(step)
    this.#first.listed()
    if (way.doubts === doubts) this.#advance('listed')
  }

  #advance(input: WayInput): void {
    const { way, onTrusted } = this.#parts
    const wasDoubted = way.doubtedAtMs !== undefined
    if (way.take(input) === 'trust') onTrusted(wasDoubted)
  }

  #read({ listKind, askedAtMs }: { readonly listKind: string; readonly askedAtMs: number }): void {
    this.#heardAtMs = Math.max(this.#heardAtMs, askedAtMs)
    this.#parts.onListed(listKind)
  }

  #opened(live: Live): void {
    this.#parts.way.take('live')
    this.#openedAtMs = this.#parts.clock.steady()
    this.#live = live
    this.#state = { kind: 'synced' }
    this.#isTooLarge = false
    this.#parts.onKeptOut(undefined)
  }

  #take({ changes, plan }: Extract<Followed, { kind: 'changes' }>, intake: Intake): void {
    const { cache } = intake
    for (const change of changes) {
      if (change.type === 'progress') intake.reach(change.version)
      else {
        this.#gained = true
        if (change.type === 'remove') intake.remove(change.key, change.version)
        // Other fields may have become selectable since it was read.
        else if (plan === cache.plan) intake.put(change.item)
        else intake.put(makeItem(change.item.bytes, change.item.version, cache.plan))
      }
    }
    if (this.#gained) this.#first.done()
  }

  async #ended(intake: Intake | undefined, tookAll: boolean): Promise<void> {
    const live = this.#live
    if (live === undefined) return
    if (this.#livedMs >= livedMsMin) {
      this.#retries.lived()
      this.#first.done()
      this.#parts.refusals.over(this.#parts.interest)
    }
    // What it said last could not be taken: from there on the copy is behind, however alive the connection is.
    if (tookAll) this.#heardAtMs = Math.max(this.#heardAtMs, live.heardAt())
    this.#live = undefined
    // What was handed over is whole: it is committed, whatever ended the watch.
    await intake?.settled().catch(() => {})
  }

  /** Tells what went wrong and answers how long to wait. */
  #note(error: unknown): number {
    const { interest, log, clock, way, refusals, onKeptOut } = this.#parts
    const why = error instanceof Error ? error.message : String(error)
    const waitMs = this.#retries.failed(error, { passed: this.isLate, gained: this.#gained })
    this.#gained = false
    this.#why = why
    way.take(error instanceof Expired ? 'expired' : 'broken')
    if (error instanceof Expired) log.debug('mirror.expired', { interest, why })
    else if (error instanceof Refused) {
      const sinceMs = this.#state.kind === 'refused' ? this.#state.sinceMs : clock.steady()
      const news = refusals.note(interest, error.code)
      if (news !== undefined)
        log[news === 'cause' ? 'warn' : 'debug']('mirror.refused', { interest, code: error.code, why })
      this.#state = { kind: 'refused', code: error.code, why, sinceMs }
      onKeptOut(this.#state)
    } else if (error instanceof TooLarge) {
      log[this.#isTooLarge ? 'debug' : 'warn']('mirror.tooLarge', { interest, why })
      this.#isTooLarge = true
      this.#state = { kind: 'tooLarge', why }
      onKeptOut(this.#state)
    } else {
      log.debug('mirror.retry', { interest, why })
      this.#state = { kind: 'waiting', why }
    }
    return waitMs
  }

  /** Resolves as soon as it makes sense to ask. */
  async #reachable(signal: AbortSignal): Promise<void> {
    const { reachability, way } = this.#parts
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
    way.take('broken')
    await this.#pause(this.#random() * this.#spreadMs, signal)
  }

  /** What it was refused for is known to be over, and it is asked for in a moment. */
  hope(): void {
    if (this.#state.kind === 'refused' && this.#cache === undefined) this.#state = { kind: 'syncing' }
  }

  /** Asks again now, or after what is under way has failed: there is news that may concern it. */
  hurry(): void {
    this.#hurried = true
    this.#retries.afresh()
    this.#wake()
  }

  /** What waits for the line is cut short when that comes back: no reflector sleeps on through good news. */
  #pause(ms: number, signal: AbortSignal, forLine = false): Promise<void> {
    const { clock, reachability } = this.#parts
    if (ms <= 0 || signal.aborted) return Promise.resolve()
    return new Promise((resolve) => {
      const end = () => {
        cancel()
        stop()
        signal.removeEventListener('abort', end)
        this.#wake = () => {}
        resolve()
      }
      let cancel = clock.setTimer(this.#hurried ? Math.min(ms, this.#random() * this.#spreadMs) : ms, end)
      const soon = () => {
        cancel()
        cancel = clock.setTimer(this.#random() * this.#spreadMs, end)
      }
      const stop = reachability.observe((state) => {
        if (forLine && state === 'reachable') soon()
      })
      this.#wake = soon
      signal.addEventListener('abort', end)
    })
  }
}

function byKey(a: Item, b: Item): number {
  return a.key < b.key ? -1 : 1
}
