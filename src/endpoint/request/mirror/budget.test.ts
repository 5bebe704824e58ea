/** The budget of what is mirrored, as the callers of an edge meet it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { admin, aliceToken, EdgeWorld } from '../../edgeworld.test-support.ts'

const bob = 'bob-token'
const web = '/api/v1/pods?labelSelector=app&resourceVersion=0'
const maps = '/api/v1/namespaces/shop/configmaps?resourceVersion=0'

async function opened(): Promise<EdgeWorld> {
  const world = await EdgeWorld.open()
  world.cloud.judge.users.set(bob, { name: 'bob', uid: 'u-2', groups: [] })
  world.cloud.server.put('pods', 'shop/p1', { labels: { app: 'web' } })
  return world
}

/** Reads objects by name that all exist, so many in each namespace. */
async function reads(world: EdgeWorld, token: string, { count, each }: { count: number; each: number }): Promise<void> {
  for (let at = 0; at < count; at++) {
    const [namespace, name] = [`${token}${Math.floor(at / each)}`, `c${at}`]
    world.cloud.server.put('configmaps', `${namespace}/${name}`)
    const { status } = await world.ask('GET', `/api/v1/namespaces/${namespace}/configmaps/${name}`, { token })
    assert.equal(status, 200)
  }
}

/** Whether what a caller lists is answered from the copy, as soon as it is answered. */
async function isMirrored(world: EdgeWorld, token: string, url: string): Promise<boolean> {
  const listing = world.later('GET', url, { token })
  await world.until(() => listing.done)
  const { status, passedThrough } = await listing.answer
  assert.equal(status, 200)
  return !passedThrough
}

test('[A8] hundreds of reads by name leave lists their room, their caller’s and others’; both survive an outage and a restart', async () => {
  await using world = await opened()
  await reads(world, aliceToken, { count: 700, each: 10 })
  await reads(world, bob, { count: 700, each: 10 })
  assert.ok(await isMirrored(world, aliceToken, web), 'of a caller who read 700 names')
  assert.ok(await isMirrored(world, bob, maps))
  world.cloud.server.put('configmaps', 'shop/late')
  await world.pass(1_000)
  world.cloud.reachability.set('unreachable')
  await world.restart()
  assert.equal((await world.ask('GET', web, { token: aliceToken })).json.items.length, 1)
  assert.equal((await world.ask('GET', maps, { token: bob })).json.items.length, 1)
})

test('many names of one namespace become the namespace; a caller reads no more of it than it may', async () => {
  await using world = await opened()
  await reads(world, aliceToken, { count: 60, each: 60 })
  await world.until(() => world.interests.size === 1, 200)
  assert.equal([...world.interests.all][0]?.interest.name, `v1/configmaps@${aliceToken}0`)
  const path = `/api/v1/namespaces/${aliceToken}0/configmaps`
  world.cloud.judge.allows = ({ name }) => name !== 'bob'
  const other = await world.ask('GET', `${path}?resourceVersion=0`, { token: bob })
  assert.equal(other.passedThrough, true, 'its refusal is the API server’s own')
  assert.equal((await world.get(`${path}/c59?resourceVersion=0`)).passedThrough, false)
})

test('what found no room is told by the status and by metrics, with how full the budget is', async () => {
  await using world = await opened()
  await reads(world, aliceToken, { count: 320, each: 10 })
  const { budget, passedThrough } = (await world.ask('GET', '/ake/status', { peer: admin })).json
  assert.deepEqual([budget.interests, budget.interestsMax, budget.bytesMax], [300, 1_000, 192 * 1024 * 1024])
  const why = 'its caller has 300 interests'
  assert.deepEqual(passedThrough[0], { resource: 'configmaps', group: '', why, state: 'noRoom' })
  assert.match(world.interests.budget.figures().join(''), /^ake_turned_away_total 20$/m)
})
