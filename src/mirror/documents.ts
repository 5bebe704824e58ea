/**
 * Documents of the API server that are not objects: discovery, OpenAPI, its version and the keys of its tokens. Mirrored
 * byte for byte, in the form that was asked for, with their own headers; served from here while they are fresh, and when
 * the cloud is gone. The catalog of resources is read from them.
 */
import { randomUUID } from 'node:crypto'
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Store } from '../store/store.ts'
import { type Headers, Unreachable, type Upstream } from '../upstream/upstream.ts'
import { Discovery } from './discovery.ts'
import { isDiscovery } from './discoveryheld.ts'
import { type DiscoveredGroup, isGoodDocument } from './discoveryread.ts'
import { Fetcher } from './fetcher.ts'
import { acceptCharactersMax, acceptsGzip, isUnchanged, normalAccept } from './mediatype.ts'
import { etagOf, type Head, Shelf, unpacked } from './shelf.ts'

export type DocumentAnswer = {
  readonly status: 200 | 304
  readonly headers: Record<string, string | readonly string[]>
  readonly body: Buffer
}

/** OpenAPI and the like are compared with the API server's at most this often each. */
const checkMsMin = 30_000
/** The index of OpenAPI v3 is small, and tells of a new definition's schema, which is published a moment after it is served. */
const indexCheckMsMin = 2_000
/** Nothing is held yet: what the API server may take for its answer. Its own OpenAPI takes seconds right after a start. */
const firstMsMax = 10_000
/** Checks remembered; one for each document, and nobody has more of them. */
const checksMax = 4096

type Check = { readonly at: number; readonly basis: string }

export class Documents {
  readonly #shelf: Shelf
  readonly #fetcher: Fetcher
  readonly #discovery: Discovery
  readonly #upstream: Pick<Upstream, 'ask' | 'reachability'>
  readonly #clock: Clock
  readonly #checks = new Map<string, Check>()

  constructor(parts: {
    store: Pick<Store, 'commit' | 'records' | 'record'>
    upstream: Pick<Upstream, 'ask' | 'reachability'>
    catalog: { adopt(groups: readonly DiscoveredGroup[]): void }
    clock: Clock
    log: Log
    random?: () => number
    heldBytesMax?: number
  }) {
    const { store, upstream, catalog, clock, log, random = Math.random, heldBytesMax } = parts
    this.#upstream = upstream
    this.#clock = clock
    this.#shelf = new Shelf({ store, log, ...(heldBytesMax === undefined ? {} : { heldBytesMax }) })
    this.#fetcher = new Fetcher({ upstream, shelf: this.#shelf, clock })
    const { reachability } = upstream
    this.#discovery = new Discovery({
      shelf: this.#shelf,
      fetcher: this.#fetcher,
      catalog,
      reachability,
      clock,
      log,
      random,
    })
  }

  /** What was held before, and the catalog from it: without the network. */
  async load(): Promise<void> {
    await this.#shelf.load()
    await this.#discovery.load()
  }

  /** Keeps discovery fresh until the signal. */
  run(signal: AbortSignal): Promise<void> {
    return this.#discovery.run(signal)
  }

  /** Definitions or API services have changed. */
  refresh(): void {
    this.#discovery.refresh()
  }

  /** Somebody asked for a resource that the catalog does not know. */
  seek(): void {
    this.#discovery.seek()
  }

  /**
   * For a caller who may read the path. `forward`: the API server has to say it (it refuses, redirects, or the path is no
   * document's). `unknown`: it cannot be reached, and nothing is held. Bodies of discovery are compact JSON; whoever wants
   * them indented does that himself.
   */
  async answer(
    path: string,
    query: { get(name: string): string | undefined },
    headers: Headers,
  ): Promise<DocumentAnswer | 'forward' | 'unknown'> {
    const hash = query.get('hash') ?? ''
    const place = placeOf(path, hash)
    // The index of OpenAPI v3 has one form whatever is asked.
    const accept = place === indexPlace ? '*/*' : normalAccept(headers.accept)
    if (place === undefined || accept.length > acceptCharactersMax) return this.#isReachable() ? 'forward' : 'unknown'
    if (isDiscovery(place)) await this.#discovery.settled()
    let head = this.#shelf.find(place, accept)
    if (this.#isReachable() && !(head !== undefined && this.#isFresh(head, hash))) {
      const renewed = await this.#renew({ place, path, hash, accept, held: head })
      if (renewed === 'forward') return renewed
      head = renewed
    }
    head ??= this.#nearest(place, accept)
    const body = head === undefined ? undefined : await this.#shelf.body(head)
    if (head !== undefined && body !== undefined) return respond(head, body, headers)
    return this.#isReachable() ? 'forward' : 'unknown'
  }

  #isReachable(): boolean {
    return this.#upstream.reachability.state === 'reachable'
  }

  #isFresh(head: Head, hash: string): boolean {
    if (hash !== '') return etagOf(head) === `"${hash}"`
    if (isDiscovery(head.place) && this.#discovery.isFresh(head)) return true
    const check = this.#checks.get(checkKey(head))
    const everyMs = head.place === indexPlace ? indexCheckMsMin : checkMsMin
    const recent = check !== undefined && this.#clock.steady() - check.at < everyMs
    return recent && check.basis === this.#basisOf(head.place)
  }

  /** Hidden behind no cache: of a place that discovery does not name, nothing held is fresh. */
  #basisOf(place: string): string {
    return isDiscovery(place) ? (this.#discovery.basisOf(place) ?? 'unlisted') : ''
  }

  /** The form the API server gave for another header, if it has to do; for a hash also the document of any other. */
  #nearest(place: string, accept: string): Head | undefined {
    const found = this.#shelf.nearest(place, accept)
    if (found !== undefined || !place.startsWith('/openapi/v3/')) return found
    const path = place.replace(hashed, '')
    return this.#shelf.nearest(place === path ? `${path}${hashed}` : path, accept)
  }

  async #renew(asked: {
    place: string
    path: string
    hash: string
    accept: string
    held: Head | undefined
  }): Promise<Head | undefined | 'forward'> {
    const { place, path, hash, accept } = asked
    const held = asked.held ?? this.#nearest(place, accept)
    const { reachability } = this.#upstream
    const headMsMax = held === undefined ? firstMsMax : reachability.limitMs
    const basis = this.#basisOf(place)
    const fetching = this.#fetcher.fetch({
      place,
      path: hash === '' ? place : `${path}?hash=${encodeURIComponent(hash)}`,
      accept,
      basis,
      headMsMax,
      ...(isDiscovery(place) ? { isGood: isGoodDocument } : {}),
    })
    const outcome = fetching.then(
      (fetched) => {
        this.#checked(fetched.kind === 'held' ? fetched.head : asked.held, basis)
        if (fetched.kind === 'held') return fetched.head
        // These the API server says about the request; others about itself, and there what is held does.
        const own = held === undefined || [301, 404, 406].includes(fetched.status)
        return own ? 'forward' : held
      },
      (error) => {
        if (!(error instanceof Unreachable)) throw error
        reachability.suspect(`${place}: ${error.message}`)
        return held
      },
    )
    if (held === undefined) return outcome
    // A long body over a thin link: it is awaited behind the answer.
    const { promise, resolve } = Promise.withResolvers<Head>()
    const cancel = this.#clock.setTimer(headMsMax, () => resolve(held))
    return Promise.race([outcome.finally(cancel), promise])
  }

  #checked(head: Head | undefined, basis: string): void {
    if (head === undefined) return
    if (this.#checks.size >= checksMax) this.#checks.clear()
    this.#checks.set(checkKey(head), { at: this.#clock.steady(), basis })
  }
}

