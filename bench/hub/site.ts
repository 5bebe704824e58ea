/** `ake hub` over a real API server, edges behind lines that count their bytes, and what a question waits for at them. */

import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Hub, issueEdge } from '../../conformance/hubs.ts'
import { writeKubeconfig } from '../../conformance/kubeconfig.ts'
import { type Link, startLink } from '../../conformance/link.ts'
import { startAke } from '../ake.ts'
import type { Address, Target } from '../bench.ts'
import { type Ask, connectTo } from '../client.ts'

const askAgainMs = 50
/** Where other resources have changed since, a bookmark has to come (within a minute), and the mark of it (within another). */
const syncedMsMax = 180_000
/** After its start an edge fetches documents one by one. */
const quietMsMax = 90_000
/** Less than this in the time of a look is keepalive. */
const quietBytesMax = 400

/** An edge that its hub trusts, alone on its line. */
export type HubEdge = { readonly ake: Target; readonly line: Link }

export type HubSite = {
  readonly hub: Hub
  edge(name: string, args?: readonly string[]): Promise<HubEdge>
  stop(): Promise<void>
}

export async function startHubSite({ dir, at }: { readonly dir: string; readonly at: Address }): Promise<HubSite> {
  const kubeconfig = join(dir, 'hub.kubeconfig')
  await writeKubeconfig(kubeconfig, { url: at.url, ...at.tls })
  const ending = new AbortController()
  const folder = join(dir, 'hub')
  // Callers here are administrators, which a hub passes on only for edges that it trusts.
  const hub = await Hub.start({ dir: folder, kubeconfig, args: ['--trust-edges'], signal: ending.signal }, 'hub')
  const edges: HubEdge[] = []
  return {
    hub,
    edge: async (name, args = []) => {
      const line = await startLink({ target: { host: '127.0.0.1', port: hub.port } })
      const way = ['--hub', `wss://127.0.0.1:${line.port}`, '--credential', await issueEdge(folder, name)]
      const ake = await startAke({ command: ['edge', ...way, ...args], dir: join(dir, name) })
      const edge = { ake, line }
      edges.push(edge)
      return edge
    },
    stop: async () => {
      for (const { ake, line } of edges) {
        await ake.stop()
        await line.close()
      }
      await hub.end('kill')
    },
  }
}

/** Both directions, TLS included. */
export function passed(line: Link): number {
  const { bytesUp, bytesDown } = line.stats()
  return bytesUp + bytesDown
}

/** Resolves when hardly anything has passed for so long. */
export async function untilQuiet(line: Link, forMs: number): Promise<void> {
  const give = performance.now() + quietMsMax
  let before = -quietBytesMax - 1
  while (passed(line) - before > quietBytesMax && performance.now() < give) {
    before = passed(line)
    await pause(forMs)
  }
}

type EdgeInterests = {
  readonly upstream: { readonly state: string }
  readonly interests: readonly {
    readonly resource: string
    readonly fields?: string
    readonly state: string
    readonly resourceVersion: number
  }[]
}

async function statusOf({ ake }: HubEdge): Promise<EdgeInterests> {
  const connection = await connectTo(ake, 'h2')
  const { text = '{}' } = await connection.ask({ path: '/ake/status' }, true)
  connection.close()
  return JSON.parse(text) as EdgeInterests
}

/** The hub is there, and all that the edge follows is synced, pods of the whole cluster up to this version. */
export async function untilCurrent(edge: HubEdge, version: number): Promise<EdgeInterests> {
  const give = performance.now() + syncedMsMax
  for (;;) {
    const status = await statusOf(edge)
    const { upstream, interests } = status
    const pods = interests.find(({ resource, fields }) => resource === 'pods' && fields === undefined)
    const isSynced = interests.every(({ state }) => state === 'synced' || state === 'fed')
    if (upstream.state === 'reachable' && isSynced && (pods?.resourceVersion ?? -1) >= version) return status
    if (performance.now() > give) throw new Error(`the edge is not current: ${JSON.stringify(status).slice(0, 2_000)}`)
    await pause(askAgainMs)
  }
}

/** Asked once, so that what is passed through until it is held does not count much. */
export async function wantPods({ ake }: HubEdge): Promise<void> {
  const connection = await connectTo(ake, 'h2')
  const { status, text } = await connection.ask({ path: '/api/v1/pods?resourceVersion=0&limit=1' }, true)
  connection.close()
  // 429: its first sync takes longer than a caller is made to wait.
  if (status !== 200 && status !== 429) throw new Error(`LIST of pods at the edge: ${status} ${text?.slice(0, 500)}`)
}

/** The newest version at the API server. */
export async function newestVersion(at: Address): Promise<number> {
  const connection = await connectTo(at, 'h2')
  const { text = '{}' } = await connection.ask({ path: '/api/v1/pods?limit=1' }, true)
  connection.close()
  return Number((JSON.parse(text) as { metadata: { resourceVersion: string } }).metadata.resourceVersion)
}

/** One after the other; throws where an answer is none of the fine ones. */
export async function sendEach(
  at: Address,
  all: readonly Ask[],
  fine: readonly number[] = [200, 201, 409],
): Promise<void> {
  const connection = await connectTo(at, 'h2')
  for (const one of all) {
    const { status, text } = await connection.ask(one, true)
    if (!fine.includes(status)) throw new Error(`${one.method} ${one.path}: ${status} ${text}`)
  }
  connection.close()
}
