import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  acceptOf,
  bodyFormat,
  type EndpointRestrictions,
  firstAccepted,
  negotiate,
  patchFormat,
  wantsAggregatedDiscovery,
} from './negotiate.ts'
import type { Resource } from './resource.ts'
import { StatusError } from './status.ts'

const empty = { verbs: [], shortNames: [], categories: [], subresources: [], namespaced: true, singular: '' }
const pods: Resource = {
  ...empty,
  group: '',
  version: 'v1',
  resource: 'pods',
  kind: 'Pod',
  listKind: 'PodList',
  interest: '/pods',
  custom: false,
}
const shirts: Resource = {
  ...pods,
  group: 'x.io',
  resource: 'shirts',
  kind: 'Shirt',
  listKind: 'ShirtList',
  custom: true,
}
const meta = ';v=v1;g=meta.k8s.io'

function outcome(
  accept: string | undefined,
  shape: EndpointRestrictions['shape'] = 'object',
  resource: Resource | undefined = pods,
): string {
  try {
    const endpoint: EndpointRestrictions = resource === undefined ? { shape } : { shape, resource }
    const { codec, as, pretty } = negotiate(accept, endpoint)
    return [codec.name, as === undefined ? '' : ` ${as.kind}.${as.version}`, pretty ? ' pretty' : ''].join('')
  } catch (error) {
    assert.ok(error instanceof StatusError)
    assert.equal(error.status.reason, 'NotAcceptable')
    return `${error.code} ${error.message}`
  }
}

const only =
  '406 only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf'

test('negotiate() takes the best clause that can be satisfied', () => {
  const cases: [string | undefined, string][] = [
    [undefined, 'json'],
    ['', 'json'],
    ['*/*', 'json'],
    ['*,*/*', 'json'],
    ['application/json, */*', 'json'],
    ['application/yaml', 'yaml'],
    ['application/json;q=0.1,application/yaml', 'yaml'],
    ['application/yaml;q=0.5, application/json;q=0.9', 'json'],
    ['*/*,application/yaml', 'yaml'],
    ['application/yaml;q=0', 'yaml'],
    ['application/json;q=x,application/yaml;q=0.1', 'yaml'],
    ['application/vnd.kubernetes.protobuf,application/json', 'protobuf'],
    ['application/vnd.kubernetes.protobuf, */*', 'protobuf'],
    ['application/cbor,application/json', 'json'],
    ['application/json;charset=utf-8', 'json'],
    ['application/json;drop=metadata.managedFields', 'json'],
    ['application/json;pretty=1', 'json pretty'],
    ['application/json;stream=watch', 'json'],
    ['application/json;sv=v1', 'json'],
    [`application/json;as=Table${meta}`, 'json Table.v1'],
    ['application/json;as=Table;v=v1beta1;g=meta.k8s.io', 'json Table.v1beta1'],
    [`application/yaml;as=Table${meta}`, 'yaml Table.v1'],
    [`*/*;as=Table${meta}`, 'json Table.v1'],
    [`application/vnd.kubernetes.protobuf;as=Table${meta},application/json`, 'json'],
    [`application/json;as=Foo${meta},application/json`, 'json'],
    [`application/json;as=PartialObjectMetadata${meta}`, 'json PartialObjectMetadata.v1'],
  ]
  for (const [accept, expected] of cases) assert.equal(outcome(accept), expected, accept ?? 'none')
  assert.equal(
    outcome(`application/json;as=PartialObjectMetadataList${meta}`, 'list'),
    'json PartialObjectMetadataList.v1',
  )
  assert.equal(outcome(`application/json;as=PartialObjectMetadata${meta}`, 'watch'), 'json PartialObjectMetadata.v1')
})

test('negotiate() refuses with the lists of kube-apiserver', () => {
  const router =
    '406 406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf'
  const streams = 'application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch'
  assert.equal(outcome('application/xml'), router)
  assert.equal(outcome('application/*'), router)
  assert.equal(outcome('Application/JSON'), router)
  assert.equal(outcome('application/xml', 'list'), `${router}, ${streams}`)
  assert.equal(outcome('application/xml', 'watch'), `${router}, ${streams}`)
  assert.equal(outcome('application/xml', 'object', shirts), only)
  assert.equal(outcome('application/*', 'object', shirts), 'json')
  assert.equal(outcome('application/json;stream=foo'), only)
  assert.equal(outcome('application/json;v=v1'), only)
  assert.equal(outcome('application/json;sv=v2'), only)
  assert.equal(
    outcome('application/yaml,application/json', 'watch'),
    `406 only the following media types are accepted: ${streams}`,
  )
  assert.equal(outcome(`application/json;as=Table${meta}`, 'document', undefined), only)
})

test('negotiate() refuses a singular form of a list and a list of one', () => {
  const singular = `application/json;as=PartialObjectMetadata${meta},application/json`
  const plural = `application/json;as=PartialObjectMetadataList${meta}`
  const but = (kind: string, end: string) => `406 you requested ${kind}, but the requested object is ${end}`
  assert.equal(outcome(singular, 'list'), but('PartialObjectMetadata', 'a list (*core.PodList)'))
  assert.equal(outcome(plural), but('PartialObjectMetadataList', 'not a list (*core.Pod)'))
  assert.equal(
    outcome(singular, 'list', shirts),
    but('PartialObjectMetadata', 'a list (*unstructured.UnstructuredList)'),
  )
})

const protobuf = 'application/vnd.kubernetes.protobuf'

