/**
 * A model of kube-apiserver over etcd, in memory: one counter for everything, a log that is compacted, lists in pages, watches
 * with selectors. It answers as an `Upstream`, and as badly as a test wants: `fault` decides what happens to each request.
 */
import { type FakeClock, fakeClock } from '../base/fakeclock.test-support.ts'
import { decodeContinue, encodeContinue } from '../kube/continue.ts'
import { parseFieldSelector } from '../kube/fieldselector.ts'
import { parseLabelSelector } from '../kube/selector.ts'
import { expired, failure, type Status, StatusError, tooLargeResourceVersion } from '../kube/status.ts'
import {
  type Connected,
  Unreachable,
  type Upstream,
  type UpstreamRequest,
  type UpstreamResponse,
} from '../upstream/upstream.ts'
import { Body, Switch } from './line.test-support.ts'

type Thing = {
  readonly value?: string
  readonly labels?: Record<string, string>
  readonly node?: string
  /** What stands there besides the node. */
  readonly spec?: object
  readonly status?: object
  /** What else is in it. */
  readonly more?: object
}

type Stored = {
  readonly key: string
  readonly uid: string
  readonly version: number
  readonly thing: Thing
  /** As a list prints it. */
  readonly text: string
}

type Change = {
  readonly version: number
  readonly resource: string
  readonly key: string
  readonly before: Stored | undefined
  readonly after: Stored | undefined
}

export type Fault =
  /** The connection does not come about. */
  | { readonly kind: 'refuse' }
  /** `retryAfter` as the header has it, and as a Status has it where it is a number. */
  | { readonly kind: 'status'; readonly code: number; readonly retryAfter?: number | string }
  /** 200 and this, whatever was asked for; then the end, or silence. */
  | { readonly kind: 'text'; readonly text: string; readonly open?: boolean }
  /** The answer breaks off after so many bytes. */
  | { readonly kind: 'cut'; readonly after: number }
  | { readonly kind: 'slow'; readonly ms: number }

export type ServerRequest = {
  readonly what: 'list' | 'page' | 'probe' | 'watch' | 'identities'
  readonly resource: string
  readonly path: string
  readonly query: URLSearchParams
}

type Select = (stored: Stored) => boolean

const kinds: Record<string, string> = {
  serviceaccounts: 'ServiceAccount',
  pods: 'Pod',
  configmaps: 'ConfigMap',
  secrets: 'Secret',
  nodes: 'Node',
  namespaces: 'Namespace',
  services: 'Service',
  persistentvolumeclaims: 'PersistentVolumeClaim',
  persistentvolumes: 'PersistentVolume',
  csidrivers: 'CSIDriver',
  volumeattachments: 'VolumeAttachment',
  endpointslices: 'EndpointSlice',
  roles: 'Role',
  clusterroles: 'ClusterRole',
  rolebindings: 'RoleBinding',
  clusterrolebindings: 'ClusterRoleBinding',
  deployments: 'Deployment',
  oxen: 'Ox',
  customresourcedefinitions: 'CustomResourceDefinition',
}

export class ApiServer implements Upstream {
  readonly clock: FakeClock
  readonly reachability: Switch
  /** Random numbers from 0 up to, not including, `below`. */
  readonly #random: (below: number) => number
  #log: Change[] = []
  /** Objects by resource as they stood before the log. */
  #before = new Map<string, Stored>()
  /** By resource and key, where the log has come to. */
  #now = new Map<string, Map<string, Stored>>()
  #uids = 0
  readonly #uidsBegin: string
  version = 1
  /** What happened before this version is forgotten. */
  compacted = 0
  /** No page has more objects, whatever was asked for. */
  pageMax = 500
  fault: (request: ServerRequest) => Fault | undefined = () => undefined
  readonly requests: ServerRequest[] = []
  readonly watches = new Set<Watch>()
  /** Everything that any list or frame could ever have shown. */
  readonly ever = new Set<string>()
  /** How often a watch or a token was too old. */
  expiries = 0

  constructor(parts: { clock?: FakeClock; random?: (below: number) => number; uidsBegin?: string } = {}) {
    this.#uidsBegin = parts.uidsBegin ?? 'u'
    this.clock = parts.clock ?? fakeClock()
    this.reachability = new Switch(this.clock)
    this.#random = parts.random ?? (() => 0)
  }

