/** Kills, power cuts and disks that fail now and then, by seed: what is found again is always one of the states there were. */

import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { lives } from '../base/lives.test-support.ts'
import { type SeededRandom, seeded } from '../base/seeded.test-support.ts'
import { logFolder, segmentPath } from './segment.ts'
import { packObjects } from './slab.ts'
import { type Batch, type Change, type SharedBody, StoreUnusable } from './store.ts'
import {
  compare,
  copyCut,
  copyKilled,
  faultyDisk,
  filesIn,
  type Limits,
  modelOf,
  oneKey,
  otherKey,
  Synced,
  testKeys,
  World,
} from './world.test-support.ts'

const seedOfRun = Number(process.env.AKE_SEED ?? Date.now() % 1_000_000)
const interests = ['/a', '/b', '/c']
const kinds = ['token', 'document']
/** Segments of a few frames each, and a history of a few segments: all of it happens all the time. */
const small: Limits = { historyBytesMax: 9_000, segmentBytes: 3_000 }

async function inFolder(body: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'ake-powercut-'))
  try {
    await body(folder)
  } catch (error) {
    throw new Error(`AKE_SEED=${seedOfRun}: ${(error as Error).message}`, { cause: error })
  } finally {
    Synced.deaf()
    rmSync(folder, { recursive: true })
  }
}

/** An object version that interests share. */
type Shareable = { readonly version: number; readonly key: string; readonly body: Buffer; readonly shared: SharedBody }

class Writer {
  readonly #random: SeededRandom
  #version = 1
  #shareable: Shareable[] = []

  constructor(random: SeededRandom) {
    this.#random = random
  }

  /** A process begins: it can refer to the objects that are there. */
  begin({ index }: World): void {
    const found = new Map<number, Shareable>()
    for (const { name: interest } of index.interests()) {
      for (const { rows, bytes } of packObjects(index.bodies, index.objects(interest), { corrupt: () => {} })) {
        for (const { key, version, name, start, end } of rows) {
          if (name !== undefined)
            found.set(name, { key, version, body: Buffer.from(bytes.subarray(start, end)), shared: { name } })
        }
      }
    }
    this.#shareable = [...found.values()]
  }

  /** Lets go of some of what it could refer to. */
  release(world: World): void {
    const released = this.#shareable.splice(0, this.#random(this.#shareable.length + 1))
    world.release(...released.map(({ shared }) => shared))
  }

