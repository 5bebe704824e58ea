/**
 * Keeps discovery in step: the aggregated documents of /api and /apis by their ETag, at hints and every few minutes; from
 * them the catalog; and behind them, without hurry, the plain documents of every group and version, so that old clients
 * find them too when the cloud is gone. A document belongs to a state of discovery (its basis), and is asked for again only
 * when what discovery says about its own place has changed.
 */

import { backoffMs } from '../../../base/backoff.ts'
import { Bell } from '../../../base/bell.ts'
import { type Clock, sleep } from '../../../base/clock.ts'
import type { Log } from '../../../base/log.ts'
import type { ToldSigns } from '../../../upstream/told.ts'
import { type Reachability, Unreachable } from '../../../upstream/upstream.ts'
import { type DocumentHead, type DocumentStore, etagOf } from '../documentstore.ts'
import type { Fetched, Fetcher } from '../fetcher.ts'
import { isAggregated } from '../mediatype.ts'
import { isDiscovery } from '../place.ts'
import { type DiscoveredGroup, isGoodDocument, readGroups } from './read.ts'
import { aggregatedAccept, placesOf, plainAccept, plainBasis, readHeld } from './stored.ts'

/** Several definitions often change together. */
const hintMs = 500
/** An API server learns of a new definition a moment after its watchers: a hint is followed by a second look. */
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
/** Of a server without the aggregated form: group versions asked for at the same time. */
const plainAtOnce = 4

export class DiscoveryMirror {
  readonly #documentStore: DocumentStore
  readonly #fetcher: Fetcher
  readonly #catalog: { adopt(groups: readonly DiscoveredGroup[]): void }
  readonly #reachability: Reachability
  readonly #told: ToldSigns | undefined
  readonly #clock: Clock
  readonly #log: Log
  readonly #random: () => number
  readonly #refresher: Bell
  readonly #sweeper: Bell
  /** By place, what a plain document has to belong to; empty until discovery was read. */
  #basis: ReadonlyMap<string, string> = new Map()
  /** Which documents the catalog was made of. */
  #adopted = ''
  #adopting: Promise<void> = Promise.resolve()
  /** Something may have changed since discovery was last asked for. */
  #doubtful = true
  #dueAt = 0
  #failures = 0
  /** The status of the refusal that was told: one that lasts is told once. */
  #refusalTold = 0
  #soughtAt = Number.NEGATIVE_INFINITY
  /** A caller named what is not known: that a hub has not heard of it either is no answer. */
  #isSought = false
  /** What was refused, by place and header; tried again when discovery has been read again. */
  readonly #refused = new Set<string>()

  constructor(parts: {
    documentStore: DocumentStore
    fetcher: Fetcher
    catalog: { adopt(groups: readonly DiscoveredGroup[]): void }
    reachability: Reachability
    told: ToldSigns | undefined
    clock: Clock
    log: Log
    random: () => number
  }) {
    this.#documentStore = parts.documentStore
    this.#fetcher = parts.fetcher
    this.#catalog = parts.catalog
    this.#reachability = parts.reachability
    this.#told = parts.told
    this.#clock = parts.clock
    this.#log = parts.log
    this.#random = parts.random
    this.#refresher = new Bell(parts.clock)
    this.#sweeper = new Bell(parts.clock)
  }

