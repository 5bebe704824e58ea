/**
 * Documents of the API server that are not objects: discovery, OpenAPI, its version and the keys of its tokens. Mirrored
 * byte for byte, in the form that was asked for, with their own headers. While the API server is reachable each is what it
 * says now: it is asked, by the ETag of what is held, whenever a caller asks. Where its answer is late, and when it is gone,
 * a document is what it last said. The catalog of resources is read from them.
 */
import { randomUUID } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { Store } from '../../store/store.ts'
import { type Headers, Unreachable, type Upstream } from '../../upstream/upstream.ts'
import { DiscoveryMirror } from './discovery/discovery.ts'
import { type DiscoveredGroup, isGoodDocument } from './discovery/read.ts'
import { type DocumentHead, DocumentStore, etagOf, unpacked } from './documentstore.ts'
import { type DocumentRequest, type Fetched, Fetcher } from './fetcher.ts'
import { acceptCharactersMax, acceptsGzip, isUnchanged, normalAccept } from './mediatype.ts'
import { OpenApiMirror } from './openapi.ts'
import { indexPlace, isDiscovery, isHashed, placeOf, twinOf } from './place.ts'
import type { Refusal } from './refusals.ts'
import { SignedDocuments } from './signed.ts'

export type DocumentAnswer = {
  /** 200, 304, or the API server's last refusal. */
  readonly status: number
  readonly headers: Record<string, string | readonly string[]>
  readonly body: Buffer
  /** Why it is not what the API server says now, where that could be asked. */
  readonly warning?: string
}

export class CloudDocuments {
  readonly #documentStore: DocumentStore
  readonly #fetcher: Fetcher
  readonly #discovery: DiscoveryMirror
  readonly #openApi: OpenApiMirror | undefined
  /** What edges are told, where this is their hub's. */
  readonly #signed: SignedDocuments | undefined
  readonly #upstream: Pick<Upstream, 'ask' | 'reachability'>
  readonly #clock: Clock
  readonly #isCompressed: boolean
  /** Documents that a reader has waited for in vain: until the answer comes, others hear what is held at once. */
  readonly #late = new Set<string>()

  constructor(parts: {
    store: Pick<Store, 'commit' | 'records' | 'record'>
    upstream: Pick<Upstream, 'ask' | 'reachability' | 'told'>
    catalog: { adopt(groups: readonly DiscoveredGroup[]): void }
    clock: Clock
    log: Log
    random?: () => number
    heldBytesMax?: number
    /** OpenAPI is fetched before a caller asks for it. */
    isAhead?: boolean
    /**
     * Its callers are edges, to which the line is narrow: one that takes gzip gets it, also where the API server sent none, and what has
     * not changed is known by a sign.
     */
    isForEdges?: boolean
  }) {
    const {
      store,
      upstream,
      catalog,
      clock,
      log,
      random = Math.random,
      heldBytesMax,
      isAhead = false,
      isForEdges = false,
    } = parts
    this.#isCompressed = isForEdges
    this.#upstream = upstream
    this.#clock = clock
    const documentStore = new DocumentStore({ store, log, ...(heldBytesMax === undefined ? {} : { heldBytesMax }) })
    const fetcher = new Fetcher({ upstream, documentStore, clock })
    this.#documentStore = documentStore
    this.#fetcher = fetcher
    const { reachability, told } = upstream
    const keeping = { documentStore, fetcher, reachability, told, clock }
    this.#discovery = new DiscoveryMirror({ ...keeping, catalog, log, random })
    this.#openApi = isAhead ? new OpenApiMirror(keeping) : undefined
    this.#signed = isForEdges ? new SignedDocuments(keeping) : undefined
  }

  /** What was held before, and the catalog from it: without the network. */
  async load(): Promise<void> {
    await this.#documentStore.load()
    await this.#discovery.load()
  }

  /** Keeps discovery fresh until the signal, and OpenAPI where that is fetched ahead. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#discovery.run(signal), this.#openApi?.run(signal), this.#signed?.run(signal)])
  }

  /** By which edges see whether what they hold is the same (`upstream/told`); empty where this is for no edges. */
  get signs(): readonly Buffer[] {
    return this.#signed?.signs ?? []
  }

  observeSigns(listener: () => void): () => void {
    return this.#signed?.observe(listener) ?? (() => {})
  }

  /** Definitions or API services have changed. */
  refresh(): void {
    this.#discovery.refresh()
  }

  /** A caller asked for a resource that the catalog does not know. */
  seek(): void {
    this.#discovery.seek()
  }

