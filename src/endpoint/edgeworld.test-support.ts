/**
 * A whole edge without sockets: its endpoint over a memory store, in front of a model API server that lists and watches, knows
 * who may do what, and answers by script where a test wants it to. Time passes only as tests say.
 */
import assert from 'node:assert/strict'
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { FakeCloud } from '../access/access.test-support.ts'
import { type OpenAccess, openAccess } from '../access/open.ts'
import { confirmRefusal, reviewRead } from '../app/confirm.ts'
import { tellTargets } from '../app/mirrortargets.ts'
import { Misconfigured } from '../app/misconfigured.ts'
import { NodeNeeds } from '../app/node.ts'
import type { MirrorTarget } from '../app/optionkinds.ts'
import { OwnNode } from '../app/ownnode.ts'
import { Roles, roleInterests } from '../app/roles.ts'
import { holdWanted, releaseUnwanted } from '../app/standing.ts'
import { statusOf } from '../app/statusdocument.ts'
import { type FakeClock, fakeClock } from '../base/fakeclock.test-support.ts'
import { createLog } from '../base/log.ts'
import { MirrorCopy } from '../cache/mirrorcopy.ts'
import { ApiServer } from '../mirror/apiserver.test-support.ts'
import { Contact } from '../mirror/contact.ts'
import { CloudCatalog } from '../mirror/documents/catalog.ts'
import { Cloud as DocumentCloud } from '../mirror/documents/cloud.test-support.ts'
import { CloudDocuments } from '../mirror/documents/documents.ts'
import { isDocument } from '../mirror/documents/place.ts'
import { type Interest, kindOfName, resourceOfName } from '../mirror/interest.ts'
import { Interests } from '../mirror/interests.ts'
import { openMemory } from '../store/memory.ts'
import type { Store } from '../store/store.ts'
import { followDirect } from '../upstream/follow/direct.ts'
import { isBalancer } from '../upstream/probe.ts'
import {
  type Connected,
  Unreachable,
  type Upstream,
  type UpstreamRequest,
  type UpstreamResponse,
} from '../upstream/upstream.ts'
import { CloudAccess } from './cloudaccess.ts'
import { Measures } from './documents/measures.ts'
import { StatusPath } from './documents/status.ts'
import type { Peer, Response } from './endpoint.ts'
import { Forwarder } from './forward/forwarder.ts'
import { ReadYourWrites } from './forward/readyourwrites.ts'
import { RefusedWrites } from './forward/refusedwrites.ts'
import { Tokens } from './forward/tokens.ts'
import { Front } from './request/mirror/front.ts'
import { MirrorAnswers } from './request/mirror/mirror.ts'
import { MirrorReads } from './request/mirror/reads.ts'
import { Endpoint } from './request/pipeline.ts'
import { type InCluster, Views } from './views/views.ts'

const kinds: Record<string, string> = { pods: 'Pod', configmaps: 'ConfigMap', nodes: 'Node' }
const objectPath = /^\/api\/v1(?:\/namespaces\/([^/]+))?\/(pods|configmaps|nodes)\/([^/]+)$/

type DiscoveredGroup = {
  metadata?: { name?: string }
  versions: { version: string; freshness: string; resources: object[] }[]
}

/** What a test answers instead of the model; `hang` is an answer that never comes. */
export type Scripted = UpstreamResponse | 'hang' | undefined

/** Asks the right one of three: the model for objects, the recorded documents, the judge for reviews. */
export class EdgeCloud implements Upstream {
  readonly clock: FakeClock
  readonly server: ApiServer
  readonly documents: DocumentCloud
  readonly judge = new FakeCloud()
  readonly reachability: ApiServer['reachability']
  keepsAdministrator = false
  /** As a hub speaks for callers with certificates. */
  speaksFor?: NonNullable<Upstream['speaksFor']>
  /** What came in another name than the edge's, and all that a script may look at. */
  readonly asked: UpstreamRequest[] = []
  readonly connects: UpstreamRequest[] = []
  script: (asked: UpstreamRequest) => Scripted | Promise<Scripted> = () => undefined
  connectAs: (asked: UpstreamRequest) => Connected | Promise<Connected> = () => {
    throw new Unreachable('no upgrades here', false)
  }

