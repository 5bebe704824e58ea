/** The cluster of this proof: two nodes with a pod each and what it names, and accounts that may read more than a node, or nothing. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { buildKubernetes } from '../build.ts'
import { ask, type Oracle } from '../oracle.ts'
import { creatorOf, type Make } from '../rights/objects.ts'

const run = promisify(execFile)
const manifests = join(import.meta.dirname, '..', '..', 'deploy')

/** As the manifest names them. */
export const state = 'secret:ake-system/hub'
export const hubUser = 'system:serviceaccount:ake-system:ake-hub'

export const shop = 'shop'
export const nodes = ['edge-1', 'edge-2'] as const
export type NodeName = (typeof nodes)[number]
export const slices = '/apis/discovery.k8s.io/v1/endpointslices'
export const shopSlices = `/apis/discovery.k8s.io/v1/namespaces/${shop}/endpointslices`
const rbac = '/apis/rbac.authorization.k8s.io/v1'
const apiGroup = 'rbac.authorization.k8s.io'
const reading = ['get', 'list', 'watch']

/** Of a DaemonSet like kube-proxy or CoreDNS: its pods on both nodes ask for what no node may have by itself. */
const proxy = 'proxy'

/** By `proxy NODE`, and `bare`, whose account may nothing; `keeper` is a person with a token who manages the shop. */
export type Tokens = ReadonlyMap<string, string>

/** The whole manifest, as an operator applies it: nothing runs the Deployment here, the hubs of the proof stand for its pods. */
export function applyManifest(oracle: Oracle): Promise<void> {
  return apply(oracle, 'hub.yaml')
}

/** What an API server that does not constrain impersonation needs besides. */
export function applyLegacyManifest(oracle: Oracle): Promise<void> {
  return apply(oracle, 'hub-legacy.yaml')
}

async function apply(oracle: Oracle, file: string): Promise<void> {
  const { bin } = await buildKubernetes({ only: ['kubectl'], progress: () => {} })
  await run(join(bin, 'kubectl'), ['--kubeconfig', oracle.kubeconfig, 'apply', '-f', join(manifests, file)])
}

export async function populateShop(oracle: Oracle): Promise<Tokens> {
  const make = creatorOf(oracle)
  await make('/api/v1/namespaces', { metadata: { name: shop } })
  for (const name of [proxy, 'bare', 'keeper']) {
    await make(`/api/v1/namespaces/${shop}/serviceaccounts`, { metadata: { name } })
  }
  await make(`${rbac}/clusterroles`, {
    metadata: { name: proxy },
    rules: [
      { apiGroups: [''], resources: ['services', 'namespaces'], verbs: reading },
      { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: reading },
    ],
  })
  await bindProxy(oracle)
  const rules = [{ apiGroups: ['', 'discovery.k8s.io'], resources: ['*'], verbs: ['*'] }]
  await make(`${rbac}/namespaces/${shop}/roles`, { metadata: { name: 'keeper' }, rules })
  await make(`${rbac}/namespaces/${shop}/rolebindings`, {
    metadata: { name: 'keeper' },
    roleRef: { apiGroup, kind: 'Role', name: 'keeper' },
    subjects: [{ kind: 'ServiceAccount', name: 'keeper', namespace: shop }],
  })
  for (const name of ['web', 'cart']) await make(shopSlices, slice(name))
  const tokens = new Map<string, string>()
  for (const node of nodes) tokens.set(`${proxy} ${node}`, await makeNode(oracle, make, node))
  for (const name of ['bare', 'keeper']) tokens.set(name, await oracle.tokenFor(shop, name))
  return tokens
}

export function slice(name: string): object {
  return {
    metadata: { name, labels: { 'kubernetes.io/service-name': name } },
    addressType: 'IPv4',
    endpoints: [{ addresses: ['10.7.0.1'], conditions: { ready: true } }],
    ports: [{ port: 80 }],
  }
}

/** Answers the token of the pod on it. */
async function makeNode(oracle: Oracle, make: Make, name: NodeName): Promise<string> {
  await make('/api/v1/nodes', { metadata: { name } })
  const within = `/api/v1/namespaces/${shop}`
  await make(`${within}/secrets`, { metadata: { name: `of-${name}` }, stringData: { word: `sesame ${name}` } })
  await make(`${within}/configmaps`, { metadata: { name: `of-${name}` }, data: { shelf: name } })
  const volumes = [
    { name: 'hidden', secret: { secretName: `of-${name}` } },
    { name: 'shown', configMap: { name: `of-${name}` } },
  ]
  const containers = [{ name: 'main', image: 'none' }]
  const spec = { nodeName: name, serviceAccountName: proxy, volumes, containers }
  const { metadata } = await make(`${within}/pods`, { metadata: { name: podOn(name) }, spec })
  const boundObjectRef = { kind: 'Pod', apiVersion: 'v1', name: podOn(name), uid: metadata.uid }
  return await oracle.tokenFor(shop, proxy, { boundObjectRef })
}

export const podOn = (node: NodeName) => `pod-on-${node}`

export async function bindProxy(oracle: Oracle): Promise<void> {
  await creatorOf(oracle)(`${rbac}/clusterrolebindings`, {
    metadata: { name: proxy },
    roleRef: { apiGroup, kind: 'ClusterRole', name: proxy },
    subjects: [{ kind: 'ServiceAccount', name: proxy, namespace: shop }],
  })
}

export async function unbindProxy(oracle: Oracle): Promise<void> {
  await removeAt(oracle, `${rbac}/clusterrolebindings/${proxy}`)
}

async function removeAt(oracle: Oracle, path: string): Promise<void> {
  const { status, body } = await ask(oracle, path, { method: 'DELETE' })
  if (status !== 200) throw new Error(`DELETE ${path}: ${status} ${body}`)
}
