/**
 * A line that is cut for seven minutes, with the controllers of a cluster alive: the node is taken for lost, taint eviction marks its
 * pods for deletion and their owners replace them. The kubelet behind the edge hears nothing of it; when the line is back it ends
 * what was marked and nothing else. At last the node is given up, and the rest of its pods with it. kubemark's kubelet and
 * kube-proxy are behind an edge and a hub, another node is in the cloud.
 */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Person, Server } from '../asking.ts'
import { buildKubernetes } from '../build.ts'
import { startEdge } from '../edge/edge.ts'
import { Findings } from '../findings.ts'
import { makeProxyAccount } from '../hollow/hollow.ts'
import { type Hollow, prepareHollow } from '../hollow/node.ts'
import { node } from '../hollow/view.ts'
import { Hub, issueEdge } from '../hubs.ts'
import { writeKubeconfig } from '../kubeconfig.ts'
import { startLink } from '../link.ts'
import { type Oracle, startOracle } from '../oracle.ts'
import { Program } from '../program.ts'
import { creatorOf } from '../rights/objects.ts'
import type { Step, StepContext, StepResult } from '../step.ts'
import { EvictionScene } from './evictionscene.ts'

export const step: Step = { name: 'hub-eviction', tier: 'all', minutes: 11, run }

/** A node that stays: were all nodes lost, the controllers would evict nothing and take the fault for their own. */
const cloudNode = 'cloud-1'

async function run(context: StepContext): Promise<StepResult> {
  const { dir, signal, progress } = context
  await mkdir(dir, { recursive: true })
  const ended: (() => Promise<unknown>)[] = []
  const oracle = await startOracle({ dir: join(dir, 'oracle'), controllers: true, signal, progress })
  try {
    const scheduler = await schedulerOf(context, oracle)
    ended.push(() => scheduler.end())
    scheduler.start()
    const hub = await Hub.start({ dir: join(dir, 'hub'), kubeconfig: oracle.kubeconfig, signal }, 'hub-1')
    ended.push(() => hub.end('kill'))
    const link = await startLink({ target: { host: '127.0.0.1', port: hub.port } })
    ended.push(() => link.close())
    const edge = await startEdge({
      hub: [`wss://127.0.0.1:${link.port}`],
      credential: await issueEdge(join(dir, 'hub'), node),
      dir: join(dir, 'edge'),
      args: ['--client-ca', join(oracle.dir, 'ca.crt')],
      signal,
    })
    ended.push(() => edge.kill())
    const make = creatorOf(oracle)
    await makeProxyAccount(make)
    const token = await oracle.tokenFor('kube-system', 'kube-proxy')
    const behind = { dir, name: node, server: edge }
    const beyond = { dir, name: cloudNode, server: oracle }
    const nodes = {
      kubelet: await hollowOf('kubelet', { ...behind, person: await personOf(oracle, node) }),
      proxy: await hollowOf('proxy', { ...behind, person: { token } }),
      cloud: await hollowOf('kubelet', { ...beyond, person: await personOf(oracle, cloudNode) }),
    }
    ended.push(...Object.values(nodes).map((one) => () => one.end()))
    const findings = new Findings()
    await new EvictionScene({ context, oracle, link, edge, ...nodes, cloudNode, make, findings }).play()
    return findings.result
  } finally {
    for (const end of ended.reverse()) await end()
    oracle.stop()
  }
}

async function schedulerOf({ dir, progress }: StepContext, { kubeconfig }: Oracle): Promise<Program> {
  const { bin } = await buildKubernetes({ only: ['kube-scheduler'], progress })
  const args = [`--kubeconfig=${kubeconfig}`, '--leader-elect=false', '--secure-port=0']
  return new Program({ program: join(bin, 'kube-scheduler'), args, log: join(dir, 'kube-scheduler.log') })
}

type Hollowed = {
  readonly dir: string
  readonly name: string
  /** Whom it asks, and as whom. */
  readonly server: Server
  readonly person: Person
}

async function hollowOf(morph: 'kubelet' | 'proxy', { dir, name, server, person }: Hollowed): Promise<Hollow> {
  const own = join(dir, name)
  await mkdir(own, { recursive: true })
  const kubeconfig = join(own, `${morph}.kubeconfig`)
  await writeKubeconfig(kubeconfig, { ...person, url: server.url, ca: server.ca })
  return prepareHollow({ dir: own, morph, node: name, kubeconfig })
}

async function personOf(oracle: Oracle, name: string): Promise<Person> {
  const { cert, key } = await oracle.nodeCredential(name)
  return { cert, key }
}