  constructor(clock: FakeClock = fakeClock()) {
    this.clock = clock
    this.server = new ApiServer({ clock })
    this.documents = new DocumentCloud(clock)
    this.reachability = this.server.reachability
    this.publish('', 'v1', { resource: 'configmaps', kind: 'ConfigMap', namespaced: true })
    this.publish('', 'v1', { resource: 'serviceaccounts', kind: 'ServiceAccount', namespaced: true, below: ['token'] })
    // The edge itself: reads everything.
    this.judge.users.set('', { name: 'edge', uid: 'e', groups: ['system:authenticated'] })
  }

  /** Discovery names one more resource from now on, with what can be created below it. */
  publish(
    group: string,
    version: string,
    wish: { resource: string; kind: string; namespaced: boolean; below?: readonly string[] },
  ): void {
    const document = this.documents.document(group === '' ? '/api' : '/apis', 'aggregated')
    const found = JSON.parse(document.body) as { items: DiscoveredGroup[] }
    const isIt = ({ metadata }: DiscoveredGroup) => (metadata?.name ?? '') === group
    if (!found.items.some(isIt)) found.items.push({ metadata: { name: group }, versions: [] })
    const { versions } = found.items.find(isIt) as DiscoveredGroup
    if (!versions.some((one) => one.version === version))
      versions.push({ version, freshness: 'Current', resources: [] })
    const { resource, kind, namespaced, below = [] } = wish
    const responseKind = { group, version, kind }
    versions
      .find((one) => one.version === version)
      ?.resources.push({
        resource,
        responseKind,
        subresources: below.map((subresource) => ({ subresource, responseKind, verbs: ['create'] })),
        scope: namespaced ? 'Namespaced' : 'Cluster',
        singularResource: kind.toLowerCase(),
        verbs: ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'],
      })
    document.body = JSON.stringify(found)
    document.headers.etag = `"${resource} ${document.headers.etag?.length}"`
  }

  /** What was passed on, of one method and path. */
  passed(method: string, path: string): UpstreamRequest[] {
    return this.asked.filter((one) => one.method === method && one.path === path)
  }

  async ask(asked: UpstreamRequest): Promise<UpstreamResponse> {
    if (this.reachability.state === 'unreachable') throw new Unreachable('connection refused', false)
    this.asked.push(asked)
    const scripted = await this.script(asked)
    if (scripted === 'hang') return await this.#never(asked)
    if (scripted !== undefined) {
      // As upstreams do.
      if (isBalancer(scripted)) this.reachability.suspect()
      return scripted
    }
    const [path = ''] = asked.path.split('?')
    if (/\/(self)?subject(access)?reviews$/.test(path)) return await this.judge.ask(asked)
    if (isDocument(path)) return await this.documents.ask({ ...asked, identity: { kind: 'edge' } })
    const [, namespace = '', resource = '', name = ''] = objectPath.exec(path) ?? []
    if (name === '') return await this.server.ask(asked)
    const stored = this.server.get(resource, namespace === '' ? name : `${namespace}/${name}`)
    if (stored === undefined) return answered(404, statusText(404, `${resource} "${name}" not found`))
    return answered(200, objectText(resource, stored.text))
  }

  #never({ headMsMax, signal }: UpstreamRequest): Promise<never> {
    return new Promise((_, reject) => {
      const give = (why: string) => () => reject(new Unreachable(why, true))
      if (headMsMax !== undefined) this.clock.setTimer(headMsMax, give(`no answer within ${headMsMax} ms`))
      signal?.addEventListener('abort', give('given up'))
    })
  }

  async connect(asked: UpstreamRequest): Promise<Connected> {
    this.connects.push(asked)
    return await this.connectAs(asked)
  }

  addresses(): { url: string; current: boolean; why: string }[] {
    return [{ url: 'https://cloud', current: true, why: 'in use' }]
  }

  async run(): Promise<void> {}
}

