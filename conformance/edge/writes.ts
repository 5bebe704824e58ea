/**
 * Read your writes through an edge, against a real API server: each verb is followed at once by a LIST through the edge,
 * hundreds of times, and none may show the state before. Then what an edge must not wait for, and headers that repeat.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { until } from '../../src/base/until.test-support.ts'
import { type Asked, Seat } from '../asking.ts'
import { buildKubernetes } from '../build.ts'
import { Findings } from '../findings.ts'
import { standBetween } from '../hubs.ts'
import { ask, startOracle } from '../oracle.ts'
import type { Step, StepContext, StepResult } from '../step.ts'
import { startEdge } from './edge.ts'

export const step: Step = { name: 'edge-writes', tier: 'default', minutes: 4, run: (context) => run(context, false) }

/** The same through a hub. */
export const hubStep: Step = { name: 'hub-writes', tier: 'all', minutes: 5, run: (context) => run(context, true) }

const rounds = 200
/** A reply that is held in vain takes 2 s; one that is not takes milliseconds, on a busy machine some hundred. */
const inVainMs = 1_500
const tries = 20
const reachableMsMax = 30_000

const namespace = 'edge-writes'
const core = `/api/v1/namespaces/${namespace}`
const maps = `${core}/configmaps`
const pods = `${core}/pods`
const deployments = `/apis/apps/v1/namespaces/${namespace}/deployments`
const mergePatch = { 'content-type': 'application/merge-patch+json' }
const strategic = { 'content-type': 'application/strategic-merge-patch+json' }

type Listed = {
  readonly metadata: { readonly name: string; readonly deletionTimestamp?: string }
  readonly data?: Readonly<Record<string, string>>
  readonly status?: { readonly observedGeneration?: number }
  readonly spec?: {
    readonly replicas?: number
    readonly nodeName?: string
    readonly finalizers?: readonly string[]
    readonly ephemeralContainers?: readonly object[]
    readonly containers?: readonly { readonly resources: { readonly requests: { readonly cpu: string } } }[]
  }
}

/** One round of a verb: what is there before, the write, and whether a list shows it. */
type Verb = {
  readonly name: string
  readonly list: string
  prepare?(seat: Seat, round: number): Promise<void>
  write(seat: Seat, round: number): Promise<void>
  isShown(items: readonly Listed[], round: number): boolean
}

async function run(context: StepContext, isBehindHub: boolean): Promise<StepResult> {
  const { dir, signal, progress, only } = context
  const findings = new Findings()
  const oracle = await startOracle({ dir: join(dir, 'oracle'), signal, progress })
  const between = isBehindHub ? await standBetween({ dir, oracle, signal }) : undefined
  const way = between?.way ?? { server: oracle.url, kubeconfig: oracle.kubeconfig }
  const edge = await startEdge({ dir: join(dir, 'edge'), ...way, signal })
  const seat = new Seat(edge, edge)
  const part = async (name: string, body: () => Promise<void>) => {
    if (!only(name)) return
    progress(name)
    await findings.part(name, body)
  }
  try {
    for (const [path, name] of [['/api/v1/namespaces', namespace] as const, [`${core}/serviceaccounts`, 'default']]) {
      await ask(oracle, path, { method: 'POST', body: { metadata: { name } } })
    }
    const isReachable = async () => /"state":"reachable"/.test((await ask(edge, '/ake/status')).body)
    await until(isReachable, 'the edge reaches its API server', { withinMs: reachableMsMax, everyMs: 100, signal })
    for (const verb of verbs) await part(verb.name, () => proveVerb(verb, seat, findings))
    await part('in vain', () => proveNotInVain(seat, findings))
    // A hub passes on no impersonation by the administrator of an edge; fleet-callers compares that of other callers.
    if (!isBehindHub)
      await part('headers', async () => {
        const { bin } = await buildKubernetes({ only: ['kubectl'], progress })
        const said = (kubeconfig: string) => whoami(join(bin, 'kubectl'), kubeconfig, dir)
        findings.equal(
          await said(edge.kubeconfig),
          await said(oracle.kubeconfig),
          'kubectl auth whoami as somebody else',
        )
      })
  } finally {
    seat.close()
    await edge.kill()
    await between?.stop()
    oracle.stop()
  }
  return findings.result
}

async function proveVerb(verb: Verb, seat: Seat, findings: Findings): Promise<void> {
  // A list of the latest version is answered from the copy from here on.
  await list(seat, `${verb.list}${verb.list.includes('?') ? '&' : '?'}resourceVersion=0`)
  let stale = 0
  for (let round = 0; round < rounds; round++) {
    await verb.prepare?.(seat, round)
    await verb.write(seat, round)
    if (!verb.isShown(await list(seat, verb.list), round)) stale++
  }
  findings.equal(stale, 0, `${verb.name}: lists that showed the state before, of ${rounds}`)
}

