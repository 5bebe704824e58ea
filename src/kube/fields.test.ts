import assert from 'node:assert/strict'
import { test } from 'node:test'
import { narrowedTo, selectableFields } from './fields.ts'
import { parseFieldSelector } from './fieldselector.ts'
import type { Resource } from './resource.ts'

function resource(name: string, kind: string, more: Partial<Resource> = {}): Resource {
  const none = { verbs: [], shortNames: [], categories: [], subresources: [], interest: name, custom: false }
  const named = { group: '', version: 'v1', resource: name, kind, listKind: `${kind}List`, singular: '' }
  return { ...named, namespaced: true, ...none, ...more }
}

const pods = selectableFields(resource('pods', 'Pod'))

test('selectableFields() reads values and the defaults of what is absent', () => {
  const pod = { metadata: { name: 'p', namespace: 'n' }, spec: { hostNetwork: true, nodeName: 'w' } }
  assert.equal(pods.read(pod, 'metadata.name'), 'p')
  assert.equal(pods.read(pod, 'spec.hostNetwork'), 'true')
  assert.equal(pods.read({}, 'spec.hostNetwork'), 'false')
  assert.equal(pods.read(pod, 'spec.restartPolicy'), 'Always')
  assert.equal(pods.read(pod, 'status.phase'), 'Pending')
  assert.equal(pods.read({ status: { podIPs: ['1'] } }, 'status.podIPs'), '')
  assert.equal(pods.read({ spec: null }, 'spec.nodeName'), '')
  const jobs = selectableFields(resource('jobs', 'Job', { group: 'batch' }))
  assert.equal(jobs.read({ status: { succeeded: 3 } }, 'status.successful'), '3')
  assert.equal(jobs.read({}, 'status.successful'), '0')
  const nodes = selectableFields(resource('nodes', 'Node', { namespaced: false }))
  assert.equal(nodes.read({ spec: {} }, 'spec.unschedulable'), 'false')
})

test('selectableFields() gives a path for every field a resolved selector can name', () => {
  assert.deepEqual(pods.paths['spec.hostNetwork'], { path: 'spec.hostNetwork', default: 'false' })
  for (const field of pods.supported) {
    const [requirement] = pods.resolve(parseFieldSelector(`${field}=x`)).requirements
    assert.ok(requirement !== undefined && requirement.field in pods.paths, field)
  }
  assert.equal(pods.resolve(parseFieldSelector('spec.host=w')).toString(), 'spec.nodeName=w')
})

test('events of both groups select over the stored core form', () => {
  const core = selectableFields(resource('events', 'Event'))
  const own = selectableFields(resource('events', 'Event', { group: 'events.k8s.io' }))
  const event = { involvedObject: { name: 'p' }, reportingComponent: 'kubelet', source: {} }
  const selector = own.resolve(parseFieldSelector('regarding.name=p,reportingController=kubelet'))
  assert.ok(selector.matches((field) => own.read(event, field)))
  assert.equal(core.read(event, 'source'), 'kubelet')
  assert.equal(core.read({ ...event, source: { component: 'c' } }, 'source'), 'c')
  assert.throws(() => own.resolve(parseFieldSelector('involvedObject.name=p')), {
    message: 'field label not supported: involvedObject.name',
  })
  assert.throws(() => core.resolve(parseFieldSelector('regarding.name=p')), {
    message: 'field label not supported: regarding.name',
  })
})

test('an unsupported field is refused in the words of its resource', () => {
  const slices = resource('resourceslices', 'ResourceSlice', { group: 'resource.k8s.io', namespaced: false })
  const cases: [Resource, string, string][] = [
    [resource('pods', 'Pod'), 'foo=x,bar=y', 'field label not supported: bar'],
    [
      resource('nodes', 'Node', { namespaced: false }),
      'metadata.namespace=x',
      'field label not supported: metadata.namespace',
    ],
    [
      resource('configmaps', 'ConfigMap'),
      'foo=x',
      '"foo" is not a known field selector: only "metadata.name", "metadata.namespace"',
    ],
    [resource('jobs', 'Job', { group: 'batch' }), 'foo=x', 'field label "foo" not supported for Job'],
    [slices, 'foo=x', 'field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: foo'],
    [
      resource('constructor', 'Constructor'),
      'foo=x',
      '"foo" is not a known field selector: only "metadata.name", "metadata.namespace"',
    ],
  ]
  for (const [of, text, message] of cases) {
    assert.throws(() => selectableFields(of).resolve(parseFieldSelector(text)), { message, code: 400 })
  }
})

test('custom resources offer what their CRD names', () => {
  const of = resource('shirts', 'Shirt', { group: 'x.io', custom: true, namespaced: false })
  const shirts = selectableFields(of, ['.spec.color', '.spec.size', '.spec.on'])
  assert.deepEqual(shirts.supported, ['metadata.name', 'spec.color', 'spec.size', 'spec.on'])
  const shirt = { spec: { color: 'blue', size: 12, on: false } }
  assert.equal(shirts.read(shirt, 'spec.color'), 'blue')
  assert.equal(shirts.read(shirt, 'spec.size'), '12')
  assert.equal(shirts.read(shirt, 'spec.on'), 'false')
  assert.equal(shirts.read({}, 'spec.color'), '')
  assert.throws(() => shirts.resolve(parseFieldSelector('metadata.namespace=x')), {
    message: 'field label not supported: metadata.namespace',
  })
})

test('narrowedTo() adds the name of the path, or insists on it', () => {
  assert.equal(narrowedTo('p', parseFieldSelector('')).toString(), 'metadata.name=p')
  assert.equal(narrowedTo('p', parseFieldSelector('metadata.name=p')).toString(), 'metadata.name=p')
  for (const text of ['metadata.name=q', 'spec.nodeName=w']) {
    assert.throws(() => narrowedTo('p', parseFieldSelector(text)), {
      message: "fieldSelector metadata.name doesn't match requested name",
    })
  }
})
