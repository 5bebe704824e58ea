/** Wrong paths, methods, bodies, kinds, names and namespaces. */
import { type Case, type Group, get, post, put, send } from '../corpus.ts'
import { apps, configMap, core, deployment, service } from './fixtures.ts'

const maps = core('errors', 'configmaps')
const map = configMap('x', { k: 'dg==' })

const paths = [
  '/api/v1/nonsense',
  '/api/v1/namespaces/errors/nonsense',
  '/api/v1/namespaces/errors/nonsense/x',
  '/api/v1/namespaces/errors/nodes',
  '/api/v1/namespaces/errors/nodes/x',
  '/api/v1/configmaps/x',
  '/api/v1/namespaces/errors/configmaps/x/status',
  '/api/v1/namespaces/errors/configmaps/x/nonsense',
  '/api/v1/namespaces/errors/configmaps/x/y/z',
  '/api/v1/namespaces/errors/pods/x/nonsense',
  '/api/v1/namespaces/errors/pods/x/status/more',
  '/api/v1/namespaces/errors/pods/x/log',
  '/apis/apps/v1/namespaces/errors/configmaps',
  '/apis/apps/v2/namespaces/errors/deployments',
  '/apis/apps/namespaces/errors/deployments',
  '/apis/nope.example.com/v1/namespaces/errors/things',
  '/apis/nope.example.com/v1/things/x',
  '/api/v1/proxy/nodes/x',
  '/api/v1/namespaces//configmaps?labelSelector=nothing',
  '/api/v1/namespaces/errors//configmaps',
  '/api/v1//namespaces',
  '/api/v1/namespaces/errors/./configmaps',
  '/api/v1/namespaces/errors/../default/configmaps/nope',
  '/API/v1/nodes',
  '/api/v1/NODES',
  '/api/v1/namespaces/errors/bindings',
  '/api/v1/componentstatuses/nope',
  '/api/v1/namespaces/errors/configmaps?labelSelector=%zz',
  '/api/v1/namespaces/errors/configmaps/%zz',
]

const methods: Case[] = ['PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'POST'].flatMap((method) =>
  [maps, `${maps}/x`, '/api/v1/nodes', core('errors', 'bindings'), '/api/v1/namespaces', apps('errors', 'deployments')]
    // A collection's deletion is a request like any other, and of all nodes or namespaces not a harmless one.
    .filter((path) => method !== 'DELETE' || path.endsWith('/bindings'))
    .filter((path) => method !== 'POST' || path.endsWith('/x'))
    .map((path) => send(method, `${method} ${path}`, path, undefined)),
)

const bodies: readonly [string, unknown][] = [
  ['no body', undefined],
  ['an empty body', ''],
  ['no JSON', 'nonsense'],
  ['half an object', '{"metadata":{"name":"x"'],
  ['something behind', `${JSON.stringify(map)}{}`],
  ['an array', '[]'],
  ['a string', '"x"'],
  ['a number', '1'],
  ['null', 'null'],
  ['an empty object', {}],
  ['no kind', { metadata: { name: 'x1' }, data: { k: 'v' } }],
  ['no apiVersion', { kind: 'ConfigMap', metadata: { name: 'x2' } }],
  ['no name', { ...map, metadata: {} }],
  ['an empty name', { ...map, metadata: { name: '' } }],
  ['another kind', { ...map, kind: 'Secret' }],
  ['a kind nobody knows', { ...map, kind: 'Nonsense' }],
  ['another group', { ...map, apiVersion: 'apps/v1', kind: 'Deployment' }],
  ['a version nobody knows', { ...map, apiVersion: 'v9' }],
  ['an apiVersion of three parts', { ...map, apiVersion: 'a/b/c' }],
  ['kind is a number', { ...map, kind: 5 }],
  ['metadata is a string', { ...map, metadata: 'x' }],
  ['metadata is an array', { ...map, metadata: [] }],
  ['metadata.name is a number', { ...map, metadata: { name: 5 } }],
  ['labels hold a number', { ...map, metadata: { name: 'x', labels: { a: 1 } } }],
  ['labels are an array', { ...map, metadata: { name: 'x', labels: ['a'] } }],
  ['data holds a number', { ...map, data: { a: 1 } }],
  ['data holds an object', { ...map, data: { a: {} } }],
  ['data is a string', { ...map, data: 'x' }],
  ['a list instead of an object', { apiVersion: 'v1', kind: 'List', items: [map] }],
  ['a key twice', '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"twice"},"data":{"a":"1","a":"2"}}'],
  ['invalid UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d])],
  ['another namespace', { ...map, metadata: { name: 'x', namespace: 'other' } }],
  ['a resourceVersion', { ...map, metadata: { name: 'x', resourceVersion: '1' } }],
  ['an upper case name', { ...map, metadata: { name: 'Xy' } }],
  ['a name with an underscore', { ...map, metadata: { name: 'x_y' } }],
  ['a name with a slash', { ...map, metadata: { name: 'x/y' } }],
  ['a name of a dot', { ...map, metadata: { name: '.' } }],
  ['a name too long', { ...map, metadata: { name: 'x'.repeat(254) } }],
  ['a name as long as can be', { ...map, metadata: { name: 'x'.repeat(253) } }],
  ['a bad label key', { ...map, metadata: { name: 'x', labels: { 'a b': 'c' } } }],
  ['a bad label prefix', { ...map, metadata: { name: 'x', labels: { 'A/b': 'c' } } }],
  ['a bad label value', { ...map, metadata: { name: 'x', labels: { a: 'b c' } } }],
  ['a label value too long', { ...map, metadata: { name: 'x', labels: { a: 'b'.repeat(64) } } }],
  ['a bad annotation key', { ...map, metadata: { name: 'x', annotations: { 'a b': 'c' } } }],
  ['annotations too large', { ...map, metadata: { name: 'x', annotations: { a: 'b'.repeat(262_145) } } }],
  ['a bad finalizer', { ...map, metadata: { name: 'x', finalizers: ['a b'] } }],
  ['a finalizer without a domain', { ...map, metadata: { name: 'x3', finalizers: ['nodomain'] } }],
  [
    'an owner without uid',
    { ...map, metadata: { name: 'x', ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'p', uid: '' }] } },
  ],
  [
    'two controllers',
    {
      ...map,
      metadata: {
        name: 'x',
        ownerReferences: ['1', '2'].map((uid) => ({ apiVersion: 'v1', kind: 'Pod', name: 'p', uid, controller: true })),
      },
    },
  ],
  ['a bad config map key', { ...map, data: { 'a b': 'c' } }],
  ['a bad creationTimestamp', { ...map, metadata: { name: 'x', creationTimestamp: 'yesterday' } }],
  ['a negative generation', { ...map, metadata: { name: 'x', generation: -1 } }],
  ['several faults', { ...map, metadata: { name: 'X_', labels: { a: 'b c' }, annotations: { 'c d': '' } } }],
]

