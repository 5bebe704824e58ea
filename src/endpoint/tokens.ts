/**
 * TokenRequests: passed on like every write, but the token that the cloud issues is kept, so that the same caller can be
 * given it again while the cloud is away. A kubelet mounts it and the pod starts; a refusal would keep the pod down.
 */
import type { Access } from '../access/access.ts'
import { questionOf } from '../access/question.ts'
import type { TokenKeeper } from '../access/tokens.ts'
import type { Clock } from '../base/clock.ts'
import { negotiate } from '../kube/negotiate.ts'
import { readTokenRequest } from '../kube/protobuf/peek.ts'
import { isProtobuf, ProtobufFault, readEnvelope } from '../kube/protobuf/protobuf.ts'
import type { ApiRequest } from '../kube/request.ts'
import {
  printTokenRequest,
  readTokenRequestJson,
  type TokenRequestFacts,
  TokenRequestFault,
} from '../kube/tokenrequest.ts'
import type { Upstream } from '../upstream/upstream.ts'
import { readWhole } from '../upstream/whole.ts'
import type { Asker } from './asker.ts'
import type { Request, Response } from './endpoint.ts'
import { warn } from './respond.ts'
import { sentHeaders } from './sentheaders.ts'
import { spelledDocument } from './spelled.ts'

/** A TokenRequest with its token is some 2 KB. */
const replyBytesMax = 256 * 1024
const headMsMax = 30_000
const tokenRequestType = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest' }

type Parts = {
  readonly upstream: Upstream
  readonly access: Access
  readonly keeper: TokenKeeper
  readonly nowMs: () => number
  readonly clock: Clock
}

export class Tokens {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  concerns({ verb, group, resource, subresource }: ApiRequest): boolean {
    return verb === 'create' && group === '' && resource === 'serviceaccounts' && subresource === 'token'
  }

  async pass(api: ApiRequest, request: Request, asker: Asker): Promise<Response> {
    const { upstream, access, clock } = this.#parts
    const body = await request.body()
    const askedAt = clock.steady()
    const answer = await upstream.ask({
      method: request.method,
      path: request.url,
      // It is read here: a form that is understood, and not compressed.
      headers: { ...sentHeaders(request), 'accept-encoding': 'identity', 'content-length': String(body.length) },
      body,
      identity: asker.identity,
      passedOn: true,
      headMsMax,
    })
    if (!asker.impersonates) access.learn(asker.identity, questionOf(api), { status: answer.status, askedAt })
    const { status, headers } = answer
    const bytes = await readWhole(answer, replyBytesMax)
    if (status === 201 && !asker.impersonates && !api.query.has('dryRun')) {
      await this.#remember(api, asker, { request, body }, { type: String(headers['content-type'] ?? ''), bytes })
    }
    return { status, headers, body: bytes, passedThrough: true }
  }

  async #remember(
    api: ApiRequest,
    asker: Asker,
    asked: { request: Request; body: Buffer },
    reply: { type: string; bytes: Buffer },
  ): Promise<void> {
    const wish = factsOf(asked.request.headers['content-type'], asked.body)
    const granted = factsOf(reply.type, reply.bytes)
    const caller = await this.#parts.access.caller(asker.identity)
    if (wish === undefined || granted === undefined || granted.token === '' || caller === undefined) return
    const { namespace, name: account } = api
    this.#parts.keeper.remember({ namespace, account, caller, request: wish }, granted, this.#parts.nowMs())
  }

  /** The last token issued for the same wish of the same caller; undefined when there is none. */
  async answer(
    api: ApiRequest,
    request: Request,
    asker: Asker,
    { unexpired = false }: { unexpired?: boolean } = {},
  ): Promise<Response | undefined> {
    const { access, keeper, nowMs } = this.#parts
    const facts = factsOf(request.headers['content-type'], await request.body())
    const caller = access.held(asker.identity)
    if (facts === undefined || caller === undefined || asker.impersonates) return undefined
    const now = nowMs()
    const { namespace, name: account } = api
    const kept = keeper.answer({ namespace, account, caller, request: facts }, now)
    if (kept === undefined || (unexpired && kept.warning !== undefined)) return undefined
    const media = negotiate(request.headers.accept, { shape: 'document', routed: false })
    const json = printTokenRequest(kept.facts, { namespace, name: account })
    const response = await spelledDocument(201, tokenRequestType, json, { media, query: api.query, request })
    if (kept.warning !== undefined) warn(response, [kept.warning])
    return response
  }
}

function factsOf(contentType: string | undefined, bytes: Buffer): TokenRequestFacts | undefined {
  try {
    return isProtobuf(contentType) ? readTokenRequest(readEnvelope(bytes).raw) : readTokenRequestJson(bytes)
  } catch (error) {
    if (error instanceof ProtobufFault || error instanceof TokenRequestFault) return undefined
    throw error
  }
}
