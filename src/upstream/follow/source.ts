/** What is asked of the API server for one interest: pages of a list, and a watch. Refusals become errors with names. */
import type { Clock } from '../../base/clock.ts'
import { retryAfterMs } from '../../base/retryafter.ts'
import { FieldSelector } from '../../kube/fieldselector.ts'
import { FrameReader, type WatchFrame } from '../../kube/frames.ts'
import { type ListPage, readListPage } from '../../kube/listpage.ts'
import { type Scan, scanObject, uidAt } from '../../kube/object.ts'
import { objectKey } from '../../kube/resource.ts'
import { pathOf, type Scope } from '../../kube/scope.ts'
import type { Upstream, UpstreamResponse } from '../upstream.ts'
import { AnswerTooLarge, readWhole } from '../whole.ts'
import { Busy, Expired, type Identities, type ObjectIdentity, Refused, TooLarge } from './follow.ts'

/** Objects in a page: what client-go's pager asks for. */
const pageObjects = 500
/** A page is at most this large; where 500 objects are more, fewer are asked for at a time. */
const pageBytesMax = 32 * 1024 * 1024
/** How long the head of an answer may take: a list of a large resource on a busy API server takes seconds. */
const listHeadMsMax = 30_000
/** And a whole page: one of its largest size on a line of half a megabit. */
const pageMsMax = 10 * 60_000
const watchHeadMsMax = 15_000
/** A watch lives this long at most: kube-apiserver's own range, spread so that not all end together. */
export const watchSecondsMin = 1_800
const watchSecondsSpread = 1_800
const errorBytesMax = 64 * 1024
/** Identities in one part of a comparison, each some 100 bytes on the line. */
const identitiesObjects = 200
/** What a request and its answer cost besides the identities. */
const identitiesBytesMin = 500
/** A server that knows no such form sends whole objects. */
const identitiesForm = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json'

/** The version asked for lies ahead of the API server. */
export class Ahead extends Error {}

export type WatchStream = {
  /** Frames as they come; ends when the API server ends it, rejects with `Unreachable` or `FrameFault`. */
  readonly frames: AsyncIterableIterator<readonly WatchFrame[]>
  heardAt(): number
  /** Ends it at once, even while a reader waits for its next frame. */
  close(): void
}

export type PageQuery = { readonly continueToken?: string; readonly exactly?: number; readonly objects?: number }

export class Source {
  readonly #upstream: Upstream
  readonly #scope: Scope
  readonly #clock: Clock
  readonly #kind: string
  readonly #pageBytes: number
  #objectsMax = pageObjects
  /** How an object begins that says what it is, and how one of this interest does. */
  readonly #opening: Buffer
  readonly #head: Buffer

  /** `kind` of the objects, where lists are sure to be named after it. */
  constructor(parts: { upstream: Upstream; scope: Scope; clock: Clock; kind?: string; pageBytes?: number }) {
    this.#clock = parts.clock
    this.#pageBytes = parts.pageBytes ?? pageBytesMax
    this.#upstream = parts.upstream
    this.#scope = parts.scope
    this.#kind = parts.kind ?? ''
    const { group, version } = parts.scope
    const apiVersion = `"apiVersion":"${group === '' ? version : `${group}/${version}`}",`
    const [opening, head] =
      this.#kind === '' ? ['{"apiVersion":"', `{${apiVersion}`] : ['{"kind":"', `{"kind":"${this.#kind}",${apiVersion}`]
    this.#opening = Buffer.from(opening)
    this.#head = Buffer.from(head)
  }

