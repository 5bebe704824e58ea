/**
 * What policies say of this edge, as its hub told it last: on the disk, since a limit of how long an edge goes on without the cloud
 * has to outlive a restart without it. It is of one cluster, and goes with that.
 */
import { reasonOf } from '../base/fault.ts'
import type { Log } from '../base/log.ts'
import type { LinkTerms } from '../link/session/session.ts'
import type { Store } from '../store/store.ts'

const kind = 'policy'
const key = 'terms'

/** An age that policies do not limit is undefined. */
export type OfflineTerms = { readonly tokenAgeMs: number | undefined; readonly serveAgeMs: number | undefined }

/** Where no hub has said anything. */
export const unlimited: OfflineTerms = { tokenAgeMs: undefined, serveAgeMs: undefined }

type Parts = { readonly store: Pick<Store, 'record' | 'commit'>; readonly log: Log }

export class EdgeTerms implements OfflineTerms {
  readonly #parts: Parts
  #tokenAgeMs = 0
  #serveAgeMs = 0

  static async open(parts: Parts): Promise<EdgeTerms> {
    const terms = new EdgeTerms(parts)
    const [token = 0, serve = 0] = String((await parts.store.record(kind, key)) ?? '')
      .split(' ')
      .map(Number)
    if (isAge(token)) terms.#tokenAgeMs = token
    if (isAge(serve)) terms.#serveAgeMs = serve
    return terms
  }

  private constructor(parts: Parts) {
    this.#parts = parts
  }

  get tokenAgeMs(): number | undefined {
    return this.#tokenAgeMs || undefined
  }

  get serveAgeMs(): number | undefined {
    return this.#serveAgeMs || undefined
  }

  told({ tokenAgeMs, serveAgeMs }: LinkTerms): void {
    if (tokenAgeMs === this.#tokenAgeMs && serveAgeMs === this.#serveAgeMs) return
    this.#tokenAgeMs = tokenAgeMs
    this.#serveAgeMs = serveAgeMs
    const { store, log } = this.#parts
    const value = Buffer.from(`${tokenAgeMs} ${serveAgeMs}`, 'latin1')
    // Synced: it is written when a policy changes, and counts when the power was cut.
    store
      .commit({ changes: [], records: [{ kind, key, value }], synced: true })
      .catch((error: unknown) => log.warn('policy.unwritten', { why: reasonOf(error) }))
  }
}

function isAge(ms: number): boolean {
  return Number.isSafeInteger(ms) && ms >= 0
}
