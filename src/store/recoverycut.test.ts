/** Power cuts at every write of a recovery, by seed: what a recovery has not synced may be gone, and the next one comes to the same. */
import assert from 'node:assert/strict'
import fs, { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { lives } from '../base/lives.test-support.ts'
import { type SeededRandom, seeded } from '../base/seeded.test-support.ts'
import { disk, found, makeFolder, small, Told, turnBits } from './damage.test-support.ts'
import { bytesIn, CutDisk } from './recoverycut.test-support.ts'
import { logFolder } from './segment.ts'
import { StoreUnusable } from './store.ts'
import { copyKilled, filesIn, Synced, World } from './world.test-support.ts'

const seedOfRun = Number(process.env.AKE_SEED ?? Date.now() % 1_000_000)
const scratch = fs.existsSync('/dev/shm') ? '/dev/shm' : tmpdir()

/** What a start makes of a folder; undefined where the power went. */
type Outcome = Served | 'refused' | undefined
type Served = { objects: object; named: object; losses: object; version: number }

/** Versions may jump with each start. */
function stored({ objects, named, losses }: Served): object {
  return { objects, named, losses }
}

function outcome(world: World): Served {
  const { objects, named, version } = found(world)
  const losses = world.index.losses.map(({ segment, offset }) => `${segment} ${offset}`).sort()
  return { objects, named, losses, version }
}

function start(at: string): Outcome {
  try {
    const world = new World({ folder: at, limits: small, disk })
    const came = outcome(world)
    world.index.close()
    return came
  } catch (error) {
    if (error instanceof StoreUnusable) return 'refused'
    assert.match((error as Error).message, /the power went/)
    return undefined
  }
}

/** A process that was killed while it wrote: nothing of its last frame was acknowledged. */
async function tear(at: string, folder: string, { told, random }: { told: Told; random: SeededRandom }): Promise<void> {
  const torn = join(folder, 'torn')
  copyKilled(at, torn)
  const world = new World({ folder: torn, limits: small, disk })
  const before = bytesIn(logFolder(torn)).files
  const unheard = new Told()
  unheard.version = told.version
  assert.ok(await world.commit(unheard.batch(random)))
  await world.close()
  for (const [name, bytes] of bytesIn(logFolder(torn)).files) {
    const had = before.get(name)?.length ?? 0
    if (bytes.length <= had) continue
    fs.writeFileSync(join(logFolder(at), name), bytes.subarray(0, had + 1 + random(bytes.length - had - 1)))
  }
}

function dropIndex(at: string): void {
  for (const name of ['ake.db', 'ake.db-wal']) rmSync(join(at, name), { force: true })
}

const starts = ['a torn end', 'a damaged segment', 'a lost index', 'a damaged base', 'a lost segment'] as const

async function harm(
  at: string,
  folder: string,
  parts: { what: (typeof starts)[number]; told: Told; random: SeededRandom },
): Promise<void> {
  const { what, random } = parts
  const paths = filesIn(logFolder(at)).sort()
  const segments = paths.filter((path) => path.endsWith('.log'))
  const earlier = segments[random(segments.length - 1)] as string
  if (what === 'a torn end' || random(3) === 0) await tear(at, folder, parts)
  if (what === 'a damaged segment') turnBits(earlier, random)
  if (what === 'a lost segment') rmSync(earlier)
  if (what === 'a damaged base') for (const path of paths) if (path.endsWith('.base')) turnBits(path, random)
  if (what === 'a lost index' || random(3) === 0) dropIndex(at)
}

/** What was in the log is there, or was set aside; or a recovery that is not cut does without it as well. */
function assertKept(was: string, is: string, expected: string): void {
  const [before, after, whole] = [was, is, expected].map((one) => bytesIn(logFolder(one)))
  for (const [name, bytes] of before?.files ?? []) {
    if (!name.endsWith('.log')) continue
    const now = after?.files.get(name)
    const left = now === undefined ? bytes : bytes.subarray(now.length)
    if (left.length === 0 || after?.aside.some((one) => one.subarray(-left.length).equals(left))) continue
    const isProven = now === undefined && !whole?.files.has(name)
    assert.ok(isProven && !whole?.aside.some((one) => one.equals(bytes)), `${left.length} bytes of ${name} are nowhere`)
  }
}

/** Power cuts in the recovery of one folder; answers before how many writes. */
async function cutEverywhere(folder: string, seed: number): Promise<number> {
  const random = seeded(seed)
  const { made, told } = await makeFolder(folder, random)
  const what = starts[seed % starts.length] as (typeof starts)[number]
  await harm(made.at, folder, { what, told, random })
  const whole = join(folder, 'whole')
  copyKilled(made.at, whole)
  const expected = start(whole)
  if (expected === 'refused') return 0
  assert.ok(expected !== undefined)
  assert.ok(expected.version >= told.version)
  for (let last = 1; ; last++) {
    const at = join(folder, `cut-${last}`)
    copyKilled(made.at, at)
    const cut = new CutDisk(at, last)
    cut.listen()
    const came = start(at)
    Synced.deaf()
    cut.cut(random)
    // Elsewhere: what the cut has left open is never closed.
    const again = join(folder, `again-${last}`)
    copyKilled(at, again)
    const why = `${what}, cut before write ${last}`
    const then = start(again)
    assert.ok(then !== undefined && then !== 'refused', why)
    const { version } = then
    assert.deepEqual(stored(then), stored(expected), why)
    const given = came === undefined || came === 'refused' ? told.version : came.version
    assert.ok(version >= given, `${why}: version ${version} after ${given}`)
    assertKept(made.at, again, whole)
    for (const one of [at, again]) rmSync(one, { recursive: true })
    if (!cut.isCut) return last
  }
}

async function inFolder<Result>(seed: number, body: (folder: string) => Promise<Result>): Promise<Result> {
  const folder = mkdtempSync(join(scratch, 'ake-recoverycut-'))
  try {
    return await body(folder)
  } catch (error) {
    throw new Error(`AKE_SEED=${seed}: ${(error as Error).message}`, { cause: error })
  } finally {
    Synced.deaf()
    rmSync(folder, { recursive: true })
  }
}

test('[D2] [D4] after a power cut before any write of a recovery the next one comes to the same: what was lost is named, what was cut is kept', async () => {
  let cuts = 0
  for (let seed = seedOfRun; seed < seedOfRun + lives(12); seed++) {
    cuts += await inFolder(seed, (folder) => cutEverywhere(folder, seed))
  }
  assert.ok(cuts > 0, 'nothing was written')
})

/** After a recovery one more write, and the power goes before or after it is synced. */
async function cutBehind(folder: string, seed: number): Promise<void> {
  const random = seeded(seed)
  const { made, told } = await makeFolder(folder, random)
  await harm(made.at, folder, { what: starts[seed % starts.length] as (typeof starts)[number], told, random })
  const { at } = made
  const cut = new CutDisk(at, Number.POSITIVE_INFINITY)
  cut.listen()
  let world: World
  try {
    world = new World({ folder: at, limits: small, disk: cut.logDisk })
  } catch (error) {
    assert.ok(error instanceof StoreUnusable, String(error))
    return
  }
  const before = outcome(world)
  const isSynced = random(2) === 0
  assert.ok(await world.commit({ ...told.batch(random), synced: isSynced }))
  Synced.deaf()
  const [killed, left] = [join(folder, 'killed-then'), join(folder, 'left')]
  copyKilled(at, killed)
  cut.cut(random)
  copyKilled(at, left)
  await world.close()
  const after = start(killed)
  assert.ok(after !== undefined && after !== 'refused')
  const then = start(left)
  assert.ok(then !== undefined && then !== 'refused')
  const { version } = then
  const expected = [after, ...(isSynced ? [] : [before])].map(stored)
  assert.ok(version >= (isSynced ? after : before).version, `version ${version} after ${after.version}`)
  if (!expected.some((one) => isDeepStrictEqual(one, stored(then)))) assert.deepEqual(stored(then), expected[0])
}

test('[D2] [D4] what is written after a recovery is there after a power cut, or is not; neither counts as a loss', async () => {
  for (let seed = seedOfRun; seed < seedOfRun + lives(50); seed++) {
    await inFolder(seed, (folder) => cutBehind(folder, seed))
  }
})
