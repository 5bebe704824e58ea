/** Creating: generated names, what the server fills in or resets, dry runs, and how strictly fields are taken. */
import { type Group, get, post } from '../corpus.ts'
import {
  apps,
  configMap,
  core,
  deployment,
  job,
  lease,
  node,
  pod,
  replicaSet,
  secret,
  service,
  statefulSet,
} from './fixtures.ts'

const maps = core('creates', 'configmaps')
const deployments = apps('creates', 'deployments')
const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'plain', uid: '<uid>' }
const validation = ['Ignore', 'Warn', 'Strict', 'Nonsense', '']

/** A known field spelled wrongly, an unknown one deeper down. */
const unknown = (name: string) => ({ ...configMap(name, { k: 'v' }, { lables: { a: 'b' } }), dat: { a: 'b' } })
const unknownDeep = (name: string) => {
  const made = deployment(name)
  return {
    ...made,
    spec: {
      ...made.spec,
      replica: 2,
      template: {
        metadata: { labels: { app: 'web' } },
        spec: {
          contaners: [],
          containers: [
            {
              name: 'main',
              image: 'x',
              imagePullPolicy: 'Always',
              resources: {},
              terminationMessagePath: '/dev/termination-log',
              terminationMessagePolicy: 'File',
              comand: ['x'],
            },
          ],
          dnsPolicy: 'ClusterFirst',
          restartPolicy: 'Always',
          schedulerName: 'default-scheduler',
          securityContext: {},
          terminationGracePeriodSeconds: 30,
        },
      },
    },
  }
}
const twice = (name: string) =>
  `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"${name}","name":"${name}"},"data":{"a":"1"},"data":{"a":"2"}}`

const admission = '/apis/admissionregistration.k8s.io/v1'
/** By these kube-apiserver judges or redirects other requests; dry, since it would. */
const unenforced: readonly (readonly [what: string, path: string, body: object])[] = [
  ['validating webhooks', `${admission}/validatingwebhookconfigurations`, { metadata: { name: 'creates' } }],
  ['mutating webhooks', `${admission}/mutatingwebhookconfigurations`, { metadata: { name: 'creates' } }],
  [
    'a namespace with a pod security level',
    '/api/v1/namespaces',
    { metadata: { name: 'creates-strict', labels: { 'pod-security.kubernetes.io/enforce': 'baseline' } } },
  ],
]

