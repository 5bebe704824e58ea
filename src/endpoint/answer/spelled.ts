/**
 * The bytes of an answer as they were negotiated. JSON and protobuf of what is stored exist already; what is indented,
 * turned into YAML or printed element by element is made while it is sent, a piece at a time (making).
 */
import { randomUUID } from 'node:crypto'
import { turns } from '../../base/turns.ts'
import type { MediaChoice } from '../../kube/negotiate.ts'
import type { TypeMeta } from '../../kube/protobuf/enveloping.ts'
import type { Query } from '../../kube/request.ts'
import { tooManyRequests } from '../../kube/status.ts'
import type { Request, Response, ResponseBody } from '../endpoint.ts'
import { indented } from '../forms/indent.ts'
import { inIndentedJson, inJson, inYaml, type LazyBody, objectInYaml, type SpelledList } from '../forms/listing.ts'
import { inProtobuf } from '../forms/protobuf/document.ts'
import { holderOf, Shares } from '../shares.ts'
import { compressed } from './batches.ts'
import { Making, madeInTurns } from './making.ts'

/** kube-apiserver's threshold: below it compression costs more than it saves. */
const gzipBytesMin = 128 * 1024
/** A list this small goes out in one piece: it takes neither batch buffers nor a place among the large lists. */
const joinedBytesMax = 64 * 1024
const newline = Buffer.from('\n')

export function jsonHeaders(): Record<string, string | readonly string[]> {
  return { 'audit-id': randomUUID(), 'cache-control': 'no-cache, private', 'content-type': 'application/json' }
}

type Choice = { readonly media: MediaChoice; readonly query: Query; readonly request: Request }

/** Protobuf as it is, JSON as it is, indented or turned into YAML. What is small is made at once. */
export function spelled(
  status: number,
  pieces: Buffer | readonly Buffer[],
  choice: Choice,
): Promise<Response> | Response {
  const answer = answerTo(status, choice)
  const size = sizeOf(pieces)
  switch (spellingOf(choice)) {
    case 'plain':
      return whole(answer, size <= joinedBytesMax ? joined(pieces) : pieces)
    case 'pretty':
      return made(answer, indented(Buffer.isBuffer(pieces) ? [pieces] : pieces), size)
    case 'yaml':
      return made(answer, objectInYaml(joined(pieces)), size)
  }
}

/** A list whose elements are made while it is sent, of objects that take so many bytes. */
export function spelledList(
  status: number,
  listing: SpelledList,
  { bytes, ...choice }: Choice & { readonly bytes: number },
): Promise<Response> | Response {
  const spell = { plain: inJson, pretty: inIndentedJson, yaml: inYaml }[spellingOf(choice)]
  return made(answerTo(status, choice), spell(listing), bytes)
}

/** What is as long as it says, and needs nothing to be made before it begins. */
export function spelledLater(status: number, { bytes, pieces }: LazyBody, choice: Choice): Response {
  const answer = answerTo(status, choice)
  if (bytes <= joinedBytesMax) return whole(answer, joined([...pieces]))
  const body = madeInTurns([], new Making(pieces), holderOf(choice.request).name)
  if (isWorthGzip(bytes, choice.request)) return zipped(answer, body)
  answer.headers['content-length'] = String(bytes)
  return { status, headers: answer.headers, body, isList: true }
}

/** An object that is no resource's, from its JSON; the line's end is not part of it. */
export function spelledDocument(
  status: number,
  type: TypeMeta,
  json: Buffer,
  choice: Choice,
): Promise<Response> | Response {
  const isProtobuf = choice.media.codec.name === 'protobuf'
  return spelled(status, isProtobuf ? inProtobuf(type, json) : [json, newline], choice)
}

/** The same without waiting: for what is small, as a Status is. */
export function spelledAtOnce(status: number, type: TypeMeta, json: Buffer, choice: Choice): Response {
  const answer = answerTo(status, choice)
  if (choice.media.codec.name === 'protobuf') return whole(answer, inProtobuf(type, json))
  const spellings = { plain: () => [json, newline], pretty: () => indented([json]), yaml: () => objectInYaml(json) }
  return whole(answer, joined([...spellings[spellingOf(choice)]()]))
}

export function spellingOf({ media, query, request }: Choice): 'plain' | 'pretty' | 'yaml' {
  if (media.codec.name !== 'json') return media.codec.name === 'yaml' ? 'yaml' : 'plain'
  return media.pretty || wantsPretty(query, request) ? 'pretty' : 'plain'
}

type Answer = { readonly status: number; readonly headers: Response['headers']; readonly request: Request }

function answerTo(status: number, { media, request }: Choice): Answer {
  const headers = jsonHeaders()
  if (media.codec.name !== 'json') headers['content-type'] = media.codec.mediaType
  return { status, headers, request }
}

/** `bytes` is the size of what it is made of: what is made of little comes at once, unless it grows. */
function made(answer: Answer, pieces: Iterable<Buffer>, bytes: number): Promise<Response> | Response {
  const making = new Making(pieces)
  const first = bytes <= joinedBytesMax ? [making.batch()] : []
  return making.isDone ? whole(answer, joined(first)) : begin(answer, making, first)
}

/** Answers begun at the same time, in shares: each holds its first batches. */
const beginning = new Shares(200)

/** Waits for as much as tells whether it is worth compressing; what goes wrong until then is told in its place. */
async function begin(answer: Answer, making: Making, first: Buffer[]): Promise<Response> {
  const holder = holderOf(answer.request)
  if (!beginning.take(holder)) throw tooManyRequests('too many answers of this caller are being made', 1)
  try {
    while (!making.isDone && sizeOf(first) <= gzipBytesMin) {
      await turns.takeFirst(holder.name)
      first.push(making.batch())
    }
  } finally {
    beginning.give(holder)
  }
  if (making.isDone) return whole(answer, joined(first))
  const body = madeInTurns(first, making, holder.name)
  if (isWorthGzip(sizeOf(first), answer.request)) return zipped(answer, body)
  return { status: answer.status, headers: answer.headers, body, isList: true }
}

function whole(answer: Answer, body: Buffer | readonly Buffer[]): Response {
  const { status, headers, request } = answer
  const size = sizeOf(body)
  if (isWorthGzip(size, request)) return zipped(answer, body)
  headers['content-length'] = String(size)
  return { status, headers, body }
}

function zipped({ status, headers }: Answer, body: ResponseBody): Response {
  headers.vary = 'Accept-Encoding'
  headers['content-encoding'] = 'gzip'
  return { status, headers, body: compressed(body) }
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
  if (size <= gzipBytesMin || request.peer.uncompressed === true) return false
  return request.headers['accept-encoding']?.split(',').some((one) => one.trim() === 'gzip') ?? false
}

function joined(pieces: Buffer | readonly Buffer[]): Buffer {
  return Buffer.isBuffer(pieces) ? pieces : Buffer.concat(pieces as Buffer[])
}

export function sizeOf(pieces: Buffer | readonly Buffer[]): number {
  if (Buffer.isBuffer(pieces)) return pieces.length
  let size = 0
  for (const piece of pieces as readonly Buffer[]) size += piece.length
  return size
}
