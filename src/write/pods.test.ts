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

test('nothing else is written through a subresource', async () => {
  const world = await worldWithPod()
  assert.equal((await world.send('POST', `${pod}/exec`, {})).code, 405)
  assert.equal((await world.send('POST', `${pod}/status`, {})).code, 405)
  assert.equal((await world.send('DELETE', `${pod}/status`)).code, 405)
  assert.equal((await world.send('PUT', `${pod}/approval`, { metadata: { name: 'p' } })).code, 405)
  assert.equal((await world.send('POST', '/api/v1/pods', { metadata: { name: 'q' } })).code, 405)
})

test('a binding without a node, to something else, or that is none', async () => {
  const world = await worldWithPod()
  const answer = async (binding: object) => {
    const { code, body, warnings } = await world.send('POST', `${pod}/binding`, { metadata: { name: 'p' }, ...binding })
    return [code, body.reason, body.message, ...warnings]
  }
  const name = 'target.name: Required value'
  const kind = 'target.kind: Unsupported value: "Foo": supported values: "Node", "<empty>"'
  assert.deepEqual(await answer({ target: { name: '' } }), [500, undefined, name])
  assert.deepEqual(await answer({ target: { kind: 'Foo' }, bar: 1 }), [
    500,
    undefined,
    `[${kind}, ${name}]`,
    'unknown field "bar"',
  ])
  assert.deepEqual(await answer({ kind: 'Pod', apiVersion: 'v1', target: { name: 'n' } }), [
    400,
    'BadRequest',
    'Pod in version "v1" cannot be handled as a Binding: converting (v1.Pod) to (core.Binding): unknown conversion',
  ])
  assert.match(
    String((await answer({ target: 5 }))[2]),
    /cannot unmarshal number into Go struct field Binding.target of type v1.ObjectReference$/,
  )
})
