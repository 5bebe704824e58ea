import assert from 'node:assert/strict'
import { chmodSync, existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { crc32 } from 'node:zlib'
import { migrate, migrations } from './schema.ts'
import { openSqlite } from './sqlite.ts'
import { HistoryGone, StoreRefused, StoreUnusable } from './store.ts'

async function inFolder(body: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'ake-sqlite-'))
  try {
    await body(folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const open = (folder: string) => openSqlite({ folder, historyBytesMax: 1 << 20 })

function edit(folder: string, sql: string): void {
  const db = new DatabaseSync(join(folder, 'ake.db'))
  db.exec(sql)
  db.close()
}

async function filled(folder: string): Promise<void> {
  const store = open(folder)
  const change = { interest: '/pods', kind: 'put' as const }
  await store.commit({
    synced: true,
    changes: [
      { ...change, position: 1, version: 2, key: 'a', body: Buffer.from('sound') },
      { ...change, position: 2, version: 3, key: 'b', body: Buffer.from('soon damaged') },
    ],
  })
  await store.close()
}

test('[D4] a body that fails its checksum is named and never handed out', () =>
  inFolder(async (folder) => {
    await filled(folder)
    edit(folder, "UPDATE bodies SET bytes = x'00' WHERE version = 3")
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
  }))

test('[D4] an older schema is migrated step by step', () => {
  const db = new DatabaseSync(':memory:')
  migrate(db)
  db.exec("INSERT INTO interests (name) VALUES ('/pods')")
  const next = { to: migrations.length + 1, sql: 'ALTER TABLE interests ADD COLUMN note TEXT' }
  migrate(db, [...migrations, next])
  migrate(db, [...migrations, next])
  const row = db.prepare('SELECT name, note FROM interests').get()
  assert.deepEqual({ ...row }, { name: '/pods', note: null })
  assert.deepEqual({ ...db.prepare('PRAGMA user_version').get() }, { user_version: next.to })
})

test('[D4] a file of the first schema opens with everything in it', () =>
  inFolder(async (folder) => {
    const db = new DatabaseSync(join(folder, 'ake.db'))
    migrate(db, migrations.slice(0, 1))
    const bodies = ['one', 'two', 'newer one']
    const add = db.prepare('INSERT INTO bodies (version, checksum, bytes) VALUES (?, ?, ?)')
    for (const [i, body] of bodies.entries()) add.run(i + 2, crc32(body), Buffer.from(body))
    db.exec(`
      INSERT INTO interests (name, floor) VALUES ('/pods', 1);
      INSERT INTO objects VALUES (1, 'b', 2), (1, 'a', 3);
      INSERT INTO history VALUES (1, 3, 2, 0, 'b', 2, NULL, 129), (1, 4, 3, 0, 'a', 3, 1, 132);
    `)
    db.close()
    const store = open(folder)
    const { version, interests } = await store.load()
    const [pods] = interests
    assert.deepEqual([version, pods?.floor, pods?.synced, pods?.lastPosition], [4, 1, 4, 3])
    assert.deepEqual(
      pods?.objects.map(({ key, version: at, body }) => `${key} ${at} ${body}`),
      ['a 4 newer one', 'b 3 two'],
    )
    const change = { interest: '/pods', kind: 'put' as const, position: 4, version: 5, key: 'b' }
    await store.commit({ synced: true, changes: [{ ...change, body: Buffer.from('newer two') }] })
    const { entries } = await store.history('/pods', { version: 1, position: 0 }, { entries: 10, bytes: 1 << 20 })
    assert.deepEqual(
      entries.map(({ key, previous, body }) => `${key} ${previous} ${body}`),
      ['b undefined two', 'a one newer one', 'b two newer two'],
    )
    await store.close()
  }))

test('[D4] a record that fails its checksum is left out', () =>
  inFolder(async (folder) => {
    const store = open(folder)
    const record = (key: string) => ({ kind: 'token', key, value: Buffer.from(key) })
    await store.commit({ changes: [], records: [record('a'), record('b')], synced: true })
    await store.close()
    edit(folder, "UPDATE records SET value = x'00' WHERE key = 'a'")
    const again = open(folder)
    assert.deepEqual(
      (await again.records('token')).map(({ key }) => key),
      ['b'],
    )
    assert.equal(await again.record('token', 'a'), undefined)
    await again.close()
  }))

test('[D4] a file that is no database is recognised', () =>
  inFolder(async (folder) => {
    writeFileSync(join(folder, 'ake.db'), 'this is not a database, and long enough to be looked at'.repeat(20))
    await assert.rejects(open(folder).load(), StoreUnusable)
  }))

test('[D4] why a store cannot be used is told however late it is heard', () =>
  inFolder(async (folder) => {
    writeFileSync(join(folder, 'ake.db'), 'this is not a database, and long enough to be looked at'.repeat(20))
    const loading = assert.rejects(open(folder).load(), StoreUnusable)
    // By now the thread has said so and ended, and both wait for this one.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100)
    await loading
  }))

test('a folder held by another store is refused', () =>
  inFolder(async (folder) => {
    const first = open(folder)
    await first.load()
    await assert.rejects(open(folder).load(), StoreUnusable)
    await first.close()
  }))

test('[D3] a refused group is rolled back as a whole, and the next one goes in', () =>
  inFolder(async (folder) => {
    await filled(folder)
    const store = open(folder)
    await store.load()
    const change = { interest: '/pods', kind: 'put' as const, body: Buffer.from('x') }
    // The second change repeats a place in history, which the file refuses.
    const twice = [
      { ...change, position: 7, version: 7, key: 'c' },
      { ...change, position: 7, version: 7, key: 'd' },
    ]
    await assert.rejects(store.commit({ synced: true, changes: twice }), StoreRefused)
    assert.equal(store.figures.failures, 1)
    await store.commit({ synced: true, changes: [{ ...change, position: 8, version: 8, key: 'e' }] })
    const { version, interests } = await store.load()
    assert.equal(version, 8)
    assert.deepEqual(
      interests[0]?.objects.map(({ key }) => key),
      ['a', 'b', 'e'],
    )
    await store.close()
  }))

test('[I4] nobody but its owner reads the file or its log, also where they were readable before', () =>
  inFolder(async (folder) => {
    const files = ['ake.db', 'ake.db-wal'].map((name) => join(folder, name))
    const modes = () => files.map((file) => (existsSync(file) ? (statSync(file).mode & 0o777).toString(8) : 'none'))
    const before = process.umask(0)
    try {
      const store = open(folder)
      await store.load()
      const found = modes()
      await store.close()
      chmodSync(join(folder, 'ake.db'), 0o644)
      // As a process that was killed leaves it.
      writeFileSync(join(folder, 'ake.db-wal'), '', { mode: 0o644 })
      const again = open(folder)
      await again.load()
      found.push(...modes())
      await again.close()
      assert.deepEqual(found, ['600', '600', '600', '600'])
    } finally {
      process.umask(before)
    }
  }))
