/**
 * What does an edge cost a hub, with a thousand of them on real links? Hub, API server and edges (`fleet.ts`) are processes of their
 * own; each edge has 40 interests, 30 of them ConfigMaps by name, which the pods of its node name: the hub trusts none of them. Beside it: kube-apiserver
 * with clients that watch it themselves. `AKE_BENCH_EDGES=1000,5000,10000` asks with several numbers of them, one after the other.
 */

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Hub } from '../../conformance/hubs.ts'
import { ask, type Oracle, startOracle } from '../../conformance/oracle.ts'
import { watchesUpstream } from '../../conformance/site.ts'
import { fillEtcd, isBuilt, storeUrl, untilVisible } from '../apiserver.ts'
import type { Address, Figure, Question } from '../bench.ts'
import { makePods, type Pod, podCount } from '../fixture.ts'
import { cpuExactMs, memoryKb } from '../process.ts'
import { writeSteadily } from '../writer.ts'
import { type FleetReport, ownName, ownNamespace, sharedLabel } from './fleet.ts'
import { Fleet } from './fleetprocess.ts'
import { allowInterests, podsOfNode, rowsOfNodes } from './nodes.ts'
import { type PlainWatch, plainWatch } from './plain.ts'
import { newestVersion } from './site.ts'

const edgess = (process.env.AKE_BENCH_EDGES ?? '1000').split(',').map(Number)
const aloneEvents = 30
const alonePerSecond = 3
const burstEvents = 100
const burstPerSecond = 1_000
/** At once, of at least ten events: all edges live in one process here, which may keep no link silent for 5 s. */
const burstDeliveries = 50_000
const fewestInBurst = 10
const settleMs = 6_000
const idleMs = 6_000
const arriveMsMax = 120_000
/**
 * With more edges fewer events are told, at a lower rate: all edges live in one process here, which falls behind where more is delivered a second, and
 * a hub cuts links that say nothing for 5 s. What then costs is thousands of handshakes, and no event.
 */
const edgesUsual = 1_000
const fewestEvents = 10
/** Clients of kube-apiserver: a thousand with forty watches each it could not bear here. */
const plainClients = 100
const plainWatches = 40

type World = {
  readonly say: (line: string) => void
  readonly oracle: Oracle
  readonly real: Address
  readonly hub: Hub
  readonly fleet: Fleet
  /** How many there are to be. */
  readonly edges: number
}

export const hubload: Question = {
  name: 'hubload',
  ask: async ({ say }) => {
    if (!(await isBuilt('kube-apiserver', 'etcd'))) return []
    const figures: Figure[] = []
    for (const edges of edgess) figures.push(...(await asked(edges, say)))
    return figures
  },
  // Those of other numbers of edges, which take long.
  keeps: ({ name }) => !edgess.some((edges) => name.startsWith(prefixOf(edges))),
}

const prefixOf = (edges: number) => `hub, ${edges.toLocaleString('en')} edges of 40 interests, `

async function asked(edges: number, say: World['say']): Promise<Figure[]> {
  const dir = await mkdtemp(join(tmpdir(), 'ake-hubload-'))
  const oracle = await startOracle({ dir: join(dir, 'oracle') })
  const ending = new AbortController()
  try {
    const { url, ca, cert, key } = oracle
    const real = { url, tls: { ca, cert, key } }
    const began = performance.now()
    await fillEtcd(storeUrl(oracle.pids.etcd), makePods(podCount), [...rowsOfNodes(edges)])
    await untilVisible(real, podCount + edges * podsOfNode)
    await allowInterests(real)
    say(`  kube-apiserver was filled in ${seconds(performance.now() - began)} s`)
    const hubDir = join(dir, 'hub')
    const hub = await Hub.start({ dir: hubDir, kubeconfig: oracle.kubeconfig, signal: ending.signal }, 'hub')
    const fleet = new Fleet(join(hubDir, 'state'), hub.port)
    const own = await measured({ say, oracle, real, hub, fleet, edges })
    await fleet.stop()
    await hub.end('kill')
    return besides(edges, own, await plainFigures({ say, oracle, real }))
  } finally {
    ending.abort()
    oracle.stop()
    await rm(dir, { recursive: true, force: true })
  }
}

