import assert from 'node:assert/strict'
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { fakeClock } from '../base/fakeclock.test-support.ts'
import { until } from '../base/until.test-support.ts'
import { type Disk, systemDisk } from './disk.ts'
import { type Damage, openDurable } from './durable.ts'
import { HistoryGone, type Store, StoreRefused, StoreUnusable } from './store.ts'
import { type Faults, faultyDisk } from './world.test-support.ts'

async function inFolder(body: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'ake-durable-'))
  try {
    await body(folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const open = (folder: string) => openDurable({ folder, historyBytesMax: 1 << 20 })
const noDatabase = 'this is not a database, and long enough to be looked at'.repeat(20)

function edit(folder: string, sql: string): void {
  const db = new DatabaseSync(join(folder, 'ake.db'))
  db.exec(sql)
  db.close()
}

/** Turns a byte of the log, where this text is. */
function damage(folder: string, text: string): void {
  for (const name of readdirSync(join(folder, 'log'))) {
    const path = join(folder, 'log', name)
    const bytes = readFileSync(path)
    const at = bytes.indexOf(text)
    if (at < 0) continue
    bytes[at] = (bytes[at] as number) ^ 1
    writeFileSync(path, bytes)
  }
}

const change = { interest: '/pods', kind: 'put' as const }

async function filled(folder: string): Promise<void> {
  const store = open(folder)
  await store.commit({
    synced: true,
    changes: [
      { ...change, position: 1, version: 2, key: 'a', body: Buffer.from('sound') },
      { ...change, position: 2, version: 3, key: 'b', body: Buffer.from('soon damaged') },
    ],
  })
  await store.close()
}

const keys = async (store: Store) => (await store.load()).interests[0]?.objects.map(({ key }) => key)

test('[D4] a body that fails its checksum is named and never handed out', () =>
  inFolder(async (folder) => {
    await filled(folder)
    damage(folder, 'soon damaged')
    const store = open(folder)
    const [pods] = (await store.load()).interests
    assert.deepEqual(
      pods?.objects.map(({ key }) => key),
      ['a'],
    )
    assert.deepEqual(pods?.corrupt, ['b'])
    const limit = { entries: 10, bytes: 1 << 20 }
    assert.equal((await store.history('/pods', { version: 0, position: 0 }, limit)).entries.length, 1)
    await assert.rejects(store.history('/pods', { version: 2, position: 1 }, limit), HistoryGone)
    await store.close()
  }))

test('[D4] a body whose segment is gone is named, and the store goes on', () =>
  inFolder(async (folder) => {
    await filled(folder)
    for (const name of readdirSync(join(folder, 'log'))) rmSync(join(folder, 'log', name))
    const store = open(folder)
    assert.deepEqual((await store.load()).interests[0]?.corrupt, ['a', 'b'])
    await store.commit({
      synced: true,
      changes: [{ ...change, position: 3, version: 4, key: 'b', body: Buffer.from('new') }],
    })
    await store.close()
    const again = open(folder)
    assert.deepEqual(await keys(again), ['b'])
    await again.close()
  }))

test('[D4] a newer schema is refused by name', () =>
  inFolder(async (folder) => {
    await filled(folder)
    edit(folder, 'PRAGMA user_version = 99')
    const store = open(folder)
    await assert.rejects(store.load(), (error: Error) => {
      assert.ok(error instanceof StoreUnusable)
      assert.match(error.message, /newer ake: schema 99, this program knows up to \d+/)
      return true
    })
    await store.close()
  }))

test('[D4] a record that fails its checksum is left out', () =>
  inFolder(async (folder) => {
    const store = open(folder)
    const record = (key: string) => ({ kind: 'token', key, value: Buffer.from(`value of ${key}`) })
    await store.commit({ changes: [], records: [record('a'), record('b')], synced: true })
    await store.close()
    damage(folder, 'value of a')
    const again = open(folder)
    assert.deepEqual(
      (await again.records('token')).map(({ key }) => key),
      ['b'],
    )
    assert.equal(await again.record('token', 'a'), undefined)
    await again.close()
  }))

test('[D4] a file that is no database is recognised, also by commits that wait', () =>
  inFolder(async (folder) => {
    writeFileSync(join(folder, 'ake.db'), noDatabase)
    const store = open(folder)
    const waiting = assert.rejects(store.commit({ changes: [], synced: true }), StoreUnusable)
    await assert.rejects(store.load(), StoreUnusable)
    await waiting
    await assert.rejects(store.commit({ changes: [], synced: true }), StoreUnusable)
  }))

test('[D4] an index that cannot be read to its end is made again', () =>
  inFolder(async (folder) => {
    const store = open(folder)
    const puts = Array.from({ length: 2_000 }, (_, i) => {
      return { ...change, position: i, version: i, key: `key-${i}`, body: Buffer.from('x') }
    })
    await store.commit({ synced: true, changes: puts })
    await store.close()
    // A page with names of objects, or of history.
    const path = join(folder, 'ake.db')
    const bytes = readFileSync(path)
    const page = bytes.indexOf('key-1500') & ~4_095
    bytes.fill(0xaa, page, page + 4_096)
    writeFileSync(path, bytes)
    const again = open(folder)
    assert.equal((await keys(again))?.length, 2_000)
    await again.close()
  }))

/** What a disk may do to a page of the index without SQLite noticing. */
const silently = [
  "DELETE FROM objects WHERE key = (SELECT id FROM keys WHERE key = 'a')",
  `UPDATE objects SET body = (SELECT body FROM objects WHERE key = (SELECT id FROM keys WHERE key = 'b'))
    WHERE key = (SELECT id FROM keys WHERE key = 'a')`,
  "DELETE FROM keys WHERE key = 'a'",
  "UPDATE keys SET key = 'z' WHERE key = 'a'",
  'UPDATE bodies SET version = version - 1 WHERE id = (SELECT body FROM objects LIMIT 1)',
  'UPDATE interests SET floor = 7',
  "UPDATE interests SET name = '/pots'",
  'UPDATE applied SET sequence = sequence + 1',
]
for (const sql of silently) {
  test(`[D4] an index that was changed behind our back is made again: ${sql}`, () =>
    inFolder(async (folder) => {
      await filled(folder)
      const store = open(folder)
      const before = await store.load()
      await store.close()
      edit(folder, sql)
      const damage: Damage[] = []
      const again = openDurable({ folder, historyBytesMax: 1 << 20, onDamage: (one) => damage.push(one) })
      assert.deepEqual(await again.load(), before)
      await again.close()
      assert.deepEqual(
        damage.map(({ kind }) => kind),
        ['remade'],
      )
    }))
}

test('[D4] why a store cannot be used is told however late it is heard', () =>
  inFolder(async (folder) => {
    writeFileSync(join(folder, 'ake.db'), noDatabase)
    const loading = assert.rejects(open(folder).load(), StoreUnusable)
    // By now the thread has said so and ended, and both wait for this one.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100)
    await loading
  }))

test('a folder held by another store is refused, and nothing is written to it', () =>
  inFolder(async (folder) => {
    const first = open(folder)
    await first.load()
    const second = open(folder)
    const commit = { synced: true, changes: [{ ...change, position: 1, version: 2, key: 'a', body: Buffer.from('x') }] }
    const committing = assert.rejects(second.commit(commit), StoreUnusable)
    await assert.rejects(second.load(), StoreUnusable)
    await committing
    assert.deepEqual(readdirSync(join(folder, 'log')), [])
    await first.close()
  }))

test('[D3] a disk that takes no write refuses commits, not reads, and heals', () =>
  inFolder(async (folder) => {
    const faults: Faults = {}
    const store = openDurable({ folder, historyBytesMax: 1 << 20, disk: faultyDisk(faults) })
    await store.load()
    const put = (version: number) =>
      store.commit({
        synced: true,
        changes: [{ ...change, position: version, version, key: `k${version}`, body: Buffer.from('x') }],
      })
    await put(2)
    faults.write = () => true
    await assert.rejects(put(3), (error: StoreRefused) => error instanceof StoreRefused && error.full)
    assert.equal(store.figures.failures, 1)
    assert.deepEqual(await keys(store), ['k2'])
    delete faults.write
    await put(4)
    assert.deepEqual(await keys(store), ['k2', 'k4'])
    await store.close()
  }))

for (const code of ['ENOSPC', 'EIO', 'EROFS']) {
  for (const call of ['create', 'write', 'truncate', 'sync', 'syncFolder'] as const) {
    test(`[D3] ${code} from ${call}: what is refused is never there, what was acknowledged always, and it heals`, () =>
      inFolder(async (folder) => {
        let fails = false
        const real = systemDisk[call] as (...parts: never[]) => Promise<never>
        const disk: Disk = {
          ...systemDisk,
          [call]: (...parts: never[]) =>
            fails ? Promise.reject(Object.assign(new Error(code), { code })) : real.apply(systemDisk, parts),
          // What is cut back is what could not be written.
          ...(call === 'truncate' ? { write: (...parts) => failHalf(fails, code, parts) } : {}),
        } as Disk
        // Every write begins a segment: all calls are made each time. But only a segment that goes on is cut back.
        const segmentBytes = call === 'truncate' ? 1 << 20 : 1
        const parts = { folder, historyBytesMax: 1 << 20, segmentBytes }
        const store = openDurable({ ...parts, disk })
        const put = (version: number) =>
          store.commit({
            synced: true,
            changes: [{ ...change, position: version, version, key: `k${version}`, body: Buffer.from('x') }],
          })
        await put(2)
        for (const version of [3, 5]) {
          fails = true
          for (let i = 0; i < 3; i++) {
            await assert.rejects(put(version), (error: StoreRefused) => {
              return error instanceof StoreRefused && error.full === (code === 'ENOSPC')
            })
          }
          assert.equal((await keys(store))?.includes(`k${version}`), false)
          fails = false
          await put(version + 1)
        }
        assert.deepEqual(await keys(store), ['k2', 'k4', 'k6'])
        await store.close()
        for (const name of readdirSync(folder)) if (name.startsWith('ake.db')) rmSync(join(folder, name))
        const again = openDurable(parts)
        assert.deepEqual(await keys(again), ['k2', 'k4', 'k6'])
        await again.close()
      }))
  }
}

async function failHalf(fails: boolean, code: string, [file, buffers, at]: Parameters<Disk['write']>): Promise<void> {
  if (!fails) return systemDisk.write(file, buffers, at)
  const whole = Buffer.concat(buffers)
  await systemDisk.write(file, [whole.subarray(0, whole.length >> 1)], at)
  throw Object.assign(new Error(code), { code })
}

test('[D2] what asked for no sync is synced within seconds', () =>
  inFolder(async (folder) => {
    const clock = fakeClock()
    let syncs = 0
    const disk = {
      ...systemDisk,
      async sync(file: number) {
        await systemDisk.sync(file)
        syncs++
      },
    }
    const store = openDurable({ folder, historyBytesMax: 1 << 20, clock, disk })
    await store.commit({
      synced: false,
      changes: [{ ...change, position: 1, version: 2, key: 'a', body: Buffer.from('x') }],
    })
    assert.equal(syncs, 0)
    clock.advance(3_000)
    await until(() => syncs > 0, 'a sync')
    assert.equal(syncs, 1)
    // The next step of the slow scrub.
    assert.equal(clock.pending(), 1)
    await store.close()
  }))

test('[I4] nobody but its owner reads the files or their folder, also where they were readable before', () =>
  inFolder(async (folder) => {
    const files = ['ake.db', 'ake.db-wal', 'log', 'log/0000000001.log'].map((name) => join(folder, name))
    const modes = () => files.map((file) => (existsSync(file) ? (statSync(file).mode & 0o777).toString(8) : 'none'))
    const before = process.umask(0)
    try {
      const store = open(folder)
      await store.commit({ changes: [], synced: true })
      const found = modes()
      await store.close()
      for (const file of files) if (existsSync(file)) chmodSync(file, 0o755)
      // As a process that was killed leaves it.
      writeFileSync(join(folder, 'ake.db-wal'), '', { mode: 0o644 })
      const again = open(folder)
      await again.load()
      found.push(...modes())
      await again.close()
      assert.deepEqual(found, ['600', '600', '700', '600', '600', '600', '700', '600'])
    } finally {
      process.umask(before)
    }
  }))
