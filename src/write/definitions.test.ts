import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FakeWorld } from './fakeworld.test-support.ts'
import type { StoredObject } from './write.ts'

const url = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const gadgets = '/apis/we.dev/v1/namespaces/default/gadgets'
const merge = 'application/merge-patch+json'

function definition(plural: string, kind: string, over: object = {}) {
  const openAPIV3Schema = {
    type: 'object',
    properties: { spec: { type: 'object', properties: { a: { type: 'string' } } } },
  }
  const versions = [
    { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema } },
    { name: 'v2', served: true, storage: false, schema: { openAPIV3Schema } },
  ]
  const names = { plural, kind }
  return {
    metadata: { name: `${plural}.we.dev` },
    spec: { group: 'we.dev', scope: 'Namespaced', names, versions, ...over },
  }
}

test('a definition takes effect at once, in every served version, stored in one', async () => {
  const world = new FakeWorld()
  const made = await world.send('POST', url, definition('gadgets', 'Gadget'))
  assert.equal(made.code, 201)
  assert.deepEqual(
    made.body.status.conditions.map((one: { type: string; status: string }) => `${one.type}=${one.status}`),
    ['NamesAccepted=True', 'Established=True'],
  )
  assert.deepEqual([made.body.spec.names.listKind, made.body.metadata.generation], ['GadgetList', 1])
  const second = gadgets.replace('/v1/', '/v2/')
  const sent = { apiVersion: 'we.dev/v2', kind: 'Gadget', metadata: { name: 'g' }, spec: { a: 'x' } }
  const { code, body } = await world.send('POST', second, sent)
  assert.deepEqual([code, body.apiVersion], [201, 'we.dev/v2'])
  assert.match(world.bytes('we.dev/gadgets', 'default/g') ?? '', /^\{"apiVersion":"we.dev\/v1","kind":"Gadget",/)
  const same = await world.send('PATCH', `${second}/g`, { spec: { a: 'x' } }, merge)
  assert.equal(same.body.metadata.resourceVersion, body.metadata.resourceVersion)
})

test('applying the same definition again changes nothing', async () => {
  const world = new FakeWorld()
  const made = await world.send('POST', url, definition('gadgets', 'Gadget'))
  const again = definition('gadgets', 'Gadget')
  const metadata = { ...again.metadata, resourceVersion: made.body.metadata.resourceVersion }
  const { body } = await world.send('PUT', `${url}/gadgets.we.dev`, { ...again, metadata })
  assert.deepEqual(body, made.body)
  const blind = await world.send('PUT', `${url}/gadgets.we.dev`, again)
  assert.equal(blind.code, 422)
})

test('an unsound definition is refused with every cause', async () => {
  const world = new FakeWorld()
  const { code, body } = await world.send('POST', url, definition('gadgets', 'Gadget', { group: 'we' }))
  assert.equal(code, 422)
  const fields = body.details.causes.map((cause: { field: string }) => cause.field)
  assert.deepEqual(fields, ['metadata.name', 'spec.group'])
})

test('names belong to who had them first, and are free when that definition is gone', async () => {
  const world = new FakeWorld()
  await world.send('POST', url, definition('gadgets', 'Gadget'))
  const late = await world.send('POST', url, definition('gizmos', 'Gadget'))
  assert.equal(late.body.status.conditions[0].status, 'False')
  assert.match(late.body.status.conditions[0].reason, /KindConflict$/)
  await world.send('DELETE', `${url}/gadgets.we.dev`)
  assert.equal(await world.writer.sweeper.sweep(), 0)
  const { body } = await world.send('GET', `${url}/gizmos.we.dev`)
  const established = body.status.conditions.find((one: { type: string }) => one.type === 'Established')
  assert.equal(established.status, 'True')
})

test('a deleted definition takes its objects along and waits for their finalizers', async () => {
  const world = new FakeWorld()
  await world.send('POST', url, definition('gadgets', 'Gadget'))
  const head = { apiVersion: 'we.dev/v1', kind: 'Gadget' }
  await world.send('POST', gadgets, { ...head, metadata: { name: 'a' } })
  await world.send('POST', gadgets, { ...head, metadata: { name: 'b', finalizers: ['x.y/z'] } })
  const { body } = await world.send('DELETE', `${url}/gadgets.we.dev`)
  assert.deepEqual(body.metadata.finalizers, ['customresourcecleanup.apiextensions.k8s.io'])
  assert.equal(body.status.conditions.at(-1).reason, 'InstanceDeletionPending')
  const late = await world.send('POST', gadgets, { ...head, metadata: { name: 'late' } })
  assert.match(late.body.message, /create not allowed while custom resource definition is terminating$/)
  assert.equal(await world.writer.sweeper.sweep(), 1)
  assert.equal(world.bytes('we.dev/gadgets', 'default/a'), undefined)
  await world.send('PATCH', `${gadgets}/b`, { metadata: { finalizers: null } }, merge)
  assert.equal(await world.writer.sweeper.sweep(), 0)
  assert.equal((await world.send('GET', `${url}/gadgets.we.dev`)).code, 404)
})

test('an object passes through its storage version, which completes and prunes it', async () => {
  const world = new FakeWorld()
  const text = { type: 'string', default: 'A' }
  const kept = {
    type: 'object',
    properties: { spec: { type: 'object', default: {}, properties: { a: text } }, status: { type: 'object' } },
  }
  const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }
  const versions = [
    { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: kept } },
    { name: 'v1beta1', served: true, storage: false, schema: { openAPIV3Schema: open } },
  ]
  assert.equal((await world.send('POST', url, definition('gadgets', 'Gadget', { versions }))).code, 201)
  const beta = gadgets.replace('v1', 'v1beta1')
  const object = { apiVersion: 'we.dev/v1beta1', kind: 'Gadget', metadata: { name: 'g' } }
  const made = await world.send('POST', beta, object)
  assert.deepEqual([made.body.apiVersion, made.body.spec], ['we.dev/v1beta1', { a: 'A' }])
  const patched = await world.send('PATCH', `${beta}/g`, { spec: { a: null, z: 1 }, extra: 1 }, merge)
  assert.deepEqual([patched.code, patched.body.spec, patched.body.extra], [200, { a: 'A' }, undefined])
  assert.deepEqual((await world.send('GET', `${gadgets}/g`)).body.spec, { a: 'A' })
  // Values are held to the version they came in by.
  assert.equal((await world.send('PATCH', `${beta}/g`, { spec: { a: 5 } }, merge)).code, 200)
})

test('[A8] a definition is judged without reading those of other groups', async () => {
  const world = new FakeWorld()
  await world.send('POST', url, definition('gadgets', 'Gadget'))
  let read = 0
  const objectsOf = world.objectsOf.bind(world)
  const counted = (stored: StoredObject): StoredObject => ({
    ...stored,
    get bytes() {
      read++
      return stored.bytes
    },
  })
  world.objectsOf = (interest) => {
    const objects = objectsOf(interest)
    return { ...objects, select: (...asked) => objects.select(...asked).map(counted) }
  }
  const other = definition('gizmos', 'Gizmo')
  const foreign = { metadata: { name: 'gizmos.other.dev' }, spec: { ...other.spec, group: 'other.dev' } }
  assert.equal((await world.send('POST', url, foreign)).code, 201)
  assert.equal(read, 0)
  assert.equal((await world.send('POST', url, other)).code, 201)
  assert.equal(read, 1)
})
