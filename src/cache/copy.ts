/**
 * The durable local copy: every interest of one store, and the only way anything gets into it. Commit, then publish, then
 * acknowledge (D1): a watcher never sees what a crash could forget. Changes handed over in one turn share a commit.
 *
 * `put` and `remove` are for an authority (`ake serve`, later the outbox): they take the next version of the one counter
 * that all interests share. A mirror brings objects that have their versions already (`intake.ts`); each of its interests
 * has come as far as its own upstream watch, and exists here only from the moment its first sync is complete (A1).
 */
import { type Clock, sleep } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { FieldPlan } from '../kube/object.ts'
import { failure, internalError, tooManyRequests, tooOld } from '../kube/status.ts'
import { type Batch, type Change, type Loaded, type LoadedInterest, type Store, StoreRefused } from '../store/store.ts'
import { Aging, type AgingOptions, agingRecord } from './aging.ts'
import { Cache } from './cache.ts'
import { Event } from './event.ts'
import { asSpelled } from './history.ts'
import { type Item, makeItem, relabel } from './item.ts'
import { Pace } from './pace.ts'
import { Progress } from './progress.ts'
import type { Watcher } from './watcher.ts'

/** Memory for replaced objects that watches may still want; the disk holds the rest. Shared by all interests. */
const windowBytesMax = 8 * 1024 * 1024
/** Accepted but not yet on disk: beyond this a slow disk would turn into a full memory. */
const uncommittedBytesMax = 64 * 1024 * 1024
/** kube-apiserver's rhythm, which client-go's reflectors count on to stay resumable. */
const bookmarkEveryMs = 60_000
const tickMs = 1_000
/** How far a mirrored interest has come without a change is written down this often: a restart then resumes close by. */
const saveProgressEveryMs = 10_000
/** Objects of a first sync in one commit: a few MB at most beside the objects themselves. */
const seedsPerCommitMax = 512

type Pending = {
  readonly change: Change
  publish(): void
  settle(error?: Error): void
}

export class Copy {
  readonly #store: Store
  readonly #clock: Clock
  readonly #log: Log
  readonly #planOf: (interest: string) => FieldPlan
  readonly #mirrors: boolean
  readonly #lostOf: (interest: string) => number
  readonly #saved = new Map<string, number>()
  readonly #aging: Aging | undefined
  #savedAtMs: number
  readonly #progress: Progress
  readonly #pace: Pace
  readonly #caches = new Map<string, Cache>()
  #pending: Pending[] = []
  #uncommittedBytes = 0
  /** The newest version given to a change, committed or not. */
  #allocated: number
  #refusing = false
  #probing = false

  private constructor(parts: CopyParts, version: number, interests: readonly LoadedInterest<Item>[], aged?: Buffer) {
    this.#store = parts.store
    this.#clock = parts.clock
    this.#log = parts.log
    this.#planOf = parts.planOf
    this.#mirrors = parts.mirrors ?? false
    this.#lostOf = parts.lostOf ?? (() => 0)
    this.#savedAtMs = parts.clock.steady()
    this.#progress = new Progress(version)
    this.#pace = new Pace(parts.clock)
    this.#allocated = version
    for (const loaded of interests) this.#open(loaded.name, loaded)
    const { clock, aging } = parts
    const commit = (batch: Batch) => this.commit(batch)
    if (aging !== undefined) this.#aging = new Aging({ ...aging, clock, caches: this.#caches, commit, saved: aged })
  }

  static async open(parts: CopyParts): Promise<Copy> {
    const plans = new Map<string, FieldPlan>()
    const planOf = (interest: string) =>
      plans.get(interest) ?? plans.set(interest, parts.planOf(interest)).get(interest)
    const { version, interests } = await parts.store.load((interest, { body, version: at }) => {
      const plan = planOf(interest) as FieldPlan
      const item = makeItem(body, at, plan)
      // A mirror's label may be newer than the object: one that was put back to an older version.
      return parts.mirrors === true ? asSpelled(item, plan) : item
    })
    const aged = parts.aging && (await parts.store.record(agingRecord.kind, agingRecord.key))
    for (const { name, corrupt, isDoubted = false } of interests) {
      for (const key of corrupt) parts.log.error('store.corrupt', { interest: name, object: key })
      if (isDoubted) parts.log.error('store.doubted', { interest: name })
    }
    if (parts.mirrors !== true) {
      const newest = await settle(parts.store, { version, interests })
      // Version 0 means "any" to clients and 1 is etcd's empty store: the first object gets 2.
      return new Copy(parts, Math.max(1, newest), interests, aged)
    }
    // A first sync that was cut short: nobody was shown any of it.
    const halves = interests.filter((one) => one.synced === undefined).map(({ name }) => name)
    const copy = new Copy(
      parts,
      0,
      interests.filter((one) => one.synced !== undefined),
      aged,
    )
    const forgotten = halves.map((interest) => ({ interest, forget: true as const }))
    if (halves.length > 0) await copy.commit({ changes: [], interests: forgotten, synced: false }).catch(() => {})
    return copy
  }

