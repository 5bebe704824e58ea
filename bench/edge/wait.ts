/** Waiting for an edge to have come somewhere, and watching its memory on the way. */

import { setTimeout as pause } from 'node:timers/promises'
import type { Address } from '../bench.ts'
import { connectTo } from '../client.ts'
import { memoryKb } from '../process.ts'

const sampleEveryMs = 50
const seenWithinMs = 120_000
const askAgainMs = 20

/** Samples from now on; `stop` answers the most that was seen. */
export function peakKb(pid: number): { stop(): number } {
  let most = 0
  const look = () => {
    most = Math.max(most, memoryKb(pid, 'RssAnon'))
  }
  look()
  const timer = setInterval(look, sampleEveryMs)
  return {
    stop: () => {
      clearInterval(timer)
      look()
      return most
    },
  }
}

/** Resolves when lists of pods are at least of this version. */
export async function untilSeen(edge: Address, version: number): Promise<void> {
  const connection = await connectTo(edge, 'h2')
  const give = performance.now() + seenWithinMs
  for (;;) {
    const { text = '' } = await connection.ask({ path: '/api/v1/pods?resourceVersion=0&limit=1' }, true)
    const seen = Number(/"resourceVersion":"(\d+)"/.exec(text)?.[1])
    if (seen >= version) break
    if (performance.now() > give) throw new Error(`the edge is at ${seen} of ${version}`)
    await pause(askAgainMs)
  }
  connection.close()
}
