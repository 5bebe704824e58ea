/**
 * One published change, as the readers of an interest share it, and what a reader sees of it: the object before and after,
 * and each frame built once per form however many streams it goes to.
 */
import type { Gap } from '../store/store.ts'
import { type Filter, mayHave } from './filter.ts'
import { type Item, relabel } from './item.ts'

export type FrameType = 'ADDED' | 'MODIFIED' | 'DELETED'

/** How a class of watchers wants frames spelled: plain JSON of one version, Table, metadata only. */
export interface Form {
  frame(type: FrameType, item: Item): Buffer
  bookmark(version: number, initialEventsEnd: boolean): Buffer
  /** A frame is more than spliced: a reader that needs many of them at once has them made in turns, a few at a time. */
  readonly isLaborious?: boolean
  /** Frames made for a watch were not sent: what is told only once has to be told again. */
  dropped?(): void
}

/** A change as a reader sees it whose filter selects something of it. */
export type WatchEvent = {
  readonly type: FrameType
  /** After the change; of a deletion the last state under the version that its reader is at then. */
  readonly item: Item
  /** What the reader has had of the object, as it was told; undefined when it had nothing. */
  readonly previous: Item | undefined
  /** Its place in the history, by label and by order. */
  readonly version: number
  readonly position: number
  /** Its version is not the one at which it happened: a list told of it, as part of a gap. */
  readonly isRelabelled: boolean
}

/** One that all readers who are live now are told of: each frame of it is built once. */
export class SharedEvent implements WatchEvent {
  readonly type: FrameType
  readonly item: Item
  readonly previous: Item | undefined
  readonly version: number
  readonly position: number
  readonly isRelabelled: boolean
  #form: Form | undefined
  #frame: Buffer | undefined
  #others: Map<Form, Buffer> | undefined

  constructor(event: WatchEvent) {
    this.type = event.type
    this.item = event.item
    this.previous = event.previous
    this.version = event.version
    this.position = event.position
    this.isRelabelled = event.isRelabelled
  }

  /** Nearly every event meets one form only, so the first frame lives in a field and the rest in a map. */
  frame(form: Form): Buffer {
    if (this.#form === form) return this.#frame as Buffer
    let frame = this.#others?.get(form)
    if (frame !== undefined) return frame
    frame = form.frame(this.type, this.item)
    if (this.#form === undefined) {
      this.#form = form
      this.#frame = frame
    } else {
      this.#others ??= new Map()
      this.#others.set(form, frame)
    }
    return frame
  }
}

/** Everything up to this version has been told. `endsState`: what came before it were the objects a stream began with. */
export type Bookmark = { readonly type: 'BOOKMARK'; readonly version: number; readonly endsState: boolean }

export class Event {
  readonly position: number
  readonly version: number
  readonly key: string
  /** After the change; undefined when it was a removal. */
  readonly item: Item | undefined
  readonly previous: Item | undefined
  /** The gap whose deletion this is: a watch that resumed inside it hears of it whatever its label. */
  readonly gap: Gap | undefined
  #shared: (SharedEvent | undefined)[] = []

  constructor(parts: {
    position: number
    version: number
    key: string
    item: Item | undefined
    previous: Item | undefined
    gap?: Gap | undefined
  }) {
    this.position = parts.position
    this.version = parts.version
    this.key = parts.key
    this.item = parts.item
    this.previous = parts.previous
    this.gap = parts.gap
  }

  /** Its version is not the one at which it happened: a list told of it, as part of a gap. */
  get isRelabelled(): boolean {
    return this.gap !== undefined || this.#isPutBack
  }

  /** By a restore that let versions go on. */
  get #isPutBack(): boolean {
    return this.item !== undefined && this.item.version < this.version
  }

  /** What a watcher with this filter sees of the change: entering is ADDED, leaving is DELETED (A4). */
  typeFor(filter: Filter): FrameType | undefined {
    const was = this.previous !== undefined && mayHave(filter, this.previous)
    const is = this.item !== undefined && filter.matches(this.item)
    if (is) return was ? 'MODIFIED' : 'ADDED'
    return was ? 'DELETED' : undefined
  }

  /** As one reader sees it that catches up. */
  seen(type: FrameType): WatchEvent {
    const { version, position, isRelabelled } = this
    // A deletion is labelled with the version of the change: reflectors take theirs from every event. What left a filter
    // by being put back is labelled before the rest of its gap.
    const item =
      type === 'DELETED' ? relabel(this.previous as Item, this.#isPutBack ? version - 1 : version) : this.item
    return {
      type,
      item: item as Item,
      previous: type === 'ADDED' ? undefined : this.previous,
      version,
      position,
      isRelabelled,
    }
  }

  /** As all readers see it that are told of it now. */
  shared(type: FrameType): SharedEvent {
    const slot = type === 'ADDED' ? 0 : type === 'MODIFIED' ? 1 : 2
    let event = this.#shared[slot]
    if (event === undefined) {
      event = new SharedEvent(this.seen(type))
      this.#shared[slot] = event
    }
    return event
  }

  /** What is shared is for streams that are here now; a stream that catches up later has its own made. */
  dropShared(): void {
    this.#shared = []
  }
}
