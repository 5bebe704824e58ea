/**
 * The way of a request at an edge: whose it is, whether it may, and then the copy or the cloud. Local answers are made by the
 * same verbs as an authority's; everything else is the API server's own answer, passed through as it is.
 */
import type { Access, Verdict } from '../../access/access.ts'
import { type Question, questionOf } from '../../access/question.ts'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { type ApiRequest, parseRequest } from '../../kube/request.ts'
import { forbidden, type StatusError, tooManyRequests } from '../../kube/status.ts'
import { checkTimeout } from '../../kube/timeout.ts'
import type { Catalog } from '../../mirror/documents/catalog.ts'
import type { CloudDocuments, DocumentAnswer } from '../../mirror/documents/documents.ts'
import { isDocument } from '../../mirror/documents/place.ts'
import type { Connected, Upstream } from '../../upstream/upstream.ts'
import { plain, refusal, warn } from '../answer/respond.ts'
import { wantsPretty } from '../answer/spelled.ts'
import { type Asker, askerOf } from '../asker.ts'
import type { Measuring, NonResourcePaths, Request, Response } from '../endpoint.ts'
import { indent } from '../forms/indent.ts'
import type { Forwarder } from '../forward/forwarder.ts'
import { neverSynced } from '../forward/offline.ts'
import { warnOfDeprecation } from './deprecated.ts'
import type { EdgeReading } from './edgeread.ts'

export type EdgeParts = {
  readonly access: Access
  readonly catalog: Catalog
  readonly upstream: Upstream
  readonly reading: EdgeReading
  readonly forwarder: Forwarder
  /** Health, metrics: about this process, not about the cloud. */
  readonly own: readonly NonResourcePaths[]
  readonly mirrored: CloudDocuments
  /** What `ake status` shows. */
  readonly status: () => unknown
  /** Whether a certificate is that of somebody with a credential of their own upstream. */
  readonly isMapped: (certificate: NonNullable<Request['peer']['certificate']>) => boolean
  /** The time by which certificates expire. */
  readonly nowMs: () => number
  readonly measures: Measuring
  readonly clock: Clock
  readonly log: Log
}

/** About this process: answered to everybody, as kube-apiserver's system:public-info-viewer allows. */
const openPaths = ['healthz', 'livez', 'readyz']
/** How long the first requests of a first start wait for discovery: it takes one round trip where all is well. */
const firstLookMsMax = 2_000

export class EdgeEndpoint {
  readonly #parts: EdgeParts
  #firstLook: Promise<void> | undefined

  constructor(parts: EdgeParts) {
    this.#parts = parts
  }

  async handle(request: Request): Promise<Response> {
    const { log, measures } = this.#parts
    const startedMs = performance.now()
    let api: ApiRequest | undefined
    let response: Response
    try {
      api = parseRequest(request.method, request.url)
      checkTimeout(api)
      response = await this.#answer(api, request, this.#askerOf(request))
    } catch (error) {
      response = refusal(error, request, log)
    }
    if (response.passedThrough !== true) warnOfDeprecation(api, response, this.#parts.reading)
    // As kube-apiserver's authorizer does: the message quotes what was asked.
    if (response.passedThrough !== true && response.status === 403)
      response.headers['x-content-type-options'] = 'nosniff'
    measures.answered(api, response.status, performance.now() - startedMs)
    return response
  }

  /** exec, attach, port-forward: bytes both ways, judged by the API server. */
  async upgrade(request: Request): Promise<Connected | Response> {
    const { log, forwarder } = this.#parts
    try {
      const api = parseRequest(request.method, request.url)
      return await forwarder.connect(request, this.#askerOf(request), questionOf(api))
    } catch (error) {
      return refusal(error, request, log)
    }
  }

  #askerOf(request: Request): Asker {
    return askerOf(request, this.#parts)
  }

  #answer(api: ApiRequest, request: Request, asker: Asker): Promise<Response> | Response {
    if (!api.isResource) return this.#document(api, request, asker)
    const { catalog, reading, forwarder } = this.#parts
    const isRead = request.method === 'GET' && (api.verb === 'get' || api.verb === 'list' || api.verb === 'watch')
    // Whoever speaks for somebody else is judged by the API server alone.
    if (!isRead || asker.impersonates || api.parts.length > 3) return forwarder.pass(api, request, asker)
    if (api.badSegment !== '') return forwarder.pass(api, request, asker)
    const known = catalog.find(api.group, api.version, api.resource)
    if (known === undefined) return this.#unknown(api, request, asker)
    if (!reading.answers(known, api)) return forwarder.pass(api, request, asker)
    if (asker.isAdministrator) return reading.read(known, api, request, asker)
    const question = questionOf(api)
    const verdict = this.#parts.access.decide(asker.identity, question)
    const go = (settled: Verdict) =>
      settled === 'allowed'
        ? reading.read(known, api, request, asker, question)
        : this.#undecided(api, request, asker, question, settled)
    return verdict instanceof Promise ? verdict.then(go) : go(verdict)
  }

  /** While the API server is there, it says no in its own words, and may have changed its mind. */
  #undecided(
    api: ApiRequest,
    request: Request,
    asker: Asker,
    question: Question,
    verdict: Verdict,
  ): Promise<Response> | Response {
    const { upstream, forwarder, access } = this.#parts
    const { state } = upstream.reachability
    if (state === 'reachable') return forwarder.pass(api, request, asker)
    // A review that took too long is no refusal: a 401 would make its client take a good credential for a bad one. The next
    // probe tells whether anybody can be asked.
    if (state === 'suspect' && verdict === 'unknown' && asker.identity.kind !== 'anonymous') throw notDecided()
    throw access.refusal(asker.identity, question, verdict)
  }

