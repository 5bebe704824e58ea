/**
 * One interest as all edges see it that have it: a part of what its source holds. It is exactly as far as the events that its
 * readers were told: the cache publishes and tells in one turn. Its digest is kept current with each event, once for all of them; that of
 * a single object is made when it is asked for, since most interests of an edge are names, and a tree of each would be most
 * of what an edge costs a hub.
 */
import { pieceMsMax, turns } from '../../base/turns.ts'
import type { Cache } from '../../cache/cache.ts'
import type { Receiver } from '../../cache/dispatch.ts'
import type { Event } from '../../cache/event.ts'
import type { Filter } from '../../cache/filter.ts'
import type { Item } from '../../cache/item.ts'
import { DigestTree } from '../../link/digest/digest.ts'
import type { SessionRefusal } from '../../link/session/hubgreeting.ts'
import { digestEntry, type InterestView, type LinkEvent, type LinkObject } from '../../link/session/session.ts'
import type { Interest } from '../../mirror/interest.ts'
import { afterAll } from '../../store/store.ts'

/** A view by a selector, as it counts for those who have it. */
export type SelectedView = {
  readonly isMade: boolean
  readonly readers: number
  /** In its digest. */
  readonly objects: number
}

/** One subscription of an edge. */
export interface SourceReader {
  /** A part of the hub itself, which compares nothing. */
  readonly skipsDigest?: boolean
  /** Before it is shown a view by a selector; undefined: it may have that. A part of the hub may have any. */
  selects?(view: SelectedView): SessionRefusal | undefined
  /** For it a view by a selector was made, out of so many objects. */
  looked?(objects: number, found: number): void
  /** It may be read now, and everything that happens in it is told from now on. */
  opened(view: InterestView): void
  event(event: LinkEvent): void
  /** The last word: it cannot be had, or not any longer. */
  refused(refusal: SessionRefusal): void
}

/** What the view is a part of. */
export type ViewedSource = {
  readonly number: number
  readonly cache: Cache
  /** Where it began to be followed, or the end of the last gap that deletions were found by: an edge that stands before it compares. */
  readonly knownFrom: number
}

const nobodyElse: readonly SourceReader[] = []
const nothingLately = [undefined, undefined] as const
/** Objects hashed before the clock is looked at. */
const digestsPerLook = 64

export class SharedView implements InterestView, Receiver {
  readonly wanted: Interest
  readonly #of: ViewedSource
  readonly #digestKey: Buffer
  #tree: DigestTree | undefined
  /** Most views have one, and a set for it would take as much as the view itself. */
  #reader: SourceReader | undefined
  #others: Set<SourceReader> | undefined
  /** Those that wait for the digest. */
  #opening: Set<SourceReader> | undefined
  #state: 'new' | 'preparing' | 'ready' = 'new'
  /** Those that changed last: new objects are often like them. */
  #lately: readonly [Item | undefined, Item | undefined] = nothingLately
  #filter: Filter
  /** When the last reader left, by the steady clock. */
  unusedSince: number | undefined

  constructor(of: ViewedSource, wanted: Interest, filter: Filter, digestKey: Buffer) {
    this.#of = of
    this.wanted = wanted
    this.#filter = filter
    this.#digestKey = digestKey
    // Of one object there is nothing to be prepared.
    if (filter.key !== undefined) this.#state = 'ready'
  }

  get filter(): Filter {
    return this.#filter
  }

  /** Other fields of its objects are read from now on. */
  set filter(filter: Filter) {
    this.#filter = filter
    this.#lately = nothingLately
  }

  /** Whether it goes by a selector: a name, a namespace or everything are found without looking. */
  get isSelecting(): boolean {
    return this.#filter.key === undefined && this.#filter.selects
  }

  get isMade(): boolean {
    return this.#state !== 'new'
  }

  get objects(): number {
    return this.#tree?.size ?? 0
  }

  get source(): number {
    return this.#of.number
  }

  get version(): number {
    return this.#of.cache.version
  }