  /** Refuses what this interest cannot hold, whatever answers for the API server: nothing of it may be kept. */
  check(object: Buffer, { name, namespace }: Pick<Scan, 'name' | 'namespace'>): void {
    const { namespace: wanted } = this.#scope
    if (name === '') throw new Busy('an object without a name', 0)
    if (wanted !== '' && namespace !== wanted) throw new Busy(`an object of another namespace, "${namespace}"`, 0)
    // In a list a built-in says neither.
    if (!startsWith(object, this.#opening) || startsWith(object, this.#head)) return
    throw new Busy(`an object of another kind than ${this.#kind === '' ? this.#scope.resource : this.#kind}`, 0)
  }

  async page(
    { continueToken = '', exactly, objects = pageObjects }: PageQuery,
    signal: AbortSignal,
  ): Promise<ListPage> {
    const limit = Math.min(objects, this.#objectsMax)
    const query: Record<string, string> = { limit: String(limit) }
    if (continueToken !== '') query.continue = continueToken
    if (exactly !== undefined) {
      query.resourceVersion = String(exactly)
      query.resourceVersionMatch = 'Exact'
    }
    let bytes: Buffer
    const late = new AbortController()
    const cancel = this.#clock.setTimer(pageMsMax, () => late.abort())
    try {
      const asked = { query, headMsMax: listHeadMsMax, signal: AbortSignal.any([signal, late.signal]) }
      const answer = await this.#ask(asked)
      bytes = await readWhole(answer, this.#pageBytes)
    } catch (error) {
      if (late.signal.aborted) throw new Busy(`a page that has not come within ${pageMsMax / 60_000} minutes`, 0)
      if (!(error instanceof AnswerTooLarge)) throw error
      if (limit === 1) throw new TooLarge(`an object of more than ${this.#pageBytes} bytes`)
      this.#objectsMax = Math.ceil(limit / 8)
      return await this.page({ continueToken, objects, ...(exactly === undefined ? {} : { exactly }) }, signal)
    } finally {
      cancel()
    }
    const page = readListPage(bytes)
    if (this.#kind !== '' && page.kind !== `${this.#kind}List`)
      throw new Busy(`a list of another kind, ${page.kind}`, 0)
    return page
  }

  async watch(version: number, signal: AbortSignal): Promise<WatchStream> {
    const seconds = Math.floor(watchSecondsMin + Math.random() * watchSecondsSpread)
    const query = {
      watch: 'true',
      allowWatchBookmarks: 'true',
      resourceVersion: String(version),
      timeoutSeconds: String(seconds),
    }
    const closing = new AbortController()
    const close = () => {
      signal.removeEventListener('abort', close)
      closing.abort()
    }
    signal.addEventListener('abort', close)
    if (signal.aborted) close()
    try {
      const answer = await this.#ask({ query, headMsMax: watchHeadMsMax, signal: closing.signal })
      return { frames: new WatchFrames(answer), heardAt: () => answer.heardAt(), close }
    } catch (error) {
      close()
      throw error
    }
  }

  /** Names, uids and versions of some objects, in the order of their keys. */
  async identities(of: { part: string } | { key: string }, signal: AbortSignal): Promise<Identities> {
    const query: Record<string, string> = { limit: String(identitiesObjects) }
    if ('part' in of && of.part !== '') query.continue = of.part
    const scope = 'key' in of ? narrowed(this.#scope, placeOf(of.key)) : this.#scope
    const answer = await this.#ask({ scope, query, headMsMax: listHeadMsMax, accept: identitiesForm, signal })
    let bytes = identitiesBytesMin
    async function* counted(body: AsyncIterableIterator<Buffer>) {
      for await (const chunk of body) {
        bytes += chunk.length
        yield chunk
      }
    }
    const whole = await readWhole({ headers: answer.headers, body: counted(answer.body) }, this.#pageBytes)
    const { version, items, continueToken } = readListPage(whole)
    const entries = items.map((item): ObjectIdentity => {
      const { name, namespace, uidStart, resourceVersion } = scanObject(item)
      return { key: objectKey(namespace, name), uid: uidAt(item, uidStart), version: versionOf(resourceVersion) }
    })
    return { version, entries, next: continueToken, bytes }
  }

  async #ask(asked: {
    query: Record<string, string>
    headMsMax: number
    signal: AbortSignal
    scope?: Scope
    accept?: string
  }): Promise<UpstreamResponse> {
    const { query, headMsMax, signal, scope = this.#scope, accept = 'application/json' } = asked
    const answer = await this.#upstream.ask({
      method: 'GET',
      path: pathOf(scope, query),
      headers: { accept, 'accept-encoding': query.watch === undefined ? 'gzip' : 'identity' },
      identity: { kind: 'edge' },
      headMsMax,
      signal,
    })
    if (answer.status !== 200) throw await refusalOf(answer, this.#clock.now())
    return answer
  }
}

/** What the interest holds of one name: asked as the interest itself is, so that a caller that may read that may read this. */
function narrowed(scope: Scope, { namespace, name }: { namespace: string; name: string }): Scope {
  const named = { field: 'metadata.name', operator: '=', value: name } as const
  return { ...scope, namespace, fields: new FieldSelector([...scope.fields.requirements, named]) }
}

function placeOf(key: string): { namespace: string; name: string } {
  const slash = key.indexOf('/')
  return slash < 0 ? { namespace: '', name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) }
}

function startsWith(bytes: Buffer, head: Buffer): boolean {
  return bytes.length >= head.length && bytes.compare(head, 0, head.length, 0, head.length) === 0
}

/** Not a generator: an event on its way passes through each of these, and one costs a few promises more. */
class WatchFrames implements AsyncIterableIterator<readonly WatchFrame[]> {
  readonly #body: AsyncIterator<Buffer>
  readonly #reader = new FrameReader()

  constructor({ body }: UpstreamResponse) {
    this.#body = body[Symbol.asyncIterator]()
  }

  async next(): Promise<IteratorResult<readonly WatchFrame[]>> {
    for (;;) {
      const { value, done } = await this.#body.next()
      if (done === true) {
        this.#reader.end()
        return { value: undefined, done: true }
      }
      try {
        const frames = this.#reader.push(value)
        if (frames.length > 0) return { value: frames, done: false }
      } catch (error) {
        await this.return()
        throw error
      }
    }
  }

  async return(): Promise<IteratorResult<readonly WatchFrame[]>> {
    await this.#body.return?.()
    return { value: undefined, done: true }
  }

  [Symbol.asyncIterator](): this {
    return this
  }
}

type ErrorStatus = {
  code?: number
  message?: string
  metadata?: { continue?: string }
  details?: { retryAfterSeconds?: unknown; causes?: ({ reason?: string } | null)[] }
}

async function refusalOf(answer: UpstreamResponse, nowMs: number): Promise<Error> {
  const bytes = await readWhole(answer, errorBytesMax)
  return errorOf(answer.status, bytes, retryAfterMs(answer.headers['retry-after'], nowMs))
}

/** What a Status means for a list or watch, whether it came as an answer or as a frame. */
export function errorOf(code: number, bytes: Buffer, retryMs = 0): Error {
  let status: ErrorStatus = {}
  try {
    status = (JSON.parse(bytes.toString()) ?? {}) as ErrorStatus
  } catch {
    // A load balancer speaks HTML.
  }
  const message = typeof status.message === 'string' ? status.message : `HTTP ${code}`
  const causes = Array.isArray(status.details?.causes) ? status.details.causes : []
  if (causes.some((cause) => cause?.reason === 'ResourceVersionTooLarge')) return new Ahead(message)
  switch (code) {
    case 401:
    case 403:
    case 404:
    case 405:
      return new Refused(code, message)
    case 410:
      return new Expired(message, String(status.metadata?.continue ?? ''))
    default:
      return new Busy(message, Math.max(retryMs, retryAfterMs(status.details?.retryAfterSeconds, 0)))
  }
}

export function versionOf(text: string): number {
  const version = Number(text)
  if (!/^[1-9]\d*$/.test(text) || !Number.isSafeInteger(version)) throw new Error(`no resourceVersion: "${text}"`)
  return version
}

export function statusCode(object: Buffer): number {
  try {
    return Number((JSON.parse(object.toString()) as { code?: number }).code ?? 500)
  } catch {
    return 500
  }
}
