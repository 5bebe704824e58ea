/**
 * Objects that leave everything to the server: what it fills in, who owns that, and what an update, a patch and an apply
 * leave of it. Only what admission plugins and allocators would add is sent along.
 */
import { type Case, type Group, get, patch, post, put } from '../corpus.ts'
import { apps, core } from './fixtures.ts'

const batch = (resource: string) => `/apis/batch/v1/namespaces/defaults/${resource}`
const networking = '/apis/networking.k8s.io/v1'
const bare = (name: string, spec: object, labels?: object) => ({
  metadata: { name, ...(labels === undefined ? {} : { labels }) },
  spec,
})

const toleration = (condition: string) => ({
  key: `node.kubernetes.io/${condition}`,
  operator: 'Exists',
  effect: 'NoExecute',
  tolerationSeconds: 300,
})
const admitted = {
  automountServiceAccountToken: false,
  preemptionPolicy: 'PreemptLowerPriority',
  priority: 0,
  serviceAccount: 'default',
  serviceAccountName: 'default',
  tolerations: [toleration('not-ready'), toleration('unreachable')],
}

const plain = { containers: [{ name: 'main', image: 'registry.example/image:1' }] }
const full = {
  initContainers: [{ name: 'first', image: 'x', resources: { limits: { cpu: '1' } } }],
  containers: [
    {
      name: 'main',
      image: 'registry.example:5000/x/y',
      env: [{ name: 'A', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }],
      ports: [{ containerPort: 80 }],
      resources: { limits: { cpu: '1', memory: '1Gi' }, requests: { cpu: '500m' } },
      livenessProbe: { httpGet: { port: 80 } },
      readinessProbe: { grpc: { port: 81 }, periodSeconds: 3 },
      startupProbe: { tcpSocket: { port: 80 }, failureThreshold: 0 },
      lifecycle: { preStop: { httpGet: { port: 'http', path: '' } } },
    },
    { name: 'latest', image: 'image:latest' },
    { name: 'digest', image: `image@sha256:${'0'.repeat(64)}` },
    { name: 'both', image: `image:latest@sha256:${'0'.repeat(64)}` },
  ],
  restartPolicy: '',
  terminationGracePeriodSeconds: 0,
  volumes: [
    { name: 'none' },
    { name: 'secret', secret: { secretName: 's' } },
    { name: 'map', configMap: { name: 'm' } },
    { name: 'down', downwardAPI: { items: [{ path: 'a', fieldRef: { fieldPath: 'metadata.labels' } }] } },
    { name: 'host', hostPath: { path: '/x' } },
    { name: 'iscsi', iscsi: { targetPortal: '192.0.2.1', iqn: 'iqn.2001-04.com.example:x', lun: 1 } },
    { name: 'image', image: { reference: 'registry.example/x:2' } },
    { name: 'all', projected: { sources: [{ serviceAccountToken: { path: 't' } }, { secret: { name: 's' } }] } },
  ],
}

const app = { app: 'web' }
const selector = { matchLabels: app }
const template = { metadata: { labels: app }, spec: plain }
const templates: readonly (readonly [what: string, path: string, spec: object])[] = [
  ['deployment', apps('defaults', 'deployments'), { selector, template }],
  ['deployment, full', apps('defaults', 'deployments'), { selector, template: { ...template, spec: full } }],
  ['deployment, recreated', apps('defaults', 'deployments'), { selector, template, strategy: { type: 'Recreate' } }],
  [
    'deployment, rolled',
    apps('defaults', 'deployments'),
    { replicas: 0, selector, template, strategy: { rollingUpdate: { maxSurge: 1 } } },
  ],
  [
    'replica set with an account',
    apps('defaults', 'replicasets'),
    { selector, template: { ...template, spec: { ...plain, serviceAccountName: 'x' } } },
  ],
  ['stateful set', apps('defaults', 'statefulsets'), { serviceName: 'web', selector, template }],
  [
    'stateful set with claims',
    apps('defaults', 'statefulsets'),
    {
      serviceName: 'web',
      selector,
      template,
      updateStrategy: { type: 'RollingUpdate' },
      volumeClaimTemplates: [
        {
          metadata: { name: 'd' },
          spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
        },
      ],
    },
  ],
  ['replication controller', core('defaults', 'replicationcontrollers'), { template }],
]

const never = { ...plain, restartPolicy: 'Never' }
const ownSelector = { manualSelector: true, selector, template: { metadata: { labels: app }, spec: never } }
const jobs: readonly (readonly [what: string, spec: object])[] = [
  ['job', ownSelector],
  ['job, parallel', { ...ownSelector, parallelism: 2 }],
  ['job by index', { ...ownSelector, completionMode: 'Indexed', completions: 2, backoffLimitPerIndex: 1 }],
  [
    'job with a failure policy',
    {
      ...ownSelector,
      podFailurePolicy: { rules: [{ action: 'Ignore', onPodConditions: [{ type: 'DisruptionTarget' }] }] },
    },
  ],
]

