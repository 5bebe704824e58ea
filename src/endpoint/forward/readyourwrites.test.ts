/** Read your writes: which replies are held, until when, and what is shown of those that could not be. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { configMap } from '../../kube/protobuf/messages.test-support.ts'
import { aliceToken, answered, EdgeWorld, objectText } from '../edgeworld.test-support.ts'

const maps = '/api/v1/namespaces/a/configmaps'
const c1 = `${maps}/c1`

/** Everything of configmaps in namespace a is kept, at version 2. */
async function synced(): Promise<EdgeWorld> {
  const world = await EdgeWorld.open()
  world.cloud.server.put('configmaps', 'a/c1', { value: 'one' })
  await world.synced('configmaps', 'a')
  return world
}

const listed = (version: number, value: string, name = 'c1') =>
  `{"metadata":{"name":"${name}","namespace":"a","uid":"u1","resourceVersion":"${version}"},"spec":{},"value":"${value}"}`

/** The API server answers writes with this; the events come when the test makes them. */
function replies(world: EdgeWorld, status: number, body: string | Buffer, type = 'application/json'): void {
  world.cloud.script = ({ method, path }) =>
    method !== 'GET' && path.startsWith('/api/v1/') ? answered(status, body, { 'content-type': type }) : undefined
}

const write = (world: EdgeWorld, method: string, url: string) =>
  world.later(method, url, { token: aliceToken, body: '{}', headers: { 'content-type': 'application/json' } })

test('[A7] a reply is held until the covering interest has reached its version', async () => {
  const bodies: [string, string][] = [
    [objectText('configmaps', listed(3, 'new')), 'application/json'],
    [
      `{"kind":"Table","metadata":{},"rows":[{"cells":[],"object":{"kind":"PartialObjectMetadata","metadata":{"name":"c1","namespace":"a","resourceVersion":"3"}}}]}`,
      'application/json;as=Table;v=v1;g=meta.k8s.io',
    ],
  ]
  for (const [body, type] of bodies) {
    await using world = await synced()
    replies(world, 200, body, type)
    const put = write(world, 'PUT', c1)
    await world.pass(1_000)
    assert.equal(put.done, false, type)
    world.cloud.server.put('configmaps', 'a/c1', { value: 'new' })
    await world.until(() => put.done, 1)
    const answer = await put.answer
    assert.deepEqual([answer.status, answer.text], [200, body], type)
    assert.equal((await world.get(`${c1}?resourceVersion=0`)).json.value, 'new')
  }
})

test('[A7] what is written while a first list is under way, which was read before it, answers until the copy has passed it', async () => {
  await using world = await EdgeWorld.open()
  const { server } = world.cloud
  server.put('configmaps', 'a/c1', { value: 'one' })
  server.fault = ({ what }) => (what === 'list' || what === 'page' ? { kind: 'slow', ms: 1_000 } : undefined)
  const list = world.later('GET', `${maps}?resourceVersion=0`, { token: aliceToken })
  await world.pass(100)
  replies(world, 200, objectText('configmaps', listed(3, 'new')))
  const put = write(world, 'PUT', c1)
  await world.until(() => put.done, 1)
  await world.until(() => list.done, 100)
  assert.equal((await list.answer).json.items?.[0]?.value, 'one', 'the list was read before')
  assert.equal((await world.get(`${c1}?resourceVersion=0`)).json.value, 'new')
  server.put('configmaps', 'a/c1', { value: 'new' })
  server.put('configmaps', 'a/c1', { value: 'newer' })
  await world.pass(100)
  assert.equal((await world.get(`${c1}?resourceVersion=0`)).json.value, 'newer')
})

test('[A7] a reply that is held is asked for uncompressed, any other as its client wants it', async () => {
  await using world = await synced()
  replies(world, 200, objectText('configmaps', listed(3, 'new')), 'application/json')
  world.cloud.server.put('configmaps', 'a/c1', { value: 'new' })
  const headers = { 'accept-encoding': 'gzip' }
  const secret = '/api/v1/namespaces/a/secrets/s1'
  const wanted = async (path: string) => {
    const asking = world.later('PUT', path, { headers, body: '{}' })
    await world.until(() => asking.done, 5)
    return world.cloud.passed('PUT', path).at(-1)?.headers?.['accept-encoding']
  }
  assert.deepEqual([await wanted(c1), await wanted(secret)], ['identity', 'gzip'])
})

