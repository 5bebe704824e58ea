/** The SQLite file of the index: how it is opened, kept from others' eyes and made safe, and every statement it runs. */
import { chmodSync, closeSync, existsSync, openSync, statSync } from 'node:fs'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { createTables, migrate, migrations } from './schema.ts'
import { ownerOnly } from './segment.ts'
import { StoreUnusable } from './store.ts'
import { carryBodies } from './upgrade.ts'

/** A file that is mostly free pages is made small again, unless it is small anyway. */
const freePagesMax = 1_024

/** The file is not what was written into it, or not this log's: it is made again from the log. */
export class IndexDamaged extends Error {}

/**
 * What SQLite says where the file is to blame, not a disk that takes no writes, nor another process: no such table, not
 * permitted, read-only, corrupt, cannot be opened, no database; and of failures what could not be read.
 */
const damageCodes: ReadonlySet<number> = new Set([1, 3, 8, 11, 14, 26])
const unreadableCodes: ReadonlySet<number> = new Set([266, 522, 8458])
const busyCode = 5

export function isDamage(error: unknown): boolean {
  if (error instanceof IndexDamaged) return true
  const { errcode, code } = error as { errcode?: number; code?: string }
  if (errcode === undefined) return code === 'EACCES' || code === 'EPERM'
  return damageCodes.has(errcode & 0xff) || unreadableCodes.has(errcode)
}

/** `schema` where an older one is wanted than the newest. Throws `IndexDamaged` where making it again may help. */
export function open(path: string, parts: { folder: string; segmentBytes: number; schema?: number }): DatabaseSync {
  let db: DatabaseSync | undefined
  try {
    keepPrivate(path)
    db = new DatabaseSync(path)
    db.exec(pragmas)
    if (parts.schema === undefined) createTables(db)
    const steps = migrations((opened) => carryBodies(opened, parts))
    migrate(
      db,
      steps.filter(({ to }) => to <= (parts.schema ?? to)),
    )
    shrink(db)
    // From now on nothing of an open transaction goes to the disk: one that cannot be committed can still be read.
    db.exec('PRAGMA cache_spill = OFF')
    return db
  } catch (error) {
    db?.close()
    if (error instanceof StoreUnusable) throw error
    const message = `${path}: ${error instanceof Error ? error.message : String(error)}`
    const isHeld = ((error as { errcode?: number }).errcode ?? 0) % 256 === busyCode
    throw isDamage(error) && !isHeld ? new IndexDamaged(message) : new StoreUnusable(message)
  }
}

