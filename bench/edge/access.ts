/**
 * How much of what a GET costs an edge goes into finding out who asks and whether it may, with a token and a right that are
 * known? By samples of its main thread under load, in which every function of `src/access` and what makes a caller and a
 * question of a request counts with all that it calls. Not by the CPU of two kinds of callers: what they differ in is a
 * microsecond of sixty, less than two runs do. Garbage is nobody's in such samples: it is in the whole, not in the part.
 */

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Question } from '../bench.ts'
import { readProfiles, shareOf } from '../cpuprofile.ts'
import { median } from '../median.ts'
import { loadEdge } from './profile.ts'

const rounds = 3

const isAccess = (url: string) => /\/src\/(access\/|endpoint\/(cloudaccess|identify)\.ts$)/.test(url)

export const edgeaccess: Question = {
  name: 'edgeaccess',
  ask: async ({ load, say }) => {
    const dir = await mkdtemp(join(tmpdir(), 'ake-edgeaccess-'))
    const shares: number[] = []
    try {
      for (let round = 0; round < rounds; round++) {
        const profiles = join(dir, `profile-${round}`)
        const nodeOptions = `--cpu-prof --cpu-prof-dir=${profiles}`
        await loadEdge('edgeget', { dir: join(dir, String(round)), load, nodeOptions })
        const main = (await readProfiles(profiles)).find(({ thread }) => thread === 'main')
        if (main === undefined) throw new Error('the edge left no profile of its main thread')
        shares.push(shareOf(main.profile, isAccess) * 100)
        say(`  who asks and whether it may: ${shares.at(-1)?.toFixed(1)} % of a GET`)
      }
    } finally {
      await rm(dir, { recursive: true, force: true })
    }
    const name = 'edge, GET of a pod by a known token: who asks, and whether it may'
    return [{ name, unit: '% of its CPU', measured: { ake: median(shares) }, atMost: 10 }]
  },
}
