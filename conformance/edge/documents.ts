/**
 * Documents through an edge while definitions come and go: each is read directly and then through the edge, every 20 ms. What
 * the API server has said the edge must not contradict with something older, and what it has taken back does not return.
 */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { until } from '../../src/base/until.test-support.ts'
import { type Answer, Side } from '../exchange.ts'
import { standBetween } from '../hubs.ts'
import { ask, type Oracle } from '../oracle.ts'
import type { Step, StepContext, StepResult } from '../step.ts'
import { startEdge } from './edge.ts'

export const step: Step = { name: 'edge-documents', tier: 'default', minutes: 2, run: (context) => run(context, false) }

/** The same through a hub. */
export const hubStep: Step = { name: 'hub-documents', tier: 'all', minutes: 3, run: (context) => run(context, true) }

const group = 'moments.example.com'
const rounds = 3
/** kube-apiserver publishes OpenAPI of a definition within some seconds, and takes it back so. */
const watchedMs = 8_000
const everyMs = 20
const reachableMsMax = 30_000
const goneMsMax = 60_000

const json = 'application/json'
const aggregated = `${json};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,${json}`
const documents: readonly (readonly [path: string, accept: string])[] = [
  [`/apis/${group}/v1`, json],
  [`/apis/${group}/v1`, 'application/vnd.kubernetes.protobuf'],
  [`/apis/${group}`, json],
  ['/apis', json],
  ['/apis', aggregated],
  ['/openapi/v2', json],
  ['/openapi/v3', json],
  [`/openapi/v3/apis/${group}/v1`, json],
]

const definition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `moments.${group}` },
  spec: {
    group,
    scope: 'Namespaced',
    names: { plural: 'moments', singular: 'moment', kind: 'Moment' },
    versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
  },
}
const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'

/** What one side said about one document, in order; `edge` entries follow the direct one that was there before them. */
type Seen = { readonly edge: boolean; readonly state: string; readonly warned: boolean }

async function run({ dir, signal, oracle: started }: StepContext, isBehindHub: boolean): Promise<StepResult> {
  const oracle = await started()
  const between = isBehindHub ? await standBetween({ dir, oracle, signal }) : undefined
  const way = between?.way ?? { server: oracle.url, kubeconfig: oracle.kubeconfig }
  const edge = await startEdge({ dir: join(dir, 'edge'), ...way, signal })
  const sides = [new Side(oracle), new Side(edge)] as const
  try {
    await untilReachable(sides[1])
    const ending = new AbortController()
    const following = documents.map(([path, accept]) => follow(sides, path, accept, ending.signal))
    for (let round = 0; round < rounds; round++) {
      await pause(watchedMs / 4)
      await change(oracle, 'POST', definitions)
      await pause(watchedMs)
      await change(oracle, 'DELETE', `${definitions}/moments.${group}`)
      // A busy API server takes its time to finish the definition's objects off: until then it cannot be made again.
      const isGone = async () => (await ask(oracle, `${definitions}/moments.${group}`)).status === 404
      await until(isGone, 'the definition is gone', { withinMs: goneMsMax, everyMs: 100, signal })
      await pause(watchedMs)
    }
    ending.abort()
    const seen = await Promise.all(following)
    const notes = seen.flatMap((one, at) => faultsOf(one, (documents[at] ?? []).join(' ')))
    const failed = seen.filter((one) => faultsOf(one, '').length > 0).length
    const count = seen.flat().filter((one) => one.edge).length
    const warned = seen.flat().filter((one) => one.warned).length
    const figures = `${count} answers through the edge, ${warned} of them late and said to be`
    return { passed: seen.length - failed, failed, notes: [figures, ...notes] }
  } finally {
    for (const side of sides) side.close()
    await edge.kill()
    await between?.stop()
  }
}

async function follow(sides: readonly [Side, Side], path: string, accept: string, signal: AbortSignal) {
  const seen: Seen[] = []
  const etags = ['', '']
  while (!signal.aborted) {
    for (const [at, side] of sides.entries()) {
      const tag: Record<string, string> = etags[at] === '' ? {} : { 'if-none-match': etags[at] as string }
      const answer = await side.exchange({ name: '', method: 'GET', path, headers: { accept, ...tag } }, new Map())
      etags[at] = answer.status === 404 ? '' : String(answer.headers.etag ?? etags[at])
      seen.push({ edge: at === 1, state: stateOf(answer), warned: answer.headers.warning !== undefined })
    }
    await pause(everyMs)
  }
  return seen
}

/** A 304 is the state of its ETag; what has none is told by its bytes. */
function stateOf({ status, headers, body }: Answer): string {
  if (headers.etag !== undefined) return String(headers.etag)
  return `${status} ${createHash('sha256').update(body).digest('base64url').slice(0, 12)}`
}

/** An answer of the edge is wrong if it is one that the API server had given up before it was asked for. */
function faultsOf(seen: readonly Seen[], name: string): string[] {
  const faults: string[] = []
  const direct = seen.map((one) => (one.edge ? undefined : one.state))
  for (const [at, { edge, state, warned }] of seen.entries()) {
    if (!edge || warned || direct.indexOf(state, at - 1) >= 0) continue
    // Between two direct answers there may be one that only the edge saw, but none that was there before.
    if (direct.lastIndexOf(state, at - 1) >= 0) faults.push(`${name}: answer ${at} is the older ${state}`)
  }
  return faults.slice(0, 3)
}

async function change(oracle: Oracle, method: 'POST' | 'DELETE', path: string): Promise<void> {
  const { status, body } = await ask(oracle, path, { method, ...(method === 'POST' ? { body: definition } : {}) })
  if (status >= 300) throw new Error(`${method} ${path}: ${status} ${body}`)
}

async function untilReachable(side: Side): Promise<void> {
  const give = performance.now() + reachableMsMax
  const path = '/api/v1/namespaces/default'
  while ((await side.exchange({ name: '', method: 'GET', path, headers: {} }, new Map())).status !== 200) {
    if (performance.now() > give) throw new Error('the edge does not find its API server')
    await pause(everyMs)
  }
}
