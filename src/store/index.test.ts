/** The index on a disk that takes no writes: what the log has is found all the same, and nothing is lost when it heals. */
import assert from 'node:assert/strict'
import fs, { mkdtempSync, rmSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { mock, test } from 'node:test'
import { systemDisk } from './disk.ts'
import { sealBytes } from './seal.ts'
import type { Position } from './segment.ts'
import type { Batch, Change } from './store.ts'
import {
  compare,
  copyKilled,
  type Faults,
  faultyDisk,
  type Limits,
  modelOf,
  testKeys,
  World,
} from './world.test-support.ts'

const usual: Limits = { historyBytesMax: 1 << 20, segmentBytes: 1 << 20 }

async function inWorld(
  body: (world: World, folder: string) => Promise<void>,
  limits = usual,
  disk = systemDisk,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'ake-index-'))
  const inside = join(folder, 'store')
  fs.mkdirSync(inside)
  const world = new World({ folder: inside, limits, disk })
  try {
    await body(world, folder)
  } finally {
    mock.restoreAll()
    syncBuiltinESMExports()
    await world.close()
    rmSync(folder, { recursive: true })
  }
}

const put = (position: number, key = `n/${position}`, size = 20): Batch => ({
  changes: [
    { interest: '/pods', position, version: position + 1, key, kind: 'put', body: Buffer.alloc(size, `${position};`) },
  ],
  synced: false,
})

const check = async ({ index, frames }: World) => compare(index, await modelOf(frames, usual.historyBytesMax))

/** Statements that reach the disk fail while `isFailing` says so. */
function failing(isFailing: (sql: string) => boolean, errcode = 13): void {
  const { exec } = DatabaseSync.prototype
  mock.method(DatabaseSync.prototype, 'exec', function (this: DatabaseSync, sql: string) {
    if (isFailing(sql)) throw Object.assign(new Error('database or disk is full'), { errcode })
    return exec.call(this, sql)
  })
}

test('[D3] what cannot be committed can be read, stays in the log, and is committed as soon as that can be', () =>
  inWorld(async (world, folder) => {
    await world.commit(put(1))
    world.follow()
    let fails = true
    failing((sql) => fails && sql === 'COMMIT')
    for (let i = 2; i < 5; i++) {
      await world.commit(put(i))
      world.follow()
      assert.match(world.index.behind?.message ?? '', /full/)
      await check(world)
      assert.equal(world.index.tidy(), false)
    }
    const killed = join(folder, 'killed')
    copyKilled(world.folder, killed)
    fails = false
    // A question alone does not try it: where it failed again, all of it would have to be applied anew.
    await world.commit(put(5))
    world.index.apply(world.log.end as Position, { triesAgain: false })
    assert.match(world.index.behind?.message ?? '', /full/)
    await check(world)
    const again = new World({ folder: killed, limits: usual, frames: world.frames })
    assert.equal(again.frames.length, 4)
    await check(again)
    await again.close()
    world.follow()
    assert.equal(world.index.behind, undefined)
    await check(world)
  }))

/** Full, unwritable, unsyncable, read-only, as SQLite says it. */
for (const errcode of [13, 778, 1034, 8]) {
  test(`[D3] error ${errcode} of the index stops no reads, loses nothing, and makes nobody give the file up`, () =>
    inWorld(async (world) => {
      await world.commit(put(1))
      world.follow()
      let fails = true
      failing((sql) => fails && sql === 'COMMIT', errcode)
      for (let i = 2; i < 4; i++) {
        await world.commit(put(i))
        world.follow()
        await check(world)
      }
      assert.notEqual(world.index.behind, undefined)
      fails = false
      world.follow()
      assert.equal(world.index.behind, undefined)
      assert.equal(world.index.takeNews().remade, undefined)
      await check(world)
    }))
}

test('[D3] a folder in which nothing can be made: a lost index is not mistaken for an empty store, and is made once it can', () =>
  inWorld(async (world, folder) => {
    for (let i = 1; i < 4; i++) await world.commit(put(i))
    const killed = join(folder, 'killed')
    copyKilled(world.folder, killed)
    for (const name of fs.readdirSync(killed)) if (name.startsWith('ake.db')) rmSync(join(killed, name))
    for (const code of ['ENOSPC', 'EIO', 'EROFS']) {
      const { openSync } = fs
      const opening = mock.method(fs, 'openSync', (...parts: Parameters<typeof openSync>) => {
        if (String(parts[0]).endsWith('ake.db')) throw Object.assign(new Error(code), { code })
        return openSync(...parts)
      })
      syncBuiltinESMExports()
      assert.throws(() => new World({ folder: killed, limits: usual }), new RegExp(code))
      opening.mock.restore()
      syncBuiltinESMExports()
    }
    await using again = new World({ folder: killed, limits: usual, frames: world.frames })
    await check(again)
  }))

