/**
 * The durable local copy: every interest of one store, and the only way anything gets into it. Commit, then publish, then
 * acknowledge (D1): a watcher never sees what a crash could forget.
 *
 * Here is what every copy does: it commits and keeps an eye on the disk, bounds the memory for history, sends bookmarks and
 * ends its watches. Where changes come from makes two kinds of it: `authoritycopy.ts` gives out versions of its own,
 * `mirrorcopy.ts` takes over those of an API server.
 */
import { type Clock, sleep } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { FieldPlan } from '../kube/object.ts'
import { failure, internalError } from '../kube/status.ts'
import { type Batch, type Loaded, type LoadedObject, type Store, StoreRefused } from '../store/store.ts'
import { Aging, type AgingOptions, agingRecord } from './aging.ts'
import type { Cache } from './cache.ts'
import { type Item, makeItem } from './item.ts'
import { Pace } from './pace.ts'
import type { Watcher } from './watcher.ts'

/** Memory for replaced objects that watches may still want; the disk holds the rest. Shared by all interests. */
const windowBytesMax = 8 * 1024 * 1024
/** kube-apiserver's rhythm, which client-go's reflectors count on to stay resumable. */
const bookmarkEveryMs = 60_000
const tickMs = 1_000

export type CopyParts = {
  store: Store
  clock: Clock
  log: Log
  /** Which fields of an interest's objects are read at ingest. */
  planOf: (interest: string) => FieldPlan
  /** How long history is kept; without it only its size bounds it. */
  aging?: AgingOptions
  /** Memory for history where nothing older is on a disk: then it decides how far back a reader resumes. */
  windowBytesMax?: number
}

/** What a store holds when a copy is opened over it. */
export type OpenedInterests = Loaded<Item> & { readonly aged: Buffer | undefined }

/** Reads everything, each object made an item, and names what is damaged. */
export async function openInterests(
  { store, log, planOf, aging }: CopyParts,
  make: (object: LoadedObject, plan: FieldPlan, interest: string) => Item = ({ body, version }, plan) =>
    makeItem(body, version, plan),
): Promise<OpenedInterests> {
  const plans = new Map<string, FieldPlan>()
  const loaded = await store.load((interest, object) => {
    let plan = plans.get(interest)
    if (plan === undefined) {
      plan = planOf(interest)
      plans.set(interest, plan)
    }
    return make(object, plan, interest)
  })
  for (const { name, corrupt, isDoubted = false } of loaded.interests) {
    for (const key of corrupt) log.error('store.corrupt', { interest: name, object: key })
    if (isDoubted) log.error('store.doubted', { interest: name })
  }
  return { ...loaded, aged: aging && (await store.record(agingRecord.kind, agingRecord.key)) }
}

export abstract class Copy {
  protected readonly parts: CopyParts
  protected readonly pace: Pace
  /** By interest; only what may be read. */
  protected readonly opened = new Map<string, Cache>()
  readonly #aged: Buffer | undefined
  #refusing = false
  #probing = false

  protected constructor(parts: CopyParts, aged: Buffer | undefined) {
    this.parts = parts
    this.pace = new Pace(parts.clock)
    this.#aged = aged
    parts.store.mendFrom((interest, key) => this.#held(interest, key))
  }

  /** What a disk has damaged since the start is still here. */
  #held(interest: string, key: string): Item | undefined {
    const cache = this.opened.get(interest)
    return cache === undefined || cache.isCorrupt(key) ? undefined : cache.peek(key)
  }

  get caches(): ReadonlyMap<string, Cache> {
    return this.opened
  }

  /** Whether the disk took the last commit. */
  get healthy(): boolean {
    return !this.#refusing
  }

  /** Commits, and keeps an eye on the disk. Rejects with a Status. */
  async commit(batch: Batch): Promise<void> {
    try {
      await this.parts.store.commit(batch)
      this.#noteDisk(undefined)
    } catch (error) {
      const refusal = refusalOf(error)
      this.#noteDisk(refusal)
      throw refusal
    }
    this.#boundWindows()
  }

  /** Said once when the disk begins to refuse and once when it takes writes again (D3). */
  #noteDisk(refusal: Error | undefined): void {
    if ((refusal !== undefined) === this.#refusing) return
    this.#refusing = refusal !== undefined
    if (refusal !== undefined) this.parts.log.error('store.refused', { why: refusal.message })
    else this.parts.log.info('store.healed')
  }

  /** While the disk refuses, it is asked again and again with an empty batch: readiness waits for no client's write (D3). */
  #probe(): void {
    if (!this.#refusing || this.#probing) return
    this.#probing = true
    const asked = this.parts.store.commit({ changes: [], synced: true })
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
    const bytesMax = this.parts.windowBytesMax ?? windowBytesMax
    let total = 0
    for (const cache of this.opened.values()) total += cache.history.window.bytes
    while (total > bytesMax) {
      let largest: Cache | undefined
      for (const cache of this.opened.values()) {
        if (cache.history.window.bytes > (largest?.history.window.bytes ?? 0)) largest = cache
      }
      if (largest === undefined) return
      const { window } = largest.history
      const before = window.bytes
      window.shrink(Math.max(total - bytesMax, before / 8))
      total -= before - window.bytes
    }
  }

  /** What else there is to do every second, and, told `last`, once more at the end. */
  protected tick(_last: boolean): void {}

  /** Keeps bookmarks coming; on the signal ends every watch in order, and returns when all have ended. */
  async run(signal: AbortSignal): Promise<void> {
    const aging = this.#age()
    while (!signal.aborted) {
      await sleep(this.parts.clock, tickMs, signal)
      for (const cache of this.opened.values()) for (const watcher of cache.watchers) watcher.bookmark(bookmarkEveryMs)
      this.#probe()
      aging?.tick()
      this.tick(false)
    }
    this.tick(true)
    aging?.save()
    for (;;) {
      let waitMs = 0
      for (const cache of this.opened.values()) {
        for (const watcher of cache.watchers) waitMs = Math.max(waitMs, watcher.finish())
      }
      if (waitMs === 0) return
      await sleep(this.parts.clock, waitMs)
    }
  }

  #age(): Aging | undefined {
    const { clock, aging } = this.parts
    const commit = (batch: Batch) => this.commit(batch)
    return aging && new Aging({ ...aging, clock, caches: this.opened, commit, saved: this.#aged })
  }

  protected finish(watcher: Watcher): void {
    const waitMs = watcher.finish()
    if (waitMs > 0) this.parts.clock.setTimer(waitMs, () => this.finish(watcher))
  }
}

function refusalOf(error: unknown): Error {
  if (!(error instanceof StoreRefused)) return internalError(error instanceof Error ? error.message : String(error))
  if (error.full) {
    return failure(507, 'InsufficientStorage', `the write was not stored: the disk is full (${error.message})`)
  }
  return internalError(`the write was not stored: ${error.message}`)
}
