/**
 * What does a key cost (`--encryption-key`)? The same commits and the same start, of a store that is sealed beside one that is
 * not; and of the plain one what it costs that there could be a key, which is nothing: compare with `commit`.
 */

import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { openDurable } from '../src/store/durable.ts'
import type { Question } from './bench.ts'
import { makePods } from './fixture.ts'

const objects = 10_000
const writers = 64
const roundMs = 3_000
const rounds = 3
const historyBytesMax = 64 * 1024 * 1024
const parent = import.meta.dirname
const key = Buffer.alloc(32, 'bench')

type Row = { readonly key: string; readonly body: Buffer }

export const sealed: Question = {
  name: 'sealed',
  ask: async ({ say }) => {
    const rows = makePods(objects).map(({ namespace, name, object }): Row => {
      return { key: `${namespace}/${name}`, body: Buffer.from(JSON.stringify(object)) }
    })
    const best = {
      sealed: { commits: 0, load: Number.POSITIVE_INFINITY },
      plain: { commits: 0, load: Number.POSITIVE_INFINITY },
    }
    for (let round = 0; round < rounds; round++) {
      for (const [name, keys] of [['plain', []] as const, ['sealed', [key]] as const]) {
        const { commits, load } = await measure(rows, keys)
        best[name].commits = Math.max(best[name].commits, commits)
        best[name].load = Math.min(best[name].load, load)
        say(`  ${name}: ${Math.round(commits)} commits/s, ${load.toFixed(0)} ms to load ${objects} objects`)
      }
    }
    const { sealed, plain } = best
    say(
      `  sealed beside plain: commits ${(sealed.commits / plain.commits).toFixed(2)}, load ${(sealed.load / plain.load).toFixed(2)}`,
    )
    return [
      {
        name: 'durable commits, sealed',
        unit: 'commits/s',
        measured: { ake: sealed.commits, 'ake plain': plain.commits },
        versus: 'ake plain',
        atLeast: 0.8,
      },
      {
        name: 'load of 10,000 objects, sealed',
        unit: 'ms',
        measured: { ake: sealed.load, 'ake plain': plain.load },
        versus: 'ake plain',
        atMost: 2,
      },
    ]
  },
}

async function measure(rows: readonly Row[], keys: readonly Buffer[]): Promise<{ commits: number; load: number }> {
  const folder = await mkdtemp(join(parent, '.sealed-'))
  try {
    const store = openDurable({ folder, historyBytesMax, keys })
    await store.load()
    const changes = rows.map(({ key, body }) => {
      return { interest: 'pods', position: 0, version: 1, key, kind: 'seed', body } as const
    })
    await store.commit({ changes, synced: true })
    const commits = await writeFor(store, rows)
    await store.close()
    const began = performance.now()
    const again = openDurable({ folder, historyBytesMax, keys })
    await again.load()
    const load = performance.now() - began
    await again.close()
    return { commits, load }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function writeFor(store: ReturnType<typeof openDurable>, rows: readonly Row[]): Promise<number> {
  let version = 1
  const began = performance.now()
  const writer = async () => {
    while (performance.now() < began + roundMs) {
      version += 1
      const { key, body } = rows[version % rows.length]!
      const change = { interest: 'pods', position: version, version, key, kind: 'put', body } as const
      await store.commit({ changes: [change], synced: true })
    }
  }
  await Promise.all(Array.from({ length: writers }, writer))
  return (version * 1_000) / (performance.now() - began)
}
