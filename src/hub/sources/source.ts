/**
 * What a hub follows once for all edges that want any of it: one mirrored interest, and the views that edges have of it. An
 * event finds the views it concerns by index, as it finds watches (`cache/dispatch`), so that it costs what is told and not
 * what is connected.
 */
import type { Clock } from '../../base/clock.ts'
import type { Cache } from '../../cache/cache.ts'
import { Dispatch } from '../../cache/dispatch.ts'
import type { Event } from '../../cache/event.ts'
import type { FieldPlan } from '../../kube/object.ts'
import { StatusError } from '../../kube/status.ts'
import type { SessionRefusal } from '../../link/session/hubgreeting.ts'
import type { Interest } from '../../mirror/interest.ts'
import { type Mirrored, mirrorLimits } from '../../mirror/mirror.ts'
import type { MirroredInterest } from '../../mirror/mirrored.ts'
import { PresentVersion } from './present.ts'
import { SharedView, type SourceReader, type ViewedSource } from './view.ts'
import { viewFilter } from './viewfilter.ts'

/** A view without readers is kept for edges that come back, and its digest with it. */
const viewUnusedMsMax = 60_000
/** One of fewer objects is made again in a moment: an edge could leave thousands behind, of names and namespaces that it invents. */
const keptFromObjects = 64
/** Longer than a first list is waited for at an edge: the hub's are larger, and its edges have nowhere else to ask. */
const firstSyncMsMax = 3 * mirrorLimits.firstSyncMsMax

type Parts = {
  readonly number: number
  /** As discovery has it now. */
  readonly known: () => Mirrored
  readonly mirrored: MirroredInterest
  readonly digestKey: Buffer
  readonly clock: Clock
  /** How far the API server is with it, by a linearizable read. */
  readonly newest: (signal: AbortSignal) => Promise<number>
}

type Following = ViewedSource & {
  readonly views: Map<string, SharedView>
  dispatch: Dispatch<SharedView>
  plan: FieldPlan
  knownFrom: number
  readonly stop: () => void
}

export class HubSource {
  readonly number: number
  readonly mirrored: MirroredInterest
  readonly present: PresentVersion
  readonly #parts: Parts
  readonly #waiting = new Map<SourceReader, Interest>()
  /** Those that were shown a view. */
  #shown = 0
  #following: Following | undefined
  #isAsking = false
  /** When the last edge let go of it, by the steady clock. */
  unusedSince: number

  constructor(parts: Parts) {
    this.#parts = parts
    this.number = parts.number
    this.mirrored = parts.mirrored
    this.present = new PresentVersion({ read: parts.newest, clock: parts.clock })
    this.unusedSince = parts.clock.steady()
  }

  get readers(): number {
    return this.#waiting.size + this.#shown
  }

  get views(): number {
    return this.#following?.views.size ?? 0
  }

  /** How far it is, as all its views are. */
  get version(): number {
    return this.#following?.cache.version ?? 0
  }

  join(wanted: Interest, reader: SourceReader): void {
    const { readable } = this.mirrored
    if (this.#following !== undefined && readable === this.#following.cache && !this.mirrored.isDoubted) {
      this.#show(this.#following, wanted, reader)
      return
    }
    this.#waiting.set(reader, wanted)
    void this.#ask()
  }

  leave({ name }: Interest, reader: SourceReader): void {
    this.#waiting.delete(reader)
    const view = this.#following?.views.get(name)
    const nowMs = this.#parts.clock.steady()
    if (view?.delete(reader) === true) this.#shown--
    if (view?.readers === 0) view.unusedSince = nowMs
    if (this.readers === 0) this.unusedSince = nowMs
  }

