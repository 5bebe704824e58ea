/**
 * How many requests does the API server get in an hour of a node on which nothing happens, with a kubelet and 20 pods? A
 * kubelet (kubemark's, the real code over a runtime that does nothing) behind an edge, and one without, at the same
 * kube-apiserver and the same time; counted by its audit log, reviews and all.
 */

import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type Hollow, prepareHollow } from '../../conformance/hollow/node.ts'
import { writeKubeconfig } from '../../conformance/kubeconfig.ts'
import { ask, type Oracle, startOracle } from '../../conformance/oracle.ts'
import { applyRbac, creatorOf } from '../../conformance/rights/objects.ts'
import { isBuilt } from '../apiserver.ts'
import type { Question, Target } from '../bench.ts'
import { startEdge } from './edge.ts'

const podCount = 20
const startedMsMax = 180_000
const askAgainMs = 1_000
/** In which documents are fetched and what was asked for the first time is asked again. */
const settleMs = 120_000
/** A lease is renewed every 10 s, a node reports every five minutes, a watch lasts five to ten. */
const measuredMs = 360_000
const hourMs = 3_600_000
const rowsShown = 15
/** As many as before roles were evaluated and certificates confirmed by what is done with them. */
const perHourMax = 1_700

const nodes = { edge: 'behind-edge', direct: 'direct' } as const
const namespace = 'idle'

export const edgeidle: Question = {
  name: 'edgeidle',
  ask: async ({ say }) => {
    if (!(await isBuilt('kube-apiserver', 'etcd', 'kubectl', 'kube-controller-manager', 'kubemark'))) return []
    const dir = await mkdtemp(join(tmpdir(), 'ake-edgeidle-'))
    const audit = join(dir, 'audit.log')
    const policy = join(dir, 'policy.json')
    await writeFile(policy, JSON.stringify(auditPolicy))
    const extraArgs = [`--audit-policy-file=${policy}`, `--audit-log-path=${audit}`, '--audit-log-maxsize=1000']
    const oracle = await startOracle({ dir: join(dir, 'oracle'), controllers: true, extraArgs })
    const ended: (() => Promise<unknown>)[] = []
    try {
      await applyRbac(oracle)
      await makePods(oracle)
      const { edge, kubelets } = await startNodes(oracle, dir)
      ended.push(...kubelets.map((kubelet) => () => kubelet.end()), () => edge.stop())
      await untilRunning(oracle, kubelets)
      await pause(settleMs)
      const from = Date.now()
      await pause(measuredMs)
      const seen = requestsIn(audit, from, from + measuredMs)
      const perHour = (count: number) => Math.round((count * hourMs) / measuredMs)
      for (const [side, rows] of Object.entries(seen)) {
        say(`  ${side}, requests an hour:`)
        const most = [...rows].sort(([, one], [, other]) => other - one)
        for (const [what, count] of most.slice(0, rowsShown)) say(`    ${String(perHour(count)).padStart(6)} ${what}`)
      }
      const total = (rows: Counts) => perHour([...rows.values()].reduce((sum, count) => sum + count, 0))
      return [
        {
          name: 'edge, requests to the API server of an idle node with 20 pods',
          unit: 'requests an hour',
          measured: { ake: total(seen.ake), 'without the edge': total(seen['without the edge']) },
          atMost: perHourMax,
        },
      ]
    } finally {
      for (const end of ended) await end()
      oracle.stop()
      await rm(dir, { recursive: true, force: true })
    }
  },
}

/** Every request once, by who and what. */
const auditPolicy = {
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  omitStages: ['ResponseStarted', 'ResponseComplete', 'Panic'],
  rules: [{ level: 'Metadata' }],
}

type Counts = Map<string, number>

type AuditEvent = {
  readonly requestReceivedTimestamp: string
  readonly verb: string
  readonly requestURI: string
  readonly user: { readonly username: string }
  readonly sourceIPs?: readonly string[]
  readonly objectRef?: { readonly resource?: string; readonly subresource?: string }
}

