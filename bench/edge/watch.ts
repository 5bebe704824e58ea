/**
 * How much later does an event come through an edge than from the API server itself, and what does it cost the edge? The same
 * events are watched on both ways by one process. Up to 100 a second they come from kube-apiserver, where it is there;
 * at 1,000 a second, which it cannot do beside all the others on two cores, from the stand-in.
 */

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { writeKubeconfig } from '../../conformance/kubeconfig.ts'
import type { Address, Bench, Figure, Question, Target } from '../bench.ts'
import { connectTo } from '../client.ts'
import { makePods, nodeName, podCount } from '../fixture.ts'
import { cpuExactMs, writtenBytes } from '../process.ts'
import { watchMany } from '../reader.ts'
import { writeSteadily } from '../writer.ts'
import { startEdge, untilSynced } from './edge.ts'
import { startRelay } from './relay.ts'
import { type CloudUpstream, startCloud } from './upstream.ts'

const slowRates = [5, 20, 100]
const fastRate = 1_000

/** Enough events for a p99 that is not the worst of all, at the rates where that is possible. */
const sendForMs = 8_000

/** For the last event of a rate to arrive, and for what a rate leaves behind on the disk. */
const arriveWithinMs = 10_000
const settleMs = 1_500
const pollMs = 20

/** An edge runs for weeks: what compiling its code costs in the first seconds of a process is no cost of an event. */
const warmUpPerSecond = 500

/** What an edge does without events: probes, PINGs and its own bookkeeping. Taken off. */
const idleMs = 4_000
/** After a start, until what loading left behind is collected. */
const startedMs = 5_000

/** An edge fetches the documents of discovery one by one in its first minute: that is no cost of events. */
const firstMinuteMs = 60_000

const node = nodeName(7)
export const scopes = [
  { name: "one node's pods", node, query: `?fieldSelector=spec.nodeName%3D${node}` },
  { name: '5,000 pods', node: undefined, query: '' },
] as const

export type Scope = (typeof scopes)[number]

/** Where events come from; `send` resolves with how many were sent. */
type Origin = {
  readonly name: string
  readonly at: Address
  readonly kubeconfig: string
  readonly perSecondMax: number
  send(perSecond: number, scope: Scope): Promise<number>
}

export const edgewatch: Question = {
  name: 'edgewatch',
  ask: async (bench) => {
    const dir = await mkdtemp(join(tmpdir(), 'ake-edgewatch-'))
    const cloud = await startCloud({ dir, pods: podCount })
    const figures: Figure[] = []
    try {
      const standIn = originOf(cloud)
      const real = (await bench.targets('kube-apiserver'))[0]
      const slow = real === undefined ? standIn : await originAt(dir, real)
      const followings = scopes.flatMap((scope, index): Following[] => [
        { dir: join(dir, `slow-${index}`), origin: slow, scope, rates: slowRates },
        { dir: join(dir, `fast-${index}`), origin: standIn, scope, rates: [fastRate] },
      ])
      bench.say('  first syncs, and the minute after them')
      await Promise.all(followings.map(prepare))
      for (const following of followings) figures.push(...(await follow(bench, following)))
      return figures
    } finally {
      await cloud.stop()
      await rm(dir, { recursive: true, force: true })
    }
  },
}

function originOf(cloud: CloudUpstream): Origin {
  return {
    name: 'the stand-in',
    at: { url: cloud.url, tls: cloud.tls },
    kubeconfig: cloud.kubeconfig,
    perSecondMax: fastRate,
    send: async (perSecond, scope) => {
      const count = Math.round((perSecond * sendForMs) / 1_000)
      await cloud.send({ count, perSecond, ...(scope.node === undefined ? {} : { node: scope.node }) })
      return count
    },
  }
}

async function originAt(dir: string, { url, tls }: Target): Promise<Origin> {
  const kubeconfig = join(dir, 'kube-apiserver.kubeconfig')
  await writeKubeconfig(kubeconfig, { url, ...tls })
  const pods = makePods(podCount)
  return {
    name: 'kube-apiserver',
    at: { url, tls },
    kubeconfig,
    // Beside all the others on two cores.
    perSecondMax: 100,
    send: (perSecond, scope) => {
      const among = scope.node === undefined ? pods : pods.filter((_, index) => nodeName(index) === scope.node)
      return writeSteadily({ at: { url, tls }, pods: among, perSecond, forMs: sendForMs })
    },
  }
}

type Following = { dir: string; origin: Origin; scope: Scope; rates: readonly number[] }

/** The measured edge is one that has been there for a while, started again. */
async function prepare({ dir, origin, scope }: Following): Promise<void> {
  const edge = await startEdge({ dir, server: origin.at.url, kubeconfig: origin.kubeconfig })
  try {
    await untilSynced(edge, scope.query)
    await pause(firstMinuteMs)
  } finally {
    await edge.stop()
  }
}