export function answered(
  status: number,
  body: string | Buffer | readonly Buffer[],
  headers: Record<string, string | readonly string[]> = { 'content-type': 'application/json' },
): UpstreamResponse {
  const pieces = typeof body === 'string' || Buffer.isBuffer(body) ? [Buffer.from(body)] : body
  const stream = async function* () {
    yield* pieces
  }
  return { status, headers, body: stream(), heardAt: () => 0 }
}

/** As the API server answers a request for one object. */
export function objectText(resource: string, listed: string): string {
  return `{"kind":"${kinds[resource]}","apiVersion":"v1",${listed.slice(1)}\n`
}

export function statusText(code: number, message: string): string {
  return JSON.stringify({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, code })
}

export type Answer = {
  readonly status: number
  readonly headers: Response['headers']
  readonly text: string
  readonly json: any
  readonly passedThrough: boolean
}

export type Asking = {
  readonly token?: string
  readonly peer?: Peer
  readonly headers?: Record<string, string>
  /** Names and values in turn, where they say more than `headers`. */
  readonly rawHeaders?: readonly string[]
  readonly body?: string | Buffer | object
  readonly gone?: AbortSignal
}

/** The machine's administrator. */
export const admin: Peer = {
  certificate: { name: 'ake-admin', organizations: [], issuedBy: 'own', expiresMs: Number.MAX_SAFE_INTEGER },
}

export const aliceToken = 'alice-token'
const mapped = new Set(['system:node:n1'])

type WorldParts = {
  cloud?: EdgeCloud
  store?: Store
  wanted?: readonly MirrorTarget[]
  node?: string | undefined
  /** What its pods may name. */
  namesMax?: number
  /** How it follows; directly where nothing is said. */
  follow?: Parameters<typeof Interests.open>[0]['follow']
  /** How pods find this edge: shown to its kubelet, and to kube-proxy. */
  inCluster?: InCluster
}

