/**
 * docs/getting-started.md, followed to the letter against a real control plane: with what its commands have made a kubelet, a
 * kube-proxy (kubemark's) and CoreDNS work through the edge, and start again without the cloud. Then what README prints.
 */
import { copyFile, mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { until } from '../../src/base/until.test-support.ts'
import { buildKubernetes } from '../build.ts'
import { startCoredns } from '../coredns.ts'
import { Findings } from '../findings.ts'
import { type Hollow, prepareHollow } from '../hollow/node.ts'
import { type Oracle, startOracle } from '../oracle.ts'
import { freePorts } from '../ports.ts'
import { creatorOf } from '../rights/objects.ts'
import type { Step, StepContext, StepResult } from '../step.ts'
import { PageShell, readBlocks, readmeLines, shownCheck } from './page.ts'

export const step: Step = { name: 'getting-started', tier: 'default', minutes: 3, run }

const node = 'edge-1'
/** On a busy machine; usually some seconds. */
const waiting = { withinMs: 90_000, everyMs: 250 }
const replaced = /rm -rf .*ake\.db/

async function run(context: StepContext): Promise<StepResult> {
  const { dir, signal, progress } = context
  await mkdir(dir, { recursive: true })
  const { bin } = await buildKubernetes({ only: ['kubectl'], progress })
  const oracle = await startOracle({ dir: join(dir, 'oracle'), controllers: true, signal, progress })
  const [port] = (await freePorts(1)) as [number]
  const shell = new PageShell({ dir, bin, port, kubeconfig: oracle.kubeconfig, signal })
  const ended: (() => Promise<unknown>)[] = [() => shell.stop()]
  const findings = new Findings()
  try {
    await shell.prepare()
    await asKubeadm(oracle)
    const blocks = await readBlocks()
    const reset = blocks.findIndex(({ text }) => replaced.test(text)) - 1
    for (const block of blocks.slice(0, reset)) {
      progress(block.text.split('\n')[0] ?? '')
      await shell.run(block)
      findings.check(true, block.text)
    }
    const proof = { context, oracle, shell, findings, ended, url: `https://127.0.0.1:${port}` }
    await checkClients(proof)
    await checkRights(proof)
    await checkGranting(proof)
    const before = await readFile(shell.path('var/lib/ake/pki/ca.crt'), 'utf8')
    for (const block of blocks.slice(reset)) await shell.run(block)
    findings.equal(await readFile(shell.path('var/lib/ake/pki/ca.crt'), 'utf8'), before, 'a reset keeps the authority')
    const listed = await kubectl(proof, 'coredns', 'get services -A -o name')
    findings.check(listed.includes('service/kubernetes'), 'and with it every client', listed)
    await shell.stop()
    await checkReadme(proof)
    return findings.result
  } finally {
    await Promise.all(ended.map((end) => end()))
    oracle.stop()
  }
}

type Proof = {
  readonly context: StepContext
  readonly oracle: Oracle
  readonly shell: PageShell
  readonly findings: Findings
  readonly ended: (() => Promise<unknown>)[]
  readonly url: string
}

/** What kubeadm makes in every cluster, and the namespaces that the page takes for granted. */
async function asKubeadm(oracle: Oracle): Promise<void> {
  const make = creatorOf(oracle)
  for (const name of ['shop', 'monitoring']) await make('/api/v1/namespaces', { metadata: { name } })
  const account = (namespace: string, name: string) =>
    make(`/api/v1/namespaces/${namespace}/serviceaccounts`, { metadata: { name } })
  const rbac = '/apis/rbac.authorization.k8s.io/v1'
  const bind = (name: string, role: string) =>
    make(`${rbac}/clusterrolebindings`, {
      metadata: { name: `kubeadm-${name}` },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
      subjects: [{ kind: 'ServiceAccount', name, namespace: 'kube-system' }],
    })
  await account('monitoring', 'prometheus')
  await account('kube-system', 'kube-proxy')
  await account('kube-system', 'coredns')
  await bind('kube-proxy', 'system:node-proxier')
  const verbs = ['list', 'watch']
  const rules = [
    { apiGroups: [''], resources: ['endpoints', 'services', 'pods', 'namespaces'], verbs },
    { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs },
  ]
  await make(`${rbac}/clusterroles`, { metadata: { name: 'kubeadm-coredns' }, rules })
  await bind('coredns', 'kubeadm-coredns')
  await make('/api/v1/namespaces/shop/secrets', { metadata: { name: 'word' }, stringData: { word: 'sesame' } })
}

/** With the cloud, then everything is killed and starts again without it. */
async function checkClients(proof: Proof): Promise<void> {
  const { context, oracle, shell, findings, ended } = proof
  const { dir, progress, signal } = context
  const kubeconfig = (name: string) => shell.path(`etc/ake/${name}.kubeconfig`)
  const hollow = (morph: 'kubelet' | 'proxy', name: string) =>
    prepareHollow({ dir, morph, node, kubeconfig: kubeconfig(name) })
  const kubelet = await hollow('kubelet', 'kubelet')
  const proxy = await hollow('proxy', 'kube-proxy')
  ended.push(
    () => kubelet.end(),
    () => proxy.end(),
  )
  const dns = () => startCoredns({ dir: join(dir, 'coredns'), kubeconfig: kubeconfig('coredns'), signal })
  const name = 'kubernetes.default.svc.cluster.local'
  kubelet.start()
  proxy.start()
  await isTrue(findings, 'the node is Ready', async () => {
    const told = await proof.shell.command(
      `kubectl get node ${node} -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}'`,
    )
    return told === 'True'
  })
  await creatorOf(oracle)('/api/v1/namespaces/shop/pods', pod)
  const started = () => startedPods(kubelet)
  await isTrue(findings, 'a pod with a Secret runs', started)
  await isTrue(findings, 'kube-proxy has its services', () => isSynced(proxy))
  const first = await dns()
  findings.equal(await first.resolve(name), ['10.96.0.1'], 'CoreDNS resolves')
  await first.stop()
  await checkCheck(proof)

  progress('the cloud dies, and the node is started again without it')
  await oracle.kill()
  await Promise.all([kubelet.end(), proxy.end(), shell.stop()])
  await shell.start()
  kubelet.start()
  proxy.start()
  await isTrue(findings, 'without the cloud the pod with a Secret runs again', started)
  await isTrue(findings, 'without the cloud kube-proxy has its services', () => isSynced(proxy))
  const shown: string[] = []
  const second = await dns()
  findings.equal(await second.resolve(name), ['10.96.0.1'], 'without the cloud CoreDNS resolves')
  await second.stop()
  for (const block of await readBlocks()) if (block.place === 'offline') shown.push(await shell.command(block.text))
  findings.check(shown.join().includes('full'), 'without the cloud the pods of the node can be listed', shown)
  await Promise.all([kubelet.end(), proxy.end()])
  await oracle.restart()
}

/** What the page shows, but for its figures. */
async function checkCheck({ shell, findings }: Proof): Promise<void> {
  const figures = (text: string) => text.replaceAll(/\d+\w*/g, 'N').replaceAll(/\s+/g, ' ')
  const [block] = (await readBlocks()).filter(({ place }) => place === 'check')
  let printed = ''
  await isTrue(findings, 'ake check says yes', async () => {
    printed = await shell.command(block?.text ?? '')
    return true
  })
  findings.equal(figures(printed), figures(await shownCheck()), `and prints what the page shows:\n${printed}`)
}

/** A namespace whose Secrets the edge may not read: what `ake check` prints is pasted, and grants it. */
async function checkGranting({ oracle, shell, findings }: Proof): Promise<void> {
  const make = creatorOf(oracle)
  await make('/api/v1/namespaces', { metadata: { name: 'other' } })
  await make('/api/v1/namespaces/other/secrets', { metadata: { name: 'word' }, stringData: { word: 'sesame' } })
  const spec = { ...pod.spec, automountServiceAccountToken: false }
  await make('/api/v1/namespaces/other/pods', { metadata: { name: 'lacking' }, spec })
  const check = () => shell.command('bin/ake check --data /var/lib/ake || true')
  let printed = ''
  await isTrue(findings, 'ake check names a right that is missing', async () => {
    printed = await check()
    return /^rights +FAILED/m.test(printed) && printed.includes('kubectl create role')
  })
  const commands = printed.split('\n').flatMap((line, at, all) => {
    const isCommand = line.startsWith('kubectl ') || all[at - 1]?.endsWith('\\')
    return isCommand ? [line] : []
  })
  await shell.command(commands.join('\n'))
  await isTrue(findings, 'what it prints grants it', async () => {
    const now = await check()
    return /^rights +ok/m.test(now) && /^names +ok/m.test(now)
  })
}

/** The token of section "A token instead", and who may see metrics. */
async function checkRights(proof: Proof): Promise<void> {
  const { shell, findings, url } = proof
  const listed = await shell.command('kubectl --kubeconfig edge-2.kubeconfig get nodes -o name')
  findings.equal(listed.trim(), `node/${node}`, 'a token of ake-edges may read what edges may')
  const refused = await shell.command('kubectl --kubeconfig edge-2.kubeconfig delete node edge-1 2>&1 || true')
  findings.check(refused.includes('forbidden'), 'and write nothing', refused)
  const scraped = async (namespace: string, account: string) => {
    const asked = `curl -s -o /dev/null -w '%{http_code}' --cacert /var/lib/ake/pki/ca.crt ${url}/metrics`
    return shell.command(`${asked} -H "Authorization: Bearer $(kubectl -n ${namespace} create token ${account})"`)
  }
  await isTrue(findings, 'prometheus may scrape', async () => (await scraped('monitoring', 'prometheus')) === '200')
  findings.equal(await scraped('kube-system', 'coredns'), '403', 'and no other')
}

/** The commands for a real cluster: then the plug is pulled and the edge started again, and the same pods are printed. */
async function checkReadme({ context, oracle, shell, findings, ended }: Proof): Promise<void> {
  const { edge, look } = await readmeLines()
  const home = join(context.dir, 'home')
  await mkdir(join(home, '.kube'), { recursive: true })
  await copyFile(oracle.kubeconfig, join(home, '.kube', 'config'))
  const pods = async () => (await shell.command(look)).split('\n').map((line) => line.split(/ +/, 4).join(' '))
  const first = await shell.startLine(edge, home)
  ended.push(first.stop)
  const seen = await pods()
  findings.check(seen.join().includes('shop full'), 'README: the pods are printed', seen)
  await oracle.kill()
  await first.stop()
  const second = await shell.startLine(edge, home)
  ended.push(second.stop)
  findings.equal(await pods(), seen, 'README: the same pods without the cloud, after a restart')
}

async function isTrue(findings: Findings, what: string, holds: () => Promise<boolean>): Promise<void> {
  const found = await until(() => holds().catch(() => false), what, waiting).then(
    () => true,
    () => false,
  )
  if (!findings.check(found, what)) throw new Error(`in vain: ${what}`)
}

/** By the runtime's own word since the kubelet's start: by the API's the pod is Running all the time. */
async function startedPods(kubelet: Hollow): Promise<boolean> {
  return /"Type":"ContainerStarted","Data":"full_/.test(await kubelet.said())
}

async function isSynced(proxy: Hollow): Promise<boolean> {
  const said = await proxy.said()
  const synced = ['service config', 'endpoint slice config'].map((cache) => `"Caches are synced" controller="${cache}"`)
  return synced.every((line) => said.includes(line)) && said.includes('Calling handler.OnServiceAdd')
}

/** As one of the clients, through the edge, with the kubeconfig that the page has made for it. */
function kubectl({ shell }: Proof, client: string, words: string): Promise<string> {
  return shell.command(`kubectl --kubeconfig /etc/ake/${client}.kubeconfig ${words} 2>&1`)
}

/** Bound to the node at once: no scheduler runs. */
const pod = {
  metadata: { name: 'full' },
  spec: {
    nodeName: node,
    volumes: [{ name: 'word', secret: { secretName: 'word' } }],
    containers: [{ name: 'main', image: 'hollow', volumeMounts: [{ name: 'word', mountPath: '/word' }] }],
  },
}
