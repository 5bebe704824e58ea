/**
 * Asks the API server for documents in the edge's own name, so that what is kept is no caller's in particular, and puts good
 * answers into the document store, or its word that there is no such document. However many callers want the same one at
 * the same time, one question is under way.
 */
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { Clock } from '../../base/clock.ts'
import { isTold, type ToldSigns } from '../../upstream/told.ts'
import { type Headers, Unreachable, type Upstream, type UpstreamResponse } from '../../upstream/upstream.ts'
import { type DocumentHead, type DocumentStore, etagOf, unpacked } from './documentstore.ts'
import { formOf, isAggregated } from './mediatype.ts'
import { isRoot } from './place.ts'
import { signOfHead } from './signs.ts'

export type DocumentRequest = {
  readonly place: string
  /** With the query; the place itself if not given. */
  readonly path?: string
  readonly accept: string
  readonly basis: string
  /** An answer that is not good replaces nothing. */
  readonly isGood?: (content: Buffer, form: string) => boolean
}

/** `changed`: what was held before is replaced. */
export type Fetched =
  /** `body` came with this answer; where it is missing, what is held is still right. */
  | { readonly kind: 'held'; readonly head: DocumentHead; readonly changed: boolean; readonly body?: Buffer }
  /** Anything but a good 200: too large is 413, a 200 that says nothing is 502. */
  | { readonly kind: 'refused'; readonly status: number; readonly changed: boolean }

/** The head of an answer: OpenAPI takes seconds right after a start of the API server. Readers wait no longer than a read may. */
const headMsMax = 10_000
/** 300 KiB, as much as gzipped OpenAPI v2, over a link of 40 kbit/s. */
const bodyMsMax = 60_000
/** As it comes: the largest known, OpenAPI v2 of a cluster with hundreds of CRDs, is 1 MiB gzipped and 12 MiB plain. */
const arrivingBytesMax = 16 * 1024 * 1024
/** Bodies read at the same time: each may be packed and unpacked in memory, and callers can ask for one document in many forms. */
const bodiesMax = 8
/** Of a refusal: a sentence, or a Status. What is longer is kept without its body. */
const refusalBytesMax = 4 * 1024
/** These say that there is no such document; others say something about the request, the edge's rights, or the server. */
const goneStatuses = [404, 410]

const compress = promisify(gzip)

const badAnswer: Fetched = { kind: 'refused', status: 502, changed: false }
const tooLarge: Fetched = { kind: 'refused', status: 413, changed: false }

type Fetching = { readonly done: Promise<Fetched>; next: Promise<Fetched> | undefined }

export class Fetcher {
  readonly #upstream: Pick<Upstream, 'ask'>
  readonly #documentStore: DocumentStore
  readonly #clock: Clock
  readonly #told: ToldSigns | undefined
  readonly #signs = new WeakMap<DocumentHead, Promise<Buffer | undefined>>()
  readonly #underway = new Map<string, Fetching>()
  #bodies = 0
  /** Answers whose bodies wait for their turn, unread. */
  readonly #waiting: (() => void)[] = []

  constructor(parts: { upstream: Pick<Upstream, 'ask' | 'told'>; documentStore: DocumentStore; clock: Clock }) {
    this.#told = parts.upstream.told
    this.#upstream = parts.upstream
    this.#documentStore = parts.documentStore
    this.#clock = parts.clock
  }

  /** What the API server says, or was just asked. Rejects with `Unreachable`. */
  fetch(wanted: DocumentRequest): Promise<Fetched> {
    return this.#underway.get(keyOf(wanted))?.done ?? this.#begin(wanted)
  }

  /** For what is kept in step without a caller: what the hub says to be as it is held is not asked for. Rejects with `Unreachable`. */
  async look(wanted: DocumentRequest): Promise<Fetched> {
    const { place, accept } = wanted
    const held = this.#documentStore.find(place, accept)
    const said = isTold(place) ? this.#told?.of(place) : undefined
    if (held === undefined || said === undefined) return await this.fetch(wanted)
    return (await this.#signOf(held))?.equals(said) === true
      ? await this.#again(held, wanted)
      : await this.fetch(wanted)
  }

  /**
   * What the API server says from now on. A question under way may have been answered before this caller came: it waits for
   * the next one, and shares it with all callers that come meanwhile. Rejects with `Unreachable`.
   */
  fetchNow(wanted: DocumentRequest): Promise<Fetched> {
    const underway = this.#underway.get(keyOf(wanted))
    if (underway === undefined) return this.#begin(wanted)
    const again = () => this.fetch(wanted)
    underway.next ??= underway.done.then(again, again)
    return underway.next
  }

  #signOf(held: DocumentHead): Promise<Buffer | undefined> {
    let sign = this.#signs.get(held)
    if (sign === undefined) {
      sign = signOfHead(held, this.#documentStore)
      this.#signs.set(held, sign)
    }
    return sign
  }

  #begin(wanted: DocumentRequest): Promise<Fetched> {
    const key = keyOf(wanted)
    const done = this.#fetch(wanted).finally(() => this.#underway.delete(key))
    this.#underway.set(key, { done, next: undefined })
    return done
  }

