/** How much memory does an edge hold with 10,000 pods, how much while it gets them, and how much before it has anything? */

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { startAke } from '../ake.ts'
import type { Question, Target } from '../bench.ts'
import { memoryKb } from '../process.ts'
import { startEdge } from './edge.ts'
import { openManyEdge } from './start.ts'
import { startCloud } from './upstream.ts'
import { peakKb } from './wait.ts'

/** What is still held then is held for long. */
const settleMs = 5_000

export const edgememory: Question = {
  name: 'edgememory',
  ask: async ({ say }) => {
    const dir = await mkdtemp(join(tmpdir(), 'ake-edgememory-'))
    try {
      const rest = await atRest(dir)
      say(`  without objects: edge ${rest.ake.toFixed(0)} MB, ake serve ${rest['ake serve'].toFixed(0)}`)
      let peak = { stop: () => 0 }
      const { cloud, edge } = await openManyEdge(dir, ({ pid }) => {
        peak = peakKb(pid)
      })
      await pause(settleMs)
      const most = peak.stop() / 1_000
      const synced = megabytes(edge)
      await cloud.stop()
      const again = await edge.restart!()
      await pause(settleMs)
      const restarted = megabytes(again)
      await again.stop()
      say(
        `  10,000 pods: at most ${most.toFixed(0)} MB, then ${synced.toFixed(0)}, started again ${restarted.toFixed(0)}`,
      )
      const unit = 'MB RssAnon'
      return [
        { name: 'edge, memory without objects', unit, measured: rest, versus: 'ake serve' },
        { name: 'edge, memory, 10,000 pods, first sync, peak', unit, measured: { ake: most }, atMost: 150 },
        { name: 'edge, memory, 10,000 pods, after it', unit, measured: { ake: synced }, atMost: 105 },
        { name: 'edge, memory, 10,000 pods, started offline', unit, measured: { ake: restarted }, atMost: 105 },
      ]
    } finally {
      await rm(dir, { recursive: true, force: true })
    }
  },
}

async function atRest(dir: string): Promise<{ ake: number; 'ake serve': number }> {
  const cloud = await startCloud({ dir: join(dir, 'empty'), pods: 1 })
  const options = { dir: join(dir, 'empty', 'edge'), server: cloud.url, kubeconfig: cloud.kubeconfig }
  // The first start of changed code also compiles it.
  const [edge, serve] = await Promise.all(
    [startEdge(options), startAke({ dir: join(dir, 'serve') })].map(async (first) => (await first).restart!()),
  )
  await pause(settleMs)
  const measured = { ake: megabytes(edge!), 'ake serve': megabytes(serve!) }
  await Promise.all([edge!.stop(), serve!.stop()])
  await cloud.stop()
  return measured
}

function megabytes({ pid }: Target): number {
  return memoryKb(pid, 'RssAnon') / 1_000
}
