/**
 * `node bench/beside.ts CHECKOUT [--rounds 15] [name…]`: reads of this checkout and of another one, both running at once and
 * asked in turn for a second each. What disturbs a machine for longer than that disturbs both, so a few percent can be told
 * apart where whole runs (versus.ts) differ by more. Printed is the median CPU time of an answer of both, and the median of
 * the rounds' ratios with its quartiles.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { fillByWriting, startAke } from './ake.ts'
import type { Address, Target } from './bench.ts'
import { asAccount, startEdge, untilSynced } from './edge/edge.ts'
import { startCloud } from './edge/upstream.ts'
import { makePods, podCount } from './fixture.ts'
import { startLoad } from './load.ts'
import { cpuExactMs } from './process.ts'

const roundMs = 1_000

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: 'string', default: '15' } },
})
const [other, ...names] = positionals
const rounds = Number(values.rounds)

const pods = makePods(podCount)
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
if (other === undefined || !(rounds > 0) || unknown !== undefined) {
  console.error(`usage: node bench/beside.ts CHECKOUT [--rounds N] [${Object.keys(reads).join('|')}…]`)
  process.exit(2)
}
const asked = Object.entries(reads).filter(([name]) => names.length === 0 || names.includes(name))

type Side = { readonly serve?: Target; readonly edge?: Target }
const programs = [join(import.meta.dirname, '..'), resolve(other)].map((checkout) => join(checkout, 'bin', 'ake'))
const dir = await mkdtemp(join(tmpdir(), 'ake-beside-'))
const load = startLoad()
const cloud = asked.some(([, { where }]) => where === 'edge') ? await startCloud({ dir, pods: podCount }) : undefined
const [ours, theirs] = (await Promise.all(programs.map(startSide))) as [Side, Side]
try {
  for (const [name, read] of asked) {
    const costs: [number, number][] = []
    for (let round = -1; round < rounds; round++) {
      // Who comes first changes with each round, and the first round only warms both up.
      const a = round % 2 === 0 ? undefined : await cost(ours, read)
      const b = await cost(theirs, read)
      if (round >= 0) costs.push([a ?? (await cost(ours, read)), b])
    }
    const ratios = costs.map(([a, b]) => a / b)
    const [low, middle, high] = [0.25, 0.5, 0.75].map((share) => quantile(ratios, share))
    const [a, b] = [0, 1].map((side) =>
      quantile(
        costs.map((pair) => pair[side] as number),
        0.5,
      ),
    )
    const spread = `(${low!.toFixed(3)} to ${high!.toFixed(3)})`
    console.log(`${name.padEnd(10)} ${b!.toFixed(4)} → ${a!.toFixed(4)} ms CPU   ${middle!.toFixed(3)} × ${spread}`)
  }
} finally {
  for (const { serve, edge } of [ours, theirs]) await Promise.all([serve?.stop(), edge?.stop()])
  await cloud?.stop()
  load.stop()
  await rm(dir, { recursive: true, force: true })
}
process.exit()

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

async function cost(side: Side, { where, path: asking, clients, protocol, account }: Read): Promise<number> {
  const target = side[where] as Target
  const at: Address = account === true ? asAccount(target) : { url: target.url, tls: target.tls }
  await load.order({ kind: 'open', at, protocol, path: asking, connections: clients, streams: 1 })
  const before = cpuExactMs(target.pid)
  const { done } = await load.order({ kind: 'run', forMs: roundMs })
  const spent = cpuExactMs(target.pid) - before
  await load.order({ kind: 'close' })
  return spent / done
}

function quantile(numbers: readonly number[], share: number): number {
  const sorted = [...numbers].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] as number
}
