/** Whether pods of this node are led to this edge by their in-cluster configuration, and by which of its addresses. */
import { isIP } from 'node:net'
import { isLoopback } from '../base/loopback.ts'
import type { InCluster } from '../endpoint/views/views.ts'
import { isWildcard, machineAddresses } from '../pki/pki.ts'
import type { EdgeConfig } from './config.ts'
import type { HostPort } from './optionkinds.ts'

type Parts = {
  readonly config: Pick<EdgeConfig, 'node' | 'inCluster'>
  /** Our own (PEM). */
  readonly authority: string
  readonly listening: readonly HostPort[]
}

/** The user that leads pods to services wherever Kubernetes is installed by kubeadm, as a process or as a pod. */
const kubeProxies = ['system:kube-proxy', 'system:serviceaccount:kube-system:kube-proxy']

export function inClusterOf({ config, authority, listening }: Parts): InCluster {
  if (config.node === undefined || config.inCluster === 'off') return {}
  if (config.inCluster === 'ca') return { authority }
  const here = reachedByPods(listening)
  // Without a way to this edge its pods have no use for its authority.
  return here.length === 0 ? {} : { authority, here }
}

/** Loopback is another one inside of a pod; of a wildcard the first address of each family is enough, and stays. */
export function reachedByPods(listening: readonly HostPort[], machine = machineAddresses): HostPort[] {
  return listening.flatMap(({ host, port }) => {
    if (!isWildcard(host)) return isIP(host) === 0 || isLoopback(host) ? [] : [{ host, port }]
    const all = machine()
    const families = host === '::' ? [4, 6] : [4]
    return families.flatMap((family) => {
      const first = all.find((one) => isIP(one) === family)
      return first === undefined ? [] : [{ host: first, port }]
    })
  })
}

/** Which callers see what otherwise. */
export function classesOf({ node, inClusterFor }: EdgeConfig): { kubelets: string[]; proxies: string[] } {
  return {
    kubelets: node === undefined ? [] : [`system:node:${node}`],
    proxies: [...new Set([...kubeProxies, ...inClusterFor])],
  }
}
