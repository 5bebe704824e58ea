/**
 * What the server offers, for clients that do not know it yet: /api, /apis and what lies below them, in the old form (one
 * document per group version) and the aggregated one (everything of a root at once), and the list of paths at `/`.
 * Documents are printed once per generation of the set of resources.
 */
import { createHash, randomUUID } from 'node:crypto'
import { type Codec, negotiate, wantsAggregatedDiscovery } from '../../kube/negotiate.ts'
import type { TypeMeta } from '../../kube/protobuf/enveloping.ts'
import type { ApiRequest } from '../../kube/request.ts'
import { apiVersion, type Resource, type Subresource } from '../../kube/resource.ts'
import { methodNotAllowed } from '../../kube/status.ts'
import { plain } from '../answer/respond.ts'
import { spelledDocument } from '../answer/spelled.ts'
import type { Request, Response } from '../endpoint.ts'
import type { ApiGroup, ApiVersion, OwnCatalog } from '../owncatalog.ts'

type Document = { readonly json: Buffer; readonly type: TypeMeta; readonly etag: string }

/** The oldest documents name no version of themselves. */
type Printed = { readonly kind: string; readonly apiVersion?: string; readonly [member: string]: unknown }

/** Where a document is asked for, and how the real router treats it. */
type Place = {
  readonly print: () => Printed
  /** Groups whose versions an aggregated document of this place would list. */
  readonly aggregates?: readonly ApiGroup[]
  /** kube-apiserver's router looks at Accept first, except at /apis, at groups and in all that comes from CRDs. */
  readonly routed: boolean
}

export class Discovery {
  readonly #resources: OwnCatalog
  readonly #serverAddress: string
  readonly #paths: readonly string[]
  #generation = -1
  readonly #documents = new Map<string, Document>()

  constructor(parts: {
    resources: OwnCatalog
    /** host:port by which clients from anywhere reach this server. */
    serverAddress: string
    /** What is served besides discovery itself: `/healthz`, `/metrics` … */
    paths: readonly string[]
  }) {
    this.#resources = parts.resources
    this.#serverAddress = parts.serverAddress
    this.#paths = parts.paths
  }

  /** undefined for a path that is no place of discovery. */
  answer(api: ApiRequest, request: Request): Promise<Response> | Response | undefined {
    if (this.#generation !== this.#resources.generation) {
      this.#documents.clear()
      this.#generation = this.#resources.generation
    }
    const path = api.path.length > 1 && api.path.endsWith('/') ? api.path.slice(0, -1) : api.path
    if (path === '/') return plain(200, Buffer.from(JSON.stringify({ paths: this.#allPaths() }, null, 2)))
    const place = this.#placeOf(path)
    if (place === undefined) return undefined
    if (place.routed && api.method !== 'GET') throw methodNotAllowed()
    const { accept } = request.headers
    const codec = place.aggregates === undefined ? undefined : wantsAggregatedDiscovery(accept)
    if (codec !== undefined) return this.#aggregated(path, place.aggregates ?? [], codec, api, request)
    const media = negotiate(accept, { shape: 'document', routed: place.routed })
    const { json, type } = this.#document(path, place.print)
    return spelledDocument(200, type, json, { media, query: api.query, request })
  }

  #placeOf(path: string): Place | undefined {
    const [, root, ...names] = path.split('/')
    if (root === 'api') return this.#corePlace(names)
    if (root !== 'apis') return undefined
    const [name, version, more] = names
    if (name === undefined) {
      const groups = this.#resources.groups().filter((group) => group.name !== '')
      const print = () => groupList([...groups].sort(byOldOrder))
      return { print, aggregates: groups, routed: false }
    }
    const group = this.#resources.groups().find((one) => one.name === name)
    if (group === undefined || name === '' || more !== undefined) return undefined
    if (version === undefined) return { print: () => groupDocument(group), routed: false }
    const found = group.versions.find((one) => one.version === version)
    if (found === undefined) return undefined
    return { print: () => resourceList(group, found), routed: !group.custom }
  }

  #corePlace([version, more]: readonly string[]): Place | undefined {
    const core = this.#resources.groups().find((group) => group.name === '')
    if (core === undefined || more !== undefined) return undefined
    if (version === undefined) return { print: () => this.#apiVersions(core), aggregates: [core], routed: true }
    const found = core.versions.find((one) => one.version === version)
    return found === undefined ? undefined : { print: () => resourceList(core, found), routed: true }
  }

  #apiVersions(core: ApiGroup): Printed {
    return {
      kind: 'APIVersions',
      versions: core.versions.map(({ version }) => version),
      serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress: this.#serverAddress }],
    }
  }

  async #aggregated(
    path: string,
    groups: readonly ApiGroup[],
    codec: Codec,
    api: ApiRequest,
    request: Request,
  ): Promise<Response> {
    const { json, type, etag } = this.#document(`${path} aggregated`, () => aggregatedDocument(groups))
    const own = { etag, vary: 'Accept', 'cache-control': 'public' }
    if (request.headers['if-none-match'] === etag) {
      return { status: 304, headers: { 'audit-id': randomUUID(), ...own }, body: Buffer.alloc(0) }
    }
    const response = await spelledDocument(200, type, json, {
      media: { codec, pretty: false },
      query: api.query,
      request,
    })
    const { headers } = response
    const form = `${codec.mediaType};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList`
    const vary = headers.vary === undefined ? 'Accept' : `Accept, ${headers.vary}`
    Object.assign(headers, own, { 'content-type': form, vary })
    return response
  }

  #document(key: string, print: () => Printed): Document {
    let document = this.#documents.get(key)
    if (document === undefined) {
      const printed = print()
      const { apiVersion = '', kind } = printed
      const json = Buffer.from(JSON.stringify(printed))
      const etag = `"${createHash('sha512').update(json).digest('hex').toUpperCase()}"`
      document = { json, type: { apiVersion, kind }, etag }
      this.#documents.set(key, document)
    }
    return document
  }

