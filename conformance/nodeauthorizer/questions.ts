/** What nodes might ask, from a seed: own and others' objects, verbs, subresources, names and selectors, sensible and not. */
import type { Random } from '../site.ts'
import * as world from './world.ts'

/** The spec of a SubjectAccessReview. */
export type ReviewSpec = {
  readonly user: string
  readonly groups: readonly string[]
  readonly resourceAttributes?: Readonly<Record<string, unknown>>
  readonly nonResourceAttributes?: { readonly path: string; readonly verb: string }
}

type Askable = {
  readonly group: string
  readonly resource: string
  readonly namespaced: boolean
  readonly names: readonly string[]
  readonly subresources?: readonly string[]
}

const ephemeral = world.pods.slice(0, 8).map((pod) => `${pod}-v0`)

const askable: readonly Askable[] = [
  ...Array.from({ length: 4 }, () => ({ group: '', resource: 'secrets', namespaced: true, names: world.secrets })),
  { group: '', resource: 'configmaps', namespaced: true, names: [...world.configMaps, 'kube-root-ca.crt'] },
  {
    group: '',
    resource: 'persistentvolumeclaims',
    namespaced: true,
    names: [...world.claims, ...ephemeral],
    subresources: ['status'],
  },
  { group: '', resource: 'persistentvolumes', namespaced: false, names: world.volumes, subresources: ['status'] },
  { group: '', resource: 'serviceaccounts', namespaced: true, names: world.accounts, subresources: ['token', 'token'] },
  {
    group: '',
    resource: 'pods',
    namespaced: true,
    names: [...world.pods, 'late', 'extra0', 'extra2', 'extra9'],
    subresources: ['status', 'eviction', 'log'],
  },
  { group: '', resource: 'nodes', namespaced: false, names: world.nodes, subresources: ['status', 'proxy'] },
  {
    group: 'resource.k8s.io',
    resource: 'resourceclaims',
    namespaced: true,
    names: [...world.deviceClaims, 'made-1'],
    subresources: ['status'],
  },
  { group: 'resource.k8s.io', resource: 'resourceslices', namespaced: false, names: world.slices },
  { group: 'storage.k8s.io', resource: 'volumeattachments', namespaced: false, names: world.attachments },
  { group: 'storage.k8s.io', resource: 'csinodes', namespaced: false, names: world.nodes },
  { group: 'storage.k8s.io', resource: 'csidrivers', namespaced: false, names: ['d'] },
  { group: 'coordination.k8s.io', resource: 'leases', namespaced: true, names: world.nodes },
  { group: 'certificates.k8s.io', resource: 'certificatesigningrequests', namespaced: false, names: ['c'] },
  { group: 'certificates.k8s.io', resource: 'podcertificaterequests', namespaced: true, names: ['r'] },
  { group: 'certificates.k8s.io', resource: 'clustertrustbundles', namespaced: false, names: ['b'] },
  { group: 'node.k8s.io', resource: 'runtimeclasses', namespaced: false, names: ['r'] },
  { group: '', resource: 'services', namespaced: true, names: ['s'] },
  { group: '', resource: 'endpoints', namespaced: true, names: ['s'] },
  { group: '', resource: 'events', namespaced: true, names: ['e'] },
  { group: 'events.k8s.io', resource: 'events', namespaced: true, names: ['e'] },
  { group: '', resource: 'namespaces', namespaced: false, names: world.namespaces },
  { group: 'apps', resource: 'deployments', namespaced: true, names: ['d'] },
  { group: 'apps', resource: 'secrets', namespaced: true, names: world.secrets },
  { group: 'authentication.k8s.io', resource: 'tokenreviews', namespaced: false, names: [''] },
  { group: 'authorization.k8s.io', resource: 'subjectaccessreviews', namespaced: false, names: [''] },
  { group: 'authorization.k8s.io', resource: 'localsubjectaccessreviews', namespaced: true, names: [''] },
  { group: '*', resource: '*', namespaced: true, names: world.secrets },
]

const verbs = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection', 'escalate', '*']
const selecting = ['list', 'watch', 'deletecollection']

export function generateQuestion(random: Random, of: readonly Askable[] = askable): ReviewSpec {
  const node = random.of([...world.nodes.slice(0, 2), ...world.nodes.slice(0, 3), ...world.nodes])
  const who = whose(random, node)
  if (random.below(40) === 0) {
    return { ...who, nonResourceAttributes: { path: random.of(['/metrics', '/', '/api']), verb: 'get' } }
  }
  const { group, resource, namespaced, names, subresources = ['x'] } = random.of(of)
  const verb = random.below(3) > 0 ? 'get' : random.of(verbs)
  const namespace = random.of([...world.namespaces, ...world.namespaces, 'kube-node-lease', ''])
  const inLeases = resource === 'leases' && random.below(4) > 0 ? 'kube-node-lease' : namespace
  const isSub = random.below(resource === 'serviceaccounts' ? 2 : 6) === 0
  const isSelected = selecting.includes(verb) && random.below(3) > 0
  return {
    ...who,
    resourceAttributes: {
      verb: isSub && subresources.includes('token') ? 'create' : verb,
      group,
      version: random.of(['v1', '', '*']),
      resource,
      ...(isSub ? { subresource: random.of(subresources) } : {}),
      ...(namespaced || random.below(8) === 0 ? { namespace: inLeases } : {}),
      ...(random.below(9) === 0 ? {} : { name: random.below(12) === 0 ? 'unheard-of' : random.of(names) }),
      ...(isSelected ? { fieldSelector: selector(random, node) } : {}),
    },
  }
}

/** Those about what a change concerns. */
export function questionsAbout(resources: readonly string[]): (random: Random) => ReviewSpec {
  const of = askable.filter(({ resource }) => resources.includes(resource))
  return (random) => generateQuestion(random, of)
}

function whose(random: Random, node: string): Pick<ReviewSpec, 'user' | 'groups'> {
  const groups = ['system:nodes']
  if (random.below(30) === 0) return { user: 'system:node:', groups }
  if (random.below(30) === 0) return { user: `system:node:${node}`, groups: ['somebody'] }
  if (random.below(30) === 0) return { user: `system:kubelet:${node}`, groups }
  return { user: `system:node:${node}`, groups }
}

function selector(random: Random, node: string): object {
  const other = random.of(world.nodes)
  const values = [random.of([node, node, other])]
  const requirement = { key: random.of(['spec.nodeName', 'spec.nodeName', 'metadata.name']), operator: 'In', values }
  return random.of<() => object>([
    () => ({ requirements: [requirement] }),
    () => ({ requirements: [requirement, { key: 'status.phase', operator: 'NotIn', values: ['Failed'] }] }),
    () => ({ requirements: [{ ...requirement, operator: 'NotIn' }] }),
    () => ({
      requirements: [
        { ...requirement, values: [node, other] },
        { key: 'a', operator: 'Later', values: [] },
      ],
    }),
    () => ({ rawSelector: `spec.nodeName=${values[0]}` }),
    () => ({ rawSelector: `spec.nodeName==${values[0]},metadata.name!=x` }),
    () => ({ rawSelector: `spec.nodeName!=${node}` }),
    () => ({ rawSelector: `spec.nodeName=${node}\\` }),
  ])()
}
