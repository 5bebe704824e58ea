import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sleep } from '../base/clock.ts'
import { fakeClock } from '../base/fakeclock.test-support.ts'
import { silentLog } from '../base/log.ts'
import { everything } from '../cache/filter.ts'
import { after, bytesOf, plan, Reader } from '../cache/fixture.test-support.ts'
import { Intake } from '../cache/intake.ts'
import { type Item, makeItem } from '../cache/item.ts'
import { MirrorCopy } from '../cache/mirrorcopy.ts'
import { openMemory } from '../store/memory.ts'
import type { Store } from '../store/store.ts'
import { ApiServer } from './apiserver.test-support.ts'
import { Client, stepping } from './client.test-support.ts'
import { Feed } from './feed.ts'
import { interestOf } from './interest.ts'
import type { MirroredInterest } from './mirrored.ts'
import { MirrorWorld, type Wish } from './world.test-support.ts'

const narrowWish: Wish = { labels: 'app=web' }

/** A narrow interest that is synced and watched by its own reflector, with a client that is cut before the wide one comes. */
async function narrowFirst(): Promise<{
  world: MirrorWorld
  server: ApiServer
  client: Client
  narrow: MirroredInterest
}> {
  const server = new ApiServer()
  for (let i = 0; i < 6; i++) server.put('pods', `a/k${i}`, { labels: { app: i % 2 === 0 ? 'web' : 'api' } })
  const world = await MirrorWorld.open({ server })
  const client = new Client(world, narrowWish)
  await stepping(world, [client], () => client.idle)
  return { world, server, client, narrow: world.mirrored(narrowWish) as MirroredInterest }
}

async function widen(world: MirrorWorld, clients: Client[]): Promise<MirroredInterest> {
  const wide = world.begin({}) as MirroredInterest
  const narrow = world.mirrored(narrowWish)
  await stepping(world, clients, () => wide.cache !== undefined && narrow?.fed === true)
  return wide
}

const changes = ({ heard }: Client) =>
  heard.filter((frame) => !/^(BOOKMARK|SYNCED)/.test(frame)).map((frame) => frame.split(' ').slice(0, 2).join(' '))

test('[A2] [A3] widening: the narrow one is fed, keeps floor and history, and costs the cloud no watch', async () => {
  const { world, server, client, narrow } = await narrowFirst()
  const floor = narrow.cache?.history.floor
  const cache = narrow.cache
  server.put('pods', 'a/k0', { labels: { app: 'web' }, value: 'own watch' })
  await stepping(world, [client], () => client.isRight())
  const cutAt = client.version
  client.cut()
  server.put('pods', 'a/k1', { labels: { app: 'web' }, value: 'while it widens' })
  await widen(world, [])
  server.put('pods', 'a/k3', { labels: { app: 'web' } })
  server.put('pods', 'a/k0', { labels: {} })
  server.remove('pods', 'a/k2')
  server.put('pods', 'a/k5', { labels: { app: 'api' }, value: 'not its business' })
  await world.pass(2_000)
  assert.equal(narrow.cache, cache)
  assert.deepEqual([narrow.cache?.history.floor, narrow.cache?.version], [floor, server.version])
  assert.deepEqual(narrow.state, { kind: 'fed', by: 'v1/pods' })
  assert.equal(server.watches.size, 1)
  // The wide one does not reach back to where the client was; the narrow one does.
  assert.ok(cutAt < (world.mirrored({})?.cache?.history.floor as number))
  await stepping(world, [client], () => client.isRight())
  assert.deepEqual(changes(client).slice(1), ['ADDED a/k1', 'ADDED a/k3', 'DELETED a/k0', 'DELETED a/k2'])
  assert.deepEqual([client.lists, client.expired], [1, []])
})

