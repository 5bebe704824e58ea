/**
 * What an edge answers: from the copy, in the very verbs of an authority, where it holds what is asked for; about itself; the
 * documents it mirrors. Everything else is the API server's own answer, passed through as it is.
 */
import type { Verdict } from '../../../access/access.ts'
import type { Clock } from '../../../base/clock.ts'
import type { ApiRequest } from '../../../kube/request.ts'
import { failure, tooManyRequests } from '../../../kube/status.ts'
import type { CloudCatalog } from '../../../mirror/documents/catalog.ts'
import type { CloudDocuments, DocumentAnswer } from '../../../mirror/documents/documents.ts'
import { isDocument } from '../../../mirror/documents/place.ts'
import type { Connected, Upstream } from '../../../upstream/upstream.ts'
import { warn } from '../../answer/respond.ts'
import { wantsPretty } from '../../answer/spelled.ts'
import type { Call } from '../../call.ts'
import type { Answering, Beyond } from '../../composition.ts'
import type { NonResourcePaths, Request, Response } from '../../endpoint.ts'
import { indent } from '../../forms/indent.ts'
import { isAlone } from '../../forward/alone.ts'
import type { Forwarder } from '../../forward/forwarder.ts'
import { neverSynced } from '../../forward/offline.ts'
import { isOwn } from '../../ownpaths.ts'
import type { MirrorReads } from './reads.ts'

type Parts = {
  readonly catalog: CloudCatalog
  readonly upstream: Upstream
  readonly reading: MirrorReads
  readonly forwarder: Forwarder
  /** Health, metrics, status: about this process, not about the cloud. */
  readonly own: readonly NonResourcePaths[]
  readonly mirrored: CloudDocuments
  readonly clock: Clock
  /** Why nothing is answered from here any more while the cloud is away; without it, never. */
  readonly unserved?: () => string | undefined
}

/** How long the first requests of a first start wait for discovery: it takes one round trip where all is well. */
const firstLookMsMax = 2_000

export class MirrorAnswers implements Answering, Beyond {
  readonly #parts: Parts
  #firstLook: Promise<void> | undefined

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /**
   * A caller that speaks for another, and whatever is written, is judged by the API server alone; without it, what is read in
   * another's name is judged here too.
   */
  isOurs(call: Call): boolean | Promise<boolean> {
    const { api, request } = call
    if (!api.isResource) {
      return isOwn(api.path) || (request.method === 'GET' && !call.impersonates && isDocument(api.path))
    }
    const isRead = request.method === 'GET' && (api.verb === 'get' || api.verb === 'list' || api.verb === 'watch')
    const { catalog, reading, upstream } = this.#parts
    const isTheirs = call.impersonates && upstream.reachability.state !== 'unreachable'
    if (!isRead || isTheirs || api.parts.length > 3 || api.badSegment !== '') return false
    const known = catalog.find(api.group, api.version, api.resource)
    return known === undefined ? this.#isFound(api) : reading.answers(known, api)
  }

  pass(call: Call): Promise<Response> {
    const { catalog, reading } = this.#parts
    const { group, version, resource } = call.api
    return reading.pass(catalog.find(group, version, resource), call)
  }

  connect(call: Call): Promise<Connected> {
    return this.#parts.forwarder.connect(call)
  }

  /** While the API server is there, it says no in its own words, and may have changed its mind; but not about this process. */
  instead(call: Call, verdict: Verdict): Promise<Response> | undefined {
    const { upstream } = this.#parts
    const { state } = upstream.reachability
    if (isOwn(call.api.path)) return undefined
    // It was asked about a caller in whose name nothing goes up.
    if (state === 'reachable') return isAlone(call, upstream) ? undefined : this.pass(call)
    // A review that took too long is no refusal: a 401 would make its client take a good credential for a bad one. The next
    // probe tells whether the API server can be asked.
    if (state === 'suspect' && verdict === 'unknown' && call.identity.kind !== 'anonymous') {
      throw tooManyRequests('whether this caller may do this is being asked, please try again later', 1)
    }
    return undefined
  }

  answer(call: Call): Promise<Response> | Response {
    const { api } = call
    const unserved = isOwn(api.path) ? undefined : this.#parts.unserved?.()
    if (unserved !== undefined) throw failure(503, 'ServiceUnavailable', unserved)
    if (!api.isResource) return this.#document(call)
    const { catalog, reading } = this.#parts
    const known = catalog.find(api.group, api.version, api.resource)
    // It went while its caller was judged.
    return known === undefined ? this.pass(call) : reading.read(known, call)
  }

  /** Discovery may be older than the resource, or not there yet: then the first to come waits a moment for it. */
  async #isFound(api: ApiRequest): Promise<boolean> {
    const { catalog, mirrored, reading, upstream } = this.#parts
    if (!catalog.complete && upstream.reachability.state !== 'unreachable') {
      this.#firstLook ??= this.#look()
      await this.#firstLook
      const known = catalog.find(api.group, api.version, api.resource)
      if (known !== undefined) return reading.answers(known, api)
    }
    mirrored.seek()
    return false
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

  async #document(call: Call): Promise<Response> {
    const { own, mirrored, forwarder, upstream } = this.#parts
    const { api, request } = call
    if (isOwn(api.path)) {
      for (const documents of own) {
        const answer = documents.answer(api, request)
        if (answer !== undefined) return answer
      }
      return forwarder.pass(call)
    }
    const answer = await mirrored.answer(api.path, api.query, request.headers)
    if (answer === 'forward') return forwarder.pass(call)
    if (answer === 'unknown') throw neverSynced(upstream.reachability.why)
    const response = forPeople(api, request, answer)
    if (answer.warning !== undefined) warn(response, [answer.warning])
    return response
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
