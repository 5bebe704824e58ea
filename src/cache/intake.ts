/**
 * What a mirror brings into one interest: the changes of an upstream watch, the difference a relist found, a first sync.
 * Everything keeps the cloud's own versions. One commit of an interest is under way at a time and what comes meanwhile
 * shares the next: a commit that the disk refuses is followed by nothing, so no hole can come into a history.
 *
 * None of this is synced to the disk before it is published: the cloud can send it again, and flash cards wear out.
 */
import type { FieldPlan } from '../kube/object.ts'
import { afterAll, type Batch, type Change, type Gap } from '../store/store.ts'
import type { Cache } from './cache.ts'
import { Event } from './event.ts'
import { type Item, makeItem } from './item.ts'
import type { MirrorCopy } from './mirrorcopy.ts'
import { putOf, seedOf } from './shareditems.ts'

/** One commit takes at most this many changes: a burst must not make a single one endless. */
const stepsPerCommitMax = 512

type Step = {
  readonly version: number
  readonly key: string
  readonly item: Item | undefined
  /** The fields that were read from the item. */
  readonly plan: FieldPlan
}

/** What a list found to differ from the copy. */
export type Difference = {
  /** The version of the list. */
  readonly version: number
  /** New and changed objects. */
  readonly changed: readonly Item[]
  /** Keys of objects that are no longer there, or there again with another uid. */
  readonly gone: readonly string[]
}

export class Intake {
  readonly #copy: MirrorCopy
  readonly cache: Cache
  #queue: Step[] = []
  #queuedBytes = 0
  #upTo = 0
  #pumping: Promise<void> | undefined
  #fault: Error | undefined
  readonly #onFault: (fault: Error) => void

  constructor(parts: { copy: MirrorCopy; cache: Cache; onFault?: (fault: Error) => void }) {
    this.#copy = parts.copy
    this.cache = parts.cache
    this.#onFault = parts.onFault ?? (() => {})
    this.#upTo = parts.cache.version
  }

  /** Handed over and not yet published. */
  get queuedBytes(): number {
    return this.#queuedBytes
  }

  /** The newest version handed over. */
  get version(): number {
    return this.#upTo
  }

  put(item: Item): void {
    if (this.#fault !== undefined) throw this.#fault
    const { key, version } = item
    this.#push({ version, key, item: this.cache.take(item), plan: this.cache.plan })
  }

  remove(key: string, version: number): void {
    this.#push({ version, key, item: undefined, plan: this.cache.plan })
  }

  /** Everything up to this version has been handed over. */
  reach(version: number): void {
    // After a refusal nothing is complete that lies beyond it.
    if (this.#fault !== undefined) throw this.#fault
    if (version <= this.#upTo) return
    this.#upTo = version
    this.#begin()
  }

  #push(step: Step): void {
    if (this.#fault !== undefined) throw this.#fault
    this.#queue.push(step)
    this.#queuedBytes += step.item?.bytes.length ?? 0
    this.#upTo = Math.max(this.#upTo, step.version)
    this.#begin()
  }

  #begin(): void {
    this.#pumping ??= this.#pump()
  }

  /** Resolves when everything handed over is published; rejects with what the disk said. */
  async settled(): Promise<void> {
    while (this.#pumping !== undefined) await this.#pumping
    if (this.#fault !== undefined) throw this.#fault
  }

  async #pump(): Promise<void> {
    // Whatever arrives in the same turn shares the commit.
    await Promise.resolve()
    try {
      for (;;) {
        const steps = this.#queue.splice(0, stepsPerCommitMax)
        const upTo = this.#queue.length === 0 ? this.#upTo : 0
        if (steps.length === 0 && upTo <= this.cache.version) break
        await this.#commit(steps, upTo)
        this.cache.progress.advance(upTo)
      }
    } catch (error) {
      this.#fault = error instanceof Error ? error : new Error(String(error))
      for (const { item } of this.#queue) item?.shared?.letGo()
      this.#queue = []
      this.#queuedBytes = 0
      this.#onFault(this.#fault)
    } finally {
      this.#pumping = undefined
    }
  }

  async #commit(steps: readonly Step[], upTo: number): Promise<void> {
    const { interest } = this.cache
    const changes: Change[] = []
    const events: { position: number; step: Step }[] = []
    // A removal of what is not there changes nothing; within one batch the last word on a key counts.
    const present = new Map<string, boolean>()
    for (const step of steps) {
      const { key, version, item } = step
      const there = present.get(key) ?? this.cache.peek(key) !== undefined
      present.set(key, item !== undefined)
      if (item === undefined && !there) continue
      const position = ++this.cache.lastPosition
      events.push({ position, step })
      if (item === undefined) changes.push({ interest, key, version, kind: 'delete', position })
      else changes.push(putOf(interest, item, { version, position }))
    }
    const interests = this.#toWriteDown(upTo)
    if (changes.length + interests.length > 0) await this.#bring({ changes, interests }, steps)
    for (const { position, step } of events) this.#publish(step, position)
    for (const step of steps) {
      this.#queuedBytes -= step.item?.bytes.length ?? 0
      this.cache.progress.advance(step.version)
    }
  }

  /** What is refused is let go: it is not published. */
  async #bring(batch: Omit<Batch, 'synced'>, brought: Iterable<{ readonly item: Item | undefined }>): Promise<void> {
    try {
      await this.#copy.commit({ ...batch, synced: false })
    } catch (error) {
      for (const { item } of brought) item?.shared?.letGo()
      throw error
    }
  }

  /**
   * How far it has come without a change is written down now and then. But after a restore, as long as versions of the lost
   * past lie ahead, a client that is further than we are is taken for one of that past: then it is written before it is told.
   */
  #toWriteDown(upTo: number): { interest: string; synced: number }[] {
    const { cache } = this
    return upTo > cache.version && cache.isGone(afterAll) ? [{ interest: cache.interest, synced: upTo }] : []
  }

  #publish({ key, version, item, plan }: Step, position: number, gap?: Gap): void {
    const { cache } = this
    // While it was committed, other fields may have become selectable.
    const isRead = item === undefined || cache.plan === plan
    const read = isRead ? item : (item.shared?.readBy(cache.plan) ?? makeItem(item.bytes, item.version, cache.plan))
    cache.publish(new Event({ position, version, key, item: read, previous: cache.peek(key), gap }))
  }

