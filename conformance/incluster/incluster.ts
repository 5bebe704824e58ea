/**
 * A pod with client-go's `rest.InClusterConfig()` and nothing else, on a node with an edge and an unchanged kube-proxy: what
 * kube-proxy is shown leads the address of the service `kubernetes` to the edge, what the kubelet is shown makes the pod trust
 * it. The API server's own address in the service leads nowhere, so nothing of this works by another way.
 */
import { mkdir } from 'node:fs/promises'
import { until } from '../../src/base/until.test-support.ts'
import { buildKubernetes } from '../build.ts'
import { nowhere } from '../controlplane.ts'
import { Findings } from '../findings.ts'
import { buildGoProgram } from '../goprogram.ts'
import { type Link, startLink } from '../link.ts'
import { install, missing, type Package } from '../node/packages.ts'
import { ask, type Oracle } from '../oracle.ts'
import { applyRbac, creatorOf, type Make } from '../rights/objects.ts'
import { checkPages } from '../secrecy.ts'
import type { Step, StepContext, StepResult } from '../step.ts'
import { account, namespace, nodeName, PodNode, type PodState } from './podnode.ts'
import { nftables, otherModes, type ProxyMode } from './proxymodes.ts'

const packages: readonly Package[] = [
  { name: 'nftables', file: '/usr/sbin/nft' },
  { name: 'iproute2', file: '/usr/sbin/ip' },
]
/** On a busy machine; usually some seconds. */
const waiting = { withinMs: 60_000, everyMs: 200 }
const maps = `/api/v1/namespaces/${namespace}/configmaps`
const slices = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices'

export const step: Step = { name: 'in-cluster', tier: 'default', minutes: 2, missing: () => missing(packages), run }

type Proof = {
  readonly context: StepContext
  readonly oracle: Oracle
  readonly make: Make
  readonly link: Link
  readonly node: PodNode
  readonly findings: Findings
}

async function run(context: StepContext): Promise<StepResult> {
  const { dir, progress, signal } = context
  await mkdir(dir, { recursive: true })
  await install(progress, packages)
  const { bin } = await buildKubernetes({ only: ['kube-proxy', 'kubectl'], progress })
  const program = await buildGoProgram('podclient', progress)
  const oracle = await context.oracle()
  const make = creatorOf(oracle)
  const node = new PodNode({ dir, bin, oracle, program })
  const end = () => node.machine.stop()
  process.once('exit', end)
  signal.addEventListener('abort', end, { once: true })
  const findings = new Findings()
  let link: Link | undefined
  try {
    await node.boot()
    // On the address by which the node reaches us, and no other.
    link = await startLink({ target: { host: '127.0.0.1', port: oracle.port }, host: node.machine.host })
    const podUid = await populate(oracle, make, node)
    await node.prepare(link)
    await prove({ context, oracle, make, link, node, findings }, podUid)
    return findings.result
  } finally {
    signal.removeEventListener('abort', end)
    await node.machine.cut()
    process.removeListener('exit', end)
    await link?.close()
    for (const path of shared) await ask(oracle, path, { method: 'DELETE' })
  }
}

