/** Tables of the kinds that people list by hand, empty and filled. */
import { type Case, del, type Group, get, patch, post } from '../corpus.ts'
import * as fixtures from './fixtures.ts'

const { apps, core } = fixtures
const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json'
const here = (resource: string) => core('tables', resource)
const group = (prefix: string, resource: string) => `/apis/${prefix}/namespaces/tables/${resource}`

const made: readonly [string, object][] = [
  [here('configmaps'), fixtures.configMap('web', { a: '1', b: '2' })],
  [here('secrets'), fixtures.secret('web', { a: 'MQ==' })],
  [here('pods'), fixtures.pod('web')],
  [here('services'), fixtures.service('web')],
  [here('replicationcontrollers'), fixtures.replicationController('web', 2)],
  [here('persistentvolumeclaims'), fixtures.claim('web')],
  [apps('tables', 'deployments'), fixtures.deployment('web', 3)],
  [apps('tables', 'replicasets'), fixtures.replicaSet('web', 2)],
  [apps('tables', 'statefulsets'), fixtures.statefulSet('web', 2)],
  [apps('tables', 'daemonsets'), fixtures.daemonSet('web')],
  [group('batch/v1', 'jobs'), fixtures.job('web')],
  [group('batch/v1', 'cronjobs'), fixtures.cronJob('web')],
  [group('autoscaling/v2', 'horizontalpodautoscalers'), fixtures.autoscaler('web')],
  [group('networking.k8s.io/v1', 'ingresses'), fixtures.ingress('web')],
  [group('networking.k8s.io/v1', 'networkpolicies'), fixtures.networkPolicy('web')],
  [group('policy/v1', 'poddisruptionbudgets'), fixtures.budget('web')],
  [group('coordination.k8s.io/v1', 'leases'), fixtures.lease('web', 'me')],
]

const empty = [
  here('endpoints'),
  here('events'),
  here('limitranges'),
  here('resourcequotas'),
  here('podtemplates'),
  apps('tables', 'controllerrevisions'),
  group('rbac.authorization.k8s.io/v1', 'roles'),
  group('rbac.authorization.k8s.io/v1', 'rolebindings'),
  group('discovery.k8s.io/v1', 'endpointslices'),
  '/apis/storage.k8s.io/v1/csidrivers',
  '/apis/storage.k8s.io/v1/csinodes',
  '/apis/storage.k8s.io/v1/volumeattachments',
  '/apis/node.k8s.io/v1/runtimeclasses',
  '/apis/networking.k8s.io/v1/ingressclasses',
  '/apis/certificates.k8s.io/v1/certificatesigningrequests',
  '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations',
  '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations',
  '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies',
]

const statuses: readonly Case[] = [
  patch('merge', 'deployment progresses', `${apps('tables', 'deployments')}/web/status`, {
    status: { replicas: 3, readyReplicas: 2, updatedReplicas: 3, availableReplicas: 1, observedGeneration: 1 },
  }),
  patch('merge', 'pod runs', `${here('pods')}/web/status`, {
    status: {
      phase: 'Running',
      podIP: '10.1.2.3',
      podIPs: [{ ip: '10.1.2.3' }],
      conditions: [
        {
          type: 'Ready',
          status: 'True',
          lastProbeTime: '2001-02-03T04:05:06Z',
          lastTransitionTime: '2001-02-03T04:05:06Z',
        },
      ],
      containerStatuses: [
        {
          name: 'main',
          image: 'registry.example/image:1',
          imageID: 'x',
          ready: true,
          restartCount: 2,
          started: true,
          state: { running: { startedAt: '2001-02-03T04:05:06Z' } },
          lastState: {
            terminated: { exitCode: 1, finishedAt: '2001-02-03T04:05:06Z', startedAt: '2001-02-03T04:05:05Z' },
          },
        },
      ],
    },
  }),
  patch('merge', 'node is ready', '/api/v1/nodes/tables-node/status', {
    status: {
      addresses: [{ type: 'InternalIP', address: '10.0.0.1' }],
      conditions: [
        {
          type: 'Ready',
          status: 'True',
          lastHeartbeatTime: '2001-02-03T04:05:06Z',
          lastTransitionTime: '2001-02-03T04:05:06Z',
          reason: 'r',
          message: 'm',
        },
      ],
    },
  }),
]

const table = (path: string): Case => get(`table ${path}`, path, { accept })

export const tables: Group = {
  name: 'tables',
  cases: [
    ...made.map(([path, body]) => post(`make ${path}`, path, body)),
    post('make node', '/api/v1/nodes', fixtures.node('tables-node', { 'node-role.kubernetes.io/edge': '' })),
    post('make volume', '/api/v1/persistentvolumes', fixtures.volume('tables-volume')),
    post('make class', '/apis/storage.k8s.io/v1/storageclasses', fixtures.storageClass('tables-class')),
    ...statuses,
    ...made.map(([path]) => table(path)),
    ...empty.map(table),
    table(`${here('pods')}/web`),
    table('/api/v1/nodes/tables-node'),
    table('/api/v1/persistentvolumes/tables-volume'),
    table('/apis/storage.k8s.io/v1/storageclasses/tables-class'),
    table('/api/v1/namespaces/tables'),
    table('/api/v1/pods?fieldSelector=metadata.namespace%3Dtables'),
    table(`${here('serviceaccounts')}/default`),
    del('pod ends', `${here('pods')}/web?gracePeriodSeconds=0`),
    get('a pod that ended, as table', `${here('pods')}/web`, { accept }),
    get('no pods left, as table', here('pods'), { accept }),
  ],
}
