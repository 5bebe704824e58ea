/** Ends of the log that are lost: what was acknowledged there is named, and its versions are not given out again. */
import assert from 'node:assert/strict'
import fs, { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { disk, found, type small, withoutSyncs, withSyncs } from './damage.test-support.ts'
import { logFolder, segmentPath } from './segment.ts'
import { type Batch, StoreUnusable } from './store.ts'
import { copyKilled, World } from './world.test-support.ts'

withoutSyncs()
after(withSyncs)

const limits: typeof small = { historyBytesMax: 1 << 20, segmentBytes: 2_000 }

type Parts = { folder: string; killed: string; read: { segment: number; offset: number } }

/** A folder of a process that was killed: of its twenty writes the index has read some fifteen. */
async function withKilled(body: (parts: Parts) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'ake-mark-'))
  try {
    const at = join(folder, 'store')
    fs.mkdirSync(at)
    const world = new World({ folder: at, limits, disk })
    for (let version = 1; version <= 20; version++) {
      if (version === 11) copyKilled(at, join(folder, 'older'))
      assert.ok(await world.commit(write(version)))
      // In a place where the segment goes on behind what was read.
      if (version === 15) world.follow()
    }
    const read = world.index.applied
    const killed = join(folder, 'killed')
    copyKilled(at, killed)
    await world.close()
    await body({ folder, killed, read })
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function write(version: number, body = `${version};`.repeat(30)): Batch {
  const change = { interest: '/a', key: `k${version % 5}`, version, position: version, kind: 'put' as const }
  return { changes: [{ ...change, body: Buffer.from(body) }], synced: true }
}

function dropIndex(at: string): void {
  for (const name of ['ake.db', 'ake.db-wal']) rmSync(join(at, name), { force: true })
}

function segmentsIn(at: string): string[] {
  const names = fs.readdirSync(logFolder(at)).filter((name) => name.endsWith('.log'))
  return names.sort().map((name) => join(logFolder(at), name))
}

/** What was lost is named, and stays so; each later start gives out no version twice, and says it no second time. */
async function assertNamed(at: string, given: number): Promise<void> {
  let newest = given
  for (let life = 0; life < 3; life++) {
    const world = new World({ folder: at, limits, disk })
    assert.equal(world.index.losses.length, 1, 'it is noted')
    assert.equal(world.index.takeNews().losses.length, life === 0 ? 1 : 0, 'it is told once')
    const { named, version } = found(world)
    assert.ok(version >= newest, `${version} after ${newest}`)
    assert.ok(named.has('/a'), 'the interest is doubted')
    if (life === 0) assert.ok(version > given + 1_000_000, `${version} is well above whatever was lost`)
    newest = version
    if (life > 0) assert.ok(await world.commit(write(++newest)))
    world.follow()
    await world.close()
  }
  // And so it stays when the index is made again.
  dropIndex(at)
  const world = new World({ folder: at, limits, disk })
  const { named, version } = found(world)
  assert.ok(version >= newest && named.has('/a'))
  await world.close()
}

const losses: Record<string, (parts: Parts) => void> = {
  'is cut inside what the index has read': ({ killed, read }) => {
    for (const path of segmentsIn(killed)) if (path > segmentPath(logFolder(killed), read.segment)) rmSync(path)
    fs.truncateSync(segmentPath(logFolder(killed), read.segment), read.offset - 10)
  },
  'is gone with the segment the index was reading': ({ killed, read }) => {
    for (const path of segmentsIn(killed)) if (path >= segmentPath(logFolder(killed), read.segment)) rmSync(path)
  },
  'is that of an older copy': ({ killed, folder }) => {
    rmSync(logFolder(killed), { recursive: true })
    copyKilled(logFolder(join(folder, 'older')), logFolder(killed))
  },
}

for (const [what, lose] of Object.entries(losses)) {
  test(`[D4] a log whose end ${what}: the loss is named, and versions never fall back`, () =>
    withKilled(async (parts) => {
      lose(parts)
      await assertNamed(parts.killed, 20)
    }))
}

for (const how of ['cut', 'gone'] as const) {
  test(`[D4] the end of the log is ${how} together with the index after an orderly stop: the loss is named`, () =>
    withKilled(async ({ killed }) => {
      const world = new World({ folder: killed, limits, disk })
      world.follow()
      await world.close()
      dropIndex(killed)
      const last = segmentsIn(killed).at(-1) as string
      if (how === 'gone') rmSync(last)
      else fs.truncateSync(last, fs.statSync(last).size - 1)
      await assertNamed(killed, 20)
    }))
}

test('[D4] a folder whose log and index are both gone is refused, one that was never written to is not', () =>
  withKilled(async ({ killed }) => {
    rmSync(logFolder(killed), { recursive: true })
    dropIndex(killed)
    for (let life = 0; life < 2; life++) {
      assert.throws(
        () => new World({ folder: killed, limits, disk }),
        (error) => error instanceof StoreUnusable && error.damaged && /ake\.end/.test(error.message),
      )
    }
    rmSync(join(killed, 'ake.end'))
    await new World({ folder: killed, limits, disk }).close()
    rmSync(logFolder(killed), { recursive: true })
    dropIndex(killed)
    await new World({ folder: killed, limits, disk }).close()
  }))

/** A log whose last frame the index has not read, and where that begins. */
async function withLast(body: (parts: { at: string; path: string; from: number }) => void): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'ake-last-'))
  try {
    const [at, killed] = [join(folder, 'store'), join(folder, 'killed')]
    fs.mkdirSync(at)
    const world = new World({ folder: at, limits: { ...limits, segmentBytes: 1 << 20 }, disk })
    assert.ok(await world.commit(write(1)))
    world.follow()
    assert.ok(await world.commit(write(2)))
    const { offset: from, segment } = world.log.end as { offset: number; segment: number }
    assert.ok(await world.commit(write(3, 'x'.repeat(3_000))))
    copyKilled(at, killed)
    await world.close()
    body({ at: killed, path: segmentPath(logFolder(killed), segment), from })
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function start(at: string) {
  const world = new World({ folder: at, limits, disk })
  const { named, version } = found(world)
  const { losses: lost, cuts } = world.index.takeNews()
  world.index.close()
  return { named: [...named], version, lost: lost.length, cuts }
}

function turnBit(path: string, offset: number): void {
  const bytes = fs.readFileSync(path)
  bytes[offset] = (bytes[offset] as number) ^ 1
  fs.writeFileSync(path, bytes)
}

test('[D4] one turned bit in a body of the last frame: what was acknowledged is named', () =>
  withLast(({ at, path }) => {
    turnBit(path, fs.statSync(path).size - 5)
    const { named, lost, cuts } = start(at)
    assert.deepEqual({ named, lost, cuts }, { named: ['/a k3'], lost: 0, cuts: [] })
  }))

test('[D4] one turned bit in the head of the last frame: the loss is named, nothing is given out twice', () =>
  withLast(({ at, path, from }) => {
    turnBit(path, from + 40)
    for (let life = 0; life < 2; life++) {
      const { named, lost, cuts, version } = start(at)
      assert.deepEqual({ named, lost, cuts }, { named: ['/a'], lost: 1 - life, cuts: [] })
      assert.ok(version >= 3)
    }
  }))

test('[D2] what a crash leaves of the last frame, short or blank, is cut: it is told and kept, and nothing counts as lost', async () => {
  const torn: Record<string, (path: string, from: number, size: number) => void> = {
    short: (path, _, size) => fs.truncateSync(path, size - 1),
    'without most of its head': (path, from) => fs.truncateSync(path, from + 30),
    'blank at its end': (path, from, size) => blank(path, from + 1_000, size),
    'blank as a whole': (path, from, size) => blank(path, from, size),
    'without one sector': (path, from) => blank(path, sector(from) + 1_024, sector(from) + 1_024 + 512),
    'without its first sector': (path, from) => blank(path, from, sector(from) + 512),
  }
  for (const [what, tear] of Object.entries(torn)) {
    await withLast(({ at, path, from }) => {
      tear(path, from, fs.statSync(path).size)
      const bytes = fs.statSync(path).size - from
      const left = fs.readFileSync(path).subarray(from)
      const { named, lost, cuts, version } = start(at)
      assert.deepEqual({ named, lost, cuts }, { named: [], lost: 0, cuts: [{ segment: 1, offset: from, bytes }] }, what)
      assert.ok(version >= 3, 'whatever it held, its versions are not given out again')
      const kept = join(logFolder(at), 'aside', `cut-0000000001.log-${from}`)
      assert.ok(fs.readFileSync(kept).subarray(-left.length).equals(left))
      assert.deepEqual(start(at).cuts, [])
    })
  }
})

/** Where the sector begins that this place lies in. */
function sector(place: number): number {
  return place - (place % 512)
}

function blank(path: string, from: number, to: number): void {
  fs.writeFileSync(path, fs.readFileSync(path).fill(0, from, to))
}
