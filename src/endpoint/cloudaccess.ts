/**
 * Access at a mirror: the API server says who a caller is and what it may do. What is about this process is open, or its
 * administrator's, who acts upstream with the edge's own credential.
 */
import type { Access, Verdict } from '../access/access.ts'
import type { Caller } from '../kube/caller.ts'
import { denied, type StatusError } from '../kube/status.ts'
import type { Identity } from '../upstream/upstream.ts'
import type { Call } from './call.ts'
import type { Authentication, Authorization } from './composition.ts'
import type { Request } from './endpoint.ts'
import { identityOf } from './identify.ts'
import { isOpen, statusPath } from './ownpaths.ts'

type Parts = {
  readonly access: Pick<Access, 'held' | 'decide' | 'refusal'>
  /** Whether a certificate is that of a caller with a credential of its own upstream. */
  readonly isMapped: (certificate: NonNullable<Request['peer']['certificate']>) => boolean
  /** The time by which certificates expire. */
  readonly nowMs: () => number
}

export class CloudAccess implements Authentication, Authorization {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  identify(request: Request): Identity {
    return identityOf(request, this.#parts)
  }

  callerOf({ identity }: Call): Caller | undefined {
    return this.#parts.access.held(identity)
  }

  decide(call: Call): Verdict | Promise<Verdict> {
    const { api, identity } = call
    if (!api.isResource && isOpen(api.path)) return 'allowed'
    // Whether a caller may be another one, and what that one may, only the API server can say.
    if (call.impersonates) return 'unknown'
    // Whatever the edge's own credential may not, the API server refuses to it.
    if (identity.kind === 'edge') return 'allowed'
    if (api.path === statusPath) return 'denied'
    return this.#parts.access.decide(identity, call.question)
  }

  refusal(call: Call, verdict: Verdict): StatusError {
    const { identity, impersonates } = call
    const { path: name } = call.api
    const isAdministrators = name === statusPath
    if (!impersonates && !isAdministrators) return this.#parts.access.refusal(identity, call.question, verdict)
    const why = isAdministrators
      ? 'only the administrator of this machine may see it'
      : 'whether a caller may be another one is not known here'
    return denied(`path "${name}" is forbidden: ${why}`, { name, kind: 'path' })
  }
}
