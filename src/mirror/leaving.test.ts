/** When interests end: those of what no longer exists within minutes, none while the cloud is away. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLog } from '../base/log.ts'
import { ApiServer } from './apiserver.test-support.ts'
import { Client, stepping } from './client.test-support.ts'
import { mirrorLimits } from './mirror.ts'
import type { MirroredInterest } from './mirrored.ts'
import { MirrorWorld, type Wish } from './world.test-support.ts'

const minuteMs = 60_000
const named = { namespace: 'a', fields: 'metadata.name=k0' }

async function opened(lines?: string[]): Promise<MirrorWorld> {
  const server = new ApiServer()
  server.put('namespaces', '/a')
  server.put('namespaces', '/b')
  server.put('pods', 'a/k0')
  const log = lines === undefined ? {} : { log: createLog({ level: 'debug', write: (line) => lines.push(line) }) }
  return await MirrorWorld.open({ server, ...log })
}

async function synced(world: MirrorWorld, wish: Wish, options: { standing?: boolean } = {}): Promise<MirroredInterest> {
  const mirrored = world.begin(wish, options) as MirroredInterest
  await world.until(() => mirrored.cache !== undefined)
  return mirrored
}

const names = (world: MirrorWorld) => [...world.interests.all].map(({ interest }) => interest.name).sort()

test('an interest by name ends minutes after its object is gone and nobody asks; one that exists stays', async () => {
  await using world = await opened()
  await synced(world, named)
  await synced(world, { namespace: 'a', fields: 'metadata.name=absent' })
  await world.pass(mirrorLimits.emptyUnaskedMsMax + minuteMs)
  assert.deepEqual(names(world), ['v1/pods@a?&metadata.name=k0'])
  world.server.remove('pods', 'a/k0')
  // Asked for again and again it stays.
  for (let minute = 0; minute < 10; minute++) {
    world.place('get', named, { key: 'a/k0' })
    await world.pass(minuteMs)
  }
  assert.equal(world.interests.size, 1)
  await world.pass(mirrorLimits.emptyUnaskedMsMax)
  assert.deepEqual([world.interests.size, world.server.watches.size], [0, 0])
  assert.equal((await world.store.records('interest')).length, 0)
})

test('what somebody watches, what an option names and what the cloud cannot tell stays', async () => {
  const world = await opened()
  const absent = { namespace: 'a', fields: 'metadata.name=absent' }
  const client = new Client(world, absent)
  await stepping(world, [client], () => client.idle)
  await synced(world, { ...absent, resource: 'configmaps' }, { standing: true })
  await synced(world, { namespace: 'a', fields: 'metadata.name=other' })
  world.server.reachability.set('unreachable')
  world.server.cutWatches()
  await world.pass(3 * mirrorLimits.emptyUnaskedMsMax, 300)
  assert.equal(world.interests.size, 3)
  // Reachable, and its watch cannot be opened: it is unknown whether it is still empty.
  world.server.fault = () => ({ kind: 'status', code: 500 })
  world.server.reachability.set('reachable')
  await world.pass(3 * mirrorLimits.emptyUnaskedMsMax, 300)
  assert.equal(world.interests.size, 3)
  world.server.fault = () => undefined
  await world.pass(2 * mirrorLimits.emptyUnaskedMsMax, 300)
  assert.deepEqual(names(world), ['v1/configmaps@a?&metadata.name=absent', 'v1/pods@a?&metadata.name=absent'])
  assert.notEqual(client.watcher, undefined)
  world.crash()
})

test('an empty interest in a namespace that is no more ends within minutes, once the API server has said so', async () => {
  await using world = await opened()
  const { server } = world
  for (let at = 0; at < 30; at++) {
    await synced(world, { namespace: `gone${at}` })
    await synced(world, { namespace: `gone${at}`, labels: 'app=web' })
  }
  await synced(world, { namespace: 'b' })
  await synced(world, { namespace: 'a' })
  await synced(world, { resource: 'configmaps', labels: 'app=none' })
  // The edge may not ask: nothing is known of namespaces.
  server.fault = ({ resource }) => (resource === 'namespaces' ? { kind: 'status', code: 403 } : undefined)
  await world.pass(mirrorLimits.emptyUnaskedMsMax + minuteMs)
  assert.equal(world.interests.size, 63)
  server.fault = () => undefined
  await world.pass(12 * minuteMs, 200)
  assert.deepEqual(names(world), ['v1/configmaps?app=none&', 'v1/pods@a', 'v1/pods@b'])
  // One that exists is asked for rarely, and one that is not empty not at all.
  const asked = server.requests.filter(({ resource }) => resource === 'namespaces').length
  await world.pass(60 * minuteMs, 800)
  const again = server.requests.filter(({ resource }) => resource === 'namespaces').length - asked
  assert.ok(again >= 4 && again <= 8, `${again} times in an hour`)
  server.remove('namespaces', '/b')
  await world.pass(11 * minuteMs, 200)
  assert.deepEqual(names(world), ['v1/configmaps?app=none&', 'v1/pods@a'])
})

test('where the edge may not ask for a namespace, as a node behind a hub, it goes by the namespaces that it mirrors', async () => {
  await using world = await opened()
  const { server } = world
  await synced(world, { resource: 'namespaces' })
  server.fault = ({ resource }) => (resource === 'namespaces' ? { kind: 'status', code: 403 } : undefined)
  for (const namespace of ['a', 'b', 'gone']) await synced(world, { namespace })
  await world.pass(mirrorLimits.emptyUnaskedMsMax + 2 * minuteMs)
  assert.deepEqual(names(world), ['v1/namespaces', 'v1/pods@a', 'v1/pods@b'])
  server.remove('namespaces', '/b')
  await world.pass(11 * minuteMs, 200)
  assert.deepEqual(names(world), ['v1/namespaces', 'v1/pods@a'])
})

test('[L4] a resource that is no more is said once, asked for ever more rarely, and at once when it is back', async () => {
  const lines: string[] = []
  await using world = await opened(lines)
  const { server } = world
  const said = () => lines.filter((line) => line.includes('mirror.refused')).length
  for (const first of [true, false]) {
    const wish = { resource: 'configmaps', namespace: first ? 'b' : '' }
    if (!first) await synced(world, wish)
    await world.pass(10_000)
    server.fault = ({ resource }) => (resource === 'configmaps' ? { kind: 'status', code: 404 } : undefined)
    const before = said()
    const mirrored = world.begin(wish) as MirroredInterest
    world.unknown.add('configmaps')
    world.interests.replan()
    server.cutWatches()
    await world.pass(4 * minuteMs, 480)
    assert.equal(mirrored.state.kind, 'refused')
    assert.equal(mirrored.hopeless, first)
    assert.equal(said() - before, 1)
    const asked = server.requests.length
    await world.pass(10 * minuteMs, 600)
    assert.ok(server.requests.length - asked <= 25, `${server.requests.length - asked} requests in ten minutes`)
    assert.equal(said() - before, 1)
    server.fault = () => undefined
    world.unknown.delete('configmaps')
    world.interests.replan()
    await world.pass(3_000)
    assert.equal(mirrored.state.kind, 'synced')
  }
})
