/** The SQLite file: how it is opened, kept from others' eyes and made safe, and every statement the engine runs. */
import { chmodSync, closeSync, existsSync, fdatasyncSync, openSync, statSync } from 'node:fs'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { migrate } from './schema.ts'
import { StoreUnusable } from './store.ts'

/** Secrets and tokens lie in it: nobody but its owner reads it. */
const ownerOnly = 0o600

export function open(path: string): DatabaseSync {
  let db: DatabaseSync | undefined
  try {
    keepPrivate(path)
    db = new DatabaseSync(path)
    db.exec(pragmas)
    migrate(db)
    return db
  } catch (error) {
    db?.close()
    if (error instanceof StoreUnusable) throw error
    throw new StoreUnusable(`${path}: ${error instanceof Error ? error.message : String(error)}`)
  }
}

// EXCLUSIVE before WAL: no shared-memory file, and a second process is refused by the file itself. The log is cut back
// after a transaction that made it larger than a first sync's chunks do.
const pragmas = `
  PRAGMA locking_mode = EXCLUSIVE;
  PRAGMA journal_mode = WAL;
  PRAGMA journal_size_limit = ${16 * 1024 * 1024};
  PRAGMA foreign_keys = OFF;
  PRAGMA cache_size = -2048;
`

/** SQLite gives the files it makes beside the database the database's own mode. */
function keepPrivate(path: string): void {
  // Never an open and close of a file that is there: that would drop the locks this process holds on it.
  if (!existsSync(path)) closeSync(openSync(path, 'wx', ownerOnly))
  for (const file of [path, `${path}-wal`]) {
    if (existsSync(file) && (statSync(file).mode & 0o077) !== 0) chmodSync(file, ownerOnly)
  }
}

/**
 * Makes what was committed without a sync safe against a power cut. The frames of the log carry checksums: recovery takes
 * whatever is whole. A checkpoint would do it too, but writes every page a second time for a lone event.
 */
export function syncLog(path: string): void {
  const log = openSync(`${path}-wal`, 'r')
  try {
    fdatasyncSync(log)
  } finally {
    closeSync(log)
  }
}

const queries = {
  interests: `SELECT i.id, i.name, i.floor, i.synced,
      (SELECT coalesce(sum(size), 0) FROM history h WHERE h.interest = i.id) AS bytes
    FROM interests i ORDER BY i.id`,
  addInterest: 'INSERT INTO interests (name) VALUES (?)',
  setInterest: 'UPDATE interests SET floor = ?, synced = ? WHERE id = ?',
  dropInterest: 'DELETE FROM interests WHERE id = ?',
  newest: 'SELECT version, position FROM history WHERE interest = ? ORDER BY version DESC, position DESC LIMIT 1',
  gaps: 'SELECT position, version, key FROM history WHERE interest = ? AND kind = 2',
  current: 'SELECT h.id, h.body FROM objects o JOIN heads h ON h.id = o.head WHERE o.interest = ? AND o.key = ?',
  size: 'SELECT length(bytes) FROM bodies WHERE id = ?',
  addBody: 'INSERT INTO bodies (version, checksum, bytes) VALUES (?, ?, ?)',
  reuseBody: 'UPDATE bodies SET version = ?, checksum = ?, bytes = ? WHERE id = ?',
  dropBody: 'DELETE FROM bodies WHERE id = ?',
  addHead: 'INSERT INTO heads (body) VALUES (?)',
  setHead: 'UPDATE heads SET body = ? WHERE id = ?',
  dropHead: 'DELETE FROM heads WHERE id = ?',
  addObject: 'INSERT INTO objects VALUES (?, ?, ?)',
  dropObject: 'DELETE FROM objects WHERE interest = ? AND key = ?',
  objects: `SELECT o.key, b.version, b.checksum, b.bytes
    FROM objects o LEFT JOIN heads h ON h.id = o.head LEFT JOIN bodies b ON b.id = h.body
    WHERE o.interest = ? ORDER BY o.key`,
  addEntry: 'INSERT INTO history VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
  // No body has this number: reading the entry finds its body missing.
  loseBody: `UPDATE history SET body = -1
    WHERE interest = ?1 AND version = (SELECT version FROM bodies WHERE id = ?2) AND body = ?2`,
  oldest: `SELECT version, position, previous, size, kind, key FROM history WHERE interest = ?
    ORDER BY version, position LIMIT ?`,
  dropEntry: 'DELETE FROM history WHERE interest = ? AND version = ? AND position = ?',
  page: `SELECT h.version, h.position, h.kind, h.key,
      h.body, b.version, b.checksum, b.bytes, h.previous, p.version, p.checksum, p.bytes
    FROM history h LEFT JOIN bodies b ON b.id = h.body LEFT JOIN bodies p ON p.id = h.previous
    WHERE h.interest = ?1 AND (h.version, h.position) > (?2, ?3) ORDER BY h.version, h.position`,
  // A body belongs to one interest: to its object, or to the entry that replaced it. One pass over each.
  dropObjectBodies: `DELETE FROM bodies WHERE id IN
    (SELECT h.body FROM objects o JOIN heads h ON h.id = o.head WHERE o.interest = ?)`,
  dropReplacedBodies: `DELETE FROM bodies WHERE id IN
    (SELECT previous FROM history WHERE interest = ? AND previous IS NOT NULL)`,
  dropHeads: 'DELETE FROM heads WHERE id IN (SELECT head FROM objects WHERE interest = ?)',
  dropObjects: 'DELETE FROM objects WHERE interest = ?',
  dropHistory: 'DELETE FROM history WHERE interest = ?',
  // Slots that were used again are struck out late.
  slots: `SELECT body, size, body IN (SELECT body FROM heads)
      OR body IN (SELECT previous FROM history WHERE previous IS NOT NULL)
    FROM slots`,
  addSlot: 'INSERT OR REPLACE INTO slots VALUES (?, ?)',
  dropSlot: 'DELETE FROM slots WHERE body = ?',
  setRecord: `INSERT INTO records (kind, key, checksum, value) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT (kind, key) DO UPDATE SET checksum = ?3, value = ?4`,
  dropRecord: 'DELETE FROM records WHERE kind = ? AND key = ?',
  records: 'SELECT key, checksum, value FROM records WHERE kind = ? ORDER BY key',
  record: 'SELECT key, checksum, value FROM records WHERE kind = ? AND key = ?',
} as const

export type Statements = Record<keyof typeof queries, StatementSync>

/** Rows come as arrays. */
export function prepare(db: DatabaseSync): Statements {
  const prepared = Object.entries(queries).map(([name, sql]) => {
    const statement = db.prepare(sql)
    statement.setReturnArrays(true)
    return [name, statement]
  })
  return Object.fromEntries(prepared) as Statements
}
