/**
 * Read your writes (A7): the reply to a write is held until the copies it concerns have reached its version, so that its
 * client never reads an older state from us afterwards. After a while, or when the link dies, it goes out all the same, and
 * its object answers reads of that key, outside every history, until the copy has passed it.
 */
import type { Clock } from '../base/clock.ts'
import type { Cache } from '../cache/cache.ts'
import { type Item, makeItem } from '../cache/item.ts'
import { listItemForm } from '../kube/listpage.ts'
import { noFields } from '../kube/object.ts'
import { decodeMessage, isProtobuf, messageOf, readEnvelope } from '../kube/protobuf/protobuf.ts'
import { type Reply, replyVersion } from '../kube/replies.ts'
import { covers, resourceName, type Scope } from '../mirror/interest.ts'
import type { Interests } from '../mirror/interests.ts'
import type { Upstream } from '../upstream/upstream.ts'

/** How long a reply waits for the copy: far beyond any live watch, short of any client's patience. */
const heldMsMax = 2_000
/** Objects kept aside until the copy has passed them: writes whose watch lags, which are few. */
const asideMax = 256

export type Replied = {
  readonly scope: Scope
  readonly key: string
  readonly custom: boolean
  readonly contentType: string | undefined
  readonly bytes: Buffer
}

export class Written {
  readonly #interests: Interests
  readonly #upstream: Upstream
  readonly #clock: Clock
  readonly #aside = new Map<string, Item>()

  constructor(parts: { interests: Interests; upstream: Upstream; clock: Clock }) {
    this.#interests = parts.interests
    this.#upstream = parts.upstream
    this.#clock = parts.clock
  }

  /** Whether any copy could show the object. */
  concerns({ group, version, resource }: Scope): boolean {
    return this.#interests.of(group, version, resource).size > 0
  }

  /** Resolves when the reply may go out. */
  async hold({ scope, key, custom, contentType, bytes }: Replied): Promise<void> {
    const reply = replyVersion(contentType, bytes)
    if (reply === undefined) return
    const { version, kind } = reply
    // An object without a version is kept nowhere: nothing will be heard of it.
    if (version === undefined && kind !== 'Status') return
    const caches = this.#concerned(scope, key)
    if (caches.length === 0) return
    const reached = await this.#all(caches, (cache) =>
      version === undefined ? this.#gone(cache, key, reply) : this.#reached(cache, key, version),
    )
    if (reached || version === undefined || !isWhole(reply, contentType)) return
    const form = isProtobuf(contentType) ? formOfMessage(bytes) : formOfJson(bytes, custom)
    if (form === undefined) return
    const name = asideName(scope, key)
    this.#aside.delete(name)
    this.#aside.set(name, makeItem(form, version, noFields))
    if (this.#aside.size > asideMax) this.#aside.delete(this.#aside.keys().next().value as string)
  }

  /** What was written through us and is newer than the copy. */
  newer(scope: Scope, key: string, cache: Cache): Item | undefined {
    if (this.#aside.size === 0) return undefined
    const name = asideName(scope, key)
    const item = this.#aside.get(name)
    if (item === undefined) return undefined
    if (cache.version < item.version && (cache.peek(key)?.version ?? 0) < item.version) return item
    this.#aside.delete(name)
    return undefined
  }

  /** Interests that cover the object whatever it holds, and those that show it now. */
  #concerned(scope: Scope, key: string): Cache[] {
    const caches: Cache[] = []
    for (const { cache, interest } of this.#interests.of(scope.group, scope.version, scope.resource)) {
      if (cache !== undefined && (covers(interest, scope) || cache.peek(key) !== undefined)) caches.push(cache)
    }
    return caches
  }

  async #all(caches: readonly Cache[], wait: (cache: Cache) => Promise<boolean>): Promise<boolean> {
    let stop = () => {}
    const dead = new Promise<false>((resolve) => {
      stop = this.#upstream.reachability.observe((state) => {
        if (state === 'unreachable') resolve(false)
      })
    })
    try {
      const every = Promise.all(caches.map(wait)).then((all) => all.every(Boolean))
      return await Promise.race([every, dead])
    } finally {
      stop()
    }
  }

  /** A version that wrote nothing new is there already: no event will come for it. */
  #reached(cache: Cache, key: string, version: number): Promise<boolean> {
    if ((cache.peek(key)?.version ?? 0) >= version) return Promise.resolve(true)
    return cache.progress.reach(version, heldMsMax, this.#clock)
  }

  /** A DELETE answered by a Status: until the key is gone, or belongs to another object. */
  #gone(cache: Cache, key: string, { uid }: Reply): Promise<boolean> {
    const isGone = () => {
      const item = cache.peek(key)
      return item === undefined || (uid !== '' && item.uid !== uid)
    }
    if (isGone()) return Promise.resolve(true)
    return new Promise((resolve) => {
      const end = (gone: boolean) => {
        cancel()
        stop()
        resolve(gone)
      }
      const cancel = this.#clock.setTimer(heldMsMax, () => end(false))
      const stop = cache.observe((event) => {
        if (event.key === key && isGone()) end(true)
      })
    })
  }
}

/** Tables and metadata are not the object itself. */
function isWhole({ kind }: Reply, contentType: string | undefined): boolean {
  const [media = '', ...parameters] = (contentType ?? '').split(';')
  if (parameters.some((one) => one.trim().startsWith('as='))) return false
  if (media.trim() !== 'application/json' && !isProtobuf(contentType)) return false
  return kind !== 'Table' && kind !== 'PartialObjectMetadata'
}

/** An answer ends its line, an object does not; one that is printed for people is not the object's own bytes. */
function formOfJson(bytes: Buffer, custom: boolean): Buffer | undefined {
  if (bytes[1] === 0x0a) return undefined
  return listItemForm(bytes.at(-1) === 0x0a ? bytes.subarray(0, -1) : bytes, custom)
}

/** The object's JSON as the API server would have printed it. */
function formOfMessage(bytes: Buffer): Buffer | undefined {
  const { apiVersion, kind, raw } = readEnvelope(bytes)
  const message = messageOf(apiVersion, kind)
  return message === undefined ? undefined : decodeMessage(message, raw)
}

function asideName({ group, version, resource }: Scope, key: string): string {
  return `${resourceName(group, version, resource)} ${key}`
}
