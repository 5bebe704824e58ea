/**
 * Disks that lie, by seed: bits turn, files are cut or gone, the index is lost, is garbage, an older one or another
 * folder's. What was acknowledged is then served as it was, or named: as damaged, as doubted, or by refusing the folder.
 */
import assert from 'node:assert/strict'
import fs, { mkdtempSync, rmSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { after, mock, test } from 'node:test'
import { type Disk, systemDisk } from './disk.ts'
import { logFolder } from './segment.ts'
import { packObjects } from './slab.ts'
import { type Batch, type Change, StoreUnusable } from './store.ts'
import { copyKilled, filesIn, type Limits, type Random, seeded, World } from './world.test-support.ts'

const seedOfRun = Number(process.env.AKE_SEED ?? Date.now() % 1_000_000)
/** Each takes some ten milliseconds; thousands were run when this was written. */
const runs = Number(process.env.AKE_RUNS ?? 150)
const small: Limits = { historyBytesMax: 6_000, segmentBytes: 2_000 }
const interests = ['/a', '/b', '/c']

/** Nobody turns the power off here: without syncs it is ten times as fast. */
const disk: Disk = { ...systemDisk, sync: async () => {}, syncFolder: async () => {} }
for (const name of ['fdatasyncSync', 'fsyncSync'] as const) mock.method(fs, name, () => {})
syncBuiltinESMExports()
after(() => {
  mock.restoreAll()
  syncBuiltinESMExports()
})

type State = { readonly version: number; readonly body: string }

/** What clients were told: an authority's writes, each synced before it is acknowledged. */
class Told {
  readonly objects = new Map<string, State>()
  /** What the last frame has changed: without an index nobody can tell its loss from a torn end. */
  last = new Set<string>()
  version = 1

  batch(random: Random): Batch {
    const changes: Change[] = []
    this.last = new Set()
    for (let i = random(3); i >= 0; i--) {
      const interest = interests[random(interests.length)] as string
      const key = `k${random(12)}`
      const version = ++this.version
      const name = `${interest} ${key}`
      const kind = this.objects.has(name) && random(4) === 0 ? ('delete' as const) : ('put' as const)
      const change = { interest, key, version, kind, position: version }
      const body = `${name} at ${version} ${'x'.repeat(random(400))}`
      changes.push(kind === 'delete' ? change : { ...change, body: Buffer.from(body) })
      if (kind === 'delete') this.objects.delete(name)
      else this.objects.set(name, { version, body })
      this.last.add(name)
    }
    return { changes, synced: true }
  }
}

async function live(world: World, told: Told, random: Random): Promise<void> {
  for (let i = 20 + random(80); i > 0; i--) {
    assert.ok(await world.commit(told.batch(random)))
    if (random(5) === 0) world.follow()
    while (random(2) === 0 && world.index.tidy());
  }
}

function turnBits(path: string, random: Random, below = Number.POSITIVE_INFINITY): void {
  const bytes = fs.readFileSync(path)
  const end = Math.min(bytes.length, below)
  if (end <= 0) return
  for (let i = random(3); i >= 0; i--) {
    const at = random(end)
    bytes[at] = (bytes[at] as number) ^ (1 << random(8))
  }
  fs.writeFileSync(path, bytes)
}

type Folder = { readonly at: string; readonly lastFrameAt: number; readonly older: string; readonly other: string }

const isSegment = (path: string) => path.endsWith('.log')

/** Something happens to the log. Answers what, for whoever reads that it failed. */
function harmLog({ at, lastFrameAt }: Folder, random: Random, { isIndexLost }: { isIndexLost: boolean }): string {
  const files = filesIn(logFolder(at)).filter((path) => !isIndexLost || isSegment(path) || path.endsWith('.kept'))
  const segments = files.filter(isSegment).sort()
  const last = segments.at(-1) as string
  const path = files[random(files.length)] as string
  const name = basename(path)
  // Of the last one only what lies before its last frame, where nothing else says how far the log went.
  if (path === last && isIndexLost) {
    turnBits(path, random, lastFrameAt)
    return `bits of ${name} before its last frame`
  }
  const how = random(4)
  if (how === 0) fs.rmSync(path)
  else if (how === 1) fs.truncateSync(path, random(fs.statSync(path).size + 1))
  else turnBits(path, random)
  return `${['gone', 'cut', 'bits', 'bits'][how]} ${name}`
}

function harmIndex({ at, older, other }: Folder, random: Random): string {
  const files = ['ake.db', 'ake.db-wal'].map((name) => join(at, name)).filter((path) => fs.existsSync(path))
  const path = files[random(files.length)] as string
  const drop = () => {
    for (const one of files) fs.rmSync(one)
  }
  const how = random(7)
  if (how === 0) drop()
  else if (how === 1) fs.rmSync(path)
  else if (how === 2) fs.truncateSync(path, random(fs.statSync(path).size + 1))
  else if (how === 3) fs.writeFileSync(path, Buffer.alloc(8_192, 'garbage'))
  else if (how === 4) turnBits(path, random)
  else {
    drop()
    for (const one of filesIn(how === 5 ? older : other)) fs.copyFileSync(one, join(at, basename(one)))
  }
  return `index: ${['gone', 'a file gone', 'cut', 'garbage', 'bits', 'older', 'another'][how]} ${basename(path)}`
}

/** Everything that is handed out, and what is named instead. */
function found(world: World): { objects: Map<string, State>; named: Set<string>; version: number } {
  const objects = new Map<string, State>()
  const named = new Set<string>()
  let version = world.index.raised
  for (const { name, lastVersion, isDoubted } of world.index.interests()) {
    version = Math.max(version, lastVersion)
    if (isDoubted) named.add(name)
    const corrupt = (key: string) => named.add(`${name} ${key}`)
    for (const { rows, bytes } of packObjects(world.index.bodies, world.index.objects(name), corrupt)) {
      for (const { key, version: at, start, end } of rows) {
        objects.set(`${name} ${key}`, { version: at, body: Buffer.from(bytes.subarray(start, end)).toString() })
      }
    }
  }
  return { objects, named, version }
}

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

async function run(folder: string, random: Random): Promise<string> {
  const at = join(folder, 'store')
  const [older, other, killed] = ['older', 'other', 'killed'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ]
  for (const one of [at, older, other]) fs.mkdirSync(one)
  const stranger = new World({ folder: other, limits: small, disk })
  await live(stranger, new Told(), random)
  await stranger.close()
  const told = new Told()
  const world = new World({ folder: at, limits: small, disk })
  await live(world, told, random)
  copyKilled(world.folder, older)
  await live(world, told, random)
  const before = (world.log.end as { offset: number }).offset
  const segments = filesIn(logFolder(at)).filter(isSegment).length
  assert.ok(await world.commit(told.batch(random)))
  world.follow()
  const isNewSegment = filesIn(logFolder(at)).filter(isSegment).length > segments
  const isKilled = random(2) === 0
  if (isKilled) copyKilled(at, killed)
  await world.close()
  const harmed: Folder = { at: isKilled ? killed : at, lastFrameAt: isNewSegment ? 0 : before, older, other }
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
    const folder = mkdtempSync(join(tmpdir(), 'ake-damage-'))
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
    (outcomes.get('served') ?? 0) > runs * 0.8,
    `${[...outcomes].join(' ')}: a refusal is for what is beyond repair`,
  )
})