type Costs = {
  /** Of hub and API server, with one edge. */
  readonly base: { readonly ake: number; readonly 'kube-apiserver': number }
  readonly memoryKb: number
  readonly aloneUs: number
  readonly batchedUs: number
  readonly batch: number
  readonly watches: { readonly rest: number; readonly again: number }
  readonly reviews: { readonly rest: number; readonly again: number }
  readonly backMs: number
  readonly backCpuMs: number
}

async function measured(world: World): Promise<Costs> {
  const { say, oracle, hub, fleet, edges } = world
  const asked = await reviewsAt(oracle)
  await fleet.order({ edges: 1, interests: 'forty' })
  await fleet.untilWhole(1)
  await pause(settleMs)
  const before = memoryKb(hub.pid, 'RssAnon')
  const base = { ake: before / 1e3, 'kube-apiserver': memoryKb(oracle.pids.apiserver, 'RssAnon') / 1e3 }
  const began = performance.now()
  await fleet.order({ edges, interests: 'forty' })
  const first = await fleet.untilWhole(edges)
  say(`  ${edges} edges were whole after ${seconds(performance.now() - began)} s: ${JSON.stringify(first)}`)
  await pause(settleMs)
  const memory = (memoryKb(hub.pid, 'RssAnon') - before) / (edges - 1)
  say(`  the hub has ${(before / 1e3).toFixed(0)} MB with one edge, and ${memory.toFixed(0)} KB more for each`)
  const rest = { watches: await watchesOf(oracle), reviews: await reviewsSince(oracle, asked) }
  const told = await toldCosts(world)
  const reviewed = await reviewsAt(oracle)
  const restartedAt = performance.now()
  await hub.restart('kill')
  const back = await fleet.untilWhole(edges)
  const [backMs, backCpuMs] = [performance.now() - restartedAt, cpuExactMs(hub.pid)]
  say(
    `  after a restart they were back in ${seconds(backMs)} s, ${seconds(backCpuMs)} s of CPU: ${JSON.stringify(back)}`,
  )
  const again = { watches: await watchesOf(oracle), reviews: await reviewsSince(oracle, reviewed) }
  const spelled = ({ count, kinds }: Reviews) => `${count}${kinds === '' ? '' : ` (${kinds})`}`
  say(
    `  watches ${rest.watches}, then ${again.watches}; reviews ${spelled(rest.reviews)}, then ${spelled(again.reviews)}`,
  )
  return {
    ...{ ...told, base, memoryKb: memory, backMs, backCpuMs },
    watches: { rest: rest.watches, again: again.watches },
    reviews: { rest: rest.reviews.count, again: again.reviews.count },
  }
}

