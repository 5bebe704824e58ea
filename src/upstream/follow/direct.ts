/** Follows an interest at the API server itself: a list in pages where one is needed, then a watch. */
import type { Clock } from '../../base/clock.ts'
import { differ } from '../../cache/differ.ts'
import type { WatchFrame } from '../../kube/frames.ts'
import { type FieldPlan, scanObject } from '../../kube/object.ts'
import { objectKey } from '../../kube/resource.ts'
import type { Upstream } from '../upstream.ts'
import {
  type CloudChange,
  type Collection,
  Expired,
  type Followed,
  type From,
  type HeldState,
  type OpenFollow,
  Refused,
} from './follow.ts'
import { type CloudListing, type ListingLimits, listItemOf, type Measured, readListing } from './listing.ts'
import { type ListingTurn, ListingTurns } from './listingturns.ts'
import { Ahead, errorOf, Source, statusCode, versionOf, type WatchStream, watchSecondsMin } from './source.ts'
import { hear, witnessesOf } from './witnesses.ts'

/** A list of what is mirrored may be so many times what is held, or may be held, before memory is spared. */
const relistTimesMax = 4

type Parts = {
  readonly upstream: Upstream
  /** What a first list may bring. */
  readonly limits: ListingLimits
  readonly clock: Clock
  /** Rejects where what answers is of another cluster. */
  readonly confirm?: () => Promise<void>
}

export function followDirect(parts: Parts): OpenFollow {
  const turns = new ListingTurns(parts.clock)
  return (collection) => {
    // Lists of custom objects are named as their definition says, which may not be known yet.
    const source = new Source({ ...parts, scope: collection.scope, kind: collection.custom ? '' : collection.kind })
    const measured: Measured = { objectBytes: 0, atMs: Number.NEGATIVE_INFINITY }
    return {
      follow: (from, signal) => new Following({ ...parts, collection, source, turns, measured, from, signal }).steps(),
      identities: (of, signal) => source.identities(of, signal),
    }
  }
}

type FollowingParts = Parts & {
  readonly collection: Collection
  readonly source: Source
  readonly turns: ListingTurns
  readonly measured: Measured
  readonly from: From
  readonly signal: AbortSignal
}

class Following {
  readonly #parts: FollowingParts
  #version: number
  /** Objects that were found to be gone, with the version by which the watch has to have told so. */
  readonly #awaited = new Map<string, number>()

  constructor(parts: FollowingParts) {
    this.#parts = parts
    this.#version = parts.from.held?.version ?? 0
  }

  /** One after the other and not one inside the other: an event passes through as few hands as can be. */
  steps(): AsyncIterableIterator<Followed> {
    const opening = this.#opening()
    let watched: AsyncGenerator<Followed> | undefined
    const begun = async (): Promise<IteratorResult<Followed>> => {
      const { value, done } = await opening.next()
      if (done !== true) return { value, done: false }
      if (value === undefined) return { value, done: true }
      watched = this.#watched(value)
      return watched.next()
    }
    const steps: AsyncIterableIterator<Followed> = {
      next: () => (watched === undefined ? begun() : watched.next()),
      return: () => (watched ?? opening).return(undefined),
      [Symbol.asyncIterator]: () => steps,
    }
    return steps
  }

