/**
 * The SQLite engine itself, synchronous: runs inside the worker thread. One instance owns the file; every method leaves
 * it consistent, and a failed group is rolled back as a whole.
 */
import { statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { crc32 } from 'node:zlib'
import { entryOverheadBytes, forgetEntriesMax, historyBytesAfter } from './bounds.ts'
import { open, prepare, type Statements, syncLog } from './connection.ts'
import {
  type InterestRow,
  kinds,
  type ReadEntry,
  type ReadInterest,
  type ReadRecord,
  readHistory,
  readInterest,
  readInterestRows,
  readObjects,
  readRecords,
} from './reading.ts'
import { schemaVersion } from './schema.ts'
import { Slots } from './slots.ts'
import { type Change, type Cursor, HistoryGone, type HistoryLimit, type InterestChange } from './store.ts'

export type DatabaseChange = Omit<Change, 'body'> & { readonly body: Uint8Array | undefined }

type DatabaseRecord = { readonly kind: string; readonly key: string; readonly value: Uint8Array | undefined }

export type DatabaseBatch = {
  readonly changes: readonly DatabaseChange[]
  readonly interests: readonly InterestChange[]
  readonly records: readonly DatabaseRecord[]
}

/** Space that has to be there before a disk that was full counts as healed: a last free page would only be a tease. */
const roomBytesMin = 1024 * 1024
/** How many of the oldest entries are looked at together. */
const oldestEntries = 64
export const sqliteFull = 13

export class Database {
  readonly #path: string
  readonly #historyBytesMax: number
  readonly #interests = new Map<string, InterestRow>()
  /** What the transaction under way has changed of them, as it was before: undefined for what was not there. */
  readonly #before = new Map<string, InterestRow | undefined>()
  #db: DatabaseSync
  #statements: Statements
  #slots: Slots
  #synchronous = ''
  historyBytes = 0

  constructor(parts: { path: string; historyBytesMax: number }) {
    this.#path = parts.path
    this.#historyBytesMax = parts.historyBytesMax
    this.#db = open(this.#path)
    this.#statements = prepare(this.#db)
    this.#slots = this.#readSlots()
    this.#readInterests()
  }

  #readSlots(): Slots {
    return new Slots({ statements: this.#statements, bytesMax: this.#historyBytesMax / 8 })
  }

  #readInterests(): void {
    this.#interests.clear()
    this.historyBytes = 0
    for (const row of readInterestRows(this.#statements)) {
      this.#interests.set(row.name, row)
      this.historyBytes += row.bytes
    }
  }

  /** Commits all batches or none. Returns the floors that changed. */
  commit(batches: readonly DatabaseBatch[], synced: boolean): [string, number][] {
    this.#reopen()
    const mode = synced ? 'FULL' : 'NORMAL'
    if (this.#synchronous !== mode) {
      this.#db.exec(`PRAGMA synchronous = ${mode}`)
      this.#synchronous = mode
    }
    const bytesBefore = this.historyBytes
    this.#before.clear()
    try {
      this.#db.exec('BEGIN IMMEDIATE')
      if (batches.every(isEmpty)) this.#probe()
      for (const batch of batches) this.#apply(batch)
      this.#forgetHistory(batches.reduce((sum, { changes }) => sum + changes.length, 0))
      this.#slots.store()
      this.#db.exec('COMMIT')
      return this.#changedFloors()
    } catch (error) {
      for (const [name, row] of this.#before) {
        if (row === undefined) this.#interests.delete(name)
        else this.#interests.set(name, row)
      }
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
      this.#slots = this.#readSlots()
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
    this.#slots = this.#readSlots()
    this.#readInterests()
  }

  #apply({ changes, interests, records }: DatabaseBatch): void {
    const use = this.#statements
    for (const change of interests) if ('forget' in change) this.#forgetInterest(change.interest)
    for (const change of changes) this.#write(change)
    for (const change of interests) {
      if ('forget' in change) continue
      const row = this.#touch(change.interest)
      row.synced = change.synced
      row.floor = Math.max(row.floor, change.floor ?? 0)
      use.setInterest.run(row.floor, row.synced, row.id)
    }
    for (const { kind, key, value } of records) {
      if (value === undefined) use.dropRecord.run(kind, key)
      else use.setRecord.run(kind, key, crc32(value), value)
    }
  }

  #write(change: DatabaseChange): void {
    const use = this.#statements
    const interest = this.#touch(change.interest)
    const { key, version, kind } = change
    const current = kind === 'gap' ? undefined : use.current.get(interest.id, key)
    const [head, previous] = (current as [head: number, body: number] | undefined) ?? []
    let body: number | null = null
    if (change.body !== undefined) {
      body = this.#addBody(version, change.body)
      if (head !== undefined) use.setHead.run(body, head)
      else use.addObject.run(interest.id, key, use.addHead.run(body).lastInsertRowid)
    } else if (kind === 'delete' && head !== undefined) {
      use.dropObject.run(interest.id, key)
      use.dropHead.run(head)
    }
    if (kind === 'seed') {
      if (previous === undefined) return
      if (interest.bytes > 0) use.loseBody.run(interest.id, previous)
      this.#slots.give(previous, this.#sizeOf(previous))
      return
    }
    let size = entryOverheadBytes + key.length
    if (previous !== undefined) size += this.#sizeOf(previous)
    use.addEntry.run(interest.id, version, change.position, kinds.indexOf(kind), key, body, previous ?? null, size)
    interest.bytes += size
    this.historyBytes += size
  }

  #addBody(version: number, bytes: Uint8Array): number {
    const { addBody, reuseBody } = this.#statements
    const slot = this.#slots.take(bytes.length)
    if (slot === undefined) return addBody.run(version, crc32(bytes), bytes).lastInsertRowid as number
    reuseBody.run(version, crc32(bytes), bytes, slot)
    return slot
  }

  #sizeOf(body: number): number {
    return (this.#statements.size.get(body) as [number] | undefined)?.[0] ?? 0
  }

  #forgetInterest(name: string): void {
    const use = this.#statements
    const row = this.#interests.get(name)
    if (row === undefined) return
    this.#remember(name, row)
    this.#slots.strikeOut()
    use.dropObjectBodies.run(row.id)
    use.dropReplacedBodies.run(row.id)
    use.dropHeads.run(row.id)
    use.dropObjects.run(row.id)
    use.dropHistory.run(row.id)
    use.dropInterest.run(row.id)
    this.#interests.delete(name)
    this.historyBytes -= row.bytes
  }

  /** The interest, about to change. */
  #touch(name: string): InterestRow {
    let row = this.#interests.get(name)
    this.#remember(name, row)
    if (row === undefined) {
      const id = this.#statements.addInterest.run(name).lastInsertRowid as number
      row = { id, name, floor: 0, synced: undefined, bytes: 0 }
      this.#interests.set(name, row)
    }
    return row
  }

  #remember(name: string, row: InterestRow | undefined): void {
    if (!this.#before.has(name)) this.#before.set(name, row && { ...row })
  }

  /** Forgets the oldest entries of whichever interest holds the most. */
  #forgetHistory(written: number): void {
    if (this.historyBytes <= this.#historyBytesMax) return
    const use = this.#statements
    const bytesAfter = historyBytesAfter(this.#historyBytesMax)
    let left = forgetEntriesMax(written)
    while (this.historyBytes > bytesAfter && left > 0) {
      let largest: InterestRow | undefined
      for (const row of this.#interests.values()) if (row.bytes > (largest?.bytes ?? 0)) largest = row
      if (largest === undefined) return
      const rows = use.oldest.all(largest.id, Math.min(left, oldestEntries)) as unknown as OldestRow[]
      if (rows.length === 0) return
      this.#remember(largest.name, largest)
      for (const [version, position, previous, size, kind, key] of rows) {
        if (this.historyBytes <= bytesAfter) break
        use.dropEntry.run(largest.id, version, position)
        // The body this entry replaced was kept for its sake alone: older entries are gone already.
        if (previous !== null) this.#slots.give(previous, size - entryOverheadBytes - key.length)
        largest.bytes -= size
        this.historyBytes -= size
        // Who resumes inside a gap needs all of its deletions: with the first part of it the whole of it is gone.
        largest.floor = Math.max(largest.floor, kinds[kind] === 'gap' ? Number(key) : version)
        left--
      }
      use.setInterest.run(largest.floor, largest.synced ?? null, largest.id)
    }
  }

  #changedFloors(): [string, number][] {
    const floors: [string, number][] = []
    for (const [name, before] of this.#before) {
      const floor = this.#interests.get(name)?.floor ?? 0
      if (floor !== (before?.floor ?? 0)) floors.push([name, floor])
    }
    return floors
  }

  interests(): ReadInterest[] {
    return [...this.#interests.values()].map((row) => readInterest(this.#statements, row))
  }

  objects(name: string): ReturnType<typeof readObjects> {
    const row = this.#interests.get(name)
    return row === undefined ? [] : readObjects(this.#statements, row.id)
  }

  history(name: string, after: Cursor, limit: HistoryLimit): { entries: ReadEntry[]; more: boolean } {
    this.#reopen()
    const row = this.#interests.get(name)
    if (row === undefined) return { entries: [], more: false }
    if (after.version < row.floor) throw new HistoryGone(name, row.floor)
    return readHistory(this.#statements, row, after, limit)
  }

  records(kind: string, key?: string): ReadRecord[] {
    this.#reopen()
    return readRecords(this.#statements, kind, key)
  }

  /** Makes unsynced groups safe against a power cut. */
  sync(): void {
    syncLog(this.#path)
  }

  close(): void {
    if (this.#db.isOpen) this.#db.close()
  }
}

type OldestRow = [version: number, position: number, previous: number | null, size: number, kind: number, key: string]

function isEmpty({ changes, interests, records }: DatabaseBatch): boolean {
  return changes.length + interests.length + records.length === 0
}
