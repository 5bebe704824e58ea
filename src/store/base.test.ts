import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { crc32, deflateRawSync } from 'node:zlib'
import { readBase, restoreBase, writeBase } from './base.ts'
import { migrate, migrations, newestSchema } from './schema.ts'

const says = { segment: 3, offset: 4, sequence: 5, number: 1, schema: newestSchema, identity: 7 }

function emptyIndex(): DatabaseSync {
  const db = new DatabaseSync(':memory:')
  migrate(
    db,
    migrations(() => undefined),
  )
  return db
}

function inFolder(body: (folder: string) => void): void {
  const folder = mkdtempSync(join(tmpdir(), 'ake-base-'))
  try {
    body(folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const rowsOf = (db: DatabaseSync, table: string) => db.prepare(`SELECT * FROM ${table}`).all()

test('[D4] a base gives back every row, however many there are and whatever is written in them', () => {
  inFolder((folder) => {
    const db = emptyIndex()
    const key = db.prepare('INSERT INTO keys VALUES (?, ?, 1)')
    const entry = db.prepare('INSERT INTO history VALUES (?, ?, ?, 0, ?, ?, NULL, 9)')
    const names = ['a "quoted" one', 'back\\slash', 'line\nbreak', 'nul\u0000', 'ä ☃ 🚀', '']
    // Exactly two blocks of one table, and a block and one row of another.
    for (let i = 0; i < 4_000; i++) key.run(i + 1, names[i] ?? `key ${i}`)
    for (let i = 0; i < 2_001; i++) entry.run(i % 3, 2 ** 52 + (i % 7), i, `k${i}`, i === 5 ? null : i)
    const base = writeBase(db, { folder, ...says })
    const blocks = readBase(base)
    assert.ok(blocks !== undefined)
    const again = emptyIndex()
    restoreBase(again, blocks)
    for (const table of ['keys', 'history', 'applied']) assert.deepEqual(rowsOf(again, table), rowsOf(db, table), table)
    assert.deepEqual(
      blocks.map(([table, rows]) => [table, rows.length]),
      [
        ['keys', 2_000],
        ['keys', 2_000],
        ['history', 2_000],
        ['history', 1],
        ['applied', 1],
      ],
    )
  })
})

test('[D4] a base that an older ake wrote, deflated, is read', () => {
  inFolder((folder) => {
    const block = deflateRawSync(JSON.stringify(['keys', [[1, 'ns/pod', 2]]]), { level: 1 })
    const prefix = Buffer.alloc(8)
    prefix.writeUInt32LE(block.length, 0)
    prefix.writeUInt32LE(crc32(block), 4)
    const head = { ...says, blocks: 1 }
    const spelled = JSON.stringify(head)
    const path = join(folder, '0000000001.base')
    writeFileSync(path, Buffer.concat([Buffer.from(`ake.base ${crc32(spelled)} ${spelled}\n`), prefix, block]))
    assert.deepEqual(readBase({ path, head, bytes: readFileSync(path).length }), [['keys', [[1, 'ns/pod', 2]]]])
  })
})