  #allPaths(): readonly string[] {
    const paths = new Set([...this.#paths, '/api', '/apis', '/apis/'])
    for (const { name, versions } of this.#resources.groups()) {
      if (name !== '') paths.add(`/apis/${name}`)
      for (const { version } of versions) paths.add(name === '' ? `/api/${version}` : `/apis/${name}/${version}`)
    }
    return [...paths].sort()
  }
}

/** The old list puts custom groups of one priority in the order of the names of their APIServices: version, then group. */
function byOldOrder(a: ApiGroup, b: ApiGroup): number {
  if (!a.custom || !b.custom) return 0
  const [left, right] = [`${a.versions[0]?.version}.${a.name}`, `${b.versions[0]?.version}.${b.name}`]
  return left < right ? -1 : left > right ? 1 : 0
}

function groupList(groups: readonly ApiGroup[]): Printed {
  return { kind: 'APIGroupList', apiVersion: 'v1', groups: groups.map(groupEntry) }
}

function groupDocument(group: ApiGroup): Printed {
  return { kind: 'APIGroup', apiVersion: 'v1', ...groupEntry(group) }
}

function groupEntry({ name, versions }: ApiGroup) {
  const entries = versions.map(({ version }) => ({ groupVersion: `${name}/${version}`, version }))
  return { name, versions: entries, preferredVersion: entries[0] }
}

function resourceList(group: ApiGroup, { version, resources }: ApiVersion): Printed {
  const groupVersion = apiVersion({ group: group.name, version })
  const entries = resources.flatMap((resource) => [
    resourceEntry(resource),
    ...resource.subresources.map((one) => subresourceEntry(resource, one)),
  ])
  // The core group's list has no apiVersion: it is the oldest document of all.
  const head = group.name === '' ? {} : { apiVersion: 'v1' }
  return { kind: 'APIResourceList', ...head, groupVersion, resources: entries }
}

function resourceEntry(resource: Resource): unknown {
  const { resource: name, singular: singularName, namespaced, kind, verbs, storageVersionHash } = resource
  return { name, singularName, namespaced, kind, verbs, ...namesOf(resource), storageVersionHash }
}

function subresourceEntry(parent: Resource, { name, group, version, kind, verbs }: Subresource): unknown {
  const foreign = group === parent.group && version === parent.version ? {} : { group, version }
  const { namespaced } = parent
  return { name: `${parent.resource}/${name}`, singularName: '', namespaced, ...foreign, kind, verbs }
}

function aggregatedDocument(groups: readonly ApiGroup[]): Printed {
  const items = groups.map(({ name, versions }) => ({
    metadata: name === '' ? {} : { name },
    versions: versions.map(({ version, resources }) => ({
      version,
      resources: resources.map(aggregatedEntry),
      freshness: 'Current',
    })),
  }))
  return { kind: 'APIGroupDiscoveryList', apiVersion: 'apidiscovery.k8s.io/v2', metadata: {}, items }
}

function aggregatedEntry(resource: Resource): unknown {
  const { resource: name, namespaced, singular: singularResource, verbs, subresources } = resource
  const nested = subresources.map((one) => ({
    subresource: one.name,
    responseKind: responseKind(resource, one),
    verbs: one.verbs,
  }))
  return {
    resource: name,
    responseKind: responseKind(resource, resource),
    scope: namespaced ? 'Namespaced' : 'Cluster',
    singularResource,
    verbs,
    ...namesOf(resource),
    ...(nested.length === 0 ? {} : { subresources: nested }),
  }
}

/** A built-in leaves group and version empty where they are those of the document; custom resources repeat them. */
function responseKind(parent: Resource, { group, version, kind }: { group: string; version: string; kind: string }) {
  const own = !parent.custom && group === parent.group && version === parent.version
  return own ? { group: '', version: '', kind } : { group, version, kind }
}

function namesOf({ shortNames, categories }: Resource) {
  return { ...(shortNames.length === 0 ? {} : { shortNames }), ...(categories.length === 0 ? {} : { categories }) }
}