  async #fetch(wanted: DocumentRequest): Promise<Fetched> {
    const { place, path = place, accept } = wanted
    const held = this.#documentStore.find(place, accept)
    const etag = etagOf(held)
    const ending = new AbortController()
    const cancel = this.#clock.setTimer(headMsMax + bodyMsMax, () => ending.abort())
    try {
      const headers = { accept, 'accept-encoding': 'gzip', ...(etag === '' ? {} : { 'if-none-match': etag }) }
      const identity = { kind: 'edge' } as const
      const { signal } = ending
      const answered = await this.#upstream.ask({ method: 'GET', path, headers, identity, signal, headMsMax })
      if (answered.status === 304 && held !== undefined) {
        await answered.body.return?.()
        return await this.#again(held, wanted)
      }
      if (answered.status !== 200) return await this.#refused(answered, wanted)
      return await this.#inTurn(() => this.#take(answered, wanted))
    } catch (error) {
      if (ending.signal.aborted) throw new Unreachable(`${place} did not come to its end in time`, true)
      throw error
    } finally {
      cancel()
    }
  }

  async #inTurn(read: () => Promise<Fetched>): Promise<Fetched> {
    if (this.#bodies < bodiesMax) this.#bodies++
    else await new Promise<void>((turn) => this.#waiting.push(turn))
    try {
      return await read()
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#bodies--
      else next()
    }
  }

  /** What is held is still right, and belongs to the newest state of discovery. */
  async #again(held: DocumentHead, { accept, basis }: DocumentRequest): Promise<Fetched> {
    if (held.basis === basis || isAggregated(held.form)) return { kind: 'held', head: held, changed: false }
    const body = await this.#documentStore.body(held)
    if (body === undefined) return badAnswer
    const { head } = await this.#documentStore.keep({ ...held, accept, basis, body })
    return { kind: 'held', head, changed: false }
  }

  async #take(
    answered: UpstreamResponse,
    { place, accept, basis, isGood = isAnything }: DocumentRequest,
  ): Promise<Fetched> {
    const came = await gathered(answered)
    if (came === undefined) return tooLarge
    const headers = endToEnd(answered.headers)
    const encoding = single(answered.headers['content-encoding'])
    if (encoding !== '' && encoding !== 'gzip') return badAnswer
    const gzipped = encoding === 'gzip'
    const form = formOf(single(answered.headers['content-type']), accept)
    const content = gzipped ? await unpacked(came).catch(() => undefined) : came
    if (content === undefined || !isGood(content, form)) return badAnswer
    const body = gzipped ? came : await compress(came)
    // Aggregated documents are discovery itself: their ETag says what state they are of.
    const of = isAggregated(form) ? '' : basis
    const { head, changed } = await this.#documentStore.keep({ place, form, accept, headers, gzipped, basis: of, body })
    return { kind: 'held', head, changed, body }
  }

  async #refused(answered: UpstreamResponse, { place }: DocumentRequest): Promise<Fetched> {
    const { status } = answered
    if (!goneStatuses.includes(status) || isRoot(place)) {
      await answered.body.return?.()
      return { kind: 'refused', status, changed: false }
    }
    const came = await gathered(answered, refusalBytesMax)
    const isPlain = single(answered.headers['content-encoding']) === ''
    const body = isPlain && came !== undefined ? came : Buffer.alloc(0)
    const changed = await this.#documentStore.refuse(place, { status, headers: endToEnd(answered.headers), body })
    return { kind: 'refused', status, changed }
  }
}

function keyOf({ place, path = place, accept }: DocumentRequest): string {
  return `${path} ${accept}`
}

function isAnything(content: Buffer): boolean {
  return content.length > 0
}

/** The whole body; undefined if it is too long. */
async function gathered({ headers, body }: UpstreamResponse, bytesMax = arrivingBytesMax): Promise<Buffer | undefined> {
  const chunks: Buffer[] = []
  let size = 0
  const announced = Number(single(headers['content-length']) || 0)
  if (announced <= bytesMax) {
    for await (const chunk of body) {
      size += chunk.length
      if (size > bytesMax) return undefined
      chunks.push(chunk)
    }
    return Buffer.concat(chunks)
  }
  await body.return?.()
  return undefined
}

/** What belongs to one answer, one connection or the way the body came. */
const passing =
  /^(date|audit-id|x-kubernetes-pf-.*|content-length|content-encoding|transfer-encoding|connection|keep-alive|trailer|upgrade|via|set-cookie|warning|:.*)$/

function endToEnd(headers: UpstreamResponse['headers']): Headers {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !passing.test(name)))
}

function single(header: string | readonly string[] | undefined): string {
  return typeof header === 'string' ? header : (header?.[0] ?? '')
}
