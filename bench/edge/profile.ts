/** Loads for a profile of `ake edge`, in front of the stand-in: what the questions about it ask, without the measuring. */

import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Address } from '../bench.ts'
import { connectTo } from '../client.ts'
import { makePods, podCount } from '../fixture.ts'
import type { Load } from '../load.ts'
import { asAccount, startEdge, untilSynced } from './edge.ts'
import { type CloudUpstream, startCloud } from './upstream.ts'
import { untilSeen } from './wait.ts'

const loadForMs = 8_000
const watchPerSecond = 1_000
const burstEvents = 50_000

const [pod] = makePods(1)

type Running = { edge: Address; cloud: CloudUpstream; load: Load }

export const edgeLoads: Record<string, (running: Running) => Promise<unknown>> = {
  edgelist: ({ edge, load }) => read(load, asAccount(edge), '/api/v1/pods?resourceVersion=0', 1),
  edgeget: ({ edge, load }) => {
    return read(load, asAccount(edge), `/api/v1/namespaces/${pod!.namespace}/pods/${pod!.name}?resourceVersion=0`, 32)
  },
  edgewatch: async ({ edge, cloud, load }) => {
    const at = { url: edge.url, tls: edge.tls }
    const connection = await connectTo(at, 'h2')
    const { text = '' } = await connection.ask({ path: '/api/v1/pods?resourceVersion=0&limit=1' }, true)
    connection.close()
    const version = /"resourceVersion":"(\d+)"/.exec(text)?.[1]
    const path = `/api/v1/pods?watch=true&resourceVersion=${version}&timeoutSeconds=3600`
    await load.order({ kind: 'watch', at, path, connections: 1, streams: 1 })
    await cloud.send({ count: (watchPerSecond * loadForMs) / 1_000, perSecond: watchPerSecond })
    await load.order({ kind: 'close' })
  },
  edgeburst: async ({ edge, cloud }) => {
    const { version } = await cloud.send({ count: burstEvents, perSecond: Number.POSITIVE_INFINITY })
    await untilSeen(edge, version)
  },
}

/** Filled by one process and profiled in the next, so that the first sync is not in the picture. */
export async function loadEdge(choice: string, { dir, load, nodeOptions }: Profiling): Promise<void> {
  await mkdir(dir, { recursive: true })
  const cloud = await startCloud({ dir, pods: podCount })
  const start = (options: string) =>
    startEdge({
      dir: join(dir, 'edge'),
      server: cloud.url,
      kubeconfig: cloud.kubeconfig,
      args: ['--mirror', 'pods'],
      nodeOptions: options,
    })
  const filler = await start('')
  await untilSynced(filler)
  await filler.stop()
  const edge = await start(nodeOptions)
  await untilSynced(edge)
  await edgeLoads[choice]?.({ edge, cloud, load })
  await edge.stop()
  await cloud.stop()
}

type Profiling = { dir: string; load: Load; nodeOptions: string }

async function read(load: Load, at: Address, path: string, clients: number): Promise<void> {
  await load.order({ kind: 'open', at, protocol: 'h2', path, connections: clients, streams: 1 })
  await load.order({ kind: 'run', forMs: loadForMs })
  await load.order({ kind: 'close' })
}