// Small pages, half of what is usual: rows are a few bytes, an update touches one in each of several tables, and a page is
// written to the WAL as a whole. A file that has larger ones keeps them. Written back after twice as many bytes
// as usual: each time that is most of what the index holds, however little of it has changed since.
// EXCLUSIVE before WAL: no shared-memory file, and a second process is refused by the file itself. NORMAL: the index may
// lose its last transactions in a power cut, the log has them.
const pragmas = `
  PRAGMA page_size = 2048;
  PRAGMA wal_autocheckpoint = 4000;
  PRAGMA locking_mode = EXCLUSIVE;
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = NORMAL;
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

/** What was committed lately and is not in the file itself. */
export function besideBytes(path: string): number {
  try {
    return statSync(`${path}-wal`).size
  } catch {
    return 0
  }
}

/** Puts it into the file, and gives its room back to the disk. */
export function settle(db: DatabaseSync): void {
  try {
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  } catch {
    // It stays beside, and is read there; what the disk thinks of writes is told by commits.
  }
}

/** No page, free or not, keeps what was once written to it. */
export function scrub(db: DatabaseSync): void {
  try {
    db.exec('PRAGMA cache_spill = ON; VACUUM; PRAGMA wal_checkpoint(TRUNCATE)')
  } finally {
    db.exec('PRAGMA cache_spill = OFF')
  }
}

/** After bodies have moved out of the file, or far fewer objects than once: what is not needed goes back to the disk. */
function shrink(db: DatabaseSync): void {
  const count = (name: string) => Object.values(db.prepare(`PRAGMA ${name}`).get() as object)[0] as number
  const free = count('freelist_count')
  if (free < freePagesMax || free * 2 < count('page_count')) return
  try {
    db.exec('VACUUM')
  } catch {
    // No room to do it in: at the next start, perhaps.
  }
}

const queries = {
  applied: 'SELECT segment, start, sequence, identity, bases, raised, holes, sum FROM applied',
  setApplied:
    'UPDATE applied SET segment = ?, start = ?, sequence = ?, identity = ?, bases = ?, raised = ?, holes = ?, sum = ?',
  segments: 'SELECT number, size, live FROM segments',
  setSegment: 'INSERT INTO segments VALUES (?1, ?2, ?3) ON CONFLICT (number) DO UPDATE SET size = ?2, live = ?3',
  dropSegment: 'DELETE FROM segments WHERE number = ?',
  interests: `SELECT i.id, i.name, i.floor, i.synced, i.doubted, i.sum,
      (SELECT coalesce(sum(size), 0) FROM history h WHERE h.interest = i.id) AS bytes
    FROM interests i ORDER BY i.id`,
  addInterest: 'INSERT INTO interests (name) VALUES (?)',
  setInterest: 'UPDATE interests SET floor = ?, synced = ?, doubted = ?, sum = ? WHERE id = ?',
  dropInterest: 'DELETE FROM interests WHERE id = ?',
  newest: 'SELECT version, position FROM history WHERE interest = ? ORDER BY version DESC, position DESC LIMIT 1',
  gaps: 'SELECT position, version, key FROM history WHERE interest = ? AND kind = 2',
  current: `SELECT k.id, o.body, b.length, b.version, b.checksum
    FROM keys k JOIN objects o ON o.interest = ?1 AND o.key = k.id LEFT JOIN bodies b ON b.id = o.body WHERE k.key = ?2`,
  addKey:
    'INSERT INTO keys (key, objects) VALUES (?, 1) ON CONFLICT (key) DO UPDATE SET objects = objects + 1 RETURNING id',
  letGoOfKey: 'UPDATE keys SET objects = objects - 1 WHERE id = ?',
  dropKey: 'DELETE FROM keys WHERE id = ? AND objects = 0',
  letGoOfKeys: 'UPDATE keys SET objects = objects - 1 WHERE id IN (SELECT key FROM objects WHERE interest = ?)',
  dropKeys: 'DELETE FROM keys WHERE objects = 0 AND id IN (SELECT key FROM objects WHERE interest = ?)',
  addBody: 'INSERT INTO bodies (version, checksum, segment, start, length, name) VALUES (?, ?, ?, ?, ?, ?)',
  named: 'SELECT id, version, checksum FROM bodies WHERE name = ? ORDER BY id DESC LIMIT 1',
  shareBody: 'UPDATE bodies SET holders = holders + 1 WHERE id = ?',
  dropBody: 'DELETE FROM bodies WHERE id = ? AND holders = 1 AND name IS NULL RETURNING segment, length',
  dropBodies: `DELETE FROM bodies WHERE id IN (SELECT value FROM json_each(?)) AND holders = 1 AND name IS NULL
    RETURNING id, segment, length`,
  letGoOfBody: 'UPDATE bodies SET holders = holders - 1 WHERE id = ?',
  dropNames: 'UPDATE bodies SET name = NULL WHERE name IN (SELECT value FROM json_each(?)) RETURNING id, holders',
  // All but what a process can refer to when it begins: the objects that are there.
  otherNames: `SELECT name FROM bodies
    WHERE name IS NOT NULL AND (holders = 0 OR id NOT IN (SELECT body FROM objects))`,
  dropUnheld: 'DELETE FROM bodies WHERE id = ? AND holders = 0 AND name IS NULL RETURNING segment, length',
  body: 'SELECT id, segment, start, length, checksum, version FROM bodies WHERE id = ?',
  bodiesAfter: `SELECT id, segment, start, length, checksum, version FROM bodies
    WHERE id > ? AND id <= ? ORDER BY id LIMIT ?`,
  extent: 'SELECT coalesce(max(id), 0), coalesce(sum(length), 0) FROM bodies',
  bodiesOf: 'SELECT id, segment, start, length, checksum FROM bodies WHERE segment = ? LIMIT ?',
  // One that nothing holds goes with its name, or is held again by what refers to it.
  sealableOf: `SELECT id, segment, start, length, checksum, version FROM bodies
    WHERE segment = ? AND (holders > 0 OR name IS NULL) LIMIT ?`,
  sealBody: 'UPDATE bodies SET segment = ?, start = ?, length = ?, checksum = ? WHERE id = ?',
  objectsWith: `SELECT o.body, o.interest, k.key FROM objects o CROSS JOIN keys k ON k.id = o.key
    WHERE o.body IN (SELECT value FROM json_each(?))`,
  historyWith: 'SELECT previous, key, interest FROM history WHERE previous IN (SELECT value FROM json_each(?))',
  recordsWith: 'SELECT body, kind, key FROM records WHERE body IN (SELECT value FROM json_each(?))',
  moveBody: 'UPDATE bodies SET segment = ?, start = ? WHERE id = ?',
  setObject: 'UPDATE objects SET body = ?3 WHERE interest = ?1 AND key = ?2',
  addObject: 'INSERT INTO objects VALUES (?, ?, ?)',
  dropObject: 'DELETE FROM objects WHERE interest = ? AND key = ?',
  objects: `SELECT k.key, b.version, b.id, b.holders, b.name, b.segment, b.start, b.length, b.checksum
    FROM objects o CROSS JOIN keys k ON k.id = o.key LEFT JOIN bodies b ON b.id = o.body
    WHERE o.interest = ? ORDER BY k.key`,
  addEntry: 'INSERT OR IGNORE INTO history VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
  // No body has this number: reading the entry finds its body missing. A later entry that replaced the body keeps it.
  loseBody: `UPDATE history SET body = -1
    WHERE interest = ?1 AND version = (SELECT version FROM bodies WHERE id = ?2) AND body = ?2
      AND NOT EXISTS (SELECT 1 FROM history later WHERE later.interest = ?1 AND later.previous = ?2)`,
  oldest: `SELECT version, position, previous, size, kind, key FROM history WHERE interest = ?
    ORDER BY version, position LIMIT ?`,
  dropEntries: 'DELETE FROM history WHERE interest = ? AND (version, position) <= (?, ?)',
  page: `SELECT h.version, h.position, h.kind, h.key,
      h.body, b.version, b.segment, b.start, b.length, b.checksum,
      h.previous, p.version, p.segment, p.start, p.length, p.checksum
    FROM history h LEFT JOIN bodies b ON b.id = h.body LEFT JOIN bodies p ON p.id = h.previous
    WHERE h.interest = ?1 AND (h.version, h.position) > (?2, ?3) ORDER BY h.version, h.position`,
  // In an interest a body belongs to its object, or to the entry that replaced it.
  bodiesOfInterest: `SELECT body FROM objects WHERE interest = ?1
    UNION ALL SELECT previous FROM history WHERE interest = ?1 AND previous IS NOT NULL`,
  dropObjects: 'DELETE FROM objects WHERE interest = ?',
  dropHistory: 'DELETE FROM history WHERE interest = ?',
  recordBody: `SELECT r.body, b.checksum FROM records r LEFT JOIN bodies b ON b.id = r.body
    WHERE r.kind = ? AND r.key = ?`,
  objectSums: `SELECT o.interest, coalesce(k.key, ''), b.version, b.checksum
    FROM objects o LEFT JOIN keys k ON k.id = o.key LEFT JOIN bodies b ON b.id = o.body`,
  recordSums: 'SELECT r.kind, r.key, b.checksum FROM records r LEFT JOIN bodies b ON b.id = r.body',
  // An empty body keeps no segment.
  used: 'SELECT DISTINCT segment FROM bodies WHERE length > 0',
  setRecord: 'INSERT INTO records VALUES (?1, ?2, ?3) ON CONFLICT (kind, key) DO UPDATE SET body = ?3',
  dropRecord: 'DELETE FROM records WHERE kind = ? AND key = ?',
  records: `SELECT r.key, b.segment, b.start, b.length, b.checksum FROM records r JOIN bodies b ON b.id = r.body
    WHERE r.kind = ? ORDER BY r.key`,
  record: `SELECT r.key, b.segment, b.start, b.length, b.checksum FROM records r JOIN bodies b ON b.id = r.body
    WHERE r.kind = ? AND r.key = ?`,
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
