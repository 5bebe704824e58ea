/**
 * Asks the API server for documents in the edge's own name, so that what is kept is nobody's in particular, and puts good
 * answers on the shelf. However many want the same document at the same time, it is asked for once.
 */
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { Clock } from '../base/clock.ts'
import { type Answered, type Headers, Unreachable, type Upstream } from '../upstream/upstream.ts'
import { formOf, isAggregated } from './mediatype.ts'
import { etagOf, type Head, type Shelf, unpacked } from './shelf.ts'

type Wanted = {
  readonly place: string
  /** With the query; the place itself if not given. */
  readonly path?: string
  readonly accept: string
  readonly basis: string
  /** How long the head of the answer may take. */
  readonly headMsMax: number
  /** An answer that is not good replaces nothing. */
  readonly isGood?: (content: Buffer, form: string) => boolean
}

export type Fetched =
  | { readonly kind: 'held'; readonly head: Head; readonly changed: boolean }
  /** Anything but a good 200: too large is 413, a 200 that says nothing is 502. */
  | { readonly kind: 'refused'; readonly status: number }

/** 300 KiB, as much as gzipped OpenAPI v2, over a link of 40 kbit/s. */
const bodyMsMax = 60_000
/** As it comes: the largest known, OpenAPI v2 of a cluster with hundreds of CRDs, is 1 MiB gzipped and 12 MiB plain. */
const arrivingBytesMax = 16 * 1024 * 1024

const compress = promisify(gzip)

export class Fetcher {
  readonly #upstream: Pick<Upstream, 'ask'>
  readonly #shelf: Shelf
  readonly #clock: Clock
  readonly #underway = new Map<string, Promise<Fetched>>()

  constructor(parts: { upstream: Pick<Upstream, 'ask'>; shelf: Shelf; clock: Clock }) {
    this.#upstream = parts.upstream
    this.#shelf = parts.shelf
    this.#clock = parts.clock
  }

  /** Rejects with `Unreachable`. */
  fetch(wanted: Wanted): Promise<Fetched> {
    const key = `${wanted.path ?? wanted.place} ${wanted.accept}`
    let fetching = this.#underway.get(key)
    if (fetching === undefined) {
      fetching = this.#fetch(wanted).finally(() => this.#underway.delete(key))
      this.#underway.set(key, fetching)
    }
    return fetching
  }

  async #fetch(wanted: Wanted): Promise<Fetched> {
    const { place, path = place, accept, headMsMax } = wanted
    const held = this.#shelf.find(place, accept)
    // A document that is asked for by its hash is held or it is not: there is nothing to compare.
    const etag = path.includes('?') ? '' : etagOf(held)
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
      if (answered.status !== 200) {
        await answered.body.return?.()
        return { kind: 'refused', status: answered.status }
      }
      return await this.#take(answered, wanted)
    } catch (error) {
      if (ending.signal.aborted) throw new Unreachable(`${place} did not come to its end in time`, true)
      throw error
    } finally {
      cancel()
    }
  }

  /** What is held is still right, and belongs to the newest state of discovery. */
  async #again(held: Head, { accept, basis }: Wanted): Promise<Fetched> {
    if (held.basis === basis || isAggregated(held.form)) return { kind: 'held', head: held, changed: false }
    const body = await this.#shelf.body(held)
    if (body === undefined) return { kind: 'refused', status: 502 }
    const { head } = await this.#shelf.keep({ ...held, accept, basis, body })
    return { kind: 'held', head, changed: false }
  }

  async #take(answered: Answered, { place, accept, basis, isGood = isAnything }: Wanted): Promise<Fetched> {
    const came = await gathered(answered)
    if (came === undefined) return { kind: 'refused', status: 413 }
    const headers = endToEnd(answered.headers)
    const encoding = single(answered.headers['content-encoding'])
    if (encoding !== '' && encoding !== 'gzip') return { kind: 'refused', status: 502 }
    const gzipped = encoding === 'gzip'
    const form = formOf(single(answered.headers['content-type']), accept)
    const content = gzipped ? await unpacked(came).catch(() => undefined) : came
    if (content === undefined || !isGood(content, form)) return { kind: 'refused', status: 502 }
    const body = gzipped ? came : await compress(came)
    // Aggregated documents are discovery itself: their ETag says what state they are of.
    const of = isAggregated(form) ? '' : basis
    const { head, changed } = await this.#shelf.keep({ place, form, accept, headers, gzipped, basis: of, body })
    return { kind: 'held', head, changed }
  }
}

function isAnything(content: Buffer): boolean {
  return content.length > 0
}

/** The whole body; undefined if it is too long. */
async function gathered({ headers, body }: Answered): Promise<Buffer | undefined> {
  const chunks: Buffer[] = []
  let size = 0
  const announced = Number(single(headers['content-length']) || 0)
  if (announced <= arrivingBytesMax) {
    for await (const chunk of body) {
      size += chunk.length
      if (size > arrivingBytesMax) return undefined
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

function endToEnd(headers: Answered['headers']): Headers {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !passing.test(name)))
}

function single(header: string | readonly string[] | undefined): string {
  return typeof header === 'string' ? header : (header?.[0] ?? '')
}
