import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OwnCatalog } from './owncatalog.ts'

type Overrides = { established?: boolean; deleted?: boolean; fields?: string[]; group?: string; labels?: object }

function crd({ established = true, deleted = false, fields = [], group = 'example.com', labels = {} }: Overrides = {}) {
  const names = { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' }
  const version = (name: string, storage: boolean) => ({
    name,
    served: name !== 'v0',
    storage,
    schema: { openAPIV3Schema: { type: 'object', properties: { spec: { type: 'object' } } } },
    subresources: { status: {}, scale: { specReplicasPath: '.spec.n', statusReplicasPath: '.status.n' } },
    selectableFields: fields.map((jsonPath) => ({ jsonPath })),
    additionalPrinterColumns: [{ name: 'N', type: 'integer', jsonPath: '.spec.n' }],
  })
  const definition = {
    metadata: { name: `widgets.${group}`, labels, ...(deleted ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}) },
    spec: {
      group,
      scope: 'Namespaced',
      names,
      versions: [version('v1beta1', false), version('v1', true), version('v0', false)],
    },
    status: {
      acceptedNames: names,
      conditions: [{ type: 'Established', status: established ? 'True' : 'False' }],
    },
  }
  return Buffer.from(JSON.stringify(definition))
}

const name = 'widgets.example.com'

test('built-ins are found by group, version and plural', () => {
  const resources = new OwnCatalog()
  assert.equal(resources.find('', 'v1', 'pods')?.resource.kind, 'Pod')
  assert.equal(resources.find('apps', 'v1', 'deployments')?.resource.kind, 'Deployment')
  assert.equal(resources.find('apps', 'v2', 'deployments'), undefined)
  assert.equal(resources.find('nothing', 'v1', 'pods'), undefined)
  assert.equal(resources.find('', 'v1', 'pods')?.definition, undefined)
  const { paths } = resources.planOf('/pods')
  assert.ok(paths.includes('spec.nodeName') && paths.includes('status.phase'))
})

test('an established definition is served at once, in its served versions', () => {
  const resources = new OwnCatalog()
  const before = resources.generation
  assert.deepEqual(resources.apply(name, crd({ fields: ['.spec.color'] })), [
    { interest: 'example.com/widgets', gone: false },
  ])
  assert.notEqual(resources.generation, before)
  const served = resources.find('example.com', 'v1', 'widgets')
  assert.equal(served?.resource.listKind, 'WidgetList')
  assert.deepEqual(
    served?.columns?.map((column) => column.name),
    ['N'],
  )
  assert.ok(served?.fields.supported.includes('spec.color'))
  assert.ok(resources.find('example.com', 'v1beta1', 'widgets'))
  assert.equal(resources.find('example.com', 'v0', 'widgets'), undefined)
  const definition = resources.find('example.com', 'v1beta1', 'widgets')?.definition
  assert.equal(definition?.storageVersion, 'v1')
  assert.equal(definition?.status, true)
  assert.equal(definition?.terminating, false)
  assert.deepEqual(definition?.scale, { specReplicasPath: '.spec.n', statusReplicasPath: '.status.n' })
  assert.deepEqual(resources.planOf('example.com/widgets').paths, ['spec.color'])
})

test('what is not established, or claims a built-in group, is not served', () => {
  const resources = new OwnCatalog()
  const { generation } = resources
  assert.deepEqual(resources.apply(name, crd({ established: false })), [])
  assert.equal(resources.generation, generation)
  assert.equal(resources.find('example.com', 'v1', 'widgets'), undefined)
  resources.apply('widgets.apps', crd({ group: 'apps' }))
  assert.equal(resources.find('apps', 'v1', 'widgets'), undefined)
  assert.equal(resources.find('apps', 'v1', 'deployments')?.resource.kind, 'Deployment')
})

test('a change of nothing that is served changes nothing', () => {
  const resources = new OwnCatalog()
  resources.apply(name, crd())
  const { generation } = resources
  const definition = resources.find('example.com', 'v1', 'widgets')?.definition
  assert.deepEqual(resources.apply(name, crd({ labels: { a: 'b' } })), [])
  assert.equal(resources.generation, generation)
  assert.equal(resources.find('example.com', 'v1', 'widgets')?.definition, definition)
})

test('other selectable fields are another plan', () => {
  const resources = new OwnCatalog()
  assert.deepEqual(resources.planOf('example.com/widgets').paths, [])
  resources.apply(name, crd({ fields: ['.spec.a'] }))
  assert.deepEqual(resources.planOf('example.com/widgets').paths, ['spec.a'])
  assert.equal(resources.apply(name, crd({ fields: ['.spec.b'] })).length, 1)
  assert.deepEqual(resources.planOf('example.com/widgets').paths, ['spec.b'])
})

test('a deleted definition is served until it is gone, and takes nothing new', () => {
  const resources = new OwnCatalog()
  resources.apply(name, crd())
  resources.apply(name, crd({ deleted: true }))
  const { resource, definition } = resources.find('example.com', 'v1', 'widgets')!
  assert.equal(definition?.terminating, true)
  // Finalizers are taken off by an update: only discovery offers less.
  assert.ok(resource.verbs.includes('update'))
  const listed = resources.groups().at(-1)?.versions[0]?.resources[0]
  assert.deepEqual(listed?.verbs, ['delete', 'deletecollection', 'get', 'list', 'watch'])
  assert.deepEqual(resources.apply(name, undefined), [{ interest: 'example.com/widgets', gone: true }])
  assert.equal(resources.find('example.com', 'v1', 'widgets'), undefined)
  assert.equal(
    resources.groups().some((group) => group.custom),
    false,
  )
})

test('custom groups come after the built-in ones, versions by maturity', () => {
  const resources = new OwnCatalog()
  resources.apply('widgets.b.example.com', crd({ group: 'b.example.com' }))
  resources.apply('widgets.a.example.com', crd({ group: 'a.example.com' }))
  const custom = resources.groups().slice(-2)
  assert.deepEqual(
    custom.map((group) => [group.name, group.versions.map(({ version }) => version)]),
    [
      ['a.example.com', ['v1', 'v1beta1']],
      ['b.example.com', ['v1', 'v1beta1']],
    ],
  )
  assert.equal([...resources.resources()].filter((resource) => resource.custom).length, 4)
})
