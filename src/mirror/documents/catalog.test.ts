import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeClock } from '../../base/fakeclock.test-support.ts'
import { CloudCatalog } from './catalog.ts'
import { Cloud, definition } from './cloud.test-support.ts'
import { readAggregated, readResourceList } from './discovery/read.ts'

const cloud = new Cloud(fakeClock())
const content = (path: string, form: 'aggregated' | 'plain' = 'aggregated') =>
  Buffer.from(cloud.document(path, form).body)
const groups = () => [...(readAggregated(content('/api')) ?? []), ...(readAggregated(content('/apis')) ?? [])]

function catalogOf(found = groups()): CloudCatalog {
  const catalog = new CloudCatalog()
  catalog.adopt(found)
  return catalog
}

test('a resource is what discovery says it is', () => {
  const catalog = catalogOf()
  const pods = catalog.find('', 'v1', 'pods')
  assert.equal(pods?.resource.kind, 'Pod')
  assert.equal(pods.resource.listKind, 'PodList')
  assert.equal(pods.resource.interest, '/v1/pods')
  assert.equal(pods.resource.custom, false)
  assert.deepEqual(pods.resource.shortNames, ['po'])
  assert.ok(pods.fields.supported.includes('spec.nodeName'))
  assert.ok(pods.mirrorable)
  const binding = pods.resource.subresources.find(({ name }) => name === 'binding')
  assert.deepEqual(binding, { name: 'binding', verbs: ['create'], group: '', version: 'v1', kind: 'Binding' })
  const deployments = catalog.find('apps', 'v1', 'deployments')
  const scale = deployments?.resource.subresources.find(({ name }) => name === 'scale')
  assert.deepEqual([scale?.group, scale?.version, scale?.kind], ['autoscaling', 'v1', 'Scale'])
  assert.equal(catalog.find('', 'v1', 'nodes')?.resource.namespaced, false)
})

test('plurals and kinds come from discovery and definitions, never from grammar (openyurt #14, kubeedge 1.2)', () => {
  const catalog = catalogOf()
  assert.equal(catalog.find('pasture.test', 'v1', 'oxen')?.resource.kind, 'Ox')
  for (const guess of ['oxes', 'oxs', 'ox']) assert.equal(catalog.find('pasture.test', 'v1', guess), undefined)
  catalog.applyDefinition('oxen.pasture.test', definition)
  const oxen = catalog.find('pasture.test', 'v1', 'oxen')
  assert.equal(oxen?.resource.listKind, 'OxHerd')
  assert.equal(oxen.resource.custom, true)
  assert.deepEqual(
    oxen.columns?.map(({ name }) => name),
    ['Color'],
  )
  assert.deepEqual(oxen.plan.paths, ['spec.color'])
  const older = catalog.find('pasture.test', 'v1beta1', 'oxen')
  assert.equal(older?.columns, undefined)
  assert.deepEqual((older ?? oxen).plan.paths, [])
})

test('a definition alone makes its resources known, and a plain document says the same as the aggregated one', () => {
  const catalog = catalogOf(groups().filter(({ name }) => name !== 'pasture.test'))
  assert.equal(catalog.find('pasture.test', 'v1', 'oxen'), undefined)
  catalog.applyDefinition('oxen.pasture.test', definition)
  assert.equal(catalog.find('pasture.test', 'v1', 'oxen')?.resource.singular, 'ox')
  catalog.applyDefinition('oxen.pasture.test', undefined)
  assert.equal(catalog.find('pasture.test', 'v1', 'oxen'), undefined)
  for (const [path, group, version] of [
    ['/api/v1', '', 'v1'],
    ['/apis/apps/v1', 'apps', 'v1'],
    ['/apis/pasture.test/v1', 'pasture.test', 'v1'],
  ] as const) {
    const plain = readResourceList(content(path, 'plain'), group, version)?.resources
    const whole = groups()
      .find(({ name }) => name === group)
      ?.versions.find((one) => one.version === version)
    const byName = (a: { resource: string }, b: { resource: string }) => (a.resource < b.resource ? -1 : 1)
    assert.deepEqual([...(plain ?? [])].sort(byName), [...(whole?.resources ?? [])].sort(byName), path)
  }
})

test('never mirrored by default: events, what cannot be watched, what another server answers for', () => {
  const catalog = catalogOf()
  for (const [group, version, plural] of [
    ['', 'v1', 'events'],
    ['events.k8s.io', 'v1', 'events'],
    ['', 'v1', 'componentstatuses'],
    ['', 'v1', 'bindings'],
  ] as const) {
    assert.equal(catalog.find(group, version, plural)?.mirrorable, false, plural)
  }
  const service = (spec: unknown) => Buffer.from(JSON.stringify({ metadata: { name: 'v1.pasture.test' }, spec }))
  const own = { group: 'pasture.test', version: 'v1' }
  // It is not said yet whose it is: another server might show each caller something else (I1).
  assert.equal(catalog.find('pasture.test', 'v1', 'oxen')?.mirrorable, false)
  catalog.applyApiService('v1.pasture.test', service(own))
  assert.equal(catalog.find('pasture.test', 'v1', 'oxen')?.mirrorable, true)
  catalog.applyApiService('v1.pasture.test', service({ ...own, service: { name: 'a', namespace: 'b' } }))
  assert.equal(catalog.isAggregated('pasture.test', 'v1'), true)
  assert.equal(catalog.isAggregated('pasture.test', 'v1beta1'), false)
  assert.equal(catalog.find('pasture.test', 'v1', 'oxen')?.mirrorable, false)
  assert.equal(catalog.find('pasture.test', 'v1', 'oxen')?.aggregated, true)
  catalog.applyApiService('v1.pasture.test', undefined)
  assert.equal(catalog.find('pasture.test', 'v1', 'oxen')?.mirrorable, false)
  catalog.applyDefinition('oxen.pasture.test', definition)
  assert.equal(catalog.find('pasture.test', 'v1', 'oxen')?.mirrorable, true)
})

