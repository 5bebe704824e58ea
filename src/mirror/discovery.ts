/**
 * Keeps discovery in step: the aggregated documents of /api and /apis by their ETag, at hints and every few minutes; from
 * them the catalog; and behind them, without hurry, the plain documents of every group and version, so that old clients
 * find them too when the cloud is gone. A document belongs to a state of discovery (its basis), and is asked for again only
 * when what discovery says about its own place has changed.
 */
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import { type Reachability, Unreachable } from '../upstream/upstream.ts'
import { Bell } from './bell.ts'
import { aggregatedAccept, isDiscovery, placesOf, plainAccept, plainBasis, readHeld } from './discoveryheld.ts'
import { type DiscoveredGroup, isGoodDocument, readGroups } from './discoveryread.ts'
import type { Fetched, Fetcher } from './fetcher.ts'
import { isAggregated } from './mediatype.ts'
import { etagOf, type Head, type Shelf } from './shelf.ts'

/** Nobody waits for it: a slow link may take its time. */
const headMsMax = 10_000
/** Several definitions often change together. */
const hintMs = 500
/** An API server learns of a new definition a moment after everybody else: a hint is followed by a second look. */
const secondLookMs = 3_000
/** Requests for what does not exist must not become requests upstream, one for one. */
const seekMsMin = 5_000
/** Changes that no hint tells of; a 304 of two hundred bytes each time. */
const refreshMs = 5 * 60_000
const retryMsMin = 1_000
const retryMsMax = 60_000
/** Plain documents come one at a time, at most this far apart, and all within the minute. */
const sweepGapMs = 1_000
const sweepMs = 45_000
/** A server that just started may not know all its groups yet: what it does not name stays this long. */
const goneMsMin = 10 * 60_000
/** Of a server without the aggregated form: group versions asked for at the same time. */
const plainAtOnce = 4

export class Discovery {
  readonly #shelf: Shelf
  readonly #fetcher: Fetcher
  readonly #catalog: { adopt(groups: readonly DiscoveredGroup[]): void }
  readonly #reachability: Reachability
  readonly #clock: Clock
  readonly #log: Log
  readonly #random: () => number
  readonly #refresher: Bell
  readonly #sweeper: Bell
  /** By place, what a plain document has to belong to; empty until discovery was read. */
  #basis: ReadonlyMap<string, string> = new Map()
  /** Something may have changed since discovery was last asked for. */
  #doubtful = true
  #dueAt = 0
  #round: { readonly done: Promise<boolean>; readonly since: number } | undefined
  #failures = 0
  #soughtAt = Number.NEGATIVE_INFINITY
  /** Places that were refused; tried again when discovery has been read again. */
  readonly #refused = new Set<string>()
  /** Places that discovery no longer names. */
  readonly #goneSince = new Map<string, number>()

  constructor(parts: {
    shelf: Shelf
    fetcher: Fetcher
    catalog: { adopt(groups: readonly DiscoveredGroup[]): void }
    reachability: Reachability
    clock: Clock
    log: Log
    random: () => number
  }) {
    this.#shelf = parts.shelf
    this.#fetcher = parts.fetcher
    this.#catalog = parts.catalog
    this.#reachability = parts.reachability
    this.#clock = parts.clock
    this.#log = parts.log
    this.#random = parts.random
    this.#refresher = new Bell(parts.clock)
    this.#sweeper = new Bell(parts.clock)
  }

  /** What the shelf knows from before, for the catalog: no network. */
  async load(): Promise<void> {
    await this.#adopt()
  }

