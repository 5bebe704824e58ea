/** Files of older schemas, which hold the bodies themselves. */
import assert from 'node:assert/strict'
import fs, { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { mock, test } from 'node:test'
import { crc32 } from 'node:zlib'
import { restoreBase } from './base.ts'
import { BodySegments } from './bodysegments.ts'
import { openDurable } from './durable.ts'
import { Index } from './index.ts'
import { createTables, migrate, migrations } from './schema.ts'
import { logFolder, makeLogFolder } from './segment.ts'
import { HistoryGone, type Store } from './store.ts'
import { objectsOf } from './world.test-support.ts'

const all = { entries: 10, bytes: 1 << 20 }
const steps = migrations(() => {})

async function inFolder(body: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'ake-upgrade-'))
  try {
    await body(folder)
  } finally {
    mock.restoreAll()
    syncBuiltinESMExports()
    rmSync(folder, { recursive: true })
  }
}

/** Objects, history, a gap in the numbers, a slot that is free and a body that is damaged. */
function makeOld(folder: string, schema: 1 | 2): void {
  const db = new DatabaseSync(join(folder, 'ake.db'))
  migrate(db, steps.slice(0, schema))
  const add = db.prepare('INSERT INTO bodies (version, checksum, bytes) VALUES (?, ?, ?)')
  for (const [i, body] of ['one', 'two', 'newer one', 'free', 'bad'].entries()) {
    add.run(i + 2, crc32(body === 'bad' ? 'good' : body), Buffer.from(body))
  }
  db.exec(`
    INSERT INTO interests (name, floor) VALUES ('/pods', 1), ('/nodes', 0);
    INSERT INTO history VALUES (1, 3, 2, 0, 'b', 2, NULL, 129), (1, 4, 3, 0, 'a', 3, 1, 132);
  `)
  if (schema === 1) db.exec("INSERT INTO objects VALUES (1, 'b', 2), (1, 'a', 3), (2, 'n', 5)")
  else {
    db.exec(`
      UPDATE interests SET synced = 9 WHERE id = 1;
      INSERT INTO heads VALUES (10, 2), (11, 3), (12, 5);
      INSERT INTO objects VALUES (1, 'b', 10), (1, 'a', 11), (2, 'n', 12);
      INSERT INTO slots VALUES (4, 4);
    `)
    const record = db.prepare("INSERT INTO records (kind, key, checksum, value) VALUES ('token', ?, ?, ?)")
    record.run('t', crc32('secret'), Buffer.from('secret'))
    record.run('bad', 1, Buffer.from('secret'))
  }
  db.close()
}

async function checkOpened(store: Store, schema: 1 | 2): Promise<void> {
  const { version, interests } = await store.load()
  const [pods, nodes] = interests
  assert.deepEqual([version, pods?.floor, pods?.synced, pods?.lastPosition], [4, 1, schema === 1 ? 4 : 9, 3])
  assert.deepEqual(
    pods?.objects.map(({ key, version: at, body }) => `${key} ${at} ${body}`),
    ['a 4 newer one', 'b 3 two'],
  )
  assert.deepEqual([nodes?.objects, nodes?.corrupt], [[], ['n']])
  const records = (await store.records('token')).map(({ key, value }) => `${key} ${value}`)
  assert.deepEqual(records, schema === 1 ? [] : ['t secret'])
}

for (const schema of [1, 2] as const) {
  test(`[D4] a file of schema ${schema} opens with everything in it, history too, and is written on`, () =>
    inFolder(async (folder) => {
      makeOld(folder, schema)
      const store = openDurable({ folder, historyBytesMax: 1 << 20 })
      await checkOpened(store, schema)
      const change = { interest: '/pods', kind: 'put' as const, position: 4, version: 5, key: 'b' }
      await store.commit({ synced: true, changes: [{ ...change, body: Buffer.from('newer two') }] })
      const { entries } = await store.history('/pods', { version: 1, position: 0 }, all)
      assert.deepEqual(
        entries.map(({ key, previous, body }) => `${key} ${previous} ${body}`),
        ['b undefined two', 'a one newer one', 'b two newer two'],
      )
      await assert.rejects(store.history('/pods', { version: 0, position: 0 }, all), HistoryGone)
      await store.close()
      const db = new DatabaseSync(join(folder, 'ake.db'))
      const tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").all()
      db.close()
      assert.deepEqual(
        tables.map((row) => row.name),
        ['applied', 'bodies', 'history', 'interests', 'keys', 'objects', 'records', 'segments'],
      )
    }))
}

