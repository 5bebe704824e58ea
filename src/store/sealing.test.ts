/** A key that appears, another one that takes its place, one that is missing: what lies on the disk, and what is found. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import fs, { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { crc32 } from 'node:zlib'
import { disk } from './damage.test-support.ts'
import { migrate, migrations } from './schema.ts'
import { logFolder, segmentPath } from './segment.ts'
import { packObjects } from './slab.ts'
import { type Batch, StoreUnusable } from './store.ts'
import { compare, type Limits, modelOf, objectsOf, oneKey, otherKey, World } from './world.test-support.ts'

const limits: Limits = { historyBytesMax: 40_000, segmentBytes: 4_000 }
const secret = 'correct horse battery staple'
const kinds = ['token']

async function inFolder(body: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'ake-sealing-'))
  try {
    await body(folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Objects of several interests, some of them shared, with a past; and tokens. */
function batches(): Batch[] {
  const all: Batch[] = []
  for (let version = 1; version <= 60; version++) {
    const shared = { name: 0 }
    const body = Buffer.from(`{"at":${version},"secret":"${secret}"}`)
    const change = { position: version, version, key: `k${version % 7}`, kind: 'put', body, shared } as const
    const value = Buffer.from(`token ${secret} ${version}`)
    all.push({
      changes: ['/a', '/b'].slice(version % 2).map((interest) => ({ interest, ...change })),
      records: version % 5 === 0 ? [{ kind: 'token', key: `t${version % 3}`, value }] : [],
      synced: true,
    })
  }
  return all
}

async function fill(folder: string, keys: readonly Buffer[]): Promise<World> {
  const world = new World({ folder, limits, disk, keys })
  for (const batch of batches()) assert.ok(await world.commit(batch))
  world.follow()
  return world
}

/** As the worker does it once the log has gone on. */
async function sealAll(world: World): Promise<void> {
  assert.ok(await world.commit({ changes: [], synced: true }))
  world.follow()
  while (world.index.tidy());
}

function filesUnder(folder: string): string[] {
  const entries = fs.readdirSync(folder, { withFileTypes: true, recursive: true })
  return entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name))
}

function filesWith(folder: string, text: string): string[] {
  return filesUnder(folder).filter((path) => fs.readFileSync(path).includes(text))
}

/** Of everything in the folder. */
function digest(folder: string): string {
  const hash = createHash('sha256')
  for (const path of filesUnder(folder).sort()) hash.update(path).update(fs.readFileSync(path))
  return hash.digest('hex')
}

function refused(folder: string, keys: readonly Buffer[]): string {
  const before = digest(folder)
  let message = ''
  assert.throws(
    () => new World({ folder, limits, disk, keys }),
    (error: Error) => {
      message = error.message
      return error instanceof StoreUnusable && !error.damaged
    },
  )
  assert.equal(digest(folder), before, 'nothing was touched')
  return message
}

test('[I4] what is written with a key is on the disk in no other form, and is all there after a kill', () =>
  inFolder(async (folder) => {
    const plain = join(folder, 'plain')
    const sealed = join(folder, 'sealed')
    for (const [at, keys] of [[plain, []] as const, [sealed, [oneKey]] as const]) {
      fs.mkdirSync(at)
      const world = await fill(at, keys)
      while (world.index.tidy());
      assert.equal(filesWith(at, secret).length > 0, keys.length === 0)
      const killed = `${at}-killed`
      fs.cpSync(at, killed, { recursive: true })
      const again = new World({ folder: killed, limits, disk, keys, frames: world.frames })
      await compare(again.index, await modelOf(world.frames, limits.historyBytesMax), kinds)
      await again.close()
      await world.close()
    }
  }))

test('[I4] a store that lies in clear is sealed once a key appears: nothing of it is left in clear, everything is there', () =>
  inFolder(async (folder) => {
    const plain = await fill(folder, [])
    const { frames } = plain
    await plain.close()
    // What an earlier start has cut off and set aside is in clear as well.
    const aside = join(logFolder(folder), 'aside')
    fs.mkdirSync(aside, { recursive: true })
    fs.writeFileSync(join(aside, 'cut-0000000001.log-7'), secret)
    fs.writeFileSync(join(aside, '1-2-3.lost'), secret)
    fs.writeFileSync(join(aside, 'ake.db'), secret)
    const world = new World({ folder, limits, disk, keys: [oneKey], frames })
    const { left, of } = world.index.sealProgress
    assert.ok(left > 1 && left === of, `${left} of ${of}`)
    await sealAll(world)
    assert.deepEqual(world.index.sealProgress, { left: 0, of })
    assert.deepEqual(filesWith(folder, secret), [])
    assert.deepEqual(fs.readdirSync(aside), ['1-2-3.lost'], 'that something was lost is still known')
    await compare(world.index, await modelOf(frames, limits.historyBytesMax), kinds)
    await world.close()
    const again = new World({ folder, limits, disk, keys: [oneKey], frames: world.frames })
    assert.deepEqual(again.index.sealProgress, { left: 0, of: 0 })
    assert.equal(again.index.takeNews().remade, undefined, 'its sums add up')
    await compare(again.index, await modelOf(again.frames, limits.historyBytesMax), kinds)
    await again.close()
    // Base and log alone say it as well.
    for (const name of ['ake.db', 'ake.db-wal']) rmSync(join(folder, name), { force: true })
    const remade = new World({ folder, limits, disk, keys: [oneKey], frames: again.frames })
    await compare(remade.index, await modelOf(remade.frames, limits.historyBytesMax), kinds)
    await remade.close()
  }))

