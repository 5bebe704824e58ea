/**
 * `node bench/beside.ts CHECKOUT [--lives 7] [--rounds 4] [name…]`: reads of this checkout and of another one, both running and
 * asked at once. What disturbs the machine disturbs both, so a few percent can be told apart where whole runs (versus.ts)
 * differ by more. Each process is a little faster or slower than the next one of the
 * same code for as long as it lives (what V8 chose to compile, where its heap lies), so both are started again several times.
 * Printed is the median CPU time of an answer of both, and the median of the lives' ratios with the lowest and the highest.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { compileOnce, fillByWriting, startAke } from './ake.ts'
import type { Address, Target } from './bench.ts'
import { connectTo } from './client.ts'
import { asAccount, startEdge, untilSynced } from './edge/edge.ts'
import { startCloud } from './edge/upstream.ts'
import { makePods, podCount } from './fixture.ts'
import { type Load, startLoad } from './load.ts'
import { median } from './median.ts'
import { cpuExactMs } from './process.ts'

const roundMs = 1_000

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { lives: { type: 'string', default: '7' }, rounds: { type: 'string', default: '4' } },
})
const [other, ...names] = positionals
const [lives, rounds] = [Number(values.lives), Number(values.rounds)]

/** Without conditions: states of the code differ in whether they keep a field of theirs that is null, and so in bytes. */
const pods = makePods(podCount).map((pod) => {
  const { conditions: _, ...status } = (pod.object as { status?: { conditions?: unknown } }).status ?? {}
  return { ...pod, object: { ...pod.object, status } }
})
const path = `/api/v1/namespaces/${pods[0]!.namespace}/pods/${pods[0]!.name}`
const nodename = '/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-007'
type Read = { where: 'serve' | 'edge'; path: string; clients: number; protocol: 'h1' | 'h2'; account?: true }
const reads: Record<string, Read> = {
  get: { where: 'serve', path, clients: 32, protocol: 'h2' },
  get1: { where: 'serve', path, clients: 32, protocol: 'h1' },
  nodename: { where: 'serve', path: nodename, clients: 8, protocol: 'h2' },
  nodename1: { where: 'serve', path: nodename, clients: 8, protocol: 'h1' },
  list: { where: 'serve', path: '/api/v1/pods', clients: 1, protocol: 'h2' },
  list1: { where: 'serve', path: '/api/v1/pods', clients: 1, protocol: 'h1' },
  edgeget: { where: 'edge', path: `${path}?resourceVersion=0`, clients: 32, protocol: 'h2', account: true },
  edgelist: { where: 'edge', path: '/api/v1/pods?resourceVersion=0', clients: 1, protocol: 'h2', account: true },
}
const unknown = names.find((name) => reads[name] === undefined)
if (other === undefined || !(rounds > 0) || !(lives > 0) || unknown !== undefined) {
  console.error(`usage: node bench/beside.ts CHECKOUT [--lives N] [--rounds N] [${Object.keys(reads).join('|')}…]`)
  process.exit(2)
}
const asked = Object.entries(reads).filter(([name]) => names.length === 0 || names.includes(name))

