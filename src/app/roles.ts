/**
 * Roles and bindings, which an edge keeps if it may read them: what callers may do is told from them, and a change of them says
 * at once that what was decided has to be looked at again. Where the edge may not read them that is no fault: decisions grow
 * old by themselves.
 */
import { type Changes, everywhere } from '../access/changes.ts'
import type { Evaluation, RoleSource } from '../access/evaluation.ts'
import type { RbacResource } from '../access/rbac/rbac.ts'
import { Bell } from '../base/bell.ts'
import type { Clock } from '../base/clock.ts'
import type { Cache } from '../cache/cache.ts'
import type { CloudCatalog } from '../mirror/documents/catalog.ts'
import { interestOf, resourceName } from '../mirror/interest.ts'
import type { Interests } from '../mirror/interests.ts'
import type { Upstream } from '../upstream/upstream.ts'
import type { CloudLine } from './cloudline.ts'

const group = 'rbac.authorization.k8s.io'
const version = 'v1'
const resources = ['roles', 'rolebindings', 'clusterroles', 'clusterrolebindings'] as const

/** After a review that failed. */
const retryMs = 5_000
/** An operator may give the edge the right later. */
const deniedMs = 600_000

const interestIn = (resource: string) => interestOf({ group, version, resource, namespace: '' })

const nameOf = Object.fromEntries(resources.map((resource) => [resource, interestIn(resource).name])) as Readonly<
  Record<RbacResource, string>
>

/** By name, what is held of them where it may be. */
export const roleInterests = Object.values(nameOf)

export type RolesParts = {
  readonly interests: Pick<Interests, 'onResource' | 'named' | 'begin'>
  readonly catalog: Pick<CloudCatalog, 'find' | 'observe'>
  readonly upstream: Upstream
  readonly changes: Changes
  readonly evaluation: Evaluation
  readonly mayRead: CloudLine['mayRead']
  readonly clock: Clock
}

export class Roles implements RoleSource {
  readonly #parts: RolesParts
  readonly #missing = new Set<string>(resources)
  readonly #deniedUntil = new Map<string, number>()
  /** Those that were read whole, each from the cache that is followed. */
  readonly #read = new Map<RbacResource, Cache>()

  constructor(parts: RolesParts) {
    this.#parts = parts
    const { interests, changes, evaluation } = parts
    for (const resource of resources) {
      interests.onResource(resourceName(group, version, resource), (cache) => {
        // What changed before it was here was not told.
        changes.note(everywhere)
        // A part of a resource, which a client asked for, tells no more than the whole.
        const isWhole = cache.interest === nameOf[resource]
        if (isWhole) this.#readAll(resource, cache)
        cache.observe(({ key, item, previous }) => {
          changes.note((item ?? previous)?.namespace ?? everywhere)
          if (!isWhole || this.#read.get(resource) !== cache) return
          if (item === undefined) evaluation.delete(resource, key)
          else evaluation.put(resource, key, item.bytes)
        })
      })
    }
    evaluation.follow(this)
  }

  heardAt(): number | undefined {
    const { interests } = this.#parts
    let earliest = Number.POSITIVE_INFINITY
    for (const resource of resources) {
      const mirrored = interests.named(nameOf[resource])
      const cache = mirrored?.readable
      if (mirrored === undefined || cache === undefined) return undefined
      // What is damaged is fetched again without a word, and a role that cannot be read must not pass for one that is not there.
      if (cache.isDamaged) this.#read.delete(resource)
      else if (this.#read.get(resource) !== cache) this.#readAll(resource, cache)
      if (cache.isDamaged) return undefined
      earliest = Math.min(earliest, mirrored.heardAt)
    }
    return earliest
  }

  #readAll(resource: RbacResource, cache: Cache): void {
    const { evaluation } = this.#parts
    evaluation.clear(resource)
    for (const { key, bytes } of cache.all()) evaluation.put(resource, key, bytes)
    this.#read.set(resource, cache)
  }

  /** Begins what the edge may have, as soon as that can be told. */
  async run(signal: AbortSignal): Promise<void> {
    const { catalog, upstream, clock } = this.#parts
    const bell = new Bell(clock)
    const stops = [catalog.observe(() => bell.ring()), upstream.reachability.observe(() => bell.ring())]
    while (!signal.aborted) {
      const open = [...this.#missing].filter((resource) => clock.steady() >= (this.#deniedUntil.get(resource) ?? 0))
      await Promise.all(open.map((resource) => this.#look(resource)))
      if (signal.aborted || this.#missing.size === 0) break
      const isDenied = [...this.#missing].every((resource) => this.#deniedUntil.has(resource))
      await bell.wait(signal, isDenied ? deniedMs : retryMs)
    }
    for (const stop of stops) stop()
  }

  async #look(resource: string): Promise<void> {
    const { interests, catalog, upstream, mayRead, clock } = this.#parts
    const known = catalog.find(group, version, resource)
    if (known === undefined || upstream.reachability.state !== 'reachable') return
    const interest = interestIn(resource)
    const verdict = await mayRead(interest).catch(() => 'unknown' as const)
    this.#deniedUntil.delete(resource)
    if (verdict === 'denied') this.#deniedUntil.set(resource, clock.steady() + deniedMs)
    if (verdict !== 'allowed') return
    interests.begin(interest, known, { standing: true })
    this.#missing.delete(resource)
  }
}
