import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FakeWorld, widgets } from './fakeworld.test-support.ts'

const configMap = '/api/v1/namespaces/default/configmaps/a'
const merge = 'application/merge-patch+json'
const strategic = 'application/strategic-merge-patch+json'
const json = 'application/json-patch+json'

async function worldWithConfigMap(): Promise<FakeWorld> {
  const world = new FakeWorld()
  await world.send('POST', '/api/v1/namespaces/default/configmaps', { metadata: { name: 'a' }, data: { k: '1' } })
  return world
}

test('the three kinds of patches', async () => {
  const world = await worldWithConfigMap()
  assert.equal((await world.send('PATCH', configMap, { data: { k: null, m: '2' } }, merge)).body.data.m, '2')
  assert.equal(
    (await world.send('PATCH', configMap, [{ op: 'add', path: '/data/j', value: '3' }], json)).body.data.j,
    '3',
  )
  const spec = { containers: [{ name: 'a', image: 'b' }] }
  await world.send('POST', '/api/v1/namespaces/default/pods', { metadata: { name: 'p' }, spec })
  const added = { spec: { containers: [{ name: 'c', image: 'd' }] } }
  const { body } = await world.send('PATCH', '/api/v1/namespaces/default/pods/p', added, strategic)
  assert.deepEqual(
    body.spec.containers.map((one: { name: string }) => one.name),
    ['c', 'a'],
  )
})

test('[A5] a patch leaves numbers and unknown stored fields as they were', async () => {
  const world = new FakeWorld()
  world.seed(
    '/configmaps',
    '{"metadata":{"name":"a","namespace":"default","uid":"u"},"data":{},"fromTheFuture":{"big":12345678901234567890}}',
  )
  await world.send('PATCH', configMap, { data: { k: 'v' } }, merge)
  assert.match(world.bytes('/configmaps', 'default/a') ?? '', /"fromTheFuture":\{"big":12345678901234567890\}/)
})

test('a version in a patch is a precondition, a uid is immutable', async () => {
  const world = await worldWithConfigMap()
  assert.equal((await world.send('PATCH', configMap, { metadata: { resourceVersion: '1' } }, merge)).code, 409)
  assert.equal((await world.send('PATCH', configMap, { metadata: { resourceVersion: '102' } }, merge)).code, 200)
  const uid = await world.send('PATCH', configMap, { metadata: { uid: 'x' } }, merge)
  assert.equal(uid.body.message, 'ConfigMap "a" is invalid: metadata.uid: Invalid value: "x": field is immutable')
})

test('patches that cannot be read or used', async () => {
  const world = await worldWithConfigMap()
  world.serve(...widgets())
  const answer = async (body: string, type: string, url = configMap) => {
    const { code, body: status } = await world.send('PATCH', url, body, type)
    return `${code} ${status.message}`
  }
  assert.equal(await answer('{"data":', merge), '400 error decoding patch: unexpected end of JSON input')
  assert.equal(await answer('{"data":', strategic), '400 unexpected end of JSON input')
  assert.match(
    await answer('{"data":{"x":1}}', merge),
    /^422 {2}"" is invalid: patch: Invalid value: "\{.*cannot unmarshal number/,
  )
  assert.match(
    await answer('[{"op":"test","path":"/data/k","value":"9"}]', json),
    /^422 the server rejected our request/,
  )
  assert.match(await answer('{"data":{"x":1}}', strategic), /"map\[data:map\[x:1\]\]": cannot convert int64 to string$/)
  assert.match(await answer('{"metadata":{"name":"x"}}', merge), /^400 the name of the object \(x\)/)
  assert.match(await answer('{"kind":"Foo"}', merge), /^422 .*no kind "Foo" is registered/)
  assert.match(await answer('{}', 'application/apply-patch+yaml'), /^422 .*is required for apply patch$/)
  assert.match(await answer('{}', merge, `${configMap}?force=true`), /^422 .*may not be specified for non-apply patch$/)
  assert.match(
    await answer('{}', strategic, '/apis/we.dev/v1/namespaces/default/widgets/w'),
    /^415 the body of the request/,
  )
  assert.match(await answer('{}', merge, `${configMap}x`), /^404/)
  assert.equal(world.events.length, 1)
})

test('fieldValidation of what a patch makes', async () => {
  const world = await worldWithConfigMap()
  const warned = await world.send('PATCH', configMap, '{"foo":1,"data":{"x":"1","x":"2"}}', merge)
  assert.deepEqual(warned.warnings, ['duplicate field "data.x"', 'unknown field "foo"'])
  const strict = await world.send('PATCH', `${configMap}?fieldValidation=Strict`, { foo: 1 }, strategic)
  assert.match(strict.body.message, /Invalid value: "map\[foo:1\]": strict decoding error: unknown field "foo"$/)
})

test('what a strategic patch cannot be converted to', async () => {
  const world = new FakeWorld()
  const deployments = '/apis/apps/v1/namespaces/default/deployments'
  const template = { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'a', image: 'b' }] } }
  const spec = { selector: { matchLabels: { a: 'b' } }, template }
  assert.equal((await world.send('POST', deployments, { metadata: { name: 'd' }, spec })).code, 201)
  const cases: readonly (readonly [patch: string, why: string])[] = [
    ['{"spec":{"replicas":"x"}}', 'unrecognized type: int32'],
    ['{"spec":{"replicas":1.5}}', 'cannot convert float64 to int32'],
    ['{"spec":{"paused":5}}', 'unrecognized type: bool'],
    ['{"metadata":{"labels":{"a":5}}}', 'cannot convert int64 to string'],
    ['{"metadata":{"labels":{"a":true}}}', 'unrecognized type: string'],
    ['{"metadata":{"labels":["x"]}}', 'cannot restore map from slice'],
    ['{"spec":{"template":{"spec":{"containers":"x"}}}}', 'cannot restore slice from string'],
    ['{"spec":"x"}', 'cannot restore struct from: string'],
  ]
  for (const [patch, why] of cases) {
    const { code, body } = await world.send('PATCH', `${deployments}/d`, patch, strategic)
    assert.equal(code, 422, patch)
    assert.ok(body.message.endsWith(`": ${why}`), `${patch}: ${body.message}`)
  }
})

test('[A8] an object that grows with each write ends where the real server’s storage does, and stays as it was', async () => {
  const world = new FakeWorld()
  const schema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }
  world.serve(...widgets({ schema }))
  const path = '/apis/we.dev/v1/namespaces/default/widgets'
  const million = 'x'.repeat(1_000_000)
  const made = { apiVersion: 'we.dev/v1', kind: 'Widget', metadata: { name: 'a' }, first: million }
  assert.equal((await world.send('POST', path, made)).code, 201)
  const before = world.bytes('we.dev/widgets', 'default/a')
  for (const dryRun of ['', '?dryRun=All']) {
    const { code, body } = await world.send('PATCH', `${path}/a${dryRun}`, { second: million }, merge)
    assert.equal(code, dryRun === '' ? 500 : 200)
    if (code === 500) assert.equal(body.message, 'etcdserver: request is too large')
  }
  assert.equal(world.bytes('we.dev/widgets', 'default/a'), before)
  assert.equal((await world.send('PATCH', `${path}/a`, { second: 'short' }, merge)).code, 200)
})