  batch(): Batch {
    const random = this.#random
    const synced = random(4) === 0
    if (random(25) === 0) return { changes: [], interests: [{ interest: this.#name(), forget: true }], synced }
    const changes = Array.from({ length: 1 + random(3) }, () => this.#change()).flat()
    const kind = kinds[random(2)] as string
    const value = random(3) === 0 ? undefined : this.#body()
    const records = random(5) === 0 ? [{ kind, key: `r${random(4)}`, value }] : []
    const said =
      random(6) === 0 ? [{ interest: this.#name(), synced: this.#version, floor: random(this.#version) }] : []
    return { changes, records, interests: said, synced }
  }

  #name(): string {
    return interests[this.#random(interests.length)] as string
  }

  #body(): Buffer {
    return Buffer.alloc([0, 10, 11, 300, 1_500][this.#random(5)] as number, `${this.#version};`)
  }

  #change(): Change[] {
    const random = this.#random
    const known = this.#shareable[random(this.#shareable.length + 1)]
    if (known !== undefined && random(4) === 0) return [{ interest: this.#name(), position: 0, kind: 'seed', ...known }]
    const version = ++this.#version
    const kind = (['put', 'put', 'put', 'delete', 'seed'] as const)[random(5)] as Change['kind']
    const change: Change = { interest: this.#name(), position: version, version, key: `k${random(6)}`, kind }
    if (kind === 'delete') return [change]
    const body = this.#body()
    if (random(2) === 0) return [{ ...change, body }]
    const shareable = { version, key: change.key, body, shared: { name: 0 } }
    this.#shareable.push(shareable)
    const others = interests.filter((interest) => interest !== change.interest && random(2) === 0)
    return [change.interest, ...others].map((interest) => ({ ...change, interest, ...shareable }))
  }
}

/** Some writes, and now and then the index follows or tidies up. */
async function live(world: World, { writer, random, steps }: { writer: Writer; random: SeededRandom; steps: number }) {
  for (let i = 0; i < steps; i++) {
    await world.commit(writer.batch())
    if (random(6) === 0) await world.log.sync().catch(() => {})
    if (random(4) === 0) world.follow()
    if (random(10) === 0) writer.release(world)
    while (random(3) !== 0 && world.index.tidy());
  }
}

async function check(world: World, { atLeast, frames }: { atLeast: number; frames: readonly Batch[] }): Promise<void> {
  assert.ok(world.frames.length >= atLeast, `${world.frames.length} frames were found, ${atLeast} are owed`)
  await compare(world.index, await modelOf(frames.slice(0, world.frames.length), small.historyBytesMax), kinds)
}

test('[D2] after a power cut at any instant everything synced is there, and everything before it', () =>
  inFolder(async (folder) => {
    for (let run = 0; run < lives(10); run++) {
      const seed = seedOfRun + run
      const random = seeded(seed)
      const writer = new Writer(random)
      let frames: Batch[] = []
      let owed = 0
      let at = join(folder, `${run}-0`)
      // Of some a key appears while they live, and later another one.
      const keysAt = random(2) === 0 ? [] : [[], [], [oneKey], [oneKey], [otherKey, oneKey], [otherKey, oneKey]]
      copyKilled(mkdtempSync(join(folder, 'empty-')), at)
      try {
        for (let life = 0; life < 6; life++) {
          const synced = new Synced()
          synced.listen()
          const faults = random(3) === 0 ? { write: () => random(12) === 0, sync: () => random(20) === 0 } : {}
          const keys = testKeys.length > 0 ? testKeys : (keysAt[life] ?? [])
          const world = new World({ folder: at, limits: small, disk: faultyDisk(faults, synced), frames, keys })
          await check(world, { atLeast: owed, frames })
          // What was found is all there is, under names that the disk has: what it was before is no longer of interest.
          for (const path of filesIn(logFolder(at))) {
            synced.note(path)
            synced.names.add(path)
          }
          synced.note(join(at, 'ake.db-wal'))
          writer.begin(world)
          await live(world, { writer, random, steps: 5 + random(60) })
          frames = [...world.frames]
          owed = Math.max(owed, world.syncedFrames)
          const next = join(folder, `${run}-${life + 1}`)
          copyCut(at, next, { synced, random })
          await world.close()
          Synced.deaf()
          at = next
        }
      } catch (error) {
        throw new Error(`AKE_SEED=${seed}: ${(error as Error).message}`, { cause: error })
      }
    }
  }))

test('[D2] after a kill at any instant everything acknowledged is there; a torn tail is cut off and written over', () =>
  inFolder(async (folder) => {
    const random = seeded(seedOfRun)
    const writer = new Writer(random)
    const first = join(folder, 'first')
    copyKilled(mkdtempSync(join(folder, 'empty-')), first)
    const world = new World({ folder: first, limits: small })
    await live(world, { writer, random, steps: 80 })
    world.follow()
    const applied = world.frames.length
    const at = world.index.applied
    for (let i = 0; i < 4; i++) await world.commit(writer.batch())
    const { frames } = world
    const end = world.log.end as { segment: number; offset: number }
    const appliedAt = at.segment < end.segment ? 0 : at.offset
    const whole = join(folder, 'whole')
    copyKilled(first, whole)
    await world.close()
    // Every byte of the last ones, and some of those before.
    for (
      let length = end.offset;
      length > Math.max(0, end.offset - 2_000);
      length -= end.offset - length < 120 ? 1 : 31
    ) {
      const cut = join(folder, 'cut')
      copyKilled(whole, cut)
      truncateSync(segmentPath(logFolder(cut), end.segment), length)
      const again = new World({ folder: cut, limits: small, frames })
      if (length === end.offset) assert.equal(again.frames.length, frames.length)
      assert.ok(again.frames.length >= applied, 'what the index has seen counts')
      // Below what the index has seen: that is lost, and named.
      assert.equal(again.index.losses.length > 0, length < appliedAt)
      if (length >= appliedAt && again.frames.length > applied) {
        await check(again, { atLeast: applied, frames })
        writer.begin(again)
        const more = writer.batch()
        assert.ok(await again.commit(more))
        again.follow()
        await check(again, { atLeast: again.frames.length, frames: [...again.frames] })
      }
      await again.close()
      rmSync(cut, { recursive: true })
    }
  }))

test('[D4] an index that is lost is made again from the log, as long as nothing of that is gone', () =>
  inFolder(async (folder) => {
    const random = seeded(seedOfRun)
    const writer = new Writer(random)
    const limits = { historyBytesMax: 1 << 20, segmentBytes: 1 << 20 }
    const world = new World({ folder, limits })
    for (let i = 0; i < 30; i++) await world.commit(writer.batch())
    world.follow()
    const { frames } = world
    await world.close()
    for (const name of readdirSync(folder)) if (name.startsWith('ake.db')) rmSync(join(folder, name))
    const again = new World({ folder, limits, frames })
    await compare(again.index, await modelOf(frames, limits.historyBytesMax), kinds)
    await again.close()
    for (const name of readdirSync(folder)) if (name.startsWith('ake.db')) rmSync(join(folder, name))
    rmSync(segmentPath(logFolder(folder), 1))
    const later = segmentPath(logFolder(folder), 7)
    writeFileSync(later, 'x')
    assert.throws(() => new World({ folder, limits }), StoreUnusable)
    assert.ok(existsSync(later), 'nothing was removed')
  }))
