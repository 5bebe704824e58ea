import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../../base/until.test-support.ts'
import { aggregated, quiet, World } from '../cloud.test-support.ts'

async function started(world = new World()): Promise<World> {
  await world.start()
  await until(() => world.catalog.complete)
  await world.pass(60_000)
  return world
}

/** Discovery without one group, or with it again. */
function hide(world: World, group: string): () => void {
  const { cloud } = world
  const before = structuredClone(cloud.documents)
  const document = cloud.document('/apis', 'aggregated')
  const tree = JSON.parse(document.body)
  tree.items = tree.items.filter((item: { metadata: { name?: string } }) => item.metadata.name !== group)
  document.body = JSON.stringify(tree)
  document.headers.etag = '"other"'
  const list = JSON.parse(cloud.document('/apis').body)
  list.groups = list.groups.filter((one: { name: string }) => one.name !== group)
  cloud.document('/apis').body = JSON.stringify(list)
  cloud.documents = cloud.documents.filter(({ path }) => !path.startsWith(`/apis/${group}`))
  return () => {
    cloud.documents = before
  }
}

const status = (answer: Awaited<ReturnType<World['get']>>) => (typeof answer === 'object' ? answer.status : answer)

const knowsOxen = (world: World) => world.catalog.find('pasture.test', 'v1', 'oxen') !== undefined

test('plain documents come by themselves within a minute, one at a time', async () => {
  await using world = new World()
  await world.start()
  await until(() => world.catalog.complete)
  await quiet()
  assert.ok(world.cloud.asked.length < 6, String(world.cloud.asked))
  await world.pass(60_000)
  for (const { path, accept } of world.cloud.documents) {
    if (accept === 'plain' && !path.startsWith('/openapi')) assert.ok(world.cloud.asked.includes(path), path)
  }
})

test('a hint is followed at once by those who ask, and by itself after half a second', async () => {
  await using world = new World()
  const show = hide(world, 'pasture.test')
  await started(world)
  assert.ok(!knowsOxen(world))
  show()
  world.documents.refresh()
  const answer = await world.get('/apis', { accept: aggregated })
  assert.ok(typeof answer === 'object' && answer.body.includes('pasture.test'))
  assert.ok(knowsOxen(world))
  hide(world, 'pasture.test')
  for (let i = 0; i < 10; i++) world.documents.refresh()
  const before = world.cloud.asked.filter((path) => path === '/apis').length
  await world.pass(400)
  assert.ok(knowsOxen(world))
  await world.pass(200)
  await until(() => !knowsOxen(world))
  assert.ok(world.cloud.asked.filter((path) => path === '/apis').length - before <= 2)
})

test('a change that comes while discovery is being read is seen by a caller that asks after it', async () => {
  await using world = new World()
  const show = hide(world, 'pasture.test')
  await started(world)
  world.documents.refresh()
  const first = world.get('/apis', { accept: aggregated })
  show()
  world.cloud.document('/apis', 'aggregated').headers.etag = '"shown"'
  world.documents.refresh()
  await Promise.all([first, world.get('/apis', { accept: aggregated })])
  assert.ok(knowsOxen(world))
})

test('only what changed is fetched again', async () => {
  await using world = new World()
  const show = hide(world, 'pasture.test')
  await started(world)
  const before = world.cloud.asked.length
  show()
  world.documents.refresh()
  await world.pass(60_000)
  const asked = new Set(world.cloud.asked.slice(before))
  const expected = ['/api', '/apis', '/apis/pasture.test', '/apis/pasture.test/v1', '/apis/pasture.test/v1beta1']
  assert.deepEqual([...asked].sort(), expected)
})

test('asking for what does not exist costs one look every five seconds', async () => {
  await using world = await started()
  const looks = () => world.cloud.asked.filter((path) => path === '/api').length
  const before = looks()
  for (let i = 0; i < 9; i++) {
    world.documents.seek()
    await world.pass(500)
  }
  // The one asked for, and the second look that follows each hint.
  assert.equal(looks() - before, 2)
  await world.pass(1_000)
  world.documents.seek()
  await world.pass(1_000)
  assert.equal(looks() - before, 3)
})

test('every five minutes without a hint, by ETag', async () => {
  await using world = await started()
  const before = world.cloud.asked.length
  await world.pass(230_000)
  assert.equal(world.cloud.asked.length, before)
  await world.pass(80_000)
  assert.deepEqual(world.cloud.asked.slice(before).sort(), ['/api', '/apis'])
})

test('a server without the aggregated form: the catalog is made of the plain documents', async () => {
  await using world = new World()
  world.cloud.aggregates = false
  world.cloud.refusals.set('/apis/autoscaling/v1', 503)
  await started(world)
  assert.equal(world.catalog.find('pasture.test', 'v1', 'oxen')?.resource.kind, 'Ox')
  assert.equal(world.catalog.find('', 'v1', 'pods')?.resource.kind, 'Pod')
  assert.deepEqual(
    world.catalog.resolveName('oxen').map(({ resource }) => resource.version),
    ['v1'],
  )
  // Its clients are told the same.
  const answer = await world.get('/apis', { accept: aggregated })
  assert.ok(typeof answer === 'object')
  assert.equal(answer.body.toString('utf8'), world.cloud.document('/apis').body)
  // One version fails later: what it had stays.
  world.cloud.refusals.set('/apis/pasture.test/v1', 503)
  await world.pass(301_000)
  assert.ok(knowsOxen(world))
  world.cloud.turn('unreachable')
  await world.restart()
  assert.ok(knowsOxen(world))
})

