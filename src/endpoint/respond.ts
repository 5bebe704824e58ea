/** The forms an answer takes on its way out, and the one place where what was thrown becomes a Status. */
import { randomUUID } from 'node:crypto'
import { createGzip } from 'node:zlib'
import type { Log } from '../base/log.ts'
import { parseJson } from '../json/json.ts'
import { printYaml } from '../json/yaml.ts'
import { type MediaChoice, negotiate } from '../kube/negotiate.ts'
import type { TypeMeta } from '../kube/protobuf/enveloping.ts'
import { parseRequest, type Query } from '../kube/request.ts'
import { internalError, type Status, StatusError } from '../kube/status.ts'
import { warningsOf } from '../write/warnings.ts'
import type { Body, Request, Response } from './endpoint.ts'
import { indent } from './indent.ts'
import { inProtobuf, printStatus, statusType } from './protobufdocument.ts'

/** kube-apiserver's threshold: below it compression costs more than it saves. */
const gzipBytesMin = 128 * 1024
/** A list this small goes out in one piece: it takes neither batch buffers nor a place among the large lists. */
const joinedBytesMax = 64 * 1024
/** Speed over ratio, as kube-apiserver chooses too. */
const gzipLevel = 1
const newline = Buffer.from('\n')

export function jsonHeaders(): Record<string, string | readonly string[]> {
  return { 'audit-id': randomUUID(), 'cache-control': 'no-cache, private', 'content-type': 'application/json' }
}

/** The bytes of an answer as they are negotiated: protobuf as it is, JSON as it is, indented or turned into YAML. */
export function spelled(
  status: number,
  pieces: Buffer | readonly Buffer[],
  choice: { media: MediaChoice; query: Query; request: Request },
): Response {
  const { media, query, request } = choice
  const headers = jsonHeaders()
  let body: Buffer | readonly Buffer[] = pieces
  if (media.codec.name === 'protobuf') headers['content-type'] = media.codec.mediaType
  else if (media.codec.name === 'yaml') {
    headers['content-type'] = 'application/yaml'
    body = Buffer.from(printYaml(parseJson(whole(pieces))))
  } else if (media.pretty || wantsPretty(query, request)) {
    body = indent(withoutNewline(whole(pieces)))
  }
  const size = sizeOf(body)
  if (size <= joinedBytesMax) body = whole(body)
  if (isWorthGzip(size, request)) {
    headers.vary = 'Accept-Encoding'
    headers['content-encoding'] = 'gzip'
    return { status, headers, body: compressed(body) }
  }
  headers['content-length'] = String(size)
  return { status, headers, body }
}

/** An object that is no resource's, from its JSON; the line's end is not part of it. */
export function spelledDocument(
  status: number,
  type: TypeMeta,
  json: Buffer,
  choice: { media: MediaChoice; query: Query; request: Request },
): Response {
  const isProtobuf = choice.media.codec.name === 'protobuf'
  return spelled(status, isProtobuf ? inProtobuf(type, json) : [json, newline], choice)
}

/** The quick way for plain JSON of one object. */
export function plain(status: number, body: Buffer | readonly Buffer[]): Response {
  const headers = jsonHeaders()
  headers['content-length'] = String(sizeOf(body))
  return { status, headers, body }
}

export function text(status: number, content: string, contentType = 'text/plain; charset=utf-8'): Response {
  const body = Buffer.from(content)
  const headers = {
    'audit-id': randomUUID(),
    'cache-control': 'no-cache, private',
    'content-type': contentType,
    'content-length': String(body.length),
    'x-content-type-options': 'nosniff',
  }
  return { status, headers, body }
}

export function statusResponse(status: Status): Response {
  return plain(status.code ?? 200, Buffer.from(`${printStatus(status)}\n`))
}

/** A path that belongs to no API at all. */
export function pageNotFound(): Response {
  return text(404, '404 page not found\n')
}

/** An error takes the form that was asked for; where that is impossible, or part of the error, it is indented JSON. */
function spelledStatus(status: Status, request: Request): Response {
  const code = status.code ?? 500
  const json = Buffer.from(printStatus(status))
  try {
    const media = negotiate(request.headers.accept, { shape: 'document', routed: false })
    const { query } = parseRequest(request.method, request.url)
    query.has('pretty')
    return spelledDocument(code, statusType, json, { media, query, request })
  } catch {
    return plain(code, indent(json))
  }
}

/** The only catch that renders. Anything but a Status is a fault of ours: logged, and told without its insides. */
export function refusal(error: unknown, request: Request, log: Log): Response {
  let found: StatusError
  if (error instanceof StatusError) found = error
  else {
    const fault = error instanceof Error ? error : new Error(String(error))
    log.error('request.fault', {
      method: request.method,
      path: request.url.split('?', 1)[0],
      why: fault.stack ?? fault.message,
    })
    found = internalError('an unexpected fault; the log has the details')
  }
  const response = spelledStatus(found.status, request)
  const retry = found.status.details?.retryAfterSeconds
  if (retry !== undefined) response.headers['retry-after'] = String(retry)
  warn(response, warningsOf(found))
  return response
}

