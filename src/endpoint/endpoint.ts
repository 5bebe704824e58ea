/**
 * The Kubernetes face: `handle(request)` answers `{ status, headers, body }` and touches no socket, so that tests, an
 * in-process client and a tunnel use the very same core. A body is bytes, pieces of bytes to be sent in order, or an async
 * iterable that is pulled as fast as the reader reads (a watch, a compressed list).
 *
 * The way of a request: who asks (authenticate), what is asked (kube/request), which resource that is (registry), then one
 * file per verb. Whatever goes wrong is thrown as a Status and rendered in one place (respond).
 */
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Copy } from '../cache/copy.ts'
import type { SelectableFields } from '../kube/fields.ts'
import type { PrinterColumn } from '../kube/printers.ts'
import { type ApiRequest, parseRequest } from '../kube/request.ts'
import type { Resource, Subresource, Verb } from '../kube/resource.ts'
import { methodNotAllowed, pathNotFound, unauthorized } from '../kube/status.ts'
import type { Caller, Definition, WriteRequest, WriteResult } from '../write/write.ts'
import type { Discovery } from './discovery.ts'
import { getObject, getScale } from './get.ts'
import type { Health } from './health.ts'
import { listObjects } from './list.ts'
import type { Measures } from './measures.ts'
import type { OpenApi } from './openapi.ts'
import { refusal, text } from './respond.ts'
import type { Spelling } from './spelling.ts'
import { watchObjects } from './watch.ts'
import { writeObject } from './write.ts'

export type Request = {
  readonly method: string
  /** Path and query as they came. */
  readonly url: string
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string | undefined>>
  /** Reads the whole body, refusing one that is too large. */
  body(): Promise<Buffer>
  /** Who the transport says it is; undefined for nobody in particular. */
  readonly caller: Caller | undefined
}

export type Body = Buffer | readonly Buffer[] | AsyncIterable<Buffer>

export type Response = {
  readonly status: number
  readonly headers: Record<string, string | readonly string[]>
  readonly body: Body
}

/** A resource with what reading it takes. */
export type Served = {
  readonly resource: Resource
  readonly fields: SelectableFields
  /** A CRD's own columns. */
  readonly columns: readonly PrinterColumn[] | undefined
  readonly spelling: Spelling
}

export interface Registry {
  find(group: string, version: string, plural: string): Served | undefined
  definitionOf(resource: Resource): Definition | undefined
}

/** The local write engine, or whatever takes writes. */
export interface Writing {
  create(request: WriteRequest): Promise<WriteResult>
  update(request: WriteRequest): Promise<WriteResult>
  patch(request: WriteRequest): Promise<WriteResult>
  delete(request: WriteRequest): Promise<WriteResult>
  deleteCollection(request: WriteRequest): Promise<WriteResult>
}

export type EndpointParts = {
  copy: Copy
  registry: Registry
  writer: Writing
  discovery: Discovery
  openapi: OpenApi
  health: Health
  measures: Measures
  clock: Clock
  log: Log
}

/** Answered to everybody, as kube-apiserver's system:public-info-viewer allows. */
const openPaths = ['/healthz', '/livez', '/readyz', '/version']

export class Endpoint {
  readonly #parts: EndpointParts

  constructor(parts: EndpointParts) {
    this.#parts = parts
  }

  async handle(request: Request): Promise<Response> {
    let api: ApiRequest | undefined
    const startedMs = performance.now()
    let response: Response
    try {
      api = parseRequest(request.method, request.url)
      authenticate(api, request.caller)
      response = await this.#answer(api, request)
    } catch (error) {
      response = refusal(error, request, this.#parts.log)
    }
    this.#parts.measures.answered(api, response.status, performance.now() - startedMs)
    return response
  }

  #answer(api: ApiRequest, request: Request): Promise<Response> | Response {
    if (!api.isResource) return this.#document(api, request)
    const { resource, subresource } = api
    const served = this.#parts.registry.find(api.group, api.version, resource)
    if (served === undefined) throw pathNotFound()
    const allowed = subresource === '' ? served.resource : subresourceOf(served.resource, api)
    checkScope(served.resource, api)
    if (!allowed.verbs.includes(api.verb as Verb)) throw methodNotAllowed(served.resource, verbName(api))
    switch (api.verb) {
      case 'get':
        return subresource === 'scale'
          ? getScale(this.#parts, served, api, request)
          : getObject(this.#parts, served, api, request)
      case 'list':
        return listObjects(this.#parts, served, api, request)
      case 'watch':
        return watchObjects(this.#parts, served, api, request)
      default:
        return writeObject(this.#parts, served, api, request)
    }
  }

  /** What is not a resource: health, discovery, OpenAPI, version, metrics. */
  #document(api: ApiRequest, request: Request): Promise<Response> | Response {
    const { path } = api
    if (api.method !== 'GET' && api.method !== 'HEAD') throw pathNotFound()
    const { health, discovery, openapi, measures } = this.#parts
    const answer = health.answer(api) ?? discovery.answer(api, request) ?? openapi.answer(api, request)
    if (answer !== undefined) return answer
    if (path === '/metrics') return text(200, measures.render(), 'text/plain; version=0.0.4; charset=utf-8')
    throw pathNotFound()
  }
}

function authenticate(api: ApiRequest, caller: Caller | undefined): void {
  if (caller !== undefined) return
  const { path } = api
  if (openPaths.some((open) => path === open || (open !== '/version' && path.startsWith(`${open}/`)))) return
  throw unauthorized()
}

function subresourceOf(resource: Resource, api: ApiRequest): Subresource {
  const found = resource.subresources.find((one) => one.name === api.subresource)
  if (found === undefined || api.parts.length > 3) throw pathNotFound()
  return found
}

/** A namespaced resource is addressed inside its namespace, except by list and watch across all of them. */
function checkScope(resource: Resource, api: ApiRequest): void {
  const inNamespace = api.namespace !== '' && !(resource.group === '' && resource.resource === 'namespaces')
  if (!resource.namespaced && inNamespace) throw pathNotFound()
  if (resource.namespaced && !inNamespace && api.name !== '') throw pathNotFound()
}

function verbName(api: ApiRequest): string {
  return api.verb === '' ? api.method.toLowerCase() : api.verb
}
