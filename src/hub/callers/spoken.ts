/** For which callers a hub speaks: judged for each request and each proof, by the certificate that was shown and the policies as they are now. */
import type { Warnings } from '../../base/warnings.ts'
import type { Caller } from '../../kube/caller.ts'
import { quoted } from '../../kube/json/gotext.ts'
import { failure, StatusError, unauthorized } from '../../kube/status.ts'
import type { CarriedCertificate } from '../../tunnel/credentials.ts'
import { type Headers, Unspoken } from '../../upstream/upstream.ts'
import { mastersGroup, type SpeaksFor } from './callers.ts'
import type { CallerCertificates, JudgedCertificate, Unjudged } from './certificates.ts'
import { expressed } from './expressed.ts'
import { type AskedAccess, impersonatedBy } from './impersonating.ts'

type Parts = {
  readonly certificates: Pick<CallerCertificates, 'judge'>
  readonly speaksFor: SpeaksFor
  /** Whether the API server constrains impersonation, and the hub has the rights for that. */
  readonly isConstrained: () => boolean
  /** The hub may impersonate in the old way, at an API server that does not. */
  readonly allowsLegacy: boolean
  readonly access: AskedAccess
  readonly warnings: Pick<Warnings, 'warn'>
}

/** In whose name a request goes up, whose certificate was shown for it (another's, where that impersonates), and the headers that say so. */
export type SpokenRequest = { readonly caller: Caller; readonly shownBy: Caller; readonly headers: Headers }

type Asked = { readonly method: string; readonly path: string; readonly headers: Headers }

export class SpokenCallers {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** The caller that the certificate names, where this edge may speak for it; else why not: `isForeign`, it is none of the cluster's. */
  judge(edge: string, shown: CarriedCertificate): JudgedCertificate {
    const judged = this.#parts.certificates.judge(shown)
    if ('sentence' in judged) return this.#refused(edge, '', judged)
    const { caller } = judged
    if (caller.groups.includes(mastersGroup)) {
      const sentence = `its hub speaks for no member of ${mastersGroup}`
      return this.#refused(edge, caller.name, { sentence, isForeign: false })
    }
    const { yes, by } = this.#parts.speaksFor(edge, caller)
    if (yes) return { caller }
    const sentence = `its hub does not let node ${quoted(edge)} speak for it (${by})`
    return this.#refused(edge, caller.name, { sentence, isForeign: false })
  }

  /** Throws a `StatusError` as the API server would answer, or `Unspoken` where the hub does not speak for it. */
  async request(edge: string, shown: CarriedCertificate, asked: Asked): Promise<SpokenRequest> {
    const { allowsLegacy } = this.#parts
    const judged = this.judge(edge, shown)
    if ('sentence' in judged) throw faultOf(judged)
    const isConstrained = this.#parts.isConstrained()
    if (!isConstrained && !allowsLegacy) {
      this.#refused(edge, judged.caller.name, { sentence: unconstrained })
      throw new Unspoken(unconstrained)
    }
    const caller = await this.#impersonated(edge, judged.caller, asked, isConstrained)
    const headers = expressed(caller, isConstrained)
    if (typeof headers === 'string') {
      this.#refused(edge, judged.caller.name, { sentence: headers })
      // Who asked to be another is spoken for in its own name all the same.
      if (caller !== judged.caller) throw failure(403, 'Forbidden', `${headers}: ${otherwise}`)
      throw new Unspoken(headers)
    }
    return { caller, shownBy: judged.caller, headers }
  }

  async #impersonated(edge: string, caller: Caller, asked: Asked, isConstrained: boolean): Promise<Caller> {
    try {
      return await impersonatedBy(caller, asked, { access: this.#parts.access, isConstrained })
    } catch (error) {
      if (error instanceof StatusError && error.status.code === 403)
        this.#refused(edge, caller.name, { sentence: error.message })
      throw error
    }
  }

  #refused<Refusal extends { readonly sentence: string }>(edge: string, user: string, refusal: Refusal): Refusal {
    const why = refusal.sentence
    const about = { who: edge, kind: 'caller', same: `${user} ${why}` }
    this.#parts.warnings.warn('hub.unspoken', about, { edge, ...(user === '' ? {} : { user }), why })
    return refusal
  }
}

function faultOf({ sentence, isForeign, isUnread = false }: Unjudged): Error {
  if (isUnread) return failure(503, 'ServiceUnavailable', sentence, { retryAfterSeconds: unreadRetrySeconds })
  return isForeign ? unauthorized() : new Unspoken(sentence)
}

/** A hub that has just started reads the authorities of its cluster within a moment. */
const unreadRetrySeconds = 1

/** What who is not spoken for as another can do. */
export const otherwise = 'ask with a token, or ask the API server itself'

const unconstrained =
  'its API server does not constrain impersonation, or its hub has no right to that (deploy/hub.yaml): a hub speaks there for callers with certificates only with --legacy-impersonation'
