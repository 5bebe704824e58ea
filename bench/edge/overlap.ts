/** What do twenty selectors over the same 10,000 pods cost an edge, against one: memory and disk, also after a restart? */

import { mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Figure, Question, Target } from '../bench.ts'
import { connectTo } from '../client.ts'
import { memoryKb } from '../process.ts'
import { startEdge } from './edge.ts'
import { startCloud } from './upstream.ts'

const pods = 10_000
const selectors = 20
/** What is still held then is held for long, and what was written is in the index. */
const settleMs = 8_000
const syncedMsMax = 120_000
const askAgainMs = 100

type Cost = { readonly memory: number; readonly disk: number }

export const edgeoverlap: Question = {
  name: 'edgeoverlap',
  ask: async ({ say }) => {
    const dir = await mkdtemp(join(tmpdir(), 'ake-edgeoverlap-'))
    const cloud = await startCloud({ dir, pods })
    try {
      const [one, many] = [await costs(1), await costs(selectors)]
      return [...figures('', one.first, many.first), ...figures(', started again', one.again, many.again)]
    } finally {
      await cloud.stop()
      await rm(dir, { recursive: true, force: true })
    }

    async function costs(count: number): Promise<{ first: Cost; again: Cost }> {
      const folder = join(dir, `edge-${count}`)
      const edge = await startEdge({ dir: folder, server: cloud.url, kubeconfig: cloud.kubeconfig })
      await untilMirrored(edge, count)
      const first = await costOf(edge, folder)
      const started = await edge.restart!()
      const again = await costOf(started, folder)
      await started.stop()
      say(`  ${count} of them: ${spelled(first)}, started again ${spelled(again)}`)
      return { first, again }
    }
  },
}

function figures(when: string, one: Cost, many: Cost): Figure[] {
  return (['memory', 'disk'] as const).map((what) => ({
    name: `edge, ${what} of ${selectors} selectors over the same ${pods.toLocaleString('en')} pods${when}`,
    unit: '× of one',
    measured: { ake: many[what] / one[what] },
    atMost: 1.3,
  }))
}

const spelled = ({ memory, disk }: Cost) => `memory ${memory.toFixed(0)} MB, disk ${disk.toFixed(0)} MB`

/** Each of them selects every pod, and none is covered by another: the most that overlapping can cost. */
async function untilMirrored(edge: Target, count: number): Promise<void> {
  const connection = await connectTo(edge, 'h2')
  const give = performance.now() + syncedMsMax
  for (let selector = 0; selector < count; ) {
    const labels = encodeURIComponent(`stage!=s${selector}`)
    await connection.ask({ path: `/api/v1/pods?resourceVersion=0&limit=1&labelSelector=${labels}` })
    const { text = '{}' } = await connection.ask({ path: '/ake/status' }, true)
    const { interests = [] } = JSON.parse(text) as { interests?: { resource: string; state: string }[] }
    const synced = interests.filter(({ resource, state }) => resource === 'pods' && state === 'synced').length
    if (synced > selector) selector++
    else if (performance.now() > give)
      throw new Error(`the edge mirrors ${synced} of ${count}: ${text.slice(0, 1_000)}`)
    else await pause(askAgainMs)
  }
  connection.close()
}

async function costOf(edge: Target, folder: string): Promise<Cost> {
  await pause(settleMs)
  return { memory: memoryKb(edge.pid, 'RssAnon') / 1_000, disk: (await bytesIn(folder)) / 1_000_000 }
}

async function bytesIn(folder: string): Promise<number> {
  let bytes = 0
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (entry.isFile()) bytes += (await stat(join(entry.parentPath, entry.name))).size
  }
  return bytes
}
