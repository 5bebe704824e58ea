/**
 * What generated sequences write to: for each kind the fields that managers contest, with few values each, so that they
 * meet. A kind whose fields an allocator or an admission plugin fills in, or that has defaults, begins with a complete
 * object, and what managers contest is without defaults, never empty and valid in every combination.
 */
import * as fixtures from '../corpus/fixtures.ts'
import { deployment, lease, networkPolicy, node, pod, secret, service } from '../corpus/fixtures.ts'
import {
  conditions,
  listOf,
  looseMetadata,
  mapOf,
  metadata,
  one,
  type Pool,
  some,
  values,
  withTime,
} from './choices.ts'
import { group } from './gadget.ts'
import { gadgetMistakes, gadgetPool } from './gadgetpool.ts'
import { deepMerge } from './joined.ts'
import type { Random } from './random.ts'
import type { Fields, Kind } from './scenario.ts'

export type Subject = {
  readonly name: string
  readonly weight: number
  readonly kind: Kind
  /** Complete, for the first write; managers of a kind without it may begin with anything. */
  readonly base?: Fields
  readonly pool: Pool
  readonly status?: Pool
  /** Whether there is a scale to patch; a spec that it makes must have no defaults, as those are stored a write later. */
  readonly scaled?: boolean
  /** Of the same kind, for some of the writes. */
  readonly otherVersion?: string
  /** Schema mistakes and empty values make no difference of business rules here. */
  readonly mistakes?: Pool
}

const main = (field: string, value: (random: Random) => unknown): Pool[number] => [
  'spec.template.spec.containers',
  (random) => [{ name: 'main', [field]: value(random) }],
]
const inTemplate = (field: string, value: (random: Random) => unknown): Pool[number] => [
  `spec.template.spec.${field}`,
  value,
]

const deploymentPool: Pool = [
  ...metadata,
  main('env', listOf([{ name: 'A' }, { name: 'B' }, { name: 'C' }], { value: one(...values) })),
  main('env', listOf([{ name: 'A' }, { name: 'B' }], { value: one(...values) })),
  main('args', some('x', 'y', 'z')),
  main('workingDir', one('/a', '/b')),
  main(
    'ports',
    listOf(
      [80, 81].map((containerPort) => ({ containerPort, protocol: 'TCP' })),
      {},
    ),
  ),
  main(
    'ports',
    some({ containerPort: 82, protocol: 'UDP', name: 'u' }, { containerPort: 83, protocol: 'TCP', name: 't' }),
  ),
  main('resources', (random) => ({ limits: mapOf(['cpu', 'memory'], ['1', '2'])(random) })),
  main('securityContext', mapOf(['runAsUser', 'runAsGroup'], [1000, 2000])),
  inTemplate('nodeSelector', mapOf(['disk', 'zone'], values)),
  inTemplate('tolerations', listOf([{ key: 'a', operator: 'Exists' }], { effect: one('NoSchedule', 'NoExecute') })),
  inTemplate('hostAliases', listOf([{ ip: '192.0.2.1' }, { ip: '192.0.2.2' }], { hostnames: some('h1', 'h2') })),
  inTemplate('imagePullSecrets', listOf([{ name: 'a' }, { name: 'b' }], {})),
  inTemplate('priorityClassName', one('low', 'high')),
  inTemplate('securityContext', mapOf(['runAsUser', 'fsGroup'], [1000, 2000])),
  ['spec.template.metadata.annotations', mapOf(['a', 'b'], values)],
  ['spec.minReadySeconds', one(5, 7)],
  ['spec.paused', one(true)],
]

const space = { 'ephemeral-storage': '1Gi' }
/** What would be printed empty has something in it that nobody contests. */
const wholeDeployment = deepMerge(deployment('<n>'), {
  spec: {
    template: {
      spec: { containers: [{ name: 'main', resources: { limits: space } }], securityContext: { runAsNonRoot: true } },
    },
  },
}) as Fields
/** With capacities: what is allocatable would be taken from them. */
const wholeNode = deepMerge(node('<n>'), { status: { allocatable: space, capacity: space } }) as Fields

/**
 * Kinds of which only metadata is contested: what counts is their size, and what of it is there for nobody. Not among them:
 * DaemonSets, which bring back an annotation of their own, claims, which kube-apiserver writes even where nothing changes,
 * and kinds whose removal waits for a controller.
 */
const others = [
  fixtures.statefulSet('<n>'),
  fixtures.replicaSet('<n>'),
  fixtures.cronJob('<n>'),
  fixtures.ingress('<n>'),
  fixtures.budget('<n>'),
  fixtures.volume('<n>'),
  fixtures.storageClass('<n>'),
  fixtures.autoscaler('<n>'),
].map((base): Subject => {
  const { apiVersion, kind } = base as unknown as Kind
  return { name: kind.toLowerCase(), weight: 0.2, kind: { apiVersion, kind }, base, pool: metadata }
})