  /** Takes the place of damaged objects that everybody else still has as they are: nothing has happened to them. */
  async repair(items: readonly Item[]): Promise<void> {
    if (items.length === 0) return
    const taken = this.#take(items)
    const changes = taken.map(({ item }) => seedOf(this.cache.interest, item))
    await this.#bring({ changes }, taken)
    for (const { item } of taken) this.cache.seed(item)
  }

  #take(items: readonly Item[]): { readonly item: Item }[] {
    return items.map((item) => ({ item: this.cache.take(item) }))
  }

  /**
   * Writes a difference as a gap (decision 3 of docs/architecture.md): all deletions first under the last version before
   * it, then the changes in the order of their versions.
   */
  async differ(difference: Difference): Promise<void> {
    await this.settled()
    const { cache } = this
    const { version } = difference
    if (cache.isDoubted && version === cache.version) await this.#restate(difference)
    else await this.#writeGap(difference)
    cache.isDoubted = false
    this.#upTo = Math.max(this.#upTo, version)
    cache.progress.advance(version)
    for (const watcher of cache.watchers) watcher.bookmark(0)
  }

  /**
   * What was lost lies before the version the copy has, and that is the newest there is: there is no label left to tell
   * it under. The objects are put in place, and whoever has not come as far lists again.
   */
  async #restate({ version, changed, gone }: Difference): Promise<void> {
    const { cache } = this
    const { interest, plan } = cache
    const removed = gone.map((key) => ({ key, position: ++cache.lastPosition }))
    const changes: Change[] = removed.map((one) => ({ interest, version, kind: 'delete', ...one }))
    const taken = this.#take(changed)
    for (const { item } of taken) changes.push(seedOf(interest, item))
    const said = { interest, synced: version, floor: version, sound: true as const }
    await this.#bring({ changes, interests: [said] }, taken)
    for (const { key, position } of removed) this.#publish({ version, key, item: undefined, plan }, position)
    for (const { item } of taken) cache.seed(item)
  }

  async #writeGap({ version, changed, gone }: Difference): Promise<void> {
    const { cache } = this
    const { interest } = cache
    const from = cache.version
    // Whatever was lost is part of the difference.
    const sound = cache.isDoubted ? { sound: true as const } : {}
    if (changed.length > 0 || gone.length > 0) {
      // A version beyond the list's own would hide what happens next: a newer list has to be waited for.
      if (version <= from) throw new Error(`a list at ${version} differs from what is known of ${from}`)
      const { plan } = cache
      const gap: Gap = { position: ++cache.lastPosition, from, to: version }
      const events: { position: number; step: Step; gap?: Gap }[] = []
      const changes: Change[] = [{ interest, position: gap.position, version: from, key: String(gap.to), kind: 'gap' }]
      for (const key of gone) {
        const position = ++cache.lastPosition
        changes.push({ interest, position, version: from, key, kind: 'delete' })
        events.push({ position, step: { version: from, key, item: undefined, plan }, gap })
      }
      const ordered = [...changed].sort((a, b) => a.version - b.version)
      const taken = this.#take(ordered)
      for (const { item } of taken) {
        const { key } = item
        // Put back to an older version by a restore that let versions go on: it has happened after `from` nevertheless.
        const label = Math.max(item.version, from + 1)
        const position = ++cache.lastPosition
        changes.push(putOf(interest, item, { version: label, position }))
        events.push({ position, step: { version: label, key, item, plan } })
      }
      // How far it reaches is written with it: after a crash the next gap begins where this one ends.
      await this.#bring({ changes, interests: [{ interest, synced: version, ...sound }] }, taken)
      cache.history.noteGap(gap)
      for (const { step, position, gap: of } of events) this.#publish(step, position, of)
    } else {
      const interests = cache.isDoubted ? [{ interest, synced: version, ...sound }] : this.#toWriteDown(version)
      if (interests.length > 0) await this.#copy.commit({ changes: [], interests, synced: false })
    }
  }
}
