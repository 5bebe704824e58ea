/** /status and /scale of several kinds, and the other subresources that are answered without a kubelet. */
import { type Case, type Group, get, patch, post, put } from '../corpus.ts'
import {
  apps,
  core,
  deployment,
  node,
  pod,
  replicaSet,
  replicationController,
  service,
  statefulSet,
} from './fixtures.ts'

const scale = (name: string, replicas: number, metadata: object = {}) => ({
  apiVersion: 'autoscaling/v1',
  kind: 'Scale',
  metadata: { name, namespace: 'subresources', ...metadata },
  spec: { replicas },
})

const scaled = (kind: string, path: string): Case[] => [
  get(`scale of a ${kind}`, `${path}/scale`, {}, { take: { rv: 'metadata.resourceVersion' } }),
  put(`scale a ${kind} to 4`, `${path}/scale`, scale('x', 4)),
  put(`scale a ${kind} with a version`, `${path}/scale`, scale('x', 5, { resourceVersion: '<rv>' })),
  put(`scale a ${kind} to the same`, `${path}/scale`, scale('x', 4)),
  put(`scale a ${kind} below nothing`, `${path}/scale`, scale('x', -1)),
  patch('merge', `patch the scale of a ${kind}`, `${path}/scale`, { spec: { replicas: 2 } }),
  patch('json', `json patch the scale of a ${kind}`, `${path}/scale`, [
    { op: 'replace', path: '/spec/replicas', value: 3 },
  ]),
  patch('merge', `patch the scale of a ${kind}, dry`, `${path}/scale?dryRun=All`, { spec: { replicas: 9 } }),
  get(`the ${kind} afterwards`, path),
]

const d = `${apps('subresources', 'deployments')}/x`
const p = `${core('subresources', 'pods')}/x`

