/** Folders of an authority, what its clients were told, what disks do to them, and what is found afterwards. */

import assert from 'node:assert/strict'
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { basename, join } from 'node:path'
import { mock } from 'node:test'
import type { SeededRandom } from '../base/seeded.test-support.ts'
import { type Disk, systemDisk } from './disk.ts'
import { logFolder } from './segment.ts'
import { packObjects } from './slab.ts'
import type { Batch, Change } from './store.ts'
import { copyKilled, filesIn, type Limits, World } from './world.test-support.ts'

export const small: Limits = { historyBytesMax: 6_000, segmentBytes: 2_000 }
const interests = ['/a', '/b', '/c']

/** The power is not turned off here: without syncs it is ten times as fast. */
export const disk: Disk = { ...systemDisk, sync: async () => {}, syncFolder: async () => {} }

export function withoutSyncs(): void {
  for (const name of ['fdatasyncSync', 'fsyncSync'] as const) mock.method(fs, name, () => {})
  syncBuiltinESMExports()
}

export function withSyncs(): void {
  mock.restoreAll()
  syncBuiltinESMExports()
}

type State = { readonly version: number; readonly body: string }

/** What clients were told: an authority's writes, each synced before it is acknowledged. */
export class Told {
  readonly objects = new Map<string, State>()
  /** What the last frame has changed: without an index its loss cannot be told from a torn end. */
  last = new Set<string>()
  version = 1

  batch(random: SeededRandom): Batch {
    const changes: Change[] = []
    this.last = new Set()
    for (let i = random(3); i >= 0; i--) {
      const interest = interests[random(interests.length)] as string
      const key = `k${random(12)}`
      const version = ++this.version
      const name = `${interest} ${key}`
      const kind = this.objects.has(name) && random(4) === 0 ? ('delete' as const) : ('put' as const)
      const change = { interest, key, version, kind, position: version }
      this.last.add(name)
      if (kind === 'delete') {
        changes.push(change)
        this.objects.delete(name)
        continue
      }
      const body = `${name} at ${version} ${'x'.repeat(random(400))}`
      const shared = { shared: { name: 0 }, body: Buffer.from(body) }
      for (const holder of random(2) === 0 ? [interest] : interests) {
        changes.push({ ...change, interest: holder, ...shared })
        this.objects.set(`${holder} ${key}`, { version, body })
        this.last.add(`${holder} ${key}`)
      }
    }
    return { changes, synced: true }
  }
}

async function live(world: World, told: Told, random: SeededRandom): Promise<void> {
  for (let i = 20 + random(80); i > 0; i--) {
    assert.ok(await world.commit(told.batch(random)))
    if (random(5) === 0) world.follow()
    while (random(2) === 0 && world.index.tidy());
  }
}

export function turnBits(path: string, random: SeededRandom, below = Number.POSITIVE_INFINITY): void {
  const bytes = fs.readFileSync(path)
  const end = Math.min(bytes.length, below)
  if (end <= 0) return
  for (let i = random(3); i >= 0; i--) {
    const at = random(end)
    bytes[at] = (bytes[at] as number) ^ (1 << random(8))
  }
  fs.writeFileSync(path, bytes)
}

export type Folder = {
  readonly at: string
  readonly lastFrameAt: number
  readonly older: string
  readonly other: string
}

const isSegment = (path: string) => path.endsWith('.log')

/** Something happens to the log. Answers what, for the reader of a failure. */
export function harmLog(
  { at, lastFrameAt }: Folder,
  random: SeededRandom,
  { isIndexLost }: { isIndexLost: boolean },
): string {
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

export function harmIndex({ at, older, other }: Folder, random: SeededRandom): string {
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
export function found(world: World): { objects: Map<string, State>; named: Set<string>; version: number } {
  const objects = new Map<string, State>()
  const named = new Set<string>()
  let version = world.index.raised
  for (const { name, lastVersion, isDoubted } of world.index.interests()) {
    version = Math.max(version, lastVersion)
    if (isDoubted) named.add(name)
    const corrupt = (key: string) => named.add(`${name} ${key}`)
    for (const { rows, bytes } of packObjects(world.index.bodies, world.index.objects(name), { corrupt })) {
      for (const { key, version: at, start, end } of rows) {
        objects.set(`${name} ${key}`, { version: at, body: Buffer.from(bytes.subarray(start, end)).toString() })
      }
    }
  }
  return { objects, named, version }
}

/** A folder with some past, of a process that was ended or killed, and what its clients were told. */
export async function makeFolder(
  folder: string,
  random: SeededRandom,
): Promise<{ made: Folder; told: Told; isKilled: boolean }> {
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
  const made: Folder = { at: isKilled ? killed : at, lastFrameAt: isNewSegment ? 0 : before, older, other }
  return { made, told, isKilled }
}
