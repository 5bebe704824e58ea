/** A mirror whose clients were shown a label that the cloud has not come to: upstream goes by the cloud's number alone. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Cache } from '../cache/cache.ts'
import { after, Reader } from '../cache/fixture.test-support.ts'
import { ApiServer } from './apiserver.test-support.ts'
import { Client, stepping } from './client.test-support.ts'
import { MirrorWorld, type Wish } from './world.test-support.ts'

async function mirrored() {
  const server = new ApiServer()
  for (let i = 0; i < 4; i++) server.put('pods', `a/k${i}`)
  const world = await MirrorWorld.open({ server })
  const begun = world.begin({})
  await world.until(() => begun?.state.kind === 'synced')
  return { server, world, cache: begun?.cache as Cache, [Symbol.asyncDispose]: () => world.stop() }
}

async function watched(wish: Wish) {
  const server = new ApiServer()
  for (let i = 0; i < 4; i++) server.put('pods', `a/k${i}`, { labels: { app: 'web' } })
  const world = await MirrorWorld.open({ server })
  const client = new Client(world, wish)
  await stepping(world, [client], () => client.idle)
  const cache = world.mirrored(wish)?.cache as Cache
  return { server, world, client, cache, [Symbol.asyncDispose]: () => world.stop() }
}

/** As a local write does, which takes a label of its own. */
function raise(cache: Cache, label: number): void {
  cache.cloud.labelled = label
  cache.progress.advance(label)
}

test('[A2] with the label ahead a watch is resumed at the cloud’s version, and the cluster is not taken for one that was put back', async () => {
  await using it = await mirrored()
  const { server, world, cache } = it
  const { version } = server
  raise(cache, version + 10)
  server.cutWatches()
  server.put('pods', 'a/k0', { value: 'below the label' })
  await world.until(() => cache.cloud.version === server.version)
  assert.deepEqual(
    server.requests.map((one) => one.what),
    ['list', 'watch', 'probe', 'watch'],
  )
  const label = version + 11
  assert.deepEqual([cache.version, cache.get('a/k0')?.version], [label, label])
  assert.equal(cache.cloud.peek('a/k0')?.version, server.version)
  assert.deepEqual(await new Reader(cache, after(version + 10)).drain(), [
    `MODIFIED ${label} a/k0 below the label@${label}`,
  ])
})

test('[A2] with the label ahead what the cloud forgot is listed and compared by its own versions', async () => {
  await using it = await mirrored()
  const { server, world, cache } = it
  const label = server.version + 20
  raise(cache, label)
  for (const [value, gone] of [
    ['first', 'a/k1'],
    ['second', 'a/k2'],
  ] as const) {
    server.reachability.set('unreachable')
    server.cutWatches()
    server.put('pods', 'a/k0', { value })
    server.remove('pods', gone)
    server.compact()
    server.reachability.set('reachable')
    await world.until(() => cache.cloud.version === server.version)
  }
  assert.ok(cache.cloud.version < label)
  const told = await new Reader(cache, after(label)).drain()
  assert.deepEqual(
    told.map((line) => line.replace(/ v?\S*@/, ' @')),
    [
      `DELETED ${label} a/k1 @${label}`,
      `MODIFIED ${label + 1} a/k0 @${label + 1}`,
      `DELETED ${label + 1} a/k2 @${label + 1}`,
      `MODIFIED ${label + 2} a/k0 @${label + 2}`,
    ],
    'only what differs is told',
  )
})

test('[A3] what is fed takes over the cloud’s versions, whatever the wider interest shows them under', async () => {
  const wish = { labels: 'app=web' }
  await using it = await watched(wish)
  const { server, world, client, cache: narrow } = it
  const wide = world.begin({})
  await stepping(world, [client], () => wide?.cache !== undefined && world.mirrored(wish)?.fed === true)
  raise(wide?.cache as Cache, server.version + 10)
  server.put('pods', 'a/k0', { labels: { app: 'web' }, value: 'new' })
  server.remove('pods', 'a/k1')
  await stepping(world, [client], () => client.isRight())
  assert.deepEqual([narrow.version, narrow.cloud.version], [server.version, server.version])
  assert.ok((wide?.cache?.version as number) > server.version)
  for (let i = 0; i < 20; i++) server.put('configmaps', 'a/other')
  server.put('pods', 'a/k2', { labels: { app: 'web' }, value: 'above the label' })
  await stepping(world, [client], () => client.isRight())
  assert.deepEqual([narrow.version, wide?.cache?.version], [server.version, server.version])
  assert.deepEqual([client.lists, client.expired], [1, []])
})
