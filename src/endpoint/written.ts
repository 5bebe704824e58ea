/**
 * Read your writes (A7): the reply to a write is held until the copies it concerns show what it did, so that its client never
 * reads an older state from us afterwards. Where the reply does not tell what that is, the edge looks in its own name. After
 * a while, or when the link dies, the reply goes out all the same, and its object answers reads of that key, outside every
 * history, until the copy has passed it.
 */
import type { Clock } from '../base/clock.ts'
import type { Cache } from '../cache/cache.ts'
import { makeFilter } from '../cache/filter.ts'
import { type Item, makeItem } from '../cache/item.ts'
import { noFields } from '../kube/object.ts'
import { replyVersion } from '../kube/replies.ts'
import { objectKey } from '../kube/resource.ts'
import type { Known } from '../mirror/catalog.ts'
import { covers, pathOf, resourceName, type Scope, scopeOfName } from '../mirror/interest.ts'
import type { Interests } from '../mirror/interests.ts'
import type { Kept } from '../mirror/kept.ts'
import { Unreachable, type Upstream } from '../upstream/upstream.ts'
import { readWhole } from '../upstream/whole.ts'
import type { Effect } from './effects.ts'
import { Showing } from './showing.ts'
import { formOf } from './writtenform.ts'

/** How long a reply waits for the copy: far beyond any live watch, short of any client's patience. */
const heldMsMax = 2_000
/** Objects kept aside until the copy has passed them: writes whose watch lags, which are few. */
const asideMax = 256
/** Objects that are looked at for one reply: what a deletion of a collection met that was being deleted already. */
const looksMax = 32
/** An object is at most etcd's 1.5 MB. */
const objectBytesMax = 8 * 1024 * 1024

type Place = Omit<Scope, 'labels' | 'fields'>
type Body = { readonly contentType: string; readonly bytes: Buffer }

export type Replied = {
  readonly resource: Omit<Place, 'namespace'>
  readonly known: Known | undefined
  readonly effects: readonly Effect[]
  readonly reply: Body
}

