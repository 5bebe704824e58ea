/**
 * Roles and bindings, which an edge keeps if it may read them: they answer nobody, but a change of them says at once that what
 * was decided has to be asked again. Where the edge may not read them that is no fault: decisions grow old by themselves.
 */
import type { Changes } from '../access/changes.ts'
import type { Clock } from '../base/clock.ts'
import type { Catalog } from '../mirror/catalog.ts'
import { interestOf, resourceName } from '../mirror/interest.ts'
import type { Interests } from '../mirror/interests.ts'
import type { Upstream } from '../upstream/upstream.ts'
import { reviewOwn } from './confirm.ts'

const group = 'rbac.authorization.k8s.io'
const version = 'v1'
const resources = ['roles', 'rolebindings', 'clusterroles', 'clusterrolebindings'] as const

/** Until it is known whether the edge may: discovery and the cloud are there within seconds. */
const lookEveryMs = 5_000
/** Somebody may give the edge the right later. */
const deniedMs = 600_000

type Parts = {
  readonly interests: Interests
  readonly catalog: Catalog
  readonly upstream: Upstream
  readonly changes: Changes
  readonly clock: Clock
}

export class Roles {
  readonly #parts: Parts
  readonly #missing = new Set<string>(resources)

  constructor(parts: Parts) {
    this.#parts = parts
    const { interests, changes } = parts
    for (const resource of resources) {
      interests.onResource(resourceName(group, version, resource), (cache) =>
        cache.observe(({ item, previous }) => changes.note((item ?? previous)?.namespace ?? '')),
      )
    }
  }

  /** Begins what it may, sooner or later. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && this.#missing.size > 0) {
      const denied = await this.#look()
      if (signal.aborted || this.#missing.size === 0) return
      await this.#pause(denied ? deniedMs : lookEveryMs, signal)
    }
  }

  /** Whether all that is missing is denied. */
  async #look(): Promise<boolean> {
    const { interests, catalog, upstream } = this.#parts
    let denied = true
    for (const resource of this.#missing) {
      const known = catalog.find(group, version, resource)
      const interest = interestOf({ group, version, resource, namespace: '' })
      const asked = known !== undefined && upstream.reachability.state === 'reachable'
      const verdict = asked ? await reviewOwn(upstream, interest).catch(() => 'unknown' as const) : 'unknown'
      if (verdict !== 'denied') denied = false
      if (verdict !== 'allowed' || known === undefined) continue
      interests.begin(interest, known, { held: true })
      this.#missing.delete(resource)
    }
    return denied
  }

  #pause(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        cancel()
        signal.removeEventListener('abort', end)
        resolve()
      }
      const cancel = this.#parts.clock.setTimer(ms, end)
      signal.addEventListener('abort', end)
    })
  }
}
