/** Custom resources that break guesses: a plural, a list kind and keys that nobody would come up with. */
import { type Case, established, type Group, get, getAs, patch, post, until, watch } from '../corpus.ts'

const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const flock = '/apis/odd.example.com/v1/namespaces/odd/flock'
const later = '/apis/odd.example.com/v2/namespaces/odd/flock'
const gatewaies = '/apis/odd.example.com/v1/gatewaies'
const table = 'application/json;as=Table;v=v1;g=meta.k8s.io'
const partial = 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io'
const partialList = 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io'
const initial = 'watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'

const anything = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }
const version = (name: string, storage: boolean) => ({
  name,
  served: true,
  storage,
  schema: {
    openAPIV3Schema: {
      type: 'object',
      properties: { spec: { ...anything, properties: { colour: { type: 'string' } } }, status: anything },
    },
  },
  subresources: {
    status: {},
    scale: { specReplicasPath: '.spec.head', statusReplicasPath: '.status.head', labelSelectorPath: '.status.labels' },
  },
  selectableFields: [{ jsonPath: '.spec.colour' }],
  additionalPrinterColumns: [
    { name: 'Colour', type: 'string', jsonPath: '.spec.colour' },
    { name: 'Head', type: 'integer', jsonPath: '.spec.head' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
})

const define = (scope: string, names: { plural: string; kind: string; listKind: string }) => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${names.plural}.odd.example.com` },
  spec: {
    group: 'odd.example.com',
    scope,
    names: { ...names, singular: names.kind.toLowerCase() },
    versions: [version('v1', true), version('v2', false)],
  },
})

/** Spelled out: object literals would bring the keys into another order than the text has. */
const sheep = (name: string, spec: string, labels = '{}') =>
  `{"spec":${spec},"metadata":{"labels":${labels},"name":"${name}"},"kind":"Sheep","apiVersion":"odd.example.com/v1"}`

const hard =
  '{"zeta":1,"alpha":{"10":"ten","9":"nine","":"empty","__proto__":{"x":1},"ü":"umlaut"},"colour":"black",' +
  '"big":9007199254740993,"float":1.5,"tiny":1e-7,"huge":1e21,"html":"<&>","text":"a\\tb\\u0000","list":[],"none":{},"head":3}'

const reads = (path: string, kind: string): Case[] => [
  get(`${kind}: one`, `${path}/one`),
  get(`${kind}: one at any version`, `${path}/one?resourceVersion=0`),
  get(`${kind}: missing`, `${path}/nope`),
  get(`${kind}: list`, path),
  get(`${kind}: list at any version`, `${path}?resourceVersion=0`),
  get(`${kind}: first page`, `${path}?limit=1`),
  get(`${kind}: by label`, `${path}?labelSelector=wool%3Dyes`),
  get(`${kind}: by its own field`, `${path}?fieldSelector=spec.colour%3Dblack`),
  get(`${kind}: by a field that is none`, `${path}?fieldSelector=spec.head%3D3`),
  getAs(`${kind}: as Table`, path, table),
  getAs(`${kind}: one as Table`, `${path}/one`, table),
  getAs(`${kind}: as PartialObjectMetadataList`, path, partialList),
  getAs(`${kind}: one as PartialObjectMetadata`, `${path}/one`, partial),
  getAs(`${kind}: as yaml`, path, 'application/yaml'),
  getAs(`${kind}: one as yaml`, `${path}/one`, 'application/yaml'),
  get(`${kind}: pretty`, `${path}/one?pretty=true`),
  get(`${kind}: status`, `${path}/one/status`),
  get(`${kind}: scale`, `${path}/one/scale`),
  watch(`${kind}: watched`, `${path}?watch=true&timeoutSeconds=2`, []),
  watch(`${kind}: initial events`, `${path}?${initial}&timeoutSeconds=2`, []),
  watch(`${kind}: watched as Table`, `${path}?watch=true&timeoutSeconds=2`, [], { headers: { accept: table } }),
]

export const odd: Group = {
  name: 'odd',
  cases: [
    post('make sheep known', crds, define('Namespaced', { plural: 'flock', kind: 'Sheep', listKind: 'Herd' })),
    post('make gateways known', crds, define('Cluster', { plural: 'gatewaies', kind: 'Gateway', listKind: 'Gates' })),
    until('sheep are known', `${crds}/flock.odd.example.com`, established),
    until('gateways are known', `${crds}/gatewaies.odd.example.com`, established),
    until('sheep are served', flock, (body) => body.includes('"Herd"')),
    until('gateways are served', gatewaies, (body) => body.includes('"Gates"')),
    post('make one sheep', flock, sheep('one', hard, '{"wool":"yes"}')),
    post('make another sheep', flock, sheep('two', '{"b":1,"a":2,"colour":"white"}')),
    post('make one gateway', gatewaies, sheep('one', hard).replace('"Sheep"', '"Gateway"')),
    patch('merge', 'make it count', `${flock}/one/status`, { status: { head: 3, labels: 'a=b' } }),
    ...reads(flock, 'sheep'),
    ...reads(later, 'sheep in v2'),
    ...reads(gatewaies, 'gateway'),
    get('the guessed plural', '/apis/odd.example.com/v1/namespaces/odd/sheeps'),
    get('resources of the group', '/apis/odd.example.com/v1'),
    get('the group', '/apis/odd.example.com'),
    get('openapi of the group', '/openapi/v3/apis/odd.example.com/v1'),
    get('definition', `${crds}/flock.odd.example.com`),
    getAs('definitions as Table', crds, table),
  ],
}