  get progress(): Progress {
    return this.#progress
  }

  get caches(): ReadonlyMap<string, Cache> {
    return this.#caches
  }

  /** Whether the disk took the last commit. */
  get healthy(): boolean {
    return !this.#refusing
  }

  cache(interest: string): Cache {
    return this.#caches.get(interest) ?? this.#open(interest)
  }

  #open(interest: string, loaded?: LoadedInterest<Item>, version = loaded?.synced ?? 0): Cache {
    const progress = this.#mirrors ? new Progress(version) : this.#progress
    const isSetBack = () => progress.version <= this.#lostOf(interest)
    const cache = new Cache({
      interest,
      loaded,
      store: this.#store,
      plan: this.#planOf(interest),
      progress,
      clock: this.#clock,
      pace: this.#pace,
      // A mirror waits for what lies ahead, unless the cluster was put back and that version went with it.
      isGone: this.#mirrors ? isSetBack : () => true,
      isSetBack: this.#mirrors ? isSetBack : () => false,
    })
    this.#caches.set(interest, cache)
    this.#saved.set(interest, version)
    return cache
  }

  /** A mirrored interest begins, or begins anew: these are all of its objects at the version. */
  async begin(interest: string, version: number, items: readonly Item[]): Promise<Cache> {
    await this.end(interest, 'anew')
    for (let at = 0; at < items.length; at += seedsPerCommitMax) {
      const changes = items.slice(at, at + seedsPerCommitMax).map((item): Change => {
        return { interest, key: item.key, version: item.version, kind: 'seed', position: 0, body: item.bytes }
      })
      await this.commit({ changes, synced: false })
    }
    await this.commit({ changes: [], interests: [{ interest, synced: version, floor: version }], synced: false })
    const cache = this.#open(interest, undefined, version)
    for (const item of items) cache.seed(item)
    return cache
  }

  /** A mirrored interest and everything of it goes. Its watches end in order, or, where versions begin anew, with 410. */
  async end(interest: string, how: 'over' | 'anew'): Promise<void> {
    const cache = this.#caches.get(interest)
    const forget = { changes: [], interests: [{ interest, forget: true as const }], synced: false }
    // What begins anew is shown until the disk has let go of it: one that refuses stops no reads (D3).
    if (how === 'anew') await this.commit(forget)
    this.#caches.delete(interest)
    this.#saved.delete(interest)
    for (const watcher of cache?.watchers ?? []) {
      if (how === 'anew') watcher.fail(tooOld(cache?.version ?? 0, cache?.version ?? 0).status)
      else this.#finish(watcher)
    }
    if (how === 'over') await this.commit(forget)
  }

  #finish(watcher: Watcher): void {
    const waitMs = watcher.finish()
    if (waitMs > 0) this.#clock.setTimer(waitMs, () => this.#finish(watcher))
  }

  /** Commits, and keeps an eye on the disk. Rejects with a Status. */
  async commit(batch: Batch): Promise<void> {
    try {
      await this.#store.commit(batch)
      this.#noteDisk(undefined)
    } catch (error) {
      const refusal = refusalOf(error)
      this.#noteDisk(refusal)
      throw refusal
    }
    this.#boundWindows()
  }

  /** Stores what `build` prints for the version it is given. Two writes of one key must not be under way together. */
  put(interest: string, key: string, build: (version: number) => Buffer): Promise<Item> {
    const cache = this.cache(interest)
    this.#refuseFlood()
    const version = ++this.#allocated
    const body = compact(build(version))
    const item = makeItem(body, version, cache.plan)
    return this.#submit(cache, { interest, key, version, kind: 'put', body, position: ++cache.lastPosition }, item)
  }

  /** Resolves with the last state, labelled with the version of the removal. */
  async remove(interest: string, key: string): Promise<Item> {
    const cache = this.cache(interest)
    this.#refuseFlood()
    const last = cache.peek(key)
    const version = ++this.#allocated
    const change: Change = { interest, key, version, kind: 'delete', position: ++cache.lastPosition }
    await this.#submit(cache, change, undefined)
    if (last === undefined) throw internalError(`${interest} "${key}" was removed twice`)
    return relabel(last, version)
  }

  #refuseFlood(): void {
    if (this.#uncommittedBytes > uncommittedBytesMax) throw tooManyRequests('the disk is slower than the writes', 1)
  }

  #submit(cache: Cache, change: Change, item: Item | undefined): Promise<Item> {
    const size = change.body?.length ?? 0
    this.#uncommittedBytes += size
    if (this.#pending.length === 0) queueMicrotask(() => void this.#flush())
    return new Promise((resolve, reject) => {
      const { plan } = cache
      const { position, version, key } = change
      this.#pending.push({
        change,
        publish: () => {
          // A definition published in between may have changed which fields are read.
          const read = item === undefined || cache.plan === plan ? item : makeItem(item.bytes, version, cache.plan)
          cache.publish(new Event({ position, version, key, item: read, previous: cache.peek(key) }))
          this.#progress.advance(version)
        },
        settle: (error) => {
          this.#uncommittedBytes -= size
          if (error === undefined) resolve(item as Item)
          else reject(error)
        },
      })
    })
  }

  async #flush(): Promise<void> {
    const pending = this.#pending
    this.#pending = []
    try {
      await this.commit({ changes: pending.map((one) => one.change), synced: true })
    } catch (error) {
      for (const one of pending) one.settle(error as Error)
      return
    }
    for (const one of pending) one.publish()
    for (const one of pending) one.settle()
  }

  /** Said once when the disk begins to refuse and once when it takes writes again (D3). */
  #noteDisk(refusal: Error | undefined): void {
    if ((refusal !== undefined) === this.#refusing) return
    this.#refusing = refusal !== undefined
    if (refusal !== undefined) this.#log.error('store.refused', { why: refusal.message })
    else this.#log.info('store.healed')
  }

  /** While the disk refuses, it is asked again and again with an empty batch: readiness waits for nobody's write (D3). */
  #probe(): void {
    if (!this.#refusing || this.#probing) return
    this.#probing = true
    const asked = this.#store.commit({ changes: [], synced: true })
    void asked.then(
      () => {
        this.#probing = false
        this.#noteDisk(undefined)
      },
      () => {
        this.#probing = false
      },
    )
  }

  #boundWindows(): void {
    let total = 0
    for (const cache of this.#caches.values()) total += cache.history.window.bytes
    while (total > windowBytesMax) {
      let largest: Cache | undefined
      for (const cache of this.#caches.values()) {
        if (cache.history.window.bytes > (largest?.history.window.bytes ?? 0)) largest = cache
      }
      if (largest === undefined) return
      const { window } = largest.history
      const before = window.bytes
      window.shrink(Math.max(total - windowBytesMax, before / 8))
      total -= before - window.bytes
    }
  }

  /** Keeps bookmarks coming; on the signal ends every watch in order, and returns when all have ended. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await sleep(this.#clock, tickMs, signal)
      for (const cache of this.#caches.values()) for (const watcher of cache.watchers) watcher.bookmark(bookmarkEveryMs)
      this.#probe()
      this.#aging?.tick()
      if (this.#mirrors && this.#clock.steady() - this.#savedAtMs >= saveProgressEveryMs) this.#saveProgress()
    }
    this.#saveProgress()
    this.#aging?.save()
    for (;;) {
      let waitMs = 0
      for (const cache of this.#caches.values()) {
        for (const watcher of cache.watchers) waitMs = Math.max(waitMs, watcher.finish())
      }
      if (waitMs === 0) return
      await sleep(this.#clock, waitMs)
    }
  }

  #saveProgress(): void {
    this.#savedAtMs = this.#clock.steady()
    const interests: { interest: string; synced: number }[] = []
    for (const [interest, { version }] of this.#mirrors ? this.#caches : []) {
      if (version <= (this.#saved.get(interest) ?? 0)) continue
      this.#saved.set(interest, version)
      interests.push({ interest, synced: version })
    }
    if (interests.length > 0) void this.commit({ changes: [], interests, synced: false }).catch(() => {})
  }
}

export type CopyParts = {
  store: Store
  clock: Clock
  log: Log
  /** Which fields of an interest's objects are read at ingest. */
  planOf: (interest: string) => FieldPlan
  /** How long history is kept; without it only its size bounds it. */
  aging?: AgingOptions
  /** Whether truth comes from elsewhere, with versions of its own for each interest. */
  mirrors?: boolean
  /** The newest version an interest had when its cluster was put back to an earlier state; 0 if that never happened. */
  lostOf?: (interest: string) => number
}

