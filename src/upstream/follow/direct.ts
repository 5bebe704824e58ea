/** Follows an interest at the API server itself: a list in pages where one is needed, then a watch. */
import type { Clock } from '../../base/clock.ts'
import { differ } from '../../cache/differ.ts'
import type { Frame } from '../../kube/frames.ts'
import { type FieldPlan, scanObject } from '../../kube/object.ts'
import { objectKey } from '../../kube/resource.ts'
import type { Upstream } from '../upstream.ts'
import { type Change, Expired, type Followed, type From, type Held, type OpenFollow, type Wanted } from './follow.ts'
import { type Listing, type ListingLimits, listItemOf, readListing, statusCode, versionOf } from './listing.ts'
import { Ahead, errorOf, Source, type WatchStream, watchSecondsMin } from './source.ts'

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
  return (wanted) => {
    // Lists of custom objects are named as their definition says, which may not be known yet.
    const source = new Source({ ...parts, scope: wanted.scope, kind: wanted.custom ? '' : wanted.kind })
    return (from, signal) => new Following({ ...parts, wanted, source, from, signal }).steps()
  }
}

type FollowingParts = Parts & {
  readonly wanted: Wanted
  readonly source: Source
  readonly from: From
  readonly signal: AbortSignal
}

class Following {
  readonly #parts: FollowingParts
  #version: number

  constructor(parts: FollowingParts) {
    this.#parts = parts
    this.#version = parts.from.held?.version ?? 0
  }

  async *steps(): AsyncGenerator<Followed> {
    const { source, from, clock, signal } = this.#parts
    const { held, start } = from
    // First of all: another cluster's past says nothing about this one's.
    if (from.check) await this.#parts.confirm?.()
    if (held !== undefined && from.check) {
      if (await this.#wentBack(held)) return yield { kind: 'lost' }
      yield { kind: 'verified' }
    }
    let watch: WatchStream | undefined
    try {
      if (start !== 'resume') {
        // A list is as new as the moment it was asked for.
        const askedAtMs = clock.steady()
        const { objects, version, listKind, ...listed } = await this.#list(from)
        watch = listed.watch
        if (held !== undefined && start !== 'anew') {
          if (version < held.version) return yield { kind: 'lost' }
          yield { kind: 'difference', version, listKind, askedAtMs, ...differ(held, objects, start === 'repair') }
        } else {
          yield { kind: 'snapshot', items: [...objects.values()].filter((found) => found !== 'same') }
          yield { kind: 'complete', version, listKind, askedAtMs }
        }
        this.#version = version
      }
      watch ??= await source.watch(this.#version, signal)
      yield* this.#watched(watch)
    } finally {
      watch?.close()
    }
  }

  /** Whether a linearizable read is older than the copy is: then the cluster was put back to an earlier state. */
  async #wentBack(held: Held): Promise<boolean> {
    const { version } = await this.#parts.source.page({ objects: 1 }, this.#parts.signal)
    return version < held.version
  }

  async #list({ held, start, exactly }: From): Promise<Listing> {
    const { source, wanted, clock, signal } = this.#parts
    const limits = limitsOf(this.#parts)
    // A version of another past may be the same and its object another: then all of it is read.
    const standing = (key: string) => (start === 'anew' || held?.isCorrupt(key) === true ? undefined : held?.peek(key))
    const parts = { source, custom: wanted.custom, plan: held?.plan ?? wanted.plan(), standing, clock, signal }
    if (held !== undefined) return await readListing({ ...parts, limits: relistLimits(limits, held) })
    if (exactly === undefined) return await readListing({ ...parts, limits })
    try {
      return await readListing({ ...parts, limits, exactly })
    } catch (error) {
      // That version is gone or not yet there: the newest one will do.
      if (error instanceof Expired || error instanceof Ahead) return await readListing({ ...parts, limits })
      throw error
    }
  }

  async *#watched(watch: WatchStream): AsyncGenerator<Followed> {
    const { clock, wanted } = this.#parts
    const openedAtMs = clock.steady()
    yield { kind: 'live', heardAt: () => watch.heardAt() }
    for await (const frames of watch.frames) {
      const plan = wanted.plan()
      const changes: Change[] = []
      let fault: unknown
      try {
        for (const frame of frames) this.#take(frame, plan, changes)
      } catch (error) {
        fault = error
      }
      // What came whole before something that is not counts.
      if (changes.length > 0) yield { kind: 'changes', changes, plan }
      if (fault !== undefined) throw fault
    }
    if (clock.steady() - openedAtMs >= 1000 * watchSecondsMin) yield { kind: 'over' }
  }

  #take(frame: Frame, plan: FieldPlan, changes: Change[]): void {
    const { custom } = this.#parts.wanted
    if (frame.type === 'ERROR') throw errorOf(statusCode(frame.object), frame.object)
    const mirrored = frame.type === 'ADDED' || frame.type === 'MODIFIED'
    const scan = mirrored ? scanObject(frame.object, plan) : scanObject(frame.object)
    const version = versionOf(scan.resourceVersion)
    // Told already, by a list that was newer than its own label.
    if (version <= this.#version) return
    if (frame.type !== 'BOOKMARK') this.#parts.source.check(frame.object, scan)
    this.#version = version
    if (frame.type === 'BOOKMARK') changes.push({ type: 'progress', version })
    else if (mirrored) changes.push({ type: 'put', item: listItemOf(frame.object, scan, { custom, version }) })
    else changes.push({ type: 'remove', key: objectKey(scan.namespace, scan.name), version })
  }
}

/** What a first list may bring, as that is when each page of it has come. */
function limitsOf({ limits, wanted }: FollowingParts): ListingLimits {
  const { room } = wanted
  if (room === undefined) return limits
  return {
    objects: limits.objects,
    get bytes() {
      return Math.min(limits.bytes, room())
    },
  }
}

/** What is mirrored already stays mirrored, however it grew; what grows without end between two lists is no cluster. */
function relistLimits({ objects, bytes }: ListingLimits, held: Held): ListingLimits {
  return {
    objects: relistTimesMax * Math.max(objects, held.size),
    bytes: relistTimesMax * Math.max(bytes, held.bytes),
  }
}
