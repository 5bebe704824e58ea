/**
 * Access at a mirror: the API server says who a caller is and what it may do. What is about this process is open, or its
 * administrator's, who acts upstream with the edge's own credential.
 */
import type { Access, Verdict } from '../access/access.ts'
import { impersonationOf } from '../access/authenticate/impersonation.ts'
import { makeQuestion, type Question } from '../access/question.ts'
import type { Caller } from '../kube/caller.ts'
import { quoted } from '../kube/json/gotext.ts'
import { denied, StatusError } from '../kube/status.ts'
import type { Identity, Reachability } from '../upstream/upstream.ts'
import type { Call } from './call.ts'
import type { Authentication, Authorization } from './composition.ts'
import type { Request } from './endpoint.ts'
import { type CertificateStanding, headerLines, identityOf } from './identify.ts'
import { isOpen, statusPath } from './ownpaths.ts'

type Parts = {
  readonly access: Pick<Access, 'held' | 'decide' | 'refusal'>
  /** Whether a credential goes up for a certificate's caller. */
  readonly standingOf: (certificate: NonNullable<Request['peer']['certificate']>) => CertificateStanding
  /** The time by which certificates expire. */
  readonly nowMs: () => number
  readonly reachability: Pick<Reachability, 'state'>
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
    if (call.impersonates) return api.path === statusPath ? 'denied' : this.#impersonated(call).verdict
    // Whatever the edge's own credential may not, the API server refuses to it.
    if (identity.kind === 'edge') return 'allowed'
    if (api.path === statusPath) return 'denied'
    return this.#parts.access.decide(identity, call.question)
  }

  refusal(call: Call, verdict: Verdict): StatusError {
    const { access } = this.#parts
    const { path: name } = call.api
    if (name === statusPath) {
      const why = 'only the administrator of this machine may see it'
      return denied(`path "${name}" is forbidden: ${why}`, { name, kind: 'path' })
    }
    if (!call.impersonates) return explained(call, access.refusal(call.identity, call.question, verdict), verdict)
    const { identity, question } = this.#impersonated(call)
    return access.refusal(identity, question, verdict)
  }

  /**
   * While the API server can be asked it says whether a caller may be another one, and what that one may. Without it the same is
   * judged here: each part of the other first, then what is asked, as the other. Also with whom and what the verdict is about.
   */
  #impersonated(call: Call): { verdict: Verdict; identity: Identity; question: Question } {
    const { access, reachability } = this.#parts
    const { identity, question, request } = call
    const wanted = reachability.state === 'unreachable' ? impersonationOf(headerLines(request)) : undefined
    if (wanted === undefined) return { verdict: 'unknown', identity, question }
    for (const asking of wanted.asked) {
      const asked = makeQuestion(asking)
      const verdict = atOnce(access.decide(identity, asked))
      if (verdict !== 'allowed') return { verdict, identity, question: asked }
    }
    const other: Identity = { kind: 'local', caller: wanted.caller }
    return { verdict: atOnce(access.decide(other, question)), identity: other, question }
  }
}

/** Without the API server nothing is waited for. */
function atOnce(verdict: Verdict | Promise<Verdict>): Verdict {
  return typeof verdict === 'string' ? verdict : 'unknown'
}

/** A person with a certificate of the cluster that no credential goes with looks for a missing role otherwise. */
function explained({ identity, request }: Call, refusal: StatusError, verdict: Verdict): StatusError {
  const { certificate } = request.peer
  const isAnonymous = identity.kind === 'anonymous' && certificate !== undefined
  const isUnasked = identity.kind === 'named' && verdict === 'unknown' && refusal.status.code === 403
  if (!isAnonymous && !isUnasked) return refusal
  const why = isAnonymous
    ? `the certificate of ${quoted(certificate.name)} counts as anonymous here: "ake status" says why`
    : 'what this caller may could not be asked: the edge has to be allowed to create subjectaccessreviews (deploy/edge-rbac.yaml)'
  return new StatusError({ ...refusal.status, message: `${refusal.message}; ${why}` })
}