/**
 * An authority has nobody to ask again. Where changes were lost nobody resumes from before: they would miss those in
 * silence. And a version that may have been given out is written down as such. A disk that refuses it is heard of later.
 */
async function settle(store: Store, { version, interests }: Loaded<Item>): Promise<number> {
  const newest = Math.max(version, ...interests.map(({ synced }) => synced ?? 0))
  const isWritten = interests.some(({ synced }) => synced === newest)
  const doubted = interests.filter(({ isDoubted }) => isDoubted === true)
  const changes = doubted.map(({ name }) => ({ interest: name, synced: newest, floor: newest, sound: true as const }))
  const [first] = interests
  const said =
    changes.length > 0 || isWritten || first === undefined ? changes : [{ interest: first.name, synced: newest }]
  if (said.length > 0) await store.commit({ changes: [], interests: said, synced: true }).catch(() => {})
  return newest
}

/** Bytes that live long get memory of their own: a slice would keep the whole slab around it alive. */
function compact(bytes: Buffer): Buffer {
  if (bytes.length === bytes.buffer.byteLength) return bytes
  const own = Buffer.allocUnsafeSlow(bytes.length)
  own.set(bytes)
  return own
}

function refusalOf(error: unknown): Error {
  if (!(error instanceof StoreRefused)) return internalError(error instanceof Error ? error.message : String(error))
  if (error.full) {
    return failure(507, 'InsufficientStorage', `the write was not stored: the disk is full (${error.message})`)
  }
  return internalError(`the write was not stored: ${error.message}`)
}
