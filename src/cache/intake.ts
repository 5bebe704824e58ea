/**
 * What a mirror brings into one interest: the changes of an upstream watch, the difference a relist found, a first sync.
 * Everything keeps the cloud's own versions. One commit of an interest is under way at a time and what comes meanwhile
 * shares the next: a commit that the disk refuses is followed by nothing, so no hole can come into a history.
 *
 * None of this is synced to the disk before it is published: the cloud can send it again, and flash cards wear out.
 */
import type { FieldPlan } from '../kube/object.ts'
import { afterAll, type Batch, type Change, type Gap, type InterestChange } from '../store/store.ts'
import type { Cache } from './cache.ts'
import type { Labelled } from './cloudstate.ts'
import { Event } from './event.ts'
import { type Item, makeItem } from './item.ts'
import type { MirrorCopy } from './mirrorcopy.ts'
import { putOf, seedOf } from './shareditems.ts'

const nothing: readonly InterestChange[] = []

/** One commit takes at most this many changes: a burst must not make a single one endless. */
const stepsPerCommitMax = 512

type IntakeStep = {
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
  #queue: IntakeStep[] = []
  #queuedBytes = 0
  #upTo = 0
  #pumping: Promise<void> | undefined
  #fault: Error | undefined
  readonly #onFault: (fault: Error) => void

  constructor(parts: { copy: MirrorCopy; cache: Cache; onFault?: (fault: Error) => void }) {
    this.#copy = parts.copy
    this.cache = parts.cache
    this.#onFault = parts.onFault ?? (() => {})
    this.#upTo = parts.cache.cloud.version
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

  #push(step: IntakeStep): void {
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
        if (steps.length === 0 && upTo <= this.cache.cloud.version) break
        await this.#commit(steps, upTo)
        this.#advance(upTo)
      }
    } catch (error) {
      this.#fault = error instanceof Error ? error : new Error(String(error))
      letGo(this.#queue)
      this.#queue = []
      this.#queuedBytes = 0
      this.#onFault(this.#fault)
    } finally {
      this.#pumping = undefined
    }
  }

  /** Everything of the cloud up to this version is in, and shown: under it, or under a label that clients have passed it with. */
  #advance(version: number): void {
    this.cache.progress.advance(version)
    this.cache.cloud.progress.advance(version)
  }

  async #commit(steps: readonly IntakeStep[], upTo: number, isCompared = false): Promise<void> {
    const { cache } = this
    const { interest, cloud } = cache
    const labels = cloud.labels()
    const changes: Change[] = []
    const events: Labelled[] = []
    let synced = Math.max(cloud.version, upTo)
    // A removal of what is not there changes nothing; within one batch the last word on a key counts.
    const present = new Map<string, boolean>()
    for (const { key, version, item, plan } of steps) {
      synced = Math.max(synced, version)
      const there = present.get(key) ?? cache.peek(key) !== undefined
      present.set(key, item !== undefined)
      if (item === undefined && !there) continue
      const event = labels.of({ position: ++cache.lastPosition, key, version, item, plan })
      events.push(event)
      changes.push(changeOf(interest, event))
    }
    const interests = this.#toWriteDown(upTo, isCompared)
    if (changes.length + interests.length > 0) {
      const records = cloud.records(events, synced, Math.max(labels.newest, synced))
      // As `#bring` does, without another promise for each event on its way.
      try {
        await this.#copy.commit({ changes, interests, records, synced: false })
      } catch (error) {
        letGo(steps)
        throw error
      }
      cloud.wrote(records)
    }
    for (const event of events) this.#publish(event)
    for (const step of steps) {
      this.#queuedBytes -= step.item?.bytes.length ?? 0
      this.#advance(step.version)
    }
    cache.progress.advance(labels.newest)
  }

  /** What is refused is let go: it is not published. */
  async #bring(batch: Omit<Batch, 'synced'>, brought: Brought): Promise<void> {
    try {
      await this.#copy.commit({ ...batch, synced: false })
    } catch (error) {
      letGo(brought)
      throw error
    }
    if (batch.records !== undefined) this.cache.cloud.wrote(batch.records)
  }

  /**
   * How far it has come without a change is written down now and then. But after a restore, as long as versions of the lost
   * past lie ahead, a client that is further than we are is taken for one of that past: then it is written before it is told.
   */
  #toWriteDown(upTo: number, isCompared: boolean): readonly InterestChange[] {
    const { interest, version, cloud, isDoubted } = this.cache
    const isSound = isCompared && isDoubted
    const isTold = upTo > version && this.cache.isGone(afterAll)
    if (!isTold && !isSound && !cloud.isRecorded) return nothing
    return [{ interest, synced: Math.max(upTo, version), ...(isSound ? { sound: true as const } : {}) }]
  }

  #publish(event: Labelled): void {
    const { cache } = this
    const { position, key, label, shown, plan, gap } = event
    // While it was committed, other fields may have become selectable.
    const isRead = shown === undefined || cache.plan === plan
    const read = isRead ? shown : (shown.shared?.readBy(cache.plan) ?? makeItem(shown.bytes, shown.version, cache.plan))
    cache.cloud.note(event)
    cache.publish(new Event({ position, version: label, key, item: read, previous: cache.peek(key), gap }))
  }

  /** Takes the place of damaged objects that every client still has as they are: nothing has happened to them. */
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
   * Writes a difference as a gap (decision 3 of docs/architecture.md): all deletions first under the last label before it,
   * then the changes in the order of their versions.
   */
  async differ(difference: Difference): Promise<void> {
    await this.settled()
    const { cache } = this
    const { version, changed, gone } = difference
    if (cache.isDoubted && version === cache.cloud.version) await this.#restate(difference)
    else if (changed.length > 0 || gone.length > 0) await this.#writeGap(difference)
    else await this.#commit([], version, true)
    cache.isDoubted = false
    this.#upTo = Math.max(this.#upTo, version)
    this.#advance(version)
    for (const watcher of cache.watchers) watcher.bookmark(0)
  }

  /**
   * What was lost lies before the version the copy has, and that is the newest there is: there is no label left to tell
   * it under. The objects are put in place, and a client that has not come as far lists again.
   */
  async #restate({ changed, gone }: Difference): Promise<void> {
    const { cache } = this
    const { interest, plan, version: label, cloud } = cache
    const removed = gone.map((key): Labelled => {
      return { position: ++cache.lastPosition, key, version: label, item: undefined, label, shown: undefined, plan }
    })
    const changes = removed.map((event) => changeOf(interest, event))
    const taken = this.#take(changed)
    for (const { item } of taken) changes.push(seedOf(interest, item))
    const seeded = taken.map(({ item }) => ({ key: item.key, version: item.version, item, label, shown: item }))
    const records = cloud.records([...removed, ...seeded], cloud.version, label)
    const interests = [{ interest, synced: label, floor: label, sound: true as const }]
    await this.#bring({ changes, interests, records }, taken)
    for (const event of removed) this.#publish(event)
    for (const one of seeded) {
      cloud.note(one)
      cache.seed(one.item)
    }
  }

  async #writeGap({ version, changed, gone }: Difference): Promise<void> {
    const { cache } = this
    const { interest, cloud, plan, version: from } = cache
    // A version beyond the list's own would hide what happens next: a newer list has to be waited for.
    if (version <= cloud.version) {
      throw new Error(`a list at ${version} differs from what is known of ${cloud.version}`)
    }
    const labels = cloud.labels()
    const gapAt = ++cache.lastPosition
    const removed = gone.map((key) => ({ position: ++cache.lastPosition, key, item: undefined, plan }))
    const ordered = [...changed].sort((a, b) => a.version - b.version)
    const put = this.#take(ordered).map(({ item }) => {
      return labels.of({ position: ++cache.lastPosition, key: item.key, version: item.version, item, plan })
    })
    const gap: Gap = { position: gapAt, from, to: Math.max(version, labels.newest, from + 1) }
    const events: Labelled[] = [
      ...removed.map((one) => ({ ...one, version: from, label: from, shown: undefined, gap })),
      ...put,
    ]
    const opening: Change = { interest, position: gap.position, version: from, key: String(gap.to), kind: 'gap' }
    const changes = [opening, ...events.map((event) => changeOf(interest, event))]
    const records = cloud.records(events, version, gap.to)
    // How far it reaches is written with it: after a crash the next gap begins where this one ends. What was lost is part of it.
    const said = { interest, synced: gap.to, ...(cache.isDoubted ? { sound: true as const } : {}) }
    await this.#bring({ changes, interests: [said], records }, put)
    cache.history.noteGap(gap)
    for (const event of events) this.#publish(event)
    cache.progress.advance(gap.to)
  }
}

function changeOf(interest: string, { position, key, label: version, shown }: Labelled): Change {
  if (shown === undefined) return { interest, position, version, key, kind: 'delete' }
  return putOf(interest, shown, { version, position })
}

type Brought = Iterable<{ readonly item: Item | undefined }>

function letGo(brought: Brought): void {
  for (const { item } of brought) item?.shared?.letGo()
}
