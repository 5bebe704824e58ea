/** The forms an answer takes on its way out, and the one place where what was thrown becomes a Status. */
import { randomUUID } from 'node:crypto'
import type { Log } from '../../base/log.ts'
import { negotiate } from '../../kube/negotiate.ts'
import { type ApiRequest, parseRequest } from '../../kube/request.ts'
import { Denial, internalError, type Status, StatusError } from '../../kube/status.ts'
import { warningsOf } from '../../write/warnings.ts'
import type { Request, Response } from '../endpoint.ts'
import { indent } from '../forms/indent.ts'
import { printStatus, statusType } from '../forms/protobuf/document.ts'
import { jsonHeaders, sizeOf, spelledAtOnce } from './spelled.ts'

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
function spelledStatus(status: Status, request: Request, api: ApiRequest | undefined): Response {
  const code = status.code ?? 500
  const json = Buffer.from(printStatus(status))
  try {
    const media = negotiate(request.headers.accept, { shape: 'document', routed: false })
    const { query } = api ?? parseRequest(request.method, request.url)
    query.has('pretty')
    return spelledAtOnce(code, statusType, json, { media, query, request })
  } catch {
    return plain(code, indent(json))
  }
}

/**
 * The only catch that renders. Anything but a Status is a fault of ours: logged, and told without its insides. `api` is the
 * request as far as it was parsed.
 */
export function refusal(error: unknown, request: Request, log: Log, api?: ApiRequest): Response {
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
  const response = spelledStatus(found.status, request, api)
  if (found instanceof Denial) response.headers['x-content-type-options'] = 'nosniff'
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
  const distinct = firstDistinct(texts)
  if (distinct.size === 0) return
  let total = 0
  for (const text of distinct) total += text.length
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

/** As many as can be shown, and one more than fits where there are more: a body may give cause for hundreds of thousands. */
function firstDistinct(texts: readonly string[]): ReadonlySet<string> {
  const distinct = new Set<string>()
  let shown = 0
  for (const text of texts) {
    if (text === '' || distinct.has(text) || /[\x00-\x1f\x7f]/.test(text)) continue
    distinct.add(text)
    shown += Math.min(text.length, warningCharactersMax)
    if (shown > warningsCharactersMax) break
  }
  return distinct
}

/** RFC 7234's form, as kube-apiserver sends it: 299, no agent, the text quoted. */
export function warningHeader(text: string): string {
  const quoted = text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')
  // A header is bytes: UTF-8 goes as it is, each byte a character for Node.
  return `299 - "${Buffer.from(quoted).toString('latin1')}"`
}
