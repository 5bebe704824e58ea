/**
 * The real code of kubelet and kube-proxy (kubemark) through `ake edge`: a node becomes Ready, pods run, services arrive;
 * the cloud is cut, both are killed and started again, and they sync from the edge alone; the cloud returns, and nothing
 * was evicted, deleted or restarted. Openyurt 1.4 by the way: a kubelet that dies says nothing about the cloud.
 */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Ake } from '../ake.ts'
import { type EdgeWay, startEdge } from '../edge/edge.ts'
import { Findings } from '../findings.ts'
import { hubBetween } from '../hub/between.ts'
import { writeKubeconfig } from '../kubeconfig.ts'
import { type Link, startLink } from '../link.ts'
import { type Credential, type Oracle, startOracle } from '../oracle.ts'
import { applyRbac, creatorOf, type Make } from '../rights/objects.ts'
import { Edge, untilDiscovered } from '../site.ts'
import type { Step, StepContext, StepResult } from '../step.ts'
import { type Hollow, prepareHollow } from './node.ts'
import { HollowScene } from './scene.ts'
import { node } from './view.ts'

export const step: Step = { name: 'hollow', tier: 'default', minutes: 4, run: (context) => run(context, false) }

/** The same through a hub that does not trust its edge: what kube-proxy wants stands by its token, what the kubelet wants by its node. */
export const hubStep: Step = { name: 'hub-hollow', tier: 'all', minutes: 5, run: (context) => run(context, true) }

async function run(context: StepContext, isBehindHub: boolean): Promise<StepResult> {
  await mkdir(context.dir, { recursive: true })
  const { signal, progress } = context
  const oracle = await startOracle({ dir: join(context.dir, 'oracle'), controllers: true, signal, progress })
  const link = await startLink({ target: { host: '127.0.0.1', port: oracle.port } })
  const ended: (() => Promise<unknown>)[] = []
  try {
    const make = creatorOf(oracle)
    await applyRbac(oracle)
    await makeProxyAccount(make)
    const credential = await oracle.nodeCredential(node)
    const between = isBehindHub ? await hubBetween({ dir: context.dir, oracle, link, node, signal }) : undefined
    if (between !== undefined) ended.push(() => between.hub.end('kill'))
    const edge =
      between === undefined
        ? await edgeOf(context, oracle, link, credential)
        : await edgeBehind(context, oracle, between.way)
    ended.push(() => edge.kill())
    const kubelet = await hollowOf(context, 'kubelet', edge, credential)
    const proxy = await hollowOf(context, 'proxy', edge, { token: await oracle.tokenFor('kube-system', 'kube-proxy') })
    ended.push(
      () => kubelet.end(),
      () => proxy.end(),
    )
    const findings = new Findings()
    await new HollowScene({ context, oracle, link, edge, kubelet, proxy, make, findings }).play()
    return findings.result
  } finally {
    await Promise.all(ended.map((end) => end()))
    await link.close()
    oracle.stop()
  }
}

/** Of kube-proxy, which asks by its token. */
export async function makeProxyAccount(make: Make): Promise<void> {
  const subject = { kind: 'ServiceAccount', name: 'kube-proxy', namespace: 'kube-system' }
  await make('/api/v1/namespaces/kube-system/serviceaccounts', { metadata: { name: 'kube-proxy' } })
  await make('/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
    metadata: { name: 'hollow-proxier' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'system:node-proxier' },
    subjects: [subject],
  })
}

async function edgeOf(context: StepContext, oracle: Oracle, link: Link, kubelet: Credential): Promise<Ake> {
  const own = await oracle.userCredential('edge-1', ['ake:edges'])
  const [dir, { signal }] = [join(context.dir, 'edge'), context]
  const start = () =>
    startEdge({
      ...{ dir, server: link.url, kubeconfig: own.kubeconfig, signal },
      args: [
        ...['--client-ca', join(oracle.dir, 'ca.crt')],
        ...['--client-credential', `system:node:${node}=${kubelet.certFile},${kubelet.keyFile}`],
      ],
    })
  const edge = await start()
  await untilDiscovered(new Edge(edge, { dir, start }), signal)
  return edge
}

/** It has no certificate to compare with: its kubelet is whom the cluster's authority vouches for as its node. */
async function edgeBehind({ dir: at, signal }: StepContext, oracle: Oracle, way: EdgeWay): Promise<Ake> {
  const dir = join(at, 'edge')
  const start = () => startEdge({ ...way, dir, signal, args: ['--client-ca', join(oracle.dir, 'ca.crt')] })
  const edge = await start()
  await untilDiscovered(new Edge(edge, { dir, start }), signal)
  return edge
}

type Known = { readonly cert?: string; readonly key?: string; readonly token?: string }

async function hollowOf(
  { dir }: StepContext,
  morph: 'kubelet' | 'proxy',
  { url, ca }: Ake,
  { cert, key, token }: Known,
): Promise<Hollow> {
  const kubeconfig = join(dir, `${morph}.kubeconfig`)
  const credential = token === undefined ? { ...(cert && { cert }), ...(key && { key }) } : { token }
  await writeKubeconfig(kubeconfig, { url, ca, ...credential })
  return prepareHollow({ dir, morph, node, kubeconfig })
}
