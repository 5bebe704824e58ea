/** Space: what is dead goes back to the disk, what is alive is never lost by that, and little is written twice. */

import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { lives } from '../base/lives.test-support.ts'
import { seeded } from '../base/seeded.test-support.ts'
import { logFolder } from './segment.ts'
import type { Batch, Change } from './store.ts'
import { compare, type Limits, modelOf, World } from './world.test-support.ts'

const seed = 11

async function inFolder(body: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'ake-space-'))
  try {
    await body(folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function sizeOf(folder: string): number {
  const log = logFolder(folder)
  return readdirSync(log).reduce((sum, name) => sum + statSync(join(log, name)).size, 0)
}

/** The counts of the tables agree with each other, and every body belongs to an object or an entry. */
function audit(folder: string): { live: number } {
  const db = new DatabaseSync(join(folder, 'ake.db'))
  const one = (sql: string) => Object.values(db.prepare(sql).get() as object)[0] as number
  try {
    const owned = `SELECT body FROM objects UNION SELECT body FROM records
      UNION SELECT previous FROM history WHERE previous IS NOT NULL`
    assert.equal(one(`SELECT count(*) FROM bodies WHERE id NOT IN (${owned})`), 0, 'a body is nobody’s')
    const miscounted =
      'SELECT count(*) FROM keys k WHERE objects <> (SELECT count(*) FROM objects o WHERE o.key = k.id)'
    assert.equal(one(miscounted), 0, 'a key is counted wrongly')
    const wrong = `SELECT count(*) FROM segments s
      WHERE live <> (SELECT coalesce(sum(length), 0) FROM bodies b WHERE b.segment = s.number)`
    assert.equal(one(wrong), 0, 'a segment is counted wrongly')
    assert.equal(one('SELECT count(*) FROM bodies WHERE segment NOT IN (SELECT number FROM segments)'), 0)
    return { live: one('SELECT coalesce(sum(length), 0) FROM bodies') }
  } finally {
    db.close()
  }
}

const rounds = lives(400)

test(`${rounds * 250} updates of the same objects take no more disk than a thousand, and write little twice`, () =>
  inFolder(async (folder) => {
    const limits: Limits = { historyBytesMax: 200_000, segmentBytes: 32_000 }
    const random = seeded(seed)
    const world = new World({ folder, limits })
    let version = 1
    let most = 0
    let keptBytes = 0
    const seen = new Set<string>()
    for (let round = 0; round < rounds; round++) {
      const changes = Array.from({ length: 250 }, (): Change => {
        version++
        // Half of the updates go to one in twenty of the objects.
        const key = `k${random(2) === 0 ? random(15) : random(300)}`
        return {
          interest: '/pods',
          position: version,
          version,
          key,
          kind: 'put',
          body: Buffer.alloc(150, `${version};`),
        }
      })
      assert.ok(await world.commit({ changes, synced: false }))
      if (round % 2 !== 0) continue
      await world.log.sync()
      world.follow()
      while (world.index.tidy());
      most = Math.max(most, sizeOf(folder))
      for (const name of readdirSync(logFolder(folder))) {
        if (!name.endsWith('.kept') || seen.has(name)) continue
        seen.add(name)
        keptBytes += limits.segmentBytes
      }
    }
    const objects = 300 * 150
    const bound = 1.5 * (limits.historyBytesMax + objects) + 8 * limits.segmentBytes
    assert.ok(most < bound, `${most} bytes of log, at most ${bound}`)
    assert.ok(keptBytes < world.log.bytes / 2, `${keptBytes} of ${world.log.bytes} were written twice`)
    await world.close()
    const { live } = audit(folder)
    assert.ok(sizeOf(folder) <= 1.5 * live + 10 * limits.segmentBytes)
  }))

test('objects, history and records are the same wherever their bodies have moved, through restarts', () =>
  inFolder(async (folder) => {
    const limits: Limits = { historyBytesMax: 6_000, segmentBytes: 1_500 }
    const random = seeded(seed)
    let world = new World({ folder, limits })
    let version = 1
    let moved = 0
    for (let round = 0; round < 300; round++) {
      version++
      const interest = ['/a', '/b'][random(2)] as string
      const kind = (['put', 'put', 'put', 'delete', 'seed'] as const)[random(5)] as Change['kind']
      const key = `k${random(8)}`
      const change: Change = { interest, position: version, version, key, kind }
      const body = Buffer.alloc([10, 300, 900][random(3)] as number, `${version};`)
      const batch: Batch = {
        changes: [kind === 'delete' ? change : { ...change, body }],
        interests: random(40) === 0 ? [{ interest: '/b', forget: true }] : [],
        records: random(6) === 0 ? [{ kind: 'token', key, value: random(4) === 0 ? undefined : body }] : [],
        synced: false,
      }
      assert.ok(await world.commit(batch))
      if (random(2) === 0) await world.log.sync()
      if (random(3) === 0) world.follow()
      while (random(3) !== 0 && world.index.tidy());
      moved = Math.max(moved, readdirSync(logFolder(folder)).filter((name) => name.endsWith('.kept')).length)
      if (random(30) !== 0) continue
      world.follow()
      await compare(world.index, await modelOf(world.frames, limits.historyBytesMax), ['token'])
      const { frames } = world
      await world.close()
      audit(folder)
      world = new World({ folder, limits, frames })
      assert.equal(world.frames.length, frames.length)
      await compare(world.index, await modelOf(frames, limits.historyBytesMax), ['token'])
    }
    assert.ok(moved > 0, 'nothing was moved')
    await world.close()
  }))
