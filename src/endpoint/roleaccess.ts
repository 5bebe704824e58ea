/**
 * What callers of an authority may do, by its own roles and bindings, as kube-apiserver judges: of a caller that speaks for another
 * first whether it may, then what is asked, as the other.
 */
import type { Verdict } from '../access/access.ts'
import { wantedBy } from '../access/authenticate/impersonation.ts'
import { type ImpersonationWay, impersonationWays } from '../access/authenticate/impersonationways.ts'
import { makeQuestion, type Question } from '../access/question.ts'
import type { Opinion, Rbac } from '../access/rbac/rbac.ts'
import { forbiddenStatus } from '../access/refusal.ts'
import type { Caller } from '../kube/caller.ts'
import type { StatusError } from '../kube/status.ts'
import type { Identity } from '../upstream/upstream.ts'
import type { Call } from './call.ts'
import type { Authentication, Authorization } from './composition.ts'
import type { Request } from './endpoint.ts'
import { headerLines } from './identify.ts'
import { credentialCaller, type OwnAuthentication } from './ownaccess.ts'

type Judged = { readonly caller: Caller; readonly question: Question; readonly opinion: Opinion }

type Parts = { readonly rbac: Pick<Rbac, 'judge'>; readonly credentials: Pick<OwnAuthentication, 'identify'> }

/** Callers of whom it is remembered how they last came to speak for another: that way is tried, and its denial told, first. */
const waysMax = 1_024

export class RoleAccess implements Authentication, Authorization {
  readonly #parts: Parts
  /** Of callers that speak for another: that other stays as it was judged, until the answer. */
  readonly #judged = new WeakMap<Call, Judged>()
  readonly #ways = new Map<string, string>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  identify(request: Request): Identity {
    return this.#parts.credentials.identify(request)
  }

  callerOf(call: Call): Caller {
    return call.impersonates ? this.#judge(call).caller : credentialCaller(call)
  }

  decide(call: Call): Verdict {
    return this.#judge(call).opinion.allowed ? 'allowed' : 'denied'
  }

  refusal(call: Call): StatusError {
    const { caller, question, opinion } = this.#judge(call)
    return forbiddenStatus(caller, question, opinion.reason)
  }

  #judge(call: Call): Judged {
    const caller = credentialCaller(call)
    if (!call.impersonates) return this.#ask(caller, call.question)
    let judged = this.#judged.get(call)
    if (judged === undefined) {
      judged = this.#judgeOther(call, caller)
      this.#judged.set(call, judged)
    }
    return judged
  }

  #judgeOther(call: Call, own: Caller): Judged {
    const wanted = wantedBy(headerLines(call.request))
    if (wanted === undefined) return this.#ask(own, call.question)
    const ways = impersonationWays(wanted, own)
    const last = this.#ways.get(own.name)
    let denial: Judged | undefined
    for (const way of [...ways.filter(({ name }) => name === last), ...ways.filter(({ name }) => name !== last)]) {
      const denied = this.#denialOf(way, own, call.question)
      if (denied === undefined) {
        this.#remember(own.name, way.name)
        return this.#ask(way.caller, call.question)
      }
      denial ??= denied
    }
    return denial as Judged
  }

  /** What keeps a caller from speaking for another in that way. */
  #denialOf({ on, asked, never }: ImpersonationWay, own: Caller, question: Question): Judged | undefined {
    const wishes = [...(on === '' ? [] : [{ ...question, verb: `${on}${question.verb}` }]), ...asked]
    for (const wish of wishes) {
      const judged = this.#ask(own, makeQuestion(wish))
      if (!judged.opinion.allowed) return judged
    }
    if (never === undefined) return undefined
    return { caller: own, question: makeQuestion(never.asked), opinion: { allowed: false, reason: never.why } }
  }

  #ask(caller: Caller, question: Question): Judged {
    return { caller, question, opinion: this.#parts.rbac.judge(caller, question) }
  }

  #remember(name: string, way: string): void {
    this.#ways.delete(name)
    this.#ways.set(name, way)
    if (this.#ways.size > waysMax) this.#ways.delete(this.#ways.keys().next().value as string)
  }
}
