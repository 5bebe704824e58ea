/**
 * Disks that lie, by seed: bits turn, files are cut or gone, the index is lost, is garbage, an older one or another
 * folder's. What was acknowledged is then served as it was, or named: as damaged, as doubted, or by refusing the folder.
 */

import assert from 'node:assert/strict'
import fs, { mkdtempSync, rmSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, mock, test } from 'node:test'
import { lives } from '../base/lives.test-support.ts'
import { type SeededRandom, seeded } from '../base/seeded.test-support.ts'
import {
  disk,
  found,
  harmIndex,
  harmLog,
  makeFolder,
  small,
  type Told,
  withoutSyncs,
  withSyncs,
} from './damage.test-support.ts'
import { StoreUnusable } from './store.ts'
import { copyKilled, World } from './world.test-support.ts'

const seedOfRun = Number(process.env.AKE_SEED ?? Date.now() % 1_000_000)
/** Each takes a tenth of a second; thousands were run when this was written. */
const runs = lives(100)
/** In memory where there is such a place: what is tested is what a disk does to files, not how long it takes. */
const scratch = fs.existsSync('/dev/shm') ? '/dev/shm' : tmpdir()
withoutSyncs()
after(withSyncs)

function check(world: World, told: Told, { mayLack }: { mayLack: ReadonlySet<string> }): void {
  const { objects, named, version } = found(world)
  const isNamed = (name: string) =>
    named.has(name) ||
    named.has(name.split(' ')[0] as string) ||
    (!isKnown(world, name) && world.index.losses.length > 0)
  for (const name of new Set([...told.objects.keys(), ...objects.keys()])) {
    if (isNamed(name) || mayLack.has(name)) continue
    assert.deepEqual(objects.get(name), told.objects.get(name), name)
  }
  assert.ok(version >= told.version, `version ${told.version} was given out, and ${version} is the newest now`)
}

/** An interest all of which is lost is named by what is lost. */
function isKnown(world: World, name: string): boolean {
  return world.index.interests().some((one) => one.name === name.split(' ')[0])
}

async function run(folder: string, random: SeededRandom): Promise<string> {
  const { made: harmed, told, isKilled } = await makeFolder(folder, random)
  const isIndexLost = random(3) === 0
  const isLogHarmed = !isIndexLost || random(2) === 0
  const what = [isKilled ? 'killed' : 'closed']
  if (isIndexLost) what.push(harmIndex(harmed, random))
  if (isLogHarmed) what.push(harmLog(harmed, random, { isIndexLost }))
  try {
    for (let life = 0; life < 2; life++) {
      let again: World
      try {
        again = new World({ folder: harmed.at, limits: small, disk })
      } catch (error) {
        // Refused by name: an edge sets such a folder aside.
        assert.ok(error instanceof StoreUnusable && error.damaged, String(error))
        return 'refused'
      }
      check(again, told, { mayLack: isIndexLost && isLogHarmed ? told.last : new Set() })
      const { version } = found(again)
      told.version = Math.max(told.version, version)
      // It is written on, and what is written is there the next time.
      assert.ok(await again.commit(told.batch(random)))
      again.follow()
      await again.close()
    }
    return 'served'
  } catch (error) {
    throw new Error(`${what.join(', ')}: ${(error as Error).message}`, { cause: error })
  }
}

test('[D4] whatever a disk does to the files, what was acknowledged is served as it was or named, and versions never fall back', async () => {
  const outcomes = new Map<string, number>()
  for (let i = 0; i < runs; i++) {
    const seed = seedOfRun + i
    const folder = mkdtempSync(join(scratch, 'ake-damage-'))
    try {
      const outcome = await run(folder, seeded(seed))
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
    } catch (error) {
      throw new Error(`AKE_SEED=${seed}: ${(error as Error).message}`, { cause: error })
    } finally {
      rmSync(folder, { recursive: true })
    }
  }
  assert.ok(
    // Of few runs some more may be beyond repair by chance.
    (outcomes.get('served') ?? 0) > runs * 0.8 - 3,
    `${[...outcomes].join(' ')}: a refusal is for what is beyond repair`,
  )
})