test('[A2] what the narrow one missed while it was cut off is a difference in its own history', async () => {
  const { world, server, client, narrow } = await narrowFirst()
  // Only the narrow one's requests fail: the wide one is in step before it.
  server.fault = ({ query }) => (query.has('labelSelector') ? { kind: 'refuse' } : undefined)
  server.cutWatches()
  server.remove('pods', 'a/k0')
  server.put('pods', 'a/k2', { labels: { app: 'web' }, value: 'new' })
  server.remove('pods', 'a/k4')
  server.put('pods', 'a/k4', { labels: { app: 'web' }, value: 'made again' })
  await widen(world, [client])
  await stepping(world, [client], () => client.isRight())
  assert.deepEqual(changes(client), ['DELETED a/k0', 'DELETED a/k4', 'MODIFIED a/k2', 'ADDED a/k4'])
  assert.equal(narrow.fed, true)
})

test('[A3] what its own slow watch still brings comes event by event, before the wider one feeds it', async () => {
  const server = new ApiServer()
  server.put('pods', 'a/k0', { labels: { app: 'web' } })
  server.fault = ({ query }) =>
    query.has('watch') && query.has('labelSelector') ? { kind: 'slow', ms: 500 } : undefined
  const world = await MirrorWorld.open({ server })
  const client = new Client(world, narrowWish)
  await stepping(world, [client], () => client.idle)
  server.put('pods', 'a/k1', { labels: { app: 'web' } })
  server.put('pods', 'a/k1', { labels: { app: 'web' }, value: 'new' })
  server.remove('pods', 'a/k1')
  await widen(world, [client])
  server.put('pods', 'a/k0', { labels: { app: 'web' }, value: 'new' })
  await stepping(world, [client], () => client.isRight())
  assert.deepEqual(changes(client), ['ADDED a/k1', 'MODIFIED a/k1', 'DELETED a/k1', 'MODIFIED a/k0'])
})

test('[A2] a difference of the wider one becomes one here', async () => {
  const { world, server, client } = await narrowFirst()
  const wide = await widen(world, [client])
  server.reachability.set('unreachable')
  server.cutWatches()
  server.remove('pods', 'a/k0')
  server.remove('pods', 'a/k1')
  server.put('pods', 'a/k3', { labels: { app: 'web' } })
  server.compact()
  server.reachability.set('reachable')
  await stepping(world, [client], () => client.isRight())
  assert.deepEqual(changes(client), ['DELETED a/k0', 'ADDED a/k3'])
  assert.deepEqual([wide.cache?.version, client.expired], [server.version, []])
})

test('a bookmark of the wider one takes the narrow one along', async () => {
  const { world, server, narrow } = await narrowFirst()
  await widen(world, [])
  for (let i = 0; i < 5; i++) server.put('configmaps', 'a/c')
  server.bookmark()
  await world.pass(2_000)
  assert.equal(narrow.cache?.version, server.version)
})

test('[A2] the wider one is dropped: the narrow one goes on with a reflector of its own, and lists nothing', async () => {
  const { world, server, client, narrow } = await narrowFirst()
  const wide = await widen(world, [client])
  const lists = server.count('list')
  await world.interests.end(wide, 'a test')
  server.put('pods', 'a/k0', { labels: { app: 'web' }, value: 'afterwards' })
  await stepping(world, [client], () => client.isRight() && narrow.state.kind === 'synced')
  assert.equal(narrow.fed, false)
  assert.deepEqual([server.count('list'), server.watches.size], [lists, 1])
  assert.deepEqual(client.expired, [])
})

test('it goes over to another wider one, where there is one', async () => {
  const { world, server, client, narrow } = await narrowFirst()
  const middle = world.begin({ namespace: 'a' }) as MirroredInterest
  await stepping(world, [client], () => middle.cache !== undefined)
  const inNamespace: Wish = { namespace: 'a', labels: 'app=web' }
  const inner = world.begin(inNamespace) as MirroredInterest
  await stepping(world, [client], () => inner.fed)
  await widen(world, [client])
  await world.interests.end(narrow, 'a test')
  await stepping(world, [client], () => middle.fed && inner.fed)
  await world.interests.end(middle, 'a test')
  await stepping(world, [client], () => inner.state.kind === 'fed' && inner.state.by === 'v1/pods')
  assert.equal(server.watches.size, 1)
})