test('[D3] a store that was full can be opened on a full disk', () =>
  inWorld(async (world, folder) => {
    for (let i = 1; i < 4; i++) await world.commit(put(i))
    const killed = join(folder, 'killed')
    copyKilled(world.folder, killed)
    failing((sql) => sql === 'COMMIT')
    const again = new World({ folder: killed, limits: usual, frames: world.frames })
    assert.notEqual(again.index.behind, undefined)
    assert.equal(again.frames.length, 3)
    await check(again)
    mock.restoreAll()
    await again.close()
  }))

test('[D3] while the file cannot be opened again nothing is told; once it can, nothing is lost', () =>
  inWorld(async (world) => {
    await world.commit(put(1))
    world.follow()
    let fails = true
    // Everything that reaches the disk fails, opening included; only the beginning of a transaction does not.
    failing((sql) => fails && !sql.startsWith('BEGIN'))
    await world.commit(put(2))
    for (let i = 0; i < 3; i++) assert.throws(() => world.follow())
    fails = false
    world.follow()
    await check(world)
  }))

test('[D3] what the index has read and a failed sync has made be written elsewhere is read again there, also where nothing follows it', async () => {
  const faults: Faults = {}
  await inWorld(
    async (world) => {
      await world.commit({ ...put(1), synced: true })
      await world.commit(put(2))
      world.follow()
      faults.sync = () => true
      await assert.rejects(world.log.sync())
      delete faults.sync
      // The first write is that of what may be lost, the second that of the batch.
      let writes = 0
      faults.write = () => ++writes === 2
      assert.equal(await world.commit(put(3)), false)
      world.follow()
      assert.equal(world.log.proven, world.index.applied.sequence)
      assert.deepEqual(world.index.applied, world.log.end)
      await check(world)
    },
    usual,
    faultyDisk(faults),
  )
})

test('[D4] a damaged page of the index that a start would read only at its end makes the index again', () =>
  inWorld(async (world, folder) => {
    const [change] = put(1).changes as [Change]
    await world.commit({ changes: [{ ...change, shared: { name: 0 } }], synced: false })
    const killed = join(folder, 'killed')
    copyKilled(world.folder, killed)
    // Its end brings everything into the one file.
    await new World({ folder: killed, limits: usual }).close()
    const path = join(killed, 'ake.db')
    const db = new DatabaseSync(path)
    const { page_size: size } = db.prepare('PRAGMA page_size').get() as { page_size: number }
    const root = db.prepare("SELECT rootpage FROM sqlite_schema WHERE name = 'bodies_of_name'").get()
    db.close()
    const from = ((root as { rootpage: number }).rootpage - 1) * size
    fs.writeFileSync(path, fs.readFileSync(path).fill(0xff, from, from + size))
    const again = new World({ folder: killed, limits: usual, frames: world.frames })
    assert.match(again.index.takeNews().remade ?? '', /Tree \d+ page/)
    await check(again)
    await again.close()
  }))

test('[D4] a frame that cannot be read while the index follows is stepped over, named, and every interest doubted', () =>
  inWorld(async (world) => {
    await world.commit(put(1))
    world.follow()
    await world.commit(put(2))
    const { segment, offset } = world.log.end as { segment: number; offset: number }
    const path = join(world.folder, 'log', `${String(segment).padStart(10, '0')}.log`)
    const bytes = fs.readFileSync(path)
    const inHead = offset - 40 - testKeys.length * sealBytes
    bytes[inHead] = (bytes[inHead] as number) ^ 1
    fs.writeFileSync(path, bytes)
    await world.commit(put(3))
    world.follow()
    assert.deepEqual(
      [...world.index.objects('/pods')].map(({ key }) => key),
      ['n/1', 'n/3'],
    )
    const [lost] = world.index.takeNews().losses
    assert.deepEqual([lost?.segment, lost?.frames], [1, 1])
    assert.deepEqual(
      world.index.interests().map(({ isDoubted }) => isDoubted),
      [true],
    )
  }))

