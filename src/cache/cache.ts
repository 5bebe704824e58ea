/**
 * One interest's live copy: its objects in key order, the newest part of its history, and its watchers.
 *
 * Bytes are kept once per object version and shared by lists, frames and history. Reads never touch the disk, except a
 * watch or a list that asks for a version older than memory holds. What is in here has been committed (D1): `publish` is
 * called only by the copy that owns it, after the store answered.
 */
import type { Clock } from '../base/clock.ts'
import type { FieldPlan } from '../kube/object.ts'
import { internalError, type Status } from '../kube/status.ts'
import { HistoryGone, type LoadedInterest, type Store } from '../store/store.ts'
import { CloudState, type LabelRecord } from './cloudstate.ts'
import { Dispatch } from './dispatch.ts'
import type { Event, Form } from './event.ts'
import type { Filter } from './filter.ts'
import { History } from './history.ts'
import { damagedItem, type Item, makeItem } from './item.ts'
import { Ordered } from './ordered.ts'
import type { Pace } from './pace.ts'
import type { Progress } from './progress.ts'
import type { SharedItems } from './shareditems.ts'
import { Stream } from './stream.ts'
import type { StreamStart, Subscription } from './subscription.ts'
import { indexFromObjects, Terms } from './terms.ts'
import { Watcher, type WatchSource, type WatchStart } from './watcher.ts'

/** How each reader of an interest that is over is ended. */
type ReadersEnd = { watcher(watcher: Watcher): void; stream(stream: Stream): void }

export class Cache {
  readonly interest: string
  /** How far clients are shown it. */
  readonly progress: Progress
  /** What is beneath, where truth comes from elsewhere. */
  readonly cloud: CloudState
  readonly #clock: Clock
  readonly #pace: Pace
  #plan: FieldPlan
  #terms: Terms
  #dispatch: Dispatch<Subscription>
  /** What every stream of this cache shares. */
  #source: WatchSource
  readonly #objects = new Ordered()
  readonly #watchers = new Set<Watcher>()
  readonly #streams = new Set<Stream>()
  readonly #listeners = new Set<(event: Event) => void>()
  /** Objects whose stored bytes are damaged: known to exist, impossible to serve. All that is left of one is its name. */
  readonly #corrupt: Map<string, Item>
  /** Something was lost that may have concerned it: what is here may be too much, too little or too old. */
  isDoubted: boolean
  readonly history: History
  readonly #isGone: (version: number) => boolean
  readonly #isSetBack: () => boolean
  readonly #shared: SharedItems | undefined
  #ending: ReadersEnd | undefined
  /** Positions handed out so far; a failed commit leaves a hole. */
  lastPosition: number
  /** The version of the newest entry of its history, whatever has come of it since; 0 before there is one. */
  lastVersion: number
  bytes = 0

  constructor(parts: {
    interest: string
    store: Store
    plan: FieldPlan
    progress: Progress
    /** How far the cloud's changes are in, where that is a number of its own. */
    synced?: Progress
    /** What was written down of the difference. */
    label?: LabelRecord | undefined
    clock: Clock
    pace: Pace
    loaded?: LoadedInterest<Item> | undefined
    /** Whether a version was never given out, or in a past that no longer exists. */
    isGone?: (version: number) => boolean
    /** Whether what is mirrored was put back to an older state, and has not come as far again. */
    isSetBack?: () => boolean
    /** What it holds of it, where other interests may hold the same. */
    shared?: SharedItems
  }) {
    const { loaded, plan } = parts
    this.#isGone = parts.isGone ?? ((version) => version > this.version)
    this.#isSetBack = parts.isSetBack ?? (() => false)
    this.#shared = parts.shared
    this.interest = parts.interest
    this.progress = parts.progress
    this.#clock = parts.clock
    this.#plan = plan
    this.#terms = new Terms(plan)
    this.#dispatch = new Dispatch(plan)
    this.#corrupt = new Map(loaded?.corrupt.map((key) => [key, damagedItem(key)]))
    this.isDoubted = loaded?.isDoubted ?? false
    this.lastPosition = loaded?.lastPosition ?? 0
    this.lastVersion = loaded?.lastVersion ?? 0
    for (const item of loaded?.objects ?? []) {
      this.#objects.set(item)
      this.bytes += item.bytes.length
    }
    this.history = new History({
      interest: parts.interest,
      store: parts.store,
      plan,
      // Nothing is in memory yet: everything published so far has to be read from disk.
      end: { version: parts.progress.version, position: this.lastPosition },
      gaps: loaded?.gaps ?? [],
      isLoaded: loaded !== undefined,
    })
    this.cloud = new CloudState(this, parts.synced ?? parts.progress, parts.label)
    this.#pace = parts.pace
    this.#source = this.#makeSource()
  }