const indexPlace = '/openapi/v3'
const hashed = '?hash'
const others = new Set(['/openapi/v2', indexPlace, '/version', '/openid/v1/jwks', '/.well-known/openid-configuration'])

/** Documents are asked for in the edge's own name: only by what nobody on the way could take for another path. */
const plainPath = /^(\/[\w-][\w.-]*|\/\.well-known)+\/?$/

/** Where a document is kept, undefined if it is none. Queries other than the hash (`timeout`, `pretty`) change nothing. */
function placeOf(path: string, hash: string): string | undefined {
  if (!plainPath.test(path)) return undefined
  if (path.startsWith('/openapi/v3/')) return hash === '' ? path : `${path}${hashed}`
  const place = path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path
  if (isDiscovery(place)) return place
  return others.has(place) && !(place !== path && place.startsWith('/openapi/')) ? place : undefined
}

/** Whether a path is one that `Documents.answer` speaks for. */
export function isDocument(path: string): boolean {
  return placeOf(path, '') !== undefined
}

function checkKey({ place, form }: Head): string {
  return `${place} ${form}`
}

/** Left out of a 304, as Go's file server does; aggregated discovery has none of them but the type. */
const ofBodies = new Set(['content-type', 'accept-ranges', 'last-modified'])

async function respond(head: Head, body: Buffer, asked: Headers): Promise<DocumentAnswer> {
  const headers: DocumentAnswer['headers'] = { 'audit-id': randomUUID() }
  const etag = etagOf(head)
  const unchanged = isUnchanged(single(asked['if-none-match']), etag, isDiscovery(head.place))
  for (const [name, value] of Object.entries(head.headers)) {
    if (value !== undefined && !(unchanged && ofBodies.has(name))) headers[name] = value
  }
  if (unchanged) return { status: 304, headers, body: Buffer.alloc(0) }
  const gzipped = head.gzipped && acceptsGzip(asked['accept-encoding'])
  const bytes = gzipped ? body : await unpacked(body)
  if (gzipped) headers['content-encoding'] = 'gzip'
  headers['content-length'] = String(bytes.length)
  return { status: 200, headers, body: bytes }
}

function single(header: string | readonly string[] | undefined): string | undefined {
  return typeof header === 'string' ? header : header?.join(', ')
}