async function prove(proof: Proof, podUid: string): Promise<void> {
  const { context, oracle, make, link, node, findings } = proof
  const { clusterIP } = await serviceOf(oracle)
  await node.startEdge()
  await node.startProxy(nftables)
  await holds(proof, 'kube-proxy leads the service to the edge', () => node.isLedHere(nftables))
  const rules = await nftables.rules(node.machine)
  findings.check(!rules.includes(nowhere), 'and nowhere else', rules)
  await node.mount(podUid)

  context.progress('a pod with its in-cluster configuration alone')
  const pod = node.startPod('pod', clusterIP)
  const first = await stateOf(proof, 'the pod is synced and has written', pod, (now) => now.synced && now.wrote > 0)
  findings.equal(first.host, `https://${clusterIP}:443`, 'it knows the service alone')
  findings.equal(first.lists, 1, 'it listed once')
  findings.equal(first.secret, 403, 'it has its own rights, and no others')
  await make(maps, { metadata: { name: 'online' }, data: { value: 'yes' } })
  await stateOf(proof, 'the pod hears of a change', pod, ({ values }) => values.online === 'yes')

  context.progress('the cloud is cut, edge and kube-proxy are killed and start again without it')
  await link.set('blackhole')
  await holds(proof, 'the edge finds the cloud away', async () => (await node.cloudState()) === 'unreachable')
  const cut = await stateOf(proof, 'a write is refused meanwhile', pod, ({ write }) => write !== 'ok')
  await node.kill('proxy', 'edge')
  await node.forgetRules()
  await node.startEdge()
  await node.startProxy(nftables)
  await holds(proof, 'without the cloud kube-proxy leads the service to the edge', () => node.isLedHere(nftables))
  await make(maps, { metadata: { name: 'meanwhile' }, data: { value: 'yes' } })
  await holds(proof, 'the edge finds the cloud away again', async () => (await node.cloudState()) === 'unreachable')
  await isJudged(proof, 'the edge judges the pod without the cloud', pod)

  context.progress('another pod begins without the cloud')
  const second = node.startPod('second', clusterIP)
  const begun = await stateOf(proof, 'a pod that begins without the cloud is synced', second, ({ synced }) => synced)
  findings.equal(begun.values.online, 'yes', 'it sees what was last known')
  findings.equal(begun.values.meanwhile, undefined, 'and nothing of what happened since')
  for (const mode of otherModes) await changeMode(proof, mode, pod)
  findings.equal(await node.cloudState(), 'unreachable', 'the cloud is still away')

  context.progress('the cloud is back')
  await link.set('up')
  const back = await stateOf(proof, 'what happened meanwhile arrives', pod, ({ values }) => values.meanwhile === 'yes')
  await stateOf(proof, 'and writes go on', pod, ({ wrote }) => wrote > cut.wrote)
  findings.equal(back.lists, 1, 'the pod never listed again')
  findings.equal((await second())?.lists, 1, 'nor did the second')
  await checkPages(findings, (path) => node.page(path))
}

type Pod = () => Promise<PodState | undefined>

/** From now on: what it asked before is over. */
async function isJudged(proof: Proof, what: string, pod: Pod): Promise<void> {
  const { rounds } = (await pod()) as PodState
  const judged = (now: PodState) => now.rounds > rounds + 1 && now.secret === 403 && now.write !== 'ok'
  await stateOf(proof, what, pod, judged)
}

/** Another kube-proxy takes over, without the cloud: it reads the same view, and the pods notice nothing. */
async function changeMode(proof: Proof, mode: ProxyMode, pod: Pod): Promise<void> {
  const { context, node, findings } = proof
  const told = await node.toldProxy()
  const isShown = told.includes(node.machine.address) && !told.includes(nowhere)
  findings.check(isShown, `a kube-proxy in ${mode.name} mode is told that the edge is the API server`, told)
  const why = await mode.rules(node.machine).then(
    () => undefined,
    (error: Error) => error.message.trim().split('\n').at(-1),
  )
  if (why !== undefined) return findings.note(`kube-proxy in ${mode.name} mode was left out: ${why}`)
  context.progress(`kube-proxy in ${mode.name} mode instead`)
  await node.kill('proxy')
  await node.forgetRules()
  await node.startProxy(mode)
  await holds(proof, `without the cloud kube-proxy in ${mode.name} mode leads the service to the edge`, () =>
    node.isLedHere(mode),
  )
  const { clusterIP } = await serviceOf(proof.oracle)
  const next = node.startPod(mode.name, clusterIP)
  await stateOf(proof, `behind it (${mode.name}) a pod begins without the cloud`, next, ({ synced }) => synced)
  await isJudged(proof, `and the one that runs is judged on (${mode.name})`, pod)
  findings.equal((await pod())?.lists, 1, `without having listed again (${mode.name})`)
}

