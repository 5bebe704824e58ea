/**
 * One published change, as the watchers of an interest share it: the object before and after, and each frame built once
 * per form however many streams it goes to.
 */
import type { Gap } from '../store/store.ts'
import { type Item, relabel } from './item.ts'

export type FrameType = 'ADDED' | 'MODIFIED' | 'DELETED'

/** How a class of watchers wants frames spelled: plain JSON of one version, Table, metadata only. */
export interface Form {
  frame(type: FrameType, item: Item): Buffer
  bookmark(version: number, initialEventsEnd: boolean): Buffer
  /** A frame is more than spliced: whoever needs many of them at once has them made in turns, a few at a time. */
  readonly isLaborious?: boolean
  /** Frames made for a watch were not sent: what is told only once has to be told again. */
  dropped?(): void
}

export class Event {
  readonly position: number
  readonly version: number
  readonly key: string
  /** After the change; undefined when it was a removal. */
  readonly item: Item | undefined
  readonly previous: Item | undefined
  /** The gap whose deletion this is: who resumed inside it hears of it whatever its label. */
  readonly gap: Gap | undefined
  #removed: Item | undefined
  #form: Form | undefined
  #frames: (Buffer | undefined)[] = []
  #others: Map<Form, (Buffer | undefined)[]> | undefined

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

  /** What a watcher with this filter sees of the change: entering is ADDED, leaving is DELETED (A4). */
  typeFor(matches: (item: Item) => boolean): FrameType | undefined {
    const was = this.previous !== undefined && matches(this.previous)
    const is = this.item !== undefined && matches(this.item)
    if (is) return was ? 'MODIFIED' : 'ADDED'
    return was ? 'DELETED' : undefined
  }

  /** The last state, labelled with the version of this change: reflectors take their version from every event. */
  get removed(): Item | undefined {
    if (this.#removed === undefined && this.previous !== undefined) {
      this.#removed = relabel(this.previous, this.version)
    }
    return this.#removed
  }

  frame(form: Form, type: FrameType): Buffer {
    const frames = this.#framesOf(form)
    const slot = type === 'ADDED' ? 0 : type === 'MODIFIED' ? 1 : 2
    let frame = frames[slot]
    if (frame === undefined) {
      frame = form.frame(type, (type === 'DELETED' ? this.removed : this.item) as Item)
      frames[slot] = frame
    }
    return frame
  }

  /** Nearly every event meets one form only, so the first lives in a field and the rest in a map. */
  #framesOf(form: Form): (Buffer | undefined)[] {
    if (this.#form === undefined || this.#form === form) {
      this.#form = form
      return this.#frames
    }
    this.#others ??= new Map()
    let frames = this.#others.get(form)
    if (frames === undefined) {
      frames = []
      this.#others.set(form, frames)
    }
    return frames
  }

  /** Frames are for streams that are here now; whoever catches up later builds its own. */
  dropFrames(): void {
    this.#form = undefined
    this.#frames = []
    this.#others = undefined
  }
}
