/**
 * The SQLite engine itself, synchronous: runs inside the worker thread. One instance owns the file; every method leaves
 * it consistent, and a failed group is rolled back as a whole.
 */
import { statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { crc32 } from 'node:zlib'
import { migrate, schemaVersion } from './schema.ts'
import { type Cursor, type EntryKind, type Gap, HistoryGone, type HistoryLimit, StoreUnusable } from './store.ts'

export type DatabaseChange = {
  readonly interest: string
  readonly position: number
  readonly version: number
  readonly key: string
  readonly kind: EntryKind
  readonly body: Uint8Array | undefined
}

export type Body = { readonly version: number; readonly bytes: Uint8Array }

export type DatabaseEntry = {
  readonly position: number
  readonly version: number
  readonly key: string
  readonly kind: EntryKind
  readonly body: Body | undefined
  readonly previous: Body | undefined
}

type InterestRow = { readonly id: number; readonly name: string; floor: number; bytes: number }

const kinds: readonly EntryKind[] = ['put', 'delete', 'gap']
/** What an entry costs besides the body it keeps alive: its row and its share of pages. */
const entryOverheadBytes = 128
/** Forgetting is spread over commits, so that none of them waits long: this many entries for each one written. */
const forgetPerEntry = 4

/** Space that has to be there before a disk that was full counts as healed: a last free page would only be a tease. */
const roomBytesMin = 1024 * 1024
export const sqliteFull = 13

type Statements = Record<
  | 'addInterest'
  | 'setFloor'
  | 'current'
  | 'size'
  | 'addBody'
  | 'dropBody'
  | 'addEntry'
  | 'setObject'
  | 'dropObject'
  | 'oldest'
  | 'dropEntry'
  | 'page',
  StatementSync
>

export class Database {
  readonly #path: string
  readonly #historyBytesMax: number
  readonly #interests = new Map<string, InterestRow>()
  #db: DatabaseSync
  #statements: Statements
  #synchronous = ''
  historyBytes = 0

  constructor(parts: { path: string; historyBytesMax: number }) {
    this.#path = parts.path
    this.#historyBytesMax = parts.historyBytesMax
    this.#db = open(this.#path)
    this.#statements = prepare(this.#db)
    this.#readInterests()
  }

  #readInterests(): void {
    const rows = this.#db
      .prepare(
        `SELECT i.id, i.name, i.floor, (SELECT coalesce(sum(size), 0) FROM history h WHERE h.interest = i.id) AS bytes
         FROM interests i ORDER BY i.id`,
      )
      .all() as InterestRow[]
    this.#interests.clear()
    this.historyBytes = 0
    for (const row of rows) {
      this.#interests.set(row.name, { ...row })
      this.historyBytes += row.bytes
    }
  }

  /** Commits all changes or none. Returns the floors that rose. */
  commit(changes: readonly DatabaseChange[], synced: boolean): [string, number][] {
    this.#reopen()
    const mode = synced ? 'FULL' : 'NORMAL'
    if (this.#synchronous !== mode) {
      this.#db.exec(`PRAGMA synchronous = ${mode}`)
      this.#synchronous = mode
    }
    const before = new Map([...this.#interests].map(([name, row]) => [name, { ...row }]))
    const bytesBefore = this.historyBytes
    try {
      this.#db.exec('BEGIN IMMEDIATE')
      if (changes.length === 0) this.#probe()
      for (const change of changes) this.#write(change)
      const floors = this.#forget(changes.length * forgetPerEntry)
      this.#db.exec('COMMIT')
      return floors
    } catch (error) {
      this.#interests.clear()
      for (const [name, row] of before) this.#interests.set(name, row)
      this.historyBytes = bytesBefore
      this.#rollback()
      throw error
    }
  }

  /** Throws unless the disk takes a write, and has room for more than this one. */
  #probe(): void {
    const { bavail, bsize } = statfsSync(dirname(this.#path))
    if (bavail * bsize < roomBytesMin)
      throw Object.assign(new Error('database or disk is full'), { errcode: sqliteFull })
    // The same number again: SQLite writes it nevertheless.
    this.#db.exec(`PRAGMA user_version = ${schemaVersion}`)
  }

  #rollback(): void {
    try {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
    } catch {
      // A disk that fails in the middle of a rollback leaves a connection nobody should trust.
      this.#db.close()
    }
  }

  /** A new connection for one that was given up, as soon as the disk allows it. */
  #reopen(): void {
    if (this.#db.isOpen) return
    this.#db = open(this.#path)
    this.#statements = prepare(this.#db)
    this.#synchronous = ''
    this.#readInterests()
  }

  #write(change: DatabaseChange): void {
    const use = this.#statements
    const interest = this.#interest(change.interest)
    const current = use.current.get(interest.id, change.key) as [number] | undefined
    const previous = change.kind === 'gap' ? undefined : current?.[0]
    let size = entryOverheadBytes + change.key.length
    if (previous !== undefined) size += (use.size.get(previous) as [number] | undefined)?.[0] ?? 0
    let body: number | null = null
    if (change.body !== undefined) {
      body = use.addBody.run(change.version, crc32(change.body), change.body).lastInsertRowid as number
      use.setObject.run(interest.id, change.key, body)
    } else if (change.kind === 'delete') {
      use.dropObject.run(interest.id, change.key)
    }
    const kind = kinds.indexOf(change.kind)
    use.addEntry.run(interest.id, change.version, change.position, kind, change.key, body, previous ?? null, size)
    interest.bytes += size
    this.historyBytes += size
  }

  #interest(name: string): InterestRow {
    let row = this.#interests.get(name)
    if (row === undefined) {
      const id = this.#statements.addInterest.run(name).lastInsertRowid as number
      row = { id, name, floor: 0, bytes: 0 }
      this.#interests.set(name, row)
    }
    return row
  }

  /** Forgets the oldest entries of whichever interest holds the most, at most `entriesMax` of them. */
  #forget(entriesMax: number): [string, number][] {
    const use = this.#statements
    const floors = new Map<string, number>()
    let left = entriesMax
    while (this.historyBytes > this.#historyBytesMax && left > 0) {
      let largest: InterestRow | undefined
      for (const row of this.#interests.values()) if (row.bytes > (largest?.bytes ?? 0)) largest = row
      if (largest === undefined) break
      const rows = use.oldest.all(largest.id, Math.min(left, 64)) as unknown as OldestRow[]
      if (rows.length === 0) break
      for (const [version, position, previous, size, kind, key] of rows) {
        if (this.historyBytes <= this.#historyBytesMax) break
        use.dropEntry.run(largest.id, version, position)
        // The body this entry replaced was kept for its sake alone: older entries are gone already.
        if (previous !== null) use.dropBody.run(previous)
        largest.bytes -= size
        this.historyBytes -= size
        // Who resumes inside a gap needs all of its deletions: with the first part of it the whole of it is gone.
        largest.floor = Math.max(largest.floor, kinds[kind] === 'gap' ? Number(key) : version)
        left--
      }
      use.setFloor.run(largest.floor, largest.id)
      floors.set(largest.name, largest.floor)
    }
    return [...floors]
  }

  interests(): { name: string; floor: number; lastPosition: number; lastVersion: number; gaps: Gap[] }[] {
    const last = this.#db.prepare(
      'SELECT version, position FROM history WHERE interest = ? ORDER BY version DESC, position DESC LIMIT 1',
    )
    const gaps = this.#db.prepare('SELECT position, version, key FROM history WHERE interest = ? AND kind = 2')
    return [...this.#interests.values()].map((row) => {
      const newest = last.get(row.id) as { version: number; position: number } | undefined
      return {
        name: row.name,
        floor: row.floor,
        lastPosition: newest?.position ?? 0,
        lastVersion: newest?.version ?? row.floor,
        gaps: (gaps.all(row.id) as { position: number; version: number; key: string }[]).map((gap) => ({
          position: gap.position,
          from: gap.version,
          to: Number(gap.key),
        })),
      }
    })
  }

  /** The objects of an interest in key order; `bytes` undefined where the checksum does not hold. */
  *objects(name: string): Iterable<{ key: string; version: number; bytes: Uint8Array | undefined }> {
    const row = this.#interests.get(name)
    if (row === undefined) return
    const statement = this.#db.prepare(
      `SELECT o.key, b.version, b.checksum, b.bytes FROM objects o LEFT JOIN bodies b ON b.id = o.body
       WHERE o.interest = ? ORDER BY o.key`,
    )
    statement.setReturnArrays(true)
    for (const found of statement.iterate(row.id)) {
      const [key, version, checksum, bytes] = found as unknown as [string, number, number, Uint8Array | null]
      const sound = bytes !== null && crc32(bytes) === checksum
      yield { key, version: version ?? 0, bytes: sound ? bytes : undefined }
    }
  }

  history(name: string, after: Cursor, limit: HistoryLimit): { entries: DatabaseEntry[]; more: boolean } {
    this.#reopen()
    const row = this.#interests.get(name)
    if (row === undefined) return { entries: [], more: false }
    if (after.version < row.floor) throw new HistoryGone(name, row.floor)
    const entries: DatabaseEntry[] = []
    let bytes = 0
    for (const found of this.#statements.page.iterate(row.id, after.version, after.position)) {
      if (entries.length >= limit.entries || bytes >= limit.bytes) return { entries, more: true }
      const columns = found as unknown as PageRow
      const body = readBody(columns, 4)
      const previous = readBody(columns, 8)
      if (body === 'corrupt' || previous === 'corrupt') {
        if (entries.length > 0) return { entries, more: true }
        // As good as forgotten: whoever needs this step has to list again.
        throw new HistoryGone(name, columns[0])
      }
      entries.push({
        version: columns[0],
        position: columns[1],
        kind: kinds[columns[2]] as EntryKind,
        key: columns[3],
        body,
        previous,
      })
      bytes += (body?.bytes.length ?? 0) + (previous?.bytes.length ?? 0)
    }
    return { entries, more: false }
  }

  /** Makes unsynced groups safe against a power cut. */
  sync(): void {
    this.#db.exec('PRAGMA wal_checkpoint(PASSIVE)')
  }

  close(): void {
    if (this.#db.isOpen) this.#db.close()
  }
}