  /** What the document store knows from before, for the catalog: no network. */
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
    const deaf = this.#told?.observe(() => {
      this.#dueAt = this.#clock.steady()
      this.#refresher.ring()
    })
    try {
      await Promise.all([this.#keepFresh(signal), this.#keepSwept(signal)])
    } finally {
      stop()
      deaf?.()
    }
  }

  /** Definitions or API services have changed. */
  refresh(): void {
    this.#doubtful = true
    this.#dueAt = Math.min(this.#dueAt, this.#clock.steady() + hintMs)
    this.#refresher.ring()
  }

  /** A caller asked for a resource that the catalog does not know. */
  seek(): void {
    const now = this.#clock.steady()
    if (now - this.#soughtAt < seekMsMin) return
    this.#soughtAt = now
    this.#isSought = true
    this.refresh()
  }

  /** A reader's own question showed that discovery has changed: the catalog knows before he is answered. */
  async noticed(): Promise<void> {
    if (this.#rootsHeld() !== this.#adopted) await this.#adopt()
    this.refresh()
  }

  basisOf(place: string): string | undefined {
    return this.#basis.get(place)
  }

  async #keepFresh(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const left = this.#dueAt - this.#clock.steady()
      if (this.#reachability.state !== 'reachable') await this.#refresher.wait(signal)
      else if (left > 0) await this.#refresher.wait(signal, left)
      else await this.#lookNow()
    }
  }

  async #lookNow(): Promise<void> {
    const hinted = this.#doubtful
    this.#doubtful = false
    // A hint that comes meanwhile brings it forward: this look may have missed what it tells of.
    this.#dueAt = this.#clock.steady() + refreshMs
    const ok = await this.#look()
    this.#failures = ok ? 0 : this.#failures + 1
    if (!ok) this.#doubtful = true
    const next = ok ? (hinted ? secondLookMs : refreshMs) : this.#retryMs()
    this.#dueAt = Math.min(this.#dueAt, this.#clock.steady() + next)
  }

  #retryMs(): number {
    return backoffMs(this.#failures + 1, { firstMs: retryMsMin, maxMs: retryMsMax, random: this.#random })
  }

  async #look(): Promise<boolean> {
    try {
      const isAsked = this.#isSought
      this.#isSought = false
      const roots = [this.#fetchRoot('/api', isAsked), this.#fetchRoot('/apis', isAsked)] as const
      const [api, apis] = await Promise.all(roots)
      if (api.kind === 'refused' || apis.kind === 'refused') {
        const status = api.kind === 'refused' ? api.status : apis.kind === 'refused' ? apis.status : 0
        this.#log[status === this.#refusalTold ? 'debug' : 'warn']('discovery.refused', { status })
        this.#refusalTold = status
        return false
      }
      for (const { head } of [api, apis]) if (!isAggregated(head.form)) await this.#fetchVersions(head)
      this.#refusalTold = 0
      this.#refused.clear()
      if (this.#rootsHeld() !== this.#adopted || !isAggregated(apis.head.form)) await this.#adopt()
      this.#sweeper.ring()
      return true
    } catch (error) {
      if (!(error instanceof Unreachable)) throw error
      this.#log.debug('discovery.unreachable', { why: error.message })
      return false
    }
  }

  #fetchRoot(place: string, isAsked: boolean): Promise<Fetched> {
    const wanted = { place, accept: aggregatedAccept, basis: plainBasis, isGood: isGoodDocument }
    return isAsked ? this.#fetcher.fetch(wanted) : this.#fetcher.look(wanted)
  }

  /** A server without the aggregated form: every group version is asked for by itself. One that fails keeps its old one. */
  async #fetchVersions(root: DocumentHead): Promise<void> {
    const places = readGroups((await this.#documentStore.content(root)) ?? Buffer.alloc(0)).flatMap(placesOf)
    const next = places.values()
    const work = async () => {
      for (const place of next) await this.#fetchPlain(place, plainBasis)
    }
    await Promise.all(Array.from({ length: plainAtOnce }, work))
  }

  #fetchPlain(place: string, basis: string): Promise<Fetched> {
    return this.#fetcher.fetch({ place, accept: plainAccept, basis, isGood: isGoodDocument })
  }

  #rootsHeld(): string {
    return ['/api', '/apis'].map((place) => this.#documentStore.find(place, aggregatedAccept)?.digest ?? '').join(' ')
  }

  /** One after the other: what was read first must not be adopted last. */
  #adopt(): Promise<void> {
    const adopting = this.#adopting.then(async () => {
      const of = this.#rootsHeld()
      const held = await readHeld(this.#documentStore)
      if (held === undefined) return
      this.#adopted = of
      this.#basis = held.basis
      this.#catalog.adopt(held.groups)
    })
    this.#adopting = adopting.catch(() => {})
    return adopting
  }

  /** Fetches documents that are missing, of an older state or no longer named, one after the other. */
  async #keepSwept(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#sweeper.wait(signal)
      const due = this.#due()
      for (const { place, accept } of due) {
        if (signal.aborted || this.#reachability.state !== 'reachable') break
        await this.#sweepOne(place, accept)
        await sleep(this.#clock, Math.min(sweepGapMs, sweepMs / due.length), signal)
      }
    }
  }

  /**
   * What discovery no longer names comes first: the API server is asked for it once more, and its refusal takes its place.
   * A server that just started may not name all its groups yet, and says something else than 404 until it does.
   */
  #due(): { readonly place: string; readonly accept: string }[] {
    const unnamed = [...this.#documentStore.places()].filter((place) => isDiscovery(place) && !this.#basis.has(place))
    const named = [...this.#basis.keys(), versionPlace]
    const missing = named.filter((place) => this.#documentStore.find(place, plainAccept) === undefined)
    const old = [...unnamed, ...this.#basis.keys()].flatMap((place) =>
      this.#documentStore.formsOf(place).filter(this.#isOld),
    )
    const due = [
      ...old.map(({ place, accepts }) => ({ place, accept: accepts.at(-1) ?? plainAccept })),
      ...missing.map((place) => ({ place, accept: plainAccept })),
    ]
    return due.filter(({ place, accept }) => !this.#refused.has(`${place} ${accept}`))
  }

  /** Whether a document is of an older state of discovery than the newest that is known. */
  readonly #isOld = (head: DocumentHead): boolean => {
    if (!isAggregated(head.form)) return head.basis === '' || head.basis !== this.#basis.get(head.place)
    return etagOf(this.#documentStore.find(head.place, aggregatedAccept)) !== etagOf(head)
  }

  async #sweepOne(place: string, accept: string): Promise<void> {
    try {
      const isGood = place === versionPlace ? {} : { isGood: isGoodDocument }
      const basis = this.#basis.get(place) ?? ''
      const fetched = await this.#fetcher.fetch({ place, accept, basis, ...isGood })
      if (fetched.kind === 'refused') this.#refused.add(`${place} ${accept}`)
    } catch (error) {
      if (!(error instanceof Unreachable)) throw error
      this.#refused.add(`${place} ${accept}`)
    }
  }
}

/** Small, and asked for by everything that looks at a cluster. */
const versionPlace = '/version'
