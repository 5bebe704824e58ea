/** How much memory does it hold with 10,000 pods of 3.5 KB, after a burst of 20 lists of all of them? */

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Contestant, Question, Target } from './bench.ts'
import { connectTo } from './client.ts'
import { memoryKb } from './process.ts'
import { openMany } from './start.ts'

const lists = 20

/** After the burst: what is still held then is held for long. */
const settleMs = 2_000

export const memory: Question = {
  name: 'memory',
  ask: async ({ say }) => {
    const dir = await mkdtemp(join(tmpdir(), 'ake-memory-'))
    const by: { clients: number; measured: { [name in Contestant]?: number } }[] = [1, 4].map((clients) => ({
      clients,
      measured: {},
    }))
    try {
      for (const target of await openMany(dir)) {
        let current = target
        for (const { clients, measured } of by) {
          current = await current.restart!()
          const idle = megabytes(current)
          await burst(current, clients)
          await pause(settleMs)
          measured[target.name] = megabytes(current)
          const after = `${measured[target.name]!.toFixed(0)} MB after ${lists} lists by ${clients}`
          say(`  ${target.name}: ${idle.toFixed(0)} MB after start, ${after}`)
        }
        await current.stop()
      }
    } finally {
      await rm(dir, { recursive: true, force: true })
    }
    return by.map(({ clients, measured }) => ({
      name: `memory, 10,000 pods, after 20 lists by ${clients === 1 ? 'one client' : `${clients} clients`}`,
      unit: 'MB RssAnon',
      measured,
      atMost: 95,
    }))
  },
}

async function burst(target: Target, clients: number): Promise<void> {
  const lane = async () => {
    const connection = await connectTo(target, 'h2')
    for (let done = 0; done < lists / clients; done++) {
      const { status } = await connection.ask({ path: '/api/v1/pods' })
      if (status !== 200) throw new Error(`${target.name} LIST: ${status}`)
    }
    connection.close()
  }
  await Promise.all(Array.from({ length: clients }, lane))
}

function megabytes(target: Target): number {
  return memoryKb(target.pid, 'RssAnon') / 1_000
}
