/** The document behind `ake status`: what it says of every interest, of what is passed through, and of the cloud. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { admin, aliceToken, EdgeWorld } from '../endpoint/edgeworld.test-support.ts'

const status = async (world: EdgeWorld) => (await world.ask('GET', '/ake/status', { peer: admin })).json

test('each interest with its objects, bytes, version, age and watchers; the cloud with why', async () => {
  await using world = await EdgeWorld.open({ wanted: [{ resource: 'nodes', namespace: '' }] })
  const { server } = world.cloud
  server.put('configmaps', 'a/c1', { labels: { app: 'web' } })
  await world.synced('configmaps', 'a')
  const url = '/api/v1/namespaces/a/configmaps?watch=1&resourceVersion=2'
  const { body } = await world.response('GET', url, { token: aliceToken })
  const frames = (body as AsyncIterable<Buffer>)[Symbol.asyncIterator]()
  void frames.next()
  await world.pass(7_000)
  const shown = await status(world)
  assert.deepEqual(shown.upstream, {
    state: 'reachable',
    why: '',
    since: new Date(0).toISOString(),
    lastContact: new Date(world.cloud.clock.now()).toISOString(),
    servers: [{ url: 'https://cloud', current: true, why: 'in use' }],
  })
  const found = shown.interests.find((one: { resource: string }) => one.resource === 'configmaps')
  assert.ok(found.bytes > 50)
  const { bytes: _, asked, ...rest } = found
  assert.ok(Math.abs(Date.parse(asked) - world.cloud.clock.now()) < 60_000)
  assert.deepEqual(rest, {
    resource: 'configmaps',
    group: '',
    version: 'v1',
    namespace: 'a',
    state: 'synced',
    objects: 1,
    resourceVersion: 2,
    ageSeconds: 7,
    watchers: 1,
  })
  assert.equal(shown.interests.find((one: { resource: string }) => one.resource === 'nodes').standing, true)
  assert.equal(shown.store.healthy, true)
  assert.deepEqual(shown.passedThrough, [])
  void frames.return?.()
  world.cloud.reachability.set('unreachable')
  const away = await status(world)
  assert.deepEqual([away.upstream.state, away.upstream.why], ['unreachable', 'the test says so'])
})

test('what may not be read here is listed as passed through, with its reason', async () => {
  await using world = await EdgeWorld.open()
  world.cloud.server.fault = () => ({ kind: 'status', code: 403 })
  const list = world.later('GET', '/api/v1/namespaces/a/pods?watch=1&resourceVersion=0')
  await world.pass(3_000)
  assert.equal(list.done, true)
  const { interests, passedThrough } = await status(world)
  assert.deepEqual(interests, [])
  assert.equal(passedThrough.length, 1)
  assert.deepEqual([passedThrough[0].resource, passedThrough[0].group], ['pods', ''])
  assert.match(passedThrough[0].why, /403/)
  assert.deepEqual([passedThrough[0].state, passedThrough[0].code], ['refused', 403])
  world.cloud.reachability.set('unreachable')
  await world.pass(60_000)
  assert.deepEqual((await status(world)).passedThrough, passedThrough, 'a cut line is not why')
  await world.restart()
  assert.deepEqual((await status(world)).passedThrough, passedThrough, 'nor is a start without the cloud')
})

test('the cause of a refusal is told while the cloud is away, also of what is held', async () => {
  await using world = await EdgeWorld.open()
  await world.synced('pods')
  world.cloud.server.fault = () => ({ kind: 'status', code: 403 })
  world.cloud.server.cutWatches()
  await world.pass(10_000)
  const [refused] = (await status(world)).interests
  assert.deepEqual([refused.state, refused.code], ['refused', 403])
  world.cloud.reachability.set('unreachable')
  await world.pass(60_000)
  const [away] = (await status(world)).interests
  assert.deepEqual([away.state, away.code, away.why], ['waiting', 403, refused.why])
  await world.restart()
  const [started] = (await status(world)).interests
  assert.deepEqual([started.state, started.code, started.why], ['waiting', 403, refused.why], 'also after a restart')
  world.cloud.server.fault = () => undefined
  world.cloud.reachability.set('reachable')
  await world.pass(60_000)
  const [back] = (await status(world)).interests
  assert.deepEqual([back.state, back.code, back.why], ['synced', undefined, undefined])
  await world.stop()
  world.cloud.reachability.set('unreachable')
  await world.start()
  const [last] = (await status(world)).interests
  assert.deepEqual([last.state, last.code], ['waiting', undefined], 'nothing is left of what is over')
})

test('what was removed because it may not be read any more is passed through and says so, also what an option names', async () => {
  await using world = await EdgeWorld.open({ wanted: [{ resource: 'nodes', namespace: '' }] })
  const { cloud } = world
  cloud.server.put('nodes', 'n1')
  await world.pass(5_000)
  cloud.server.fault = ({ resource }) => (resource === 'nodes' ? { kind: 'status', code: 403 } : undefined)
  cloud.judge.allows = (_, { resourceAttributes }) => resourceAttributes?.resource !== 'nodes'
  cloud.server.cutWatches()
  const of = (all: readonly { resource: string }[]) => all.find(({ resource }) => resource === 'nodes')
  await world.pass(60_000)
  assert.partialDeepStrictEqual(of((await status(world)).interests), { state: 'refused', objects: 1 })
  await world.pass(17 * 60_000)
  const shown = await status(world)
  assert.equal(of(shown.interests), undefined)
  assert.match(JSON.stringify(of(shown.passedThrough)), /what was held of it was removed: .*403/)
})

test('before the first sync nothing is invented: no objects, and its state says why', async () => {
  await using world = await EdgeWorld.open()
  world.cloud.server.fault = ({ what }) => (what === 'list' ? { kind: 'refuse' } : undefined)
  void world.later('GET', '/api/v1/pods?resourceVersion=0')
  await world.pass(1_000)
  const [pods] = (await status(world)).interests
  assert.deepEqual([pods.objects, pods.resourceVersion, pods.ageSeconds], [0, 0, undefined])
  assert.match(pods.why, /connection refused/)
})
