/**
 * What does a read that the copy covers cost at an edge, beside the same read at `ake serve`? Online with version 0, as
 * informers ask, and offline without one, as kubectl does; by the administrator, and by a service account whose right to
 * it is known.
 */

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Address, Bench, Figure, Question, Target } from '../bench.ts'
import { makePods, podCount } from '../fixture.ts'
import { cpuMs } from '../process.ts'
import { asAccount, startEdge, untilState, untilSynced } from './edge.ts'
import { startCloud } from './upstream.ts'

const roundMs = 2_000

/** After one that only warms both up, the least of these counts, of the edge and of the endpoint asked right after it. */
const rounds = 3

/** The same work, so the same cost; the rest is the noise of one run. */
const atMost = 1.1

/** A dead link is found by a probe, which may first have to fail more than once. */
const unreachableMsMax = 60_000

const [pod] = makePods(1)
const reads = [
  { name: 'LIST of 5,000 pods', path: '/api/v1/pods', clients: 1 },
  { name: 'GET of a pod', path: `/api/v1/namespaces/${pod!.namespace}/pods/${pod!.name}`, clients: 32 },
]

export const edgeread: Question = {
  name: 'edgeread',
  ask: async (bench) => {
    const dir = await mkdtemp(join(tmpdir(), 'ake-edgeread-'))
    const cloud = await startCloud({ dir, pods: podCount })
    const serve = (await bench.targets('ake'))[0]!
    const edge = await startEdge({
      dir: join(dir, 'edge'),
      server: cloud.url,
      kubeconfig: cloud.kubeconfig,
      args: ['--mirror', 'pods'],
    })
    try {
      await untilSynced(edge)
      const online = await compare(bench, { edge, serve, when: 'online', query: '?resourceVersion=0' })
      await cloud.stop()
      await untilState(edge, 'unreachable', unreachableMsMax)
      return [...online, ...(await compare(bench, { edge, serve, when: 'offline', query: '' }))]
    } finally {
      await edge.stop()
      await cloud.stop()
      await rm(dir, { recursive: true, force: true })
    }
  },
}

type Case = { edge: Target; serve: Target; when: string; query: string }

async function compare(bench: Bench, { edge, serve, when, query }: Case): Promise<Figure[]> {
  const callers: [string, Address][] = [
    ['administrator', { url: edge.url, tls: edge.tls }],
    ['service account', asAccount(edge)],
  ]
  const figures: Figure[] = []
  for (const { name, path, clients } of reads) {
    for (const [caller, at] of callers) {
      const title = `edge, ${name}, ${when}, ${caller}`
      const cost = (target: Target, asked: Address) => measure(bench, { target, asked, path: path + query, clients })
      // The endpoint takes its administrator by certificate; the request it has to read is the same.
      const headers = at.token === undefined ? {} : { authorization: `Bearer ${at.token}` }
      const alike = { url: serve.url, tls: serve.tls, headers }
      await cost(edge, at)
      await cost(serve, alike)
      const own: number[] = []
      const beside: number[] = []
      for (let round = 0; round < rounds; round++) {
        own.push(await cost(edge, at))
        beside.push(await cost(serve, alike))
      }
      const measured = { ake: Math.min(...own), 'ake serve': Math.min(...beside) }
      bench.say(`  ${title}: ${measured.ake.toFixed(3)} ms CPU, ake serve ${measured['ake serve'].toFixed(3)}`)
      figures.push({ name: title, unit: 'ms CPU', measured, versus: 'ake serve', atMost })
    }
  }
  return figures
}

type Measured = { target: Target; asked: Address; path: string; clients: number }

async function measure({ load }: Bench, { target, asked, path, clients }: Measured): Promise<number> {
  await load.order({ kind: 'open', at: asked, protocol: 'h2', path, connections: clients, streams: 1 })
  const before = cpuMs(target.pid)
  const { done } = await load.order({ kind: 'run', forMs: roundMs })
  const cost = (cpuMs(target.pid) - before) / done
  await load.order({ kind: 'close' })
  return cost
}
