/**
 * Requests of edges, passed on to the API server as their callers (I1): a bearer token unchanged; the link's own node impersonated, by the
 * name in the certificate of its link and no other; a caller with a certificate where this edge may speak for it (`hub/callers`); the
 * edge's administrator with the hub's own credential only where the hub trusts its edges; a caller without a credential anonymously. Nothing else goes up. How much may be asked is limited here, for each edge and each caller.
 */
import { hash, randomUUID } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { Warnings } from '../../base/warnings.ts'
import { isConnection } from '../../kube/addressing.ts'
import type { Caller } from '../../kube/caller.ts'
import { parseRequest } from '../../kube/request.ts'
import { badRequest, failure, StatusError, tooManyRequests } from '../../kube/status.ts'
import type { EdgeRules } from '../../policy/policy.ts'
import type { CarriedCertificate } from '../../tunnel/credentials.ts'
import { headerLines } from '../../tunnel/request/request.ts'
import {
  RequestFailed,
  RequestServer,
  type TunnelledIdentity,
  type TunnelledReply,
  type TunnelledRequest,
} from '../../tunnel/request/serve.ts'
import type { IncomingStream } from '../../tunnel/streams.ts'
import {
  type Headers,
  type Identity,
  type Reachability,
  Unreachable,
  Unspoken,
  type Upstream,
  type UpstreamRequest,
  type UpstreamResponse,
} from '../../upstream/upstream.ts'
import type { ReviewedSubjects } from '../callers/reviewedsubjects.ts'
import { otherwise, type SpokenCallers } from '../callers/spoken.ts'
import { AskingShares, type AskingTerms, type CountedCaller } from './askingshares.ts'
import { refusalOfHub } from './hubrefusal.ts'
import type { NodeImpersonation } from './impersonation.ts'
import { type ForwardingLimits, forwardingLimits } from './limits.ts'
import { asNode, impersonates, isPublic, passable, unimpersonating } from './passable.ts'
import { unlessSame } from './same.ts'

/** What the hub holds of the API server's documents. */
export interface DocumentsForNodes {
  /** Undefined: the API server has to say it. */
  answer(
    node: string,
    path: string,
    headers: Headers,
  ): Promise<{ readonly status: number; readonly headers: Headers; readonly body: Buffer } | undefined>
}

/** As far as requests go. */
type ForwardingPolicies = {
  readonly isKnown: boolean
  rulesOf(node: string): Pick<EdgeRules, 'trusts' | 'rates'>
}

type Parts = {
  readonly upstream: Pick<Upstream, 'ask' | 'connect'> & {
    readonly reachability: Pick<Reachability, 'refusesEdge'>
  }
  readonly trustsEdges: boolean
  /** What is said of single edges; without it nothing is. */
  readonly policies?: ForwardingPolicies
  /** How a node is named; without it, with its group. */
  readonly impersonation?: Pick<NodeImpersonation, 'namesGroup'>
  /** For which callers edges may speak by certificates; without it for none. */
  readonly spoken?: Pick<SpokenCallers, 'request'> | undefined
  /** Hears about which subjects the API server tells nodes. */
  readonly reviewed?: Pick<ReviewedSubjects, 'overhear'> | undefined
  /** Who is behind a token, as far as that is known without asking: those of one user are one caller. Without it each is one. */
  readonly known?: ((token: Extract<Identity, { kind: 'token' }>) => Caller | undefined) | undefined
  /** For nodes that may read them: each of thousands wants the same megabytes. */
  readonly documents?: DocumentsForNodes
  /** Whether another API server answers for a group; without it none does. */
  readonly isAggregated?: (group: string, version: string) => boolean
  readonly clock: Clock
  readonly log: Log
  /** Of what is refused to an edge; what a caller with a certificate is refused `spoken` tells. */
  readonly warnings: Pick<Warnings, 'warn'>
  readonly limits?: Partial<ForwardingLimits>
}

/** `refused`, `limited`: by the hub; `failed`: the API server gave no answer. */
type ForwardingResult = 'answered' | 'refused' | 'limited' | 'failed'

/** One edge, as far as its requests go. */
type AskingEdge = {
  readonly link: object
  readonly name: string
  /** Those that this link has shown. */
  readonly certificates: WeakSet<CarriedCertificate>
  underWay: number
}

type Asked = Pick<UpstreamRequest, 'method' | 'path'> & { readonly headers: Headers }