/** kube-apiserver's limits, which keep headers small enough for any client: all together, and each once that is passed. */
const warningsCharactersMax = 4_096
const warningCharactersMax = 256

/** Adds warnings to an answer: once each, cut short if they are many, none that would break a header. */
export function warn(response: Response, texts: readonly string[]): void {
  const distinct = [...new Set(texts)].filter((text) => text !== '' && !/[\x00-\x1f\x7f]/.test(text))
  if (distinct.length === 0) return
  const total = distinct.reduce((sum, text) => sum + text.length, 0)
  let left = warningsCharactersMax
  const shown: string[] = []
  for (const text of distinct) {
    const cut = total > warningsCharactersMax ? [...text].slice(0, warningCharactersMax).join('') : text
    if (left <= 0) break
    left -= cut.length
    shown.push(warningHeader(cut))
  }
  response.headers.warning = shown
}

/** RFC 7234's form, as kube-apiserver sends it: 299, no agent, the text quoted. */
export function warningHeader(text: string): string {
  const quoted = text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')
  // A header is bytes: UTF-8 goes as it is, each byte a character for Node.
  return `299 - "${Buffer.from(quoted).toString('latin1')}"`
}

/** What Go reads as true; anything else is false. */
const trueWords: ReadonlySet<string> = new Set(['1', 't', 'T', 'true', 'TRUE', 'True'])

export function wantsPretty(query: Query, request: Request): boolean {
  const asked = query.get('pretty') ?? ''
  if (asked !== '') return trueWords.has(asked)
  const agent = request.headers['user-agent'] ?? ''
  return agent.startsWith('curl') || agent.startsWith('Wget') || agent.startsWith('Mozilla/5.0')
}

export function isWorthGzip(size: number, request: Request): boolean {
  const accepted = request.headers['accept-encoding']
  return size > gzipBytesMin && (accepted?.split(',').some((one) => one.trim() === 'gzip') ?? false)
}

function withoutNewline(bytes: Buffer): Buffer {
  return bytes.at(-1) === 0x0a ? bytes.subarray(0, -1) : bytes
}

function whole(pieces: Buffer | readonly Buffer[]): Buffer {
  return Buffer.isBuffer(pieces) ? pieces : Buffer.concat(pieces as Buffer[])
}

function sizeOf(pieces: Buffer | readonly Buffer[]): number {
  if (Buffer.isBuffer(pieces)) return pieces.length
  let size = 0
  for (const piece of pieces as readonly Buffer[]) size += piece.length
  return size
}

/** Compression runs in the thread pool, fed no faster than it is drained. */
export async function* compressed(body: Body): AsyncIterable<Buffer> {
  const gzip = createGzip({ level: gzipLevel })
  const pieces = Buffer.isBuffer(body) ? [body] : (body as readonly Buffer[])
  const feed = (async () => {
    for (const batch of batches(pieces)) {
      if (!gzip.write(batch)) await new Promise((resolve) => gzip.once('drain', resolve))
    }
    gzip.end()
  })()
  try {
    for await (const chunk of gzip) yield chunk as Buffer
    await feed
  } finally {
    gzip.destroy()
  }
}

/** What is written to a stream at once: few system calls, and no list blocks its neighbours for long. */
const batchBytes = 128 * 1024

/** The pieces joined into buffers of about `batchBytes`. */
function* batches(pieces: readonly Buffer[]): Iterable<Buffer> {
  const packer = new Packer(pieces)
  while (!packer.done) yield packer.fill(Buffer.allocUnsafeSlow(batchBytes))
}

/** Copies pieces one after the other into whatever buffer it is given; a piece may continue in the next. */
export class Packer {
  readonly #pieces: readonly Buffer[]
  #next = 0
  #offset = 0

  constructor(pieces: readonly Buffer[]) {
    this.#pieces = pieces
  }

  get done(): boolean {
    return this.#next >= this.#pieces.length
  }

  /** The part of `target` that was filled. */
  fill(target: Buffer): Buffer {
    const pieces = this.#pieces
    const size = target.length
    let at = 0
    let next = this.#next
    let offset = this.#offset
    while (next < pieces.length && at < size) {
      const piece = pieces[next] as Buffer
      const left = piece.length - offset
      if (left <= size - at) {
        target.set(offset === 0 ? piece : piece.subarray(offset), at)
        at += left
        next++
        offset = 0
      } else {
        target.set(piece.subarray(offset, offset + size - at), at)
        offset += size - at
        at = size
      }
    }
    this.#next = next
    this.#offset = offset
    return at === size ? target : target.subarray(0, at)
  }
}

/** Buffers for batches under way, used again and again: fresh ones for every list would keep the collector busy. */
export class BatchPool {
  readonly #free: Buffer[] = []

  take(): Buffer {
    return this.#free.pop() ?? Buffer.allocUnsafeSlow(batchBytes)
  }

  /** 32 of them, 4 MiB, are kept: more lists than that at once are rare, and they get fresh ones. */
  give(buffer: Buffer): void {
    if (this.#free.length < 32) this.#free.push(buffer)
  }
}
