/**
 * Objects with every default already filled in, and with what admission plugins and allocators would add, which are not
 * ours to repeat: the corpus sends what kube-apiserver would have made of them. What is left to default is in defaults.ts.
 */

type Fields = { readonly [field: string]: unknown }

export const core = (namespace: string, resource: string) => `/api/v1/namespaces/${namespace}/${resource}`
export const apps = (namespace: string, resource: string) => `/apis/apps/v1/namespaces/${namespace}/${resource}`

type Made = Fields & { readonly metadata: Fields; readonly spec?: object }

const object = (apiVersion: string, kind: string, name: string, rest: Fields = {}, metadata: Fields = {}): Made => ({
  apiVersion,
  kind,
  metadata: { name, ...metadata },
  ...rest,
})

export const configMap = (name: string, data?: Fields, metadata: Fields = {}) =>
  object('v1', 'ConfigMap', name, data === undefined ? {} : { data }, metadata)

export const secret = (name: string, data: Fields) => object('v1', 'Secret', name, { type: 'Opaque', data })

const container = {
  name: 'main',
  image: 'registry.example/image:1',
  imagePullPolicy: 'IfNotPresent',
  resources: {},
  terminationMessagePath: '/dev/termination-log',
  terminationMessagePolicy: 'File',
}

const template = {
  metadata: { labels: { app: 'web' } },
  spec: {
    containers: [container],
    dnsPolicy: 'ClusterFirst',
    restartPolicy: 'Always',
    schedulerName: 'default-scheduler',
    securityContext: {},
    terminationGracePeriodSeconds: 30,
  },
}

const toleration = (condition: string) => ({
  key: `node.kubernetes.io/${condition}`,
  operator: 'Exists',
  effect: 'NoExecute',
  tolerationSeconds: 300,
})

const podSpec = {
  ...template.spec,
  automountServiceAccountToken: false,
  enableServiceLinks: true,
  preemptionPolicy: 'PreemptLowerPriority',
  priority: 0,
  serviceAccount: 'default',
  serviceAccountName: 'default',
  tolerations: [toleration('not-ready'), toleration('unreachable')],
}

export const pod = (name: string, labels: Fields = { app: 'web' }, spec: Fields = {}) =>
  object('v1', 'Pod', name, { spec: { ...podSpec, ...spec } }, { labels })

const selector = { matchLabels: { app: 'web' } }

export const deployment = (name: string, replicas = 1, metadata: Fields = {}) =>
  object(
    'apps/v1',
    'Deployment',
    name,
    {
      spec: {
        progressDeadlineSeconds: 600,
        replicas,
        revisionHistoryLimit: 10,
        selector,
        strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: '25%', maxUnavailable: '25%' } },
        template,
      },
    },
    metadata,
  )

export const replicaSet = (name: string, replicas = 1) =>
  object('apps/v1', 'ReplicaSet', name, { spec: { replicas, selector, template } })

export const statefulSet = (name: string, replicas = 1) =>
  object('apps/v1', 'StatefulSet', name, {
    spec: {
      persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Retain', whenScaled: 'Retain' },
      podManagementPolicy: 'OrderedReady',
      replicas,
      revisionHistoryLimit: 10,
      selector,
      serviceName: 'web',
      template,
      updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 0 } },
    },
  })

export const daemonSet = (name: string) =>
  object(
    'apps/v1',
    'DaemonSet',
    name,
    {
      spec: {
        revisionHistoryLimit: 10,
        selector,
        template,
        updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } },
      },
    },
    { annotations: { 'deprecated.daemonset.template.generation': '1' } },
  )

export const replicationController = (name: string, replicas = 1) =>
  object(
    'v1',
    'ReplicationController',
    name,
    { spec: { replicas, selector: { app: 'web' }, template } },
    { labels: { app: 'web' } },
  )

/** Headless: no address has to be allocated. */
export const service = (name: string, metadata: Fields = {}) =>
  object(
    'v1',
    'Service',
    name,
    {
      spec: {
        clusterIP: 'None',
        clusterIPs: ['None'],
        internalTrafficPolicy: 'Cluster',
        ipFamilies: ['IPv4'],
        ipFamilyPolicy: 'SingleStack',
        ports: [{ name: 'http', port: 80, protocol: 'TCP', targetPort: 8080 }],
        selector: { app: 'web' },
        sessionAffinity: 'None',
        type: 'ClusterIP',
      },
    },
    metadata,
  )