export const creates: Group = {
  name: 'creates',
  cases: [
    post('plain', maps, configMap('plain', { k: 'v' }), {
      take: { uid: 'metadata.uid', rv: 'metadata.resourceVersion' },
    }),
    post('again', maps, configMap('plain', { k: 'other' })),
    get('unchanged by it', `${maps}/plain`),
    post('binary data', maps, { ...configMap('binary', { k: 'v' }), binaryData: { b: 'AAEC/w==' } }),
    post('optional fields sent empty', maps, { ...configMap('empties', {}), binaryData: {}, immutable: false }),
    post('immutable', maps, { ...configMap('immutable', { k: 'v' }), immutable: true }),
    post('string data of a secret', core('creates', 'secrets'), {
      ...secret('strings', { a: 'YQ==' }),
      stringData: { b: 'bb', a: 'over' },
    }),
    get('string data is stored encoded', `${core('creates', 'secrets')}/strings`),
    post('bad base64', core('creates', 'secrets'), secret('bad', { a: '***' })),
    post(
      'owner',
      maps,
      configMap('owned', { k: 'v' }, { ownerReferences: [{ ...owner, controller: true, blockOwnerDeletion: true }] }),
    ),
    post('finalizers', maps, configMap('held', { k: 'v' }, { finalizers: ['example.com/hold'] })),
    post('server fields given', maps, {
      ...configMap('given', { k: 'v' }),
      metadata: {
        name: 'given',
        uid: '11111111-2222-3333-4444-555555555555',
        creationTimestamp: '2001-02-03T04:05:06Z',
        generation: 7,
        selfLink: '/x',
        deletionTimestamp: '2001-02-03T04:05:06Z',
        deletionGracePeriodSeconds: 5,
      },
    }),
    post('generation and status given', deployments, {
      ...deployment('given', 1, { generation: 9 }),
      status: { replicas: 5 },
    }),
    get('generation and status stored', `${deployments}/given`),
    post('generateName', maps, { ...configMap('', { k: 'v' }), metadata: { generateName: 'gen-' } }),
    post('generateName and name', maps, configMap('named', { k: 'v' }, { generateName: 'gen-' })),
    post('generateName empty', maps, { metadata: { generateName: '' } }),
    post('deployment', deployments, deployment('d')),
    post('replica set', apps('creates', 'replicasets'), replicaSet('rs')),
    post('stateful set', apps('creates', 'statefulsets'), statefulSet('ss')),
    post('job', '/apis/batch/v1/namespaces/creates/jobs', job('j')),
    post('pod', core('creates', 'pods'), pod('p')),
    post('pod with a status', core('creates', 'pods'), {
      ...pod('p2'),
      status: { phase: 'Running', podIP: '1.2.3.4' },
    }),
    post('service', core('creates', 'services'), service('web')),
    post('lease', '/apis/coordination.k8s.io/v1/namespaces/creates/leases', lease('l', 'me')),
    post('node', '/api/v1/nodes', node('creates-node')),
    post('namespace', '/api/v1/namespaces', { metadata: { name: 'creates-more', labels: { a: 'b' } } }),
    post('namespace again', '/api/v1/namespaces', { metadata: { name: 'creates-more' } }),
    post('namespace with generateName', '/api/v1/namespaces', { metadata: { generateName: 'creates-gen-' } }),
    post('as Table', maps, configMap('as-table', { k: 'v' }), {
      headers: { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' },
    }),
    post('as PartialObjectMetadata', maps, configMap('as-partial', { k: 'v' }), {
      headers: { accept: 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io' },
    }),
    post('pretty', `${maps}?pretty=1`, configMap('pretty', { k: 'v' })),
    ...['All', 'all', '', 'None'].flatMap((dry) => [
      post(`dryRun=${dry}`, `${maps}?dryRun=${dry}`, configMap(`dry${dry.toLowerCase()}`, { k: 'v' })),
      get(`after dryRun=${dry}`, `${maps}/dry${dry.toLowerCase()}`),
    ]),
    post('dryRun twice', `${maps}?dryRun=All&dryRun=All`, configMap('dry-two', { k: 'v' })),
    post('dryRun of what exists', `${maps}?dryRun=All`, configMap('plain', { k: 'v' })),
    post('dryRun that is invalid', `${maps}?dryRun=All`, configMap('Bad_', { k: 'v' })),
    post('dryRun with generateName', `${maps}?dryRun=All`, { metadata: { generateName: 'dry-gen-' } }),
    post('fieldManager', `${maps}?fieldManager=me`, configMap('managed', { k: 'v' })),
    post('fieldManager too long', `${maps}?fieldManager=${'m'.repeat(129)}`, configMap('managed2', { k: 'v' })),
    post('fieldManager unprintable', `${maps}?fieldManager=a%0Ab`, configMap('managed3', { k: 'v' })),
    ...validation.flatMap((how) => [
      post(
        `unknown fields, fieldValidation=${how}`,
        `${maps}?fieldValidation=${how}`,
        unknown(`unknown-${how.toLowerCase()}x`),
      ),
      post(
        `unknown fields deeper, fieldValidation=${how}`,
        `${deployments}?fieldValidation=${how}`,
        unknownDeep(`deep-${how.toLowerCase()}x`),
      ),
      post(
        `fields twice, fieldValidation=${how}`,
        `${maps}?fieldValidation=${how}`,
        twice(`twice-${how.toLowerCase()}x`),
      ),
    ]),
    post('unknown fields by default', maps, unknown('unknown-default')),
    post('a field in another case', maps, { ...configMap('cased'), Data: { a: 'b' } }),
    post(
      'unknown fields in yaml, Strict',
      `${maps}?fieldValidation=Strict`,
      'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: y\n  nmae: z\ndata:\n  a: "1"\n  a: "2"\n',
      { headers: { 'content-type': 'application/yaml' } },
    ),
    post('nulls', maps, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'nulls', labels: null, annotations: { a: null } },
      data: { k: null },
      binaryData: null,
    }),
    post('null metadata', maps, { metadata: null }),
    post(
      'quantities',
      core('creates', 'pods'),
      pod(
        'quantities',
        {},
        {
          containers: [
            {
              ...(pod('x').spec as { containers: object[] }).containers[0],
              resources: { requests: { cpu: '100m', memory: '64Mi' }, limits: { cpu: '1', memory: '1Gi' } },
            },
          ],
        },
      ),
    ),
    ...unenforced.map(([what, path, body]) => post(`only stored here: ${what}`, `${path}?dryRun=All`, body)),
  ],
}
