/**
 * The Kubernetes face: `handle(request)` answers `{ status, headers, body }` and touches no socket, so that tests, an
 * in-process client and a tunnel use the very same core. A body is bytes, pieces of bytes to be sent in order, or an async
 * iterable that is pulled as fast as the reader reads (a watch, a compressed list).
 *
 * The way of a request (`request/pipeline`): what is asked (kube/request), who asks (authenticate), whether it may
 * (authorise), then the answer, with one file per verb. Every composition is this way with parts of its own: an authority
 * believes its own certificates and answers from its own copy, a mirror asks the API server and answers from what it holds of
 * it. Whatever goes wrong is thrown as a Status and rendered in one place (respond).
 */
import type { KeyObject } from 'node:crypto'
import type { Clock } from '../base/clock.ts'
import type { ApiRequest } from '../kube/request.ts'
import type { Cataloged } from '../kube/schema/catalog.ts'
import type { WriteRequest, WriteResult } from '../write/write.ts'
import type { Spelling } from './forms/spelling.ts'
import type { Holder } from './holder.ts'
import type { ClassView } from './views/view.ts'

export type Request = {
  readonly method: string
  /** Path and query as they came. */
  readonly url: string
  /** By lower-case name, each with one value: what came more than once is joined, or only its first counts. */
  readonly headers: Readonly<Record<string, string | undefined>>
  /** Names and values in turn, as they came: for passing them on (`sentheaders`). */
  readonly rawHeaders?: readonly string[]
  /** False when the head said that there is none. */
  readonly hasBody: boolean
  /** Reads the whole body, refusing one that is too large. */
  body(): Promise<Buffer>
  /** The body as it comes, of any size and no faster than it is read: for passing it on. Rejects if it breaks off. */
  stream(): AsyncIterable<Buffer>
  /** Fires when the client is no longer there to be answered; absent where a client cannot leave. */
  gone?(): AbortSignal
  /** Out of whose share it lives, as far as that is known by now; absent where its peer alone says so (`shares`). */
  holder?(): Holder
  readonly peer: Peer
}

/** What the connection proves about its other end: the same for every request on it. */
export type Peer = {
  readonly certificate?: {
    /** Its common name. */
    readonly name: string
    readonly organizations: readonly string[]
    /** Those in its subject, for Kubernetes at most one; undefined where they cannot be read. */
    readonly uids?: readonly string[] | undefined
    /** SHA-256, in hexadecimal digits. */
    readonly fingerprint?: string | undefined
    /** Our own authority, or one of those whose certificates are accepted as callers. */
    readonly issuedBy: 'own' | 'clients'
    readonly expiresMs: number
    /** The key that signed it. */
    readonly signer?: KeyObject
    /** It, and those between it and the authority (DER): for a hub that judges it again. */
    readonly chain?: readonly Buffer[]
  }
  /** It showed a certificate that proves nothing: of an unknown authority, out of date, or not for clients. */
  readonly unverified?: boolean
  /** Bytes to it cost less than compressing them: what is answered here goes out as it is, whatever it accepts. */
  readonly uncompressed?: boolean
}

export type ResponseBody = Buffer | readonly Buffer[] | AsyncIterable<Buffer>

export type Response = {
  readonly status: number
  readonly headers: Record<string, string | readonly string[]>
  readonly body: ResponseBody
  /** It comes from the API server as it is: none of our lists, and bounded by its reader alone. */
  readonly passedThrough?: boolean
  /** It is made while it is sent, and takes one of the places of lists. */
  readonly isList?: boolean
  /** A watch of our own copy. */
  readonly isWatch?: boolean
  /**
   * A body that breaks off ends in order instead of being cut: for a watch, whose clients watch again after an end, and
   * list everything anew after a reset stream.
   */
  readonly cutCleanly?: boolean
}

/** A resource with what reading it takes. */
export type Served = Cataloged & {
  readonly spelling: Spelling
  /** Whether protobuf could not say all that the objects hold. */
  readonly avoidsProtobuf?: () => boolean
  /** How its reader sees it; undefined: as it is. */
  readonly view?: ClassView
}

/** The local write engine, or whatever takes writes. */
export interface WriteVerbs {
  create(request: WriteRequest): Promise<WriteResult>
  update(request: WriteRequest): Promise<WriteResult>
  patch(request: WriteRequest): Promise<WriteResult>
  delete(request: WriteRequest): Promise<WriteResult>
  deleteCollection(request: WriteRequest): Promise<WriteResult>
}

/** Whatever answers paths that are no resources: health, discovery, OpenAPI, metrics. Undefined: not its path. */
export interface NonResourcePaths {
  answer(api: ApiRequest, request: Request): Promise<Response> | Response | undefined
}

export interface Measuring {
  /** `passed`: the API server answered it. */
  answered(api: ApiRequest | undefined, code: number, ms: number, passed?: boolean): void
}

/** What reading takes besides the cache that is read. */
export type ReadParts = { readonly clock: Clock }
