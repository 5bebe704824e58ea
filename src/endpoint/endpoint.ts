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
import type { ApiRequest } from '../kube/request.ts'
import type { Resource } from '../kube/resource.ts'
import type { PrinterColumn } from '../table/printers.ts'
import type { Caller, Definition, WriteRequest, WriteResult } from '../write/write.ts'
import type { Spelling } from './spelling.ts'

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
  /** What clients of a deprecated version are warned with. */
  readonly deprecation?: string
}

export interface Registry {
  find(group: string, version: string, plural: string): Served | undefined
  /** An unknown path below one is refused by a Status, below any other by a bare 404. */
  isBuiltinGroup(group: string): boolean
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

/** Whatever answers paths that are no resources: health, discovery, OpenAPI, metrics. Undefined: not its path. */
export interface Documents {
  answer(api: ApiRequest, request: Request): Promise<Response> | Response | undefined
}

export interface Measuring {
  answered(api: ApiRequest | undefined, code: number, ms: number): void
  watchers(): number
}

/** What the verbs work with. */
export type EndpointParts = {
  readonly copy: Copy
  readonly registry: Registry
  readonly writer: Writing
  readonly measures: Measuring
  readonly clock: Clock
  readonly log: Log
}
