/**
 * What a hub learned from a list and not from a watch: objects that were put back under versions that go on (a restore with
 * `--bump-revision`), which are older than what edges hold, and deletions, of which many are known under one version.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { settle } from '../../mirror/world.test-support.ts'
import { Unreachable } from '../../upstream/upstream.ts'
import { HubWorld, type TestEdge } from './hub.test-support.ts'

const bump = 1_000
const small = { kept: 'kept', lost: 'lost' }
/** Too large for an event. */
const large = { kept: noise(1), lost: noise(2) }

function noise(seed: number): string {
  let state = seed
  const next = () => {
    state = (state * 48_271) % 2_147_483_647
    return state.toString(36)
  }
  return Array.from({ length: 8_000 }, next).join('')
}

/** A pod as a backup has it, and an edge that has heard of what came later. */
async function open(world: HubWorld, values: typeof small, ...interests: readonly string[]) {
  const { server } = world.mirror
  const kept = server.put('pods', 'a/one', { node: 'n1', value: values.kept })
  const edge = world.edge('e1', ...interests)
  edge.connect()
  await world.until(() => edge.copies.every(({ version }) => version >= kept))
  server.put('pods', 'a/one', { node: 'n1', value: values.lost })
  await world.until(() => edge.copies.every((copy) => copy.value('a/one') === values.lost))
  return { server, kept, edge }
}

/** Every copy of it claims the present, and has what the backup had, in the version that it had there. */
async function untilPutBack(world: HubWorld, edge: TestEdge, kept: number, value: string): Promise<void> {
  const { server } = world.mirror
  await world.until(() => edge.ended !== undefined || edge.copies.every(({ version }) => version >= server.version))
  assert.equal(edge.ended, undefined)
  for (const copy of edge.copies)
    assert.deepEqual([copy.value('a/one') === value, copy.objects.get('a/one')?.version], [true, kept], copy.name)
}

for (const [size, values] of Object.entries({ small, large }))
  test(`[L1] ${size} objects that were put back under versions that go on come to edges that are there, and no link ends`, async () => {
    await using world = await HubWorld.open()
    const names = ['v1/pods', 'v1/pods@a', 'v1/pods@a?&metadata.name=one', 'v1/pods?&spec.nodeName=n1']
    const { server, kept, edge } = await open(world, values, ...names)
    server.restore(kept, bump)
    await untilPutBack(world, edge, kept, values.kept)
    for (const copy of edge.copies) assert.deepEqual(copy.starts, ['snapshot', 'compare'])
  })

test('[L1] an edge that comes while its hub finds what was put back, in whichever turn, compares and keeps its link', async () => {
  for (let turns = 0; turns < 24; turns++) {
    await using world = await HubWorld.open()
    const { server, kept, edge } = await open(world, small, 'v1/pods')
    const other = world.edge('e2', 'v1/pods@a')
    // Something keeps the source followed.
    other.connect()
    await world.until(() => other.copy().version > 0)
    edge.line?.lose()
    server.restore(kept, bump)
    await settle(turns)
    edge.connect()
    await untilPutBack(world, edge, kept, small.kept)
    await untilPutBack(world, other, kept, small.kept)
  }
})

test('[L1] deletions that a list told are compared: under one version of an edge a client that was cut would hear of some', async () => {
  await using world = await HubWorld.open()
  const { server } = world.mirror
  for (const name of ['a/p1', 'a/p2', 'b/p1']) server.put('pods', name, {})
  const edge = world.edge('e1', 'v1/pods@a', 'v1/pods@b')
  edge.connect()
  await world.until(() => edge.copies.every(({ version }) => version > 0))
  server.reachability.set('unreachable')
  for (const watch of server.watches) watch.body.fail(new Unreachable('cut', true))
  await world.pass(1_000)
  server.remove('pods', 'a/p1')
  server.remove('pods', 'a/p2')
  server.compact()
  edge.received.length = 0
  server.reachability.set('reachable')
  await world.until(() => edge.copy().names.length === 0)
  assert.deepEqual(edge.copy('v1/pods@a').starts, ['snapshot', 'compare'])
  // What it did not concern goes on.
  assert.deepEqual(edge.copy('v1/pods@b').starts, ['snapshot'])
  assert.ok(edge.received.every(({ kind }) => kind !== 'events'))
})

test('[L1] a resource that is followed as a whole and in a namespace is put back at an edge that has both', async () => {
  await using world = await HubWorld.open()
  const { server } = world.mirror
  const kept = server.put('configmaps', 'a/one', { value: 'kept' })
  const edge = world.edge('e1', 'v1/configmaps', 'v1/configmaps@a')
  edge.connect()
  await world.until(() => edge.copies.every(({ version }) => version >= kept))
  server.put('configmaps', 'a/one', { value: 'lost' })
  await world.until(() => edge.copies.every((copy) => copy.value('a/one') === 'lost'))
  server.restore(kept, bump)
  await untilPutBack(world, edge, kept, 'kept')
})

test('[L7] what a hub heard before it doubted its past is told to no edge that comes from another hub of the new epoch', async () => {
  await using world = await HubWorld.open()
  const { server } = world.mirror
  const versions = ['a/p1', 'a/p2', 'a/p3'].map((name) => server.put('pods', name, {}))
  const here = world.edge('e1', 'v1/pods')
  here.connect()
  await world.until(() => here.copy().version > 0)
  server.put('pods', 'a/p4', {})
  await world.until(() => here.copy().names.length === 4)
  world.mirror.interests.doubt()
  world.sources.doubted()
  world.peers.lost(2, server.version)
  await world.until(() => world.mirror.mirrored({})?.readable !== undefined)
  here.resubscribe(here.copy())
  const moved = world.edge('e2', 'v1/pods')
  Object.assign(moved, { cluster: 'c1', epoch: 2 })
  Object.assign(moved.copy(), { version: versions.at(-1) })
  moved.connect()
  await world.until(() => moved.copy().names.length === 4 && moved.copy().wish === 'resume')
  assert.equal(moved.copy().starts[0], 'compare')
})