test('[A2] a cluster put back while one is fed: each client is told once, and the feed is there again', async () => {
  const { world, server, client, narrow } = await narrowFirst()
  const { version } = server
  server.put('pods', 'a/k0', { labels: { app: 'web' }, value: 'lost' })
  server.put('pods', 'a/k9', { labels: { app: 'web' }, value: 'lost' })
  await widen(world, [client])
  await stepping(world, [client], () => client.isRight())
  server.restore(version)
  await stepping(world, [client], () => client.isRight() && client.idle && narrow.fed)
  assert.equal(client.expired.length, 1)
  await world.pass(2_000)
  assert.equal(server.watches.size, 1)
  assert.equal(
    world.restores,
    1,
    'what feeds it has told so: a hub that hears it twice has all its edges lose the new past too',
  )
})

test('[A2] what feeds one begins anew, over a disk that takes its time: what the lost past had is no ghost here', async () => {
  const server = new ApiServer()
  server.put('pods', 'a/k0', { labels: { app: 'web' } })
  const store = openMemory({ historyBytesMax: 1 << 20 })
  const commit = store.commit.bind(store)
  let takesMs = 0
  store.commit = async (batch) => {
    if (takesMs > 0) await sleep(server.clock, takesMs, new AbortController().signal)
    await commit(batch)
  }
  const world = await MirrorWorld.open({ server, store })
  const client = new Client(world, narrowWish)
  await stepping(world, [client], () => client.idle)
  const { version } = server
  server.put('pods', 'a/ghost', { labels: { app: 'web' } })
  server.put('pods', 'b/ghost', { labels: { app: 'api' } })
  await widen(world, [client])
  const last = server.version
  await stepping(world, [client], () => client.isRight() && client.version === last)
  // Put back, and grown beyond the old past in one breath: by what comes next the narrow one stands in the new past alone.
  server.reachability.set('unreachable')
  server.cutWatches()
  server.restore(version)
  while (server.version <= last) server.put('nodes', 'n')
  server.put('pods', 'a/k0', { labels: { app: 'web' }, value: 'of the new past' })
  takesMs = 300
  server.reachability.set('reachable')
  const wide = world.mirrored({}) as MirroredInterest
  await stepping(world, [client], () => wide.cache?.size === 1, 600)
  // In a cluster something always happens, and with it there is a version to tell a difference at.
  server.put('nodes', 'n')
  await stepping(world, [client], () => client.isRight() && world.mirrored(narrowWish)?.fed === true, 60)
})

test('[D3] a disk that refuses while it is fed: it stays fed, and catches up', async () => {
  const { world, server, client, narrow } = await narrowFirst()
  await widen(world, [client])
  world.refusing = true
  server.put('pods', 'a/k0', { labels: { app: 'web' }, value: 'new' })
  server.remove('pods', 'a/k2')
  await world.pass(20_000)
  assert.equal(narrow.cache?.size, 3)
  world.refusing = false
  await stepping(world, [client], () => client.isRight())
  assert.deepEqual([narrow.fed, client.expired], [true, []])
  await world.pass(2_000)
  assert.equal(server.watches.size, 1)
})

test('[A2] after a restart what was fed is fed again, offline too', async () => {
  const { world, server, client } = await narrowFirst()
  await widen(world, [client])
  server.put('pods', 'a/k0', { labels: { app: 'web' }, value: 'new' })
  await stepping(world, [client], () => client.isRight())
  server.reachability.set('unreachable')
  client.cut()
  await world.reopen()
  await stepping(world, [client], () => client.idle)
  assert.equal(world.mirrored(narrowWish)?.fed, true)
  const asked = server.requests.length
  server.put('pods', 'a/k2', { labels: { app: 'web' }, value: 'newer' })
  server.reachability.set('reachable')
  await stepping(world, [client], () => client.isRight())
  assert.deepEqual(
    server.requests.slice(asked).map((one) => one.what),
    ['probe', 'watch'],
  )
  assert.deepEqual(client.expired, [])
})