export class EdgeWorld {
  /** Why a policy lets it answer nothing any more. */
  unserved: string | undefined
  readonly cloud: EdgeCloud
  readonly store: Store
  readonly lines: string[] = []
  /** The cloud's, compared with what is known of Kubernetes here. */
  readonly release = { isLater: false, minor: 36 }
  endpoint!: Endpoint
  interests!: Interests
  documents!: CloudDocuments
  catalog!: CloudCatalog
  copy!: MirrorCopy
  access!: OpenAccess
  measures!: Measures
  contact!: Contact
  needs!: NodeNeeds
  #ending = new AbortController()
  #running: Promise<unknown> = Promise.resolve()
  wanted: readonly MirrorTarget[]
  readonly #log = createLog({ level: 'debug', write: (line) => this.lines.push(line) })
  readonly misconfigured = new Misconfigured({ log: this.#log })
  readonly #namesMax: number | undefined
  readonly #follow: WorldParts['follow']
  /** The one it runs on from its next start, if any. */
  node: string | undefined
  inCluster: InCluster
  views!: Views

  constructor(parts: WorldParts) {
    this.cloud = parts.cloud ?? new EdgeCloud()
    this.store = parts.store ?? openMemory({ historyBytesMax: 1 << 24 })
    this.wanted = parts.wanted ?? []
    this.node = parts.node
    this.#namesMax = parts.namesMax
    this.inCluster = parts.inCluster ?? {}
    this.#follow = parts.follow
  }

  /** Opened and, unless the cloud is away, with its discovery read. Alice may do everything. */
  static async open(parts: WorldParts = {}): Promise<EdgeWorld> {
    const world = new EdgeWorld(parts)
    world.cloud.judge.users.set(aliceToken, { name: 'alice', uid: 'u-1', groups: ['devs'] })
    await world.start()
    return world
  }

  async start({ waits = true }: { waits?: boolean } = {}): Promise<void> {
    const { cloud: upstream, store } = this
    const { clock } = upstream
    const log = this.#log
    this.catalog = new CloudCatalog()
    const { catalog } = this
    this.documents = new CloudDocuments({ store, upstream, catalog, clock, log, random: () => 0.5 })
    const { documents } = this
    const find = (group: string, version: string, resource: string) => catalog.find(group, version, resource)
    const confirm = confirmRefusal({ upstream, catalog })
    const direct = () => followDirect({ upstream, limits: { objects: 10_000, bytes: 1 << 28 }, clock })
    const follow = this.#follow ?? direct()
    this.interests = await Interests.open({ store, upstream, follow, clock, log, find, confirm })
    const { interests } = this
    const { planOf, lostOf } = interests
    this.copy = await MirrorCopy.open({ store, clock, log, planOf, lostOf, resourceOf: resourceOfName })
    this.access = await openAccess({ upstream, records: store, clock, log })
    await documents.load()
    interests.attach(this.copy)
    const { access, tokens: keeper, watches, changes, evaluation, nowMs } = this.access
    holdWanted({ interests, catalog, documents, keeper, wanted: this.wanted, log })
    tellTargets({ catalog, wanted: this.wanted, tell: this.misconfigured.tell })
    const mayRead = (interest: Interest) => reviewRead(interest, { upstream, by: 'edge' })
    const roles = new Roles({ interests, catalog, upstream, changes, evaluation, clock, mayRead })
    const ofNode = { node: this.node, namesMax: this.#namesMax }
    const needs = new NodeNeeds({ interests, catalog, ...ofNode, clock, log })
    this.needs = needs
    const { node, release } = this
    if (node !== undefined) {
      const { reachability } = upstream
      const changed = () => void evaluation.revision++
      evaluation.judgeNodesBy(new OwnNode({ interests, catalog, release, reachability, node, clock, changed }))
    }
    releaseUnwanted({ interests, catalog, wanted: this.wanted, others: () => [...roleInterests, ...needs.names] })
    catalog.observe(() => interests.replan())
    const { reachability } = upstream
    const refusedWrites = new RefusedWrites({ clock, reachability, catalog })
    const more = () => refusedWrites.figures()
    const measures = new Measures({ copy: this.copy, catalog, store, kindOf: kindOfName, more })
    this.measures = measures
    this.contact = await Contact.open({ store, interests, reachability, clock, nowMs })
    const { contact } = this
    const front = new Front({ interests, upstream, clock, contact })
    const readYourWrites = new ReadYourWrites({ interests, upstream, clock })
    const asked = new CloudAccess({
      ...{ access, nowMs, reachability },
      standingOf: ({ name, uids }) => (mapped.has(name) ? 'credential' : uids === undefined ? 'stranger' : 'named'),
    })
    const judging = { access, authentication: asked, authorization: asked, catalog, clock, upstream }
    const tokens = new Tokens({ ...judging, keeper, nowMs })
    const forwarder = new Forwarder({
      ...judging,
      interests,
      readYourWrites,
      refusedWrites,
      reviews: { access, clock, log },
      tokens,
    })
    const parts = { ...judging, forwarder }
    const { copy } = this
    this.views = new Views({
      kubelets: ['system:node:n1'],
      proxies: ['system:kube-proxy'],
      shown: () => this.inCluster,
      stored: await store.records('view'),
      records: { write: (records) => void store.commit({ changes: [], records, synced: false }) },
      newest: () => Math.max(0, ...[...copy.caches.values()].map(({ version }) => version)),
      clock,
    })
    const reading = new MirrorReads({ ...parts, watches, front, readYourWrites, release, views: this.views })
    const status = new StatusPath(() => statusOf({ upstream, interests, copy, store, contact, refusedWrites }))
    const unserved = () => this.unserved
    const answers = new MirrorAnswers({ ...parts, reading, own: [measures, status], mirrored: documents, unserved })
    this.endpoint = new Endpoint({ ...parts, answering: answers, beyond: answers, measures, log })
    this.#ending = new AbortController()
    const { signal } = this.#ending
    const { run } = this.access
    const loops = [interests, documents, copy, roles, needs, contact, this.views].map((one) => one.run(signal))
    this.#running = Promise.all([...loops, run(signal)])
    if (!waits || upstream.reachability.state === 'unreachable') return
    await this.until(() => catalog.find('', 'v1', 'pods') !== undefined)
  }

  async stop(): Promise<void> {
    this.#ending.abort()
    await settle()
    this.cloud.clock.advance(10_000)
    await this.#running
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  /** The process ends in order and starts again over the same store. */
  async restart(): Promise<void> {
    await this.stop()
    this.cloud.reachability.restarted()
    await this.start()
  }

  response(method: string, url: string, asking: Asking = {}): Promise<Response> {
    const { token, peer = {}, headers = {}, rawHeaders = Object.entries(headers).flat(), body, gone } = asking
    const isRaw = typeof body === 'string' || Buffer.isBuffer(body)
    const bytes = body === undefined ? Buffer.alloc(0) : Buffer.from(isRaw ? body : JSON.stringify(body))
    const stream = async function* () {
      yield bytes
    }
    const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` }
    return this.endpoint.handle({
      method,
      url,
      headers: { ...authorization, ...(body === undefined || isRaw ? {} : json), ...headers },
      rawHeaders,
      hasBody: body !== undefined,
      body: async () => bytes,
      stream,
      peer,
      ...(gone === undefined ? {} : { gone: () => gone }),
    })
  }

  async ask(method: string, url: string, asking: Asking = {}): Promise<Answer> {
    const { status, headers, body, passedThrough = false } = await this.response(method, url, asking)
    const text = (await whole(body)).toString('latin1')
    const isJson = String(headers['content-type']).startsWith('application/json')
    return { status, headers, text, passedThrough, json: isJson ? JSON.parse(text) : undefined }
  }

  /** In Alice's name, who may do everything unless a test says otherwise. */
  get(url: string, headers: Record<string, string> = {}): Promise<Answer> {
    return this.ask('GET', url, { token: aliceToken, headers })
  }

  /** An answer that is not there yet: `done` tells whether it is. */
  later(method: string, url: string, asking: Asking = { token: aliceToken }) {
    const state = { done: false, answer: this.ask(method, url, asking) }
    const end = () => {
      state.done = true
    }
    void state.answer.then(end, end)
    return state
  }

  async pass(ms: number): Promise<void> {
    const steps = Math.max(1, Math.ceil(ms / 500))
    await settle()
    for (let step = 0; step < steps; step++) {
      this.cloud.clock.advance(ms / steps)
      await settle()
    }
  }

  async until(holds: () => boolean, seconds = 60): Promise<void> {
    await settle()
    for (let step = 0; step < seconds * 10 && !holds(); step++) {
      await this.pass(100)
      // Compression runs beside the loop: it gets a moment of real time too.
      if (!holds()) await pause(1)
    }
    assert.ok(holds(), 'it never came to that')
  }

  /** Everything of a resource is asked for and synced. */
  async synced(resource: string, namespace = ''): Promise<void> {
    const known = this.catalog.find('', 'v1', resource)
    assert.ok(known)
    const path = namespace === '' ? `/api/v1/${resource}` : `/api/v1/namespaces/${namespace}/${resource}`
    const listing = this.later('GET', `${path}?resourceVersion=0`)
    await this.until(() => listing.done)
    assert.equal((await listing.answer).status, 200)
    // Its watch is up too: what happens from here on comes by it.
    await this.until(() => [...this.cloud.server.watches].some((watch) => watch.resource === resource))
  }
}

const json = { 'content-type': 'application/json' }

/** Lets everything that waits for nothing but its turn do its work. */
export async function settle(turns = 12): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await nextTurn()
}

export async function whole(body: Response['body']): Promise<Buffer> {
  if (Buffer.isBuffer(body)) return body
  const parts: Buffer[] = []
  for await (const part of body) parts.push(part)
  return Buffer.concat(parts)
}

/** The text of every warning of an answer. */
export function warningsOf({ headers }: Pick<Answer, 'headers'>): string[] {
  const { warning = [] } = headers
  return typeof warning === 'string' ? [warning] : [...warning]
}