/** In whose name it goes up, and with which headers. */
type PassedAs = { readonly identity: Identity; readonly headers: Headers; readonly caller: CountedCaller }

export class EdgeForwarding {
  readonly #parts: Parts
  readonly #limits: ForwardingLimits
  readonly #shares: AskingShares
  /** Requests of edges since it was made, by what became of them. */
  readonly counts: Record<ForwardingResult, number> = { answered: 0, refused: 0, limited: 0, failed: 0 }

  constructor(parts: Parts) {
    this.#parts = parts
    const limits = { ...forwardingLimits, ...parts.limits }
    this.#limits = limits
    const { clock, trustsEdges, log } = parts
    this.#shares = new AskingShares(clock, limits)
    if (trustsEdges)
      log.warn('hub.trusts', {
        why: 'every edge may have whatever this hub may read, and its administrator acts with the credential of this hub',
      })
  }

  /** Takes the streams of one link. */
  acceptFor(link: { readonly name: string }): (incoming: IncomingStream) => void {
    const { name } = link
    const { callerRequestsMax } = this.#limits
    const edge: AskingEdge = { link, name, certificates: new WeakSet(), underWay: 0 }
    const server = new RequestServer({ callerRequestsMax, handle: (request) => this.#handle(edge, request) })
    return (incoming) => {
      edge.underWay++
      // An upgrade is heard of by eight parts of a pipeline, and by three that count.
      incoming.stream.setMaxListeners(listenersMax)
      incoming.stream.once('close', () => edge.underWay--)
      server.accept(incoming)
    }
  }

  async #handle(edge: AskingEdge, request: TunnelledRequest): Promise<TunnelledReply> {
    try {
      const reply = await this.#passOn(edge, request)
      this.counts.answered++
      return reply
    } catch (error) {
      if (error instanceof Unspoken) {
        this.counts.refused++
        return { ...said(forbidden(error.message)), isUnspoken: true }
      }
      const isSaid = error instanceof StatusError
      this.counts[isSaid ? (error.status.code === 429 ? 'limited' : 'refused') : 'failed']++
      if (isSaid) return said(error)
      if (error instanceof Unreachable) throw new RequestFailed(error.message, error.sent)
      throw error
    }
  }

  async #passOn(
    edge: AskingEdge,
    { method, path, identity, isUpgrade, body, held, signal, headers: given }: TunnelledRequest,
  ): Promise<TunnelledReply> {
    this.#count(edge)
    const checked = passable({ method, path, headers: given })
    if (typeof checked === 'string') throw this.#refused(edge.name, { method, path }, badRequest(checked))
    const wanted = { method, path, headers: checked.headers }
    const { caller, ...as } = await this.#as(edge, identity, wanted)
    this.#admit(this.#shares.ofCaller(edge.name, caller, this.#termsOf(edge.name)))
    const { upstream, documents } = this.#parts
    const isDocument = identity.kind === 'node' && method === 'GET' && !isUpgrade
    const kept = isDocument ? await documents?.answer(edge.name, path, checked.headers) : undefined
    if (kept !== undefined) return { status: kept.status, headers: headerLines(kept.headers), body: kept.body }
    const review = body && this.#overhear(edge, identity, { ...wanted, body })
    const asked: UpstreamRequest = {
      method,
      path,
      ...as,
      signal,
      passedOn: true,
      ...(body === undefined ? {} : { body: review?.body ?? body }),
    }
    const isRefused = (status: number) => status === 401 && as.identity.kind === 'edge' && this.#isItsRefusal(wanted)
    if (isUpgrade) {
      const { status, rawHeaders, socket, head } = await upstream.connect(asked)
      if (isRefused(status)) {
        socket.destroy()
        return this.#hubRefused(edge.name, wanted)
      }
      if (head.length > 0) socket.unshift(head)
      return { status, headers: linesOf(rawHeaders), body: { socket } }
    }
    const answer = await upstream.ask(asked)
    const { status } = answer
    // Before the edge has the answer, and asks for the rules of whom it is about.
    review?.answered(status)
    if (isRefused(status)) {
      await answer.body.return?.()
      return this.#hubRefused(edge.name, wanted)
    }
    // A kubelet asks for what its node may have: an operator wants to hear of a process that asks for more with its certificate.
    if (identity.kind === 'node' && status === 403)
      this.#warn(edge.name, { method, path }, 'the API server does not allow that to this node')
    if (identity.kind === 'certificate' && status === 403)
      return { status, headers: headerLines(answer.headers), body: await this.#ofCaller(edge.name, wanted, answer) }
    const isCompared = held !== undefined && method === 'GET'
    const found = isCompared ? await unlessSame(answer, held) : answer.body
    if (found === undefined) return { status, headers: [], isSame: true, body: nothing }
    return { status, headers: headerLines(answer.headers), body: found }
  }

  /** Of a 401 to what went up with the hub's own credential: a node, a pod or an aggregated API server may have said it just as well. */
  #isItsRefusal({ method, path }: Asked): boolean {
    const { upstream, isAggregated } = this.#parts
    const { subresource, group, version, path: plain } = parseRequest(method, path)
    if (isConnection(subresource) || isAggregated?.(group, version) === true) return upstream.reachability.refusesEdge
    // What an edge asks only to hear whether an API server answers: for that a 401 is good enough.
    return !healthPaths.has(plain)
  }

