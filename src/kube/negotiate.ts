/**
 * Which form an answer takes, from the Accept header, as kube-apiserver decides it: clauses by quality, the first that
 * some codec and the endpoint can satisfy wins. Objects whose shape only a CRD knows have no protobuf form.
 */
import { messageOf } from './protobuf/protobuf.ts'
import { apiVersion, type Resource } from './resource.ts'
import { failure, notAcceptable, type StatusError, unsupportedMediaType } from './status.ts'

export type Codec = {
  readonly name: 'json' | 'yaml' | 'protobuf'
  readonly mediaType: string
  /** Whether watch events can be framed in it. */
  readonly streams: boolean
  readonly tables: boolean
  /** Whether it can carry an object of any shape, and not only those whose messages are known. */
  readonly anyShape: boolean
}

const json: Codec = { name: 'json', mediaType: 'application/json', streams: true, tables: true, anyShape: true }
const yaml: Codec = { name: 'yaml', mediaType: 'application/yaml', streams: false, tables: true, anyShape: true }
const protobuf: Codec = {
  name: 'protobuf',
  mediaType: 'application/vnd.kubernetes.protobuf',
  streams: true,
  tables: false,
  anyShape: false,
}

/** What is spoken here, in the order in which a wildcard tries them and refusals name them. */
const codecs: readonly Codec[] = [json, yaml, protobuf]

const written = codecs.map(({ mediaType }) => mediaType)
const streamed = codecs.filter(({ streams }) => streams).map(({ mediaType }) => `${mediaType};stream=watch`)

export type Transform = {
  readonly kind: 'Table' | 'PartialObjectMetadata' | 'PartialObjectMetadataList'
  readonly group: 'meta.k8s.io'
  readonly version: 'v1' | 'v1beta1'
}

export type MediaChoice = {
  readonly codec: Codec
  readonly as?: Transform
  /** `pretty=1` stood in the clause. */
  readonly pretty: boolean
}

export type EndpointRestrictions = {
  /** `document` is anything without objects in it: discovery, reviews of the server itself. */
  readonly shape: 'object' | 'list' | 'watch' | 'document'
  /** The resource served; absent for documents. */
  readonly resource?: Resource
  /** Whether kube-apiserver's router looks at Accept before the handler does: on all but custom resources, /apis, /apis/x. */
  readonly routed?: boolean
  /** Which shape the answer will have is not known yet: whether the form fits it is seen later. */
  readonly unshaped?: boolean
  /** Whether protobuf is only for clients that take nothing else. */
  readonly avoidsProtobuf?: (() => boolean) | undefined
}

export function negotiate(accept: string | undefined, endpoint: EndpointRestrictions): MediaChoice {
  const { shape, resource } = endpoint
  if (accept === undefined || accept === '') return { codec: json, pretty: false }
  const { clauses, types } = parsed(accept)
  if (endpoint.routed ?? (resource !== undefined && !resource.custom)) checkRoute(types, shape)
  const choice = choose(clauses, endpoint)
  if (choice === undefined) throw notAcceptable(written)
  if (shape === 'watch' && !choice.codec.streams) throw notAcceptable(streamed)
  if (endpoint.unshaped !== true) checkShape(choice, shape, resource)
  return choice
}

function choose(clauses: readonly Clause[], endpoint: EndpointRestrictions): MediaChoice | undefined {
  let second: MediaChoice | undefined
  for (const clause of clauses) {
    for (const codec of codecs) {
      const choice = satisfy(clause, codec, endpoint)
      if (choice === undefined) continue
      if (codec !== protobuf || endpoint.avoidsProtobuf?.() !== true) return choice
      second ??= choice
    }
  }
  return second
}

/** The Accept header that leaves an API server no other choice. */
export function acceptOf({ codec, as }: MediaChoice): string {
  return as === undefined ? codec.mediaType : `${codec.mediaType};as=${as.kind};g=${as.group};v=${as.version}`
}

/** On /api and /apis any clause that asks for the aggregated document gets it, whatever stands before it. */
export function wantsAggregatedDiscovery(accept: string | undefined): Codec | undefined {
  if (accept === undefined) return undefined
  for (const clause of parsed(accept).clauses) {
    const { params } = clause
    const list = params.get('as') === 'APIGroupDiscoveryList' && params.get('g') === 'apidiscovery.k8s.io'
    if (!list || params.get('v') !== 'v2') continue
    const codec = codecs.find((one) => covers(clause, one))
    if (codec !== undefined) return codec
  }
  return undefined
}

