/** What is in the cluster of this proof: what kubeadm makes for kube-proxy and CoreDNS, the node's pods, an operator among them. */
import { nowhere } from '../controlplane.ts'
import { namespace, pods } from '../node/pods.ts'
import type { Oracle } from '../oracle.ts'

export const nodeName = 'edge-node'
export const otherNode = 'other-node'
export const operatorImage = 'ake.test/operator:1'
export const corednsImage = 'ake.test/coredns:1'
const account = 'operator'
export const operatorUser = `system:serviceaccount:${namespace}:${account}`
/** Informers of the operator: these and ConfigMaps. */
const also = ['pods', 'services', 'endpointslices']
export const informers = also.length + 1
export const dnsAddress = '10.96.0.10'
export const web = { name: 'web', address: '10.96.7.7' }

const group = 'rbac.authorization.k8s.io'
const rbac = `${group}/v1`
const reading = ['get', 'list', 'watch']

/** A cut must not end them: the cloud takes their node for lost after a while. */
const tolerations = ['unreachable', 'not-ready'].map((condition) => ({
  key: `node.kubernetes.io/${condition}`,
  operator: 'Exists',
  effect: 'NoExecute',
}))

/** As kubeadm makes them. */
export const system = (oracle: Oracle): readonly object[] => [
  ...['kube-proxy', 'coredns'].map((name) => ({
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name, namespace: 'kube-system' },
  })),
  binding('ClusterRoleBinding', 'kubeadm:node-proxier', 'system:node-proxier', subject('kube-proxy', 'kube-system')),
  {
    apiVersion: rbac,
    kind: 'ClusterRole',
    metadata: { name: 'system:coredns' },
    rules: [
      { apiGroups: [''], resources: ['endpoints', 'services', 'pods', 'namespaces'], verbs: ['list', 'watch'] },
      { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['list', 'watch'] },
    ],
  },
  binding('ClusterRoleBinding', 'system:coredns', 'system:coredns', subject('coredns', 'kube-system')),
  service('kube-dns', 'kube-system', {
    clusterIP: dnsAddress,
    // Or DNS is without an endpoint for the moment between the line's return and the node's first report.
    publishNotReadyAddresses: true,
    selector: { 'k8s-app': 'kube-dns' },
    ports: ['UDP', 'TCP'].map((protocol) => ({ name: `dns-${protocol.toLowerCase()}`, port: 53, protocol })),
  }),
  configMap('coredns', 'kube-system', { Corefile: corefile }),
  // What a reconciling API server would publish; that address leads nowhere.
  {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'kubernetes', namespace: 'default', labels: { 'kubernetes.io/service-name': 'kubernetes' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: [nowhere], conditions: { ready: true } }],
    ports: [{ name: 'https', port: oracle.port, protocol: 'TCP' }],
  },
  { apiVersion: 'v1', kind: 'Node', metadata: { name: otherNode } },
  secret('elsewhere', 'kube-system'),
]

/** Of the operator: a role that does not have the Secret which its pod mounts. */
export const operated = (): readonly object[] => [
  { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: account, namespace } },
  {
    apiVersion: rbac,
    kind: 'Role',
    metadata: { name: account, namespace },
    rules: [
      { apiGroups: [''], resources: ['configmaps'], verbs: [...reading, 'create', 'update'] },
      { apiGroups: [''], resources: ['pods', 'services'], verbs: reading },
      { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: reading },
    ],
  },
  binding('RoleBinding', account, account, subject(account, namespace), namespace),
  secret('hidden', namespace),
  service(web.name, namespace, { clusterIP: web.address, ports: [{ port: 80 }] }),
]

export const allPods = (): readonly object[] => [
  ...pods(nodeName, { tolerations }),
  pod('operator', namespace, {
    serviceAccountName: account,
    containers: [
      {
        ...{ name: 'main', image: operatorImage, imagePullPolicy: 'Never' },
        args: ['-namespace', namespace, '-other', namespace, '-lookup', web.name, '-also', also.join()],
        volumeMounts: [{ name: 'hidden', mountPath: '/hidden' }],
      },
    ],
    volumes: [{ name: 'hidden', secret: { secretName: 'hidden' } }],
  }),
  // On the node's address, which a reboot without the cloud does not change (docs/operations.md).
  pod('coredns', 'kube-system', {
    serviceAccountName: 'coredns',
    hostNetwork: true,
    dnsPolicy: 'Default',
    containers: [
      {
        ...{ name: 'main', image: corednsImage, imagePullPolicy: 'Never' },
        args: ['-conf', '/etc/coredns/Corefile'],
        // Lists as such, and not as watches that begin with everything: so the edge's own figures tell whether it lists again.
        env: [{ name: 'KUBE_FEATURE_WatchListClient', value: 'false' }],
        readinessProbe: { httpGet: { path: '/ready', port: 8181 }, periodSeconds: 1 },
        volumeMounts: [{ name: 'config', mountPath: '/etc/coredns' }],
      },
    ],
    volumes: [{ name: 'config', configMap: { name: 'coredns' } }],
  }),
]

export const podCount = allPods().length

/** Without a kubeconfig: CoreDNS, too, has its in-cluster configuration alone. */
const corefile = `.:53 {
  errors
  ready
  kubernetes cluster.local in-addr.arpa {
    pods insecure
    ttl 1
  }
}
`

function pod(name: string, within: string, spec: object): object {
  const metadata = { name, namespace: within, labels: name === 'coredns' ? { 'k8s-app': 'kube-dns' } : { app: name } }
  return { apiVersion: 'v1', kind: 'Pod', metadata, spec: { nodeName, tolerations, ...spec } }
}

export function service(name: string, within: string, spec: object): object {
  return { apiVersion: 'v1', kind: 'Service', metadata: { name, namespace: within }, spec }
}

export function configMap(name: string, within: string, data: object): object {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: within }, data }
}

function secret(name: string, within: string): object {
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace: within }, stringData: { word: 'sesame' } }
}

const subject = (name: string, within: string) => ({ kind: 'ServiceAccount', name, namespace: within })

type Bound = 'ClusterRoleBinding' | 'RoleBinding'

function binding(kind: Bound, name: string, role: string, bound: object, within?: string): object {
  return {
    apiVersion: rbac,
    kind,
    metadata: { name, ...(within === undefined ? {} : { namespace: within }) },
    roleRef: { apiGroup: group, kind: kind === 'RoleBinding' ? 'Role' : 'ClusterRole', name: role },
    subjects: [bound],
  }
}
