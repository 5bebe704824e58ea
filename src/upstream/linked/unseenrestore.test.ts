/** A cluster that is put back while no hub runs, with the state of the hubs: only the edge is of the past that was. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Client, stepping } from '../../mirror/client.test-support.ts'
import { MirrorWorld, settle } from '../../mirror/world.test-support.ts'
import { LinkedWorld } from './linkedworld.test-support.ts'

/** An edge whose client has heard of everything, of which everything behind the fifth object is about to be lost. */
async function open() {
  const linked = new LinkedWorld()
  let kept = 0
  for (let at = 0; at < 5; at++) kept = linked.put(`a/k${at}`, `${at}`)
  await settle(20)
  const { server, follow } = linked
  const world = await MirrorWorld.open({ server, follow })
  world.begin({}, { standing: true })
  const client = new Client(world, {})
  await stepping(world, [client], () => client.idle && client.isRight())
  linked.put('a/k1', 'lost')
  linked.put('a/ghost', 'lost')
  linked.remove('a/k2')
  await stepping(world, [client], () => client.isRight() && client.idle)
  assert.equal(client.lists, 1)
  return { linked, world, client, kept, had: server.version, [Symbol.asyncDispose]: () => world.stop() }
}

test('[L7] an edge ahead of a cluster that was put back unseen is told so by its hub alone, heals, and its clients list once', async () => {
  await using it = await open()
  const { linked, world, client, kept, had } = it
  linked.restoreUnseen(kept)
  await stepping(world, [client], () => client.isRight() && client.idle)
  assert.deepEqual([client.lists, client.expired.length], [2, 1])
  // Every version of the lost past is gone, also once the new one has come further.
  while (linked.server.version <= had) linked.put('a/later', `${linked.server.version}`)
  await stepping(world, [client], () => client.isRight() && client.idle)
  assert.equal(client.lists, 2)
  const { cache } = world.mirrored({}) ?? {}
  assert.equal(cache?.isGone(had), true)
  assert.equal(linked.hub.epoch, 1)
  assert.equal(linked.server.count('list'), 0)
})

test('[L7] an edge ahead of a hub whose watch is behind goes on waiting, however long that takes', async () => {
  await using it = await open()
  const { linked, world, client, had } = it
  const { server, hub } = linked
  const objects = [...server.listed('pods').keys()].map((key) => hub.get(key)!)
  // A hub that starts from what it was told before; the API server is as far as the edge.
  linked.cut()
  hub.restart(objects, had - 1)
  await world.pass(300_000)
  assert.deepEqual([client.lists, client.expired], [1, []])
  linked.put('a/k0', 'on')
  await stepping(world, [client], () => client.isRight() && client.idle)
  assert.deepEqual([client.lists, client.expired], [1, []])
})

test('[L7] a cluster that was put back unseen and has come further than the edge is told by objects that are older than they were', async () => {
  await using it = await open()
  const { linked, world, client, kept, had } = it
  linked.restoreUnseen(kept)
  while (linked.server.version <= had) linked.put('a/later', `${linked.server.version}`)
  await stepping(world, [client], () => client.isRight() && client.idle)
  assert.deepEqual([client.lists, client.expired.length], [2, 1])
  assert.equal(world.mirrored({})?.cache?.isGone(had), true)
  assert.equal(linked.server.count('list'), 0)
})

test('[L7] objects that are older under versions that went on are a gap like any other: no client lists again', async () => {
  await using it = await open()
  const { linked, world, client, kept } = it
  linked.restoreUnseen(kept, 1_000)
  await stepping(world, [client], () => client.isRight() && client.idle)
  assert.deepEqual([client.lists, client.expired], [1, []])
})

test('[L7] where the API server does not tell this edge whether it has forgotten, objects that are older make no client list again', async () => {
  await using it = await open()
  const { linked, world, client, kept } = it
  linked.server.fault = () => ({ kind: 'status', code: 403 })
  linked.restoreUnseen(kept, 1_000)
  await stepping(world, [client], () => client.isRight() && client.idle)
  assert.deepEqual([client.lists, client.expired], [1, []])
})
