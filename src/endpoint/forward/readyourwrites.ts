/**
 * Read your writes (A7): the reply to a write is held until the copies it concerns show what it did, so that its client never
 * reads an older state from us afterwards. Where the reply does not tell what that is, the edge looks in its own name, or in
 * the caller's where it may not (behind a hub an edge is its node); a look that fails fails no write. After a while, or when the link dies, the
 * reply goes out all the same, and its object answers reads of that key, outside every history, until the copy has passed it.
 */
import type { Clock } from '../../base/clock.ts'
import type { Cache } from '../../cache/cache.ts'
import { type Item, makeItem } from '../../cache/item.ts'
import { noFields } from '../../kube/object.ts'
import { replyVersion } from '../../kube/replies.ts'
import { objectKey } from '../../kube/resource.ts'
import { pathOf, type Scope } from '../../kube/scope.ts'
import { StatusError } from '../../kube/status.ts'
import type { KnownResource } from '../../mirror/documents/catalog.ts'
import { resourceName, scopeOfName } from '../../mirror/interest.ts'
import type { Interests } from '../../mirror/interests.ts'
import { type Identity, Unreachable, Unspoken, type Upstream } from '../../upstream/upstream.ts'
import { AnswerTooLarge, readWhole } from '../../upstream/whole.ts'
import { type Hearing, isConcerned, isWithin, needsObject, type ScopedEffect } from './concerned.ts'
import type { Effect } from './effects.ts'
import { shows } from './showing.ts'
import { formOf, type ReplyBody } from './writtenform.ts'

/** How long a reply waits for the copy: far beyond any live watch, short of any client's patience. */
const heldMsMax = 2_000
/** What a look may meet: no answer, one too large, a line that has too many requests, a hub that does not speak for the caller. */
const lookFailures = [Unreachable, AnswerTooLarge, StatusError, Unspoken]
/** Objects kept aside until the copy has passed them: writes whose watch lags, which are few. */
const asideMax = 256
/** Objects that are looked at for one reply: what a deletion of a collection met that was being deleted already. */
const looksMax = 32
/** An object is at most etcd's 1.5 MB. */
const objectBytesMax = 8 * 1024 * 1024

type Place = Omit<Scope, 'labels' | 'fields'>

export type Replied = {
  readonly resource: Omit<Place, 'namespace'>
  readonly known: KnownResource | undefined
  readonly effects: readonly Effect[]
  readonly reply: ReplyBody
  /** In whose name a look may go up; undefined where the write went up in another's than its credential's. */
  readonly writer: Identity | undefined
}

type Look = Pick<Replied, 'known' | 'writer'> & { readonly endMs: number }

export class ReadYourWrites {
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
  concerns({ group, resource }: Pick<Place, 'group' | 'resource'>): boolean {
    for (const { interest } of this.#interests.all) {
      if (interest.resource === resource && interest.group === group) return true
    }
    return false
  }