export const subjects: readonly Subject[] = [
  ...others,
  {
    name: 'gadget',
    weight: 8,
    kind: { apiVersion: `${group}/v1`, kind: 'Gadget' },
    otherVersion: `${group}/v2`,
    pool: gadgetPool,
    mistakes: gadgetMistakes,
    status: [
      ['status.phase', one(...values)],
      [
        'status.conditions',
        listOf([{ type: 'A' }, { type: 'B' }], { status: one('True', 'False'), reason: one('x', 'y') }),
      ],
      ['status.seen', mapOf(['a', 'b'], values)],
    ],
  },
  {
    name: 'opening',
    weight: 1,
    kind: { apiVersion: `${group}/v1`, kind: 'Opening' },
    pool: [
      ...looseMetadata,
      ['spec.any', mapOf<unknown>(['a', 'b'], ['1', 2, ['x'], { deep: 'y' }])],
      ['list', some('a', 'b')],
      ['status', mapOf(['a', 'b'], values)],
    ],
  },
  {
    name: 'configmap',
    weight: 3,
    kind: { apiVersion: 'v1', kind: 'ConfigMap' },
    pool: [
      ...looseMetadata,
      ['data', mapOf(['a', 'b', 'c', 'd'], values)],
      ['data', mapOf(['a', 'b', 'c', 'd'], values)],
      ['binaryData', mapOf(['e', 'f'], ['AAE=', '/w=='])],
    ],
    mistakes: [
      ['data', one({ a: 5 }, { b: true }, ['x'], 'x')],
      ['unknown', one('x')],
    ],
  },
  {
    name: 'serviceaccount',
    weight: 1,
    kind: { apiVersion: 'v1', kind: 'ServiceAccount' },
    pool: [
      ...looseMetadata,
      ['secrets', listOf([{ name: 'a' }, { name: 'b' }, { name: 'c' }], {})],
      ['imagePullSecrets', listOf([{ name: 'a' }, { name: 'b' }], {})],
      ['automountServiceAccountToken', one(true, false)],
    ],
  },
  {
    name: 'secret',
    weight: 1,
    kind: { apiVersion: 'v1', kind: 'Secret' },
    base: secret('<n>', { z: 'AAE=' }),
    pool: [...metadata, ['data', mapOf(['a', 'b', 'c'], ['AAE=', '/w=='])]],
  },
  {
    name: 'lease',
    weight: 1,
    kind: { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' },
    base: lease('<n>', 'x'),
    pool: [
      ...metadata,
      ['spec.holderIdentity', one(...values)],
      ['spec.leaseDurationSeconds', one(10, 20)],
      ['spec.leaseTransitions', one(0, 1)],
      ['spec.renewTime', one('2001-02-03T04:05:06.000007Z', '2001-02-03T04:05:07.000000Z')],
    ],
  },
  {
    name: 'deployment',
    weight: 4,
    scaled: true,
    kind: { apiVersion: 'apps/v1', kind: 'Deployment' },
    base: wholeDeployment,
    pool: deploymentPool,
    status: [
      ['status.observedGeneration', one(1, 2)],
      ['status.replicas', one(2, 3)],
      ['status.conditions', withTime('lastUpdateTime', conditions('Available', 'Progressing'))],
    ],
  },
  {
    name: 'service',
    weight: 2,
    kind: { apiVersion: 'v1', kind: 'Service' },
    base: service('<n>'),
    pool: [
      ...metadata,
      [
        'spec.ports',
        some(
          { name: 'http', port: 80, protocol: 'TCP', targetPort: 8080 },
          { name: 'a', port: 81, protocol: 'TCP', targetPort: 8081 },
          { name: 'b', port: 81, protocol: 'UDP', targetPort: 8081 },
          { name: 'c', port: 82, protocol: 'TCP', targetPort: 'c' },
        ),
      ],
      ['spec.selector', mapOf(['app', 'tier'], values)],
      ['spec.publishNotReadyAddresses', one(true)],
    ],
    // Every field of these is needed: none is contested.
    status: [['status.conditions', (random) => conditions('A', 'B')(random).map((one) => ({ ...one, message: 'm' }))]],
  },
  {
    name: 'pod',
    weight: 2,
    kind: { apiVersion: 'v1', kind: 'Pod' },
    base: pod('<n>'),
    pool: metadata,
    status: [
      ['status.phase', one('Pending', 'Running')],
      ['status.message', one(...values)],
      ['status.conditions', withTime('lastProbeTime', conditions('Ready', 'Initialized', 'example.com/x'))],
    ],
  },
  {
    name: 'node',
    weight: 2,
    kind: { apiVersion: 'v1', kind: 'Node' },
    base: wholeNode,
    pool: [
      ...metadata,
      [
        'spec.taints',
        listOf(
          [
            { key: 'a', effect: 'NoSchedule' },
            { key: 'b', effect: 'NoExecute' },
          ],
          { value: one(...values) },
        ),
      ],
      ['spec.unschedulable', one(true)],
    ],
    status: [
      ['status.conditions', withTime('lastHeartbeatTime', conditions('Ready', 'DiskPressure'))],
      [
        'status.addresses',
        one(
          [{ type: 'Hostname', address: 'h' }],
          [
            { type: 'Hostname', address: 'i' },
            { type: 'InternalIP', address: '192.0.2.1' },
          ],
        ),
      ],
      ['status.capacity', mapOf(['cpu', 'memory', 'pods'], ['1', '2'])],
      ['status.volumesInUse', some('a', 'b')],
    ],
  },
  {
    name: 'networkpolicy',
    weight: 1,
    kind: { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy' },
    base: networkPolicy('<n>'),
    pool: [
      ...metadata,
      [
        'spec.egress',
        some({ to: [{ ipBlock: { cidr: '192.0.2.0/24' } }] }, { to: [{ ipBlock: { cidr: '198.51.100.0/24' } }] }),
      ],
    ],
  },
]

/** The least that names an object of a kind. */
export const named = (kind: Kind): Fields & Kind => ({ ...kind, metadata: { name: '<n>' } })
