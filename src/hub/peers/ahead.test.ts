/** Edges that say to be further than their hub: of a past that is lost, of a hub that is behind, or liars. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HubWorld, type TestEdge } from './hub.test-support.ts'

/** Says that its copy is of this version, over a link of its own. */
function claim(edge: TestEdge, version: number): void {
  edge.line?.lose()
  Object.assign(edge.copy(), { version, wish: 'resume' })
  edge.connect()
}

async function open(): Promise<{ world: HubWorld; edges: TestEdge[] }> {
  const world = await HubWorld.open()
  for (const key of ['a/1', 'a/2', 'a/3']) world.mirror.server.put('pods', key)
  const edges = ['e1', 'e2', 'e3'].map((name) => world.edge(name, 'v1/pods'))
  for (const edge of edges) edge.connect()
  await world.until(() => edges.every((edge) => edge.copy().names.length === 3))
  return { world, edges }
}

test('[L7] edges that are further than the API server are told that their past is lost, by one read for all, and no other edge is', async () => {
  const { world, edges } = await open()
  await using _ = world
  const [first, second, third] = edges as [TestEdge, TestEdge, TestEdge]
  const { version } = world.mirror.server
  for (const edge of [first, second]) {
    edge.copy().objects.set('a/ghost', { version: version + 5, bytes: Buffer.from('{"metadata":{"uid":"lost"}}') })
    claim(edge, version + 10)
  }
  await world.settle()
  assert.equal(first.copy().starts.at(-1), 'wait')
  await world.pass(4_000)
  assert.equal(world.reads, 0, 'a hub is behind for a moment')
  await world.until(() => [first, second].every((edge) => edge.copy().starts.at(-1) !== 'wait'))
  assert.equal(world.reads, 1)
  await world.until(() => [first, second].every((edge) => edge.copy().names.join() === 'a/1,a/2,a/3'))
  for (const edge of [first, second]) {
    const lost = edge.received.filter(({ kind }) => kind === 'lost')
    assert.deepEqual(lost, [{ kind: 'lost', interest: 1, epoch: 1, version: version + 10 }])
    assert.equal(edge.copy().wish, 'resume')
  }
  assert.equal(third.received.filter(({ kind }) => kind === 'lost').length, 0)
  assert.ok(world.lines.some((line) => line.includes('edge.ahead')))
})

test('[L7] an edge goes on waiting where the API server is as far as it says', async () => {
  const { world, edges } = await open()
  await using _ = world
  const [first] = edges as [TestEdge]
  const { server } = world.mirror
  claim(first, server.version + 3)
  // The hub's watch does not tell what the API server has.
  const watches = [...server.watches]
  server.watches.clear()
  for (let at = 0; at < 3; at++) server.put('pods', 'a/1', { value: `${at}` })
  await world.pass(200_000)
  assert.equal(first.copy().starts.at(-1), 'wait')
  assert.ok(world.reads >= 2 && world.reads <= 4, `${world.reads} reads in three minutes`)
  for (const watch of watches) server.watches.add(watch)
  server.put('pods', 'a/2', { value: 'told' })
  await world.until(() => first.copy().version === server.version)
  assert.equal(first.received.filter(({ kind }) => kind === 'lost').length, 0)
})

test('[L8] whatever edges say of their versions, and how often, the API server is asked once a minute', async () => {
  const { world, edges } = await open()
  await using _ = world
  const far = Number.MAX_SAFE_INTEGER
  for (let lie = 0; lie < 60; lie++) {
    for (const edge of edges) claim(edge, far - lie)
    await world.pass(6_000)
  }
  assert.ok(world.reads <= 7, `${world.reads} reads in six minutes`)
  await world.until(() => edges.every((edge) => edge.copy().version === world.mirror.server.version))
})