/** Which of these media types comes first by the client's preference: for documents that have forms of their own. */
export function firstAccepted(accept: string | undefined, offered: readonly string[]): string | undefined {
  if (accept === undefined || accept === '') return offered[0]
  for (const { type, subtype } of parsed(accept).clauses) {
    const found = offered.find((one) => {
      const [ownType, ownSubtype] = one.split('/')
      return (type === '*' || type === ownType) && (subtype === '*' || subtype === ownSubtype)
    })
    if (found !== undefined) return found
  }
  return undefined
}

/** The format of a request's body. `anyShape`: of an object that may have no protobuf form. */
export function bodyFormat(contentType: string | undefined, { anyShape = false } = {}): Codec['name'] {
  if (contentType === undefined || contentType === '') return json.name
  const mediaType = mediaTypeOf(contentType)
  const codec = codecs.find((one) => one.mediaType === mediaType)
  if (codec === undefined) throw unsupportedMediaType(written)
  // kube-apiserver falls over a custom resource in protobuf and cuts the connection: this is what it should say.
  if (anyShape && !codec.anyShape) throw unsupportedMediaType([json.mediaType, yaml.mediaType])
  return codec.name
}

export type PatchFormat = 'json' | 'merge' | 'strategic' | 'apply'

const patches: ReadonlyMap<string, PatchFormat> = new Map([
  ['application/json-patch+json', 'json'],
  ['application/merge-patch+json', 'merge'],
  ['application/strategic-merge-patch+json', 'strategic'],
  ['application/apply-patch+yaml', 'apply'],
])

/** The format of a patch; custom resources know no strategic merge. */
export function patchFormat(contentType: string | undefined, custom: boolean): PatchFormat {
  const semicolon = contentType?.indexOf(';') ?? -1
  const mediaType = (semicolon > 0 ? contentType?.slice(0, semicolon) : contentType) ?? ''
  const format = patches.get(mediaType)
  if (format !== undefined && !(custom && format === 'strategic')) return format
  // Built-ins are refused by the router, unless only blanks around the type are wrong.
  if (!custom && !patches.has(mediaType.trim())) {
    throw failure(415, 'UnsupportedMediaType', '415: Unsupported Media Type', {})
  }
  throw unsupportedMediaType([...patches.keys()].filter((type) => !custom || patches.get(type) !== 'strategic'))
}

/** One alternative of an Accept header. */
type Clause = {
  readonly type: string
  readonly subtype: string
  readonly quality: number
  readonly params: ReadonlyMap<string, string>
}

type Accept = {
  readonly clauses: readonly Clause[]
  /** The bare types, in order. */
  readonly types: readonly string[]
}

function covers({ type, subtype }: Clause, codec: Codec): boolean {
  if (type === '*' && subtype === '*') return true
  return type === 'application' && (subtype === '*' || `${type}/${subtype}` === codec.mediaType)
}

function satisfy(clause: Clause, codec: Codec, { shape, resource }: EndpointRestrictions): MediaChoice | undefined {
  if (!covers(clause, codec)) return undefined
  const { params } = clause
  const stream = params.get('stream') ?? ''
  if (stream !== '' && (stream !== 'watch' || !codec.streams)) return undefined
  const served = params.get('sv') ?? ''
  if (served !== '' && (served !== 'v1' || shape === 'document')) return undefined
  const pretty = params.get('pretty') === '1'
  if (!params.has('as') && !params.has('g') && !params.has('v')) {
    return codec.anyShape || hasMessage(resource) ? { codec, pretty } : undefined
  }
  const as = shape === 'document' ? undefined : transformOf(params, codec)
  return as === undefined ? undefined : { codec, as, pretty }
}

/** What belongs to no resource (a Status, discovery) has one. */
function hasMessage(resource: Resource | undefined): boolean {
  if (resource === undefined) return true
  return !resource.custom && messageOf(apiVersion(resource), resource.kind) !== undefined
}

function transformOf(params: ReadonlyMap<string, string>, codec: Codec): Transform | undefined {
  const kind = params.get('as')
  const group = params.get('g')
  const version = params.get('v')
  if (group !== 'meta.k8s.io' || (version !== 'v1' && version !== 'v1beta1')) return undefined
  if (kind === 'Table') return codec.tables ? { kind, group, version } : undefined
  return kind === 'PartialObjectMetadata' || kind === 'PartialObjectMetadataList' ? { kind, group, version } : undefined
}

/** The router knows only whole types and the full wildcard, and lists everything the route could produce. */
function checkRoute(types: readonly string[], shape: EndpointRestrictions['shape']): void {
  if (types.some((type) => type === '*/*' || written.includes(type))) return
  throw notProduced(shape === 'list' || shape === 'watch' ? [...written, ...streamed] : written)
}

/** For a document of which there is nothing but JSON. */
export function requireJson(accept: string | undefined): void {
  if (accept === undefined || accept === '') return
  if (!parsed(accept).types.some((type) => type === '*/*' || type === json.mediaType))
    throw notProduced([json.mediaType])
}