  get floor(): number {
    return Math.max(this.#of.cache.history.window.floor.version, this.#of.knownFrom)
  }

  get digest(): DigestTree {
    if (this.#tree !== undefined) return this.#tree
    const tree = new DigestTree(this.#digestKey)
    for (const item of this.#of.cache.list(this.#filter)) tree.put(digestEntry(item))
    return tree
  }

  get readers(): number {
    return (this.#reader === undefined ? 0 : 1) + (this.#others?.size ?? 0) + (this.#opening?.size ?? 0)
  }

  *behind(key: string): Generator<LinkObject> {
    const items = this.#of.cache.list(this.#filter)
    for (let at = firstBehind(items, key); at < items.length; at++) yield items[at] as Item
  }

  get(key: string): Item | undefined {
    const item = this.#of.cache.get(key)
    return item !== undefined && this.#filter.matches(item) ? item : undefined
  }

  *since(version: number): Generator<LinkEvent> {
    for (const event of this.#of.cache.history.window.after({ version, position: afterAll })) {
      const seen = this.#see(event)
      if (seen !== undefined) yield seen
    }
  }

  near(key: string): LinkObject | undefined {
    return this.#lately.find((item) => item !== undefined && item.key !== key && this.get(item.key) === item)
  }

  /** The reader is told once the digest is there: for many objects that takes a moment, in which others have their turns. */
  add(reader: SourceReader): void {
    this.unusedSince = undefined
    if (this.#state === 'ready' || reader.skipsDigest === true) {
      if (this.#reader === undefined) this.#reader = reader
      else {
        this.#others ??= new Set()
        this.#others.add(reader)
      }
      reader.opened(this)
      return
    }
    this.#opening ??= new Set()
    this.#opening.add(reader)
    if (this.#state === 'new') void this.#prepare(reader)
  }

  /** Whether it was one. */
  delete(reader: SourceReader): boolean {
    if (this.#reader !== reader) return this.#others?.delete(reader) === true || this.#opening?.delete(reader) === true
    this.#reader = undefined
    return true
  }

  /** No event is told any more. */
  end(refusal: SessionRefusal): void {
    const [first, all] = [this.#reader, [...(this.#others ?? []), ...(this.#opening ?? [])]]
    this.#reader = undefined
    this.#others = undefined
    this.#opening = undefined
    first?.refused(refusal)
    for (const reader of all) reader.refused(refusal)
  }

  receive(event: Event): void {
    const seen = this.#see(event)
    if (seen === undefined) return
    const { item } = event
    if (seen.item === undefined) this.#tree?.remove(event.key)
    else if (item !== undefined) {
      this.#tree?.put(digestEntry(item))
      if (this.#lately[0]?.key !== item.key) this.#lately = [item, this.#lately[0]]
      else this.#lately = [item, this.#lately[1]]
    }
    this.#reader?.event(seen)
    for (const reader of this.#others ?? nobodyElse) reader.event(seen)
  }

  /** What was in it before and what is in it now: leaving it is a removal. */
  #see(event: Event): LinkEvent | undefined {
    const type = event.typeFor(this.#filter)
    if (type === undefined) return undefined
    const { key, version, item, previous, isRelabelled } = event
    return {
      ...{ key, version, isRelabelled },
      item: type === 'DELETED' ? undefined : item,
      previous: type === 'ADDED' ? undefined : previous,
    }
  }

  /** What changes meanwhile is taken as it comes; what is looked at later is taken as it is then. */
  async #prepare(reader: SourceReader): Promise<void> {
    this.#state = 'preparing'
    this.#tree = new DigestTree(this.#digestKey)
    const items = this.#of.cache.list(this.#filter)
    if (this.isSelecting) reader.looked?.(this.#of.cache.size, items.length)
    let beganAt = performance.now()
    for (const [at, { key }] of items.entries()) {
      const item = this.get(key)
      if (item !== undefined) this.#tree.put(digestEntry(item))
      if (at % digestsPerLook > 0 || performance.now() - beganAt < pieceMsMax) continue
      await turns.take()
      beganAt = performance.now()
    }
    this.#state = 'ready'
    const opening = this.#opening
    this.#opening = undefined
    for (const reader of opening ?? []) this.add(reader)
  }
}

/** Of items in the order of their keys. */
function firstBehind(items: readonly Item[], key: string): number {
  let [low, high] = [0, items.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((items[middle] as Item).key > key) high = middle
    else low = middle + 1
  }
  return low
}
