/**
 * The defaults that kube-apiserver has as code, for Kubernetes 1.36, by component and without the prefix of its OpenAPI
 * name. Left out: what an allocator, an admission plugin or the clock decides (addresses, service accounts, the time of a
 * device's taint), and the requests of a pod as a whole, which are sums over its containers.
 */

import { field, isObject, type Json, type JsonObject, text } from '../kube/json/json.ts'
import { copyAbsent, defaultPorts, defaultService, pullPolicy } from './defaultrules.ts'

type Plain = Readonly<Record<string, unknown>>

/** What a struct gets. A member that is an object itself is filled in the same way. */
export type StructDefaults = {
  /** Where nothing is said, or an empty string. */
  readonly absent?: Plain
  /** Where nothing is said, or zero. */
  readonly zero?: Plain
  /** What depends on the struct's other fields; goes before the values. */
  readonly rule?: (struct: JsonObject) => void
}

const rbac = 'rbac.authorization.k8s.io'
const mode = 0o644
const webhook = { failurePolicy: 'Fail', matchPolicy: 'Equivalent', namespaceSelector: {}, objectSelector: {} }
const exactCount: StructDefaults = {
  absent: { allocationMode: 'ExactCount' },
  rule: (request) => {
    const one = ['', 'ExactCount'].includes(text(request, 'allocationMode'))
    if (one && (request.get('count') ?? 0) === 0) request.set('count', 1)
  },
}
const container: StructDefaults = {
  absent: { resources: {}, terminationMessagePath: '/dev/termination-log', terminationMessagePolicy: 'File' },
  rule: (one) => pullPolicy(one, 'imagePullPolicy', text(one, 'image')),
}