  async run(signal: AbortSignal): Promise<void> {
    const stop = this.#reachability.observe((state) => {
      if (state !== 'reachable') return
      this.#failures = 0
      this.#doubtful = true
      this.#dueAt = this.#clock.steady()
      this.#refresher.ring()
    })
    try {
      await Promise.all([this.#keepFresh(signal), this.#keepSwept(signal)])
    } finally {
      stop()
    }
  }

  /** Definitions or API services have changed. */
  refresh(): void {
    this.#doubtful = true
    this.#dueAt = Math.min(this.#dueAt, this.#clock.steady() + hintMs)
    this.#refresher.ring()
  }

  /** Somebody asked for a resource that the catalog does not know. */
  seek(): void {
    const now = this.#clock.steady()
    if (now - this.#soughtAt < seekMsMin) return
    this.#soughtAt = now
    this.refresh()
  }

  /**
   * Whoever asks after a change sees it: waits for a look at discovery that is due, within the limit of a read. One that
   * was under way when the hint came may have missed it; then the next is waited for too.
   */
  async settled(): Promise<void> {
    const began = this.#clock.steady()
    for (let looks = 0; looks < 2 && this.#reachability.state === 'reachable'; looks++) {
      const round = this.#doubtful && this.#failures === 0 ? this.#begin() : this.#round
      if (round === undefined) return
      const left = Math.min(began, round.since) + this.#reachability.limitMs - this.#clock.steady()
      if (left <= 0) return
      const { promise, resolve } = Promise.withResolvers<void>()
      const cancel = this.#clock.setTimer(left, resolve)
      await Promise.race([round.done, promise])
      cancel()
    }
  }

  basisOf(place: string): string | undefined {
    return this.#basis.get(place)
  }

  isFresh(head: Head): boolean {
    if (!isAggregated(head.form)) return head.basis !== '' && head.basis === this.#basis.get(head.place)
    const own = this.#shelf.find(head.place, aggregatedAccept)
    return own !== undefined && etagOf(own) === etagOf(head)
  }

  async #keepFresh(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const left = this.#dueAt - this.#clock.steady()
      // A look under way rings at its end; until then nothing is due.
      if (this.#reachability.state !== 'reachable' || this.#round !== undefined) await this.#refresher.wait(signal)
      else if (left > 0) await this.#refresher.wait(signal, left)
      else await this.#begin().done
    }
  }

  /** One look at discovery at a time; whoever comes meanwhile shares it. Answers whether it succeeded. */
  #begin(): { readonly done: Promise<boolean>; readonly since: number } {
    if (this.#round === undefined) {
      const hinted = this.#doubtful
      this.#doubtful = false
      this.#dueAt = Number.POSITIVE_INFINITY
      const done = this.#look().then((ok) => {
        this.#round = undefined
        this.#failures = ok ? 0 : this.#failures + 1
        if (!ok) this.#doubtful = true
        const next = ok ? (hinted ? secondLookMs : refreshMs) : this.#retryMs()
        this.#dueAt = Math.min(this.#dueAt, this.#clock.steady() + next)
        this.#refresher.ring()
        return ok
      })
      this.#round = { done, since: this.#clock.steady() }
    }
    return this.#round
  }

  #retryMs(): number {
    const longest = Math.min(retryMsMax, retryMsMin * 2 ** this.#failures)
    return longest * (0.5 + this.#random() / 2)
  }

  async #look(): Promise<boolean> {
    try {
      const [api, apis] = await Promise.all([this.#fetchRoot('/api'), this.#fetchRoot('/apis')])
      if (api.kind === 'refused' || apis.kind === 'refused') {
        const status = api.kind === 'refused' ? api.status : apis.kind === 'refused' ? apis.status : 0
        this.#log.warn('discovery.refused', { status })
        return false
      }
      for (const { head } of [api, apis]) if (!isAggregated(head.form)) await this.#fetchVersions(head)
      this.#refused.clear()
      if (api.changed || apis.changed || this.#basis.size === 0 || !isAggregated(apis.head.form)) await this.#adopt()
      this.#sweeper.ring()
      return true
    } catch (error) {
      if (!(error instanceof Unreachable)) throw error
      this.#log.debug('discovery.unreachable', { why: error.message })
      return false
    }
  }

  #fetchRoot(place: string): Promise<Fetched> {
    return this.#fetcher.fetch({
      place,
      accept: aggregatedAccept,
      basis: plainBasis,
      headMsMax,
      isGood: isGoodDocument,
    })
  }

  /** A server without the aggregated form: every group version is asked for by itself. One that fails keeps its old one. */
  async #fetchVersions(root: Head): Promise<void> {
    const places = readGroups((await this.#shelf.content(root)) ?? Buffer.alloc(0)).flatMap(placesOf)
    const next = places.values()
    const work = async () => {
      for (const place of next) await this.#fetchPlain(place, plainBasis)
    }
    await Promise.all(Array.from({ length: plainAtOnce }, work))
  }

  #fetchPlain(place: string, basis: string): Promise<Fetched> {
    return this.#fetcher.fetch({ place, accept: plainAccept, basis, headMsMax, isGood: isGoodDocument })
  }

  async #adopt(): Promise<void> {
    const held = await readHeld(this.#shelf)
    if (held === undefined) return
    this.#basis = held.basis
    this.#catalog.adopt(held.groups)
  }

  /** Fetches plain documents that are missing or of an older state, one after the other; then drops those of nothing. */
  async #keepSwept(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#sweeper.wait(signal)
      const due = this.#due()
      for (const place of due) {
        if (signal.aborted || this.#reachability.state !== 'reachable') break
        const basis = place === versionPlace ? '' : this.#basis.get(place)
        if (basis !== undefined) await this.#sweepOne(place, basis)
        await new Bell(this.#clock).wait(signal, Math.min(sweepGapMs, sweepMs / due.length))
      }
      await this.#dropGone()
    }
  }

  async #dropGone(): Promise<void> {
    const now = this.#clock.steady()
    for (const place of [...this.#shelf.places()]) {
      if (!isDiscovery(place) || this.#basis.has(place)) this.#goneSince.delete(place)
      else if (!this.#goneSince.has(place)) this.#goneSince.set(place, now)
      else if (now - (this.#goneSince.get(place) ?? now) >= goneMsMin) await this.#shelf.dropPlace(place)
    }
  }

  #due(): string[] {
    return [...this.#basis.keys(), versionPlace].filter((place) => {
      if (this.#refused.has(place)) return false
      const head = this.#shelf.find(place, plainAccept)
      return head === undefined || (place !== versionPlace && !this.isFresh(head))
    })
  }

  async #sweepOne(place: string, basis: string): Promise<void> {
    try {
      const isGood = place === versionPlace ? {} : { isGood: isGoodDocument }
      const fetched = await this.#fetcher.fetch({ place, accept: plainAccept, basis, headMsMax, ...isGood })
      if (fetched.kind === 'refused') this.#refused.add(place)
    } catch (error) {
      if (!(error instanceof Unreachable)) throw error
      this.#refused.add(place)
    }
  }
}

/** Small, and asked for by everything that looks at a cluster. */
const versionPlace = '/version'
