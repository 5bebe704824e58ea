/**
 * The smallest valid object of every built-in resource that is stored, without kind, apiVersion and (mostly) metadata:
 * what facts.ts creates at the real kube-apiserver to see how each resource behaves when it is written.
 */

type Sample = { readonly metadata?: { readonly name: string } } & { readonly [field: string]: unknown }

const podSpec = { containers: [{ name: 'c', image: 'registry.example/image:1' }] }
const template = { metadata: { labels: { app: 'sample' } }, spec: podSpec }
const selector = { matchLabels: { app: 'sample' } }
const jobTemplate = { spec: { ...podSpec, restartPolicy: 'Never' } }
const matchConstraints = {
  resourceRules: [{ apiGroups: ['example.com'], apiVersions: ['v1'], operations: ['CREATE'], resources: ['things'] }],
}
const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' }

/** A PKCS#10 request for CN=sample; only its form matters. */
const signingRequest = [
  'LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlITE1ITUNBUUF3RVRFUE1BMEdBMVVFQXd3R2MyRnRjR3hsTUZr',
  'd0V3WUhLb1pJemowQ0FRWUlLb1pJemowRApBUWNEUWdBRWtETzYyaUZ2VUNxVmNqc1IySWNIUVR1M0N2cmowMDRHck4yV2lqU0wr',
  'TDJqQ0hQWWV2QjhyQWRvCnQwSklUemFtNGNXWmQyZ1F5NENmczA1R2pLTktuS0FBTUFvR0NDcUdTTTQ5QkFNQ0EwZ0FNRVVDSVFE',
  'MkhFQVoKK1E4dnh6ell0bFQzUEZmK1p6VHNhclRqaENoZXRVdWY0Z3NyMHdJZ01MbXUwMzdiMnAzUGJjbElOWDB3R1p3QgoxcktS',
  'TFRncE5GSldPMUxTYlQ4PQotLS0tLUVORCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K',
].join('')

