/**
 * Roles and bindings, which an edge keeps if it may read them: they answer no read, but a change of them says at once that what
 * was decided has to be asked again. Where the edge may not read them that is no fault: decisions grow old by themselves.
 */
import { type Changes, everywhere } from '../access/changes.ts'
import { Bell } from '../base/bell.ts'
import type { Clock } from '../base/clock.ts'
import type { CloudCatalog } from '../mirror/documents/catalog.ts'
import { interestOf, resourceName } from '../mirror/interest.ts'
import type { Interests } from '../mirror/interests.ts'
import type { Upstream } from '../upstream/upstream.ts'
import { reviewOwn } from './confirm.ts'

const group = 'rbac.authorization.k8s.io'
const version = 'v1'
const resources = ['roles', 'rolebindings', 'clusterroles', 'clusterrolebindings'] as const

/** After a review that failed. */
const retryMs = 5_000
/** An operator may give the edge the right later. */
const deniedMs = 600_000

type Parts = {
  readonly interests: Interests
  readonly catalog: CloudCatalog
  readonly upstream: Upstream
  readonly changes: Changes
  readonly clock: Clock
}

export class Roles {
  readonly #parts: Parts
  readonly #missing = new Set<string>(resources)
  readonly #deniedUntil = new Map<string, number>()

  constructor(parts: Parts) {
    this.#parts = parts
    const { interests, changes } = parts
    for (const resource of resources) {
      interests.onResource(resourceName(group, version, resource), (cache) => {
        // What changed before it was here was not told.
        changes.note(everywhere)
        cache.observe(({ item, previous }) => changes.note((item ?? previous)?.namespace ?? everywhere))
      })
    }
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
    const { interests, catalog, upstream, clock } = this.#parts
    const known = catalog.find(group, version, resource)
    if (known === undefined || upstream.reachability.state !== 'reachable') return
    const interest = interestOf({ group, version, resource, namespace: '' })
    const verdict = await reviewOwn(upstream, interest).catch(() => 'unknown' as const)
    this.#deniedUntil.delete(resource)
    if (verdict === 'denied') this.#deniedUntil.set(resource, clock.steady() + deniedMs)
    if (verdict !== 'allowed') return
    interests.begin(interest, known, { standing: true })
    this.#missing.delete(resource)
  }
}