test('[A7] a protobuf reply is held like any other, and goes out as it came', async () => {
  await using world = await EdgeWorld.open()
  const { server } = world.cloud
  server.put('configmaps', 'pbwork/cm', { value: 'one' })
  await world.synced('configmaps')
  replies(world, 200, configMap, 'application/vnd.kubernetes.protobuf')
  const put = write(world, 'PUT', '/api/v1/namespaces/pbwork/configmaps/cm')
  await world.pass(1_000)
  assert.equal(put.done, false)
  // The version that the recorded reply tells.
  server.version = 310
  server.put('configmaps', 'pbwork/cm', { value: 'two' })
  await world.until(() => put.done, 1)
  assert.equal((await put.answer).text, configMap.toString('latin1'))
})

test('[A7] a created object is held for by its name in the reply', async () => {
  await using world = await synced()
  replies(world, 201, objectText('configmaps', listed(3, 'made', 'made-up')))
  const post = write(world, 'POST', maps)
  await world.pass(500)
  assert.equal(post.done, false)
  world.cloud.server.put('configmaps', 'a/made-up', { value: 'made' })
  await world.until(() => post.done, 1)
  assert.equal((await world.get(`${maps}/made-up?resourceVersion=0`)).status, 200)
})

test('[A7] a Status reply to a DELETE is held until the key is gone, or belongs to another object', async () => {
  const gone = (uid: string) =>
    JSON.stringify({ kind: 'Status', apiVersion: 'v1', status: 'Success', details: { name: 'c1', kind: 'x', uid } })
  for (const isAnother of [false, true]) {
    await using world = await synced()
    const { server } = world.cloud
    replies(world, 200, gone('u1'))
    const remove = write(world, 'DELETE', c1)
    await world.pass(500)
    assert.equal(remove.done, false)
    server.put('configmaps', 'a/c1', { value: 'changed' })
    await world.pass(100)
    assert.equal(remove.done, false, 'it is still the same object')
    server.remove('configmaps', 'a/c1')
    if (isAnother) server.put('configmaps', 'a/c1', { value: 'another' })
    await world.until(() => remove.done, 1)
    const { status, json } = await world.get(`${c1}?resourceVersion=0`)
    assert.deepEqual([status, json.value], isAnother ? [200, 'another'] : [404, undefined])
  }
})

test('[A7] a Status reply about an object whose name is another’s by now is not held', async () => {
  await using world = await synced()
  const details = { name: 'c1', kind: 'configmaps', uid: 'an-earlier-one' }
  replies(world, 200, JSON.stringify({ kind: 'Status', apiVersion: 'v1', status: 'Success', details }))
  const remove = write(world, 'DELETE', c1)
  await world.pass(1)
  assert.equal(remove.done, true)
})

test('[A7] not held: uncovered, dryRun, a no-op, a refusal, what stands behind a proxy; nor what a look shows unchanged', async () => {
  await using world = await synced()
  const object = objectText('configmaps', listed(99, 'new'))
  const rows: [string, string, number, string][] = [
    ['PUT', '/api/v1/namespaces/b/configmaps/c1', 200, object.replace('"namespace":"a"', '"namespace":"b"')],
    ['PUT', '/api/v1/nodes/n1', 200, object],
    ['PUT', `${c1}?dryRun=All`, 200, object],
    ['PUT', c1, 200, objectText('configmaps', listed(2, 'one'))],
    ['DELETE', `${maps}?dryRun=All`, 200, object],
    ['DELETE', maps, 200, '{"kind":"ConfigMapList","metadata":{},"items":[]}'],
    ['PUT', c1, 409, '{"kind":"Status","status":"Failure","code":409}'],
    ['PUT', `${c1}/proxy`, 200, object],
    ['PUT', `${c1}/scale`, 200, object.replace('ConfigMap', 'Scale').replace('"99"', '"2"')],
    ['PUT', c1, 200, 'not JSON at all'],
    ['PUT', c1, 200, '{}'],
    ['POST', `${c1}/whatever`, 201, '{"kind":"Whatever","metadata":{"name":"c1","namespace":"a"}}'],
  ]
  for (const [method, url, status, body] of rows) {
    replies(world, status, body, 'application/json; charset=utf-8')
    const response = world.response(method, url, { token: aliceToken, body: '{}' })
    await world.pass(1)
    const raced = await Promise.race([response.then(({ status: got }) => got), world.pass(100).then(() => 'held')])
    assert.equal(raced, status, `${method} ${url} ${body.slice(0, 20)}`)
  }
})