test('what is known stays the same object until it changes, and only changes are heard', async () => {
  const catalog = catalogOf()
  await new Promise(setImmediate)
  let heard = 0
  const stop = catalog.observe(() => heard++)
  const pods = catalog.find('', 'v1', 'pods')
  const oxen = catalog.find('pasture.test', 'v1', 'oxen')
  const { generation } = catalog
  catalog.adopt(groups())
  await new Promise(setImmediate)
  assert.equal(catalog.find('', 'v1', 'pods'), pods)
  assert.equal(catalog.generation, generation)
  assert.equal(heard, 0)
  catalog.applyDefinition('oxen.pasture.test', definition)
  catalog.applyDefinition('oxen.pasture.test', definition)
  await new Promise(setImmediate)
  assert.equal(heard, 1)
  assert.equal(catalog.generation, generation + 1)
  assert.equal(catalog.find('', 'v1', 'pods'), pods)
  assert.notEqual(catalog.find('pasture.test', 'v1', 'oxen'), oxen)
  stop()
  catalog.applyDefinition('oxen.pasture.test', undefined)
  await new Promise(setImmediate)
  assert.equal(heard, 1)
})

test('an aggregated API that is down keeps the resources it had', () => {
  const catalog = catalogOf()
  const down = groups().map((group) => {
    if (group.name !== 'pasture.test') return group
    return { ...group, versions: group.versions.map((one) => ({ ...one, stale: true, resources: [] })) }
  })
  catalog.adopt(down)
  assert.equal(catalog.find('pasture.test', 'v1', 'oxen')?.resource.kind, 'Ox')
  catalog.adopt(down)
  assert.equal(catalog.find('pasture.test', 'v1', 'oxen')?.resource.kind, 'Ox')
  catalog.adopt(groups().filter(({ name }) => name !== 'pasture.test'))
  assert.equal(catalog.find('pasture.test', 'v1', 'oxen'), undefined)
})

test('names as people write them', () => {
  const catalog = catalogOf()
  const resolved = (name: string) => catalog.resolveName(name).map(({ resource }) => resource.interest)
  assert.deepEqual(resolved('pods'), ['/v1/pods'])
  assert.deepEqual(resolved('deployments.apps'), ['apps/v1/deployments'])
  assert.deepEqual(resolved('deployments.v1.apps'), ['apps/v1/deployments'])
  assert.deepEqual(resolved('oxen.pasture.test'), ['pasture.test/v1/oxen'])
  assert.deepEqual(resolved('oxen.v1beta1.pasture.test'), ['pasture.test/v1beta1/oxen'])
  assert.deepEqual(resolved('horizontalpodautoscalers.autoscaling'), ['autoscaling/v2/horizontalpodautoscalers'])
  assert.deepEqual(resolved('events'), ['/v1/events', 'events.k8s.io/v1/events'])
  assert.deepEqual(resolved('bo'), ['pasture.test/v1/oxen'])
  assert.deepEqual(resolved('ox'), ['pasture.test/v1/oxen'])
  for (const nothing of ['oxes', 'pods.apps', 'deployments.v2.apps', '', '.']) {
    assert.deepEqual(resolved(nothing), [], nothing)
  }
})

test('versions of Kubernetes own groups that its facts do not have are still its own', () => {
  const stranger = { ...groups().find(({ name }) => name === 'autoscaling') }
  const versions = (stranger.versions ?? []).map((one) => ({ ...one, version: `${one.version}beta9` }))
  const catalog = catalogOf([{ name: 'autoscaling', versions }])
  assert.equal(catalog.find('autoscaling', 'v2beta9', 'horizontalpodautoscalers')?.resource.custom, false)
})

test('a definition made anew under another kind: its names are the definition’s, whatever discovery still says', () => {
  const catalog = catalogOf()
  assert.equal(catalog.find('pasture.test', 'v1', 'oxen')?.defined, false)
  catalog.applyDefinition('oxen.pasture.test', definition)
  catalog.applyDefinition('oxen.pasture.test', undefined)
  const other = definition.toString('utf8').replaceAll('"Ox"', '"Bull"').replaceAll('"OxHerd"', '"BullHerd"')
  catalog.applyDefinition('oxen.pasture.test', Buffer.from(other))
  const known = catalog.find('pasture.test', 'v1', 'oxen')
  assert.deepEqual([known?.defined, known?.resource.kind, known?.resource.listKind], [true, 'Bull', 'BullHerd'])
})
