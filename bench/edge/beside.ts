/**
 * `node bench/edge/beside.ts CHECKOUT [--lives 5]`: an edge of this checkout and one of another follow the same API server at
 * the same time, and so take the same events: at several rates, then 20,000 as fast as they come. What disturbs the machine
 * disturbs both (see ../beside.ts). Printed is each figure of both, and the median of the lives' ratios with the lowest and
 * the highest. What an edge uses while nothing happens is part of what its events cost here.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { compileOnce } from '../ake.ts'
import type { Target } from '../bench.ts'
import { podCount } from '../fixture.ts'
import { median } from '../median.ts'
import { cpuExactMs, writtenBytes } from '../process.ts'
import { startEdge, untilSynced } from './edge.ts'
import { type CloudUpstream, startCloud } from './upstream.ts'
import { peakKb, untilSeen } from './wait.ts'
import { at, differences, openWatch, type Scope, scopes, untilArrived } from './watch.ts'

const rates = [5, 20, 100, 1_000]
const warmUp = { count: 1_500, perSecond: 500 }
const sendForMs = 6_000
/** The index follows the log every three seconds: what an event writes is written by then. */
const settleMs = 3_500
const burstEvents = 20_000

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { lives: { type: 'string', default: '5' } },
})
const [other] = positionals
const lives = Number(values.lives)
if (other === undefined || !(lives > 0)) {
  console.error('usage: node bench/edge/beside.ts CHECKOUT [--lives N]')
  process.exit(2)
}
const programs = [join(import.meta.dirname, '..', '..'), resolve(other)].map((checkout) => join(checkout, 'bin', 'ake'))

type Pair = readonly [ours: number, theirs: number]
/** By row, a pair for each life. */
const found = new Map<string, Pair[]>()
const dir = await mkdtemp(join(tmpdir(), 'ake-beside-'))
for (const program of programs) await compileOnce(program)
try {
  for (let life = 0; life < lives; life++) {
    for (const scope of scopes) await live(scope, join(dir, `${life}-${scope.node ?? 'all'}`))
    console.error(`life ${life + 1} of ${lives} is over`)
  }
} finally {
  await rm(dir, { recursive: true, force: true })
}
for (const [row, pairs] of found) {
  const ratios = pairs.map(([ours, theirs]) => ours / theirs)
  const [ours, theirs] = [median(pairs.map(([one]) => one)), median(pairs.map(([, one]) => one))]
  const spread = `(${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)})`
  const figures = `${theirs.toPrecision(3).padStart(8)} → ${ours.toPrecision(3).padStart(8)}`
  console.log(`${row.padEnd(58)} ${figures}   ${median(ratios).toFixed(3)} × ${spread}`)
}
process.exit()

/** Both from their first list on. */
async function live(scope: Scope, folder: string): Promise<void> {
  const cloud = await startCloud({ dir, pods: podCount })
  const { url: server, kubeconfig } = cloud
  const edges: Target[] = []
  try {
    for (const [index, program] of programs.entries()) {
      edges.push(await startEdge({ program, dir: join(folder, String(index)), server, kubeconfig }))
    }
    await Promise.all(edges.map((edge) => untilSynced(edge, scope.query)))
    await measure({ scope, cloud, edges: edges as [Target, Target] })
  } finally {
    for (const edge of edges) await edge.stop()
    await cloud.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

type Measured = { readonly scope: Scope; readonly cloud: CloudUpstream; readonly edges: readonly [Target, Target] }

async function measure({ scope, cloud, edges }: Measured): Promise<void> {
  const among = scope.node === undefined ? {} : { node: scope.node }
  const watches = await Promise.all([cloud, ...edges].map((address) => openWatch(address, scope)))
  await cloud.send({ ...warmUp, ...among })
  await untilArrived(watches, warmUp.count)
  for (const watch of watches) watch.late.splice(0)
  for (const perSecond of rates) {
    const count = (perSecond * sendForMs) / 1_000
    const before = edges.map(({ pid }) => ({ cpu: cpuExactMs(pid), written: writtenBytes(pid) }))
    await cloud.send({ count, perSecond, ...among })
    await untilArrived(watches, count)
    await pause(settleMs)
    const title = `${scope.name}, ${perSecond.toLocaleString('en')} events/s`
    const spent = edges.map(({ pid }, side) => (cpuExactMs(pid) - before[side]!.cpu) / count)
    const written = edges.map(({ pid }, side) => (writtenBytes(pid) - before[side]!.written) / count / 1_000)
    note(`${title}, ms CPU an event`, spent)
    note(`${title}, KB to the disk an event`, written)
    const [sent, ...came] = watches.map(({ late }) => late.splice(0))
    const added = came.map((late) => differences(sent!, late))
    note(
      `${title}, p50 ms later`,
      added.map((late) => at(late, 0.5)),
    )
    note(
      `${title}, p99 ms later`,
      added.map((late) => at(late, 0.99)),
    )
  }
  for (const watch of watches) watch.close()
  if (scope.node === undefined) await burst(cloud, edges)
}

async function burst(cloud: CloudUpstream, edges: readonly [Target, Target]): Promise<void> {
  const peaks = edges.map(({ pid }) => peakKb(pid))
  const before = edges.map(({ pid }) => cpuExactMs(pid))
  const { version } = await cloud.send({ count: burstEvents, perSecond: Number.POSITIVE_INFINITY })
  await Promise.all(edges.map((edge) => untilSeen(edge, version)))
  await pause(settleMs)
  note(
    'burst of 20,000, ms CPU an event',
    edges.map(({ pid }, side) => (cpuExactMs(pid) - before[side]!) / burstEvents),
  )
  note(
    'burst of 20,000, peak MB',
    peaks.map((peak) => peak.stop() / 1_000),
  )
}

function note(row: string, [ours, theirs]: readonly number[]): void {
  found.set(row, [...(found.get(row) ?? []), [ours!, theirs!]])
}
