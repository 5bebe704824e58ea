/** A disk that fails so badly that not even a rollback succeeds, and comes back later. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { mock, test } from 'node:test'
import { Database, type DatabaseChange } from './database.ts'

const put = (position: number) => ({
  interest: '/pods',
  position,
  version: position + 1,
  key: `n/${position}`,
  kind: 'put' as const,
  body: Buffer.from(`{"n":${position}}`),
})

const batch = (...changes: DatabaseChange[]) => [{ changes, interests: [], records: [] }]

test('[D3] while the file cannot be opened again writes fail; once it can, they are taken and nothing is lost', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ake-database-'))
  const database = new Database({ path: join(folder, 'ake.db'), historyBytesMax: 1 << 20 })
  try {
    database.commit(batch(put(1)), true)
    const exec = DatabaseSync.prototype.exec
    // Everything that reaches the disk fails, opening included; only the beginning of a transaction does not.
    const failing = mock.method(DatabaseSync.prototype, 'exec', function (this: DatabaseSync, sql: string) {
      if (sql.startsWith('BEGIN')) return exec.call(this, sql)
      throw new Error('disk I/O error')
    })
    for (let i = 0; i < 3; i++) assert.throws(() => database.commit(batch(put(2)), true))
    failing.mock.restore()
    database.commit(batch(put(2)), true)
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

test('[D3] only a batch with nothing in it is a probe', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ake-database-'))
  const database = new Database({ path: join(folder, 'ake.db'), historyBytesMax: 1 << 20 })
  const probes = (...parts: Parameters<Database['commit']>) => {
    const exec = mock.method(DatabaseSync.prototype, 'exec')
    database.commit(...parts)
    const said = exec.mock.calls.filter((call) => call.arguments[0].startsWith('PRAGMA user_version'))
    exec.mock.restore()
    return said.length
  }
  try {
    const record = { kind: 'token', key: 'a', value: undefined }
    assert.equal(probes(batch(), true), 1)
    assert.equal(probes([{ changes: [], interests: [], records: [record] }], true), 0)
    assert.equal(probes([{ changes: [], interests: [{ interest: '/a', forget: true }], records: [] }], true), 0)
  } finally {
    database.close()
    rmSync(folder, { recursive: true })
  }
})
