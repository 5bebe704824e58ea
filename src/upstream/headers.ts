/**
 * What of a request's and an answer's headers goes over: everything but what belongs to one hop, any credential, and
 * headers by which a front proxy would vouch for a caller. An edge is not one, so no client must be able to speak through it.
 */
import type { Headers, UpstreamRequest } from './upstream.ts'

const hop: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
])
const ownRequest: ReadonlySet<string> = new Set(['host', 'authorization', 'cookie', 'expect', 'content-length'])
const vouching = /^(proxy-|x-forwarded-|x-remote-)|^forwarded$/
/** A bearer token hidden among the subprotocols that a browser may name. */
const tokenProtocol = /^base64url\.bearer\.authorization\.k8s\.io\./

export type SentHeaders = Record<string, string | string[]>

type Parts = {
  readonly headers: Headers | undefined
  readonly token: string | undefined
  /** The User-Agent of a request that bears none; undefined where none it is. */
  readonly agent?: string | undefined
  /** How long the body is; of a stream only the caller may know. */
  readonly bytes: number | 'as given'
}

export function requestHeaders({ headers = {}, token, agent, bytes }: Parts): SentHeaders {
  const named = namedHops(headers.connection)
  const sent: SentHeaders = {}
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || name.startsWith(':') || hop.has(name) || named.has(name)) continue
    if (ownRequest.has(name) || vouching.test(name)) continue
    sent[name] = typeof value === 'string' ? value : [...value]
  }
  const length = bytes === 'as given' ? declaredBytes(headers) : bytes || undefined
  if (length !== undefined) sent['content-length'] = String(length)
  if (agent !== undefined) sent['user-agent'] ??= agent
  if (token !== undefined) sent.authorization = `Bearer ${token}`
  return sent
}

/** Of an upgrade: it is one hop's business, and here it is the point. */
export function upgradeHeaders(parts: Parts): SentHeaders {
  const sent = requestHeaders(parts)
  const upgrade = parts.headers?.upgrade
  if (upgrade !== undefined) Object.assign(sent, { connection: 'Upgrade', upgrade })
  const protocols = sent['sec-websocket-protocol']
  if (protocols !== undefined) {
    const offered = [protocols].flat().flatMap((line) => line.split(/\s*,\s*/))
    sent['sec-websocket-protocol'] = offered.filter((protocol) => !tokenProtocol.test(protocol)).join(', ')
  }
  return sent
}

/** From names and values in turn; a name that comes twice becomes an array, so that `Warning`s stay apart. */
export function answerHeaders(raw: readonly string[]): Record<string, string | readonly string[]> {
  const pairs = pairsOf(raw)
  const named = namedHops(pairs.filter(([name]) => name === 'connection').map(([, value]) => value))
  const kept: Record<string, string | string[]> = {}
  for (const [name, value] of pairs) {
    if (name.startsWith(':') || hop.has(name) || named.has(name)) continue
    // Whatever a server calls it: what every object has by itself is no header that came before.
    const before = Object.hasOwn(kept, name) ? kept[name] : undefined
    if (before === undefined) kept[name] = value
    else if (typeof before === 'string') kept[name] = [before, value]
    else before.push(value)
  }
  return kept
}

/** The same in turn, for an answer whose framing Node has already taken off. */
export function rawAnswerHeaders(raw: readonly string[]): string[] {
  const kept: string[] = []
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const [name = '', value = ''] = raw.slice(at, at + 2)
    if (!hop.has(name.toLowerCase())) kept.push(name, value)
  }
  return kept
}

function pairsOf(raw: readonly string[]): [name: string, value: string][] {
  const pairs: [string, string][] = []
  for (let at = 0; at + 1 < raw.length; at += 2) pairs.push([(raw[at] ?? '').toLowerCase(), raw[at + 1] ?? ''])
  return pairs
}

/**
 * Further names that a `Connection` header declares to belong to this hop. A header that says as which caller a request is judged never
 * does: a front that speaks for others with a strong credential would act as itself where its client can have the name left out.
 */
function namedHops(connection: string | readonly string[] | undefined): ReadonlySet<string> {
  const lines = connection === undefined ? [] : [connection].flat()
  const names = lines.flatMap((line) => line.split(',')).map((name) => name.trim().toLowerCase())
  return new Set(names.filter((name) => !name.startsWith('impersonate-')))
}

const lengthForm = /^\d{1,15}$/

/** How long a body says it is that comes as a stream. Whatever is no single number declares nothing, and the body goes in chunks. */
export function declaredBytes({ 'content-length': length }: Headers): number | undefined {
  return typeof length === 'string' && lengthForm.test(length) ? Number(length) : undefined
}

/** Of a body, as far as they are known before it is sent. */
export function bytesOf({ body }: UpstreamRequest): number | 'as given' {
  return body === undefined ? 0 : body instanceof Buffer ? body.length : 'as given'
}