test('a stale group keeps its resources, over a restart too', async () => {
  await using world = await started()
  const document = world.cloud.document('/apis', 'aggregated')
  const tree = JSON.parse(document.body)
  for (const item of tree.items) {
    if (item.metadata.name !== 'pasture.test') continue
    for (const version of item.versions) Object.assign(version, { resources: [], freshness: 'Stale' })
  }
  document.body = JSON.stringify(tree)
  document.headers.etag = '"stale"'
  for (const version of ['v1', 'v1beta1']) world.cloud.refusals.set(`/apis/pasture.test/${version}`, 503)
  world.documents.refresh()
  await world.pass(60_000)
  assert.ok(knowsOxen(world))
  // What the API server says about it is passed on as it is.
  const answer = await world.get('/apis', { accept: aggregated })
  assert.ok(typeof answer === 'object')
  assert.equal(answer.body.toString('utf8'), document.body)
  world.cloud.turn('unreachable')
  await world.restart()
  assert.ok(knowsOxen(world))
})

test('an empty, a broken and a refused answer replace nothing', async () => {
  await using world = await started()
  const document = world.cloud.document('/apis', 'aggregated')
  const { body: good } = document
  const bad = [
    '',
    '{',
    '{"kind":"Status","status":"Failure"}',
    '{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[]}',
  ]
  for (const [index, body] of bad.entries()) {
    document.body = body
    document.headers.etag = `"bad ${index}"`
    world.documents.refresh()
    await world.pass(2_000)
    assert.ok(knowsOxen(world), body)
    const answer = await world.get('/apis', { accept: aggregated })
    assert.equal(typeof answer === 'object' && answer.body.toString('utf8'), good)
  }
  world.cloud.refusals.set('/apis', 403)
  world.documents.refresh()
  await world.pass(2_000)
  assert.ok(knowsOxen(world))
})

test('a refusal that lasts is told once, and again after it was over', async () => {
  await using world = await started()
  const told = () => world.lines.splice(0).filter((line) => line.includes('discovery.refused')).length
  for (const code of [401, 401]) {
    world.cloud.refusals.set('/apis', code)
    world.documents.refresh()
    await world.pass(120_000)
    assert.equal(told(), 1)
    world.cloud.refusals.delete('/apis')
    await world.pass(120_000)
  }
  assert.equal(told(), 0)
})

test('back from an outage: the first who asks hears what changed meanwhile', async () => {
  await using world = await started()
  world.cloud.turn('unreachable')
  await world.pass(600_000)
  hide(world, 'pasture.test')
  world.cloud.turn('reachable')
  const answer = await world.get('/apis', { accept: aggregated })
  assert.ok(typeof answer === 'object' && !answer.body.includes('pasture.test'))
  assert.ok(!knowsOxen(world))
})

test('[A6] what discovery no longer names is asked for once more, and the refusal is what is known of it offline', async () => {
  await using world = await started()
  const json = { accept: 'application/json' }
  await world.get('/apis/pasture.test/v1', { accept: 'application/json;q=0.5' })
  const show = hide(world, 'pasture.test')
  // A server that just started: it does not name all its groups yet, and does not deny them either.
  const places = ['/apis/pasture.test', '/apis/pasture.test/v1', '/apis/pasture.test/v1beta1']
  for (const place of places) world.cloud.refusals.set(place, 503)
  world.documents.refresh()
  await world.pass(60_000)
  world.cloud.turn('unreachable')
  for (const place of places) assert.equal(status(await world.get(place, json)), 200)
  world.cloud.turn('reachable')
  for (const place of places) world.cloud.refusals.delete(place)
  world.documents.refresh()
  await world.pass(60_000)
  world.cloud.turn('unreachable')
  await world.restart()
  for (const place of places) assert.equal(status(await world.get(place, json)), 404)
  show()
  world.cloud.turn('reachable')
  await world.pass(60_000)
  world.cloud.turn('unreachable')
  for (const place of places) assert.equal(status(await world.get(place, json)), 200)
})

test('nobody waits longer than a read may, and failures are retried with growing pauses', async () => {
  const world = await started()
  world.cloud.silent = true
  world.documents.refresh()
  const answer = world.get('/apis', { accept: aggregated })
  await quiet()
  world.clock.advance(300)
  assert.equal(typeof (await answer), 'object')
  // The question goes on; who comes later does not wait for it any more.
  assert.equal(typeof (await world.get('/apis', { accept: aggregated })), 'object')
  const before = world.cloud.asked.length
  await world.pass(300_000)
  const tries = world.cloud.asked.length - before
  assert.ok(tries >= 6 && tries <= 24, String(tries))
  world.cloud.silent = false
  await world.pass(60_000)
  assert.ok(knowsOxen(world))
  await world.stop()
  assert.equal(world.clock.pending(), 0)
})

test('a slow look and a hint beside it: every wait has an end', async () => {
  await using world = await started()
  const waits: number[] = []
  const { setTimer } = world.clock
  world.clock.setTimer = (ms, fn) => {
    waits.push(ms)
    return setTimer(ms, fn)
  }
  for (const place of ['/api', '/apis']) world.cloud.slow.set(place, 800)
  for (let i = 0; i < 4; i++) {
    world.documents.refresh()
    const answer = world.get('/apis', { accept: aggregated })
    await world.pass(1_000)
    assert.equal(status(await answer), 200)
  }
  assert.ok(waits.every(Number.isFinite), String(waits))
  assert.ok(waits.length < 100, String(waits.length))
  world.cloud.slow.clear()
  await world.pass(1_000)
})
