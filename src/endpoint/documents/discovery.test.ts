import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeMessage, type Message, messageOf, readEnvelope } from '../../kube/protobuf/protobuf.ts'
import { parseRequest } from '../../kube/request.ts'
import type { Request, Response } from '../endpoint.ts'
import { OwnCatalog } from '../owncatalog.ts'
import { Discovery } from './discovery.ts'

const aggregated = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'

function widgets(group: string, versions: readonly string[]): Buffer {
  const names = { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList', shortNames: ['wd'] }
  return Buffer.from(
    JSON.stringify({
      metadata: { name: `widgets.${group}` },
      spec: {
        group,
        scope: 'Cluster',
        names,
        versions: versions.map((name, at) => ({
          name,
          served: true,
          storage: at === 0,
          subresources: { status: {} },
          schema: { openAPIV3Schema: { type: 'object' } },
        })),
      },
      status: { acceptedNames: names, conditions: [{ type: 'Established', status: 'True' }] },
    }),
  )
}

function setUp() {
  const resources = new OwnCatalog()
  const discovery = new Discovery({ resources, serverAddress: '192.0.2.1:6443', paths: ['/healthz', '/version'] })
  const ask = async (url: string, headers: Record<string, string> = {}): Promise<Response | undefined> => {
    const request: Request = {
      method: 'GET',
      url,
      headers,
      body: async () => Buffer.alloc(0),
      hasBody: false,
      stream: async function* () {},
      peer: {},
    }
    return await discovery.answer(parseRequest('GET', url), request)
  }
  const text = async (url: string, headers?: Record<string, string>): Promise<string> => {
    const response = await ask(url, headers)
    assert.equal(response?.status, 200)
    return String(response.body)
  }
  const read = async (url: string, headers?: Record<string, string>) => JSON.parse(await text(url, headers))
  return { resources, ask, text, read }
}

test('/api in the words of the real server', async () => {
  const { text } = setUp()
  assert.equal(
    await text('/api'),
    '{"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":[{"clientCIDR":"0.0.0.0/0","serverAddress":"192.0.2.1:6443"}]}\n',
  )
})

test('a group version lists resources and subresources, key by key as the real server', async () => {
  const { text } = setUp()
  const apps = await text('/apis/apps/v1')
  assert.ok(apps.startsWith('{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"apps/v1","resources":['))
  assert.ok(
    apps.includes(
      '{"name":"deployments","singularName":"deployment","namespaced":true,"kind":"Deployment","verbs":["create","delete","deletecollection","get","list","patch","update","watch"],"shortNames":["deploy"],"categories":["all"],"storageVersionHash":"8aSe+NMegvE="},{"name":"deployments/scale","singularName":"","namespaced":true,"group":"autoscaling","version":"v1","kind":"Scale","verbs":["get","patch","update"]},{"name":"deployments/status","singularName":"","namespaced":true,"kind":"Deployment","verbs":["get","patch","update"]}',
    ),
  )
  const core = await text('/api/v1/')
  assert.ok(core.startsWith('{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"bindings"'))
})

test('custom groups follow: in the old list by version and name, in the aggregated one by name', async () => {
  const { resources, read } = setUp()
  resources.apply('widgets.a.example.com', widgets('a.example.com', ['v1beta1']))
  resources.apply('widgets.z.example.com', widgets('z.example.com', ['v1alpha1', 'v1']))
  const old = await read('/apis')
  assert.deepEqual(
    old.groups.slice(-2).map(({ name }: { name: string }) => name),
    ['z.example.com', 'a.example.com'],
  )
  assert.deepEqual(old.groups.at(-2).preferredVersion, { groupVersion: 'z.example.com/v1', version: 'v1' })
  const all = await read('/apis', { accept: aggregated })
  assert.deepEqual(
    all.items.slice(-2).map((item: { metadata: { name: string } }) => item.metadata.name),
    ['a.example.com', 'z.example.com'],
  )
  assert.deepEqual(all.items.at(-2).versions[0], {
    version: 'v1beta1',
    resources: [
      {
        resource: 'widgets',
        responseKind: { group: 'a.example.com', version: 'v1beta1', kind: 'Widget' },
        scope: 'Cluster',
        singularResource: 'widget',
        verbs: ['delete', 'deletecollection', 'get', 'list', 'patch', 'create', 'update', 'watch'],
        shortNames: ['wd'],
        subresources: [
          {
            subresource: 'status',
            responseKind: { group: 'a.example.com', version: 'v1beta1', kind: 'Widget' },
            verbs: ['get', 'patch', 'update'],
          },
        ],
      },
    ],
    freshness: 'Current',
  })
})

test('the aggregated document has a tag that holds until a definition changes', async () => {
  const { resources, ask, text } = setUp()
  const first = await ask('/apis', { accept: aggregated })
  const etag = String(first?.headers.etag)
  assert.match(etag, /^"[0-9A-F]{128}"$/)
  assert.equal(first?.headers['content-type'], aggregated)
  assert.equal(first?.headers['cache-control'], 'public')
  assert.equal(first?.headers.vary, 'Accept')
  assert.equal((await ask('/apis', { accept: aggregated, 'if-none-match': etag }))?.status, 304)
  resources.apply('widgets.a.example.com', widgets('a.example.com', ['v1']))
  assert.equal((await ask('/apis', { accept: aggregated, 'if-none-match': etag }))?.status, 200)
  const core = await text('/api', { accept: `${aggregated},application/json` })
  assert.ok(core.includes('"items":[{"metadata":{},"versions":[{"version":"v1"'))
})

test('what nobody can write is refused as the real server refuses it', async () => {
  const { ask } = setUp()
  const accept = 'text/html'
  await assert.rejects(async () => ask('/apis', { accept }), /only the following media types are accepted/)
  await assert.rejects(async () => ask('/apis/apps/v1', { accept }), /406: Not Acceptable/)
  const beta = aggregated.replace('v=v2', 'v=v2beta1')
  await assert.rejects(async () => ask('/api', { accept: beta }), { code: 406 })
})

test('paths that are none, and the list of those that are', async () => {
  const { ask, read } = setUp()
  for (const path of ['/api/v2', '/apis/none', '/apis/apps/v7', '/apis/apps/v1/x/y', '/elsewhere']) {
    assert.equal(await ask(path), undefined, path)
  }
  const { paths } = await read('/')
  assert.deepEqual(paths, [...paths].sort())
  for (const path of ['/api', '/api/v1', '/apis/apps', '/apis/apps/v1', '/healthz'])
    assert.ok(paths.includes(path), path)
})

test('every document is there in protobuf, the oldest without a version of its own', async () => {
  const { resources, ask, read } = setUp()
  resources.apply('widgets.example.com', widgets('example.com', ['v1']))
  const mediaType = 'application/vnd.kubernetes.protobuf'
  const opened = async (url: string, accept: string) => {
    const response = await ask(url, { accept })
    const { raw, ...type } = readEnvelope(response?.body as Buffer)
    const message = messageOf(type.apiVersion === '' ? 'v1' : type.apiVersion, type.kind) as Message
    const object = JSON.parse(decodeMessage(message, raw).toString())
    return { contentType: response?.headers['content-type'], ...type, object }
  }
  const rows = [
    ['/api', '', 'APIVersions'],
    ['/api/v1', '', 'APIResourceList'],
    ['/apis', 'v1', 'APIGroupList'],
    ['/apis/apps', 'v1', 'APIGroup'],
    ['/apis/example.com/v1', 'v1', 'APIResourceList'],
  ] as const
  for (const [url, apiVersion, kind] of rows) {
    const { object, ...rest } = await opened(url, `${mediaType},application/json`)
    assert.deepEqual(rest, { contentType: mediaType, apiVersion, kind })
    const { kind: _, apiVersion: __, ...json } = await read(url)
    assert.deepEqual(object, json)
  }
  const all = aggregated.replace('application/json', mediaType)
  const { object, ...rest } = await opened('/apis', `${all},application/json`)
  assert.deepEqual(rest, { contentType: all, apiVersion: 'apidiscovery.k8s.io/v2', kind: 'APIGroupDiscoveryList' })
  assert.deepEqual(object.items, (await read('/apis', { accept: aggregated })).items)
  const [inProtobuf, inJson] = [await ask('/apis', { accept: all }), await ask('/apis', { accept: aggregated })]
  assert.equal(inProtobuf?.headers.etag, inJson?.headers.etag)
})
