/** The cost of reading one path: CPU time of the serving process per answer, the least of several interleaved rounds. */

import type { Bench, Contestant, Figure, Target } from './bench.ts'
import { cpuMs } from './process.ts'

/** Long enough that the kernel's 10 ms tick is lost in it, short enough for several rounds of everybody. */
const roundMs = 2_500

/** The least of these: what disturbs a measurement only ever adds to it. */
const rounds = 4

export type Reading = {
  readonly name: string
  /** As the API has it; nginx serves the same bytes as a file. */
  readonly path: string
  /** Clients, each with a connection of its own and one request at a time. */
  readonly clients: number
  /** The form that is asked for, if not JSON. */
  readonly accept?: string
  /** As a multiple of nginx. */
  readonly atMost: number
}

export async function measureReading(bench: Bench, reading: Reading): Promise<Figure[]> {
  const targets = await bench.targets('ake', 'nginx', 'kube-apiserver')
  await bench.mirror(fileOf(reading), reading.path, headersOf(reading))
  const figures: Figure[] = []
  for (const protocol of ['h2', 'h1'] as const) {
    const least: { [name in Contestant]?: number } = {}
    for (let round = 0; round < rounds; round++) {
      for (const target of targets) {
        const cost = await measureRound({ bench, target, protocol, reading })
        least[target.name] = Math.min(least[target.name] ?? cost, cost)
      }
    }
    const name = `${reading.name}, ${protocol === 'h2' ? 'HTTP/2' : 'HTTP/1.1'}`
    figures.push({ name, unit: 'ms CPU', measured: least, versus: 'nginx', atMost: reading.atMost })
  }
  return figures
}

type Round = { bench: Bench; target: Target; protocol: 'h2' | 'h1'; reading: Reading }

async function measureRound({ bench, target, protocol, reading }: Round): Promise<number> {
  const { load, say } = bench
  const path = target.name === 'nginx' ? `/${fileOf(reading)}` : reading.path
  const at = { url: target.url, tls: target.tls, headers: headersOf(reading) }
  await load.order({ kind: 'open', at, protocol, path, connections: reading.clients, streams: 1 })
  const before = cpuMs(target.pid)
  const { done, bytes, p50Ms, p99Ms } = await load.order({ kind: 'run', forMs: roundMs })
  const cost = (cpuMs(target.pid) - before) / done
  await load.order({ kind: 'close' })
  const size = Math.round(bytes / done)
  const times = `p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms`
  say(`  ${reading.name} ${protocol} ${target.name}: ${cost.toFixed(3)} ms CPU, ${done} × ${size} bytes, ${times}`)
  return cost
}

function headersOf({ accept }: Reading): Record<string, string> {
  return accept === undefined ? {} : { accept }
}

function fileOf(reading: Reading): string {
  return `${reading.name.replaceAll(/[^a-zA-Z0-9]+/g, '-')}.json`
}