/** Waits for it; what does not come is one finding, and the rest cannot be looked at. */
async function holds({ context, findings }: Proof, what: string, look: () => Promise<boolean>): Promise<void> {
  const started = performance.now()
  await until(look, `${what} (see ${context.dir})`, { ...waiting, signal: context.signal })
  findings.check(true, what)
  findings.note(`${what}: after ${((performance.now() - started) / 1000).toFixed(1)} s`)
}

async function stateOf(proof: Proof, what: string, pod: Pod, is: (now: PodState) => boolean): Promise<PodState> {
  let last: PodState | undefined
  await holds(proof, what, async () => {
    last = await pod()
    return last !== undefined && is(last)
  }).catch((error: Error) => {
    throw new Error(`${error.message}; the pod says ${JSON.stringify(last)}`)
  })
  return last as PodState
}

async function serviceOf(oracle: Oracle): Promise<{ clusterIP: string }> {
  const { body } = await ask(oracle, '/api/v1/namespaces/default/services/kubernetes')
  return (JSON.parse(body) as { spec: { clusterIP: string } }).spec
}

/** What other steps on the same API server would stumble over. */
const shared = [`${slices}/kubernetes`, `/api/v1/nodes/${nodeName}`, `/api/v1/namespaces/${namespace}`]

/** The node, its pod, and what a cluster has that was installed by kubeadm; answers the pod's uid. */
async function populate(oracle: Oracle, make: Make, { machine }: PodNode): Promise<string> {
  await applyRbac(oracle)
  const addresses = [{ type: 'InternalIP', address: machine.address }]
  await make('/api/v1/nodes', { metadata: { name: nodeName }, status: { addresses } })
  await make('/api/v1/namespaces', { metadata: { name: namespace } })
  // No controllers run: this is what they would publish.
  await make(maps, { metadata: { name: 'kube-root-ca.crt' }, data: { 'ca.crt': oracle.ca } })
  await make(slices, {
    metadata: { name: 'kubernetes', labels: { 'kubernetes.io/service-name': 'kubernetes' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: [nowhere], conditions: { ready: true } }],
    ports: [{ name: 'https', port: 6443, protocol: 'TCP' }],
  })
  const roles = '/apis/rbac.authorization.k8s.io/v1'
  const apiGroup = 'rbac.authorization.k8s.io'
  await ask(oracle, '/api/v1/namespaces/kube-system/serviceaccounts', {
    method: 'POST',
    body: { metadata: { name: 'kube-proxy' } },
  })
  await ask(oracle, `${roles}/clusterrolebindings`, {
    method: 'POST',
    body: {
      metadata: { name: 'in-cluster-proxier' },
      roleRef: { apiGroup, kind: 'ClusterRole', name: 'system:node-proxier' },
      subjects: [{ kind: 'ServiceAccount', name: 'kube-proxy', namespace: 'kube-system' }],
    },
  })
  await make(`/api/v1/namespaces/${namespace}/serviceaccounts`, { metadata: { name: account } })
  const verbs = ['get', 'list', 'watch', 'create', 'update']
  await make(`${roles}/namespaces/${namespace}/roles`, {
    metadata: { name: account },
    rules: [{ apiGroups: [''], resources: ['configmaps'], verbs }],
  })
  await make(`${roles}/namespaces/${namespace}/rolebindings`, {
    metadata: { name: account },
    roleRef: { apiGroup, kind: 'Role', name: account },
    subjects: [{ kind: 'ServiceAccount', name: account, namespace }],
  })
  const spec = { nodeName, serviceAccountName: account, containers: [{ name: 'main', image: 'none' }] }
  const pod = await make(`/api/v1/namespaces/${namespace}/pods`, { metadata: { name: 'pod' }, spec })
  return pod.metadata.uid
}