/** Two caches of one copy, the narrow one fed, whose commits wait while `held` is set. */
async function fedByHand(items: readonly Item[]) {
  const store: Store = openMemory({ historyBytesMax: 1 << 30 })
  const gate: { held: Promise<void> | undefined } = { held: undefined }
  const commit = store.commit.bind(store)
  store.commit = async (batch) => {
    if (batch.changes.some(({ interest }) => interest === 'narrow')) await gate.held
    return commit(batch)
  }
  const clock = fakeClock()
  const copy = await MirrorCopy.open({ store, clock, log: silentLog, planOf: () => plan })
  const side = async (name: string) => {
    const cache = await copy.begin(name, 10, items)
    const interest = interestOf({ group: '', version: 'v1', resource: 'pods', namespace: '' })
    return {
      interest,
      cache,
      readable: cache,
      hopeless: false,
      heardAt: 0,
      lastHeardAt: 0,
      watch: undefined,
      listKind: 'PodList',
    }
  }
  const [wide, narrow] = [await side('wide'), await side('narrow')]
  const feed = new Feed({ wide, narrow, filter: () => everything, copy, clock })
  const [intake, narrowIntake] = [wide, narrow].map(({ cache }) => new Intake({ copy, cache })) as [Intake, Intake]
  return { feed, gate, clock, narrow: narrow.cache, narrowIntake, intake }
}

test('[A3] a deletion of a gap stays one of a gap here: who was told more by the wider one hears of it', async (t) => {
  const made = (key: string, version: number) => makeItem(bytesOf(key, version, { value: '' }), version, plan)
  const { feed, gate, narrow, intake } = await fedByHand([made('a/gone', 3)])
  const over = new AbortController()
  t.after(() => over.abort())
  void feed.run(over.signal)
  await new Promise((resolve) => setImmediate(resolve))
  const { promise, resolve } = Promise.withResolvers<void>()
  gate.held = promise
  intake.put(made('a/k', 11))
  await intake.settled()
  // While the feed is busy with that one, the wider interest comes to 15, and then to know by a list that one is gone.
  intake.reach(15)
  await intake.settled()
  await intake.differ({ version: 20, changed: [], gone: ['a/gone'] })
  resolve()
  while (narrow.version < 20) await new Promise((then) => setImmediate(then))
  // It listed the wider interest at 15, with the object in it; what else happened up to there only that one could tell.
  assert.deepEqual(await new Reader(narrow, after(15)).drain(), ['ERROR 410 too old resource version: 15 (20)'])
  assert.deepEqual(await new Reader(narrow, after(11)).drain(), ['DELETED 11 a/gone @11'])
})

test('[A3] one that is ahead of the wider one goes on when that has come as far, event by event', async (t) => {
  const made = (key: string, version: number) => makeItem(bytesOf(key, version, { value: '' }), version, plan)
  const { feed, clock, narrow, narrowIntake, intake } = await fedByHand([made('a/k', 3)])
  narrowIntake.put(made('a/k', 12))
  await narrowIntake.settled()
  const over = new AbortController()
  t.after(() => over.abort())
  void feed.run(over.signal)
  for (const version of [11, 12, 13, 14]) {
    intake.put(made('a/k', version))
    await intake.settled()
  }
  while (narrow.version < 14) {
    clock.advance(100)
    await new Promise((then) => setImmediate(then))
  }
  assert.deepEqual(await new Reader(narrow, after(10)).drain(), [
    'MODIFIED 12 a/k @12',
    'MODIFIED 13 a/k @13',
    'MODIFIED 14 a/k @14',
  ])
})

test('[A2] one that is ahead of the wider one, which then lists: what came and went meanwhile is no ghost', async (t) => {
  const made = (key: string, version: number) => makeItem(bytesOf(key, version, { value: '' }), version, plan)
  const { feed, clock, narrow, narrowIntake, intake } = await fedByHand([made('a/k', 3)])
  narrowIntake.put(made('a/ghost', 12))
  await narrowIntake.settled()
  const over = new AbortController()
  t.after(() => over.abort())
  void feed.run(over.signal)
  // The wider one was cut off at 10: it never heard of the object, which was deleted at 13.
  await intake.differ({ version: 15, changed: [made('a/k', 14)], gone: [] })
  while (narrow.version < 15) {
    clock.advance(100)
    await new Promise((then) => setImmediate(then))
  }
  assert.deepEqual(
    narrow.all().map(({ key, version }) => `${key} ${version}`),
    ['a/k 14'],
  )
})