/** One effect with the object itself, where that is known: in the form in which it is kept. */
type Told = { readonly effect: Effect; readonly scope: Scope; readonly object: Item | undefined }

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
  concerns({ group, version, resource }: Omit<Place, 'namespace'>): boolean {
    return this.#interests.of(group, version, resource).size > 0
  }

  /** Resolves when the reply may go out. */
  async hold({ resource, known, effects, reply }: Replied): Promise<void> {
    const endMs = this.#clock.steady() + heldMsMax
    const alive = effects.filter(({ namespace }) => this.#mayShow(resource, namespace))
    if (alive.length === 0) return
    const told: Told[] = []
    const shown = this.#live(
      Promise.all(
        alive.map(async (effect, at) => {
          const scope = scopeOfName({ ...resource, namespace: effect.namespace }, effect.name)
          const one =
            effect.kind === 'unknown'
              ? at < looksMax && (await this.#look(effect, scope, known, endMs))
              : { effect, scope, object: itemOf(effect, reply, known) }
          if (one) told.push(one)
        }),
      ).then(() => this.#shown(told, known, endMs)),
    )
    if (await shown) return
    for (const { scope, object } of told) if (object !== undefined) this.#keepAside(scope, object)
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

  #keepAside(scope: Scope, item: Item): void {
    const name = asideName(scope, item.key)
    this.#aside.delete(name)
    this.#aside.set(name, item)
    if (this.#aside.size > asideMax) this.#aside.delete(this.#aside.keys().next().value as string)
  }

  /** Interests whose copy is there and hears of changes. */
  *#hearing({ group, version, resource }: Omit<Place, 'namespace'>): Generator<Kept & { readonly cache: Cache }> {
    for (const kept of this.#interests.of(group, version, resource)) {
      // One that the API server refuses to the edge hears of nothing.
      if (kept.cache !== undefined && kept.state.kind !== 'refused') yield kept as Kept & { readonly cache: Cache }
    }
  }

  #mayShow(resource: Omit<Place, 'namespace'>, namespace: string): boolean {
    for (const { interest } of this.#hearing(resource)) {
      if (interest.namespace === '' || interest.namespace === namespace) return true
    }
    return false
  }

  async #shown(told: readonly Told[], known: Known | undefined, endMs: number): Promise<boolean> {
    const [first] = told
    if (first === undefined) return true
    const waits: Promise<boolean>[] = []
    for (const kept of this.#hearing(first.scope)) {
      const concerned = told.filter((one) => isConcerned(kept, one, known)).map(({ effect }) => effect)
      if (concerned.length > 0) waits.push(new Showing(kept.cache, concerned, this.#clock).within(endMs))
    }
    return (await Promise.all(waits)).every(Boolean)
  }

  /** False as soon as the link is dead: nothing will come over it. */
  async #live(waiting: Promise<boolean>): Promise<boolean> {
    let stop = () => {}
    const dead = new Promise<false>((resolve) => {
      stop = this.#upstream.reachability.observe((state) => {
        if (state === 'unreachable') resolve(false)
      })
    })
    try {
      return await Promise.race([waiting, dead])
    } finally {
      stop()
    }
  }

  /** What the object is after the write; undefined where the edge cannot see it, or not in time. */
  async #look(effect: Effect, scope: Scope, known: Known | undefined, endMs: number): Promise<Told | undefined> {
    const { namespace, name, key } = effect
    const at = { namespace, name, key }
    try {
      const answer = await this.#upstream.ask({
        method: 'GET',
        path: `${pathOf(placeOf(scope), {})}/${encodeURIComponent(name)}`,
        headers: { accept: 'application/json' },
        identity: { kind: 'edge' },
        headMsMax: Math.max(1, endMs - this.#clock.steady()),
      })
      const bytes = await readWhole(answer, objectBytesMax)
      if (answer.status === 404) return { effect: { ...at, kind: 'gone', uid: '' }, scope, object: undefined }
      const reply = { contentType: String(answer.headers['content-type'] ?? ''), bytes }
      const version = answer.status === 200 ? replyVersion(reply.contentType, bytes)?.version : undefined
      if (version === undefined) return undefined
      const reached = { ...at, kind: 'reached' as const, version }
      return { effect: reached, scope, object: itemOf(reached, reply, known) }
    } catch (error) {
      if (error instanceof Unreachable) return undefined
      throw error
    }
  }
}

/** Whether the interest will hear of it: it covers the object whatever that holds, shows it now, or will show it. */
function isConcerned({ interest, record, cache }: Kept, { effect, scope, object }: Told, known?: Known): boolean {
  if (cache?.peek(effect.key) !== undefined || covers(interest, scope)) return true
  // One of another name, or another namespace, needs no second look.
  if (object === undefined || known === undefined || interest.fields.required('metadata.name') !== undefined)
    return false
  const { namespace, labels, fields } = interest
  if (namespace !== '' && namespace !== effect.namespace) return false
  try {
    const { paths } = known.fields
    const filter = makeFilter({ namespaced: record.namespaced, namespace, labels, fields, paths, plan: known.plan })
    return filter.matches(object)
  } catch {
    // A field that nobody knows any more.
    return false
  }
}

/** The object as it is kept, if the reply holds it as a whole. */
function itemOf(effect: Effect, { contentType, bytes }: Body, known: Known | undefined): Item | undefined {
  if (effect.kind !== 'reached') return undefined
  const form = formOf(contentType, bytes, known?.resource)
  if (form === undefined) return undefined
  const item = makeItem(form, effect.version, known?.plan ?? noFields)
  return item.key === objectKey(effect.namespace, effect.name) ? item : undefined
}

/** The collection in which the object stands. */
function placeOf(scope: Scope): Scope {
  return scopeOfName(scope, '')
}

function asideName({ group, version, resource }: Omit<Place, 'namespace'>, key: string): string {
  return `${resourceName(group, version, resource)} ${key}`
}
