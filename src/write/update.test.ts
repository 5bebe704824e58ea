import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FakeWorld, widgets } from './fakeworld.test-support.ts'

const configMap = '/api/v1/namespaces/default/configmaps/a'
const lease = '/apis/coordination.k8s.io/v1/namespaces/default/leases/l'
const widget = '/apis/we.dev/v1/namespaces/default/widgets/w'

async function worldWithConfigMap(): Promise<FakeWorld> {
  const world = new FakeWorld()
  await world.send('POST', '/api/v1/namespaces/default/configmaps', { metadata: { name: 'a' }, data: { k: '1' } })
  return world
}

test('a write that changes nothing commits nothing', async () => {
  const world = await worldWithConfigMap()
  const before = world.bytes('/configmaps', 'default/a')
  const { code, body } = await world.send('PUT', configMap, { metadata: { name: 'a', labels: {} }, data: { k: '1' } })
  assert.deepEqual([code, body.metadata.resourceVersion], [200, '102'])
  assert.equal(world.bytes('/configmaps', 'default/a'), before)
  assert.equal(world.events.length, 1)
})

test('uid, times and generation stay; a wrong version or uid is a conflict', async () => {
  const world = await worldWithConfigMap()
  const put = (metadata: object) =>
    world.send('PUT', configMap, { metadata: { name: 'a', ...metadata }, data: { k: '2' } })
  assert.equal((await put({ resourceVersion: '5' })).code, 409)
  assert.equal((await put({ resourceVersion: 'abc' })).body.message, 'strconv.ParseUint: parsing "abc": invalid syntax')
  const uid = await put({ uid: 'x' })
  assert.match(
    uid.body.message,
    /Key: \/registry\/configmaps\/default\/a, .*UID in precondition: x, UID in object meta: uid-1$/,
  )
  const { body } = await put({ resourceVersion: '102', creationTimestamp: '2020-01-01T00:00:00Z', generation: 9 })
  assert.deepEqual(
    [body.metadata.uid, body.metadata.creationTimestamp, body.metadata.generation, body.metadata.resourceVersion],
    ['uid-1', '2026-01-02T03:04:05Z', undefined, '103'],
  )
})

test('the name in the body must be the URL’s', async () => {
  const world = await worldWithConfigMap()
  const other = await world.send('PUT', configMap, { metadata: { name: 'b' } })
  assert.equal(other.body.message, 'the name of the object (b) does not match the name on the URL (a)')
  const none = await world.send('PUT', configMap, { metadata: {} })
  assert.match(none.body.message, /^the name of the object \(a based on URL\) was undeterminable/)
})

test('create on update, and the version that some kinds insist on', async () => {
  const world = new FakeWorld()
  assert.equal((await world.send('PUT', configMap, { metadata: { name: 'a' } })).code, 404)
  const made = await world.send('PUT', lease, { metadata: { name: 'l', resourceVersion: '5' } })
  assert.equal(made.code, 201)
  const blind = await world.send('PUT', lease, { metadata: { name: 'l' } })
  assert.equal(blind.code, 422)
  assert.match(blind.body.message, /metadata.resourceVersion: Invalid value: 0: must be specified for an update$/)
})

test('PUT keeps the status, /status keeps the spec, the generation follows the spec', async () => {
  const world = new FakeWorld()
  world.serve(...widgets())
  const make = { apiVersion: 'we.dev/v1', kind: 'Widget', metadata: { name: 'w' }, spec: { replicas: 1 } }
  await world.send('POST', '/apis/we.dev/v1/namespaces/default/widgets', make)
  const merge = 'application/merge-patch+json'
  const status = await world.send(
    'PATCH',
    `${widget}/status`,
    { metadata: { labels: { a: 'b' } }, spec: { replicas: 7 }, status: { replicas: 3 } },
    merge,
  )
  assert.deepEqual(
    [
      status.body.spec.replicas,
      status.body.status.replicas,
      status.body.metadata.labels,
      status.body.metadata.generation,
    ],
    [1, 3, undefined, 1],
  )
  const spec = await world.send('PATCH', widget, { spec: { replicas: 2 }, status: { replicas: 9 } }, merge)
  assert.deepEqual([spec.body.status.replicas, spec.body.metadata.generation], [3, 2])
  const labels = await world.send('PATCH', widget, { metadata: { labels: { a: 'b' } } }, merge)
  assert.equal(labels.body.metadata.generation, 2)
})

test('an object without its last finalizer goes; new ones cannot be added while it waits', async () => {
  const world = await worldWithConfigMap()
  const merge = 'application/merge-patch+json'
  await world.send('PATCH', configMap, { metadata: { finalizers: ['a.b/c'] } }, merge)
  const deleted = await world.send('DELETE', configMap)
  assert.equal(deleted.body.metadata.deletionGracePeriodSeconds, 0)
  const added = await world.send('PATCH', configMap, { metadata: { finalizers: ['a.b/c', 'd.e/f'] } }, merge)
  assert.match(added.body.message, /no new finalizers can be added .*\[\]string\{"d.e\/f"\}$/)
  const last = await world.send('PATCH', configMap, { metadata: { finalizers: null } }, merge)
  assert.deepEqual([last.code, last.body.metadata.resourceVersion], [200, deleted.body.metadata.resourceVersion])
  assert.deepEqual(
    world.events.map(({ type }) => type),
    ['put', 'put', 'put', 'remove'],
  )
})

test('concurrent updates of one object are all applied', async () => {
  const world = await worldWithConfigMap()
  const merge = 'application/merge-patch+json'
  await Promise.all(
    Array.from({ length: 30 }, (_, i) => world.send('PATCH', configMap, { data: { [`n${i}`]: 'x' } }, merge)),
  )
  const { body } = await world.send('GET', configMap)
  assert.equal(Object.keys(body.data).length, 31)
})

test('events of both groups are one object in the core group’s spelling', async () => {
  const world = new FakeWorld()
  const regarding = { kind: 'Pod', name: 'p', namespace: 'default' }
  const sent = { metadata: { name: 'e' }, regarding, note: 'hello', eventTime: '2026-01-01T00:00:00.000000Z' }
  const { body } = await world.send('POST', '/apis/events.k8s.io/v1/namespaces/default/events', sent)
  assert.equal(body.note, 'hello')
  const core = await world.send('GET', '/api/v1/namespaces/default/events/e')
  assert.deepEqual([core.body.message, core.body.involvedObject.name, core.body.note], ['hello', 'p', undefined])
})