  /** From 0 up to, not including, 1. */
  readonly random = () => this.#random(1 << 16) / (1 << 16)

  /** Creates or changes; answers the version. */
  put(resource: string, key: string, thing: Thing = {}): number {
    const before = this.get(resource, key)
    const version = ++this.version
    const uid = before?.uid ?? `${this.#uidsBegin}${++this.#uids}`
    const text = textOf({ key, uid, version, thing })
    this.ever.add(text)
    this.#change({ version, resource, key, before, after: { key, uid, version, thing, text } })
    return version
  }

  remove(resource: string, key: string): number {
    const before = this.get(resource, key)
    if (before === undefined) return this.version
    this.#change({ version: ++this.version, resource, key, before, after: undefined })
    return this.version
  }

  #change(change: Change): void {
    this.#log.push(change)
    const { resource, key, after } = change
    const state = this.#stateNow(resource)
    if (after === undefined) state.delete(key)
    else state.set(key, after)
    for (const watch of this.watches) watch.hear(change)
  }

  get(resource: string, key: string): Stored | undefined {
    return this.#stateNow(resource).get(key)
  }

  #stateNow(resource: string): Map<string, Stored> {
    return this.#now.getOrInsertComputed(resource, () => this.#replayed(resource, this.version))
  }

  stateAt(resource: string, version: number): Map<string, Stored> {
    return version === this.version ? new Map(this.#stateNow(resource)) : this.#replayed(resource, version)
  }

  #replayed(resource: string, version: number): Map<string, Stored> {
    const state = new Map<string, Stored>()
    for (const [name, stored] of this.#before) if (name.startsWith(`${resource} `)) state.set(stored.key, stored)
    for (const change of this.#log) {
      if (change.version > version) break
      if (change.resource !== resource) continue
      if (change.after === undefined) state.delete(change.key)
      else state.set(change.key, change.after)
    }
    return state
  }

  /** What a list shows now, or showed at a version, by key. */
  listed(
    resource: string,
    wish: { namespace?: string; labels?: string; fields?: string } = {},
    version = this.version,
  ): Map<string, string> {
    const select = selecting(wish.namespace ?? '', wish.labels ?? '', wish.fields ?? '')
    const found = [...this.stateAt(resource, version).values()].filter(select)
    return new Map(found.sort(byKey).map(({ key, text }) => [key, text]))
  }

  compact(version = this.version): void {
    this.compacted = Math.max(this.compacted, Math.min(version, this.version))
  }

  /** Tells every watch how far it is; a frame of its own each. */
  bookmark(): void {
    for (const watch of this.watches) watch.bookmark(this.version)
  }

  /** A backup is put back. Without `bumpedBy` versions go back with it; with it they go on far ahead. */
  restore(version: number, bumpedBy = 0): void {
    const newest = this.version
    this.cutWatches()
    this.#now.clear()
    if (bumpedBy === 0) {
      this.#log = this.#log.filter((change) => change.version <= version)
      this.version = version
      this.compacted = Math.min(this.compacted, version)
      return
    }
    const before = new Map<string, Stored>()
    for (const resource of Object.keys(kinds)) {
      for (const [key, stored] of this.stateAt(resource, version)) before.set(`${resource} ${key}`, stored)
    }
    this.#before = before
    this.#log = []
    this.version = newest + bumpedBy
    this.compacted = this.version
  }

  cutWatches(): void {
    for (const watch of [...this.watches]) watch.body.fail(new Unreachable('the connection was cut', true))
  }

  endWatches(): void {
    for (const watch of [...this.watches]) watch.body.end()
  }

  count(what: ServerRequest['what']): number {
    return this.requests.filter((one) => one.what === what).length
  }

  async ask(asked: UpstreamRequest): Promise<UpstreamResponse> {
    const request = read(asked)
    this.requests.push(request)
    if (this.reachability.state === 'unreachable') throw new Unreachable('unreachable', false)
    const fault = this.fault(request)
    if (fault?.kind === 'refuse') throw new Unreachable('connection refused', false)
    const body = new Body({ clock: this.clock, random: this.#random, signal: asked.signal })
    if (fault?.kind === 'cut') body.cutAfter = fault.after
    if (fault?.kind === 'slow') body.delayMs = fault.ms
    let status = 200
    try {
      if (fault?.kind === 'status') throw refusal(fault)
      if (fault?.kind === 'text' && fault.open === true) body.push(fault.text)
      else if (fault?.kind === 'text') body.finish(fault.text)
      else if (request.what === 'watch') this.#watch(request, body)
      else body.finish(this.#page(request))
    } catch (error) {
      if (!(error instanceof StatusError)) throw error
      status = error.code
      body.finish(JSON.stringify(error.status))
    }
    const retry: Record<string, string> =
      fault?.kind === 'status' && fault.retryAfter !== undefined ? { 'retry-after': String(fault.retryAfter) } : {}
    return { status, headers: { 'content-type': 'application/json', ...retry }, body, heardAt: () => body.heardAtMs }
  }

  #page({ what, resource, query, path }: ServerRequest): string {
    const namespace = namespaceOf(path)
    const prefix = namespace === '' ? '' : `${namespace}/`
    const token = query.get('continue')
    const exactly = Number(query.get('resourceVersion') ?? 0)
    let version = this.version
    let start = ''
    if (token !== null) {
      const read = decodeContinue(token, prefix)
      start = read.start
      version = read.version ?? this.version
      if (version < this.compacted) {
        this.expiries++
        throw expired('too old', encodeContinue(start.slice(0, -1), undefined, 0, prefix))
      }
    } else if (exactly > 0) {
      if (exactly < this.compacted) throw expired('The resourceVersion for the provided list is too old.')
      version = exactly
    }
    if (version > this.version) throw tooLargeResourceVersion(String(version), String(this.version))
    const select = selecting(namespace, query.get('labelSelector') ?? '', query.get('fieldSelector') ?? '')
    const all = [...this.stateAt(resource, version).values()].filter(select).sort(byKey)
    const rest = all.filter((one) => one.key >= start)
    const page = rest.slice(0, Math.min(this.pageMax, Number(query.get('limit') ?? this.pageMax)))
    const more = page.length < rest.length ? encodeContinue(page.at(-1)?.key ?? '', version, 0, prefix) : ''
    // As the real one: how many follow is known where nothing is selected.
    const isSelected = query.has('labelSelector') || query.has('fieldSelector')
    const remaining = isSelected ? {} : { remainingItemCount: rest.length - page.length }
    const metadata = { resourceVersion: String(version), ...(more === '' ? {} : { continue: more, ...remaining }) }
    const items = page.map((one) => (what === 'identities' ? metadataOf(one) : one.text)).join(',')
    if (what === 'identities')
      return `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":${JSON.stringify(metadata)},"items":[${items}]}\n`
    return `{"kind":"${kinds[resource]}List","apiVersion":"${apiVersionOf(resource)}","metadata":${JSON.stringify(metadata)},"items":[${items}]}\n`
  }

  #watch({ resource, query, path }: ServerRequest, body: Body): void {
    const version = Number(query.get('resourceVersion'))
    if (version < this.compacted) {
      this.expiries++
      const error = expired(`too old resource version: ${version} (${this.compacted})`)
      // As an answer or as the only frame: real servers do both.
      if (this.#random(2) === 0) throw error
      body.finish(`${JSON.stringify({ type: 'ERROR', object: error.status satisfies Status })}\n`)
      return
    }
    const select = selecting(namespaceOf(path), query.get('labelSelector') ?? '', query.get('fieldSelector') ?? '')
    const watch = new Watch({ resource, select, version, body })
    this.watches.add(watch)
    body.onEnd(() => this.watches.delete(watch))
    for (const change of this.#log) watch.hear(change)
  }

  connect(): Promise<Connected> {
    return Promise.reject(new Unreachable('no upgrades here', false))
  }

  addresses(): readonly { url: string; current: boolean; why: string }[] {
    return []
  }

  async run(): Promise<void> {}
}

class Watch {
  readonly body: Body
  readonly resource: string
  readonly #select: Select
  /** Nothing up to this version is told: the client has it, or saw it elsewhere. */
  readonly #after: number

  constructor(parts: { resource: string; select: Select; version: number; body: Body }) {
    this.resource = parts.resource
    this.#select = parts.select
    this.#after = parts.version
    this.body = parts.body
  }

  hear({ version, resource, before, after }: Change): void {
    if (resource !== this.resource || version <= this.#after) return
    const was = before !== undefined && this.#select(before)
    const is = after !== undefined && this.#select(after)
    if (is) this.#tell(was ? 'MODIFIED' : 'ADDED', after.text)
    else if (was) this.#tell('DELETED', textOf({ ...before, version }))
  }

  bookmark(version: number): void {
    if (version < this.#after) return
    this.#tell('BOOKMARK', `{"metadata":{"resourceVersion":"${version}","creationTimestamp":null}}`)
  }

  #tell(type: string, text: string): void {
    const head = `{"kind":"${kinds[this.resource]}","apiVersion":"${apiVersionOf(this.resource)}",`
    this.body.push(`{"type":"${type}","object":${head}${text.slice(1)}}\n`)
  }
}

function apiVersionOf(resource: string): string {
  if (resource === 'csidrivers' || resource === 'volumeattachments') return 'storage.k8s.io/v1'
  if (resource === 'endpointslices') return 'discovery.k8s.io/v1'
  return /roles$|rolebindings$/.test(resource) ? 'rbac.authorization.k8s.io/v1' : 'v1'
}

function metadataOf({ key, uid, version, thing }: Stored): string {
  const { metadata } = JSON.parse(textOf({ key, uid, version, thing })) as { metadata: object }
  return JSON.stringify({ kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata })
}

function textOf({ key, uid, version, thing }: Omit<Stored, 'text'>): string {
  const slash = key.indexOf('/')
  const place = slash < 0 ? {} : { namespace: key.slice(0, slash) }
  const labels = thing.labels === undefined ? {} : { labels: thing.labels }
  const metadata = { name: key.slice(slash + 1), ...place, uid, resourceVersion: String(version), ...labels }
  const spec = { ...(thing.node === undefined ? {} : { nodeName: thing.node }), ...thing.spec }
  const status = thing.status === undefined ? {} : { status: thing.status }
  return JSON.stringify({ metadata, spec, ...status, ...thing.more, value: thing.value ?? '' })
}

function read({ path, headers }: UpstreamRequest): ServerRequest {
  const [bare = '', search = ''] = path.split('?')
  const query = new URLSearchParams(search)
  const resource = bare.split('/').at(-1) ?? ''
  const isProbe = query.get('limit') === '1' || /PartialObjectMetadataList/.test(String(headers?.accept))
  const list = query.has('continue') ? 'page' : isProbe ? 'probe' : 'list'
  const isNamed = /(^|,)metadata\.name=/.test(query.get('fieldSelector') ?? '')
  if (/PartialObjectMetadataList/.test(String(headers?.accept)) && !isNamed)
    return { what: 'identities', resource, path: bare, query }
  return { what: query.get('watch') === 'true' ? 'watch' : list, resource, path: bare, query }
}

function namespaceOf(path: string): string {
  return /\/namespaces\/([^/]+)\//.exec(path)?.[1] ?? ''
}

function selecting(namespace: string, labels: string, fields: string): Select {
  const label = parseLabelSelector(labels)
  const field = parseFieldSelector(fields)
  return ({ key, thing }) => {
    const slash = key.indexOf('/')
    const place = slash < 0 ? '' : key.slice(0, slash)
    if (namespace !== '' && place !== namespace) return false
    const values: Record<string, string> = {
      'metadata.name': key.slice(slash + 1),
      'metadata.namespace': place,
      'spec.nodeName': thing.node ?? '',
    }
    const has = new Map(Object.entries(thing.labels ?? {}))
    return label.matches(has) && field.matches((name) => values[name] ?? '')
  }
}

function refusal({ code, retryAfter }: { code: number; retryAfter?: number | string }): StatusError {
  const details = typeof retryAfter === 'number' ? { retryAfterSeconds: retryAfter } : undefined
  return failure(code, 'Faulty', `the test answers ${code}`, details)
}

function byKey(a: Stored, b: Stored): number {
  return a.key < b.key ? -1 : 1
}