test('[I4] without its key, or with another, a sealed store is refused and left as it is', () =>
  inFolder(async (folder) => {
    const world = await fill(folder, [oneKey])
    const { frames } = world
    await world.close()
    assert.match(refused(folder, []), /is sealed with the key [0-9a-f]{8}, and none was given/)
    assert.match(refused(folder, [otherKey]), /not among those given/)
    // Not even an index that is lost makes it be begun anew.
    const index = fs.readFileSync(join(folder, 'ake.db'))
    rmSync(join(folder, 'ake.db'))
    assert.match(refused(folder, [otherKey]), /not among those given/)
    fs.writeFileSync(join(folder, 'ake.db'), index)
    const again = new World({ folder, limits, disk, keys: [oneKey], frames })
    await compare(again.index, await modelOf(again.frames, limits.historyBytesMax), kinds)
    await again.close()
  }))

test('[I4] under another key everything is sealed anew, and then the first one is not needed', () =>
  inFolder(async (folder) => {
    const first = await fill(folder, [oneKey])
    while (first.index.tidy());
    const { frames } = first
    await first.close()
    const world = new World({ folder, limits, disk, keys: [otherKey, oneKey], frames })
    await compare(world.index, await modelOf(world.frames, limits.historyBytesMax), kinds)
    // In the middle of it both are needed.
    assert.ok(await world.commit({ changes: [], synced: true }))
    world.follow()
    assert.ok(world.index.tidy())
    const middle = `${folder}-middle`
    fs.cpSync(folder, middle, { recursive: true })
    try {
      for (const keys of [[oneKey], [otherKey], []]) refused(middle, keys)
    } finally {
      rmSync(middle, { recursive: true })
    }
    while (world.index.tidy());
    assert.equal(world.index.sealProgress.left, 0)
    await world.close()
    assert.match(refused(folder, [oneKey]), /not among those given/)
    const again = new World({ folder, limits, disk, keys: [otherKey], frames: world.frames })
    await compare(again.index, await modelOf(again.frames, limits.historyBytesMax), kinds)
    await again.close()
  }))

test('[D4] a body that was damaged before it was sealed stays damaged: a seal does not make it sound', () =>
  inFolder(async (folder) => {
    const plain = await fill(folder, [])
    await plain.close()
    const path = segmentPath(logFolder(folder), plain.index.applied.segment)
    const bytes = fs.readFileSync(path)
    const at = bytes.lastIndexOf('"at":60')
    assert.ok(at > 0)
    bytes[at] = 0x58
    fs.writeFileSync(path, bytes)
    const world = new World({ folder, limits, disk, keys: [oneKey] })
    await sealAll(world)
    assert.equal(world.index.sealProgress.left, 0)
    const corrupt: string[] = []
    const found: string[] = []
    const telling = { corrupt: (key: string) => corrupt.push(key) }
    for (const { rows } of packObjects(world.index.bodies, world.index.objects('/a'), telling)) {
      found.push(...rows.map(({ key }) => key))
    }
    assert.deepEqual(corrupt, ['k4'])
    assert.equal(found.length, 6)
    assert.deepEqual(filesWith(folder, secret), [])
    await world.close()
  }))

test('[I4] an index of an older schema, whose pages held the bodies, keeps none of them', () =>
  inFolder(async (folder) => {
    const db = new DatabaseSync(join(folder, 'ake.db'))
    migrate(
      db,
      migrations(() => {}).filter(({ to }) => to <= 2),
    )
    db.exec("INSERT INTO interests (name) VALUES ('/a')")
    for (let id = 1; id <= 50; id++) {
      const body = Buffer.from(`${id} ${secret} ${'x'.repeat(1_000)}`)
      db.prepare('INSERT INTO bodies VALUES (?, ?, ?, ?)').run(id, id, crc32(body), body)
      db.prepare('INSERT INTO heads VALUES (?, ?)').run(id, id)
      db.prepare('INSERT INTO objects VALUES (1, ?, ?)').run(`k${id}`, id)
    }
    db.prepare("INSERT INTO records VALUES (1, 'token', 't', ?, ?)").run(crc32(secret), Buffer.from(secret))
    db.close()
    assert.equal(filesWith(folder, secret).length, 1)
    const world = new World({ folder, limits, disk, keys: [oneKey] })
    await sealAll(world)
    assert.equal(world.index.sealProgress.left, 0)
    assert.equal(objectsOf(world.index, '/a').length, 50)
    assert.deepEqual(filesWith(folder, secret), [])
    await world.close()
    assert.deepEqual(filesWith(folder, secret), [])
  }))
