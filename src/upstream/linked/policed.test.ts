/** Both sides of a link while policies change: what an edge gets by them, what it has to give up, and what it is told. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Wish } from '../../mirror/world.test-support.ts'
import { ProvingWorld } from './provingworld.test-support.ts'

const maps: Wish = { resource: 'configmaps', namespace: 'a' }
const mapsOfA = { apiGroups: [''], resources: ['configmaps'], namespaces: ['a'] }

async function opened() {
  const world = await ProvingWorld.open()
  const { server } = world.hub.mirror
  server.put('configmaps', 'a/c', { value: 'first' })
  await world.until(() => world.edge.link.current !== undefined)
  const held = () => world.edge.mirror.mirrored(maps)
  world.edge.mirror.begin(maps)
  await world.until(() => held()?.state.kind === 'refused')
  return { world, server, held, stored: async () => (await world.edge.mirror.store.load()).interests.length }
}

test('[L24] what a policy lets an edge hold comes within a moment, however long it was refused, and ends with the policy', async () => {
  const { world, server, held } = await opened()
  await using _ = world
  await world.pass(20 * 60_000)
  const asked = world.refusals
  await world.police({ p: { interests: [mapsOfA] } })
  await world.until(() => held()?.state.kind === 'synced')
  assert.equal(held()?.cache?.size, 1)
  assert.equal(world.refusals, asked)
  await world.police({})
  await world.until(() => held()?.state.kind === 'refused')
  server.put('configmaps', 'a/next')
  await world.pass(60_000)
  // A right that is gone may come back: what is here stays, as without the cloud.
  assert.equal(held()?.cache?.size, 1)
})

test('what is never to be mirrored is gone from the edge within seconds, on its disk too, also what an option names; and comes again', async () => {
  const { world, held, stored } = await opened()
  await using _ = world
  await world.police({ p: { interests: [mapsOfA] } })
  await world.until(() => held()?.cache !== undefined)
  const record = held()?.record
  assert.ok(record !== undefined)
  record.standing = true
  assert.equal(await stored(), 1)
  await world.police({ p: { interests: [mapsOfA] }, never: { neverMirrored: [mapsOfA] } })
  await world.pass(11_000)
  assert.equal(held()?.cache, undefined)
  assert.equal(await stored(), 0)
  assert.ok(world.lines.some((line) => line.includes('interest.emptied') && line.includes('policy/never')))
  // Its callers are passed on.
  assert.equal(world.edge.mirror.place('list', maps).kind, 'forward')
  await world.police({ p: { interests: [mapsOfA] } })
  await world.until(() => held()?.cache?.size === 1)
})

test('[L13] an edge hears what policies say of it at each link, and when they change', async () => {
  const { world } = await opened()
  await using _ = world
  const nothing = { trusts: false, tokenAgeMs: 0, serveAgeMs: 0 }
  assert.deepEqual(world.terms, [nothing])
  await world.police({ p: { trust: true, offline: { serveAge: '1h' } } })
  await world.until(() => world.terms.length === 2)
  assert.deepEqual(world.terms[1], { trusts: true, tokenAgeMs: 0, serveAgeMs: 3_600_000 })
  assert.equal(world.edge.link.current?.welcome?.trustsEdges, true)
  world.edge.cut()
  await world.until(() => world.terms.length === 3)
  assert.deepEqual(world.terms[2], world.terms[1])
})
