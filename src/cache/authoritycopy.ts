/**
 * The copy of an authority (`ake serve`): `put` and `remove` take the next version of the one counter that all interests
 * share, and changes handed over in one turn share a commit.
 */
import { internalError, tooManyRequests } from '../kube/status.ts'
import type { Change, LoadedInterest, Store } from '../store/store.ts'
import { Cache } from './cache.ts'
import { Copy, type CopyParts, type OpenedInterests, openInterests } from './copy.ts'
import { Event } from './event.ts'
import { type Item, makeItem, relabel } from './item.ts'
import { Progress } from './progress.ts'

/** Accepted but not yet on disk: beyond this a slow disk would turn into a full memory. */
const uncommittedBytesMax = 64 * 1024 * 1024

type Pending = {
  readonly change: Change
  publish(): void
  settle(error?: Error): void
}

export class AuthorityCopy extends Copy {
  readonly progress: Progress
  #pending: Pending[] = []
  #uncommittedBytes = 0
  /** The newest version given to a change, committed or not. */
  #allocated: number

  private constructor(parts: CopyParts, version: number, { interests, aged }: OpenedInterests) {
    super(parts, aged)
    this.progress = new Progress(version)
    this.#allocated = version
    for (const loaded of interests) this.#open(loaded.name, loaded)
  }

  static async open(parts: CopyParts): Promise<AuthorityCopy> {
    const opened = await openInterests(parts)
    // Version 0 means "any" to clients and 1 is etcd's empty store: the first object gets 2.
    return new AuthorityCopy(parts, Math.max(1, await settle(parts.store, opened)), opened)
  }

  /** An authority's interest is there from the first question on: that it holds nothing is known. */
  cache(interest: string): Cache {
    return this.opened.get(interest) ?? this.#open(interest)
  }

  #open(interest: string, loaded?: LoadedInterest<Item>): Cache {
    const { pace, progress } = this
    const { store, clock } = this.parts
    const cache = new Cache({ interest, loaded, store, plan: this.parts.planOf(interest), progress, clock, pace })
    this.opened.set(interest, cache)
    return cache
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
          this.progress.advance(version)
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
}

/**
 * An authority has no server to ask again. Where changes were lost no client resumes from before: it would miss those in
 * silence. And a version that may have been given out is written down as such. A disk that refuses it is heard of later.
 */
async function settle(store: Store, { version, interests }: OpenedInterests): Promise<number> {
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