const jobPod = { ...template.spec, restartPolicy: 'Never' }

export const cronJob = (name: string) =>
  object('batch/v1', 'CronJob', name, {
    spec: {
      concurrencyPolicy: 'Allow',
      failedJobsHistoryLimit: 1,
      jobTemplate: { metadata: {}, spec: { template: { metadata: {}, spec: jobPod } } },
      schedule: '*/5 * * * *',
      successfulJobsHistoryLimit: 3,
      suspend: false,
    },
  })

/** With its own selector: the usual one holds the uid that the server gives. */
export const job = (name: string) =>
  object(
    'batch/v1',
    'Job',
    name,
    {
      spec: {
        backoffLimit: 6,
        completionMode: 'NonIndexed',
        completions: 1,
        manualSelector: true,
        parallelism: 1,
        podReplacementPolicy: 'TerminatingOrFailed',
        selector: { matchLabels: { job: name } },
        suspend: false,
        template: { metadata: { labels: { job: name } }, spec: jobPod },
      },
    },
    { labels: { job: name } },
  )

export const autoscaler = (name: string) =>
  object('autoscaling/v2', 'HorizontalPodAutoscaler', name, {
    spec: {
      minReplicas: 1,
      maxReplicas: 5,
      scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' },
      metrics: [
        { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 60 } } },
      ],
    },
  })

export const claim = (name: string) =>
  object(
    'v1',
    'PersistentVolumeClaim',
    name,
    {
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, volumeMode: 'Filesystem' },
    },
    { finalizers: ['kubernetes.io/pvc-protection'] },
  )

export const ingress = (name: string) =>
  object('networking.k8s.io/v1', 'Ingress', name, {
    spec: {
      ingressClassName: 'edge',
      rules: [
        {
          host: 'web.example',
          http: {
            paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: 'web', port: { number: 80 } } } }],
          },
        },
      ],
    },
  })

export const budget = (name: string) =>
  object('policy/v1', 'PodDisruptionBudget', name, { spec: { minAvailable: 1, selector } })

export const networkPolicy = (name: string) =>
  object('networking.k8s.io/v1', 'NetworkPolicy', name, {
    spec: { podSelector: {}, ingress: [{}], policyTypes: ['Ingress'] },
  })

const nodeFacts = ['architecture', 'bootID', 'containerRuntimeVersion', 'kernelVersion', 'kubeProxyVersion']
const moreNodeFacts = ['kubeletVersion', 'machineID', 'operatingSystem', 'osImage', 'systemUUID']

export const node = (name: string, labels: Fields = {}) =>
  object(
    'v1',
    'Node',
    name,
    {
      spec: { taints: [{ key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' }] },
      status: {
        daemonEndpoints: { kubeletEndpoint: { Port: 0 } },
        nodeInfo: Object.fromEntries([...nodeFacts, ...moreNodeFacts].map((fact) => [fact, 'x'])),
      },
    },
    { labels },
  )

export const volume = (name: string) =>
  object(
    'v1',
    'PersistentVolume',
    name,
    {
      spec: {
        accessModes: ['ReadWriteOnce'],
        capacity: { storage: '1Gi' },
        hostPath: { path: '/x', type: '' },
        persistentVolumeReclaimPolicy: 'Retain',
        storageClassName: 'slow',
        volumeMode: 'Filesystem',
      },
    },
    { finalizers: ['kubernetes.io/pv-protection'] },
  )

export const storageClass = (name: string) =>
  object('storage.k8s.io/v1', 'StorageClass', name, {
    provisioner: 'example.com/disk',
    reclaimPolicy: 'Delete',
    volumeBindingMode: 'Immediate',
  })

export const lease = (name: string, holder: string) =>
  object('coordination.k8s.io/v1', 'Lease', name, {
    spec: { holderIdentity: holder, leaseDurationSeconds: 40, renewTime: '2001-02-03T04:05:06.000007Z' },
  })
