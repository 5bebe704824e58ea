/** Lists in every form that has to be made: in pieces, each in its turn, and no further ahead of its reader than one. */
import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { builtinFacts } from '../kube/builtin.ts'
import { parseJson, printJson } from '../kube/json/json.ts'
import { printYaml } from '../kube/json/yaml/yaml.ts'
import { negotiate } from '../kube/negotiate.ts'
import { parseRequest } from '../kube/request.ts'
import { Making } from './answer/making.ts'
import { spelledList } from './answer/spelled.ts'
import type { Request, Response } from './endpoint.ts'
import type { SpelledList } from './forms/listing.ts'
import { resourceInProtobuf } from './forms/protobuf/spelling.ts'
import { openWorld, type World } from './world.test-support.ts'

/** What one piece may hold. */
const pieceBytesMax = 128 * 1024
/** So many that their metadata alone are several pieces. */
const objects = 400
const list = '/api/v1/namespaces/default/configmaps'
const table = 'application/json;as=Table;v=v1;g=meta.k8s.io'
const metadata = 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io'

async function filled(count = objects, text = 'some words\nand more: #\n'.repeat(20)): Promise<World> {
  const world = await openWorld()
  const annotations = { note: 'x'.repeat(1_000) }
  for (let i = 0; i < count; i++)
    await world.ask('POST', list, { metadata: { name: `c-${i}`, annotations }, data: { text } })
  return world
}

/** A custom resource whose objects may look as they like. */
async function define(world: World, plural: string, kind: string): Promise<void> {
  const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } }
  const names = { plural, kind, singular: kind.toLowerCase(), listKind: `${kind}List` }
  const versions = [{ name: 'v1', served: true, storage: true, schema }]
  const spec = { group: 'example.com', scope: 'Namespaced', names, versions }
  const definition = { metadata: { name: `${plural}.example.com` }, spec }
  const { status } = await world.ask('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', definition)
  assert.equal(status, 201)
}

/** Counts the rounds of the loop from the request on. */
async function readInRounds(
  world: World,
  url: string,
  headers: Record<string, string> = {},
): Promise<{ bytes: Buffer; pieces: Buffer[]; rounds: number }> {
  const pieces: Buffer[] = []
  let rounds = 0
  let stopped = false
  const tick = () => {
    rounds++
    if (!stopped) setImmediate(tick)
  }
  setImmediate(tick)
  try {
    const body = await world.open(url, headers)
    for (let next = await body.next(); next.done !== true; next = await body.next()) pieces.push(next.value)
  } finally {
    stopped = true
  }
  return { bytes: Buffer.concat(pieces), pieces, rounds }
}

test('[A8] a list in any form is made in pieces, and others get their turn between them', async () => {
  const world = await filled()
  const plain = (await world.ask('GET', list)).text
  const tableText = (await world.ask('GET', `${list}?limit=${objects}`, undefined, { accept: table })).text
  const pretty = (text: string) => JSON.stringify(JSON.parse(text), null, 2)
  const yaml = (text: string) => printYaml(parseJson(text))
  const cases: [name: string, query: string, headers: Record<string, string>, expected: string][] = [
    ['indented', '?pretty=1', {}, pretty(plain)],
    ['YAML', '', { accept: 'application/yaml' }, yaml(plain)],
    ['a Table', '', { accept: table }, tableText],
    ['a Table, indented', '?pretty=1', { accept: table }, pretty(tableText)],
    ['a Table in YAML', '', { accept: table.replace('json', 'yaml') }, yaml(tableText)],
    ['metadata, indented', '?pretty=1', { accept: metadata }, ''],
    ['metadata in YAML', '', { accept: metadata.replace('json', 'yaml') }, ''],
  ]
  for (const [name, query, headers, expected] of cases) {
    const { bytes, pieces, rounds } = await readInRounds(world, `${list}${query}`, headers)
    assert.ok(pieces.length > 2, `${name}: ${pieces.length} pieces`)
    assert.ok(Math.max(...pieces.map(({ length }) => length)) <= pieceBytesMax, name)
    assert.ok(rounds >= pieces.length, `${name}: ${rounds} rounds for ${pieces.length} pieces`)
    if (expected !== '') assert.equal(bytes.toString(), expected, name)
    const zipped = await readInRounds(world, `${list}${query}`, { ...headers, 'accept-encoding': 'gzip' })
    assert.deepEqual(gunzipSync(zipped.bytes), bytes, `${name}, compressed`)
  }
})

test('[A8] objects of a custom resource and of a converted version are made in pieces too', async () => {
  const world = await openWorld()
  await define(world, 'widgets', 'Widget')
  const scaler = { scaleTargetRef: { kind: 'Deployment', name: 'd' }, maxReplicas: 3, minReplicas: 1 }
  const places = [
    ['/apis/example.com/v1/namespaces/default/widgets', { apiVersion: 'example.com/v1', kind: 'Widget' }, metadata],
    ['/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers', { spec: scaler }, 'application/json'],
  ] as const
  for (const [path, object, accept] of places) {
    const annotations = { note: 'x'.repeat(1_000) }
    for (let i = 0; i < 300; i++) {
      const { status, text } = await world.ask('POST', path, { ...object, metadata: { name: `w-${i}`, annotations } })
      assert.equal(status, 201, text)
    }
    const { bytes, pieces, rounds } = await readInRounds(world, path, { accept })
    assert.ok(pieces.length > 2 && rounds >= pieces.length, path)
    assert.equal(JSON.parse(bytes.toString()).items.length, 300)
  }
})

