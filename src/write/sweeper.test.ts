import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../base/until.test-support.ts'
import { FakeWorld, widgets } from './fakeworld.test-support.ts'

const merge = 'application/merge-patch+json'

async function fullNamespace(): Promise<FakeWorld> {
  const world = new FakeWorld()
  await world.send('POST', '/api/v1/namespaces', { metadata: { name: 'n' } })
  await world.send('POST', '/api/v1/namespaces/n/configmaps', { metadata: { name: 'a' } })
  await world.send('POST', '/api/v1/namespaces/n/secrets', { metadata: { name: 's', finalizers: ['a.b/c'] } })
  await world.send('POST', '/api/v1/namespaces/default/configmaps', { metadata: { name: 'other' } })
  return world
}

test('a namespace goes when its contents are gone, and not before', async () => {
  const world = await fullNamespace()
  const { body } = await world.send('DELETE', '/api/v1/namespaces/n')
  assert.equal(body.status.phase, 'Terminating')
  assert.equal(await world.writer.sweeper.sweep(), 1)
  assert.equal(world.bytes('/configmaps', 'n/a'), undefined)
  assert.match(world.bytes('/secrets', 'n/s') ?? '', /deletionTimestamp/)
  const commits = world.events.length
  assert.equal(await world.writer.sweeper.sweep(), 1)
  assert.equal(world.events.length, commits, 'waiting writes nothing')
  await world.send('PATCH', '/api/v1/namespaces/n/secrets/s', { metadata: { finalizers: null } }, merge)
  assert.equal(await world.writer.sweeper.sweep(), 0)
  assert.equal(world.bytes('/namespaces', 'n'), undefined)
  assert.ok(world.bytes('/configmaps', 'default/other') !== undefined)
})

test('the loop wakes by itself when the last finalizer goes, and ends when told to', async () => {
  const world = await fullNamespace()
  const end = new AbortController()
  const running = world.writer.sweeper.run(end.signal)
  await world.send('DELETE', '/api/v1/namespaces/n')
  await until(() => world.bytes('/configmaps', 'n/a') === undefined)
  await world.send('PATCH', '/api/v1/namespaces/n/secrets/s', { metadata: { finalizers: null } }, merge)
  await until(() => world.bytes('/namespaces', 'n') === undefined)
  end.abort()
  await running
  assert.equal(world.clock.pending(), 0)
})

test('what another process left unfinished is finished at the start', async () => {
  const world = new FakeWorld()
  world.seed(
    '/namespaces',
    '{"metadata":{"name":"n","uid":"u","deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Terminating"}}',
  )
  world.seed('/configmaps', '{"metadata":{"name":"a","namespace":"n","uid":"v"}}')
  const end = new AbortController()
  const running = world.writer.sweeper.run(end.signal)
  await until(() => world.bytes('/namespaces', 'n') === undefined)
  assert.equal(world.bytes('/configmaps', 'n/a'), undefined)
  end.abort()
  await running
})

test('a creation under way holds its namespace', async () => {
  const world = new FakeWorld()
  await world.send('POST', '/api/v1/namespaces', { metadata: { name: 'n' } })
  const gate = Promise.withResolvers<void>()
  world.gates.set('/configmaps', gate.promise)
  const late = world.send('POST', '/api/v1/namespaces/n/configmaps', { metadata: { name: 'late' } })
  await world.send('DELETE', '/api/v1/namespaces/n')
  assert.equal(await world.writer.sweeper.sweep(), 1)
  assert.ok(world.bytes('/namespaces', 'n') !== undefined)
  gate.resolve()
  assert.equal((await late).code, 201)
  assert.equal(await world.writer.sweeper.sweep(), 0)
  assert.equal(world.bytes('/configmaps', 'n/late'), undefined)
  assert.equal(world.bytes('/namespaces', 'n'), undefined)
})

test('custom resources in a namespace go with it', async () => {
  const world = await fullNamespace()
  world.serve(...widgets())
  const sent = { apiVersion: 'we.dev/v1', kind: 'Widget', metadata: { name: 'w' } }
  await world.send('POST', '/apis/we.dev/v1/namespaces/n/widgets', sent)
  await world.send('DELETE', '/api/v1/namespaces/n')
  await world.writer.sweeper.sweep()
  assert.equal(world.bytes('we.dev/widgets', 'n/w'), undefined)
})

test("a definition of one of Kubernetes' own resources serves nothing, and takes none of its objects along", async () => {
  const world = new FakeWorld()
  const leases = '/apis/coordination.k8s.io/v1/namespaces/default/leases'
  assert.equal((await world.send('POST', leases, { metadata: { name: 'own' } })).code, 201)
  const url = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
  const schema = { openAPIV3Schema: { type: 'object' } }
  const name = 'leases.coordination.k8s.io'
  const made = await world.send('POST', url, {
    metadata: { name, annotations: { 'api-approved.kubernetes.io': 'unapproved' } },
    spec: {
      group: 'coordination.k8s.io',
      scope: 'Namespaced',
      names: { plural: 'leases', kind: 'Lease' },
      versions: [{ name: 'v1', served: true, storage: true, schema }],
    },
  })
  assert.equal(made.code, 201)
  await world.send('DELETE', `${url}/${name}`)
  assert.equal(await world.writer.sweeper.sweep(), 0)
  assert.equal(world.bytes('apiextensions.k8s.io/customresourcedefinitions', name), undefined)
  assert.ok(world.bytes('coordination.k8s.io/leases', 'default/own') !== undefined)
})