async function follow(bench: Bench, { dir, origin, scope, rates }: Following): Promise<Figure[]> {
  const edge = await startEdge({ dir, server: origin.at.url, kubeconfig: origin.kubeconfig })
  const relay = await startRelay({ dir, to: origin.at })
  try {
    await untilSynced(edge, scope.query)
    const figures: Figure[] = []
    const watches = await Promise.all([origin.at, edge, relay].map((at) => openWatch(at, scope)))
    const [direct, through] = watches as [OpenWatch, OpenWatch, OpenWatch]
    await origin.send(Math.min(warmUpPerSecond, origin.perSecondMax), scope)
    const idle = await idleCost(edge)
    // What it missed while it was prepared has come meanwhile, and is not asked about.
    for (const { late } of watches) late.splice(0)
    for (const perSecond of rates) {
      const cpu = cpuExactMs(edge.pid)
      const relayCpu = cpuExactMs(relay.pid)
      const written = writtenBytes(edge.pid)
      const startedAt = performance.now()
      const count = await origin.send(perSecond, scope)
      await untilArrived([direct, through], count)
      const added = differences(direct.late.splice(0), through.late.splice(0))
      await pause(settleMs)
      const idleCpuMs = idle * (performance.now() - startedAt)
      const cpuMs = cpuExactMs(edge.pid) - cpu - idleCpuMs
      const bytes = writtenBytes(edge.pid) - written
      const object = await objectBytes(edge, scope)
      // What is smaller than what was taken off is no measurement.
      const isMeasured = cpuMs > idleCpuMs
      const relayMs = (cpuExactMs(relay.pid) - relayCpu) / count
      const cost = { added, cpuMs: cpuMs / count, relayMs, disk: bytes / count / object }
      const title = `edge watch, ${scope.name}, ${perSecond.toLocaleString('en')} events/s`
      bench.say(
        `  ${title} from ${origin.name}: added p50 ${at(added, 0.5).toFixed(2)} ms, p99 ${at(added, 0.99).toFixed(2)}, ` +
          `${cost.cpuMs.toFixed(3)} ms CPU an event${isMeasured ? '' : ' (lost in what it uses anyway: not kept)'}, ` +
          `a bare relay ${cost.relayMs.toFixed(3)}, disk ${cost.disk.toFixed(1)} × the object of ${object} bytes`,
      )
      figures.push(...figuresOf(title, perSecond, cost).filter(({ unit }) => isMeasured || unit !== cpuUnit))
    }
    for (const watch of watches) watch.close()
    return figures
  } finally {
    await relay.stop()
    await edge.stop()
  }
}

const cpuUnit = 'ms CPU an event'

/** A lone event may cost the disk more than one that shares its commit. */
function figuresOf(
  title: string,
  perSecond: number,
  { added, cpuMs, relayMs, disk }: { added: readonly number[]; cpuMs: number; relayMs: number; disk: number },
): Figure[] {
  const ake = (value: number) => ({ measured: { ake: value } })
  const figures: Figure[] = [
    { name: `${title}, p50`, unit: 'ms later', ...ake(at(added, 0.5)), atMost: 2 },
    { name: `${title}, p99`, unit: 'ms later', ...ake(at(added, 0.99)), atMost: 20 },
    { name: title, unit: cpuUnit, measured: { ake: cpuMs, 'bare relay': relayMs }, atMost: 0.12 },
  ]
  const bound = perSecond <= 5 ? 8 : perSecond === 100 ? 2.5 : undefined
  if (bound !== undefined) figures.push({ name: title, unit: 'disk bytes / object', ...ake(disk), atMost: bound })
  return figures
}

/** `late`: of each event, how long ago it was sent. */
export type OpenWatch = { readonly late: number[]; failure(): string | undefined; close(): void }

export async function openWatch(address: Address, scope: Scope): Promise<OpenWatch> {
  const { url, tls } = address
  const connection = await connectTo({ url, tls }, 'h2')
  const { text = '{}' } = await connection.ask({ path: '/api/v1/pods?limit=1' }, true)
  connection.close()
  const { resourceVersion } = (JSON.parse(text) as { metadata: { resourceVersion: string } }).metadata
  const joint = scope.query === '' ? '?' : '&'
  const late: number[] = []
  let failure: string | undefined
  const watching = watchMany({
    at: { url, tls },
    path: `/api/v1/pods${scope.query}${joint}watch=true&resourceVersion=${resourceVersion}&timeoutSeconds=3600`,
    streams: 1,
    events: () => {},
    latency: (ms) => late.push(ms),
    failed: (why) => {
      failure ??= `a watch at ${url}: ${why}`
    },
  })
  await watching.opened
  return { late, failure: () => failure, close: watching.close }
}

/** Waits until all of them have brought as many. */
export async function untilArrived(watches: readonly OpenWatch[], count: number): Promise<void> {
  const give = performance.now() + arriveWithinMs
  while (watches.some(({ late }) => late.length < count) && performance.now() < give) await pause(pollMs)
  for (const { late, failure } of watches) {
    const why = failure() ?? (late.length === count ? undefined : `of ${count} events ${late.length} came`)
    if (why !== undefined) throw new Error(why)
  }
}

/** How much later each event came, sorted: both ways bring the same events in the same order. */
export function differences(direct: readonly number[], through: readonly number[]): number[] {
  return through.map((ms, index) => ms - direct[index]!).sort((one, another) => one - another)
}

export function at(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
}

/** ms of CPU for each ms. */
async function idleCost(edge: Target): Promise<number> {
  await pause(startedMs)
  const before = cpuExactMs(edge.pid)
  await pause(idleMs)
  return (cpuExactMs(edge.pid) - before) / idleMs
}

/** As it is now: kube-apiserver adds to what is written. One of the last, because other questions add owners to the first. */
async function objectBytes(edge: Address, scope: Scope): Promise<number> {
  const pod = makePods(podCount).findLast((_, index) => scope.node === undefined || nodeName(index) === scope.node)!
  const connection = await connectTo(edge, 'h2')
  const path = `/api/v1/namespaces/${pod.namespace}/pods/${pod.name}?resourceVersion=0`
  const { status, bytes } = await connection.ask({ path })
  connection.close()
  if (status !== 200) throw new Error(`GET ${path}: ${status}`)
  return bytes
}