  /** What it was a copy of is no more: its readers ask again, and are answered from what is there then. */
  replaced(): void {
    const { cache } = this.mirrored
    if (this.#following === undefined || this.#following.cache === cache) return
    this.#end(this.#refusal() ?? { reason: 'busy', retryAfterMs: 1_000, sentence: 'the hub reads it anew' })
  }

  /** It may be of a past that no longer exists: its readers ask again, and wait until it was compared. */
  doubted(): void {
    this.#end({ reason: 'busy', retryAfterMs: 1_000, sentence: 'the cluster was put back: the hub reads it anew' })
  }

  /** Views that no edge has wanted for a while go. */
  look(): void {
    this.replaced()
    const following = this.#following
    if (following === undefined) return
    this.#replan(following)
    const nowMs = this.#parts.clock.steady()
    for (const [name, view] of following.views) {
      const isKept = view.objects >= keptFromObjects && nowMs - (view.unusedSince ?? nowMs) < viewUnusedMsMax
      if (view.unusedSince === undefined || isKept) continue
      this.#drop(following, name, notYet)
    }
  }

  /** All readers are told so; nothing is followed any more. */
  stop(refusal: SessionRefusal): void {
    this.present.stop()
    this.#end(refusal)
    this.#refuseWaiting(refusal)
  }

  /** Waits for the first sync, once for all readers that do. */
  async #ask(): Promise<void> {
    if (this.#isAsking) return
    this.#isAsking = true
    const outcome = await this.mirrored.synced(firstSyncMsMax)
    this.#isAsking = false
    const { cache } = this.mirrored
    // While the API server is away an edge would read it all the same, knowing that; what others copy must be true.
    if (outcome !== 'synced' || cache === undefined || this.mirrored.isDoubted) {
      this.#refuseWaiting(this.#refusal() ?? notYet)
      return
    }
    this.replaced()
    this.#following ??= this.#follow(cache)
    for (const [reader, wanted] of this.#waiting) {
      this.#waiting.delete(reader)
      this.#show(this.#following, wanted, reader)
    }
  }

  /** What its copy heard before may be of a past that was doubted since: no reader is told of that. */
  #follow(cache: Cache): Following {
    const following: Following = {
      ...{ number: this.number, cache, plan: cache.plan, knownFrom: cache.version },
      ...{ views: new Map(), dispatch: new Dispatch<SharedView>(cache.plan) },
      stop: cache.observe((event) => this.#hear(following, event)),
    }
    return following
  }

  #hear(following: Following, event: Event): void {
    this.#replan(following)
    if (event.gap !== undefined) following.knownFrom = Math.max(following.knownFrom, event.gap.to)
    following.dispatch.send(event)
  }

  /** Other fields may have become selectable: objects were read again, and stand elsewhere in the index. */
  #replan(following: Following): void {
    const { plan } = following.cache
    if (plan === following.plan) return
    following.plan = plan
    following.dispatch = new Dispatch<SharedView>(plan)
    for (const [name, view] of following.views) {
      try {
        view.filter = viewFilter(view.wanted, this.#parts.known(), plan)
        following.dispatch.add(view)
      } catch (error) {
        if (!(error instanceof StatusError)) throw error
        this.#drop(following, name, { reason: 'other', retryAfterMs: refusedRetryMs, sentence: error.message })
      }
    }
  }

  /** Its field cannot be selected by any longer, or no edge wants it. */
  #drop(following: Following, name: string, refusal: SessionRefusal): void {
    const view = following.views.get(name)
    following.views.delete(name)
    if (view === undefined) return
    following.dispatch.delete(view)
    this.#shown -= view.readers
    view.end(refusal)
  }

  #show(following: Following, wanted: Interest, reader: SourceReader): void {
    this.#replan(following)
    const { known, digestKey } = this.#parts
    const present = following.views.get(wanted.name)
    const view = present ?? new SharedView(following, wanted, viewFilter(wanted, known(), following.plan), digestKey)
    const refusal = view.isSelecting ? reader.selects?.(view) : undefined
    if (refusal !== undefined) {
      reader.refused(refusal)
      return
    }
    if (present === undefined) {
      following.views.set(wanted.name, view)
      following.dispatch.add(view)
    }
    this.#shown++
    view.add(reader)
  }

  #end(refusal: SessionRefusal): void {
    const following = this.#following
    if (following === undefined) return
    this.#following = undefined
    const hadReaders = this.readers > 0
    this.#shown = 0
    following.stop()
    if (hadReaders && this.readers === 0) this.unusedSince = this.#parts.clock.steady()
    for (const view of following.views.values()) view.end(refusal)
  }

  #refuseWaiting(refusal: SessionRefusal): void {
    const waiting = [...this.#waiting.keys()]
    // They left before: it has been unused since then.
    if (waiting.length === 0) return
    this.#waiting.clear()
    if (this.readers === 0) this.unusedSince = this.#parts.clock.steady()
    for (const reader of waiting) reader.refused(refusal)
  }

  /** What keeps the hub from having it; undefined: nothing that is known. */
  #refusal(): SessionRefusal | undefined {
    const { refusal, interest } = this.mirrored
    const { state } = this.mirrored
    const told = state.kind === 'refused' || state.kind === 'tooLarge' ? state : refusal
    if (told === undefined) return undefined
    if (told.kind === 'tooLarge') return { reason: 'limit', retryAfterMs: refusedRetryMs, sentence: told.why }
    const reason = told.code === 404 ? 'unknown' : told.code === 401 || told.code === 403 ? 'forbidden' : 'busy'
    const sentence = `the API server does not let the hub read ${interest.name}: ${told.why}`
    return { reason, retryAfterMs: refusedRetryMs, sentence }
  }
}

/** An operator has to act first: an edge that asks each minute notices soon enough. */
const refusedRetryMs = 60_000
const notYet: SessionRefusal = {
  reason: 'busy',
  retryAfterMs: 5_000,
  sentence: 'the hub has not read it yet: the API server does not answer, or takes long',
}