test('[A7] after 2 s it goes out, and its object answers GETs of its key until the copy has passed it', async () => {
  await using world = await synced()
  replies(world, 200, objectText('configmaps', listed(3, 'new')))
  const put = write(world, 'PUT', c1)
  await world.pass(1_900)
  assert.equal(put.done, false)
  await world.pass(200)
  assert.equal((await put.answer).status, 200)
  const get = async () => (await world.get(`${c1}?resourceVersion=0`)).text
  assert.equal(await get(), objectText('configmaps', listed(3, 'new')))
  const ahead = world.later('GET', `${c1}?resourceVersion=4`)
  await world.pass(3_100)
  assert.equal((await ahead.answer).status, 504, 'it is not newer than it is')
  const list = await world.get(`${maps}?resourceVersion=0`)
  assert.deepEqual([list.json.metadata.resourceVersion, list.json.items[0].value], ['2', 'one'], 'no list shows it')
  const { body } = await world.response('GET', `${maps}?watch=1&resourceVersion=2`, { token: aliceToken })
  const frames = (body as AsyncIterable<Buffer>)[Symbol.asyncIterator]()
  const first = frames.next()
  const { server } = world.cloud
  server.put('configmaps', 'a/c1', { value: 'arrived' })
  await world.pass(500)
  assert.match(String((await first).value), /"value":"arrived"/, 'and no history')
  await frames.return?.()
  assert.match(await get(), /"value":"arrived"/)
  server.remove('configmaps', 'a/c1')
  await world.pass(500)
  assert.equal((await world.get(`${c1}?resourceVersion=0`)).status, 404, 'it does not come back')
})

test('[A7] an object that was answered in protobuf is shown as any other, in either form', async () => {
  await using world = await EdgeWorld.open()
  world.cloud.server.put('configmaps', 'pbwork/cm', { value: 'one' })
  await world.synced('configmaps')
  const url = '/api/v1/namespaces/pbwork/configmaps/cm'
  replies(world, 200, configMap, 'application/vnd.kubernetes.protobuf')
  const put = write(world, 'PUT', url)
  await world.pass(2_100)
  assert.equal((await put.answer).status, 200)
  const { json } = await world.get(`${url}?resourceVersion=0`)
  assert.deepEqual([json.kind, json.metadata.resourceVersion, json.data], ['ConfigMap', '311', { k: 'v' }])
  const headers = { accept: 'application/vnd.kubernetes.protobuf' }
  const { text } = await world.ask('GET', `${url}?resourceVersion=0`, { token: aliceToken, headers })
  assert.equal(text, configMap.toString('latin1'), 'byte for byte')
})

test('[A7] what was written is shown when it is created beyond the copy, and not once the copy is past it', async () => {
  await using world = await synced()
  replies(world, 201, objectText('configmaps', listed(3, 'made', 'c9')))
  const post = write(world, 'POST', maps)
  await world.pass(2_100)
  assert.equal((await post.answer).status, 201)
  const url = `${maps}/c9?resourceVersion=0`
  assert.equal((await world.get(url)).json.value, 'made')
  // The watch tells of something later: had it still existed, the copy would have it.
  world.cloud.server.put('configmaps', 'a/c1', { value: 'x' })
  world.cloud.server.put('configmaps', 'a/c1', { value: 'y' })
  await world.pass(500)
  assert.equal((await world.get(url)).status, 404)
})

test('[A7] a dead link holds nothing: the reply goes out at once, and its object is shown', async () => {
  await using world = await synced()
  replies(world, 200, objectText('configmaps', listed(3, 'new')))
  await world.get(`${c1}?resourceVersion=0`)
  const put = write(world, 'PUT', c1)
  await world.pass(300)
  assert.equal(put.done, false)
  world.cloud.reachability.set('unreachable')
  await world.pass(1)
  assert.equal(put.done, true)
  assert.equal((await world.get(c1)).json.value, 'new')
})

test('[A7] an answer printed for people is held for too, but never shown in place of the object', async () => {
  await using world = await synced()
  const printed = `${JSON.stringify(JSON.parse(objectText('configmaps', listed(3, 'new'))), null, 2)}\n`
  replies(world, 200, printed)
  const put = write(world, 'PUT', `${c1}?pretty=true`)
  await world.pass(1_000)
  assert.equal(put.done, false)
  await world.pass(1_100)
  assert.equal((await put.answer).text, printed)
  assert.equal((await world.get(`${c1}?resourceVersion=0`)).json.value, 'one')
})
