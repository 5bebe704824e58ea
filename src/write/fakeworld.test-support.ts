/** A writer over objects in memory, spoken to by method and URL, for tests. Nothing is durable; every commit is noted. */

import { type FakeClock, fakeClock } from '../base/fakeclock.test-support.ts'
import { createLog } from '../base/log.ts'
import { makeItem } from '../cache/item.ts'
import { builtinFacts } from '../kube/builtin.ts'
import { selectableFields } from '../kube/fields.ts'
import { type JsonObject, parseJson, printJson, text, toPlain } from '../kube/json/json.ts'
import { noFields } from '../kube/object.ts'
import { parseRequest } from '../kube/request.ts'
import type { GroupVersionResource, Resource } from '../kube/resource.ts'
import type { Definition } from '../kube/schema/catalog.ts'
import { definitionResources, definitionVersions } from '../kube/schema/versions.ts'
import { pathNotFound, StatusError } from '../kube/status.ts'
import { definitions, namespaces } from './engine.ts'
import { servedTree } from './form.ts'
import { warningsOf } from './warnings.ts'
import type { Objects, StoredObject, WriteRequest, WriteResult } from './write.ts'
import { Writer } from './writer.ts'

export type Event = {
  readonly type: 'put' | 'remove'
  readonly interest: string
  readonly key: string
  readonly version: number
}

export type Answer = { readonly code: number; readonly body: any; readonly warnings: readonly string[] }

const patchKinds = {
  'application/json-patch+json': 'json',
  'application/merge-patch+json': 'merge',
  'application/strategic-merge-patch+json': 'strategic',
  'application/apply-patch+yaml': 'apply',
} as const

export class FakeWorld {
  readonly events: Event[] = []
  readonly clock: FakeClock = fakeClock(Date.UTC(2026, 0, 2, 3, 4, 5))
  readonly writer: Writer
  /** Set to make the next commits fail. */
  refusal: StatusError | undefined
  /** Commits to an interest wait for this. */
  readonly gates = new Map<string, Promise<void>>()
  readonly #interests = new Map<string, Map<string, StoredObject>>()
  readonly #spell: (resource: GroupVersionResource) => string
  readonly #builtins: readonly Resource[]
  readonly #customs = new Map<Resource, Definition>()
  #version = 100
  #uids = 0

  /** Without `spell` interests are called as an authority calls them. */
  constructor(random?: (below: number) => number, spell?: (resource: GroupVersionResource) => string) {
    this.#spell = spell ?? (({ group, resource }) => `${resource === 'events' ? '' : group}/${resource}`)
    this.#builtins = builtinFacts().resources.map((one) =>
      spell === undefined ? one : { ...one, interest: spell(one) },
    )
    const resources = () => [...this.#builtins, ...this.#customs.keys()]
    this.writer = new Writer({
      objectsOf: (resource) => this.objectsOf(this.#spell(resource)),
      catalog: {
        find: (group, version, plural) => {
          const isIt = (one: Resource) => one.group === group && one.version === version && one.resource === plural
          const resource = resources().find(isIt)
          return resource === undefined ? undefined : { resource, definition: this.#customs.get(resource) }
        },
        resources,
      },
      clock: this.clock,
      log: createLog({ level: 'error', write: () => {} }),
      newUid: () => `uid-${++this.#uids}`,
      // A token is what it claims.
      issuer: { issuer: 'https://kubernetes.default.svc', sign: (claims) => JSON.stringify(claims) },
      ...(random === undefined ? {} : { random }),
    })
    this.seed(
      this.#spell(namespaces),
      '{"metadata":{"name":"default"},"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"}}',
    )
  }

  serve(resource: Resource, definition: Definition): void {
    this.#customs.set(resource, definition)
  }

  /** By group and plural. */
  unserve(name: string): void {
    for (const one of this.#customs.keys()) if (`${one.group}/${one.resource}` === name) this.#customs.delete(one)
  }

  seed(interest: string, object: string): void {
    const tree = parseJson(object) as JsonObject
    const version = ++this.#version
    ;(tree.get('metadata') as JsonObject).set('resourceVersion', String(version))
    this.#put(interest, makeItem(Buffer.from(printJson(tree)), version, noFields))
  }

  bytes(interest: string, key: string): string | undefined {
    return this.objectsOf(interest).get(key)?.bytes.toString()
  }

  objectsOf(interest: string): Objects {
    const newest = () => this.#version
    const held = () => this.#interests.get(interest) ?? new Map<string, StoredObject>()
    return {
      get version() {
        return newest()
      },
      get: (key) => held().get(key),
      isDamaged: () => false,
      select: (namespace, labels, fields) => {
        const resource = this.#builtins.find((one) => one.interest === interest)
        return [...held().values()]
          .filter((item) => namespace === undefined || item.namespace === namespace)
          .filter((item) => labels === undefined || labels.matches(makeItem(item.bytes, 0, noFields).labels))
          .filter((item) => {
            if (fields === undefined || fields.empty || resource === undefined) return true
            const plain = toPlain(parseJson(item.bytes))
            return fields.matches((name) => selectableFields(resource).read(plain, name))
          })
          .sort((a, b) => (a.key < b.key ? -1 : 1))
      },
      put: async (key, build) => {
        await this.#commit(interest)
        const version = ++this.#version
        const item = makeItem(build(version), version, noFields)
        if (item.key !== key) throw new Error(`${item.key} stored under ${key}`)
        this.#put(interest, item)
        this.events.push({ type: 'put', interest, key, version })
        return item
      },
      remove: async (key) => {
        await this.#commit(interest)
        const version = ++this.#version
        const last = held().get(key)
        if (last === undefined) throw new Error(`nothing to remove at ${key}`)
        held().delete(key)
        if (interest === this.#spell(definitions)) this.unserve(key.replace(/^([^.]*)\.(.*)$/, '$2/$1'))
        this.events.push({ type: 'remove', interest, key, version })
        const tree = parseJson(last.bytes) as JsonObject
        ;(tree.get('metadata') as JsonObject).set('resourceVersion', String(version))
        return makeItem(Buffer.from(printJson(tree)), version, noFields)
      },
    }
  }

  /** As `kubectl --raw` would ask; refusals come back as answers. */
  async send(method: string, url: string, body?: unknown, type = 'application/json', agent = ''): Promise<Answer> {
    try {
      return await this.#answer(method, url, body, type, agent)
    } catch (error) {
      if (!(error instanceof StatusError)) throw error
      return { code: error.code, body: error.status, warnings: warningsOf(error) }
    }
  }

  async #answer(method: string, url: string, body: unknown, type: string, userAgent: string): Promise<Answer> {
    const asked = parseRequest(method, url)
    const resource = [...this.#builtins, ...this.#customs.keys()].find(
      (one) => one.group === asked.group && one.version === asked.version && one.resource === asked.resource,
    )
    if (resource === undefined) throw pathNotFound()
    const source = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body)
    const request: WriteRequest = {
      resource,
      subresource: asked.subresource,
      namespace: asked.namespace,
      name: asked.name,
      query: (name) => asked.query.get(name),
      body: source === undefined ? undefined : Buffer.from(source),
      format: type === 'application/yaml' ? 'yaml' : 'json',
      ...(method === 'PATCH' ? { patchKind: patchKinds[type as keyof typeof patchKinds] } : {}),
      userAgent,
      caller: { name: 'admin', uid: '', groups: ['system:masters', 'system:authenticated'] },
    }
    if (method === 'GET') {
      const stored = this.objectsOf(this.#spell(resource)).get(
        resource.namespaced ? `${asked.namespace}/${asked.name}` : asked.name,
      )
      if (stored === undefined) return { code: 404, body: {}, warnings: [] }
      return { code: 200, body: JSON.parse(printJson(servedTree(resource, stored))), warnings: [] }
    }
    const result = await this.#dispatch(method, request)
    return { code: result.code, body: rendered(resource, result), warnings: result.warnings }
  }

  #dispatch(method: string, request: WriteRequest): Promise<WriteResult> {
    const { writer } = this
    if (method === 'POST') return writer.create(request)
    if (method === 'PUT') return writer.update(request)
    if (method === 'PATCH') return writer.patch(request)
    return request.name === '' ? writer.deleteCollection(request) : writer.delete(request)
  }

  async #commit(interest: string): Promise<void> {
    // A commit takes time, so that a writer that does not hold the lock would be caught.
    await new Promise<void>((resolve) => setImmediate(resolve))
    await this.gates.get(interest)
    if (this.refusal !== undefined) throw this.refusal
  }