  /** Discovery may be older than the resource, or not there yet: then whoever comes first waits a moment for it. */
  async #unknown(api: ApiRequest, request: Request, asker: Asker): Promise<Response> {
    const { catalog, mirrored, forwarder, upstream } = this.#parts
    if (!catalog.complete && upstream.reachability.state !== 'unreachable') {
      this.#firstLook ??= this.#look()
      await this.#firstLook
      if (catalog.find(api.group, api.version, api.resource) !== undefined) return this.#answer(api, request, asker)
    }
    mirrored.seek()
    return forwarder.pass(api, request, asker)
  }

  /** A list passed through beside the first sync would be older than the history that its watch comes back to. */
  #look(): Promise<void> {
    const { catalog, clock } = this.#parts
    return new Promise((resolve) => {
      const end = () => {
        cancel()
        stop()
        resolve()
      }
      const cancel = clock.setTimer(firstLookMsMax, end)
      const stop = catalog.observe(end)
    })
  }

  async #document(api: ApiRequest, request: Request, asker: Asker): Promise<Response> {
    const { own, mirrored, forwarder, upstream } = this.#parts
    const [, root = ''] = api.path.split('/')
    if (api.path === '/ake/status') return this.#status(api, asker)
    for (const documents of own) {
      if (!openPaths.includes(root) && root !== 'metrics') break
      if (!openPaths.includes(root)) await this.#demand(asker, questionOf(api))
      const answer = documents.answer(api, request)
      if (answer !== undefined) return answer
    }
    if (request.method !== 'GET' || asker.impersonates || !isDocument(api.path)) {
      return forwarder.pass(api, request, asker)
    }
    const question = questionOf(api)
    const verdict = asker.isAdministrator ? 'allowed' : await this.#parts.access.decide(asker.identity, question)
    if (verdict !== 'allowed') return await this.#undecided(api, request, asker, question, verdict)
    const answer = await mirrored.answer(api.path, api.query, request.headers)
    if (answer === 'forward') return forwarder.pass(api, request, asker)
    if (answer === 'unknown') throw neverSynced(upstream.reachability.why)
    const response = forPeople(api, request, answer)
    if (answer.warning !== undefined) warn(response, [answer.warning])
    return response
  }

  async #demand(asker: Asker, question: Question): Promise<void> {
    if (asker.isAdministrator) return
    const verdict = await this.#parts.access.decide(asker.identity, question)
    if (verdict !== 'allowed') throw this.#parts.access.refusal(asker.identity, question, verdict)
  }

  #status(api: ApiRequest, asker: Asker): Response {
    if (!asker.isAdministrator) {
      throw forbidden({ group: '', resource: 'path' }, api.path, 'only the administrator of this machine may see it')
    }
    return plain(200, Buffer.from(`${JSON.stringify(this.#parts.status())}\n`))
  }
}

/** Discovery is kept as programs get it; people get it indented, as from kube-apiserver. */
function forPeople(api: ApiRequest, request: Request, { status, headers, body: bytes }: DocumentAnswer): Response {
  const isDiscovery = api.path.startsWith('/api')
  const isJson = String(headers['content-type']).startsWith('application/json')
  const isPlain = isJson && headers['content-encoding'] === undefined
  if (status !== 200 || !isDiscovery || !isPlain || !wantsPretty(api.query, request)) {
    return { status, headers, body: bytes }
  }
  const body = indent(bytes.at(-1) === 0x0a ? bytes.subarray(0, -1) : bytes)
  return { status, headers: { ...headers, 'content-length': String(body.length) }, body }
}

function notDecided(): StatusError {
  return tooManyRequests('whether this caller may do this is being asked, please try again later', 1)
}