test('protobuf is spoken where the client prefers it and the object has such a form', () => {
  assert.equal(outcome(`${protobuf},application/json`), 'protobuf')
  assert.equal(outcome(`${protobuf}, */*`, 'list'), 'protobuf')
  assert.equal(outcome(`${protobuf};q=0.5,application/json`), 'json')
  assert.equal(outcome(`application/json;q=0.5,${protobuf}`), 'protobuf')
  assert.equal(outcome(`${protobuf},application/json`, 'watch'), 'protobuf')
  assert.equal(outcome(`${protobuf};stream=watch`, 'watch'), 'protobuf')
  assert.equal(outcome(protobuf, 'document', undefined), 'protobuf')
})

test('custom resources have protobuf for their metadata alone', () => {
  assert.equal(outcome(`${protobuf},application/json`, 'object', shirts), 'json')
  for (const shape of ['object', 'list', 'watch'] as const) assert.equal(outcome(protobuf, shape, shirts), only)
  const partial = `${protobuf};as=PartialObjectMetadata${meta}`
  assert.equal(outcome(partial, 'object', shirts), 'protobuf PartialObjectMetadata.v1')
  assert.equal(outcome(`${partial},application/json`, 'watch', shirts), 'protobuf PartialObjectMetadata.v1')
})

test('a built-in of another Kubernetes, whose message is not known, is shown in JSON', () => {
  const later: Resource = { ...pods, group: 'apps', version: 'v9', resource: 'gadgets', kind: 'Gadget' }
  assert.equal(outcome(`${protobuf},application/json`, 'object', later), 'json')
})

test('no Table is written in protobuf', () => {
  const table = `${protobuf};as=Table${meta}`
  assert.equal(outcome(table), only)
  assert.equal(outcome(`${table},application/json`), 'json')
})

test('what was chosen can be asked of another API server so that it has no other choice', () => {
  for (const accept of [
    `${protobuf};as=PartialObjectMetadata${meta},application/json`,
    `${protobuf},*/*`,
    'application/json',
  ]) {
    const choice = negotiate(accept, { shape: 'watch', resource: pods })
    assert.deepEqual(negotiate(acceptOf(choice), { shape: 'watch', resource: pods }), choice)
  }
})

test('firstAccepted() goes by the client’s preference, then by what is offered first', () => {
  const offered = ['application/json', 'application/a@b', 'application/a.b']
  assert.equal(firstAccepted(undefined, offered), 'application/json')
  assert.equal(firstAccepted('*/*', offered), 'application/json')
  assert.equal(firstAccepted('application/a.b, application/json', offered), 'application/a.b')
  assert.equal(firstAccepted('application/a@b;q=0.5, application/json', offered), 'application/json')
  assert.equal(firstAccepted('text/plain', offered), undefined)
})

test('wantsAggregatedDiscovery() finds the request anywhere in the header', () => {
  const as = ';as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io'
  assert.equal(wantsAggregatedDiscovery(`application/json,application/json${as}`)?.name, 'json')
  assert.equal(wantsAggregatedDiscovery(`application/yaml${as}`)?.name, 'yaml')
  assert.equal(wantsAggregatedDiscovery(`application/json${as.replace('v2', 'v2beta1')},application/json`), undefined)
  assert.equal(wantsAggregatedDiscovery(`application/cbor${as}`), undefined)
  assert.equal(wantsAggregatedDiscovery(undefined), undefined)
})

test('the cache of headers forgets before it grows', () => {
  for (let i = 0; i < 2000; i++) assert.equal(outcome(`application/json;x=${i}`), 'json')
  assert.equal(outcome(`application/json;x=${'y'.repeat(5000)}`), 'json')
  assert.equal(outcome(`${'a/b,'.repeat(63)}application/json`), 'json')
})

test('bodyFormat() reads the media type and refuses the rest', () => {
  for (const type of [
    undefined,
    '',
    'application/json',
    'APPLICATION/JSON',
    'application/json; charset=utf-8',
    'application/json;',
  ]) {
    assert.equal(bodyFormat(type), 'json', type ?? 'none')
  }
  assert.equal(bodyFormat('application/yaml'), 'yaml')
  assert.equal(bodyFormat('application/vnd.kubernetes.protobuf'), 'protobuf')
  assert.equal(bodyFormat('application/vnd.kubernetes.protobuf;type=x'), 'protobuf')
  const list = 'application/json, application/yaml'
  const message = `the body of the request was in an unknown format - accepted media types include: ${list}`
  assert.throws(() => bodyFormat(protobuf, { anyShape: true }), { message, code: 415 })
  for (const type of [
    'text/plain',
    'application/cbor',
    'application/json; charset',
    'application/json;a=b;A=c',
    'application/json,text/x',
  ]) {
    assert.throws(() => bodyFormat(type), { message: `${message}, ${protobuf}`, code: 415 }, type)
  }
})

test('patchFormat() knows the four patches, and three for custom resources', () => {
  assert.equal(patchFormat('application/json-patch+json', false), 'json')
  assert.equal(patchFormat('application/merge-patch+json;charset=utf-8', false), 'merge')
  assert.equal(patchFormat('application/strategic-merge-patch+json', false), 'strategic')
  assert.equal(patchFormat('application/apply-patch+yaml', true), 'apply')
  const list =
    'the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, '
  assert.throws(() => patchFormat('application/json', false), { message: '415: Unsupported Media Type' })
  assert.throws(() => patchFormat(undefined, false), { message: '415: Unsupported Media Type' })
  assert.throws(() => patchFormat('application/merge-patch+json ;charset=utf-8', false), {
    message: `${list}application/strategic-merge-patch+json, application/apply-patch+yaml`,
  })
  assert.throws(() => patchFormat('application/strategic-merge-patch+json', true), {
    message: `${list}application/apply-patch+yaml`,
  })
})
