import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FakeWorld } from './fakeworld.test-support.ts'

const pods = '/api/v1/namespaces/default/pods'
const deployments = '/apis/apps/v1/namespaces/default/deployments'
const container = { name: 'main', image: 'registry.example/image:1' }
const template = { metadata: { labels: { app: 'web' } }, spec: { containers: [container] } }
const selector = { matchLabels: { app: 'web' } }

const filledContainer = {
  ...container,
  imagePullPolicy: 'IfNotPresent',
  resources: {},
  terminationMessagePath: '/dev/termination-log',
  terminationMessagePolicy: 'File',
}
const filledPod = {
  containers: [filledContainer],
  dnsPolicy: 'ClusterFirst',
  restartPolicy: 'Always',
  schedulerName: 'default-scheduler',
  securityContext: {},
  terminationGracePeriodSeconds: 30,
}
const filledTemplate = { metadata: { labels: { app: 'web' } }, spec: filledPod }

test('what a pod leaves open is filled in, as clients expect that dereference it', async () => {
  const world = new FakeWorld()
  const { body } = await world.send('POST', pods, { metadata: { name: 'a' }, spec: { containers: [container] } })
  assert.deepEqual(body.spec, { ...filledPod, enableServiceLinks: true })
})

test('what was said stays, and requests follow limits in a pod alone', async () => {
  const world = new FakeWorld()
  const limits = { cpu: '1', memory: '1Gi' }
  const said = {
    containers: [
      { ...container, resources: { limits, requests: { cpu: '500m' } }, ports: [{ containerPort: 80 }] },
      { name: 'b', image: 'b', livenessProbe: { httpGet: { port: 80 }, periodSeconds: 3 } },
    ],
    hostNetwork: true,
    restartPolicy: '',
    terminationGracePeriodSeconds: 0,
    volumes: [{ name: 'v' }, { name: 'm', configMap: { name: 'm', defaultMode: 0 } }],
  }
  const { spec } = (await world.send('POST', pods, { metadata: { name: 'a' }, spec: said })).body
  const [first, second] = spec.containers
  assert.deepEqual(first.resources, { limits, requests: { cpu: '500m', memory: '1Gi' } })
  assert.deepEqual(first.ports, [{ containerPort: 80, hostPort: 80, protocol: 'TCP' }])
  assert.equal(second.imagePullPolicy, 'Always')
  assert.deepEqual(second.livenessProbe, {
    httpGet: { port: 80, path: '/', scheme: 'HTTP' },
    periodSeconds: 3,
    timeoutSeconds: 1,
    successThreshold: 1,
    failureThreshold: 3,
  })
  assert.equal(spec.restartPolicy, 'Always')
  assert.equal(spec.terminationGracePeriodSeconds, 0)
  assert.deepEqual(spec.volumes, [
    { name: 'v', emptyDir: {} },
    { name: 'm', configMap: { name: 'm', defaultMode: 0 } },
  ])
  const made = { metadata: { name: 'd' }, spec: { selector, template: { ...template, spec: said } } }
  const deployment = (await world.send('POST', deployments, made)).body
  assert.deepEqual(deployment.spec.template.spec.containers[0].resources.requests, { cpu: '500m' })
})

const workloads: readonly (readonly [path: string, spec: object, filled: object])[] = [
  [
    deployments,
    { selector, template },
    {
      replicas: 1,
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: '25%', maxSurge: '25%' } },
      revisionHistoryLimit: 10,
      progressDeadlineSeconds: 600,
    },
  ],
  [
    '/apis/apps/v1/namespaces/default/statefulsets',
    { selector, template },
    {
      podManagementPolicy: 'OrderedReady',
      updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 0 } },
      persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Retain', whenScaled: 'Retain' },
      replicas: 1,
      revisionHistoryLimit: 10,
    },
  ],
  [
    '/apis/apps/v1/namespaces/default/daemonsets',
    { selector, template },
    {
      updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 1, maxSurge: 0 } },
      revisionHistoryLimit: 10,
    },
  ],
  ['/apis/apps/v1/namespaces/default/replicasets', { selector, template }, { replicas: 1 }],
  ['/api/v1/namespaces/default/replicationcontrollers', { template }, { replicas: 1, selector: { app: 'web' } }],
  [
    '/apis/batch/v1/namespaces/default/jobs',
    { template },
    {
      completions: 1,
      parallelism: 1,
      backoffLimit: 6,
      completionMode: 'NonIndexed',
      manualSelector: false,
      podReplacementPolicy: 'TerminatingOrFailed',
      suspend: false,
    },
  ],
]