  /**
   * For a caller who may read the path. `forward`: the API server has to say it (it refuses, redirects, or the path is no
   * document's). `unknown`: it cannot be reached, and nothing is held. Bodies of discovery are compact JSON; a caller
   * that wants them indented does that itself.
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
    const nearest = this.#documentStore.find(place, accept) ?? this.#nearest(place, accept)
    if (!this.#isReachable()) return (await this.#lastWord(place, nearest, headers)) ?? 'unknown'
    // A client that asks by a hash keeps the answer for good: another content is for clients that cannot have theirs.
    const held = hash === '' || etagOf(nearest) === `"${hash}"` ? nearest : undefined
    const said = await this.#ask(held !== undefined, {
      place,
      path: hash === '' ? place : `${path}?hash=${encodeURIComponent(hash)}`,
      accept,
      basis: this.#discovery.basisOf(place) ?? '',
      ...(isDiscovery(place) ? { isGood: isGoodDocument } : {}),
    })
    if (said.kind === 'refused' && isAboutRequest(said.status)) return 'forward'
    const head = said.kind === 'held' ? said.head : held
    const body = head === undefined ? undefined : (bodyOf(said) ?? (await this.#documentStore.body(head)))
    if (head === undefined || body === undefined) return this.#isReachable() ? 'forward' : 'unknown'
    const answer = await this.#respond(shownAt(place, head), body, headers)
    return said.kind === 'held' ? answer : { ...answer, warning: `served as last seen: ${whyOf(said)}` }
  }

  /** For the edge itself, as it was last seen: while the API server is there it is looked at, unless the hub says that it is the same. */
  async content(place: string, accept: string): Promise<Buffer | undefined> {
    const wanted = { place, accept, basis: '' }
    const looked = this.#isReachable() ? await this.#fetcher.look(wanted).catch(unlessFault) : undefined
    const head = looked?.kind === 'held' ? looked.head : this.#documentStore.find(place, accept)
    return head === undefined ? undefined : await this.#documentStore.content(head)
  }

  #isReachable(): boolean {
    return this.#upstream.reachability.state === 'reachable'
  }

  /** What the API server said last, if anything is known of it. */
  async #lastWord(
    place: string,
    held: DocumentHead | undefined,
    headers: Headers,
  ): Promise<DocumentAnswer | undefined> {
    const refusal = this.#documentStore.refusal(place)
    if (refusal !== undefined) return refused(refusal)
    const body = held === undefined ? undefined : await this.#documentStore.body(held)
    return held === undefined || body === undefined
      ? undefined
      : await this.#respond(shownAt(place, held), body, headers)
  }

  #respond(head: DocumentHead, body: Buffer, asked: Headers): Promise<DocumentAnswer> {
    return respond(this.#isCompressed ? { ...head, gzipped: true } : head, body, asked)
  }

  /** The form the API server gave for another header, if it has to do; for a hash also the document of any other. */
  #nearest(place: string, accept: string): DocumentHead | undefined {
    const twin = twinOf(place)
    return (
      this.#documentStore.nearest(place, accept) ??
      (twin === undefined ? undefined : this.#documentStore.nearest(twin, accept))
    )
  }

  /**
   * What the API server says now. A caller that can be shown what is held waits as long as a read may. That one document is
   * slow says nothing about the link (the API server makes OpenAPI anew when it is asked for): it is waited for behind the
   * answer, and no other caller waits for it meanwhile.
   */
  async #ask(hasOther: boolean, wanted: DocumentRequest): Promise<Said> {
    const key = `${wanted.path} ${wanted.accept}`
    const limitMs = Math.round(this.#upstream.reachability.limitMs)
    const late: Said = { kind: 'late', why: `the API server has not answered within ${limitMs} ms` }
    if (hasOther && this.#late.has(key)) return late
    const asking = this.#fetch(wanted)
    if (!hasOther) return asking
    const { promise, resolve } = Promise.withResolvers<Said>()
    const cancel = this.#clock.setTimer(limitMs, () => {
      this.#late.add(key)
      void asking.finally(() => this.#late.delete(key))
      resolve(late)
    })
    return Promise.race([asking.finally(cancel), promise])
  }

  /** Rejects only with what is a fault of ours. */
  async #fetch(wanted: DocumentRequest): Promise<Said> {
    try {
      const fetched = await this.#fetcher.fetchNow(wanted)
      if (isDiscovery(wanted.place) && fetched.changed) await this.#discovery.noticed()
      return fetched
    } catch (error) {
      if (!(error instanceof Unreachable)) throw error
      return { kind: 'late', why: error.message }
    }
  }
}

type Said = Fetched | { readonly kind: 'late'; readonly why: string }

function bodyOf(said: Said): Buffer | undefined {
  return said.kind === 'held' ? said.body : undefined
}

/** These the API server says about what was asked, and has to say itself; others about its own state, and there what is held does. */
function isAboutRequest(status: number): boolean {
  return status < 500 && status !== 408 && status !== 429
}

function whyOf(said: Exclude<Said, { kind: 'held' }>): string {
  return said.kind === 'late' ? said.why : `the API server answered ${said.status}`
}

function unlessFault(error: unknown): undefined {
  if (!(error instanceof Unreachable)) throw error
}

/** What is asked for without a hash is not kept for good, also where the document that was asked for by one stands in for it. */
function shownAt(place: string, head: DocumentHead): DocumentHead {
  if (head.place === place || twinOf(place) !== head.place || isHashed(place)) return head
  const { expires: _, ...headers } = head.headers
  return { ...head, headers: { ...headers, 'cache-control': 'no-cache, private' } }
}

/** Left out of a 304, as Go's file server does; aggregated discovery has none of them but the type. */
const ofBodies = new Set(['content-type', 'accept-ranges', 'last-modified'])

async function respond(head: DocumentHead, body: Buffer, asked: Headers): Promise<DocumentAnswer> {
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

function refused({ status, headers: kept, body }: Refusal): DocumentAnswer {
  const headers: DocumentAnswer['headers'] = { 'audit-id': randomUUID() }
  for (const [name, value] of Object.entries(kept)) if (value !== undefined) headers[name] = value
  headers['content-length'] = String(body.length)
  return { status, headers, body }
}

function single(header: string | readonly string[] | undefined): string | undefined {
  return typeof header === 'string' ? header : header?.join(', ')
}
