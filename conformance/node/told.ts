/** What the API server tells of the node and its pods, and whether that is how things are. */
import { ask, type Oracle } from '../oracle.ts'
import type { Container, Containers } from './containers.ts'
import { namespace } from './pods.ts'

type Condition = { readonly type: string; readonly status: string; readonly lastHeartbeatTime?: string }

export type Pod = {
  readonly metadata: { readonly name: string; readonly uid: string }
  readonly status: {
    readonly podIP?: string
    readonly conditions?: readonly Condition[]
    readonly containerStatuses?: readonly { readonly containerID?: string; readonly restartCount: number }[]
  }
}

/** All that were given to a node: nobody else uses this API server, and those of a Deployment wait for a scheduler that does not run. */
export async function podsOf(oracle: Oracle): Promise<readonly Pod[]> {
  const { items } = await read<{ items: Pod[] }>(oracle, '/api/v1/pods?fieldSelector=spec.nodeName%21%3D')
  return items.sort((a, b) => a.metadata.name.localeCompare(b.metadata.name))
}

/** The running containers, if the API server tells the same of every pod: ready, in this container, at this address. */
export async function agreed(containers: Containers, oracle: Oracle): Promise<readonly Container[] | undefined> {
  const [running, pods] = await Promise.all([containers.running(), podsOf(oracle)])
  if (running.length !== pods.length || pods.length === 0) return undefined
  for (const container of running) {
    const pod = pods.find(({ metadata }) => metadata.uid === container.uid)
    const [status] = pod?.status.containerStatuses ?? []
    if (!isTrue(pod?.status.conditions) || status?.containerID !== `containerd://${container.id}`) return undefined
    if (pod?.status.podIP !== (await containers.addressOf(container))) return undefined
  }
  return running
}

/** Ready, by the node's own word from after `sinceMs`, and its lease renewed since then. */
export async function isNodeReady(oracle: Oracle, name: string, sinceMs: number): Promise<boolean> {
  const node = await read<{ status: { conditions?: Condition[] } }>(oracle, `/api/v1/nodes/${name}`)
  const path = `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${name}`
  const lease = await read<{ spec: { renewTime?: string } }>(oracle, path)
  const fresh = node.status.conditions?.filter((one) => Date.parse(one.lastHeartbeatTime ?? '') >= sinceMs)
  return isTrue(fresh) && Date.parse(lease.spec.renewTime ?? '') >= sinceMs
}

/** By way of the kubelet, which asks through the edge whether the API server may. */
export async function logOf(oracle: Oracle, pod: string): Promise<string> {
  const { status, body } = await ask(oracle, `/api/v1/namespaces/${namespace}/pods/${pod}/log`)
  return status === 200 ? body : `${status} ${body}`
}

function isTrue(conditions: readonly Condition[] | undefined): boolean {
  return conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true
}

async function read<Answer>(oracle: Oracle, path: string): Promise<Answer> {
  const { status, body } = await ask(oracle, path)
  if (status !== 200) throw new Error(`GET ${path}: ${status} ${body}`)
  return JSON.parse(body)
}