  #makeSource(): WatchSource {
    const { history, progress } = this
    return { history, progress, dispatch: this.#dispatch, pace: this.#pace, clock: this.#clock }
  }

  get plan(): FieldPlan {
    return this.#plan
  }

  get size(): number {
    return this.#objects.size
  }

  get watchers(): ReadonlySet<Watcher> {
    return this.#watchers
  }

  /** Those of readers within this process. */
  get streams(): ReadonlySet<Stream> {
    return this.#streams
  }

  /** The version that clients are shown: of lists, bookmarks and newest changes. It never falls. */
  get version(): number {
    return this.progress.version
  }

  /** A version ahead of us is waited for where truth comes from elsewhere; an authority knows that it never gave it out. */
  isGone(version: number): boolean {
    return this.#isGone(version)
  }

  /** After a restore a client may hold a version of the lost past, which lies ahead. */
  get isSetBack(): boolean {
    return this.#isSetBack()
  }

  get(key: string): Item | undefined {
    if (this.#corrupt.size > 0) this.#refuseCorrupt(key)
    return this.#objects.get(key)
  }

  /** What is there, damaged or not: for the copy itself, which replaces what it finds. */
  peek(key: string): Item | undefined {
    return this.#objects.get(key) ?? this.#corrupt.get(key)
  }

  isCorrupt(key: string): boolean {
    return this.#corrupt.has(key)
  }

  get corrupt(): Iterable<string> {
    return this.#corrupt.keys()
  }

  get isDamaged(): boolean {
    return this.#corrupt.size > 0 || this.isDoubted
  }

  /** Everything sound, in key order. */
  all(): Item[] {
    return this.#objects.all()
  }

  /** Matching objects in key order. */
  list(filter: Filter): Item[] {
    for (const key of this.#corrupt.keys()) {
      const meant = filter.namespace === undefined || key.startsWith(`${filter.namespace}/`)
      if (meant && (filter.key === undefined || filter.key === key)) this.#refuseCorrupt(key)
    }
    if (filter.key !== undefined) {
      const item = this.#objects.get(filter.key)
      return item !== undefined && filter.matches(item) ? [item] : []
    }
    const term = this.#objects.size < indexFromObjects ? undefined : filter.terms.find((one) => one.value !== '')
    if (term !== undefined) {
      const found = [...this.#terms.find(term.on, term.value, () => this.#objects.all())].filter(filter.matches)
      return found.sort(byKey)
    }
    if (filter.namespace === undefined) {
      const items = this.#objects.all()
      return filter.selects ? items.filter(filter.matches) : items
    }
    const items = this.#objects.inNamespace(filter.namespace)
    return filter.selects ? items.filter(filter.matches) : items
  }

  /** The objects as they were at a version, by undoing what came after. Rejects with HistoryGone below the floor. */
  async listAt(version: number, filter: Filter): Promise<Item[]> {
    if (version === this.version) return this.list(filter)
    // What is forgotten on disk may still be in memory: it is not shown any more.
    if (version < this.history.floor) throw new HistoryGone(this.interest, this.history.floor)
    return this.history.undo(version, (before) => {
      const items = this.list(filter).filter((item) => !before.has(item.key))
      for (const item of before.values()) if (item !== undefined && filter.matches(item)) items.push(item)
      return items.sort(byKey)
    })
  }

  watch(parts: {
    filter: Filter
    form: Form
    start: WatchStart
    bookmarks: boolean
    errorFrame: (status: Status) => Buffer
    who?: string
  }): Watcher {
    const watcher = new Watcher({ ...parts, source: this.#source })
    this.#watchers.add(watcher)
    watcher.onEnd(() => this.#watchers.delete(watcher))
    this.#ending?.watcher(watcher)
    return watcher
  }

  /** The events that a filter selects, in batches: see `stream.ts`. */
  stream(parts: { filter: Filter; start: StreamStart; bookmarks: boolean }): Stream {
    const onEnd = () => void this.#streams.delete(stream)
    const stream = new Stream({ ...parts, source: this.#source, onEnd })
    this.#streams.add(stream)
    this.#ending?.stream(stream)
    return stream
  }

  /** Hears of every change the moment it is published, before any watcher's client can; answers how to stop hearing. */
  observe(listener: (event: Event) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** The item to bring in place of this one, whose bytes another interest may have: held until it is published, or let go. */
  take(item: Item): Item {
    return this.#shared === undefined ? item : this.#shared.take(item, this.#plan)
  }

  /** Everything that it holds: its objects, what lies beneath them, and what was before as far as watches may want it. */
  held(tell: (item: Item) => void): void {
    const { window } = this.history
    for (const { previous } of window.after(window.floor)) if (previous !== undefined) tell(previous)
    for (const item of this.#objects.all()) tell(item)
    this.cloud.held(tell)
  }

  /**
   * The interest is over: what it holds is no longer its own, and nothing is published any more. Its readers are ended, and
   * so is one that comes late: a request that had found this cache before, and waited for something else meanwhile.
   */
  letGo(ending: ReadersEnd): void {
    if (this.#ending !== undefined) return
    this.#ending = ending
    // Its events stay for the watches that are ending.
    this.held(({ shared }) => shared?.letGo())
    this.cloud.letGo()
    for (const watcher of this.#watchers) ending.watcher(watcher)
    for (const stream of this.#streams) ending.stream(stream)
  }

  /** Takes over an object that was there before the history begins, or was damaged: nothing has happened to it. */
  seed(item: Item): void {
    const previous = this.#objects.get(item.key)
    previous?.shared?.letGo()
    this.#corrupt.delete(item.key)
    this.#objects.set(item)
    this.bytes += item.bytes.length - (previous?.bytes.length ?? 0)
    this.#terms.update(previous, item)
  }

  /** Makes a committed change visible. */
  publish(event: Event): void {
    const { previous, item } = event
    if (this.#ending !== undefined) {
      item?.shared?.letGo()
      return
    }
    this.lastVersion = event.version
    this.#corrupt.delete(event.key)
    if (item !== undefined) this.#objects.set(item)
    else this.#objects.delete(event.key)
    this.bytes += (item?.bytes.length ?? 0) - (previous?.bytes.length ?? 0)
    this.#terms.update(previous, item)
    this.history.window.push(event)
    for (const listener of this.#listeners) listener(event)
    this.#pace.begin()
    this.#dispatch.send(event)
    this.#pace.end()
  }

  /** Another set of selectable fields (a CRD changed): every object is read again, and watches end so that clients ask anew. */
  replan(plan: FieldPlan): void {
    if (this.#ending !== undefined || plan.paths.join() === this.#plan.paths.join()) return
    // One that would rather wait is cut: after this its filter reads other fields, and no event reaches it.
    for (const watcher of this.#watchers) if (watcher.finish() > 0) void watcher.return()
    for (const stream of this.#streams) void stream.return()
    this.#plan = plan
    this.#terms = new Terms(plan)
    this.#dispatch = new Dispatch(plan)
    this.#source = this.#makeSource()
    this.cloud.replan(plan)
    this.history.plan = plan
    this.history.window.shrink(Number.POSITIVE_INFINITY)
    for (const item of this.#objects.all()) {
      this.#objects.set(item.shared?.readBy(plan) ?? makeItem(item.bytes, item.version, plan))
    }
  }

  #refuseCorrupt(key: string): void {
    if (!this.#corrupt.has(key)) return
    throw internalError(
      `the stored bytes of ${this.interest} "${key}" are damaged: delete it, or restore the data folder`,
    )
  }
}

function byKey(a: Item, b: Item): number {
  return a.key < b.key ? -1 : a.key > b.key ? 1 : 0
}