async function toldCosts({
  say,
  real,
  hub,
  fleet,
  edges,
}: World): Promise<Pick<Costs, 'aloneUs' | 'batchedUs' | 'batch'>> {
  const idle = await idleCpu(hub.pid)
  const told = sharedPods()
  const slower = Math.min(1, edgesUsual / edges)
  const tell = async (events: number, perSecond: number) => {
    const before = await fleet.report()
    const [cpu, began] = [cpuExactMs(hub.pid), performance.now()]
    await writeSteadily({ at: real, pods: told, perSecond, forMs: (events / perSecond) * 1_000 })
    const isAlone = perSecond < burstPerSecond
    const after = await untilStill(fleet, before.events + (isAlone ? events * edges : 1))
    const lost = endsOf(after) - endsOf(before)
    if (lost > 0) say(`  ${lost} links were lost meanwhile, and what they cost is no event's: this is no figure`)
    const spentMs = cpuExactMs(hub.pid) - cpu - idle * (performance.now() - began)
    const [deliveries, commits] = [after.events - before.events, after.commits - before.commits]
    const us = lost > 0 ? Number.NaN : (spentMs * 1e3) / events / edges
    return { us, batch: deliveries / commits, deliveries }
  }
  // As many deliveries with many edges: the cost of one is asked for, and all of them live on the same cores.
  const some = (events: number) => Math.max(fewestEvents, Math.round(events * slower))
  await tell(some(told.length), alonePerSecond * slower)
  const alone = await tell(some(aloneEvents), alonePerSecond * slower)
  const atOnce = Math.min(burstEvents, Math.max(fewestInBurst, Math.floor(burstDeliveries / edges)))
  const burst = await tell(atOnce, burstPerSecond)
  say(`  idle, the hub takes ${(idle * 100).toFixed(1)} % of a core`)
  const shown = ({ us, batch, deliveries }: typeof alone) =>
    `${us.toFixed(1)} µs for each and edge, ${deliveries} deliveries, ${batch.toFixed(1)} in a frame`
  say(`  events alone: ${shown(alone)}; in a burst: ${shown(burst)}`)
  return { aloneUs: alone.us, batchedUs: burst.us, batch: burst.batch }
}

function endsOf({ ends }: FleetReport): number {
  return Object.values(ends).reduce((sum, count) => sum + count, 0)
}

/** At least so many events have come, and no more follow. */
async function untilStill(fleet: Fleet, events: number): Promise<FleetReport> {
  const give = performance.now() + arriveMsMax
  let before = await fleet.report()
  for (;;) {
    await pause(1_000)
    const report = await fleet.report()
    if (report.events >= events && report.events === before.events) return report
    if (performance.now() > give) throw new Error(`of ${events} events not all came: ${JSON.stringify(report)}`)
    before = report
  }
}

/** ms of CPU for each ms. */
async function idleCpu(pid: number): Promise<number> {
  const before = cpuExactMs(pid)
  await pause(idleMs)
  return (cpuExactMs(pid) - before) / idleMs
}

function sharedPods(): Pod[] {
  const app = sharedLabel.split('=')[1] ?? ''
  return makePods(podCount).filter(({ name }) => name.startsWith(`${app}-`))
}

async function watchesOf(oracle: Oracle): Promise<number> {
  return [...(await watchesUpstream(oracle)).values()].reduce((sum, count) => sum + count, 0)
}

type Reviews = { readonly count: number; readonly kinds: string }

/** Reviews that were asked for since the API server was started, by their kind. */
async function reviewsAt(oracle: Oracle): Promise<ReadonlyMap<string, number>> {
  const { body } = await ask(oracle, '/metrics')
  const found = new Map<string, number>()
  for (const [, labels = '', count] of body.matchAll(/^apiserver_request_total\{([^}]*)\} (\S+)$/gm)) {
    const kind = /resource="([a-z]*reviews)"/.exec(labels)?.[1]
    if (kind !== undefined) found.set(kind, (found.get(kind) ?? 0) + Number(count))
  }
  return found
}

async function reviewsSince(oracle: Oracle, before: ReadonlyMap<string, number>): Promise<Reviews> {
  const more = [...(await reviewsAt(oracle))].map(([kind, count]) => [kind, count - (before.get(kind) ?? 0)] as const)
  const asked = more.filter(([, count]) => count > 0)
  return {
    count: asked.reduce((sum, [, count]) => sum + count, 0),
    kinds: asked.map(([kind, count]) => `${count} ${kind}`).join(', '),
  }
}

type PlainCosts = { readonly memoryKb: number; readonly eventUs: number }