export const samples: { readonly [groupPlural: string]: Sample } = {
  '/configmaps': {},
  '/endpoints': {},
  '/events': { involvedObject: { kind: 'Pod', namespace: 'default', name: 'sample' } },
  '/limitranges': { spec: { limits: [] } },
  '/namespaces': {},
  '/nodes': {},
  '/persistentvolumeclaims': { spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } } },
  '/persistentvolumes': {
    spec: { accessModes: ['ReadWriteOnce'], capacity: { storage: '1Gi' }, hostPath: { path: '/sample' } },
  },
  '/pods': { spec: podSpec },
  '/podtemplates': { template },
  '/replicationcontrollers': { spec: { selector: { app: 'sample' }, template } },
  '/resourcequotas': { spec: {} },
  '/secrets': {},
  '/serviceaccounts': {},
  '/services': { spec: { ports: [{ port: 80 }] } },
  'admissionregistration.k8s.io/mutatingadmissionpolicies': {
    spec: {
      matchConstraints,
      mutations: [
        { patchType: 'JSONPatch', jsonPatch: { expression: '[JSONPatch{op: "remove", path: "/spec/old"}]' } },
      ],
      reinvocationPolicy: 'Never',
    },
  },
  'admissionregistration.k8s.io/mutatingadmissionpolicybindings': { spec: { policyName: 'sample' } },
  'admissionregistration.k8s.io/mutatingwebhookconfigurations': { webhooks: [] },
  'admissionregistration.k8s.io/validatingadmissionpolicies': {
    spec: { matchConstraints, validations: [{ expression: 'true' }] },
  },
  'admissionregistration.k8s.io/validatingadmissionpolicybindings': {
    spec: { policyName: 'sample', validationActions: ['Deny'] },
  },
  'admissionregistration.k8s.io/validatingwebhookconfigurations': { webhooks: [] },
  'apiextensions.k8s.io/customresourcedefinitions': {
    metadata: { name: 'things.sample.example.com' },
    spec: {
      group: 'sample.example.com',
      names: { plural: 'things', kind: 'Thing' },
      scope: 'Namespaced',
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
    },
  },
  'apiregistration.k8s.io/apiservices': {
    metadata: { name: 'v1.other.example.com' },
    spec: {
      group: 'other.example.com',
      version: 'v1',
      groupPriorityMinimum: 1000,
      versionPriority: 15,
      service: { namespace: 'default', name: 'sample' },
      insecureSkipTLSVerify: true,
    },
  },
  'apps/controllerrevisions': { revision: 1, data: {} },
  'apps/daemonsets': { spec: { selector, template } },
  'apps/deployments': { spec: { selector, template } },
  'apps/replicasets': { spec: { selector, template } },
  'apps/statefulsets': { spec: { selector, template, serviceName: 'sample' } },
  'autoscaling/horizontalpodautoscalers': {
    spec: { scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'sample' }, maxReplicas: 2 },
  },
  'batch/cronjobs': { spec: { schedule: '0 0 1 1 *', jobTemplate: { spec: { template: jobTemplate } } } },
  'batch/jobs': { spec: { template: jobTemplate } },
  'certificates.k8s.io/certificatesigningrequests': {
    spec: { request: signingRequest, signerName: 'example.com/sample', usages: ['client auth'] },
  },
  'coordination.k8s.io/leases': { spec: {} },
  'discovery.k8s.io/endpointslices': { addressType: 'IPv4', endpoints: [] },
  'events.k8s.io/events': {
    eventTime: '2026-01-01T00:00:00.000000Z',
    reportingController: 'example.com/sample',
    reportingInstance: 'sample-1',
    action: 'Sampling',
    reason: 'Sampled',
    type: 'Normal',
    regarding: { kind: 'Pod', namespace: 'default', name: 'sample' },
  },
  'flowcontrol.apiserver.k8s.io/flowschemas': { spec: { priorityLevelConfiguration: { name: 'workload-low' } } },
  'flowcontrol.apiserver.k8s.io/prioritylevelconfigurations': {
    spec: { type: 'Limited', limited: { nominalConcurrencyShares: 1, limitResponse: { type: 'Reject' } } },
  },
  'networking.k8s.io/ingressclasses': { spec: { controller: 'example.com/sample' } },
  'networking.k8s.io/ingresses': { spec: { defaultBackend: { service: { name: 'sample', port: { number: 80 } } } } },
  'networking.k8s.io/ipaddresses': {
    metadata: { name: '10.96.77.77' },
    spec: { parentRef: { resource: 'services', namespace: 'default', name: 'sample' } },
  },
  'networking.k8s.io/networkpolicies': { spec: { podSelector: {} } },
  'networking.k8s.io/servicecidrs': { spec: { cidrs: ['10.97.0.0/24'] } },
  'node.k8s.io/runtimeclasses': { handler: 'sample' },
  'policy/poddisruptionbudgets': { spec: { selector, minAvailable: 1 } },
  'rbac.authorization.k8s.io/clusterrolebindings': { roleRef },
  'rbac.authorization.k8s.io/clusterroles': { rules: [] },
  'rbac.authorization.k8s.io/rolebindings': { roleRef },
  'rbac.authorization.k8s.io/roles': { rules: [] },
  'resource.k8s.io/deviceclasses': { spec: {} },
  'resource.k8s.io/resourceclaims': { spec: { devices: {} } },
  'resource.k8s.io/resourceclaimtemplates': { spec: { spec: { devices: {} } } },
  'resource.k8s.io/resourceslices': {
    spec: {
      driver: 'sample.example.com',
      nodeName: 'sample',
      pool: { name: 'sample', generation: 0, resourceSliceCount: 1 },
    },
  },
  'scheduling.k8s.io/priorityclasses': { value: 1 },
  'storage.k8s.io/csidrivers': { spec: {} },
  'storage.k8s.io/csinodes': { spec: { drivers: [] } },
  'storage.k8s.io/csistoragecapacities': { storageClassName: 'sample' },
  'storage.k8s.io/storageclasses': { provisioner: 'example.com/sample' },
  'storage.k8s.io/volumeattachments': {
    spec: { attacher: 'example.com', nodeName: 'sample', source: { persistentVolumeName: 'sample' } },
  },
  'storage.k8s.io/volumeattributesclasses': { driverName: 'example.com', parameters: { kind: 'sample' } },
}
