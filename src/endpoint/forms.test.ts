/** Lists in every form that has to be made: in pieces, each in its turn, and no further ahead of its reader than one. */
import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { turns } from '../base/turns.ts'
import { builtinFacts } from '../kube/builtin.ts'
import { parseJson, printJson } from '../kube/json/json.ts'
import { printYaml } from '../kube/json/yaml/yaml.ts'
import { negotiate } from '../kube/negotiate.ts'
import { parseRequest } from '../kube/request.ts'
import { Making } from './answer/making.ts'
import { cancel } from './answer/pieces.ts'
import { spelledList } from './answer/spelled.ts'
import type { Request, Response } from './endpoint.ts'
import type { SpelledList } from './forms/listing.ts'
import { resourceInProtobuf } from './forms/protobuf/spelling.ts'
import type { Holder } from './holder.ts'
import { openWorld, type World } from './world.test-support.ts'

/** What one piece may hold. */
const pieceBytesMax = 128 * 1024
/** So many that their metadata alone are several pieces. */
const objects = 400
const list = '/api/v1/namespaces/default/configmaps'
const table = 'application/json;as=Table;v=v1;g=meta.k8s.io'
const yamlSent = { 'content-type': 'application/yaml' }
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

/** Counts the rounds of the loop meanwhile. */
async function inRounds<T>(work: () => Promise<T>): Promise<{ value: T; rounds: number }> {
  let rounds = 0
  let stopped = false
  const tick = () => {
    rounds++
    if (!stopped) setImmediate(tick)
  }
  setImmediate(tick)
  try {
    return { value: await work(), rounds }
  } finally {
    stopped = true
  }
}

async function readInRounds(
  world: World,
  url: string,
  headers: Record<string, string> = {},
): Promise<{ bytes: Buffer; pieces: Buffer[]; rounds: number }> {
  const { value: pieces, rounds } = await inRounds(async () => {
    const body = await world.open(url, headers)
    return await Array.fromAsync({ [Symbol.asyncIterator]: () => body })
  })
  return { bytes: Buffer.concat(pieces), pieces, rounds }
}

/** A list's metadata, and nothing else of it. */
function metadataOf({ metadata: ofList, items }: { metadata: object; items: { metadata: object }[] }): object {
  const apiVersion = 'meta.k8s.io/v1'
  const partial = items.map((one) => ({ kind: 'PartialObjectMetadata', apiVersion, metadata: one.metadata }))
  return { kind: 'PartialObjectMetadataList', apiVersion, metadata: ofList, items: partial }
}