test('[D4] a migration that is cut short anywhere leaves the old file, and the next start does all of it', () =>
  inFolder(async (folder) => {
    // Each call that reaches the disk, and the last one before the end.
    for (let failing = 1; failing <= 8; failing++) {
      const at = join(folder, String(failing))
      fs.mkdirSync(at)
      makeOld(at, 2)
      let calls = 0
      const count = () => {
        if (++calls === failing) throw new Error('the power went')
      }
      const { writeSync } = fs
      const write = mock.method(fs, 'writeSync', (...parts: Parameters<typeof writeSync>) => {
        count()
        return writeSync(...parts)
      })
      const { exec } = DatabaseSync.prototype
      const committing = mock.method(DatabaseSync.prototype, 'exec', function (this: DatabaseSync, sql: string) {
        if (sql.includes('COMMIT') || sql.includes('DROP')) count()
        return exec.call(this, sql)
      })
      syncBuiltinESMExports()
      assert.throws(() => indexIn(at).close(), /the power went/)
      write.mock.restore()
      committing.mock.restore()
      syncBuiltinESMExports()
      // What was left behind is not taken for anything.
      writeFileSync(join(logFolder(at), '0000000007.kept'), 'left behind')
      const store = openDurable({ folder: at, historyBytesMax: 1 << 20 })
      await checkOpened(store, 2)
      await store.close()
      assert.deepEqual(readdirSync(logFolder(at)), ['0000000001.base', '0000000001.kept'])
    }
  }))

const indexIn = (folder: string) =>
  new Index({
    path: join(folder, 'ake.db'),
    folder: logFolder(folder),
    historyBytesMax: 1 << 20,
    segmentBytes: 1 << 20,
  })

test('[D4] a file that held bodies is small afterwards', () =>
  inFolder(async (folder) => {
    const path = join(folder, 'ake.db')
    const db = new DatabaseSync(path)
    migrate(db, steps.slice(0, 2))
    db.exec(`
      INSERT INTO interests (name) VALUES ('/pods');
      WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
      INSERT INTO bodies SELECT i, i, 0, zeroblob(3500) FROM n;
      INSERT INTO heads SELECT id, id FROM bodies;
      INSERT INTO objects SELECT 1, 'k' || id, id FROM bodies;
    `)
    db.close()
    const before = fs.statSync(path).size
    const index = indexIn(folder)
    assert.equal([...index.objects('/pods')].length, 3_000)
    assert.deepEqual(objectsOf(index, '/nobody'), [])
    index.close()
    assert.ok(fs.statSync(path).size < before / 10, `${fs.statSync(path).size} of ${before}`)
  }))

test('[D4] an older schema is migrated step by step', () => {
  const db = new DatabaseSync(':memory:')
  migrate(db, steps)
  db.exec("INSERT INTO interests (name) VALUES ('/pods')")
  const next = { to: steps.length + 1, sql: 'ALTER TABLE interests ADD COLUMN note TEXT' }
  for (let i = 0; i < 2; i++) migrate(db, [...steps, next])
  const row = db.prepare('SELECT name, note FROM interests').get()
  assert.deepEqual({ ...row }, { name: '/pods', note: null })
  assert.deepEqual({ ...db.prepare('PRAGMA user_version').get() }, { user_version: next.to })
})

