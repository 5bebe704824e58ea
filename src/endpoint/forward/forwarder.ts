/**
 * Everything that is the API server's to answer: passed on as the caller's, streamed both ways, untouched. What the answer
 * says about the caller's rights is learned; the reply to a write is held until the copy has it (A7).
 */
import type { Access, ForwardOutcome } from '../../access/access.ts'
import type { Clock } from '../../base/clock.ts'
import { isConnection } from '../../kube/addressing.ts'
import { isDryRun } from '../../kube/dryrun.ts'
import { replyVersion } from '../../kube/replies.ts'
import type { ApiRequest } from '../../kube/request.ts'
import { failure } from '../../kube/status.ts'
import { doubtWithin } from '../../upstream/doubt.ts'
import {
  type Connected,
  type Headers,
  type HeldObject,
  Unreachable,
  Unspoken,
  type UpstreamResponse,
} from '../../upstream/upstream.ts'
import type { Call } from '../call.ts'
import type { Request, Response } from '../endpoint.ts'
import { answerAlone, isAlone, notInItsName } from './alone.ts'
import { effectsOf } from './effects.ts'
import { answerOffline, edgeRefused, notConnected, type OfflineParts } from './offline.ts'
import type { ReadYourWrites } from './readyourwrites.ts'
import { heedReview, isReview } from './reviews.ts'
import { sentHeaders } from './sentheaders.ts'

/** A reply to a write is read before it goes on: objects are at most etcd's 1.5 MB, with room for a Table around one. */
const replyBytesMax = 8 * 1024 * 1024
/** The options of a deletion are some hundred bytes; what is larger is not listened to. */
const optionsBytesMax = 64 * 1024
/** The API server gives up on a request itself after 60 s; one that has not begun to answer by then will not. */
const headMsMax = 75_000
/** What a load balancer says when no API server stands behind it. */
const gatewayCodes: ReadonlySet<number> = new Set([502, 503, 504])

type Parts = OfflineParts & {
  readonly access: Pick<Access, 'isRefused' | 'learn'>
  readonly readYourWrites: ReadYourWrites
  readonly clock: Clock
}

