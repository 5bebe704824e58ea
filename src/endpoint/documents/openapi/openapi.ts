/**
 * /openapi/v3 (an index, and one document per group version) and /openapi/v2 (everything at once), in JSON or, as older
 * clients want it, in protobuf. An edge device has little memory and few callers that ask: a document is built when it is
 * asked for and held as bytes, and only those that were asked for last stay. The hash that names a document's content is taken from what it is made of, so that the index, which lists
 * all of them, builds none.
 */
import { createHash, randomUUID } from 'node:crypto'
import type { Clock } from '../../../base/clock.ts'
import { pieceMsMax, turns } from '../../../base/turns.ts'
import { builtinFacts, builtinPaths } from '../../../kube/builtin.ts'
import { firstAccepted } from '../../../kube/negotiate.ts'
import type { ApiRequest } from '../../../kube/request.ts'
import type { Definition } from '../../../kube/schema/catalog.ts'
import { compressed } from '../../answer/batches.ts'
import { isWorthGzip } from '../../answer/spelled.ts'
import type { Request, Response } from '../../endpoint.ts'
import type { OwnCatalog } from '../../owncatalog.ts'
import { BuiltDocuments } from './built.ts'
import { builtinDocument, type CustomVersion, customDocument, type OpenApiDocument } from './document.ts'
import { openApiMessage } from './protobuf.ts'
import { swaggerInJson, swaggerInProtobuf } from './whole.ts'

/** Raised when documents are made differently from the same facts: clients keep what they have by its hash, for a year. */
const edition = 1
const yearMs = 365 * 24 * 3600 * 1000

export class OpenApi {
  readonly #resources: OwnCatalog
  readonly #clock: Clock
  #generation = -1
  #index: Buffer | undefined
  /** The documents of custom group versions, by name. */
  #custom: ReadonlyMap<string, readonly CustomVersion[]> = new Map()
  readonly #built: BuiltDocuments

  constructor(parts: { resources: OwnCatalog; clock: Clock; built?: BuiltDocuments }) {
    this.#resources = parts.resources
    this.#clock = parts.clock
    this.#built = parts.built ?? new BuiltDocuments()
  }

  /** undefined for a path outside /openapi. */
  answer(api: ApiRequest, request: Request): Promise<Response> | Response | undefined {
    const { path } = api
    if (!path.startsWith('/openapi/')) return undefined
    this.#follow()
    if (path === '/openapi/v3') return this.#indexResponse(request)
    if (path === '/openapi/v2') return this.#swagger(request)
    if (path.startsWith('/openapi/v3/')) return this.#document(path.slice('/openapi/v3/'.length), api, request)
    return undefined
  }

  #follow(): void {
    if (this.#generation === this.#resources.generation) return
    this.#generation = this.#resources.generation
    this.#index = undefined
    const custom = new Map<string, CustomVersion[]>()
    for (const group of this.#resources.groups()) {
      if (!group.custom) continue
      for (const { version, resources } of group.versions) {
        const versions: CustomVersion[] = []
        for (const resource of resources) {
          const { group, version, resource: plural } = resource
          const definition = this.#resources.find(group, version, plural)?.definition
          if (definition !== undefined) versions.push({ resource, definition })
        }
        custom.set(`apis/${group.name}/${version}`, versions)
      }
    }
    this.#custom = custom
  }