test('[D4] a new file has the tables that all steps leave, column by column; one that has any is left alone', () => {
  const [made, migrated, old] = Array.from({ length: 3 }, () => new DatabaseSync(':memory:')) as [
    DatabaseSync,
    DatabaseSync,
    DatabaseSync,
  ]
  createTables(made)
  migrate(migrated, steps)
  assert.deepEqual(shapeOf(made), shapeOf(migrated))
  assert.ok(shapeOf(made).length > 40)
  migrate(old, steps.slice(0, 1))
  const before = shapeOf(old)
  createTables(old)
  assert.deepEqual(shapeOf(old), before)
})

/** Of every table its columns in their order, its indexes and what of it is strict or without rowid; the version, and `applied`. */
function shapeOf(db: DatabaseSync): unknown[] {
  const all = (sql: string) => db.prepare(sql).all() as Record<string, unknown>[]
  const tables = all('SELECT schema, name, ncol, wr, strict FROM pragma_table_list ORDER BY name')
  const columns = all(
    'SELECT t.name AS of, c.* FROM sqlite_schema t, pragma_table_xinfo(t.name) c ORDER BY t.name, c.cid',
  )
  const indexes = all(
    'SELECT t.name AS of, i.name, i."unique", i.origin, i.partial FROM sqlite_schema t, pragma_index_list(t.name) i ORDER BY 1, 2',
  )
  const parts = all(
    'SELECT t.name AS of, c.* FROM sqlite_schema t, pragma_index_xinfo(t.name) c ORDER BY t.name, c.seqno',
  )
  const has = tables.some(({ name }) => name === 'applied')
  const rows = [...all('PRAGMA user_version'), ...(has ? all('SELECT * FROM applied') : [])]
  return [...tables, ...columns, ...indexes, ...parts, ...rows].map((row) => ({ ...row }))
}

test('[D4] a file of schema 4, also one made of its base, opens with every object of every interest', () =>
  inFolder(async (folder) => {
    const db = new DatabaseSync(join(folder, 'ake.db'))
    migrate(db, steps.slice(0, 4))
    makeLogFolder(logFolder(folder))
    const kept = new BodySegments({ folder: logFolder(folder), segmentBytes: 1 << 20, last: undefined })
    const bodies = ['one', 'two', 'three'].map((text, i) => {
      const { segment, start } = kept.add(Buffer.from(text))
      return [i + 1, i + 2, crc32(text), segment, start, text.length] as const
    })
    kept.sync()
    kept.close()
    restoreBase(db, [
      [
        'interests',
        [
          [1, '/pods', 0, 9, 0, null],
          [2, '/some', 0, 9, 0, null],
        ],
      ],
      ['bodies', bodies],
      [
        'heads',
        [
          [5, 1],
          [6, 2],
          [7, 3],
          [8, 99],
        ],
      ],
      [
        'objects',
        [
          [1, 'a', 5],
          [1, 'b', 6],
          [2, 'a', 7],
          [2, 'lost', 8],
        ],
      ],
      ['segments', [[bodies[0]?.[3] as number, 11, 11]]],
      ['applied', [[1, 0, 0, 1, 0, 0, 0, 0, null]]],
    ])
    db.close()
    const store = openDurable({ folder, historyBytesMax: 1 << 20 })
    try {
      const found = (await store.load()).interests.map(({ name, objects, corrupt }) => {
        return [name, objects.map(({ key, version, body }) => `${key} ${version} ${body}`), corrupt]
      })
      assert.deepEqual(found, [
        ['/pods', ['a 2 one', 'b 3 two'], []],
        ['/some', ['a 4 three'], ['lost']],
      ])
      await store.commit({ changes: [], interests: [{ interest: '/pods', forget: true }], synced: true })
    } finally {
      await store.close()
    }
    const after = new DatabaseSync(join(folder, 'ake.db'))
    assert.deepEqual(
      after
        .prepare('SELECT key, objects FROM keys ORDER BY key')
        .all()
        .map((row) => Object.values(row)),
      [
        ['a', 1],
        ['lost', 1],
      ],
    )
    after.close()
  }))
