/**
 * The way of every request: what is asked (parse), who asks (authenticate), whether it may (authorise), then the answer; and
 * the one catch around it. Whom to believe, what to allow and what to answer with is each composition's own.
 */
import type { Verdict } from '../../access/access.ts'
import type { Log } from '../../base/log.ts'
import { type ApiRequest, parseRequest } from '../../kube/request.ts'
import { methodNotAllowed } from '../../kube/status.ts'
import { checkTimeout } from '../../kube/timeout.ts'
import type { Connected } from '../../upstream/upstream.ts'
import { refusal } from '../answer/respond.ts'
import { Call } from '../call.ts'
import type { Answering, Authentication, Authorization, Beyond } from '../composition.ts'
import type { Measuring, Request, Response } from '../endpoint.ts'
import { type Deprecating, warnOfDeprecation } from './deprecated.ts'

type Parts = {
  readonly authentication: Authentication
  readonly authorization: Authorization
  readonly answering: Answering
  readonly beyond?: Beyond
  readonly catalog: Deprecating
  readonly measures: Measuring
  readonly log: Log
}

export class Endpoint {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  async handle(request: Request): Promise<Response> {
    const { catalog, measures, log } = this.#parts
    const startedMs = performance.now()
    let api: ApiRequest | undefined
    let response: Response
    try {
      api = parseRequest(request.method, request.url)
      checkTimeout(api)
      response = await this.#answer(this.#authenticate(api, request))
    } catch (error) {
      response = refusal(error, request, log, api)
    }
    if (response.passedThrough !== true) warnOfDeprecation(api, response, catalog)
    measures.answered(api, response.status, performance.now() - startedMs, response.passedThrough)
    return response
  }

  /** exec, attach, port-forward: bytes both ways, judged where they lead. */
  async upgrade(request: Request): Promise<Connected | Response> {
    const { beyond, measures, log } = this.#parts
    const startedMs = performance.now()
    let api: ApiRequest | undefined
    let connected: Connected | Response
    try {
      api = parseRequest(request.method, request.url)
      if (beyond === undefined) throw methodNotAllowed()
      connected = await beyond.connect(this.#authenticate(api, request))
    } catch (error) {
      connected = refusal(error, request, log, api)
    }
    measures.answered(api, connected.status, performance.now() - startedMs, 'socket' in connected)
    return connected
  }

  #authenticate(api: ApiRequest, request: Request): Call {
    return new Call({ api, request, identity: this.#parts.authentication.identify(request) })
  }

  /** A common read waits for nothing on its way: neither here nor below is there a promise for it. */
  #answer(call: Call): Promise<Response> | Response {
    const isOurs = this.#parts.beyond?.isOurs(call) ?? true
    return typeof isOurs === 'boolean' ? this.#authorise(call, isOurs) : isOurs.then((is) => this.#authorise(call, is))
  }

  #authorise(call: Call, isOurs: boolean): Promise<Response> | Response {
    const { authorization, beyond } = this.#parts
    // It is judged where it is answered.
    if (!isOurs && beyond !== undefined) return beyond.pass(call)
    const verdict = authorization.decide(call)
    return typeof verdict === 'string' ? this.#give(call, verdict) : verdict.then((said) => this.#give(call, said))
  }

  #give(call: Call, verdict: Verdict): Promise<Response> | Response {
    const { answering, authorization, beyond } = this.#parts
    if (verdict === 'allowed') return answering.answer(call)
    const answer = beyond?.instead(call, verdict)
    if (answer === undefined) throw authorization.refusal(call, verdict)
    return answer
  }
}