  async #indexResponse(request: Request): Promise<Response> {
    await this.#hashAll()
    this.#index ??= Buffer.from(JSON.stringify({ paths: this.#indexEntries() }))
    return bytesResponse(request, this.#index, etagOf(digest(this.#index)), {
      // What kube-apiserver's file server makes of bytes it was told nothing about.
      'content-type': 'text/plain; charset=utf-8',
    })
  }

  /** A definition is hashed once in its life; a thousand of them, one after the other, in turns with others. */
  async #hashAll(): Promise<void> {
    let untilMs = this.#clock.steady() + pieceMsMax
    for (const versions of this.#custom.values()) {
      for (const version of versions) {
        if (customHashes.has(version.definition)) continue
        customHash(version)
        if (this.#clock.steady() < untilMs) continue
        await turns.take()
        untilMs = this.#clock.steady() + pieceMsMax
      }
    }
  }

  #indexEntries(): Record<string, { serverRelativeURL: string }> {
    const entries: Record<string, { serverRelativeURL: string }> = {}
    for (const name of this.#names()) entries[name] = { serverRelativeURL: urlOf(name, this.#hashOf(name)) }
    return entries
  }

  #names(): string[] {
    return [...Object.keys(builtinPaths().documents), ...this.#custom.keys()].sort()
  }

  #hashOf(name: string): string {
    const custom = this.#custom.get(name)
    if (custom === undefined) return digest(`${basis()} ${name}`)
    return digest([basis(), name, ...custom.map(customHash)].join(' '))
  }

  async #document(name: string, api: ApiRequest, request: Request): Promise<Response> {
    const custom = this.#custom.get(name)
    if (custom === undefined && !Object.hasOwn(builtinPaths().documents, name)) return empty(404, {})
    const form = formOf(request, 'v3')
    if (form === undefined) return empty(406, { vary: 'Accept' })
    const hash = this.#hashOf(name)
    const asked = api.query.get('hash')
    const headers: Record<string, string> = { vary: 'Accept', 'content-type': form.contentType }
    if (asked !== undefined && asked !== '') {
      if (asked !== hash) return moved(urlOf(name, hash), etagOf(hash))
      headers['cache-control'] = 'public, immutable'
      headers.expires = new Date(this.#clock.now() + yearMs).toUTCString()
    }
    const build = () => print(custom === undefined ? builtinDocument(name) : customDocument(custom), form)
    return bytesResponse(request, await this.#built.take(`${name} ${hash} ${form.name}`, build), etagOf(hash), headers)
  }

  async #swagger(request: Request): Promise<Response> {
    const form = formOf(request, 'v2')
    if (form === undefined) return empty(406, { vary: 'Accept-Encoding, Accept' })
    await this.#hashAll()
    const hash = digest(
      this.#names()
        .map((name) => this.#hashOf(name))
        .join(' '),
    )
    const steady = () => this.#clock.steady()
    const build = () => (form.name === 'json' ? swaggerInJson : swaggerInProtobuf)(this.#all(), steady)
    const bytes = await this.#built.take(`v2 ${hash} ${form.name}`, build)
    const headers = { vary: 'Accept-Encoding, Accept', 'content-type': form.contentType }
    const response = bytesResponse(request, bytes, etagOf(hash), headers)
    if (response.status !== 200 || !isWorthGzip(bytes.length, request)) return response
    const { 'content-length': _, ...others } = response.headers
    return { ...response, headers: { ...others, 'content-encoding': 'gzip' }, body: compressed(bytes) }
  }

  /** One by one, as they are taken; of custom resources one each. */
  *#all(): Iterable<OpenApiDocument | undefined> {
    const custom = this.#custom
    for (const name of this.#names()) {
      const versions = custom.get(name)
      if (versions === undefined) yield builtinDocument(name)
      else for (const version of versions) yield customDocument([version])
    }
  }
}

let basisDigest: string | undefined

/** What all documents are made of: the facts of one Kubernetes version, as this program spells them. */
function basis(): string {
  basisDigest ??= digest(`${edition} ${builtinFacts().kubernetes} ${JSON.stringify(builtinPaths())}`)
  return basisDigest
}

/** Definitions are kept as they are until their CRD changes. */
const customHashes = new WeakMap<Definition, string>()

function customHash({ resource, definition }: CustomVersion): string {
  let hash = customHashes.get(definition)
  if (hash === undefined) {
    hash = digest(JSON.stringify({ resource, definition }))
    customHashes.set(definition, hash)
  }
  return hash
}

function digest(content: string | Buffer): string {
  return createHash('sha512').update(content).digest('hex').toUpperCase()
}

function etagOf(hash: string): string {
  return `"${hash}"`
}

function urlOf(name: string, hash: string): string {
  return `/openapi/v3/${name}?hash=${hash}`
}

function print(document: OpenApiDocument | undefined, { name }: DocumentForm): Buffer {
  return name === 'json' ? Buffer.from(JSON.stringify(document)) : openApiMessage('v3', 'Document', document ?? {})
}

type DocumentForm = { readonly name: 'json' | 'protobuf'; readonly contentType: string }

/** Protobuf is asked for by a name with `@` or with a dot, and answered under the one with a dot. */
function formOf(request: Request, version: 'v2' | 'v3'): DocumentForm | undefined {
  const json = 'application/json'
  const protobuf = `application/com.github.proto-openapi.spec.${version}.v1.0+protobuf`
  const asked = firstAccepted(request.headers.accept, [json, protobuf.replace('.v1.0', '@v1.0'), protobuf])
  if (asked === undefined) return undefined
  return asked === json ? { name: 'json', contentType: json } : { name: 'protobuf', contentType: protobuf }
}

/** These handlers of kube-apiserver refuse without a word. */
function empty(status: number, own: Record<string, string>): Response {
  return { status, headers: { ...baseHeaders(), ...own, 'content-length': '0' }, body: Buffer.alloc(0) }
}

function moved(location: string, etag: string): Response {
  const headers = { ...baseHeaders(), location, etag, vary: 'Accept', 'content-length': '0' }
  return { status: 301, headers, body: Buffer.alloc(0) }
}

function bytesResponse(request: Request, body: Buffer, etag: string, own: Record<string, string>): Response {
  const headers: Record<string, string> = { ...baseHeaders(), ...own, etag }
  if (request.headers['if-none-match'] === etag) {
    const { 'content-type': _, ...mirrored } = headers
    return { status: 304, headers: mirrored, body: Buffer.alloc(0) }
  }
  return { status: 200, headers: { ...headers, 'content-length': String(body.length) }, body }
}

function baseHeaders() {
  return { 'audit-id': randomUUID(), 'cache-control': 'no-cache, private' }
}