test('[A8] a list in any form is made in pieces, and others get their turn between them', async () => {
  const world = await filled()
  const plain = (await world.ask('GET', list)).text
  const tableText = (await world.ask('GET', `${list}?limit=${objects}`, undefined, { accept: table })).text
  const metadataText = `${JSON.stringify(metadataOf(JSON.parse(plain)))}\n`
  const pretty = (text: string) => JSON.stringify(JSON.parse(text), null, 2)
  const yaml = (text: string) => printYaml(parseJson(text))
  const cases: [name: string, query: string, headers: Record<string, string>, expected: string][] = [
    ['indented', '?pretty=1', {}, pretty(plain)],
    ['YAML', '', { accept: 'application/yaml' }, yaml(plain)],
    ['a Table', '', { accept: table }, tableText],
    ['a Table, indented', '?pretty=1', { accept: table }, pretty(tableText)],
    ['a Table in YAML', '', { accept: table.replace('json', 'yaml') }, yaml(tableText)],
    ['metadata', '', { accept: metadata }, metadataText],
    ['metadata, indented', '?pretty=1', { accept: metadata }, pretty(metadataText)],
    ['metadata in YAML', '', { accept: metadata.replace('json', 'yaml') }, yaml(metadataText)],
  ]
  for (const [name, query, headers, expected] of cases) {
    const { bytes, pieces, rounds } = await readInRounds(world, `${list}${query}`, headers)
    assert.ok(pieces.length > 2, `${name}: ${pieces.length} pieces`)
    assert.ok(Math.max(...pieces.map(({ length }) => length)) <= pieceBytesMax, name)
    assert.ok(rounds >= pieces.length, `${name}: ${rounds} rounds for ${pieces.length} pieces`)
    assert.equal(bytes.toString(), expected, name)
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

test('[A8] a caller that begins more answers than its share is refused the rest; others wait for none of them', async () => {
  // More than one piece of each, and little work.
  const world = await filled(30, 'x'.repeat(5_000))
  const ask = async (holder: Holder, accept: string) => {
    const answer = await world.respond('GET', list, undefined, { accept }, world.peerOf(holder))
    cancel(answer.body)
    return answer
  }
  const yaml = 'application/yaml'
  const greedy: Holder = { standing: 'known', name: 'greedy' }
  const shareOfOne = 94
  // What makes Tables is loaded once.
  await ask({ standing: 'known', name: 'early' }, table)
  const all = Array.from({ length: 210 }, () => ask(greedy, yaml))
  const others = [ask({ standing: 'known', name: 'other' }, table), ask({ standing: 'own', name: 'admin' }, table)]
  const { value, rounds } = await inRounds(() => Promise.all(others))
  for (const { status } of value) assert.equal(status, 200)
  // Each of the greedy one's is a round of its own at least; those of the others take as many batches as the machine makes of them.
  assert.ok(rounds < shareOfOne / 2, `${rounds} rounds of the loop`)
  const answers = await Promise.all(all)
  const refused = answers.filter(({ status }) => status === 429)
  assert.equal(answers.filter(({ status }) => status === 200).length, shareOfOne)
  assert.equal(refused.length, 210 - shareOfOne)
  for (const { headers } of refused) assert.equal(headers['retry-after'], '1')
  assert.equal((await ask(greedy, yaml)).status, 200, 'its share is free again')
})

test('[A8] every turn that a request takes, to read or to write, is its caller’s', async (t) => {
  const world = await filled(100, 'x'.repeat(5_000))
  const peer = world.peerOf({ standing: 'known', name: 'caller' })
  const taken = (['take', 'takeFirst'] as const).map((kind) => t.mock.method(turns, kind))
  const whose = () => taken.flatMap(({ mock: { calls } }) => calls.map(({ arguments: [who] }) => who))
  const object = { metadata: { name: 'long' }, data: { text: 'x'.repeat(100_000) } }
  const applied = { apiVersion: 'v1', kind: 'ConfigMap', ...object }
  const jobs: [name: string, method: string, url: string, body: unknown, headers: Record<string, string>][] = [
    ['YAML', 'GET', list, undefined, { accept: 'application/yaml' }],
    ['metadata', 'GET', list, undefined, { accept: metadata }],
    ['protobuf', 'GET', list, undefined, { accept: 'application/vnd.kubernetes.protobuf' }],
    ['create', 'POST', list, object, {}],
    ['update', 'PUT', `${list}/long`, object, {}],
    ['YAML, to write', 'PUT', `${list}/long`, printYaml(parseJson(JSON.stringify(object))), yamlSent],
    ['patch', 'PATCH', `${list}/long`, object, { 'content-type': 'application/merge-patch+json' }],
    [
      'apply',
      'PATCH',
      `${list}/long?fieldManager=m&force=true`,
      applied,
      { 'content-type': 'application/apply-patch+yaml' },
    ],
  ]
  for (const [name, method, url, body, headers] of jobs) {
    assert.ok((await world.ask(method, url, body, headers, peer)).status < 300, name)
    assert.deepEqual(new Set(whose()), new Set(['caller']), name)
    for (const { mock: calls } of taken) calls.resetCalls()
  }
  const watch = await world.respond('GET', `${list}?watch=1&resourceVersion=1`, undefined, { accept: table }, peer)
  await (watch.body as AsyncIterable<Buffer>)[Symbol.asyncIterator]().next()
  assert.deepEqual(new Set(whose()), new Set(['caller']), 'watch')
  cancel(watch.body)
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
  const held = await spelling.list(items, head, { who: '' })
  const later = await spelling.list(items, head, { who: '', heldBytesMax: 1_000 })
  assert.ok(!('bytes' in held) && 'bytes' in later)
  const sent = Buffer.concat([...later.pieces])
  assert.equal(later.bytes, sent.length)
  assert.deepEqual(sent, Buffer.concat(held))
})