type OldestRow = [version: number, position: number, previous: number | null, size: number, kind: number, key: string]

type PageRow = [
  version: number,
  position: number,
  kind: number,
  key: string,
  id: number | null,
  bodyVersion: number,
  checksum: number,
  bytes: Uint8Array | null,
  previousId: number | null,
  previousVersion: number,
  previousChecksum: number,
  previousBytes: Uint8Array | null,
]

function readBody(row: PageRow, at: 4 | 8): Body | 'corrupt' | undefined {
  if (row[at] === null) return undefined
  const bytes = row[at + 3] as Uint8Array | null
  if (bytes === null || crc32(bytes) !== row[at + 2]) return 'corrupt'
  return { version: row[at + 1] as number, bytes }
}

function open(path: string): DatabaseSync {
  let db: DatabaseSync | undefined
  try {
    db = new DatabaseSync(path)
    // EXCLUSIVE before WAL: no shared-memory file, and a second process is refused by the file itself.
    db.exec(
      'PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA foreign_keys = OFF; PRAGMA cache_size = -2048',
    )
    migrate(db)
    return db
  } catch (error) {
    db?.close()
    if (error instanceof StoreUnusable) throw error
    throw new StoreUnusable(`${path}: ${error instanceof Error ? error.message : String(error)}`)
  }
}