  #hubRefused(edge: string, asked: Asked): TunnelledReply {
    this.#warn(edge, asked, hubRefused.message)
    return said(hubRefused, true)
  }

  /** The body of a refusal that is the caller's. One of the hub is told in words that the caller can act on. */
  async #ofCaller(edge: string, asked: Asked, answer: UpstreamResponse): Promise<Buffer | AsyncIterable<Buffer>> {
    const found = await refusalOfHub(answer)
    if ('body' in found) return found.body
    this.#warn(edge, asked, found.sentence)
    // Who asked to be another is spoken for in its own name all the same.
    throw impersonates(asked.headers) ? forbidden(`${found.sentence}: ${otherwise}`) : new Unspoken(found.sentence)
  }

  /** Undefined where it is not a node that asks. */
  #overhear(
    { link }: AskingEdge,
    { kind }: TunnelledIdentity,
    { method, path, headers, body }: Asked & { body: AsyncIterable<Buffer> },
  ): ReturnType<ReviewedSubjects['overhear']> | undefined {
    const { reviewed } = this.#parts
    if (kind !== 'node') return undefined
    return reviewed?.overhear(link, { method, path, contentType: String(headers['content-type'] ?? ''), body })
  }

  /** Where a policy says how often may be asked, that counts in the place of what the options say; bursts go with it. */
  #termsOf(edge: string): AskingTerms {
    const limits = this.#limits
    const { edgePerSecond = limits.edgePerSecond, callerPerSecond = limits.callerPerSecond } =
      this.#rulesOf(edge)?.rates ?? {}
    return {
      ...{ edgePerSecond, edgeBurst: edgePerSecond * (limits.edgeBurst / limits.edgePerSecond) },
      ...{ callerPerSecond, callerBurst: callerPerSecond * (limits.callerBurst / limits.callerPerSecond) },
    }
  }

  #rulesOf(edge: string): ReturnType<ForwardingPolicies['rulesOf']> | undefined {
    const { policies } = this.#parts
    return policies?.isKnown === true ? policies.rulesOf(edge) : undefined
  }

  #count({ name, underWay }: AskingEdge): void {
    if (underWay > this.#limits.edgeRequestsMax)
      this.#admit({ waitMs: 1, who: 'this edge has too many requests under way, or asks' })
    this.#admit(this.#shares.ofEdge(name, this.#termsOf(name)))
  }

  #admit({ waitMs, who }: ReturnType<AskingShares['ofEdge']>): void {
    if (waitMs > 0)
      throw tooManyRequests(`${who} for more than the hub passes on, please try again later`, secondsOf(waitMs))
  }

  /** Throws where nothing goes up for such a caller. */
  #as(asking: AskingEdge, identity: TunnelledIdentity, asked: Asked): PassedAs | Promise<PassedAs> {
    const { headers } = asked
    const { name: edge } = asking
    switch (identity.kind) {
      case 'token': {
        const shown = { kind: 'token', token: identity.token } as const
        const known = this.#parts.known?.(shown)
        // By a digest where its user is not known: what is remembered of a caller is no credential.
        const name = known === undefined ? `token ${hash('sha256', identity.token, 'base64url')}` : `user ${known.name}`
        return { identity: shown, headers, caller: { name, isAnywhere: true } }
      }
      case 'node':
        // It may do so in no other name: what its request asked for would take the place of the caller that the hub names.
        if (impersonates(headers))
          throw this.#refused(edge, asked, forbidden(`a hub passes on no impersonation by node "${edge}"`))
        return {
          identity: { kind: 'edge' },
          headers: isPublic(asked) ? headers : asNode(headers, edge, this.#parts.impersonation?.namesGroup ?? true),
          caller: { name: 'node', isAnywhere: false },
        }
      case 'certificate':
        return this.#asSpoken(asking, identity.certificate, asked)
      case 'administrator':
        if (!this.#parts.trustsEdges && this.#rulesOf(edge)?.trusts !== true)
          throw this.#refused(edge, asked, forbidden(untrusted))
        // The hub may be any node and, where it speaks for callers, any user: that is no part of what the administrator of an edge is trusted with.
        if (impersonates(headers)) throw this.#refused(edge, asked, forbidden(asAnother))
        return { identity: { kind: 'edge' }, headers, caller: { name: 'administrator', isAnywhere: false } }
      case 'anonymous':
        // What that may do the API server says, as to any client without a credential.
        return { identity: { kind: 'anonymous' }, headers, caller: { name: 'anonymous', isAnywhere: false } }
    }
  }

  #refused(edge: string, asked: Pick<UpstreamRequest, 'method' | 'path'>, error: StatusError): StatusError {
    this.#warn(edge, asked, error.message)
    return error
  }

  #warn(edge: string, { method, path }: Pick<UpstreamRequest, 'method' | 'path'>, why: string): void {
    const what = `${method.slice(0, pathCharsMax)} ${shortened(path)}`
    const about = { who: edge, kind: 'request', same: `${what} ${why}` }
    this.#parts.warnings.warn('edge.refused', about, { edge, request: what, why })
  }

  async #asSpoken(
    { name: edge, certificates }: AskingEdge,
    certificate: CarriedCertificate,
    asked: Asked,
  ): Promise<PassedAs> {
    const { spoken } = this.#parts
    if (spoken === undefined) throw new Unspoken('its hub speaks for no caller with a certificate')
    if (!certificates.has(certificate)) this.#admit(this.#shares.ofCertificate(edge))
    certificates.add(certificate)
    const { shownBy, headers } = await spoken.request(edge, certificate, asked)
    return {
      identity: { kind: 'edge' },
      headers: { ...unimpersonating(asked.headers), ...headers },
      // As with tokens: who impersonates others asks no more often for that.
      caller: { name: `user ${shownBy.name}`, isAnywhere: true },
    }
  }
}

