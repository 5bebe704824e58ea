import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Clock } from '../../../base/clock.ts'
import { parseRequest } from '../../../kube/request.ts'
import type { Request, Response } from '../../endpoint.ts'
import { OwnCatalog } from '../../owncatalog.ts'
import { OpenApi } from './openapi.ts'
import { openApiMessage } from './protobuf.ts'

type Tree = { [key: string]: Tree } & { [key: string]: unknown }

function gadgets(description: string): Buffer {
  const names = { plural: 'gadgets', singular: 'gadget', kind: 'Gadget', listKind: 'GadgetList' }
  const spec = {
    type: 'object',
    description,
    properties: {
      color: { type: 'string', default: 'red', nullable: true, enum: ['red', 'blue'] },
      port: { 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] },
      any: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
      inner: { type: 'object', 'x-kubernetes-embedded-resource': true, properties: { spec: { type: 'object' } } },
    },
  }
  return Buffer.from(
    JSON.stringify({
      metadata: { name: 'gadgets.disco.example.com' },
      spec: {
        group: 'disco.example.com',
        scope: 'Namespaced',
        names,
        versions: [
          {
            name: 'v1',
            served: true,
            storage: true,
            subresources: { scale: { specReplicasPath: '.spec.n', statusReplicasPath: '.status.n' } },
            selectableFields: [{ jsonPath: '.spec.color' }],
            schema: { openAPIV3Schema: { type: 'object', properties: { spec } } },
          },
        ],
      },
      status: { acceptedNames: names, conditions: [{ type: 'Established', status: 'True' }] },
    }),
  )
}

const nowMs = Date.UTC(2026, 0, 1)

function setUp() {
  const resources = new OwnCatalog()
  const openapi = new OpenApi({ resources, clock: { now: () => nowMs, steady: () => 0 } as Clock })
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
    return await openapi.answer(parseRequest('GET', url), request)
  }
  const read = async (url: string): Promise<Tree> => {
    const response = await ask(url)
    assert.equal(response?.status, 200, url)
    return JSON.parse((response.body as Buffer).toString())
  }
  const urlOf = async (name: string) => String((await read('/openapi/v3')).paths?.[name]?.serverRelativeURL)
  return { resources, ask, read, urlOf }
}

test('the index names every document with its hash, and a right hash may be kept for a year', async () => {
  const { ask, urlOf } = setUp()
  const url = await urlOf('apis/apps/v1')
  assert.match(url, /^\/openapi\/v3\/apis\/apps\/v1\?hash=[0-9A-F]{128}$/)
  const mirrored = await ask(url)
  assert.equal(mirrored?.headers['cache-control'], 'public, immutable')
  assert.equal(mirrored?.headers.expires, 'Fri, 01 Jan 2027 00:00:00 GMT')
  const wrong = await ask('/openapi/v3/apis/apps/v1?hash=AB')
  assert.equal(wrong?.status, 301)
  assert.equal(wrong?.headers.location, url)
  const plain = await ask('/openapi/v3/apis/apps/v1')
  assert.equal(plain?.headers['cache-control'], 'no-cache, private')
  const again = await ask('/openapi/v3/apis/apps/v1', { 'if-none-match': String(plain?.headers.etag) })
  assert.equal(again?.status, 304)
})

test('a built-in document holds its paths and every schema they lead to, no more', async () => {
  const { read } = setUp()
  const document = await read('/openapi/v3/apis/autoscaling/v2')
  const schemas = document.components?.schemas as Tree
  const text = JSON.stringify(document)
  for (const [, name = ''] of text.matchAll(/"#\/components\/schemas\/([^"]+)"/g)) assert.ok(schemas[name], name)
  assert.equal(schemas['io.k8s.api.core.v1.Pod'], undefined)
  assert.deepEqual(
    schemas['io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions']?.['x-kubernetes-group-version-kind'],
    ['', 'autoscaling'].map((group) => ({ group, kind: 'DeleteOptions', version: group === '' ? 'v1' : 'v2' })),
  )
  const post = document.paths?.['/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers']?.post
  assert.ok(JSON.stringify(post?.parameters).includes('"fieldValidation"'))
})

test('a custom resource is described by its definition, completed as the real server does', async () => {
  const { resources, read } = setUp()
  resources.apply('gadgets.disco.example.com', gadgets('wanted'))
  const document = await read('/openapi/v3/apis/disco.example.com/v1')
  const schemas = document.components?.schemas as Tree
  const gadget = schemas['com.example.disco.v1.Gadget'] as Tree
  assert.deepEqual(gadget['x-kubernetes-group-version-kind'], [
    { group: 'disco.example.com', kind: 'Gadget', version: 'v1' },
  ])
  assert.deepEqual(gadget['x-kubernetes-selectable-fields'], [{ fieldPath: 'spec.color' }])
  assert.match(JSON.stringify(gadget.properties?.metadata), /meta\.v1\.ObjectMeta/)
  assert.ok(schemas['io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta'])
  const spec = gadget.properties?.spec as Tree
  assert.equal(spec.description, 'wanted')
  assert.deepEqual(spec.properties?.inner?.required, ['kind', 'apiVersion'])
  assert.deepEqual(Object.keys(spec.properties?.inner?.properties ?? {}), ['spec', 'apiVersion', 'kind', 'metadata'])
  const paths = document.paths as Tree
  const place = '/apis/disco.example.com/v1/namespaces/{namespace}/gadgets'
  assert.deepEqual(Object.keys(paths), [
    '/apis/disco.example.com/v1/gadgets',
    place,
    `${place}/{name}`,
    `${place}/{name}/scale`,
  ])
  const ids = Object.values(paths).flatMap((item) => Object.values(item).map((one) => (one as Tree).operationId))
  assert.ok(ids.includes('deleteDiscoExampleComV1CollectionNamespacedGadget' as never))
  assert.ok(ids.includes('patchDiscoExampleComV1NamespacedGadgetScale' as never))
})