async function proveNotInVain(seat: Seat, findings: Findings): Promise<void> {
  await must(seat, pods, { method: 'POST', body: pod('tried') })
  await must(seat, maps, { method: 'POST', body: { metadata: { name: 'tried' }, data: { a: 'b' } } })
  await list(seat, `${maps}?resourceVersion=0`)
  const options = { dryRun: ['All'] }
  const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'tried' }, deleteOptions: options }
  const rows: [string, string, Asked][] = [
    ['a deletion that is tried', `${maps}/tried`, { method: 'DELETE', body: options }],
    ['a collection that is tried', `${maps}?fieldSelector=metadata.name%3Dtried`, { method: 'DELETE', body: options }],
    ['an eviction that is tried', `${pods}/tried/eviction`, { method: 'POST', body: eviction }],
    ['a patch of nothing', `${maps}/tried`, { method: 'PATCH', headers: mergePatch, body: { data: { a: 'b' } } }],
    ['a scale that is there', `${deployments}/scaled/scale`, { method: 'PATCH', headers: mergePatch, body: {} }],
  ]
  for (const [what, path, asked] of rows) {
    let slow = 0
    for (let at = 0; at < tries; at++) {
      const startedMs = performance.now()
      await seat.ask(path, asked)
      if (performance.now() - startedMs > inVainMs) slow++
    }
    findings.equal(slow, 0, `${what}: replies that were held, of ${tries}`)
  }
}

async function whoami(kubectl: string, kubeconfig: string, home: string): Promise<string> {
  const who = ['--as=jürgen', '--as-group=g1', '--as-group=g2', '--as-group=a, b', '--as-uid=7', '--as-user-extra=s=1']
  const line = [...who, '--as-user-extra=s=2', 'auth', 'whoami', '-o', 'jsonpath={.status.userInfo}']
  const env = { HOME: home, KUBECONFIG: kubeconfig, KUBECTL_KUBERC: 'false' }
  const child = spawn(kubectl, line, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text: Buffer) => (said += text))
  await once(child, 'close')
  return said
}

function pod(name: string, labels = {}): object {
  const resources = { requests: { cpu: '10m', memory: '10Mi' } }
  const containers = [{ name: 'c', image: 'none.invalid/none', resources }]
  return { metadata: { name, labels }, spec: { containers, automountServiceAccountToken: false } }
}

async function list(seat: Seat, path: string): Promise<Listed[]> {
  const { status, body } = await seat.ask(path)
  if (status !== 200) throw new Error(`GET ${path}: ${status} ${body}`)
  return (JSON.parse(body) as { items: Listed[] }).items
}

async function must(seat: Seat, path: string, asked: Asked): Promise<void> {
  const { status, body } = await seat.ask(path, asked)
  if (status > 299) throw new Error(`${asked.method} ${path}: ${status} ${body}`)
}

const named = (items: readonly Listed[], name: string) => items.find(({ metadata }) => metadata.name === name)

/** Makes an object once; what is there from an earlier round stays. */
const made = async (seat: Seat, path: string, body: object): Promise<void> => {
  const { status, body: said } = await seat.ask(path, { method: 'POST', body })
  if (status !== 201 && status !== 409) throw new Error(`POST ${path}: ${status} ${said}`)
}

const deployment = {
  metadata: { name: 'scaled' },
  spec: {
    replicas: 0,
    selector: { matchLabels: { app: 'x' } },
    template: { metadata: { labels: { app: 'x' } }, spec: { containers: [{ name: 'c', image: 'none.invalid/none' }] } },
  },
}

