/**
 * The copy of a mirror (`ake edge`): objects come with the API server's own versions (`intake.ts`). Each interest has come
 * as far as its own upstream watch, and exists here only from the moment its first sync is complete (A1). What several
 * interests of one resource hold they share (`shareditems.ts`).
 */
import type { FieldPlan } from '../kube/object.ts'
import { tooOld } from '../kube/status.ts'
import type { LoadedInterest, Store } from '../store/store.ts'
import { Cache } from './cache.ts'
import { type LabelRecord, labelRecordKind } from './cloudstate.ts'
import { Copy, type CopyParts, type OpenedInterests, openInterests } from './copy.ts'
import { asSpelled } from './history.ts'
import { holdingsOf, type InterestBytes } from './holdings.ts'
import { type Item, makeItem } from './item.ts'
import { LostPast } from './lostpast.ts'
import { Progress } from './progress.ts'
import { SharedItems, seedOf } from './shareditems.ts'

/** How far an interest has come without a change is written down this often: a restart then resumes close by. */
const saveProgressEveryMs = 10_000
/** Objects of a first sync in one commit: a few MB at most beside the objects themselves. */
const seedsPerCommitMax = 512

type MirrorCopyParts = CopyParts & {
  /** The newest version an interest had when its cluster was put back to an earlier state; 0 if that never happened. */
  lostOf?: (interest: string) => number
  /** Which resource an interest is of; without it none shares its objects with another. */
  resourceOf?: (interest: string) => string
}

export class MirrorCopy extends Copy {
  readonly #lostOf: (interest: string) => number
  readonly #sharing: SharedResources
  readonly #saved = new Map<string, number>()
  #savedAtMs: number

  private constructor(
    parts: MirrorCopyParts,
    { interests, aged }: OpenedInterests,
    shared: SharedResources,
    labels: ReadonlyMap<string, LabelRecord>,
  ) {
    super(parts, aged)
    this.#sharing = shared
    this.#lostOf = parts.lostOf ?? (() => 0)
    this.#savedAtMs = parts.clock.steady()
    for (const loaded of interests) {
      if (loaded.synced !== undefined) this.#open(loaded.name, loaded.synced, loaded, labels.get(loaded.name))
    }
  }

  static async open(parts: MirrorCopyParts): Promise<MirrorCopy> {
    const shared = new SharedResources(parts)
    const opened = await openInterests(parts, (object, plan, interest) => {
      // A label may be newer than its object: one that was put back to an older version.
      const make = () => asSpelled(makeItem(object.body, object.version, plan), plan)
      return shared.of(interest).load(object, plan, make)
    })
    const copy = new MirrorCopy(parts, opened, shared, await labelsOf(parts.store))
    // A first sync that was cut short: no client was shown any of it.
    const halves = opened.interests.filter(({ synced }) => synced === undefined)
    for (const { objects } of halves) for (const item of objects) item.shared?.letGo()
    const interests = halves.map(({ name }) => ({ interest: name, forget: true as const }))
    if (halves.length > 0) await copy.commit({ changes: [], interests, synced: false }).catch(() => {})
    return copy
  }