/** Each client has one connection: its memory with as many watches as an edge has interests, its CPU with the one that events come on. */
async function plainFigures({ say, oracle, real }: Omit<World, 'hub' | 'fleet' | 'edges'>): Promise<PlainCosts> {
  const { apiserver } = oracle.pids
  const since = await newestVersion(real)
  const watchOf = (query: string, streams: number) =>
    plainWatch(real, `/api/v1/${query}&watch=true&resourceVersion=${since}&timeoutSeconds=3600`, streams)
  const before = memoryKb(apiserver, 'RssAnon')
  const open: PlainWatch[] = []
  for (let at = 0; at < plainClients; at++)
    open.push(
      await watchOf(
        `namespaces/${ownNamespace}/configmaps?fieldSelector=metadata.name%3D${ownName(0, 0)}`,
        plainWatches,
      ),
    )
  await pause(settleMs)
  const memory = (memoryKb(apiserver, 'RssAnon') - before) / plainClients
  for (const one of open.splice(0)) one.close()
  for (let at = 0; at < plainClients; at++)
    open.push(await watchOf(`pods?labelSelector=${sharedLabel.replace('=', '%3D')}`, 1))
  await pause(settleMs)
  const idle = await idleCpu(apiserver)
  const [cpu, began] = [cpuExactMs(apiserver), performance.now()]
  await writeSteadily({
    ...{ at: real, pods: sharedPods(), perSecond: alonePerSecond },
    forMs: (aloneEvents / alonePerSecond) * 1_000,
  })
  await Promise.all(open.map((one) => one.until(aloneEvents)))
  const spentMs = cpuExactMs(apiserver) - cpu - idle * (performance.now() - began)
  for (const one of open) one.close()
  const eventUs = (spentMs * 1e3) / aloneEvents / plainClients
  say(`  kube-apiserver: ${memory.toFixed(0)} KB for each client, ${eventUs.toFixed(1)} µs for an event and client`)
  return { memoryKb: memory, eventUs }
}

function besides(edges: number, own: Costs, plain: PlainCosts): Figure[] {
  const name = (what: string) => `${prefixOf(edges)}${what}`
  const only = (ake: number) => ({ measured: { ake } })
  const each = { 'kube-apiserver': plain.eventUs }
  const watches = edges * plainWatches
  const figures: Figure[] = [
    {
      ...{
        name: name('memory of each (kube-apiserver: of a client with 40 watches)'),
        unit: 'KB RssAnon',
        atMost: 100,
      },
      // What its collector gives back meanwhile may be more than a hundred clients take: then nothing can be said.
      measured: { ake: own.memoryKb, ...(plain.memoryKb > 0 && { 'kube-apiserver': plain.memoryKb }) },
    },
    {
      ...{ name: name('an event and edge, alone'), unit: 'µs CPU', atMost: 30 },
      measured: { ake: own.aloneUs, ...each },
    },
    {
      ...{ name: name('an event and edge, in a burst'), unit: 'µs CPU', atMost: 8 },
      measured: { ake: own.batchedUs, ...each },
    },
    { name: name('events in a frame of that burst'), unit: 'events', ...only(own.batch) },
    {
      ...{ name: name('watches at the API server, its own included'), unit: 'watches' },
      measured: { ake: own.watches.rest, 'plain watch': watches },
    },
    { name: name('watches after a restart of the hub'), unit: 'watches', ...only(own.watches.again) },
    { name: name('reviews by their first coming'), unit: 'reviews', ...only(own.reviews.rest) },
    { name: name('reviews by a restart of the hub, its own included'), unit: 'reviews', ...only(own.reviews.again) },
    { name: name('all current after its restart'), unit: 's', ...only(own.backMs / 1e3) },
    { name: name('its CPU until then'), unit: 's CPU', ...only(own.backCpuMs / 1e3) },
  ]
  return figures.filter(({ measured }) => !Number.isNaN(measured.ake))
}

function seconds(ms: number): string {
  return (ms / 1e3).toFixed(1)
}
