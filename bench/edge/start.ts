/** How long from starting an edge until a client has the first LIST of 10,000 pods, while the API server is away? */

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Question, Target } from '../bench.ts'
import { connectTo } from '../client.ts'
import { startEdge, untilSynced } from './edge.ts'
import { type CloudUpstream, startCloud } from './upstream.ts'

const manyPods = 10_000

/** The least of these counts; the first also pays for a cold compile cache. */
const rounds = 5

export const edgestart: Question = {
  name: 'edgestart',
  ask: async ({ say }) => {
    const dir = await mkdtemp(join(tmpdir(), 'ake-edgestart-'))
    try {
      const { cloud, edge } = await openManyEdge(dir)
      await cloud.stop()
      let current = edge
      const times: number[] = []
      for (let round = 0; round < rounds; round++) {
        current = await current.restart!()
        const ready = performance.now() - current.startedAt
        const connection = await connectTo(current, 'h2')
        const { status, bytes } = await connection.ask({ path: '/api/v1/pods' })
        times.push(performance.now() - current.startedAt)
        connection.close()
        if (status !== 200) throw new Error(`LIST offline: ${status}`)
        say(`  offline: ready ${ready.toFixed(0)} ms, LIST of ${bytes} bytes ${times.at(-1)!.toFixed(0)} ms`)
      }
      await current.stop()
      const name = 'edge, start offline, to a first LIST of 10,000 pods'
      return [{ name, unit: 'ms', measured: { ake: Math.min(...times) }, atMost: 500 }]
    } finally {
      await rm(dir, { recursive: true, force: true })
    }
  },
}

/** The stand-in with many pods and an edge that mirrors them; `begun` hears of the edge before its first sync. */
export async function openManyEdge(
  dir: string,
  begun: (edge: Target) => void = () => {},
): Promise<{ cloud: CloudUpstream; edge: Target }> {
  const cloud = await startCloud({ dir, pods: manyPods })
  const args = ['--mirror', 'pods']
  const edge = await startEdge({ dir: join(dir, 'edge'), server: cloud.url, kubeconfig: cloud.kubeconfig, args })
  begun(edge)
  await untilSynced(edge)
  return { cloud, edge }
}
