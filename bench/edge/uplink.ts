/**
 * How many bytes come down the line to a site with 20 informers of all pods: from their start, over 1,000 events? Twenty
 * that ask kube-apiserver themselves, and twenty that ask an edge, at the same time and with the same events.
 */

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { writeKubeconfig } from '../../conformance/kubeconfig.ts'
import { startLink } from '../../conformance/link.ts'
import type { Address, Question } from '../bench.ts'
import { connectTo } from '../client.ts'
import { type CountedWatch, countedWatch } from '../counted.ts'
import { makePods, podCount } from '../fixture.ts'
import { writeSteadily } from '../writer.ts'
import { startEdge } from './edge.ts'

const informers = 20
const events = 1_000
const perSecond = 100

const arriveWithinMs = 30_000
const pollMs = 50

export const edgeuplink: Question = {
  name: 'edgeuplink',
  ask: async ({ targets, say }) => {
    const real = (await targets('kube-apiserver'))[0]
    if (real === undefined) return []
    const dir = await mkdtemp(join(tmpdir(), 'ake-edgeuplink-'))
    const target = { host: '127.0.0.1', port: Number(new URL(real.url).port) }
    const [direct, uplink] = await Promise.all([startLink({ target }), startLink({ target })])
    const kubeconfig = join(dir, 'edge.kubeconfig')
    await writeKubeconfig(kubeconfig, { url: uplink.url, ...real.tls })
    const edge = await startEdge({ dir: join(dir, 'edge'), server: uplink.url, kubeconfig })
    const open: CountedWatch[] = []
    try {
      // One after the other, for the API server's sake: their bytes are the same.
      for (let index = 0; index < informers; index++) {
        open.push(await startInformer({ url: direct.url, tls: real.tls }), await startInformer(edge))
      }
      await writeSteadily({ at: real, pods: makePods(podCount), perSecond, forMs: (events / perSecond) * 1_000 })
      const give = performance.now() + arriveWithinMs
      while (open.some(({ seen }) => seen() < events) && performance.now() < give) await pause(pollMs)
      const least = Math.min(...open.map(({ seen }) => seen()))
      if (least < events) throw new Error(`an informer saw ${least} of ${events} events`)
      const bytes = { own: uplink.stats().bytesDown, theirs: direct.stats().bytesDown }
      say(
        `  ${informers} informers: ${bytes.own} bytes to the edge, ${bytes.theirs} to as many without it, ` +
          `1/${(bytes.theirs / bytes.own).toFixed(1)}`,
      )
      return [
        {
          name: 'edge, uplink of 20 informers and 1,000 events (kube-apiserver: without the edge)',
          unit: 'MB',
          measured: { ake: bytes.own / 1e6, 'kube-apiserver': bytes.theirs / 1e6 },
          versus: 'kube-apiserver',
          atMost: 1 / 19,
        },
      ]
    } finally {
      for (const one of open) one.close()
      await edge.stop()
      await Promise.all([direct.close(), uplink.close()])
      await rm(dir, { recursive: true, force: true })
    }
  },
}

/** As client-go's reflector without WatchList, which is the thriftiest it can be: a gzipped LIST, then a WATCH. */
async function startInformer({ url, tls }: Address): Promise<CountedWatch> {
  const connection = await connectTo({ url, tls }, 'h2')
  const path = '/api/v1/pods?resourceVersion=0'
  const { status } = await connection.ask({ path, headers: { 'accept-encoding': 'gzip' } })
  if (status !== 200) throw new Error(`LIST at ${url}: ${status}`)
  // Of a list just as new, but small: the large one is packed.
  const { text = '' } = await connection.ask(
    { path: '/api/v1/namespaces/team-00/pods?resourceVersion=0&limit=1' },
    true,
  )
  connection.close()
  const version = /"resourceVersion":"(\d+)"/.exec(text)?.[1]
  return await countedWatch({ url, tls }, `/api/v1/pods?watch=true&resourceVersion=${version}&timeoutSeconds=3600`)
}