export class Forwarder {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** `isRouted`: the read has another answer where no hub speaks for the caller, and hears of that as `Unspoken`. */
  async pass(call: Call, options: { accept?: string; isRouted?: boolean } = {}): Promise<Response> {
    const { access, tokens, upstream } = this.#parts
    const { api, request, identity } = call
    if (upstream.reachability.state === 'unreachable') return await answerOffline(this.#parts, call)
    if (isAlone(call, upstream)) return await answerAlone(this.#parts, call)
    const gone = request.gone?.()
    // An anonymous or refused caller's is passed on like anything else: its body is not read here, and no token is kept.
    const isKnown = identity.kind !== 'anonymous' && !access.isRefused(identity)
    const isToken = isKnown && tokens.concerns(api)
    const isAsked = isKnown && isReview(api) && request.hasBody
    try {
      if (isToken) {
        const reply = await tokens.pass(call)
        if (reply.status === 401 && this.#isOwnRefusal(call)) throw edgeRefused()
        return reply
      }
      const tap = this.#tap(call)
      const body = isAsked ? replayed(await call.body()) : (tap ?? request)
      const answer = await this.#ask(call, { ...options, gone, body })
      if (isAsked && answer.status === 201) await heedReview(this.#parts.reviews, call)
      return await this.#reply(call, answer, tap?.sent)
    } catch (error) {
      if (gone?.aborted === true) throw hasLeft()
      if (error instanceof Unspoken && options.isRouted !== true) return await answerAlone(this.#parts, call)
      if (!(error instanceof Unreachable)) throw error
      const { message: why } = error
      // One issued in vain does no harm: unlike any other write, it is answered from what is kept also if it may be done. As a
      // review is, which does nothing at all.
      if (isToken || isAsked) return await answerOffline(this.#parts, call, { why })
      const isWrite = request.method !== 'GET' && request.method !== 'HEAD'
      // It may have been done: neither yes nor no would be true.
      if (isWrite && error.sent) throw mayBeDone(why)
      if (this.#isRefusedEdge(call)) throw edgeRefused()
      return await answerOffline(this.#parts, call, { why, bodyGone: request.hasBody })
    }
  }

  /** The answer, if the API server gives one within the time; `same` where that is what is held; undefined when the copy has to. */
  async tryPass(
    call: Call,
    withinMs: number,
    options: { accept?: string; held?: HeldObject | undefined } = {},
  ): Promise<Response | 'same' | undefined> {
    const { clock, upstream } = this.#parts
    const { reachability } = upstream
    const { request } = call
    const gone = request.gone?.()
    const doubt = doubtWithin({ clock, reachability }, withinMs)
    try {
      const answer = await this.#ask(call, { ...options, gone, body: request, withinMs })
      if (answer.isSame === true) return same(answer)
      if (!gatewayCodes.has(answer.status)) return await this.#reply(call, answer)
      // Said by a load balancer, it has made the upstream suspect; said by the API server it is no doubt about that.
      void answer.body.return?.()
    } catch (error) {
      // That says nothing about the API server.
      if (gone?.aborted === true) throw hasLeft()
      if (error instanceof Unspoken) return undefined
      if (!(error instanceof Unreachable)) throw error
      // What the API server lets wait, of one caller or of one object, is no reason for others to go without it.
      if (!doubt.alive) reachability.suspect(error.message)
    } finally {
      doubt.over()
    }
    return undefined
  }

  async connect(call: Call): Promise<Connected> {
    const { upstream, clock } = this.#parts
    const { request, identity } = call
    const { reachability } = upstream
    if (reachability.state === 'unreachable') throw notConnected(call.api, reachability.why)
    if (isAlone(call, upstream)) throw notInItsName(call, upstream)
    const askedAt = clock.steady()
    try {
      const connected = await upstream.connect({
        method: request.method,
        path: request.url,
        headers: sentHeaders(request),
        identity,
        passedOn: true,
        headMsMax,
      })
      this.#learn(call, { status: connected.status, askedAt })
      if (connected.status !== 401 || !this.#isOwnRefusal(call)) return connected
      connected.socket.destroy()
      throw edgeRefused()
    } catch (error) {
      if (error instanceof Unspoken) throw notInItsName(call, upstream)
      if (!(error instanceof Unreachable)) throw error
      throw this.#isRefusedEdge(call) ? edgeRefused() : notConnected(call.api, error.message)
    }
  }

  async #ask(
    call: Call,
    {
      accept,
      gone,
      body,
      held,
      withinMs = headMsMax,
    }: {
      accept?: string
      gone: AbortSignal | undefined
      body: Pick<Request, 'stream'>
      held?: HeldObject | undefined
      withinMs?: number
    },
  ): Promise<UpstreamResponse> {
    const { upstream, clock } = this.#parts
    const { api, request, identity } = call
    const askedAt = clock.steady()
    const answer = await upstream.ask({
      method: request.method,
      path: request.url,
      headers: this.#headersFor(api, request, accept),
      ...(request.hasBody ? { body: body.stream() } : {}),
      identity,
      passedOn: true,
      headMsMax: withinMs,
      ...(held === undefined ? {} : { held }),
      ...(gone === undefined ? {} : { signal: gone }),
    })
    this.#learn(call, { status: answer.status, askedAt })
    if (answer.status === 401 && this.#isOwnRefusal(call)) {
      void answer.body.return?.()
      throw edgeRefused()
    }
    return answer
  }

  /** A reply that is read here must not come compressed. */
  #headersFor(api: ApiRequest, request: Request, accept: string | undefined): Headers {
    const headers = sentHeaders(request)
    if (accept !== undefined) return { ...headers, accept, 'accept-encoding': 'identity' }
    if (headers['accept-encoding'] === undefined || !this.#mayBeHeld(api)) return headers
    return { ...headers, 'accept-encoding': 'identity' }
  }

  #learn(call: Call, outcome: ForwardOutcome): void {
    // The API server's HTTP library answers `OPTIONS *` by itself, before rights are looked at.
    if (call.impersonates || call.request.url === '*') return
    const isRefusal = outcome.status === 401 || outcome.status === 403
    if (!isRefusal || !this.#isAnothers(call)) this.#parts.access.learn(call.identity, call.question, outcome)
  }

  /** A node or a pod refuses in its own name, and that says nothing about the caller's credential at the API server. */
  #isAnothers({ question: { subresource, group, version } }: Call): boolean {
    return isConnection(subresource) || this.#parts.catalog.isAggregated(group, version)
  }

  /** Of a 401: what leads to others is asked of the API server first, so where that knows no edge it was its own. */
  #isOwnRefusal(call: Call): boolean {
    return call.identity.kind === 'edge' && (!this.#isAnothers(call) || this.#isRefusedEdge(call))
  }

  /** What it asked for was not done, and would not be: to a person that is of more use than why it did not get there. */
  #isRefusedEdge({ identity }: Call): boolean {
    const { state, refusesEdge } = this.#parts.upstream.reachability
    return identity.kind === 'edge' && state !== 'unreachable' && refusesEdge
  }

  async #reply(call: Call, answer: UpstreamResponse, sent?: Sent): Promise<Response> {
    const { api } = call
    const { status, headers } = answer
    const isWatch = api.verb === 'watch'
    const isDone = status >= 200 && status <= 299 && !api.query.has('dryRun')
    const isEnd = isDone && this.#parts.tokens.endsAccount(api)
    if (isEnd && !(await isTried(sent))) this.#parts.tokens.ended(api)
    const body = isDone && this.#isHeld(api, answer) ? await this.#held(call, answer, sent) : answer.body
    return { status, headers, body, passedThrough: true, ...(isWatch ? { cutCleanly: true } : {}) }
  }

  #mayBeHeld(api: ApiRequest): boolean {
    return (
      api.isResource && writes.has(api.verb) && !unheld.has(api.subresource) && this.#parts.readYourWrites.concerns(api)
    )
  }

  /** Listens to what is sent where it may say that nothing is to be done: the options of a deletion. */
  #tap({ api, request }: Call): { stream(): AsyncIterable<Buffer>; sent: Sent } | undefined {
    const hasOptions = deletions.has(api.verb) || api.subresource === 'eviction'
    const matters = hasOptions && (this.#mayBeHeld(api) || this.#parts.tokens.endsAccount(api))
    if (!request.hasBody || !matters) return undefined
    const sent: { contentType: string | undefined; chunks: Buffer[] } = {
      contentType: request.headers['content-type'],
      chunks: [],
    }
    return { stream: () => overheard(request.stream(), sent.chunks), sent }
  }

  /** Replies that tell which state of which object the caller has seen. */
  #isHeld(api: ApiRequest, { headers }: UpstreamResponse): boolean {
    return headers['content-encoding'] === undefined && this.#mayBeHeld(api)
  }

  async #held(
    { api, impersonates, identity }: Call,
    answer: UpstreamResponse,
    sent?: Sent,
  ): Promise<Buffer | AsyncIterable<Buffer>> {
    const chunks: Buffer[] = []
    let size = 0
    for (;;) {
      // Not `for await`, which would end the body that is handed on below.
      const { value, done } = await answer.body.next()
      if (done === true) break
      chunks.push(value)
      size += value.length
      if (size > replyBytesMax) return rest(chunks, answer.body)
    }
    const bytes = Buffer.concat(chunks)
    if (await isTried(sent)) return bytes
    const { catalog, readYourWrites } = this.#parts
    const { group, version, resource, verb, name } = api
    const known = catalog.find(group, version, resource)
    const contentType = String(answer.headers['content-type'] ?? '')
    const isNamespaces = group === '' && resource === 'namespaces'
    const namespace = isNamespaces ? '' : api.namespace
    const reply = verb === 'deletecollection' ? undefined : replyVersion(contentType, bytes)
    const effects = effectsOf({ verb, namespace, name, objectKind: known?.resource.kind, contentType, bytes, reply })
    const body = { contentType, bytes, kind: reply?.kind ?? '' }
    const writer = impersonates ? undefined : identity
    await readYourWrites.hold({ resource: { group, version, resource }, known, effects, reply: body, writer })
    return bytes
  }
}

function same({ body }: UpstreamResponse): 'same' {
  void body.return?.()
  return 'same'
}

const deletions: ReadonlySet<string> = new Set(['delete', 'deletecollection'])
const writes: ReadonlySet<string> = new Set(['create', 'update', 'patch', ...deletions])
/** They change no object that is kept. */
const unheld: ReadonlySet<string> = new Set(['token', 'exec', 'attach', 'portforward', 'proxy', 'log'])

/** What was sent, as far as it was listened to. */
type Sent = { readonly contentType: string | undefined; readonly chunks: readonly Buffer[] }

async function isTried(sent: Sent | undefined): Promise<boolean> {
  return sent !== undefined && (await isDryRun(sent.contentType, Buffer.concat(sent.chunks)))
}

/** Hands on what comes, and keeps the beginning of it. */
async function* overheard(body: AsyncIterable<Buffer>, heard: Buffer[]): AsyncGenerator<Buffer, void, void> {
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size <= optionsBytesMax) heard.push(chunk)
    else heard.length = 0
    yield chunk
  }
}

/** What was read whole, since it may have to be answered here. */
function replayed(bytes: Buffer): Pick<Request, 'stream'> {
  return {
    async *stream() {
      yield bytes
    },
  }
}

async function* rest(chunks: readonly Buffer[], body: AsyncIterableIterator<Buffer>): AsyncIterable<Buffer> {
  yield* chunks
  yield* body
}

/** For our own count of answers: no client is there to read it. */
function hasLeft(): Error {
  return failure(499, 'Timeout', 'the client has left')
}

function mayBeDone(why: string): Error {
  return failure(
    504,
    'Timeout',
    `the connection to the API server broke off before it answered, and it may have done what was asked: ${why}`,
  )
}
