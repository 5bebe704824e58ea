import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FakeWorld, widgets } from './fakeworld.test-support.ts'

const configMaps = '/api/v1/namespaces/default/configmaps'
const merge = 'application/merge-patch+json'

type Entry = { manager: string; operation: string; time?: string; subresource?: string; fieldsV1: unknown }

/** `manager operation/subresource fields`, without times. */
function owners(body: { metadata: { managedFields?: Entry[] } }): string[] {
  return (body.metadata.managedFields ?? []).map(({ manager, operation, subresource, fieldsV1 }) => {
    const through = subresource === undefined ? '' : `/${subresource}`
    return `${manager} ${operation}${through} ${JSON.stringify(fieldsV1)}`
  })
}

test('each write owns what it changes, and takes it from others', async () => {
  const world = new FakeWorld()
  await world.send('POST', `${configMaps}?fieldManager=a`, { metadata: { name: 'm' }, data: { x: '1', y: '1' } })
  const put = { metadata: { name: 'm', labels: { l: '1' } }, data: { x: '2', y: '1' } }
  const { body } = await world.send('PUT', `${configMaps}/m?fieldManager=b`, put)
  assert.deepEqual(owners(body), [
    'a Update {"f:data":{".":{},"f:y":{}}}',
    'b Update {"f:data":{"f:x":{}},"f:metadata":{"f:labels":{".":{},"f:l":{}}}}',
  ])
  const { body: left } = await world.send('PATCH', `${configMaps}/m?fieldManager=c`, { data: null }, merge)
  assert.deepEqual(owners(left), ['b Update {"f:metadata":{"f:labels":{".":{},"f:l":{}}}}'])
})

test('without a field manager the program’s name counts', async () => {
  const world = new FakeWorld()
  const named = async (userAgent: string) => {
    const { body } = await world.send(
      'POST',
      configMaps,
      { metadata: { generateName: 'm' }, data: { x: '' } },
      undefined,
      userAgent,
    )
    return body.metadata.managedFields[0].manager
  }
  assert.equal(await named('kubectl/v1.36.3 (linux/amd64)'), 'kubectl')
  assert.equal(await named(''), 'unknown')
  assert.equal(await named('a\u0007b\u00a0c'), 'abc')
  assert.equal(await named('ü'.repeat(100)), 'ü'.repeat(64))
})

test('a write that changes nothing is no new version, whichever client sends it', async () => {
  const world = new FakeWorld()
  const { body } = await world.send('POST', `${configMaps}?fieldManager=a`, {
    metadata: { name: 'm' },
    data: { x: '1' },
  })
  world.clock.advance(5000)
  const same = { metadata: { name: 'm' }, data: { x: '1' } }
  const { body: after } = await world.send('PUT', `${configMaps}/m?fieldManager=b`, same)
  assert.deepEqual(after, body)
  // Its status is not a main write's to change: the times of its owner would be the only difference.
  const pods = '/api/v1/namespaces/default/pods'
  const pod = { metadata: { name: 'p' }, spec: { containers: [{ name: 'c', image: 'i' }] } }
  const { body: made } = await world.send('POST', `${pods}?fieldManager=a`, pod)
  world.clock.advance(5000)
  const { body: kept } = await world.send('PATCH', `${pods}/p?fieldManager=a`, { status: { phase: 'Failed' } }, merge)
  assert.equal(kept.metadata.resourceVersion, made.metadata.resourceVersion)
})

test('times move with changes only', async () => {
  const world = new FakeWorld()
  await world.send('POST', `${configMaps}?fieldManager=a`, { metadata: { name: 'm' }, data: { x: '1' } })
  world.clock.advance(5000)
  const { body } = await world.send('PATCH', `${configMaps}/m?fieldManager=b`, { data: { y: '1' } }, merge)
  assert.deepEqual(
    body.metadata.managedFields.map(({ manager, time }: Entry) => [manager, time]),
    [
      ['a', '2026-01-02T03:04:05Z'],
      ['b', '2026-01-02T03:04:10Z'],
    ],
  )
})

test('clients may clear the marks, edit them, or not know them; what is no mark is not taken', async () => {
  const world = new FakeWorld()
  await world.send('POST', `${configMaps}?fieldManager=a`, { metadata: { name: 'm' }, data: { x: '1' } })
  const patched = async (managedFields: unknown) =>
    owners((await world.send('PATCH', `${configMaps}/m`, { metadata: { managedFields } }, merge)).body)
  const before = ['a Update {"f:data":{".":{},"f:x":{}}}']
  assert.deepEqual(await patched(null), before)
  assert.deepEqual(await patched([{ manager: 'z', operation: 'Nonsense' }]), before)
  const own = { manager: 'z', operation: 'Apply', apiVersion: 'v1', fieldsType: 'FieldsV1', fieldsV1: { 'f:q': {} } }
  assert.deepEqual(await patched([own]), ['z Apply {"f:q":{}}'])
  assert.deepEqual(await patched([]), [])
  // Who has no owners does not get any by an update.
  const { body } = await world.send('PATCH', `${configMaps}/m?fieldManager=b`, { data: { x: '2' } }, merge)
  assert.deepEqual(owners(body), [])
  const long = await world.send(
    'PATCH',
    `${configMaps}/m`,
    { metadata: { managedFields: [{ ...own, manager: 'x'.repeat(129) }] } },
    merge,
  )
  assert.match(long.body.message, /metadata.managedFields\[0\].manager: Too long: may not be more than 128 bytes$/)
})