function notProduced(produced: readonly string[]): StatusError {
  const message = `406: Not Acceptable\n\nAvailable representations: ${produced.join(', ')}`
  return failure(406, 'NotAcceptable', message, {})
}

/** The singular form of a list, or a list of one object, is refused rather than skipped. */
export function checkShape(
  { as }: MediaChoice,
  shape: EndpointRestrictions['shape'],
  resource: Resource | undefined,
): void {
  if (as?.kind === 'PartialObjectMetadata' && shape === 'list') throw misshapen(as.kind, 'a list', resource, true)
  if (as?.kind === 'PartialObjectMetadataList' && shape !== 'list') {
    throw misshapen(as.kind, 'not a list', resource, false)
  }
}

function misshapen(kind: string, is: string, resource: Resource | undefined, list: boolean): StatusError {
  const message = `you requested ${kind}, but the requested object is ${is} (${goType(resource, list)})`
  return failure(406, 'NotAcceptable', message)
}

/** The Go type that kube-apiserver mentions: its internal packages are named after the group's first word. */
function goType(resource: Resource | undefined, list: boolean): string {
  if (resource === undefined || resource.custom) return `*unstructured.Unstructured${list ? 'List' : ''}`
  const { group } = resource
  const core = group === '' || group === 'events.k8s.io'
  const name = core ? 'core' : group === 'internal.apiserver.k8s.io' ? 'apiserverinternal' : group.split('.')[0]
  return `*${name}.${list ? resource.listKind : resource.kind}`
}

/** Clients send the same few headers over and over; more than this many different ones come from a client that plays. */
const MAX_CACHED_HEADERS = 256
/** Longer ones are parsed each time, so that the cache stays under 256 KB. */
const MAX_CACHED_HEADER_LENGTH = 1024
/** No client has a use for more alternatives; the sort below is quadratic. */
const MAX_CLAUSES = 64

const cache = new Map<string, Accept>()

function parsed(header: string): Accept {
  const known = cache.get(header)
  if (known !== undefined) return known
  const accept = parseAccept(header)
  if (header.length <= MAX_CACHED_HEADER_LENGTH) {
    if (cache.size >= MAX_CACHED_HEADERS) cache.clear()
    cache.set(header, accept)
  }
  return accept
}

function parseAccept(header: string): Accept {
  const clauses: Clause[] = []
  const types: string[] = []
  for (const part of header.split(',', MAX_CLAUSES)) {
    const [media = '', ...settings] = part.split(';')
    types.push(media.trim())
    const [type = '', subtype = '', more] = media.split('/').map(trimmed)
    if (more !== undefined || (subtype === '' && type !== '*')) continue
    clauses.push(clauseOf(type, subtype === '' ? '*' : subtype, settings))
  }
  return { clauses: byPreference(clauses), types }
}

/** Blanks only, as Go's library does it. */
function trimmed(text: string): string {
  return text.replace(/^ +| +$/g, '')
}

function clauseOf(type: string, subtype: string, settings: readonly string[]): Clause {
  const params = new Map<string, string>()
  let quality = 1
  for (const setting of settings) {
    const [name = '', value = '', more] = setting.split('=')
    if (value === '' || more !== undefined) continue
    if (trimmed(name) === 'q') quality = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(value) ? Number(value) : 0
    else params.set(trimmed(name), trimmed(value))
  }
  return { type, subtype, quality, params }
}

/** An insertion sort, because the order it is given is no proper order and the outcome depends on the steps taken. */
function byPreference(clauses: Clause[]): Clause[] {
  for (let i = 1; i < clauses.length; i++) {
    for (let j = i; j > 0 && preferred(clauses[j] as Clause, clauses[j - 1] as Clause); j--) {
      const swapped = clauses[j] as Clause
      clauses[j] = clauses[j - 1] as Clause
      clauses[j - 1] = swapped
    }
  }
  return clauses
}

function preferred(a: Clause, b: Clause): boolean {
  return a.quality > b.quality || (a.type !== '*' && b.type === '*') || (a.subtype !== '*' && b.subtype === '*')
}

/** The bare type in lower case, or '' where the header is malformed (a parameter without value, or given twice). */
function mediaTypeOf(contentType: string): string {
  const [type = '', ...settings] = contentType.split(';')
  const seen = new Set<string>()
  for (const [i, setting] of settings.entries()) {
    const text = setting.trim()
    if (text === '' && i === settings.length - 1) continue
    const name = text.slice(0, Math.max(0, text.indexOf('='))).toLowerCase()
    if (name === '' || text.endsWith('=') || seen.has(name)) return ''
    seen.add(name)
  }
  return type.trim().toLowerCase()
}