const at = (address: string) => ({
  clusterIP: address,
  clusterIPs: [address],
  ipFamilies: ['IPv4'],
  ipFamilyPolicy: 'SingleStack',
})
const services: readonly (readonly [what: string, spec: object])[] = [
  ['service', { ...at('None'), ports: [{ port: 80 }], selector: app }],
  ['service by client', { ...at('10.96.7.1'), ports: [{ port: 80, targetPort: 'x' }], sessionAffinity: 'ClientIP' }],
  ['service outside', { ...at('10.96.7.2'), ports: [{ port: 80, nodePort: 30_123 }], type: 'LoadBalancer' }],
  ['service elsewhere', { type: 'ExternalName', externalName: 'example.com' }],
]

const scaled = { scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' }, maxReplicas: 3 }
const parts: readonly (readonly [what: string, path: string, body: object])[] = [
  [
    'cron job',
    batch('cronjobs'),
    { spec: { schedule: '@daily', jobTemplate: { spec: { template: { spec: never } } } } },
  ],
  ['pod template', core('defaults', 'podtemplates'), { template }],
  ['autoscaler', '/apis/autoscaling/v2/namespaces/defaults/horizontalpodautoscalers', { spec: scaled }],
  [
    'autoscaler with behaviour',
    '/apis/autoscaling/v2/namespaces/defaults/horizontalpodautoscalers',
    { spec: { ...scaled, behavior: { scaleDown: { stabilizationWindowSeconds: 5 } } } },
  ],
  [
    'network policy',
    `${networking}/namespaces/defaults/networkpolicies`,
    { spec: { podSelector: {}, egress: [{ ports: [{ port: 53 }] }] } },
  ],
  [
    'ingress class',
    `${networking}/ingressclasses`,
    { spec: { controller: 'example.com/x', parameters: { kind: 'K', name: 'n' } } },
  ],
  [
    'role binding',
    '/apis/rbac.authorization.k8s.io/v1/namespaces/defaults/rolebindings',
    {
      roleRef: { kind: 'Role', name: 'r' },
      subjects: [
        { kind: 'User', name: 'u' },
        { kind: 'ServiceAccount', name: 'a', namespace: 'defaults' },
      ],
    },
  ],
  ['storage class', '/apis/storage.k8s.io/v1/storageclasses', { provisioner: 'example.com/disk' }],
  ['csi driver', '/apis/storage.k8s.io/v1/csidrivers', { spec: {} }],
  ['priority class', '/apis/scheduling.k8s.io/v1/priorityclasses', { value: 5 }],
  [
    'endpoint slice',
    '/apis/discovery.k8s.io/v1/namespaces/defaults/endpointslices',
    { addressType: 'IPv4', endpoints: [{ addresses: ['192.0.2.1'] }], ports: [{ port: 80 }] },
  ],
  [
    'flow schema',
    '/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas',
    { spec: { priorityLevelConfiguration: { name: 'exempt' } } },
  ],
  [
    'priority level',
    '/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations',
    { spec: { type: 'Limited', limited: { limitResponse: { type: 'Queue', queuing: {} } } } },
  ],
]

const slug = (what: string) => what.replaceAll(/[^a-z]+/g, '-')
const specified = (what: string, path: string, spec: object): Case => post(what, path, bare(slug(what), spec))

const web = `${apps('defaults', 'deployments')}/deployment`
const applied = `${apps('defaults', 'deployments')}/applied`
const wanted = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'applied' },
  spec: { selector, template },
}
const by = (manager: string) => `?fieldManager=${manager}`

export const defaults: Group = {
  name: 'defaults',
  cases: [
    post('pod', core('defaults', 'pods'), bare('plain', { ...admitted, ...plain })),
    post('pod, full', core('defaults', 'pods'), bare('full', { ...admitted, ...full })),
    post('pod in the network of its host', core('defaults', 'pods'), {
      ...bare('host', {
        ...admitted,
        hostNetwork: true,
        containers: [{ name: 'main', image: 'x', ports: [{ containerPort: 80 }] }],
      }),
    }),
    ...templates.map(([what, path, spec]) => specified(what, path, spec)),
    ...jobs.map(([what, spec]) => specified(what, batch('jobs'), spec)),
    ...services.map(([what, spec]) => specified(what, core('defaults', 'services'), spec)),
    ...parts.map(([what, path, body]) => post(what, `${path}?dryRun=All`, { metadata: { name: slug(what) }, ...body })),
    patch('merge', 'a default taken away', web, { spec: { replicas: null, strategy: null } }),
    patch('strategic', 'a container added', web, {
      spec: { template: { spec: { containers: [{ name: 'more', image: 'more' }] } } },
    }),
    patch('json', 'a default removed', web, [{ op: 'remove', path: '/spec/template/spec/dnsPolicy' }]),
    put('an update without defaults', web, { metadata: { name: 'deployment' }, spec: { selector, template } }),
    patch('strategic', 'a container for debugging', `${core('defaults', 'pods')}/plain/ephemeralcontainers`, {
      spec: { ephemeralContainers: [{ name: 'debugger', image: 'busybox' }] },
    }),
    patch('apply', 'applied', `${applied}${by('one')}`, wanted),
    patch('apply', 'applied again', `${applied}${by('one')}`, wanted),
    patch('apply', 'a default of nobody taken', `${applied}${by('two')}`, { ...wanted, spec: { replicas: 3 } }),
    patch('apply', 'and given up', `${applied}${by('two')}`, { ...wanted, spec: {} }),
    get('applied, read', applied),
  ],
}
