/** How long from starting the process until a client has the first LIST, with 10,000 pods on the disk? */

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fillByWriting, startAke } from './ake.ts'
import { startApiServer } from './apiserver.ts'
import type { Contestant, Question, Target } from './bench.ts'
import { connectTo } from './client.ts'
import { makePods } from './fixture.ts'
import { isOurServerThere } from './stage.ts'

const manyPods = 10_000

/** The least of these counts; the first also pays for a cold compile cache. */
const rounds = 5
const apiServerRounds = 2

export const start: Question = {
  name: 'start',
  ask: async ({ say }) => {
    const dir = await mkdtemp(join(tmpdir(), 'ake-start-'))
    const page: { [name in Contestant]?: number } = {}
    const whole: { [name in Contestant]?: number } = {}
    try {
      for (const target of await openMany(dir)) {
        let current = target
        const times: [number, number][] = []
        for (let round = 0; round < (target.name === 'ake' ? rounds : apiServerRounds); round++) {
          current = await current.restart!()
          const ready = performance.now() - current.startedAt
          times.push([await timeList(current, '/api/v1/pods?limit=500'), await timeList(current, '/api/v1/pods')])
          say(
            `  ${target.name}: ready ${ready.toFixed(0)} ms, page ${times.at(-1)![0].toFixed(0)}, whole ${times.at(-1)![1].toFixed(0)}`,
          )
        }
        page[target.name] = Math.min(...times.map(([first]) => first))
        whole[target.name] = Math.min(...times.map(([, second]) => second))
        await current.stop()
      }
    } finally {
      await rm(dir, { recursive: true, force: true })
    }
    return [
      { name: 'start, 10,000 pods, to a first LIST of 500', unit: 'ms', measured: page, atMost: 500 },
      { name: 'start, 10,000 pods, to a first LIST of all', unit: 'ms', measured: whole, atMost: 500 },
    ]
  },
}

/** Our server and the real one with many pods; those that cannot run here are left out. */
export async function openMany(dir: string): Promise<Target[]> {
  const pods = makePods(manyPods)
  const found: Target[] = []
  if (await isOurServerThere()) {
    const ake = await startAke({ dir: join(dir, 'ake') })
    await fillByWriting(ake, pods)
    found.push(ake)
  }
  const apiserver = await startApiServer(join(dir, 'kube-apiserver'), pods)
  if (apiserver !== undefined) found.push(apiserver)
  return found
}

async function timeList(target: Target, path: string): Promise<number> {
  const connection = await connectTo(target, 'h2')
  const { status } = await connection.ask({ path })
  connection.close()
  if (status !== 200) throw new Error(`${target.name} GET ${path}: ${status}`)
  return performance.now() - target.startedAt
}
