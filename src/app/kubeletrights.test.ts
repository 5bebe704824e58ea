/** What a kubelet may read without the cloud though it never asked while that was there. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EdgeCloud, EdgeWorld } from '../endpoint/edgeworld.test-support.ts'
import { KubeletRights } from './kubeletrights.ts'

const user = 'system:node:n1'
const kubelet = {
  peer: {
    certificate: {
      ...{ name: user, organizations: ['system:nodes'], issuedBy: 'clients' as const },
      expiresMs: Number.MAX_SAFE_INTEGER,
    },
  },
}

async function nodeWorld(): Promise<EdgeWorld> {
  const cloud = new EdgeCloud()
  cloud.publish('', 'v1', { resource: 'secrets', kind: 'Secret', namespaced: true })
  cloud.server.put('nodes', 'n1')
  cloud.server.put('pods', 'a/p', { node: 'n1', spec: { imagePullSecrets: [{ name: 's' }] } })
  for (const name of ['s', 'other']) cloud.server.put('secrets', `a/${name}`)
  cloud.judge.users.set(user, { name: user, uid: '', groups: ['system:nodes'] })
  return await EdgeWorld.open({ cloud, node: 'n1' })
}

async function running(world: EdgeWorld, body: () => Promise<void>): Promise<void> {
  const { needs, cloud, access } = world
  const { clock, reachability } = cloud
  const ending = new AbortController()
  const rights = new KubeletRights({ needs, access: access.access, node: 'n1', reachability, clock })
  const done = rights.run(ending.signal)
  await body()
  ending.abort()
  await done
}

const asked = (world: EdgeWorld) => world.cloud.judge.asked.filter((one) => one === `access ${user}`).length
const secret = (name: string) => `/api/v1/namespaces/a/secrets/${name}`
const byName = (verb: string) => `/api/v1/namespaces/a/secrets?fieldSelector=metadata.name%3Ds&${verb}resourceVersion=0`

test('[I2] decisions about what its pods name are asked ahead in the kubelet’s own name, and count without the cloud', async () => {
  await using world = await nodeWorld()
  await running(world, async () => {
    const isHeld = () =>
      [...world.interests.all].some(({ interest, cache }) => interest.resource === 'secrets' && cache)
    await world.until(isHeld)
    await world.pass(1_000)
  })
  world.cloud.reachability.set('unreachable')
  for (const url of [
    secret('s'),
    byName('limit=500&'),
    '/api/v1/pods?fieldSelector=spec.nodeName%3Dn1&resourceVersion=0',
  ])
    assert.equal((await world.ask('GET', url, kubelet)).status, 200, url)
  assert.notEqual((await world.ask('GET', secret('other'), kubelet)).status, 200, 'nothing else follows from it')
})

test('[I2] what the API server denies the kubelet stays denied; it is asked a few times, since it may have heard of the pod late', async () => {
  await using world = await nodeWorld()
  world.cloud.judge.allows = (_, { resourceAttributes }) => resourceAttributes?.resource !== 'secrets'
  await running(world, async () => {
    await world.pass(5_000)
    const first = asked(world)
    await world.pass(300_000)
    assert.equal(asked(world) - first, 2 * 3, 'get, list and watch, twice again')
  })
  world.cloud.reachability.set('unreachable')
  assert.equal((await world.ask('GET', secret('s'), kubelet)).status, 403)
})

test('each is asked once; new ones when a pod brings them', async () => {
  await using world = await nodeWorld()
  await running(world, async () => {
    await world.pass(5_000)
    const first = asked(world)
    assert.ok(first > 0)
    world.cloud.server.put('pods', 'a/p', { node: 'n1', spec: { imagePullSecrets: [{ name: 's' }] }, value: 'changed' })
    await world.pass(5_000)
    assert.equal(asked(world), first)
    world.cloud.server.put('pods', 'a/q', { node: 'n1', spec: { imagePullSecrets: [{ name: 'other' }] } })
    await world.pass(5_000)
    assert.equal(asked(world), first + 3, 'get, list and watch')
  })
})

test('what could not be asked is asked when the API server is back', async () => {
  await using world = await nodeWorld()
  await world.pass(1_000)
  world.cloud.reachability.set('unreachable')
  await running(world, async () => {
    await world.pass(5_000)
    assert.equal(asked(world), 0)
    world.cloud.reachability.set('reachable')
    await world.until(() => asked(world) > 0)
  })
})
