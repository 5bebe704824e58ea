/** How long an edge goes on without the cloud, where policies limit that: counted from when the API server was last heard, over restarts. */
import { humanDuration } from '../kube/table/duration.ts'
import type { Contact } from '../mirror/contact.ts'
import type { Reachability } from '../upstream/upstream.ts'
import type { OfflineTerms } from './edgeterms.ts'

type Parts = {
  readonly terms: OfflineTerms
  readonly contact: Pick<Contact, 'lastMs'>
  readonly reachability: Pick<Reachability, 'state'>
  /** The time as far as it can be trusted. */
  readonly nowMs: () => number
}

export class OfflineLimits {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Whether tokens count that the API server cannot be asked about. */
  get takesTokens(): boolean {
    return !this.#isBeyond(this.#parts.terms.tokenAgeMs)
  }

  /** Why nothing is answered from the copy any more; undefined: it is. */
  get unserved(): string | undefined {
    const { serveAgeMs } = this.#parts.terms
    if (serveAgeMs === undefined || !this.#isBeyond(serveAgeMs)) return undefined
    return `the API server was last heard more than ${humanDuration(serveAgeMs)} ago, which is how long a policy (spec.offline.serveAge) lets this edge answer without it`
  }

  #isBeyond(ageMs: number | undefined): boolean {
    const { contact, reachability, nowMs } = this.#parts
    if (ageMs === undefined || reachability.state === 'reachable') return false
    const { lastMs } = contact
    return lastMs === undefined || nowMs() - lastMs > ageMs
  }
}
