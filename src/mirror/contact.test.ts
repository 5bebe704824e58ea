/** How old the copy is: also after a restart, by the interest that answers, and with the true reason. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { admin, EdgeWorld, warningsOf } from '../endpoint/edgeworld.test-support.ts'
import { openMemory } from '../store/memory.ts'
import { scopeOfName } from './interest.ts'

const maps = '/api/v1/namespaces/a/configmaps'
const day = 86_400_000

async function opened(store = openMemory({ historyBytesMax: 1 << 24 })): Promise<EdgeWorld> {
  const world = await EdgeWorld.open({ store })
  world.cloud.server.put('configmaps', 'a/c1', { value: 'one' })
  await world.synced('configmaps', 'a')
  return world
}

const ask = (world: EdgeWorld, url: string) => world.ask('GET', url, { peer: admin })
const warning = async (world: EdgeWorld, url: string) => warningsOf(await ask(world, url)).join()
const status = async (world: EdgeWorld) => (await ask(world, '/ake/status')).json
const heard = async (world: EdgeWorld) =>
  (await status(world)).interests.find((one: { resource: string }) => one.resource === 'configmaps').ageSeconds

function cut(world: EdgeWorld): void {
  world.cloud.reachability.set('unreachable')
  world.cloud.server.cutWatches()
}

test('[A6] the last contact survives restarts: a month is told from a minute in status and in the Warning of a read', async () => {
  await using world = await opened()
  await world.pass(90_000)
  cut(world)
  const cutMs = world.cloud.clock.now()
  await world.pass(5_000)
  world.cloud.clock.advance(30 * day)
  await world.restart()
  const { upstream } = await status(world)
  assert.equal(upstream.state, 'unreachable')
  for (const time of [upstream.lastContact, upstream.since]) {
    assert.ok(Math.abs(Date.parse(time) - cutMs) < 10_000, time)
  }
  assert.ok(Math.abs((await heard(world)) - 30 * 86_400) < 150)
  assert.match(await warning(world, `${maps}/c1`), /local copy, 30d old \(the API server cannot be asked/)
  await world.restart()
  assert.match(await warning(world, maps), /local copy, 30d old/)
})

test('a kill costs at most a minute of it, and the API server that is there once a minute a few bytes', async () => {
  const store = openMemory({ historyBytesMax: 1 << 24 })
  const written: number[] = []
  const { commit } = store
  store.commit = (batch) => {
    for (const { kind, value } of batch.records ?? []) if (kind === 'contact') written.push(value?.length ?? 0)
    return commit.call(store, batch)
  }
  await using world = await opened(store)
  await world.pass(605_000)
  assert.ok(written.length >= 9 && written.length <= 11, String(written.length))
  assert.ok(Math.max(...written) < 20)
  const before = written.length
  cut(world)
  await world.pass(600_000)
  assert.equal(written.length, before + 1, 'at the cut, and not while it lasts')
  // Another process, after a kill: nothing was written at the end of this one.
  const [stored] = await store.records('contact')
  const since = world.cloud.clock.now() - Number(stored?.value.toString())
  assert.ok(since >= 595_000 && since <= 610_000, String(since))
})

test('an interest that was refused long before the cut is as old as that, also after a restart', async () => {
  await using world = await opened()
  await world.pass(60_000)
  world.cloud.server.fault = ({ resource }) => (resource === 'configmaps' ? { kind: 'status', code: 403 } : undefined)
  world.cloud.server.cutWatches()
  await world.pass(240_000)
  cut(world)
  await world.pass(1_000)
  const before = await heard(world)
  assert.ok(before >= 240 && before < 320, String(before))
  await world.restart()
  const after = await heard(world)
  assert.ok(after >= before && after < before + 60, String(after))
})

test('[A6] the Warning of a GET is of the interest that answered, not of one that covers it or of none', async () => {
  await using world = await EdgeWorld.open()
  world.cloud.server.put('configmaps', 'a/c1', { labels: { app: 'web' } })
  const listing = world.later('GET', '/api/v1/configmaps?labelSelector=app%3Dweb&resourceVersion=0')
  await world.until(() => listing.done)
  await world.pass(2_000)
  // Its name is asked for, and its first sync does not come about before the cut.
  world.cloud.server.fault = ({ what }) => (what === 'list' ? { kind: 'slow', ms: 60_000 } : undefined)
  for (const isCovered of [false, true]) {
    world.cloud.reachability.set('unreachable')
    if (!isCovered) world.cloud.server.cutWatches()
    await world.pass(7_000)
    assert.match(await warning(world, `${maps}/c1`), /local copy, \d+ s old/, isCovered ? 'covered' : 'not covered')
    world.cloud.reachability.set('reachable')
    await ask(world, `${maps}/c1`)
    const known = world.catalog.find('', 'v1', 'configmaps')
    assert.ok(known)
    world.interests.begin(
      scopeOfName({ group: '', version: 'v1', resource: 'configmaps', namespace: 'a' }, 'c1'),
      known,
    )
  }
})

test('[A6] an expired credential is named: nothing blames a silent watch for it', async () => {
  await using world = await opened()
  await world.pass(60_000)
  world.cloud.server.fault = () => ({ kind: 'status', code: 401 })
  world.cloud.server.cutWatches()
  world.cloud.reachability.why = "the API server answers, but refuses the edge's credential (401); it expired yesterday"
  await world.pass(20_000)
  const named = /\(its watch is refused: the API server answers, but refuses the edge's credential \(401\); it expired/
  const told = await warning(world, maps)
  assert.match(told, named)
  assert.doesNotMatch(told, /silent/)
  // What is asked again may break off.
  world.cloud.server.fault = () => ({ kind: 'refuse' })
  await world.pass(60_000)
  assert.match(await warning(world, maps), named)
})
