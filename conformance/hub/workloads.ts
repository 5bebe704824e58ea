/** What runs on the node whose line is cut: pods of every owner, with every toleration that changes what eviction does to them. */
import type { Make } from '../rights/objects.ts'

/** `HollowView` looks there. */
const namespace = 'hollow'
const within = `/api/v1/namespaces/${namespace}`
const apps = `/apis/apps/v1/namespaces/${namespace}`
export const podsPath = `${within}/pods`
export const accountsPath = `${within}/serviceaccounts`

/** Of the two taints; what the API server gives every pod that says nothing (DefaultTolerationSeconds). */
const usualSeconds = 300
const hastySeconds = 60

const taints = ['node.kubernetes.io/unreachable', 'node.kubernetes.io/not-ready']
const tolerating = (more: object) => taints.map((key) => ({ key, operator: 'Exists', effect: 'NoExecute', ...more }))

export type Fate = {
  /** How long after the taint its pods are marked for deletion; never, if they tolerate it for ever. */
  readonly evictedAfter?: number
  readonly pods: number
  /** What there is in place of its pods while the line is cut. */
  readonly replaced: 'elsewhere' | 'pending' | 'not'
  readonly spec?: object
}

/** By the name of the owner, or of the bare pod. */
export const workloads = (node: string): Readonly<Record<string, Fate & { readonly owner: Owner }>> => ({
  usual: { owner: 'deployments', pods: 2, evictedAfter: usualSeconds, replaced: 'elsewhere' },
  hasty: {
    owner: 'deployments',
    pods: 1,
    evictedAfter: hastySeconds,
    replaced: 'elsewhere',
    spec: { tolerations: tolerating({ tolerationSeconds: hastySeconds }) },
  },
  // Where the workload belongs to the site, nothing else can run it.
  pinned: {
    owner: 'deployments',
    pods: 1,
    evictedAfter: usualSeconds,
    replaced: 'pending',
    spec: { nodeSelector: { 'kubernetes.io/hostname': node } },
  },
  staying: { owner: 'deployments', pods: 2, replaced: 'not', spec: { tolerations: tolerating({}) } },
  // Its next pod has the same name, so the last one has to be gone.
  ordered: { owner: 'statefulsets', pods: 1, evictedAfter: usualSeconds, replaced: 'not' },
  // The DaemonSet controller itself adds the tolerations.
  daemon: { owner: 'daemonsets', pods: 1, replaced: 'not' },
  bare: { owner: 'pods', pods: 1, evictedAfter: usualSeconds, replaced: 'not' },
})

type Owner = 'deployments' | 'statefulsets' | 'daemonsets' | 'pods'

/** No pod can be made before the controllers have given it its service account. */
export async function makeNamespace(make: Make): Promise<void> {
  await make('/api/v1/namespaces', { metadata: { name: namespace } })
}

export async function makeWorkloads(make: Make, node: string): Promise<void> {
  for (const [name, { owner, pods, spec: more = {} }] of Object.entries(workloads(node))) {
    const labels = { app: name }
    const spec = { containers: [{ name: 'main', image: 'hollow' }], ...more }
    if (owner === 'pods') await make(podsPath, { metadata: { name, labels }, spec })
    else {
      const counted = owner === 'daemonsets' ? {} : { replicas: pods }
      const template = { metadata: { labels }, spec }
      await make(`${apps}/${owner}`, {
        metadata: { name },
        spec: { ...counted, selector: { matchLabels: labels }, template },
      })
    }
  }
}

export async function makeService(make: Make, name: string): Promise<void> {
  await make(`${within}/services`, {
    metadata: { name },
    spec: { selector: { app: 'staying' }, ports: [{ port: 80 }] },
  })
}