test('a changed definition has another hash; the others keep theirs', async () => {
  const { resources, ask, urlOf } = setUp()
  const name = 'apis/disco.example.com/v1'
  resources.apply('gadgets.disco.example.com', gadgets('one'))
  const [before, core] = [await urlOf(name), await urlOf('api/v1')]
  resources.apply('gadgets.disco.example.com', gadgets('two'))
  assert.notEqual(await urlOf(name), before)
  assert.equal(await urlOf('api/v1'), core)
  assert.equal((await ask(before))?.status, 301)
  resources.apply('gadgets.disco.example.com', undefined)
  assert.equal((await ask(`/openapi/v3/${name}`))?.status, 404)
})

test('v2 says everything at once, without what it has no words for', async () => {
  const { resources, read } = setUp()
  resources.apply('gadgets.disco.example.com', gadgets('wanted'))
  const swagger = await read('/openapi/v2')
  const definitions = swagger.definitions as Tree
  assert.deepEqual(definitions['io.k8s.apimachinery.pkg.util.intstr.IntOrString'], {
    format: 'int-or-string',
    type: 'string',
  })
  const container = definitions['io.k8s.api.core.v1.Container']?.properties as Tree
  assert.deepEqual(container.livenessProbe, { $ref: '#/definitions/io.k8s.api.core.v1.Probe' })
  assert.equal(container.ports?.['x-kubernetes-patch-merge-key'], 'containerPort')
  const fields = definitions['com.example.disco.v1.Gadget']?.properties?.spec?.properties as Tree
  assert.deepEqual(fields.color, { enum: ['red', 'blue'] })
  assert.deepEqual(fields.port, { 'x-kubernetes-int-or-string': true })
  assert.deepEqual(fields.any, { 'x-kubernetes-preserve-unknown-fields': true })
  const put = swagger.paths?.['/api/v1/namespaces/{namespace}/pods/{name}']?.put as Tree
  const parameters = put.parameters as unknown as readonly Tree[]
  assert.deepEqual(parameters[0], {
    name: 'body',
    in: 'body',
    required: true,
    schema: { $ref: '#/definitions/io.k8s.api.core.v1.Pod' },
  })
  assert.deepEqual(parameters.at(-1), { type: 'string', uniqueItems: true, name: 'fieldValidation', in: 'query' })
  assert.doesNotMatch(JSON.stringify(swagger), /#\/components\//)
})

test('both documents are there in protobuf, for a client that prefers it', async () => {
  const { ask } = setUp()
  const name = (version: string, mark = '@') =>
    `application/com.github.proto-openapi.spec.${version}${mark}v1.0+protobuf`
  const v3 = await ask('/openapi/v3/version', { accept: name('v3') })
  const json = await ask('/openapi/v3/version', { accept: `${name('v3')};q=0.5,application/json` })
  assert.equal(v3?.headers['content-type'], name('v3', '.'))
  assert.equal(json?.headers['content-type'], 'application/json')
  assert.equal(v3?.headers.etag, json?.headers.etag)
  assert.deepEqual(v3?.body, openApiMessage('v3', 'Document', JSON.parse(String(json?.body))))
  const whole = await ask('/openapi/v2')
  for (const mark of ['@', '.']) {
    const v2 = await ask('/openapi/v2', { accept: `${name('v2', mark)},application/json` })
    assert.equal(v2?.headers['content-type'], name('v2', '.'))
    assert.ok(openApiMessage('v2', 'Document', JSON.parse(String(whole?.body))).equals(v2?.body as Buffer))
  }
  assert.equal((await ask('/openapi/v2', { accept: name('v3') }))?.status, 406)
  assert.equal((await ask('/openapi/v2', { accept: 'application/vnd.kubernetes.protobuf' }))?.status, 406)
  assert.equal(await ask('/other'), undefined)
})

test('[A8] hashes and documents of many definitions are made in turns with others', async (t) => {
  const resources = new OwnCatalog()
  const one = gadgets('many').toString()
  for (let i = 0; i < 40; i++) {
    resources.apply(`g${i}`, Buffer.from(one.replaceAll('gadget', `gadget${i}`).replaceAll('Gadget', `Gadget${i}`)))
  }
  let ms = 0
  const openapi = new OpenApi({ resources, clock: { now: () => nowMs, steady: () => ms++ } as Clock })
  let rounds = 0
  let stopped = false
  const tick = () => {
    rounds++
    if (!stopped) setImmediate(tick)
  }
  setImmediate(tick)
  t.after(() => {
    stopped = true
  })
  const roundsFor = async (url: string) => {
    const before = rounds
    const request = { method: 'GET', url, headers: { accept: 'application/json' }, peer: {} } as unknown as Request
    assert.equal((await openapi.answer(parseRequest('GET', url), request))?.status, 200)
    return rounds - before
  }
  const index = await roundsFor('/openapi/v3')
  const whole = await roundsFor('/openapi/v2')
  assert.ok(index >= 5, `${index} rounds`)
  assert.ok(whole >= 100, `${whole} rounds`)
})
