/** How long does a WatchList of 5,000 pods take through an edge, and from kube-apiserver itself? What a new informer waits for. */

import { mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { writeKubeconfig } from '../../conformance/kubeconfig.ts'
import type { Address, Contestant, Question, Target } from '../bench.ts'
import { connectionWindowBytes, streamWindowBytes, tlsOptions } from '../client.ts'
import { cpuMs } from '../process.ts'
import { startEdge, untilSynced } from './edge.ts'

/** The least of these counts. */
const rounds = 5

const path =
  '/api/v1/pods?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=60'

/** The bookmark with this annotation says that everything has been sent. */
const endMark = Buffer.from('"k8s.io/initial-events-end":"true"')

export const edgewatchlist: Question = {
  name: 'edgewatchlist',
  ask: async ({ targets, say }) => {
    const real = (await targets('kube-apiserver'))[0]
    if (real === undefined) return []
    const dir = await mkdtemp(join(tmpdir(), 'ake-edgewatchlist-'))
    const kubeconfig = join(dir, 'edge.kubeconfig')
    await writeKubeconfig(kubeconfig, { url: real.url, ...real.tls })
    const args = ['--mirror', 'pods']
    const edge = await startEdge({ dir: join(dir, 'edge'), server: real.url, kubeconfig, args })
    try {
      await untilSynced(edge)
      const wall: { [name in Contestant]?: number } = {}
      const cpu: { [name in Contestant]?: number } = {}
      const least = (known: number | undefined, now: number) => Math.min(known ?? now, now)
      for (let round = 0; round < rounds; round++) {
        for (const target of [edge, real] as Target[]) {
          const before = cpuMs(target.pid)
          const took = await timeWatchList(target)
          const cost = cpuMs(target.pid) - before
          wall[target.name] = least(wall[target.name], took)
          cpu[target.name] = least(cpu[target.name], cost)
          say(`  ${target.name}: ${took.toFixed(0)} ms, ${cost.toFixed(0)} ms CPU`)
        }
      }
      const name = 'edge, WatchList of 5,000 pods'
      return [
        { name, unit: 'ms', measured: wall, versus: 'kube-apiserver', atMost: 1 },
        { name, unit: 'ms CPU', measured: cpu, versus: 'kube-apiserver', atMost: 1 },
      ]
    } finally {
      await edge.stop()
      await rm(dir, { recursive: true, force: true })
    }
  },
}

/** From asking on an open connection to the bookmark at the end. */
async function timeWatchList({ url, tls }: Address): Promise<number> {
  const session = connect(url, {
    ...tlsOptions(tls),
    settings: { initialWindowSize: streamWindowBytes, enablePush: false },
  })
  try {
    await new Promise<void>((ready, fail) => {
      session.once('error', fail)
      session.once('connect', () => ready())
    })
    session.setLocalWindowSize(connectionWindowBytes)
    return await new Promise<number>((done, fail) => {
      const startedAt = performance.now()
      const stream = session.request({ ':path': path, accept: 'application/json' })
      let tail: Buffer = Buffer.alloc(0)
      stream.on('response', (headers) => {
        if (headers[':status'] !== 200) fail(new Error(`WatchList at ${url}: ${headers[':status']}`))
      })
      stream.on('data', (chunk: Buffer) => {
        const text = Buffer.concat([tail, chunk])
        if (text.includes(endMark)) done(performance.now() - startedAt)
        tail = text.subarray(Math.max(0, text.length - endMark.length))
      })
      stream.on('end', () => fail(new Error(`WatchList at ${url} ended before its bookmark`)))
      stream.on('error', fail)
    })
  } finally {
    session.destroy()
  }
}