  /** Resolves when the reply may go out. */
  async hold({ resource, known, effects, reply, writer }: Replied): Promise<void> {
    const endMs = this.#clock.steady() + heldMsMax
    const hearing = this.#hearing(resource)
    // A first list may have been read before the write, and be served after it.
    const isListing = this.#isListing(resource)
    const told: ScopedEffect[] = []
    let looks = 0
    const tell = async (effect: Effect): Promise<void> => {
      const isHeard = hearing.some(({ interest }) => isWithin(interest, effect.namespace))
      if (!isHeard && !isListing) return
      const scope = scopeOfName({ ...resource, namespace: effect.namespace }, effect.name)
      const one: ScopedEffect = { effect, scope, object: once(() => itemOf(effect, reply, known)) }
      const isTold = !isHeard || (effect.kind !== 'unknown' && !hearing.some((mirrored) => needsObject(mirrored, one)))
      const seen = isTold || looks++ >= looksMax ? undefined : await this.#look(effect, scope, { known, writer, endMs })
      told.push(seen ?? one)
    }
    const shown = Promise.all(effects.map(tell)).then(() => this.#shown(hearing, told, known, endMs))
    if ((await this.#live(shown)) && !isListing) return
    for (const { scope, object } of told) this.#keepAside(scope, object())
  }

  /** What was written through us and is newer than the copy. */
  newer(scope: Scope, key: string, cache: Cache): Item | undefined {
    if (this.#aside.size === 0) return undefined
    const name = asideName(scope, key)
    const item = this.#aside.get(name)
    if (item === undefined) return undefined
    const { cloud } = cache
    if (cloud.version < item.version && (cloud.peek(key)?.version ?? 0) < item.version) return item
    this.#aside.delete(name)
    return undefined
  }

  #keepAside(scope: Scope, item: Item | undefined): void {
    if (item === undefined) return
    const name = asideName(scope, item.key)
    this.#aside.delete(name)
    this.#aside.set(name, item)
    if (this.#aside.size > asideMax) this.#aside.delete(this.#aside.keys().next().value as string)
  }

  /** In whichever version of the resource. One that the API server refuses to the edge hears of nothing. */
  #hearing({ group, resource }: Pick<Place, 'group' | 'resource'>): Hearing[] {
    const found: Hearing[] = []
    for (const mirrored of this.#interests.all) {
      if (mirrored.interest.resource !== resource || mirrored.interest.group !== group) continue
      if (mirrored.cache !== undefined && mirrored.state.kind !== 'refused' && !mirrored.isBlind)
        found.push(mirrored as Hearing)
    }
    return found
  }

  /** Whether a first list of the resource is under way. */
  #isListing({ group, resource }: Pick<Place, 'group' | 'resource'>): boolean {
    for (const { interest, cache, state } of this.#interests.all) {
      if (interest.resource !== resource || interest.group !== group) continue
      if (cache === undefined && state.kind === 'syncing') return true
    }
    return false
  }

  async #shown(
    hearing: readonly Hearing[],
    told: readonly ScopedEffect[],
    known: KnownResource | undefined,
    endMs: number,
  ): Promise<boolean> {
    const waits: Promise<boolean>[] = []
    for (const mirrored of hearing) {
      const concerned = told.filter((one) => isConcerned(mirrored, one, known)).map(({ effect }) => effect)
      if (concerned.length > 0) waits.push(shows(mirrored.cache, concerned, { clock: this.#clock, endMs }))
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
  async #look(effect: Effect, scope: Scope, { known, writer, endMs }: Look): Promise<ScopedEffect | undefined> {
    const { namespace, name, key } = effect
    const at = { namespace, name, key }
    const over = new AbortController()
    const cancel = this.#clock.setTimer(Math.max(0, endMs - this.#clock.steady()), () => over.abort())
    try {
      const path = `${pathOf(placeOf(scope), {})}/${encodeURIComponent(name)}`
      const look = { method: 'GET', path, headers: { accept: 'application/json' }, signal: over.signal } as const
      let answer = await this.#upstream.ask({ ...look, identity: { kind: 'edge' } })
      if (answer.status === 403 && writer !== undefined) {
        void answer.body.return?.()
        answer = await this.#upstream.ask({ ...look, identity: writer, passedOn: true })
      }
      const bytes = await readWhole(answer, objectBytesMax)
      if (answer.status === 404) return { effect: { ...at, kind: 'gone', uid: '' }, scope, object: () => undefined }
      const contentType = String(answer.headers['content-type'] ?? '')
      const { kind = '', version } = (answer.status === 200 && replyVersion(contentType, bytes)) || {}
      if (version === undefined) return undefined
      const reply = { contentType, bytes, kind }
      const reached = { ...at, kind: 'reached' as const, version }
      return { effect: reached, scope, object: once(() => itemOf(reached, reply, known)) }
    } catch (error) {
      if (lookFailures.some((failure) => error instanceof failure)) return undefined
      throw error
    } finally {
      cancel()
    }
  }
}

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}

/** The object as it is kept, if the reply holds it as a whole. */
function itemOf(effect: Effect, reply: ReplyBody, known: KnownResource | undefined): Item | undefined {
  if (effect.kind !== 'reached') return undefined
  const form = formOf(reply, known?.resource)
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