const listenersMax = 16
/** As the log has it. */
const pathCharsMax = 256
const nothing = Buffer.alloc(0)

const healthPaths: ReadonlySet<string> = new Set(['/healthz', '/livez', '/readyz'])

const untrusted =
  'the administrator of an edge can only read here: its hub does not trust edges with its own credential'
const asAnother =
  'a hub passes on no impersonation by the administrator of an edge: ask the API server with a credential of your own'

function forbidden(sentence: string): StatusError {
  return failure(403, 'Forbidden', sentence)
}

/** Without what was asked beside it: a query may have anything in it. */
function shortened(path: string): string {
  return path.replace(/\?.*/s, '?…').slice(0, pathCharsMax)
}

function secondsOf(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1_000))
}

/** Its caller's credential was not looked at: a 401 would be a word on that. */
const hubRefused = failure(
  503,
  'ServiceUnavailable',
  "the API server refuses the hub's own credential (401), with which it acts for this caller: who runs the hub has to renew it",
)

/** As an API server would answer; `isItsWord`: it has answered, and there is nothing for the edge to look into. */
function said({ status }: StatusError, isItsWord = false): TunnelledReply {
  const seconds = status.details?.retryAfterSeconds
  const { code = 500 } = status
  const body = Buffer.from(`${JSON.stringify(status)}\n`)
  const headers = headerLines({
    ...{ 'content-type': 'application/json', 'content-length': String(body.length) },
    // A 503 without it is no word of an API server, for which the edge then looks itself.
    ...(code < 500 || isItsWord ? { 'audit-id': randomUUID(), 'cache-control': 'no-cache, private' } : {}),
    'x-content-type-options': code === 400 || code === 403 ? 'nosniff' : undefined,
    'retry-after': seconds === undefined ? undefined : String(seconds),
  })
  return { status: code, headers, body }
}

/** From names and values in turn. */
function linesOf(raw: readonly string[]): TunnelledReply['headers'] {
  return raw.flatMap((name, at) => (at % 2 === 0 ? [{ name: name.toLowerCase(), value: raw[at + 1] ?? '' }] : []))
}
