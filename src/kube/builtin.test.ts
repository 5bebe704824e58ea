import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type BuiltinResource,
  builtinColumns,
  builtinFacts,
  builtinPaths,
  builtinSchemas,
  expandPaths,
} from './builtin.ts'

function find(group: string, version: string, plural: string): BuiltinResource {
  const found = builtinFacts().resources.find(
    (one) => one.group === group && one.version === version && one.resource === plural,
  )
  assert.ok(found, `${group}/${version} ${plural}`)
  return found
}

/** Component names that a JSON text refers to. */
function references(text: string): string[] {
  return [...text.matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)].map(([, name]) => name ?? '')
}

test('every default-enabled built-in of Kubernetes 1.36 is known, in the order of discovery', () => {
  const { kubernetes, version, groups, resources } = builtinFacts()
  assert.equal(kubernetes, 'v1.36.3')
  assert.equal(version.gitVersion, kubernetes)
  assert.equal(groups.length, 21)
  assert.equal(resources.length, 68)
  const inGroups = groups.flatMap(({ name, versions }) => versions.map((one) => `${name}/${one}`))
  const inResources = [...new Set(resources.map((one) => `${one.group}/${one.version}`))]
  assert.deepEqual(inResources, inGroups)
  assert.deepEqual(groups[0], { name: '', versions: ['v1'], preferred: 'v1' })
  assert.deepEqual(groups.find(({ name }) => name === 'autoscaling')?.versions, ['v2', 'v1'])
  assert.equal(new Set(resources.map((one) => `${one.group}/${one.version}/${one.resource}`)).size, resources.length)
  assert.ok(resources.every(({ custom }) => !custom))
})

test('pods as discovery has them', () => {
  const { writes, subresources, selectableFields, fieldRefusal, ...pods } = find('', 'v1', 'pods')
  assert.deepEqual(pods, {
    group: '',
    version: 'v1',
    resource: 'pods',
    kind: 'Pod',
    listKind: 'PodList',
    singular: 'pod',
    namespaced: true,
    verbs: ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'],
    shortNames: ['po'],
    categories: ['all'],
    storageVersionHash: 'xPOwRZ+Yhw8=',
    interest: '/pods',
    custom: false,
  })
  const eviction = { name: 'eviction', verbs: ['create'], group: 'policy', version: 'v1', kind: 'Eviction' }
  assert.deepEqual(
    subresources.find(({ name }) => name === 'eviction'),
    eviction,
  )
  assert.equal(subresources.length, 10)
  assert.ok(selectableFields.includes('spec.nodeName'))
  assert.equal(fieldRefusal, 'field label not supported: {field}')
  assert.equal(writes?.deleteAnswers, 'object')
})

test('deployments scale through another group, and count generations', () => {
  const { subresources, writes } = find('apps', 'v1', 'deployments')
  assert.deepEqual(subresources, [
    { name: 'scale', verbs: ['get', 'patch', 'update'], group: 'autoscaling', version: 'v1', kind: 'Scale' },
    { name: 'status', verbs: ['get', 'patch', 'update'], group: 'apps', version: 'v1', kind: 'Deployment' },
  ])
  assert.deepEqual(writes?.generation, { created: true, raisedBy: ['spec', 'metadata.annotations'] })
  assert.deepEqual(writes?.reset, { create: ['status'], update: ['status'], status: ['spec', 'metadata.labels'] })
})

test('names that English rules would get wrong', () => {
  assert.equal(find('', 'v1', 'endpoints').singular, 'endpoints')
  assert.equal(find('discovery.k8s.io', 'v1', 'endpointslices').kind, 'EndpointSlice')
  assert.equal(find('networking.k8s.io', 'v1', 'networkpolicies').singular, 'networkpolicy')
  assert.equal(find('networking.k8s.io', 'v1', 'ingressclasses').listKind, 'IngressClassList')
  assert.equal(find('storage.k8s.io', 'v1', 'csistoragecapacities').kind, 'CSIStorageCapacity')
  assert.equal(find('apiextensions.k8s.io', 'v1', 'customresourcedefinitions').shortNames[0], 'crd')
  assert.equal(find('authorization.k8s.io', 'v1', 'subjectaccessreviews').listKind, '')
})

test('two spellings of the same objects share an interest, and nothing else does', () => {
  const byInterest = Map.groupBy(builtinFacts().resources, ({ interest }) => interest)
  const shared = [...byInterest].filter(([, spellings]) => spellings.length > 1)
  assert.deepEqual(
    shared.map(([interest, spellings]) => [interest, spellings.map(({ group, version }) => `${group}/${version}`)]),
    [
      ['/events', ['/v1', 'events.k8s.io/v1']],
      ['autoscaling/horizontalpodautoscalers', ['autoscaling/v2', 'autoscaling/v1']],
    ],
  )
  for (const [, spellings] of shared) {
    assert.equal(new Set(spellings.map(({ writes }) => writes?.storageVersion)).size, 1)
    assert.equal(new Set(spellings.map(({ storageVersionHash }) => storageVersionHash)).size, 1)
  }
})