function prepare(db: DatabaseSync): Statements {
  const statement = (sql: string) => {
    const made = db.prepare(sql)
    made.setReturnArrays(true)
    return made
  }
  return {
    addInterest: statement('INSERT INTO interests (name) VALUES (?)'),
    setFloor: statement('UPDATE interests SET floor = ? WHERE id = ?'),
    current: statement('SELECT body FROM objects WHERE interest = ? AND key = ?'),
    size: statement('SELECT length(bytes) FROM bodies WHERE id = ?'),
    addBody: statement('INSERT INTO bodies (version, checksum, bytes) VALUES (?, ?, ?)'),
    dropBody: statement('DELETE FROM bodies WHERE id = ?'),
    addEntry: statement('INSERT INTO history VALUES (?, ?, ?, ?, ?, ?, ?, ?)'),
    setObject: statement('INSERT INTO objects VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET body = ?3'),
    dropObject: statement('DELETE FROM objects WHERE interest = ? AND key = ?'),
    oldest: statement(
      'SELECT version, position, previous, size, kind, key FROM history WHERE interest = ? ORDER BY version, position LIMIT ?',
    ),
    dropEntry: statement('DELETE FROM history WHERE interest = ? AND version = ? AND position = ?'),
    page: statement(
      `SELECT h.version, h.position, h.kind, h.key, h.body, b.version, b.checksum, b.bytes, h.previous, p.version, p.checksum, p.bytes
       FROM history h LEFT JOIN bodies b ON b.id = h.body LEFT JOIN bodies p ON p.id = h.previous
       WHERE h.interest = ?1 AND (h.version, h.position) > (?2, ?3) ORDER BY h.version, h.position`,
    ),
  }
}