type Side = { readonly serve?: Target | undefined; readonly edge?: Target | undefined }
const programs = [join(import.meta.dirname, '..'), resolve(other)].map((checkout) => join(checkout, 'bin', 'ake'))
const dir = await mkdtemp(join(tmpdir(), 'ake-beside-'))
const loads = [startLoad(), startLoad()] as const
const cloud = asked.some(([, { where }]) => where === 'edge') ? await startCloud({ dir, pods: podCount }) : undefined
for (const program of programs) await compileOnce(program)
let sides = (await Promise.all(programs.map(startSide))) as [Side, Side]
/** By the read's name: a pair for each life, the medians of its rounds. */
const found = new Map<string, { ours: number; theirs: number; ratio: number }[]>()
try {
  for (let life = 0; life < lives; life++) {
    if (life > 0) sides = (await Promise.all(sides.map(restartSide))) as [Side, Side]
    for (const [name, read] of asked) {
      const costs = await compare(sides, read)
      const ratio = median(costs.map(([a, b]) => a / b))
      const pair = { ours: median(costs.map(([a]) => a)), theirs: median(costs.map(([, b]) => b)), ratio }
      found.set(name, [...(found.get(name) ?? []), pair])
    }
    console.error(`life ${life + 1} of ${lives} is over`)
  }
  for (const [name, pairs] of found) {
    const [b, a] = [median(pairs.map(({ theirs }) => theirs)), median(pairs.map(({ ours }) => ours))]
    const ratios = pairs.map(({ ratio }) => ratio)
    const spread = `(${Math.min(...ratios).toFixed(3)} to ${Math.max(...ratios).toFixed(3)})`
    console.log(
      `${name.padEnd(10)} ${b.toFixed(4)} → ${a.toFixed(4)} ms CPU   ${median(ratios).toFixed(3)} × ${spread}`,
    )
  }
} finally {
  for (const { serve, edge } of sides) await Promise.all([serve?.stop(), edge?.stop()])
  await cloud?.stop()
  for (const load of loads) load.stop()
  await rm(dir, { recursive: true, force: true })
}
process.exit()

async function compare([ours, theirs]: readonly [Side, Side], read: Read): Promise<(readonly [number, number])[]> {
  const costs: (readonly [number, number])[] = []
  await assertSameBytes(ours, theirs, read)
  for (let round = -1; round < rounds; round++) {
    // Who asks whom changes with each round, and the first round only warms both up.
    const [one, other] = round % 2 === 0 ? loads : ([loads[1], loads[0]] as const)
    const pair = await Promise.all([cost(one, ours, read), cost(other, theirs, read)])
    if (round >= 0) costs.push(pair)
  }
  return costs
}

/** Half of what an answer costs is its bytes, so a comparison of different answers says nothing. */
async function assertSameBytes(
  ours: Side,
  theirs: Side,
  { where, path: asking, protocol, account }: Read,
): Promise<void> {
  const sizes = await Promise.all(
    [ours, theirs].map(async (side) => {
      const target = side[where] as Target
      const connection = await connectTo(account === true ? asAccount(target) : target, protocol)
      const { bytes } = await connection.ask({ path: asking })
      connection.close()
      return bytes
    }),
  )
  // Their lists carry their own versions, whose digits may differ.
  if (Math.abs(sizes[0]! - sizes[1]!) > 16) throw new Error(`${asking}: ${sizes[0]} bytes here, ${sizes[1]} there`)
}

async function restartSide({ serve, edge }: Side): Promise<Side> {
  const next = { serve: await serve?.restart?.(), edge: await edge?.restart?.() }
  if (next.edge !== undefined) await untilSynced(next.edge)
  return next
}

async function startSide(program: string, index: number): Promise<Side> {
  const side: { serve?: Target; edge?: Target } = {}
  if (asked.some(([, { where }]) => where === 'serve')) {
    side.serve = await startAke({ program, dir: join(dir, `serve-${index}`) })
    await fillByWriting(side.serve, pods)
  }
  if (cloud !== undefined) {
    const { url: server, kubeconfig } = cloud
    side.edge = await startEdge({
      program,
      dir: join(dir, `edge-${index}`),
      server,
      kubeconfig,
      args: ['--mirror', 'pods'],
    })
    await untilSynced(side.edge)
  }
  return side
}

async function cost(
  load: Load,
  side: Side,
  { where, path: asking, clients, protocol, account }: Read,
): Promise<number> {
  const target = side[where] as Target
  const at: Address = account === true ? asAccount(target) : { url: target.url, tls: target.tls }
  await load.order({ kind: 'open', at, protocol, path: asking, connections: clients, streams: 1 })
  const before = cpuExactMs(target.pid)
  const { done } = await load.order({ kind: 'run', forMs: roundMs })
  const spent = cpuExactMs(target.pid) - before
  await load.order({ kind: 'close' })
  return spent / done
}