  /** What the store has as synced is the label; a record tells where the cloud's number is lower. */
  #open(interest: string, label: number, loaded?: LoadedInterest<Item>, record?: LabelRecord): Cache {
    const { store, clock, planOf } = this.parts
    const progress = new Progress(label)
    const synced = new Progress(record?.synced ?? label)
    const lost = () => this.#lostOf(interest)
    const past = new LostPast({ progress, lost, clock, isLoaded: loaded !== undefined })
    const cache = new Cache({
      ...{ interest, loaded, store, plan: planOf(interest), progress, synced, label: record, clock, pace: this.pace },
      ...{ isGone: (named: number) => past.isGone(named), isSetBack: () => progress.version <= lost() },
      shared: this.#sharing.of(interest),
    })
    this.opened.set(interest, cache)
    this.#saved.set(interest, label)
    return cache
  }

  /** What the objects of all interests take, each once, with those before them that watches may still want. */
  get bytes(): number {
    return this.#sharing.bytes
  }

  /** What goes with each interest if it ends: a walk over all that is held. */
  holdings(): ReadonlyMap<string, InterestBytes> {
    return holdingsOf(this.opened.values())
  }

  /** What those of its resource take: another interest of it may bring no more. */
  bytesLike(interest: string): number {
    return this.#sharing.of(interest).bytes
  }

  /** What interests of its resource hold under this key and version, read by the plan. */
  known(interest: string, key: string, version: number, plan: FieldPlan): Item | undefined {
    return this.#sharing.of(interest).find(key, version, plan)
  }

  /** An interest begins, or begins anew: these are all of its objects at the version. */
  async begin(interest: string, version: number, items: readonly Item[]): Promise<Cache> {
    const plan = this.parts.planOf(interest)
    const taken = items.map((item) => this.#sharing.of(interest).take(item, plan))
    try {
      await this.end(interest, 'anew')
      for (let at = 0; at < taken.length; at += seedsPerCommitMax) {
        const changes = taken.slice(at, at + seedsPerCommitMax).map((item) => seedOf(interest, item))
        await this.commit({ changes, synced: false })
      }
      await this.commit({ changes: [], interests: [{ interest, synced: version, floor: version }], synced: false })
    } catch (error) {
      for (const item of taken) item.shared?.letGo()
      throw error
    }
    const cache = this.#open(interest, version)
    for (const item of taken) cache.seed(item)
    return cache
  }

  /** An interest and everything of it goes. Its watches end in order, or, where versions begin anew, with 410. */
  async end(interest: string, how: 'over' | 'anew'): Promise<void> {
    const cache = this.opened.get(interest)
    const records = cache?.cloud.forgotten() ?? []
    const forget = { changes: [], interests: [{ interest, forget: true as const }], records, synced: false }
    // What begins anew is shown until the disk has let go of it: one that refuses stops no reads (D3).
    if (how === 'anew') await this.commit(forget)
    this.opened.delete(interest)
    this.#saved.delete(interest)
    const lost = tooOld(cache?.version ?? 0, cache?.version ?? 0)
    cache?.letGo({
      watcher: (watcher) => (how === 'anew' ? watcher.fail(lost.status) : this.finish(watcher)),
      stream: (stream) => (how === 'anew' ? stream.fail(lost) : void stream.return()),
    })
    if (how === 'over') await this.commit(forget)
  }

  protected override tick(last: boolean): void {
    if (!last && this.parts.clock.steady() - this.#savedAtMs < saveProgressEveryMs) return
    this.#savedAtMs = this.parts.clock.steady()
    const interests: { interest: string; synced: number }[] = []
    for (const [interest, { version, cloud }] of this.opened) {
      // Where there are two numbers their intake writes them, in order with its changes.
      if (version <= (this.#saved.get(interest) ?? 0) || cloud.isRecorded) continue
      this.#saved.set(interest, version)
      interests.push({ interest, synced: version })
    }
    if (interests.length > 0) void this.commit({ changes: [], interests, synced: false }).catch(() => {})
  }
}

/** What is shared, by resource. */
class SharedResources {
  readonly #parts: MirrorCopyParts
  readonly #byResource = new Map<string, SharedItems>()

  constructor(parts: MirrorCopyParts) {
    this.#parts = parts
  }

  of(interest: string): SharedItems {
    const { store, resourceOf } = this.#parts
    const resource = resourceOf?.(interest) ?? interest
    let shared = this.#byResource.get(resource)
    if (shared === undefined) {
      shared = new SharedItems(store)
      this.#byResource.set(resource, shared)
    }
    return shared
  }

  get bytes(): number {
    let sum = 0
    for (const { bytes } of this.#byResource.values()) sum += bytes
    return sum
  }
}

async function labelsOf(store: Store): Promise<ReadonlyMap<string, LabelRecord>> {
  const labels = new Map<string, LabelRecord>()
  for (const { key, value } of await store.records(labelRecordKind)) {
    labels.set(key, JSON.parse(value.toString()) as LabelRecord)
  }
  return labels
}