test('of a custom resource an empty list of marks is none, an empty mark clears', async () => {
  const world = new FakeWorld()
  world.serve(...widgets())
  const url = '/apis/we.dev/v1/namespaces/default/widgets'
  const widget = { apiVersion: 'we.dev/v1', kind: 'Widget', metadata: { name: 'w' }, spec: { replicas: 1 } }
  const { body } = await world.send('POST', `${url}?fieldManager=a`, widget)
  const fields = 'a Update {"f:spec":{".":{},"f:color":{},"f:replicas":{}}}'
  assert.deepEqual(owners(body), [fields])
  const cleared = async (managedFields: unknown) =>
    owners((await world.send('PATCH', `${url}/w`, { metadata: { managedFields } }, merge)).body)
  assert.deepEqual(await cleared([]), [fields])
  assert.deepEqual(await cleared([{}]), [])
})

test('what a subresource ignores it does not own; it takes no marks from clients', async () => {
  const world = new FakeWorld()
  world.serve(...widgets())
  const url = '/apis/we.dev/v1/namespaces/default/widgets'
  const widget = { apiVersion: 'we.dev/v1', kind: 'Widget', metadata: { name: 'w' }, spec: { replicas: 1 }, status: {} }
  await world.send('POST', `${url}?fieldManager=a`, widget)
  const status = {
    metadata: { labels: { l: '1' }, managedFields: [{}] },
    spec: { replicas: 9 },
    status: { replicas: 2 },
  }
  const { body } = await world.send('PATCH', `${url}/w/status?fieldManager=s`, status, merge)
  assert.deepEqual(owners(body), [
    'a Update {"f:spec":{".":{},"f:color":{},"f:replicas":{}}}',
    's Update/status {"f:status":{".":{},"f:replicas":{}}}',
  ])
  assert.deepEqual(body.spec, { replicas: 1, color: 'red' })
})

test('a Scale takes the replicas', async () => {
  const world = new FakeWorld()
  world.serve(...widgets())
  const url = '/apis/we.dev/v1/namespaces/default/widgets'
  const widget = { apiVersion: 'we.dev/v1', kind: 'Widget', metadata: { name: 'w' }, spec: { replicas: 1 } }
  await world.send('POST', `${url}?fieldManager=a`, widget)
  await world.send('PATCH', `${url}/w/scale?fieldManager=s`, { spec: { replicas: 3 } }, merge)
  const { body } = await world.send('GET', `${url}/w`)
  assert.deepEqual(owners(body), [
    's Update/scale {"f:spec":{"f:replicas":{}}}',
    'a Update {"f:spec":{".":{},"f:color":{}}}',
  ])
})

test('the server’s own changes have no owner; defaults belong to the manager that wrote the object', async () => {
  const world = new FakeWorld()
  const { body } = await world.send('POST', '/api/v1/namespaces?fieldManager=a', { metadata: { name: 'n' } })
  assert.deepEqual(owners(body), ['a Update {"f:metadata":{"f:labels":{".":{},"f:kubernetes.io/metadata.name":{}}}}'])
  const pods = '/api/v1/namespaces/default/pods'
  const pod = { metadata: { name: 'p' }, spec: { containers: [{ name: 'c', image: 'i' }] } }
  const { body: made } = await world.send('POST', `${pods}?fieldManager=a`, pod)
  await world.send('POST', `${pods}/p/binding?fieldManager=s`, { metadata: { name: 'p' }, target: { name: 'node' } })
  const { body: bound } = await world.send('GET', `${pods}/p`)
  assert.equal(bound.spec.nodeName, 'node')
  assert.deepEqual(bound.metadata.managedFields, made.metadata.managedFields)
})

test('a definition’s status is written in the server’s name', async () => {
  const world = new FakeWorld()
  const names = { plural: 'gears', singular: 'gear', kind: 'Gear', listKind: 'GearList' }
  const version = { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }
  const { body } = await world.send('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions?fieldManager=a', {
    metadata: { name: 'gears.we.dev' },
    spec: { group: 'we.dev', scope: 'Namespaced', names, versions: [version] },
  })
  const entries: Entry[] = body.metadata.managedFields
  assert.deepEqual(
    entries.map(({ manager, subresource }) => [manager, subresource]),
    [
      ['a', undefined],
      ['kube-apiserver', 'status'],
    ],
  )
})

test('a JSON patch sees the marks and may change them', async () => {
  const world = new FakeWorld()
  await world.send('POST', `${configMaps}?fieldManager=a`, { metadata: { name: 'm' }, data: { x: '1' } })
  const json = 'application/json-patch+json'
  const patched = (...operations: unknown[]) => world.send('PATCH', `${configMaps}/m?fieldManager=b`, operations, json)
  const first = '/metadata/managedFields/0/manager'
  assert.equal((await patched({ op: 'test', path: first, value: 'a' })).code, 200)
  assert.equal((await patched({ op: 'test', path: first, value: 'z' })).code, 422)
  assert.equal((await patched({ op: 'copy', from: first, path: '/data/owner' })).body.data.owner, 'a')
  const renamed = await patched({ op: 'replace', path: first, value: 'c' }, { op: 'remove', path: '/data/owner' })
  assert.deepEqual(owners(renamed.body), ['c Update {"f:data":{".":{},"f:x":{}}}'])
  const cleared = await patched({ op: 'replace', path: '/metadata/managedFields', value: [{}] })
  assert.deepEqual(owners(cleared.body), [])
})
