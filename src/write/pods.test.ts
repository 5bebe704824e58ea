import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FakeWorld } from './fakeworld.test-support.ts'

const pod = '/api/v1/namespaces/default/pods/p'

async function worldWithPod(): Promise<FakeWorld> {
  const world = new FakeWorld()
  const spec = { containers: [{ name: 'a', image: 'b', resources: {} }] }
  await world.send('POST', '/api/v1/namespaces/default/pods', { metadata: { name: 'p' }, spec })
  return world
}

test('a binding sets the node, once', async () => {
  const world = await worldWithPod()
  const binding = { metadata: { name: 'p', annotations: { a: 'b' } }, target: { kind: 'Node', name: 'n1' } }
  const bound = await world.send('POST', `${pod}/binding`, binding)
  assert.deepEqual([bound.code, bound.body.status, bound.body.code], [201, 'Success', 201])
  const { body } = await world.send('GET', pod)
  assert.deepEqual([body.spec.nodeName, body.metadata.annotations.a], ['n1', 'b'])
  assert.equal(body.status.conditions[0].type, 'PodScheduled')
  const again = await world.send('POST', `${pod}/binding`, binding)
  assert.match(again.body.message, /on pods\/binding "p": pod p is already assigned to node "n1"/)
})

test('an eviction deletes; names must agree', async () => {
  const world = await worldWithPod()
  assert.equal((await world.send('POST', `${pod}/eviction`, { metadata: { name: 'x' } })).code, 400)
  assert.equal((await world.send('POST', `${pod}/eviction`, { metadata: { name: 'p' } })).code, 201)
  assert.equal(world.bytes('/pods', 'default/p'), undefined)
})

test('ephemeralcontainers and resize write their own part only', async () => {
  const world = await worldWithPod()
  const merge = 'application/merge-patch+json'
  const added = {
    metadata: { labels: { a: 'b' } },
    spec: { nodeName: 'x', ephemeralContainers: [{ name: 'e', image: 'i' }] },
  }
  const first = await world.send('PATCH', `${pod}/ephemeralcontainers`, added, merge)
  assert.deepEqual(
    [first.body.spec.ephemeralContainers[0].name, first.body.spec.nodeName, first.body.metadata.labels],
    ['e', undefined, undefined],
  )
  const resized = { spec: { containers: [{ name: 'a', image: 'other', resources: { limits: { cpu: '2' } } }] } }
  const { body } = await world.send('PATCH', `${pod}/resize`, resized, 'application/strategic-merge-patch+json')
  assert.deepEqual([body.spec.containers[0].image, body.spec.containers[0].resources.limits.cpu], ['b', '2'])
})

test('what reaches into a container is refused by name', async () => {
  const world = await worldWithPod()
  const { code, body } = await world.send('POST', `${pod}/exec`, {})
  assert.deepEqual([code, body.reason], [501, 'NotImplemented'])
  assert.equal((await world.send('POST', `${pod}/status`, {})).code, 405)
  assert.equal((await world.send('DELETE', `${pod}/status`)).code, 405)
  assert.equal((await world.send('PUT', `${pod}/approval`, { metadata: { name: 'p' } })).code, 405)
  assert.equal((await world.send('POST', '/api/v1/pods', { metadata: { name: 'q' } })).code, 405)
})
