/** What the hub learned from a list: the edge has a gap of its own, as if it had listed itself, and its clients never list again. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Client, stepping } from '../../mirror/client.test-support.ts'
import { MirrorWorld, settle } from '../../mirror/world.test-support.ts'
import { LinkedWorld } from './linkedworld.test-support.ts'

async function open(): Promise<{ linked: LinkedWorld; world: MirrorWorld; client: Client; kept: number }> {
  const linked = new LinkedWorld()
  let kept = 0
  for (let at = 0; at < 5; at++) kept = linked.put(`a/k${at}`, `${at}`)
  await settle(20)
  const { server, follow } = linked
  const world = await MirrorWorld.open({ server, follow })
  world.begin({}, { standing: true })
  const client = new Client(world, {})
  await stepping(world, [client], () => client.idle && client.isRight())
  return { linked, world, client, kept }
}

test('[L1] a cluster that is put back under versions that go on, while its hub runs, ends no link and makes no client list again', async () => {
  const { linked, client, kept, ...opened } = await open()
  await using world = opened.world
  linked.put('a/k1', 'lost')
  linked.put('a/ghost', 'lost')
  linked.put('a/k3', `lost ${'x'.repeat(30_000)}`)
  linked.remove('a/k2')
  await stepping(world, [client], () => client.isRight() && client.idle)
  linked.restoreBumped(kept)
  await stepping(world, [client], () => client.isRight() && client.idle)
  assert.deepEqual([client.lists, client.expired, linked.lines.length], [1, [], 1])
  assert.equal(world.mirrored({})?.cache?.version, linked.server.version)
})

test('[L1] a client hears of every deletion that the hub found by a list, also when it is cut after the first', async () => {
  const { linked, ...opened } = await open()
  await using world = opened.world
  const { server } = linked
  const from = linked.hub.version
  for (const at of [1, 2, 3]) server.remove('pods', `a/k${at}`)
  linked.relist()
  linked.hub.progress()
  await world.until(() => world.mirrored({})?.cache?.version === server.version)
  const { history } = world.mirrored({})?.cache ?? assert.fail('it is kept')
  const told = [...history.window.after({ version: from, position: 0 })]
  assert.deepEqual(
    told.map(({ key }) => key),
    ['a/k1', 'a/k2', 'a/k3'],
  )
  const [first] = told
  const gap = history.gapAt(first?.version as number) ?? assert.fail('a version that hides two deletions')
  assert.equal((await history.gapDeletions(gap, gap.from)).length, 3)
})