test('[A8] nothing is made ahead of the reader, and no longer than a few milliseconds at once', () => {
  let taken = 0
  let ms = 0
  const pieces = function* () {
    for (; taken < 1_000; taken++) {
      ms += 2
      yield Buffer.alloc(1_000)
    }
  }
  const making = new Making(pieces(), () => ms)
  assert.equal(taken, 0)
  assert.equal(making.batch().length, 3_000, 'the third piece ends after five milliseconds')
  const timeless = new Making([Buffer.alloc(300_000), Buffer.alloc(1)], () => 0)
  const sizes: number[] = []
  while (!timeless.isDone) sizes.push(timeless.batch().length)
  assert.deepEqual(sizes, [pieceBytesMax, pieceBytesMax, 300_001 - 2 * pieceBytesMax])
})

const { query } = parseRequest('GET', '/api/v1/pods')
const request = { method: 'GET', url: '/api/v1/pods', headers: {}, peer: {} } as unknown as Request

function inYaml(elements: readonly Buffer[]): Promise<Response> | Response {
  const media = negotiate('application/yaml', { shape: 'document', routed: false })
  const listing: SpelledList = {
    head: '{"kind":"List","items":[',
    end: ']}\n',
    member: 'items',
    elements: elements.map((element) => [element]),
    nameOf: (index) => `default/c-${index}`,
  }
  const bytes = Buffer.concat(elements).length
  return spelledList(200, listing, { media, query, request, bytes })
}

test('[A8] an object too deep for YAML fails its own list only: by name, or by a body that breaks off', async () => {
  const deep = Buffer.from(`${'['.repeat(2_000)}${']'.repeat(2_000)}`)
  const plain = Buffer.from(`{"text":"${'x'.repeat(1_000)}"}`)
  assert.throws(() => inYaml([plain, deep]), /default\/c-1 cannot be written in YAML: exceeded max depth/)
  const many = Array.from({ length: 600 }, () => plain)
  const early = Promise.resolve(inYaml([deep, ...many]))
  await assert.rejects(early, /default\/c-0 cannot be written in YAML/)
  const { status, body } = await inYaml([...many, deep])
  assert.equal(status, 200)
  await assert.rejects(Array.fromAsync(body as AsyncIterable<Buffer>), /default\/c-600 cannot be written in YAML/)
})

test('[A8] a small object of which much lies deep grows a thousandfold: it is made while it is sent', async () => {
  const world = await openWorld()
  const levels = 300
  let value: unknown = Array.from({ length: 5_000 }, () => 0)
  for (let i = 0; i < levels; i++) value = [value]
  await define(world, 'deeps', 'Deep')
  const deep = '/apis/example.com/v1/namespaces/default/deeps'
  const object = { apiVersion: 'example.com/v1', kind: 'Deep', metadata: { name: 'd' }, value }
  assert.equal((await world.ask('POST', deep, object)).status, 201)
  for (const [suffix, headers] of [
    ['?pretty=1', {}],
    ['', { accept: 'application/yaml' }],
  ] as const) {
    const { bytes, pieces } = await readInRounds(world, `${deep}/d${suffix}`, headers)
    assert.ok(bytes.length > 2_000_000)
    assert.ok(Math.max(...pieces.map(({ length }) => length)) <= pieceBytesMax)
  }
  const answer = await world.ask('GET', `${deep}/d?pretty=1`)
  assert.equal(printJson(parseJson(answer.bytes)), (await world.ask('GET', `${deep}/d`)).text.trimEnd())
})

test('[A8] more answers begun at once than a limit are refused, and the limit is free again afterwards', async () => {
  // More than one piece of each, and little work.
  const world = await filled(30, 'x'.repeat(5_000))
  const all = await Promise.all(
    Array.from({ length: 210 }, () => world.ask('GET', list, undefined, { accept: 'application/yaml' })),
  )
  const codes = all.map(({ status }) => status)
  assert.equal(codes.filter((code) => code === 200).length, 200)
  assert.equal(codes.filter((code) => code === 429).length, 10)
  assert.equal((await world.ask('GET', list, undefined, { accept: 'application/yaml' })).status, 200)
})

test('[A8] a change is printed once for all who watch it as a Table', async () => {
  const world = await openWorld()
  const watches = await Promise.all(Array.from({ length: 20 }, () => world.open(`${list}?watch=1`, { accept: table })))
  const frames = watches.map((watch) => watch.next())
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve))
  const parse = mock.method(JSON, 'parse')
  await world.ask('POST', list, { metadata: { name: 'one' }, data: { marked: 'of this test' } })
  const seen = await Promise.all(frames)
  const rows = parse.mock.calls.filter(
    ({ arguments: [text] }) => text.includes('of this test') && text.includes('"kind"') && !text.endsWith('\n'),
  )
  parse.mock.restore()
  assert.equal(new Set(seen.map(({ value }) => String(value))).size, 1)
  assert.equal(rows.length, 1)
  for (const watch of watches) void watch.return?.()
})

test('[A8] messages of a list beyond what is held are made again when they are sent, and its size is told before', async () => {
  const world = await filled(50)
  const [, cache] = [...world.copy.caches].find(([interest]) => interest === '/configmaps') ?? []
  assert.ok(cache !== undefined)
  const resource = builtinFacts().resources.find((one) => one.resource === 'configmaps')
  assert.ok(resource !== undefined)
  const spelling = resourceInProtobuf(resource as never, ({ bytes }) => bytes)
  const head = { resourceVersion: '7', continueToken: '', remaining: undefined }
  const items = cache.all()
  const held = await spelling.list(items, head)
  const later = await spelling.list(items, head, { heldBytesMax: 1_000 })
  assert.ok(!('bytes' in held) && 'bytes' in later)
  const sent = Buffer.concat([...later.pieces])
  assert.equal(later.bytes, sent.length)
  assert.deepEqual(sent, Buffer.concat(held))
})