export const subresources: Group = {
  name: 'subresources',
  cases: [
    post('make deployment', apps('subresources', 'deployments'), deployment('x', 1)),
    post('make replica set', apps('subresources', 'replicasets'), replicaSet('x', 1)),
    post('make stateful set', apps('subresources', 'statefulsets'), statefulSet('x', 1)),
    post('make replication controller', core('subresources', 'replicationcontrollers'), replicationController('x', 1)),
    post('make pod', core('subresources', 'pods'), pod('x')),
    post('make node', '/api/v1/nodes', node('subresources-node')),
    post('make service', core('subresources', 'services'), service('x')),
    ...scaled('deployment', d),
    ...scaled('replica set', `${apps('subresources', 'replicasets')}/x`),
    ...scaled('stateful set', `${apps('subresources', 'statefulsets')}/x`),
    ...scaled('replication controller', `${core('subresources', 'replicationcontrollers')}/x`),
    patch('strategic', 'strategic patch of a scale', `${d}/scale`, { spec: { replicas: 6 } }),
    put('scale of another kind', `${d}/scale`, deployment('x', 7)),
    put('scale of what is not there', `${apps('subresources', 'deployments')}/nope/scale`, scale('nope', 1)),
    get('scale of what is not there, read', `${apps('subresources', 'deployments')}/nope/scale`),
    put('scale with another name', `${d}/scale`, scale('y', 1)),
    put('scale without a body', `${d}/scale`, undefined),
    get('scale as Table', `${d}/scale`, { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' }),
    get('scale as yaml', `${d}/scale`, { accept: 'application/yaml' }),
    get('status of a deployment', `${d}/status`),
    put('replace the status', `${d}/status`, {
      ...deployment('x', 50),
      status: { replicas: 1, observedGeneration: 2 },
    }),
    get('spec untouched by it', d),
    patch('merge', 'patch the status', `${d}/status`, { status: { readyReplicas: 1 }, spec: { replicas: 77 } }),
    patch('merge', 'patch the status: labels and annotations', `${d}/status`, {
      metadata: { labels: { s: 't' }, annotations: { s: 't' } },
    }),
    patch('strategic', 'strategic patch of the status', `${d}/status`, {
      status: {
        conditions: [
          {
            type: 'Available',
            status: 'True',
            lastUpdateTime: '2001-02-03T04:05:06Z',
            lastTransitionTime: '2001-02-03T04:05:06Z',
          },
        ],
      },
    }),
    patch('strategic', 'strategic patch of the status, by type', `${d}/status`, {
      status: {
        conditions: [
          { type: 'Available', status: 'False' },
          {
            type: 'Progressing',
            status: 'True',
            lastUpdateTime: '2001-02-03T04:05:06Z',
            lastTransitionTime: '2001-02-03T04:05:06Z',
          },
        ],
      },
    }),
    patch('json', 'json patch of the status', `${d}/status`, [{ op: 'add', path: '/status/replicas', value: 3 }]),
    patch('merge', 'status with an old version', `${d}/status`, {
      metadata: { resourceVersion: '1' },
      status: { replicas: 4 },
    }),
    patch('merge', 'status of a wrong type', `${d}/status`, { status: { replicas: 'x' } }),
    patch('merge', 'status, dry', `${d}/status?dryRun=All`, { status: { replicas: 8 } }),
    patch('merge', 'status of what is not there', `${apps('subresources', 'deployments')}/nope/status`, { status: {} }),
    put(
      'status of what is not there, replaced',
      `${apps('subresources', 'deployments')}/nope/status`,
      deployment('nope'),
    ),
    patch('merge', 'status of a pod', `${p}/status`, {
      status: {
        phase: 'Running',
        hostIP: '10.0.0.1',
        hostIPs: [{ ip: '10.0.0.1' }],
        podIP: '10.1.0.1',
        podIPs: [{ ip: '10.1.0.1' }],
        startTime: '2001-02-03T04:05:06Z',
      },
    }),
    get('status of a pod, read', `${p}/status`),
    patch('merge', 'status of a node', '/api/v1/nodes/subresources-node/status', {
      status: { capacity: { cpu: '4', memory: '8Gi' }, allocatable: { cpu: '3900m' }, phase: 'Running' },
    }),
    patch('merge', 'status of a service', `${core('subresources', 'services')}/x/status`, {
      status: { loadBalancer: {} },
    }),
    patch('merge', 'status of a namespace', '/api/v1/namespaces/subresources/status', { status: { phase: 'Active' } }),
    get('status of a namespace, read', '/api/v1/namespaces/subresources/status'),
    get('status of a config map', `${core('subresources', 'configmaps')}/x/status`),
    get('scale of a pod', `${p}/scale`),
    get('binding is not read', `${p}/binding`),
    post('bind a pod', `${p}/binding`, {
      apiVersion: 'v1',
      kind: 'Binding',
      metadata: { name: 'x' },
      target: { kind: 'Node', name: 'subresources-node' },
    }),
    get('bound pod', p),
    post('bind it again', `${p}/binding`, {
      apiVersion: 'v1',
      kind: 'Binding',
      metadata: { name: 'x' },
      target: { kind: 'Node', name: 'other' },
    }),
    post('bind without a target', `${p}/binding`, {
      apiVersion: 'v1',
      kind: 'Binding',
      metadata: { name: 'x' },
      target: { kind: 'Node', name: '' },
    }),
    post('evict a pod', `${p}/eviction`, {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name: 'x', namespace: 'subresources' },
    }),
    post('evict what is not there', `${core('subresources', 'pods')}/nope/eviction`, {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name: 'nope' },
    }),
    patch('merge', 'ephemeral containers', `${p}/ephemeralcontainers`, { spec: {} }),
    get('resize', `${p}/resize`),
    get('attach', `${p}/attach`),
    get('exec', `${p}/exec`),
    get('portforward', `${p}/portforward`),
    get('proxy of a service', `${core('subresources', 'services')}/x/proxy`),
    post('token of a service account', `${core('subresources', 'serviceaccounts')}/default/token`, {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: { audiences: ['x'], expirationSeconds: 600 },
    }),
  ],
}