test('exactly what can be created and updated is stored and has write rules', () => {
  for (const { resource, verbs, writes, subresources } of builtinFacts().resources) {
    assert.equal(writes !== undefined, verbs.includes('create') && verbs.includes('update'), resource)
    const hasStatus = subresources.some(({ name }) => name === 'status')
    if (writes !== undefined) assert.equal(writes.reset.status !== undefined, hasStatus, resource)
    if (hasStatus) assert.ok(writes?.createdStatus, resource)
  }
})

test('everything listable can be selected by name, and most of it by nothing but name and namespace', () => {
  const listable = builtinFacts().resources.filter(({ verbs }) => verbs.includes('list'))
  assert.ok(listable.every(({ selectableFields }) => selectableFields[0] === 'metadata.name'))
  for (const { resource, selectableFields, fieldRefusal } of listable) {
    if (fieldRefusal === undefined)
      assert.deepEqual(selectableFields, ['metadata.name', 'metadata.namespace'], resource)
    else assert.match(fieldRefusal, /^field label .*\{field\}/, resource)
  }
})

test('write rules that clients notice', () => {
  assert.equal(find('coordination.k8s.io', 'v1', 'leases').writes?.unconditionalUpdate, false)
  assert.equal(find('coordination.k8s.io', 'v1', 'leases').writes?.createOnUpdate, true)
  assert.equal(find('', 'v1', 'configmaps').writes?.unconditionalUpdate, true)
  assert.equal(find('', 'v1', 'configmaps').writes?.createOnUpdate, false)
  assert.equal(find('', 'v1', 'configmaps').writes?.generation, undefined)
  assert.deepEqual(find('', 'v1', 'nodes').writes?.reset.create, [])
  assert.equal(find('batch', 'v1', 'jobs').writes?.propagation, 'Orphan')
  assert.deepEqual(find('', 'v1', 'namespaces').writes?.createdStatus, { phase: 'Active' })
})

test('schemas: merge keys, defaults and enums stay, prose goes, references lead somewhere', () => {
  const schemas = builtinSchemas()
  const podSpec = schemas['io.k8s.api.core.v1.PodSpec'] as {
    required: string[]
    properties: Record<string, Record<string, unknown>>
  }
  assert.deepEqual(podSpec.required, ['containers'])
  assert.equal(podSpec.properties.containers?.['x-kubernetes-patch-merge-key'], 'name')
  assert.ok(Array.isArray(podSpec.properties.restartPolicy?.enum))
  const text = JSON.stringify(schemas)
  assert.ok(!/"description":"/.test(text))
  for (const name of references(text)) assert.ok(schemas[name], name)
  // A property may be called description: those of CRDs are.
  const column = schemas['io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceColumnDefinition']
  assert.partialDeepStrictEqual(column, { properties: { description: { type: 'string' } } })
})

test('paths are whole again when expanded', () => {
  type Operation = { [key: string]: unknown; parameters: { name: string; in: string }[] }
  const paths = expandPaths(builtinPaths(), 'apis/apps/v1') as Record<string, Record<string, Operation>>
  const item = paths['/apis/apps/v1/namespaces/{namespace}/deployments/{name}']!
  assert.deepEqual(Object.keys(item).sort(), ['delete', 'get', 'parameters', 'patch', 'put'])
  const patch = item.patch!
  assert.equal(patch['x-kubernetes-action'], 'patch')
  assert.deepEqual(patch['x-kubernetes-group-version-kind'], { group: 'apps', version: 'v1', kind: 'Deployment' })
  assert.deepEqual(
    patch.parameters.map(({ name }) => name),
    ['dryRun', 'fieldManager', 'fieldValidation', 'force'],
  )
  const scale = paths['/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale']?.put?.requestBody
  assert.match(JSON.stringify(scale), /"#\/components\/schemas\/io.k8s.api.autoscaling.v1.Scale"/)
  assert.equal(expandPaths(builtinPaths(), 'apis/nothing/v1'), undefined)
})

test('every reference of every operation is a known schema', () => {
  const schemas = builtinSchemas()
  for (const name of Object.keys(builtinPaths().documents)) {
    const text = JSON.stringify(expandPaths(builtinPaths(), name))
    for (const reference of references(text)) assert.ok(schemas[reference], `${name}: ${reference}`)
  }
})

test('columns of every resource that can be listed', () => {
  const columns = builtinColumns()
  const listable = builtinFacts().resources.filter(({ verbs }) => verbs.includes('list'))
  assert.deepEqual(
    Object.keys(columns),
    listable.map(({ group, version, resource }) => `${group}/${version}/${resource}`),
  )
  const names = columns['/v1/pods']?.map(({ name }) => name)
  const wide = ['IP', 'Node', 'Nominated Node', 'Readiness Gates']
  assert.deepEqual(names, ['Name', 'Ready', 'Status', 'Restarts', 'Age', ...wide])
  assert.deepEqual(columns['/v1/pods']?.[0], { name: 'Name', type: 'string', format: 'name', priority: 0 })
})