test('workloads and the pods in them are filled in', async () => {
  const world = new FakeWorld()
  for (const [path, spec, filled] of workloads) {
    const { body } = await world.send('POST', path, { metadata: { name: 'a' }, spec })
    assert.deepEqual(body.spec, { ...spec, ...filled, template: filledTemplate }, path)
  }
  const cron = { schedule: '@daily', jobTemplate: { spec: { template: { spec: template.spec } } } }
  const { body } = await world.send('POST', '/apis/batch/v1/namespaces/default/cronjobs', {
    metadata: { name: 'a' },
    spec: cron,
  })
  assert.deepEqual(body.spec, {
    ...cron,
    jobTemplate: { metadata: {}, spec: { template: { metadata: {}, spec: filledPod } } },
    concurrencyPolicy: 'Allow',
    suspend: false,
    successfulJobsHistoryLimit: 3,
    failedJobsHistoryLimit: 1,
  })
})

test('a service is filled in by its type', async () => {
  const world = new FakeWorld()
  const make = async (name: string, spec: object) => {
    const path = '/api/v1/namespaces/default/services'
    return (await world.send('POST', path, { metadata: { name }, spec })).body.spec
  }
  assert.deepEqual(await make('a', { ports: [{ port: 80 }] }), {
    ports: [{ port: 80, protocol: 'TCP', targetPort: 80 }],
    sessionAffinity: 'None',
    type: 'ClusterIP',
    internalTrafficPolicy: 'Cluster',
  })
  assert.deepEqual(await make('b', { type: 'LoadBalancer', sessionAffinity: 'ClientIP' }), {
    type: 'LoadBalancer',
    sessionAffinity: 'ClientIP',
    sessionAffinityConfig: { clientIP: { timeoutSeconds: 10_800 } },
    allocateLoadBalancerNodePorts: true,
    externalTrafficPolicy: 'Cluster',
    internalTrafficPolicy: 'Cluster',
  })
  const elsewhere = { type: 'ExternalName', externalName: 'example.com' }
  assert.deepEqual(await make('c', elsewhere), { ...elsewhere, sessionAffinity: 'None' })
})

test('defaults come back with an update and a patch; a creator owns them, an applier does not', async () => {
  const world = new FakeWorld()
  const created = { metadata: { name: 'a' }, spec: { selector, template } }
  const first = (await world.send('POST', `${deployments}?fieldManager=m`, created)).body
  assert.ok(first.metadata.managedFields[0].fieldsV1['f:spec']['f:replicas'])
  const taken = { spec: { replicas: null, template: { spec: { securityContext: null } } } }
  const merge = 'application/merge-patch+json'
  const patched = (await world.send('PATCH', `${deployments}/a`, taken, merge)).body
  assert.deepEqual(patched.spec, first.spec)
  assert.equal(patched.metadata.resourceVersion, first.metadata.resourceVersion)
  const updated = (await world.send('PUT', `${deployments}/a`, created)).body
  assert.equal(updated.metadata.resourceVersion, first.metadata.resourceVersion)

  const apply = 'application/apply-patch+yaml'
  const wanted = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'b' }, spec: { selector, template } }
  const applied = (await world.send('PATCH', `${deployments}/b?fieldManager=m`, wanted, apply)).body
  assert.deepEqual(applied.spec, first.spec)
  assert.equal(applied.metadata.managedFields.length, 1)
  assert.deepEqual(Object.keys(applied.metadata.managedFields[0].fieldsV1['f:spec']), ['f:selector', 'f:template'])
})

test('a container for debugging is filled in, through its subresource', async () => {
  const world = new FakeWorld()
  await world.send('POST', pods, { metadata: { name: 'a' }, spec: { containers: [container] } })
  const added = { spec: { ephemeralContainers: [{ name: 'debugger', image: 'busybox' }] } }
  const strategic = 'application/strategic-merge-patch+json'
  const { body } = await world.send('PATCH', `${pods}/a/ephemeralcontainers`, added, strategic)
  assert.deepEqual(body.spec.ephemeralContainers, [
    { ...filledContainer, name: 'debugger', image: 'busybox', imagePullPolicy: 'Always' },
  ])
})

test('an image is pulled always where it is the latest', async () => {
  const world = new FakeWorld()
  const sum = `sha256:${'0'.repeat(64)}`
  const images: readonly (readonly [image: string, policy: string])[] = [
    ['x', 'Always'],
    ['x:latest', 'Always'],
    ['registry.example:5000/a/b-c', 'Always'],
    [`x:latest@${sum}`, 'Always'],
    ['x:1', 'IfNotPresent'],
    ['registry.example:5000/a:1', 'IfNotPresent'],
    [`x@${sum}`, 'IfNotPresent'],
    ['No Image', 'IfNotPresent'],
  ]
  const containers = images.map(([image], at) => ({ name: `c${at}`, image }))
  const { body } = await world.send('POST', pods, { metadata: { name: 'a' }, spec: { containers } })
  const policies = body.spec.containers.map((one: { imagePullPolicy: string }) => one.imagePullPolicy)
  assert.deepEqual(
    policies,
    images.map(([, policy]) => policy),
  )
})