test('[D4] a bit that has turned anywhere in the index makes no object come back that was deleted after it', async () => {
  const folder = mkdtempSync(join(scratch, 'ake-turned-'))
  const limits = { historyBytesMax: 6_000, segmentBytes: 100_000 }
  const open = (at: string) => new World({ folder: at, limits, disk })
  const change = { interest: '/a', key: 'ghost', version: 2, position: 2 }
  try {
    const made = join(folder, 'made')
    fs.mkdirSync(made)
    const world = open(made)
    await world.commit({ changes: [{ ...change, kind: 'put', body: Buffer.from('a body') }], synced: true })
    world.follow()
    await world.close()
    // Tables, and what finds their rows, each say the key.
    const bytes = fs.readFileSync(join(made, 'ake.db'))
    const places = [...bytes.toString('latin1').matchAll(/ghost/g)].map(({ index }) => index)
    assert.ok(places.length > 1, `${places.length} places`)
    for (const place of places) {
      const at = join(folder, `turned-${place}`)
      copyKilled(made, at)
      const turned = Buffer.from(bytes)
      turned[place] = (turned[place] as number) ^ 1
      fs.writeFileSync(join(at, 'ake.db'), turned)
      const deleting = open(at)
      await deleting.commit({ changes: [{ ...change, version: 3, position: 3, kind: 'delete' }], synced: true })
      deleting.follow()
      await deleting.close()
      const again = open(at)
      assert.deepEqual([...found(again).objects], [], `turned at ${place}`)
      await again.close()
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
})

/** Calls by which a recovery changes the disk: before the one with this number the power goes, and stays away. */
function cutBefore(last: number): () => number {
  let calls = 0
  const count = () => {
    if (++calls >= last) throw new Error('the power went')
  }
  const names = [
    'rmSync',
    'renameSync',
    'truncateSync',
    'ftruncateSync',
    'writeFileSync',
    'copyFileSync',
    'writeSync',
  ] as const
  for (const name of names) {
    const real = fs[name] as (...parts: unknown[]) => unknown
    mock.method(fs, name, (...parts: unknown[]) => {
      count()
      return real(...parts)
    })
  }
  const { exec } = DatabaseSync.prototype
  mock.method(DatabaseSync.prototype, 'exec', function (this: DatabaseSync, sql: string) {
    if (sql.includes('COMMIT')) count()
    return exec.call(this, sql)
  })
  syncBuiltinESMExports()
  return () => calls
}

const foldersMax = 20

test('[D2] [D4] a recovery that is cut before any of its writes is done again, with the same outcome', async () => {
  let cuts = 0
  // A folder that is refused is not written to: then there is another.
  for (let i = 0; i < Math.max(1, runs / 20) || (cuts === 0 && i < foldersMax); i++) {
    const seed = seedOfRun + i
    const random = seeded(seed)
    const folder = mkdtempSync(join(scratch, 'ake-recovery-'))
    try {
      const { made } = await makeFolder(folder, random)
      harmIndex(made, random)
      if (random(2) === 0) harmLog(made, random, { isIndexLost: true })
      const whole = join(folder, 'whole')
      copyKilled(made.at, whole)
      const expected = outcomeOf(whole)
      for (let last = 1; ; last++) {
        const at = join(folder, `cut-${last}`)
        copyKilled(made.at, at)
        const calls = cutBefore(last)
        outcomeOf(at)
        const isDone = calls() < last
        withSyncs()
        withoutSyncs()
        // Elsewhere: what the cut has left open is never closed.
        const again = join(folder, `again-${last}`)
        copyKilled(at, again)
        assert.deepEqual(outcomeOf(again), expected, `cut before write ${last}`)
        for (const one of [at, again]) rmSync(one, { recursive: true })
        if (isDone) break
        cuts++
      }
    } catch (error) {
      throw new Error(`AKE_SEED=${seed}: ${(error as Error).message}`, { cause: error })
    } finally {
      withSyncs()
      withoutSyncs()
      rmSync(folder, { recursive: true })
    }
  }
  assert.ok(cuts > 0, 'nothing was written')
})

/** What a start makes of it. */
function outcomeOf(folder: string): unknown {
  try {
    const world = new World({ folder, limits: small, disk })
    const { objects, named } = found(world)
    const { losses } = world.index
    world.index.close()
    return { objects, named, losses }
  } catch (error) {
    return error instanceof StoreUnusable ? 'refused' : 'cut'
  }
}