  #put(interest: string, item: StoredObject): void {
    const held = this.#interests.get(interest) ?? new Map<string, StoredObject>()
    held.set(item.key, item)
    this.#interests.set(interest, held)
    if (interest === this.#spell(definitions)) this.#learn(parseJson(item.bytes) as JsonObject)
  }

  /** Definitions take effect at once. */
  #learn(crd: JsonObject): void {
    this.unserve(`${text(crd, 'spec', 'group')}/${text(crd, 'spec', 'names', 'plural')}`)
    const versions = definitionVersions(crd)
    const storage = versions.find((version) => version.storage)
    const storageVersion = storage?.name ?? ''
    const terminating = text(crd, 'metadata', 'deletionTimestamp') !== ''
    for (const resource of definitionResources(crd)) {
      const version = versions.find(({ name }) => name === resource.version)
      if (version === undefined) continue
      const stored = storage === undefined || storage === version ? {} : { storageSchema: storage.schema }
      this.serve(
        { ...resource, interest: this.#spell(resource) },
        { ...version, ...stored, storageVersion, terminating },
      )
    }
  }
}

function rendered(resource: Resource, { item, status, list, review }: WriteResult): unknown {
  if (item !== undefined) return JSON.parse(printJson(servedTree(resource, item)))
  if (review !== undefined) return JSON.parse(printJson(review))
  if (list !== undefined) return { version: list.version, names: list.items.map(({ name }) => name) }
  return status
}

const schema = {
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      properties: { replicas: { type: 'integer', minimum: 0 }, color: { type: 'string', default: 'red' } },
    },
    status: { type: 'object', properties: { replicas: { type: 'integer' }, selector: { type: 'string' } } },
  },
}

const scale = {
  specReplicasPath: '.spec.replicas',
  statusReplicasPath: '.status.replicas',
  labelSelectorPath: '.status.selector',
}

/** A namespaced custom resource `widgets.we.dev/v1`, with status and scale. */
export function widgets(
  over: { schema?: Definition['schema']; unscaled?: true } = {},
): readonly [Resource, Definition] {
  const resource: Resource = {
    group: 'we.dev',
    version: 'v1',
    resource: 'widgets',
    kind: 'Widget',
    listKind: 'WidgetList',
    singular: 'widget',
    namespaced: true,
    verbs: ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection'],
    shortNames: [],
    categories: [],
    subresources: [],
    interest: 'we.dev/widgets',
    custom: true,
  }
  const definition: Definition = {
    storageVersion: 'v1',
    schema: over.schema ?? schema,
    status: true,
    ...(over.unscaled === true ? {} : { scale }),
    selectableFields: [],
    terminating: false,
  }
  return [resource, definition]
}