const verbs: readonly Verb[] = [
  {
    name: 'create',
    list: maps,
    write: (seat, round) => must(seat, maps, { method: 'POST', body: { metadata: { name: `made-${round}` } } }),
    isShown: (items, round) => named(items, `made-${round}`) !== undefined,
  },
  {
    name: 'create into a selector',
    list: `${maps}?labelSelector=app%3Dselected`,
    write: (seat, round) => {
      const metadata = { name: `selected-${round}`, labels: { app: 'selected' } }
      return must(seat, maps, { method: 'POST', body: { metadata } })
    },
    isShown: (items, round) => named(items, `selected-${round}`) !== undefined,
  },
  {
    name: 'patch',
    list: maps,
    prepare: (seat) => made(seat, maps, { metadata: { name: 'patched' } }),
    write: (seat, round) => {
      return must(seat, `${maps}/patched`, { method: 'PATCH', headers: mergePatch, body: { data: { at: `${round}` } } })
    },
    isShown: (items, round) => named(items, 'patched')?.data?.at === `${round}`,
  },
  {
    name: 'status',
    list: deployments,
    prepare: (seat) => made(seat, deployments, deployment),
    write: (seat, round) => {
      const body = { status: { observedGeneration: round + 1 } }
      return must(seat, `${deployments}/scaled/status`, { method: 'PATCH', headers: mergePatch, body })
    },
    isShown: (items, round) => named(items, 'scaled')?.status?.observedGeneration === round + 1,
  },
  {
    name: 'scale',
    list: deployments,
    prepare: (seat) => made(seat, deployments, deployment),
    write: (seat, round) => {
      const body = { spec: { replicas: round + 1 } }
      return must(seat, `${deployments}/scaled/scale`, { method: 'PATCH', headers: mergePatch, body })
    },
    isShown: (items, round) => named(items, 'scaled')?.spec?.replicas === round + 1,
  },
  {
    name: 'ephemeralcontainers',
    list: pods,
    prepare: (seat, round) => must(seat, pods, { method: 'POST', body: pod(`debugged-${round}`) }),
    write: (seat, round) => {
      const body = { spec: { ephemeralContainers: [{ name: 'debug', image: 'none.invalid/none' }] } }
      const path = `${pods}/debugged-${round}/ephemeralcontainers`
      return must(seat, path, { method: 'PATCH', headers: strategic, body })
    },
    isShown: (items, round) => named(items, `debugged-${round}`)?.spec?.ephemeralContainers?.length === 1,
  },
  {
    name: 'resize',
    list: pods,
    prepare: (seat) => made(seat, pods, pod('resized')),
    write: (seat, round) => {
      const resources = { requests: { cpu: `${20 + round}m` } }
      const body = { spec: { containers: [{ name: 'c', resources }] } }
      return must(seat, `${pods}/resized/resize`, { method: 'PATCH', headers: strategic, body })
    },
    isShown: (items, round) => {
      return named(items, 'resized')?.spec?.containers?.[0]?.resources.requests.cpu === `${20 + round}m`
    },
  },
  {
    name: 'binding',
    list: pods,
    prepare: (seat, round) => must(seat, pods, { method: 'POST', body: pod(`bound-${round}`) }),
    write: (seat, round) => {
      const body = { metadata: { name: `bound-${round}` }, target: { kind: 'Node', name: 'n1' } }
      return must(seat, `${pods}/bound-${round}/binding`, { method: 'POST', body })
    },
    isShown: (items, round) => named(items, `bound-${round}`)?.spec?.nodeName === 'n1',
  },
  {
    name: 'eviction',
    list: pods,
    prepare: (seat, round) => must(seat, pods, { method: 'POST', body: pod(`evicted-${round}`) }),
    write: (seat, round) => evict(seat, `evicted-${round}`),
    isShown: (items, round) => named(items, `evicted-${round}`) === undefined,
  },
  {
    name: 'eviction with grace',
    list: pods,
    // No kubelet is there to end it.
    prepare: async (seat, round) => {
      await made(seat, pods, pod(`graced-${round}`))
      const body = { metadata: { name: `graced-${round}` }, target: { kind: 'Node', name: 'n1' } }
      await must(seat, `${pods}/graced-${round}/binding`, { method: 'POST', body })
    },
    write: (seat, round) => evict(seat, `graced-${round}`),
    isShown: (items, round) => named(items, `graced-${round}`)?.metadata.deletionTimestamp !== undefined,
  },
  {
    name: 'delete',
    list: maps,
    prepare: (seat, round) => must(seat, maps, { method: 'POST', body: { metadata: { name: `gone-${round}` } } }),
    write: (seat, round) => must(seat, `${maps}/gone-${round}`, { method: 'DELETE' }),
    isShown: (items, round) => named(items, `gone-${round}`) === undefined,
  },
  {
    name: 'deletecollection',
    list: maps,
    prepare: async (seat, round) => {
      for (let at = 0; at < 3; at++) {
        const metadata = { name: `many-${round}-${at}`, labels: { app: 'many' } }
        const finalizers = at === 0 ? { finalizers: ['example.com/stays'] } : {}
        await must(seat, maps, { method: 'POST', body: { metadata: { ...metadata, ...finalizers } } })
      }
    },
    write: (seat) => must(seat, `${maps}?labelSelector=app%3Dmany`, { method: 'DELETE' }),
    isShown: (items, round) => {
      const left = items.filter(({ metadata }) => metadata.name.startsWith(`many-${round}-`))
      return left.length === 1 && left[0]?.metadata.deletionTimestamp !== undefined
    },
  },
  {
    name: 'finalize',
    list: '/api/v1/namespaces',
    prepare: (seat) => made(seat, '/api/v1/namespaces', { metadata: { name: 'edge-writes-final' } }),
    write: (seat, round) => {
      const finalizers = ['kubernetes', `example.com/f${round}`]
      const body = { kind: 'Namespace', metadata: { name: 'edge-writes-final' }, spec: { finalizers } }
      return must(seat, '/api/v1/namespaces/edge-writes-final/finalize', { method: 'PUT', body })
    },
    isShown: (items, round) => {
      return named(items, 'edge-writes-final')?.spec?.finalizers?.includes(`example.com/f${round}`) === true
    },
  },
]

function evict(seat: Seat, name: string): Promise<void> {
  const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name } }
  return must(seat, `${pods}/${name}/eviction`, { method: 'POST', body })
}
