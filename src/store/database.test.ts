/** A disk that fails so badly that not even a rollback succeeds, and comes back later. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { mock, test } from 'node:test'
import { Database } from './database.ts'

const put = (position: number) => ({
  interest: '/pods',
  position,
  version: position + 1,
  key: `n/${position}`,
  kind: 'put' as const,
  body: Buffer.from(`{"n":${position}}`),
})

test('[D3] while the file cannot be opened again writes fail; once it can, they are taken and nothing is lost', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ake-database-'))
  const database = new Database({ path: join(folder, 'ake.db'), historyBytesMax: 1 << 20 })
  try {
    database.commit([put(1)], true)
    const exec = DatabaseSync.prototype.exec
    // Everything that reaches the disk fails, opening included; only the beginning of a transaction does not.
    const failing = mock.method(DatabaseSync.prototype, 'exec', function (this: DatabaseSync, sql: string) {
      if (sql.startsWith('BEGIN')) return exec.call(this, sql)
      throw new Error('disk I/O error')
    })
    for (let i = 0; i < 3; i++) assert.throws(() => database.commit([put(2)], true))
    failing.mock.restore()
    database.commit([put(2)], true)
    const kept = [...database.objects('/pods')].map(({ key }) => key)
    assert.deepEqual(kept, ['n/1', 'n/2'])
    const { entries } = database.history('/pods', { version: 0, position: 0 }, { entries: 10, bytes: 1 << 20 })
    assert.deepEqual(
      entries.map(({ position }) => position),
      [1, 2],
    )
  } finally {
    mock.restoreAll()
    database.close()
    rmSync(folder, { recursive: true })
  }
})
