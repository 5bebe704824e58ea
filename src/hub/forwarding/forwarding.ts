/**
 * Requests of edges, passed on to the API server as their callers (I1): a bearer token unchanged; the link's own node impersonated, by the
 * name in the certificate of its link and no other; the edge's administrator with the hub's own credential only where the hub
 * trusts its edges; a caller without a credential anonymously. Nothing else goes up. How much may be asked is limited here, for each edge and each caller.
 */
import { hash } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { badRequest, failure, StatusError, tooManyRequests } from '../../kube/status.ts'
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
  Unreachable,
  type Upstream,
  type UpstreamRequest,
} from '../../upstream/upstream.ts'
import type { NodeImpersonation } from './impersonation.ts'
import { type ForwardingLimits, forwardingLimits } from './limits.ts'
import { asNode, impersonates, isPublic, passable } from './passable.ts'
import { AskingRate, AskingRates } from './rate.ts'
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

type Parts = {
  readonly upstream: Pick<Upstream, 'ask' | 'connect'>
  readonly trustsEdges: boolean
  /** How a node is named; without it, with its group. */
  readonly impersonation?: Pick<NodeImpersonation, 'namesGroup'>
  /** For nodes that may read them: each of thousands wants the same megabytes. */
  readonly documents?: DocumentsForNodes
  readonly clock: Clock
  readonly log: Log
  readonly limits?: Partial<ForwardingLimits>
}

/** `refused`, `limited`: by the hub; `failed`: the API server gave no answer. */
type ForwardingResult = 'answered' | 'refused' | 'limited' | 'failed'

/** One edge, as far as its requests go. */
type AskingEdge = { readonly name: string; readonly rate: AskingRate; underWay: number }

type AskedHeaders = { readonly headers: Headers }

/** In whose name it goes up, and with which headers. */
type PassedAs = { readonly identity: Identity; readonly headers: Headers; readonly caller: string }

export class EdgeForwarding {
  readonly #parts: Parts
  readonly #limits: ForwardingLimits
  readonly #callers: AskingRates
  /** Requests of edges since it was made, by what became of them. */
  readonly counts: Record<ForwardingResult, number> = { answered: 0, refused: 0, limited: 0, failed: 0 }

  constructor(parts: Parts) {
    this.#parts = parts
    const limits = { ...forwardingLimits, ...parts.limits }
    this.#limits = limits
    const { clock, trustsEdges, log } = parts
    const rate = () => new AskingRate(clock, limits.callerPerSecond, limits.callerBurst)
    this.#callers = new AskingRates(limits.callersMax, rate)
    if (trustsEdges)
      log.warn('hub.trusts', {
        why: 'every edge may have whatever this hub may read, and its administrator acts with the credential of this hub',
      })
  }

  /** Takes the streams of one link. */
  acceptFor({ name }: { readonly name: string }): (incoming: IncomingStream) => void {
    const { clock } = this.#parts
    const { edgePerSecond, edgeBurst, callerRequestsMax } = this.#limits
    const edge: AskingEdge = { name, rate: new AskingRate(clock, edgePerSecond, edgeBurst), underWay: 0 }
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
    if (typeof checked === 'string') throw badRequest(checked)
    const { caller, ...as } = this.#as(edge.name, identity, { method, path, headers: checked.headers })
    this.#admit(this.#callers.take(caller), 'this caller asks')
    const { upstream, documents } = this.#parts
    const isDocument = identity.kind === 'node' && method === 'GET' && !isUpgrade
    const kept = isDocument ? await documents?.answer(edge.name, path, checked.headers) : undefined
    if (kept !== undefined) return { status: kept.status, headers: headerLines(kept.headers), body: kept.body }
    const asked: UpstreamRequest = {
      method,
      path,
      ...as,
      signal,
      passedOn: true,
      ...(body === undefined ? {} : { body }),
    }
    if (isUpgrade) {
      const { status, rawHeaders, socket, head } = await upstream.connect(asked)
      if (head.length > 0) socket.unshift(head)
      return { status, headers: linesOf(rawHeaders), body: { socket } }
    }
    const answer = await upstream.ask(asked)
    const { status } = answer
    const isCompared = held !== undefined && method === 'GET'
    const found = isCompared ? await unlessSame(answer, held) : answer.body
    if (found === undefined) return { status, headers: [], isSame: true, body: nothing }
    return { status, headers: headerLines(answer.headers), body: found }
  }

  #count({ rate, underWay }: AskingEdge): void {
    if (underWay > this.#limits.edgeRequestsMax) this.#admit(1, 'this edge has too many requests under way, or asks')
    this.#admit(rate.take(), 'this edge asks')
  }

  #admit(waitMs: number, who: string): void {
    if (waitMs > 0)
      throw tooManyRequests(`${who} for more than the hub passes on, please try again later`, secondsOf(waitMs))
  }

  /** Throws where nothing goes up for such a caller. */
  #as(
    edge: string,
    identity: TunnelledIdentity,
    asked: Pick<UpstreamRequest, 'method' | 'path'> & AskedHeaders,
  ): PassedAs {
    const { headers } = asked
    switch (identity.kind) {
      case 'token': {
        const { token } = identity
        // By a digest: what is remembered of a caller is no credential.
        return { identity: { kind: 'token', token }, headers, caller: `token ${hash('sha256', token, 'base64url')}` }
      }
      case 'node':
        // It may do so in no other name: what its request asked for would take the place of whom the hub names.
        if (impersonates(headers)) throw refused(403, 'Forbidden', `a hub passes on no impersonation by node "${edge}"`)
        return {
          identity: { kind: 'edge' },
          headers: isPublic(asked) ? headers : asNode(headers, edge, this.#parts.impersonation?.namesGroup ?? true),
          caller: `node ${edge}`,
        }
      case 'administrator':
        if (!this.#parts.trustsEdges) throw refused(403, 'Forbidden', untrusted)
        return { identity: { kind: 'edge' }, headers, caller: `administrator ${edge}` }
      case 'anonymous':
        // What that may do the API server says, as to any who knocks there without a credential.
        return { identity: { kind: 'anonymous' }, headers, caller: `anonymous ${edge}` }
    }
  }
}

const listenersMax = 16
const nothing = Buffer.alloc(0)

const untrusted =
  'the administrator of an edge can only read here: its hub does not trust edges with its own credential'

function refused(code: number, reason: string, sentence: string): StatusError {
  return failure(code, reason, sentence)
}

function secondsOf(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1_000))
}

/** As an API server would answer. */
function said({ status }: StatusError): TunnelledReply {
  const seconds = status.details?.retryAfterSeconds
  const body = Buffer.from(JSON.stringify(status))
  const headers = headerLines({
    ...{ 'content-type': 'application/json', 'content-length': String(body.length) },
    'retry-after': seconds === undefined ? undefined : String(seconds),
  })
  return { status: status.code ?? 500, headers, body }
}

/** From names and values in turn. */
function linesOf(raw: readonly string[]): TunnelledReply['headers'] {
  return raw.flatMap((name, at) => (at % 2 === 0 ? [{ name: name.toLowerCase(), value: raw[at + 1] ?? '' }] : []))
}