  /** Up to where it only remains to watch; undefined where the past is lost. */
  async *#opening(): AsyncGenerator<Followed, WatchStream | undefined> {
    const { source, from, signal, turns, collection } = this.#parts
    const { held } = from
    let { start } = from
    // First of all: another cluster's past says nothing about this one's.
    if (from.check) await this.#parts.confirm?.()
    if (held !== undefined && from.check) {
      const past = await this.#examine(held)
      if (past === 'lost') {
        yield { kind: 'lost' }
        return undefined
      }
      yield { kind: 'verified' }
      if (past === 'differs' && start === 'resume') start = 'compare'
    }
    let watch: WatchStream | undefined
    // What is of another namespace has nothing in common with it, and waits for nothing.
    const { group, version, resource, namespace } = collection.scope
    const turn = turns.of(`${group}/${version}/${resource}@${namespace}`)
    let isOpen = false
    try {
      if (start !== 'resume') {
        const listed = yield* this.#listed({ ...from, start }, turn, (opened) => {
          watch = opened
        })
        if (listed === 'lost') return undefined
        turn.leave()
      }
      watch ??= await source.watch(this.#version, signal)
      isOpen = true
      return watch
    } finally {
      turn.leave()
      if (!isOpen) watch?.close()
    }
  }

  /** Apart from what follows it: a watch lives for hours, and must not hold what a list has brought. */
  async *#listed(
    from: From,
    turn: ListingTurn,
    opened: (watch: WatchStream | undefined) => void,
  ): AsyncGenerator<Followed, 'lost' | 'told'> {
    const { held, start } = from
    // A list is as new as the moment it was asked for.
    const askedAtMs = this.#parts.clock.steady()
    const { objects, version, listKind, watch } = await this.#list(from, turn)
    opened(watch)
    if (held !== undefined && start !== 'anew') {
      if (version < held.version || (hasFallen(objects, held) && !(await this.#isForgotten(held.version)))) {
        yield { kind: 'lost' }
        return 'lost'
      }
      yield { kind: 'difference', version, listKind, askedAtMs, ...differ(held, objects, start === 'repair') }
    } else {
      yield { kind: 'snapshot', items: [...objects.values()].filter((found) => found !== 'same') }
      yield { kind: 'complete', version, listKind, askedAtMs }
    }
    this.#version = version
    // The list has told what is gone.
    this.#awaited.clear()
    return 'told'
  }

  /** Whether the cluster was put back to an earlier state, as far as a linearizable read and the newest objects tell. */
  async #examine(held: HeldState): Promise<'ours' | 'lost' | 'differs'> {
    const { source, signal } = this.#parts
    const witnesses = witnessesOf(held)
    for (const witness of witnesses) {
      const { key } = witness
      const page = await source.identities({ key }, signal).catch(unlessRefused)
      // An authorizer may look at names: then the interest itself has to do, which says how far the cluster is.
      if (page === undefined) break
      if (page.version < held.version) return 'lost'
      const testimony = hear(
        witness,
        page.entries.find((one) => one.key === key),
        held.version,
      )
      if (testimony === 'same') return 'ours'
      if (testimony === 'differs') return 'differs'
      // What is gone where nothing has happened since was never there.
      const isGone = testimony === 'absent' && page.version === held.version
      if (testimony === 'fell' || isGone) return (await this.#isForgotten(held.version)) ? 'differs' : 'lost'
      if (testimony === 'absent') this.#awaited.set(key, page.version)
      if (witness === witnesses.at(-1)) return 'ours'
    }
    const { version } = await source.page({ objects: 1 }, signal)
    return version < held.version ? 'lost' : 'ours'
  }

  /**
   * Whether the API server itself resumes nothing from this version. A restore that lets versions go on far ahead says so of
   * every version before: then none of them will come again, and the difference is all that clients need.
   */
  async #isForgotten(version: number): Promise<boolean> {
    try {
      await this.#parts.source.page({ objects: 1, exactly: version }, this.#parts.signal)
      return false
    } catch (error) {
      if (error instanceof Expired) return true
      throw error
    }
  }

  async #list({ held, start, exactly }: From, turn: ListingTurn): Promise<CloudListing> {
    const { source, collection, measured, clock, signal } = this.#parts
    const limits = limitsOf(this.#parts)
    // A version of another past may be the same and its object another: then all of it is read.
    const standing = (key: string) => (start === 'anew' || held?.isCorrupt(key) === true ? undefined : held?.peek(key))
    const { custom, known } = collection
    const parts = { source, custom, known, plan: held?.plan ?? collection.plan(), standing, clock, signal }
    // What is held already is only named, which takes no memory and so no turn.
    if (held !== undefined) return await readListing({ ...parts, limits: relistLimits(limits, held) })
    const first = { ...parts, limits, measured, turn }
    if (exactly === undefined) return await readListing(first)
    try {
      return await readListing({ ...first, exactly })
    } catch (error) {
      // That version is gone or not yet there: the newest one will do.
      if (error instanceof Expired || error instanceof Ahead) return await readListing(first)
      throw error
    }
  }

  async *#watched(watch: WatchStream): AsyncGenerator<Followed> {
    const { clock, collection } = this.#parts
    const openedAtMs = clock.steady()
    try {
      yield { kind: 'live', heardAt: () => watch.heardAt() }
      for (;;) {
        const { value: frames, done } = await watch.frames.next()
        if (done === true) break
        const plan = collection.plan()
        const changes: CloudChange[] = []
        let fault: unknown
        try {
          for (const frame of frames) this.#take(frame, plan, changes)
        } catch (error) {
          fault = error
        }
        // What came whole before something that is not counts.
        if (changes.length > 0) yield { kind: 'changes', changes, plan }
        // What is gone in this past and was never deleted in it was never there: the copy has it from another.
        if (this.#isOverdue()) return yield { kind: 'lost' }
        if (fault !== undefined) throw fault
      }
      if (clock.steady() - openedAtMs >= 1000 * watchSecondsMin) yield { kind: 'over' }
    } finally {
      watch.close()
    }
  }

  /** Versions are told in order, one change each: whatever came with the awaited one comes after the deletion or is it. */
  #isOverdue(): boolean {
    if (this.#awaited.size > 0) for (const version of this.#awaited.values()) if (this.#version >= version) return true
    return false
  }

  #take(frame: WatchFrame, plan: FieldPlan, changes: CloudChange[]): void {
    const { custom } = this.#parts.collection
    if (frame.type === 'ERROR') throw errorOf(statusCode(frame.object), frame.object)
    const mirrored = frame.type === 'ADDED' || frame.type === 'MODIFIED'
    const scan = mirrored ? scanObject(frame.object, plan) : scanObject(frame.object)
    const version = versionOf(scan.resourceVersion)
    // Told already, by a list that was newer than its own label.
    if (version <= this.#version) return
    if (frame.type !== 'BOOKMARK') this.#parts.source.check(frame.object, scan)
    this.#version = version
    if (frame.type === 'BOOKMARK') {
      changes.push({ type: 'progress', version })
      return
    }
    const key = objectKey(scan.namespace, scan.name)
    if (this.#awaited.size > 0) this.#awaited.delete(key)
    if (mirrored) changes.push({ type: 'put', item: listItemOf(frame.object, scan, { custom, version }) })
    else changes.push({ type: 'remove', key, version })
  }
}

/** What a first list may bring, as that is when each page of it has come. */
function limitsOf({ limits, collection }: FollowingParts): ListingLimits {
  const { room } = collection
  if (room === undefined) return limits
  return {
    objects: limits.objects,
    get bytes() {
      return Math.min(limits.bytes, room())
    },
  }
}

function unlessRefused(error: unknown): undefined {
  if (!(error instanceof Refused)) throw error
}

/** Whether an object is older than it was. */
function hasFallen(objects: CloudListing['objects'], held: HeldState): boolean {
  for (const found of objects.values()) {
    if (found === 'same' || held.isCorrupt(found.key)) continue
    if (found.version < (held.peek(found.key)?.version ?? 0)) return true
  }
  return false
}

/** What is mirrored already stays mirrored, however it grew; what grows without end between two lists is no cluster. */
function relistLimits({ objects, bytes }: ListingLimits, held: HeldState): ListingLimits {
  return {
    objects: relistTimesMax * Math.max(objects, held.size),
    bytes: relistTimesMax * Math.max(bytes, held.bytes),
  }
}