function requestsIn(file: string, fromMs: number, toMs: number): { ake: Counts; 'without the edge': Counts } {
  const counts = { ake: new Map<string, number>(), 'without the edge': new Map<string, number>() }
  const sides: Readonly<Record<string, keyof typeof counts>> = {
    'edge-1': 'ake',
    [`system:node:${nodes.edge}`]: 'ake',
    [`system:node:${nodes.direct}`]: 'without the edge',
  }
  for (const line of readFileSync(file, 'utf8').split('\n')) {
    if (line === '') continue
    const { requestReceivedTimestamp, verb, requestURI, user, objectRef } = JSON.parse(line) as AuditEvent
    const at = Date.parse(requestReceivedTimestamp)
    const side = sides[user.username] ?? (user.username === 'system:anonymous' ? 'ake' : undefined)
    if (side === undefined || at < fromMs || at >= toMs) continue
    const { resource, subresource } = objectRef ?? {}
    const place = resource === undefined ? requestURI.split('?')[0] : [resource, subresource].filter(Boolean).join('/')
    const what = `${user.username === 'edge-1' ? 'edge' : 'kubelet'} ${verb} ${place}`
    counts[side].set(what, (counts[side].get(what) ?? 0) + 1)
  }
  return counts
}

async function startNodes(oracle: Oracle, dir: string): Promise<{ edge: Target; kubelets: Hollow[] }> {
  const own = await oracle.userCredential('edge-1', ['ake:edges'])
  const behind = await oracle.nodeCredential(nodes.edge)
  const direct = await oracle.nodeCredential(nodes.direct)
  const edge = await startEdge({
    dir: join(dir, 'edge'),
    server: oracle.url,
    kubeconfig: own.kubeconfig,
    args: [
      ...['--node', nodes.edge, '--client-ca', join(oracle.dir, 'ca.crt')],
      ...['--client-credential', `system:node:${nodes.edge}=${behind.certFile},${behind.keyFile}`],
    ],
  })
  const kubeconfig = join(dir, 'behind.kubeconfig')
  await writeKubeconfig(kubeconfig, { url: edge.url, ca: edge.tls.ca, cert: behind.cert, key: behind.key })
  const kubelets = [
    await prepareHollow({ dir: join(dir, nodes.edge), morph: 'kubelet', node: nodes.edge, kubeconfig }),
    await prepareHollow({
      dir: join(dir, nodes.direct),
      morph: 'kubelet',
      node: nodes.direct,
      kubeconfig: direct.kubeconfig,
    }),
  ]
  for (const kubelet of kubelets) kubelet.start()
  return { edge, kubelets }
}

/** Each with what most pods have: a token, the cluster's CA, a Secret and a ConfigMap, of four kinds in a namespace. */
async function makePods(oracle: Oracle): Promise<void> {
  const make = creatorOf(oracle)
  const inNamespace = `/api/v1/namespaces/${namespace}`
  await make('/api/v1/namespaces', { metadata: { name: namespace } })
  for (let kind = 0; kind < 4; kind++) {
    await make(`${inNamespace}/secrets`, { metadata: { name: `key-${kind}` }, stringData: { word: 'x' } })
    await make(`${inNamespace}/configmaps`, { metadata: { name: `settings-${kind}` }, data: { a: 'b' } })
  }
  await untilAccount(oracle)
  for (const node of Object.values(nodes)) {
    for (let at = 0; at < podCount; at++) {
      const volumes = [
        { name: 'key', secret: { secretName: `key-${at % 4}` } },
        { name: 'settings', configMap: { name: `settings-${at % 4}` } },
      ]
      const volumeMounts = volumes.map(({ name }) => ({ name, mountPath: `/${name}` }))
      const containers = [{ name: 'main', image: 'idle', volumeMounts }]
      await make(`${inNamespace}/pods`, {
        metadata: { name: `${node}-${at}` },
        spec: { nodeName: node, volumes, containers },
      })
    }
  }
}

/** Which a controller makes. */
async function untilAccount(oracle: Oracle): Promise<void> {
  const give = performance.now() + startedMsMax
  while ((await ask(oracle, `/api/v1/namespaces/${namespace}/serviceaccounts/default`)).status !== 200) {
    if (performance.now() > give) throw new Error('the controllers make no service account')
    await pause(askAgainMs)
  }
}

async function untilRunning(oracle: Oracle, kubelets: readonly Hollow[]): Promise<void> {
  const give = performance.now() + startedMsMax
  for (;;) {
    const { body } = await ask(oracle, `/api/v1/namespaces/${namespace}/pods`)
    const { items } = JSON.parse(body) as { items: { status: { phase: string } }[] }
    const running = items.filter(({ status }) => status.phase === 'Running').length
    if (running === 2 * podCount) return
    if (kubelets.some(({ ended }) => ended)) throw new Error('a kubelet has ended')
    if (performance.now() > give) throw new Error(`${running} of ${2 * podCount} pods run`)
    await pause(askAgainMs)
  }
}
