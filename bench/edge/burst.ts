/** How does an edge take 20,000 events that come as fast as the line brings them? From the stand-in; 5,000 pods are held. */

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Question } from '../bench.ts'
import { podCount } from '../fixture.ts'
import { cpuExactMs } from '../process.ts'
import { startEdge, untilSynced } from './edge.ts'
import { startCloud } from './upstream.ts'
import { peakKb, untilSeen } from './wait.ts'

const events = 20_000

export const edgeburst: Question = {
  name: 'edgeburst',
  ask: async ({ say }) => {
    const dir = await mkdtemp(join(tmpdir(), 'ake-edgeburst-'))
    const cloud = await startCloud({ dir, pods: podCount })
    const args = ['--mirror', 'pods']
    const edge = await startEdge({ dir: join(dir, 'edge'), server: cloud.url, kubeconfig: cloud.kubeconfig, args })
    try {
      await untilSynced(edge)
      const peak = peakKb(edge.pid)
      const before = cpuExactMs(edge.pid)
      const startedAt = performance.now()
      const { version, tookMs } = await cloud.send({ count: events, perSecond: Number.POSITIVE_INFINITY })
      await untilSeen(edge, version)
      const wallMs = performance.now() - startedAt
      const cpuMs = cpuExactMs(edge.pid) - before
      const peakMb = peak.stop() / 1_000
      say(
        `  ${events} events: sent in ${tookMs.toFixed(0)} ms, taken in ${wallMs.toFixed(0)} ms, ` +
          `${(cpuMs / events).toFixed(4)} ms CPU each, at most ${peakMb.toFixed(0)} MB`,
      )
      const name = 'edge, burst of 20,000 events'
      return [
        { name, unit: 'ms', measured: { ake: wallMs } },
        { name, unit: 'ms CPU an event', measured: { ake: cpuMs / events }, atMost: 0.12 },
        { name: `${name}, peak`, unit: 'MB RssAnon', measured: { ake: peakMb }, atMost: 150 },
      ]
    } finally {
      await edge.stop()
      await cloud.stop()
      await rm(dir, { recursive: true, force: true })
    }
  },
}