export const defaultTable: Readonly<Record<string, StructDefaults>> = {
  'core.v1.Pod': {
    absent: { spec: { enableServiceLinks: true } },
    rule: (pod) => {
      const spec = pod.get('spec')
      for (const one of [...list(spec, 'containers'), ...list(spec, 'initContainers')]) {
        const resources = field(one, 'resources')
        if (isObject(resources)) copyAbsent(resources, 'requests', resources.get('limits'))
        if (field(spec, 'hostNetwork') === true) defaultPorts(list(one, 'ports'))
      }
    },
  },
  'core.v1.PodSpec': {
    rule: (spec) => {
      const account = text(spec, 'serviceAccountName') || text(spec, 'serviceAccount')
      // The account has two names, an old one beside the one that counts.
      if (account !== '') spec.set('serviceAccountName', account).set('serviceAccount', account)
    },
    absent: {
      dnsPolicy: 'ClusterFirst',
      restartPolicy: 'Always',
      schedulerName: 'default-scheduler',
      securityContext: {},
      terminationGracePeriodSeconds: 30,
    },
  },
  'core.v1.PodTemplateSpec': { absent: { metadata: {} } },
  'core.v1.Container': container,
  'core.v1.EphemeralContainer': container,
  'core.v1.Probe': { zero: { timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3 } },
  'core.v1.HTTPGetAction': { absent: { path: '/', scheme: 'HTTP' } },
  'core.v1.GRPCAction': { absent: { service: '' } },
  'core.v1.ObjectFieldSelector': { absent: { apiVersion: 'v1' } },
  'core.v1.FileKeySelector': { absent: { optional: false } },
  'core.v1.Volume': {
    rule: (volume) => {
      if ([...volume.keys()].every((key) => key === 'name')) volume.set('emptyDir', new Map())
    },
  },
  'core.v1.ImageVolumeSource': { rule: (image) => pullPolicy(image, 'pullPolicy', text(image, 'reference')) },
  'core.v1.SecretVolumeSource': { absent: { defaultMode: mode } },
  'core.v1.ConfigMapVolumeSource': { absent: { defaultMode: mode } },
  'core.v1.DownwardAPIVolumeSource': { absent: { defaultMode: mode } },
  'core.v1.ProjectedVolumeSource': { absent: { defaultMode: mode } },
  'core.v1.ServiceAccountTokenProjection': { absent: { expirationSeconds: 3600 } },
  'core.v1.HostPathVolumeSource': { absent: { type: '' } },
  'core.v1.AzureDiskVolumeSource': { absent: { readOnly: false } },
  'core.v1.PersistentVolume': {
    absent: {
      spec: { persistentVolumeReclaimPolicy: 'Retain', volumeMode: 'Filesystem' },
      status: { phase: 'Pending' },
    },
  },
  // Of the claims that a stateful set makes, the kind and the phase are told too.
  'core.v1.PersistentVolumeClaim': {
    absent: { kind: 'PersistentVolumeClaim', apiVersion: 'v1', status: { phase: 'Pending' } },
  },
  'core.v1.PersistentVolumeClaimSpec': { absent: { volumeMode: 'Filesystem' } },
  'core.v1.Service': { rule: defaultService },
  'core.v1.EndpointPort': { absent: { protocol: 'TCP' } },
  'core.v1.NodeStatus': {
    rule: (status) => {
      const capacity = status.get('capacity')
      if (capacity !== undefined && !status.has('allocatable')) copyAbsent(status, 'allocatable', capacity)
    },
  },
  'core.v1.LimitRangeItem': {
    rule: (item) => {
      if (text(item, 'type') !== 'Container') return
      copyAbsent(item, 'default', item.get('max'))
      copyAbsent(item, 'defaultRequest', item.get('default'))
      copyAbsent(item, 'defaultRequest', item.get('min'))
    },
  },
  'core.v1.ReplicationController': {
    rule: (controller) => {
      const labels = field(controller, 'spec', 'template', 'metadata', 'labels')
      labelled(controller, labels)
      const spec = controller.get('spec')
      if (isObject(spec) && !spec.has('selector')) copyAbsent(spec, 'selector', labels)
    },
  },
  'apps.v1.DeploymentSpec': {
    absent: { replicas: 1, strategy: {}, revisionHistoryLimit: 10, progressDeadlineSeconds: 600 },
  },
  'apps.v1.DeploymentStrategy': { absent: { type: 'RollingUpdate' }, rule: rolling },
  'apps.v1.RollingUpdateDeployment': { absent: { maxUnavailable: '25%', maxSurge: '25%' } },
  'apps.v1.DaemonSetSpec': { absent: { updateStrategy: {}, revisionHistoryLimit: 10 } },
  'apps.v1.DaemonSetUpdateStrategy': { absent: { type: 'RollingUpdate' }, rule: rolling },
  'apps.v1.RollingUpdateDaemonSet': { absent: { maxUnavailable: 1, maxSurge: 0 } },
  'apps.v1.StatefulSetSpec': {
    absent: {
      podManagementPolicy: 'OrderedReady',
      updateStrategy: {},
      persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Retain', whenScaled: 'Retain' },
      replicas: 1,
      revisionHistoryLimit: 10,
    },
  },
  'apps.v1.StatefulSetUpdateStrategy': {
    absent: { type: 'RollingUpdate' },
    rule: (strategy) => {
      if (text(strategy, 'type') === '') rolling(strategy)
    },
  },
  'apps.v1.RollingUpdateStatefulSetStrategy': { absent: { partition: 0 } },
  'apps.v1.ReplicaSetSpec': { absent: { replicas: 1 } },
  'batch.v1.Job': {
    absent: { spec: { completionMode: 'NonIndexed', manualSelector: false, suspend: false } },
    rule: (job) => {
      labelled(job, field(job, 'spec', 'template', 'metadata', 'labels'))
      const spec = job.get('spec')
      if (!isObject(spec)) return
      if (!spec.has('completions') && !spec.has('parallelism')) spec.set('completions', 1)
      const backoff = spec.has('backoffLimitPerIndex') ? 2 ** 31 - 1 : 6
      const replacement = spec.has('podFailurePolicy') ? 'Failed' : 'TerminatingOrFailed'
      const values = Object.entries({ parallelism: 1, backoffLimit: backoff, podReplacementPolicy: replacement })
      for (const [name, value] of values) if (!spec.has(name)) spec.set(name, value)
    },
  },
  'batch.v1.JobTemplateSpec': { absent: { metadata: {} } },
  'batch.v1.CronJobSpec': {
    absent: { concurrencyPolicy: 'Allow', suspend: false, successfulJobsHistoryLimit: 3, failedJobsHistoryLimit: 1 },
  },
  'batch.v1.PodFailurePolicyOnPodConditionsPattern': { absent: { status: 'True' } },
  'autoscaling.v1.HorizontalPodAutoscalerSpec': { absent: { minReplicas: 1 } },
  'autoscaling.v2.HorizontalPodAutoscalerSpec': {
    absent: {
      minReplicas: 1,
      metrics: [
        { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 80 } } },
      ],
    },
  },
  'autoscaling.v2.HorizontalPodAutoscalerBehavior': {
    absent: {
      scaleUp: {
        stabilizationWindowSeconds: 0,
        selectPolicy: 'Max',
        policies: [scaling('Pods', 4), scaling('Percent', 100)],
      },
      scaleDown: { selectPolicy: 'Max', policies: [scaling('Percent', 100)] },
    },
  },
  'networking.v1.NetworkPolicyPort': { absent: { protocol: 'TCP' } },
  'networking.v1.NetworkPolicySpec': {
    rule: (policy) => {
      const types = policy.has('egress') ? ['Ingress', 'Egress'] : ['Ingress']
      if (!policy.has('policyTypes')) policy.set('policyTypes', types)
    },
  },
  'networking.v1.IngressClassParametersReference': { absent: { scope: 'Cluster' } },
  'discovery.v1.Endpoint': { absent: { conditions: {} } },
  'discovery.v1.EndpointPort': { absent: { name: '', protocol: 'TCP' } },
  'rbac.v1.RoleRef': { absent: { apiGroup: rbac } },
  'rbac.v1.Subject': {
    rule: (subject) => {
      const global = ['User', 'Group'].includes(text(subject, 'kind'))
      if (global && text(subject, 'apiGroup') === '') subject.set('apiGroup', rbac)
    },
  },
  'scheduling.v1.PriorityClass': { absent: { preemptionPolicy: 'PreemptLowerPriority' } },
  'storage.v1.StorageClass': { absent: { reclaimPolicy: 'Delete', volumeBindingMode: 'Immediate' } },
  'storage.v1.CSIDriverSpec': {
    absent: {
      attachRequired: true,
      podInfoOnMount: false,
      storageCapacity: false,
      fsGroupPolicy: 'ReadWriteOnceWithFSType',
      volumeLifecycleModes: ['Persistent'],
      requiresRepublish: false,
      seLinuxMount: false,
    },
  },
  'admissionregistration.v1.ValidatingWebhook': { absent: { ...webhook, timeoutSeconds: 10 } },
  'admissionregistration.v1.MutatingWebhook': {
    absent: { ...webhook, timeoutSeconds: 10, reinvocationPolicy: 'Never' },
  },
  'admissionregistration.v1.RuleWithOperations': { absent: { scope: '*' } },
  'admissionregistration.v1.NamedRuleWithOperations': { absent: { scope: '*' } },
  'admissionregistration.v1.ServiceReference': { absent: { port: 443 } },
  'io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.ServiceReference': { absent: { port: 443 } },
  'admissionregistration.v1.ValidatingAdmissionPolicySpec': { absent: { failurePolicy: 'Fail' } },
  'admissionregistration.v1.MutatingAdmissionPolicySpec': { absent: { failurePolicy: 'Fail' } },
  'admissionregistration.v1.MatchResources': {
    absent: { matchPolicy: 'Equivalent', namespaceSelector: {}, objectSelector: {} },
  },
  'flowcontrol.v1.FlowSchemaSpec': { zero: { matchingPrecedence: 1000 } },
  'flowcontrol.v1.ExemptPriorityLevelConfiguration': { absent: { nominalConcurrencyShares: 0, lendablePercent: 0 } },
  'flowcontrol.v1.LimitedPriorityLevelConfiguration': { absent: { nominalConcurrencyShares: 30, lendablePercent: 0 } },
  'flowcontrol.v1.QueuingConfiguration': { zero: { handSize: 8, queues: 64, queueLengthLimit: 50 } },
  'resource.v1.ExactDeviceRequest': exactCount,
  'resource.v1.DeviceSubRequest': exactCount,
}

function scaling(type: string, value: number): Plain {
  return { type, value, periodSeconds: 15 }
}

function rolling(strategy: JsonObject): void {
  const rolls = ['', 'RollingUpdate'].includes(text(strategy, 'type'))
  if (rolls && !strategy.has('rollingUpdate')) strategy.set('rollingUpdate', new Map())
}

/** What has no labels gets those of the pods that it makes. */
function labelled(tree: JsonObject, labels: Json | undefined): void {
  const meta = tree.get('metadata')
  if (isObject(meta) && !meta.has('labels')) copyAbsent(meta, 'labels', labels)
}

function list(struct: Json | undefined, name: string): readonly Json[] {
  const found = field(struct, name)
  return Array.isArray(found) ? found : []
}