test('whatever the log holds can be applied: a place in history that is taken, a removal of nothing', () =>
  inWorld(async (world) => {
    const at = (change: Partial<Change>): Batch => ({
      changes: [{ ...(put(1).changes[0] as Change), ...change }],
      synced: false,
    })
    await world.commit(put(1, 'a'))
    await world.commit(at({ key: 'a', body: Buffer.from('taken') }))
    const { body: _, ...nothing } = put(1).changes[0] as Change
    await world.commit({ changes: [{ ...nothing, key: 'never', kind: 'delete', position: 9 }], synced: false })
    await world.commit({ changes: [{ ...nothing, key: 'a', kind: 'delete' }], synced: false })
    await world.commit({
      changes: [],
      interests: [{ interest: '/none', forget: true }],
      records: [{ kind: 'x', key: 'y', value: undefined }],
      synced: false,
    })
    world.follow()
    assert.deepEqual([...world.index.objects('/pods')], [])
    assert.equal(world.index.applied.sequence, 6)
    // The number of the body that went is given again: the entry that brought it must not show the new one.
    await world.commit(put(20, 'b'))
    world.follow()
    const { entries } = world.index.history('/pods', { version: 0, position: 0 }, { entries: 9, bytes: 1 << 20 })
    assert.deepEqual(
      entries.map(({ key, body }) => `${key} ${typeof body === 'object' ? 'body' : body}`),
      ['a lost', 'never undefined', 'b body'],
    )
  }))

test('[D3] a disk that is full while bodies are moved: they stay where they are, and are moved later', () =>
  inWorld(
    async (world) => {
      let position = 0
      for (let round = 0; round < 60; round++) {
        for (const key of ['a', 'b', `rare-${round}`]) await world.commit(put(++position, key, 900))
      }
      world.follow()
      const { writeSync } = fs
      let writes = 0
      const fails = mock.method(fs, 'writeSync', (...parts: Parameters<typeof writeSync>) => {
        if (++writes % 2 === 0) throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })
        return writeSync(...parts)
      })
      syncBuiltinESMExports()
      for (let i = 0; i < 10; i++) while (world.index.tidy());
      assert.ok(writes > 10, 'nothing was to be moved')
      const kept = fs.readdirSync(join(world.folder, 'log')).filter((name) => name.endsWith('.kept'))
      const keptBytes = kept.reduce((sum, name) => sum + fs.statSync(join(world.folder, 'log', name)).size, 0)
      assert.ok(keptBytes <= 2 * 900, 'what failed is written over')
      await check(world)
      fails.mock.restore()
      syncBuiltinESMExports()
      while (world.index.tidy());
      await check(world)
    },
    { historyBytesMax: 4_000, segmentBytes: 6_000 },
  ))

test('[D3] at rest what a first sync has left beside the file of the index goes into it; a disk that takes none of it harms nothing', () =>
  inWorld(async (world, folder) => {
    const beside = () => fs.statSync(join(folder, 'store', 'ake.db-wal')).size
    let position = 0
    const grow = async (count: number) => {
      for (let i = 0; i < count; i++) await world.commit(put(++position, `n/${'k'.repeat(200)}${position}`))
      world.follow()
    }
    await grow(20)
    assert.equal(world.index.rest(), false)
    assert.ok(beside() > 0, 'little may stay')
    while (beside() < 5_000_000) await grow(500)
    assert.equal(world.index.rest(), true, 'it has grown')
    await grow(5)
    const before = beside()
    let isFull = true
    failing((sql) => isFull && sql.includes('wal_checkpoint'))
    world.index.rest()
    assert.equal(beside(), before)
    await check(world)
    isFull = false
    assert.equal(world.index.rest(), false)
    assert.equal(beside(), 0)
    await grow(5)
    await check(world)
  }))

test('[D3] names that could not be let go of are tried again, also where nothing is written meanwhile', () =>
  inWorld(async (world) => {
    await world.commit(put(1))
    world.follow()
    let fails = 1
    failing((sql) => sql === 'COMMIT' && fails-- > 0)
    world.index.release([12_345])
    assert.match(world.index.behind?.message ?? '', /full/)
    world.follow()
    assert.equal(world.index.behind, undefined)
    assert.equal(world.index.tidy(), false)
    await check(world)
  }))

test('[D3] a store under load is not at rest, however often SQLite begins anew with what lies beside its file', () =>
  inWorld(async (world, folder) => {
    let position = 0
    const grow = async (count: number) => {
      for (let i = 0; i < count; i++) await world.commit(put(++position, `n/${'k'.repeat(200)}${position}`))
      world.follow()
    }
    const beside = () => fs.statSync(join(folder, 'store', 'ake.db-wal')).size
    let before = -1
    while (before !== beside() || before < 5_000_000) {
      before = beside()
      await grow(500)
    }
    for (let round = 0; round < 3; round++) {
      await grow(500)
      assert.equal(world.index.rest(), true)
    }
    assert.ok(beside() >= 5_000_000)
    assert.equal(world.index.rest(), false)
    assert.equal(beside(), 0)
  }))
