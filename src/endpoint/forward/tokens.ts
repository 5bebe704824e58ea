/**
 * TokenRequests: passed on like every write, but the token that the cloud issues is kept, so that the same caller can be
 * given it again while the cloud is away. A kubelet mounts it and the pod starts; a refusal would keep the pod down.
 */
import type { Access } from '../../access/access.ts'
import type { TokenKeeper } from '../../access/tokens.ts'
import { within } from '../../access/within.ts'
import type { Clock } from '../../base/clock.ts'
import type { Caller } from '../../kube/caller.ts'
import { negotiate } from '../../kube/negotiate.ts'
import { readTokenRequest } from '../../kube/protobuf/peek.ts'
import { isProtobuf, ProtobufFault, readEnvelope } from '../../kube/protobuf/protobuf.ts'
import { readRefusal } from '../../kube/replies.ts'
import type { ApiRequest } from '../../kube/request.ts'
import {
  printTokenRequest,
  readTokenRequestJson,
  type TokenRequestFacts,
  TokenRequestFault,
} from '../../kube/tokenrequest.ts'
import type { Identity, Upstream } from '../../upstream/upstream.ts'
import { readWhole } from '../../upstream/whole.ts'
import { warn } from '../answer/respond.ts'
import { spelledDocument } from '../answer/spelled.ts'
import type { Call } from '../call.ts'
import type { Authorization } from '../composition.ts'
import type { Response } from '../endpoint.ts'
import { sentHeaders } from './sentheaders.ts'

/** A TokenRequest with its token is some 2 KB. */
const replyBytesMax = 256 * 1024
const headMsMax = 30_000
/** How long an answer waits until its caller is known: that was asked beside it, and is there by then but for a moment. */
const learnMsMax = 250
/**
 * A no to the wish itself: the account, the bound object (409: another of its name is there) or the right is gone. Others
 * speak of the credential (401), of the form of the request, or of a moment.
 */
const refusals: ReadonlySet<number> = new Set([400, 403, 404, 409, 410, 422])
const tokenRequestType = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest' }

type Parts = {
  readonly upstream: Upstream
  readonly access: Pick<Access, 'held' | 'caller' | 'learn'>
  readonly authorization: Authorization
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

  /** Whether it asks for the end of an account, with which its tokens end. */
  endsAccount({ verb, group, resource, subresource }: ApiRequest): boolean {
    return verb === 'delete' && group === '' && resource === 'serviceaccounts' && subresource === ''
  }

  /** The API server has taken such a request. */
  ended({ namespace, name }: ApiRequest): void {
    this.#parts.keeper.dropAccount(namespace, name)
  }

  async pass(call: Call): Promise<Response> {
    const { upstream, access, clock } = this.#parts
    const { request, identity, impersonates } = call
    // A pod waits for it: not for a line in doubt, if the one that is kept still serves.
    const kept = upstream.reachability.state === 'suspect' ? await this.kept(call, { unexpired: true }) : undefined
    if (kept !== undefined) return kept
    const body = await call.body()
    const askedAt = clock.steady()
    // The caller may still have to be learned: beside the request, which waits for nothing but its own answer.
    const caller = impersonates ? undefined : this.#callerOf(identity)
    const answer = await upstream.ask({
      method: request.method,
      path: request.url,
      // It is read here: a form that is understood, and not compressed.
      headers: { ...sentHeaders(request), 'accept-encoding': 'identity', 'content-length': String(body.length) },
      body,
      identity,
      passedOn: true,
      headMsMax,
    })
    if (!impersonates) access.learn(identity, call.question, { status: answer.status, askedAt })
    const { status, headers } = answer
    const bytes = await readWhole(answer, replyBytesMax)
    const reply = { status, type: String(headers['content-type'] ?? ''), bytes }
    if (caller !== undefined) {
      await within(clock, learnMsMax, this.#heed(call, caller, body, reply), () => undefined)
    }
    return { status, headers, body: bytes, passedThrough: true }
  }

  async #callerOf(identity: Identity): Promise<Caller | undefined> {
    const { access } = this.#parts
    return access.held(identity) ?? (await access.caller(identity))
  }

  /** Keeps what was granted, and gives up what was refused. */
  async #heed(
    { api, request: { headers } }: Call,
    asking: Promise<Caller | undefined>,
    body: Buffer,
    reply: { status: number; type: string; bytes: Buffer },
  ): Promise<void> {
    const { keeper, nowMs } = this.#parts
    const { namespace, name: account } = api
    const request = factsOf(headers['content-type'], body)
    const granted = reply.status === 201 && !api.query.has('dryRun') ? factsOf(reply.type, reply.bytes) : undefined
    const refusal = refusals.has(reply.status) ? readRefusal(reply.type, reply.bytes) : undefined
    const bound = request?.boundTo
    const isGone = refusal !== undefined && (reply.status === 404 || reply.status === 409)
    if (isGone && refusal.kind === 'serviceaccounts') keeper.dropAccount(namespace, account)
    else if (isGone && bound !== undefined) keeper.dropBound(bound.kind, namespace, bound.name, bound.uid)
    if (request === undefined || (refusal === undefined && (granted === undefined || granted.token === ''))) return
    const caller = await asking
    if (caller === undefined) return
    const wish = { namespace, account, caller, request }
    if (granted !== undefined) keeper.remember(wish, granted, nowMs())
    else keeper.refuse(wish)
  }

  /** The last token issued for the same wish of the same caller, if it may ask for it; undefined when there is none. */
  async kept(call: Call, { unexpired = false }: { unexpired?: boolean } = {}): Promise<Response | undefined> {
    const { access, authorization, keeper, nowMs } = this.#parts
    // What was issued to a caller is not given to one who speaks for it.
    if (call.impersonates || (await authorization.decide(call)) !== 'allowed') return undefined
    const { api, request, identity } = call
    const facts = factsOf(request.headers['content-type'], await call.body())
    const caller = access.held(identity)
    if (facts === undefined || caller === undefined) return undefined
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