export const errors: Group = {
  name: 'errors',
  cases: [
    ...paths.map((path) => get(`path ${path}`, path)),
    ...methods,
    ...bodies.map(([name, body]) => post(`create: ${name}`, maps, body)),
    post('create in a namespace that is not there', core('nope', 'configmaps'), map),
    post('create with a namespace in the body', maps, { ...map, metadata: { name: 'in-body', namespace: 'errors' } }),
    post('create across namespaces', '/api/v1/configmaps', { ...map, metadata: { name: 'x', namespace: 'errors' } }),
    post('create what exists', maps, { ...map, metadata: { name: 'in-body' } }),
    post('create at a name', `${maps}/y`, map),
    post('create a node with a namespace', '/api/v1/nodes', { metadata: { name: 'errors-node', namespace: 'errors' } }),
    post('create a namespace with a bad name', '/api/v1/namespaces', { metadata: { name: 'Bad' } }),
    post('create a namespace with a dot', '/api/v1/namespaces', { metadata: { name: 'a.b' } }),
    post('create a service with a digit first', core('errors', 'services'), service('1web')),
    post('create a pod without a spec', core('errors', 'pods'), { metadata: { name: 'p' } }),
    post('create a deployment with a wrong type', apps('errors', 'deployments'), {
      ...deployment('d'),
      spec: { ...deployment('d').spec, replicas: 'three' },
    }),
    post('create a deployment with a fraction', apps('errors', 'deployments'), {
      ...deployment('d'),
      spec: { ...deployment('d').spec, replicas: 1.5 },
    }),
    put('update: another name', `${maps}/in-body`, map),
    put('update: another namespace', `${maps}/in-body`, { ...map, metadata: { name: 'in-body', namespace: 'other' } }),
    put('update: another kind', `${maps}/in-body`, { ...map, kind: 'Secret', metadata: { name: 'in-body' } }),
    put('update: no name', `${maps}/in-body`, { ...map, metadata: {} }),
    put('update: no body', `${maps}/in-body`, undefined),
    put('update: no JSON', `${maps}/in-body`, '{'),
    put('update: what is not there', `${maps}/nope`, { ...map, metadata: { name: 'nope' } }),
    put('update: what is not there, with a version', `${maps}/nope`, {
      ...map,
      metadata: { name: 'nope', resourceVersion: '1' },
    }),
    put('update: a version that is no number', `${maps}/in-body`, {
      ...map,
      metadata: { name: 'in-body', resourceVersion: 'x' },
    }),
    post('a body too large', maps, `{"metadata":{"name":"x"},"data":{"a":"${'x'.repeat(3 * 1024 * 1024)}"}}`),
    post('an object too large', maps, configMap('too-large', { a: 'x'.repeat(1024 * 1024 + 1) })),
  ],
}
