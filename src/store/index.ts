/**
 * The index of the log, a SQLite file: which objects, history and records there are and where their bodies lie. It is
 * synchronous and runs inside the worker thread. It follows the log, never precedes it: what it commits is synced in the
 * log before, and how far it has come is part of the same transaction. So a crash only makes it read a little again.
 *
 * A disk that takes no write stops no reads: what was read from the log then stays in an open transaction, which answers
 * questions until it can be committed.
 */
import { closeSync, fdatasyncSync, openSync, statfsSync, statSync, truncateSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { Applier } from './apply.ts'
import { Bodies } from './bodies.ts'
import { open, prepare, type Statements } from './connection.ts'
import { Kept } from './kept.ts'
import { type ReadInterest, type ReadObject, readHistory, readInterest, readObjects, readRecords } from './reading.ts'
import { makeLogFolder, type Position, readSegments, segmentPath, syncFolder } from './segment.ts'
import { removeFile, tidy } from './space.ts'
import { type Cursor, HistoryGone, type HistoryLimit, StoreUnusable } from './store.ts'
import { readLog } from './tail.ts'

/** One transaction takes at most about so many changes: its pages are held in memory. */
const transactionChangesMax = 2_048
/** Space that has to be there before a transaction that failed is tried again. */
const roomBytesMin = 1024 * 1024

export type IndexParts = {
  readonly path: string
  readonly folder: string
  readonly historyBytesMax: number
  readonly segmentBytes: number
}

export class Index {
  readonly #parts: IndexParts
  readonly bodies: Bodies
  #db: DatabaseSync
  #statements: Statements
  #applier: Applier
  #kept: Kept
  /** Segments that were read from since the last commit. */
  readonly #read = new Set<number>()
  #newest = 0
  /** Why what was applied is not committed. */
  #held: Error | undefined
  #triesAgain = true

  constructor(parts: IndexParts) {
    this.#parts = parts
    makeLogFolder(parts.folder)
    this.bodies = new Bodies(parts.folder)
    this.#db = open(parts.path, parts)
    this.#statements = prepare(this.#db)
    this.#applier = this.#readTables()
    this.#kept = new Kept({ ...parts, last: this.#lastKept() })
  }

  #readTables(): Applier {
    return new Applier({ statements: this.#statements, historyBytesMax: this.#parts.historyBytesMax })
  }

  #lastKept(): { segment: number; size: number } {
    const { counts } = this.#applier.segments
    const segment = Math.min(0, ...counts.keys())
    return { segment, size: counts.get(segment)?.size ?? 0 }
  }

  get applied(): Position {
    return this.#applier.applied
  }

  get historyBytes(): number {
    return this.#applier.historyBytes
  }

  /** Why the index is not as durable as it should be. */
  get behind(): Error | undefined {
    return this.#held
  }

  takeFloors(): [string, number][] {
    return this.#applier.takeFloors()
  }

  /** After a start: applies what is whole, cuts off what is not, and answers where the log ends and whether a file does. */
  recover(): { end: Position; isWhole: boolean } {
    const { folder } = this.#parts
    const segments = readSegments(folder)
    const oldest = segments.find((segment) => segment > 0)
    if (this.applied.segment === 0 && oldest !== undefined && oldest !== 1) {
      throw new StoreUnusable(`${this.#parts.path} is missing, and the log beside it begins with segment ${oldest}`)
    }
    this.#applyAll()
    const end = this.applied
    for (const segment of segments) {
      const isUnknown = segment < end.segment && !this.#applier.segments.counts.has(segment)
      if (segment > end.segment || isUnknown) removeFile(segmentPath(folder, segment))
    }
    if (!segments.includes(end.segment)) return { end, isWhole: false }
    const path = segmentPath(folder, end.segment)
    if (statSync(path).size > end.offset) truncateSync(path, end.offset)
    return { end, isWhole: statSync(path).size === end.offset }
  }

  /**
   * Applies the log up to there. Throws where nothing can be said about what lies behind. A commit that failed is tried
   * again only now and then: where it fails once more everything that is held has to be applied again.
   */
  apply(to: Position, { triesAgain = true } = {}): void {
    this.#reopen()
    this.#triesAgain = triesAgain
    if (to.sequence > this.applied.sequence || (this.#held !== undefined && triesAgain)) this.#applyAll(to)
  }

  #applyAll(to?: Position): void {
    try {
      if (!this.#applyFrames(to, transactionChangesMax)) this.#hold(to)
    } catch (error) {
      this.#takeBack()
      throw error
    }
  }

  /** False when a commit failed. */
  #applyFrames(to: Position | undefined, changesMax: number): boolean {
    let changes = 0
    for (const frame of readLog({ folder: this.#parts.folder, from: this.applied, ...(to && { to }) })) {
      if (!this.#db.isTransaction) this.#db.exec('BEGIN IMMEDIATE')
      this.#applier.apply(frame)
      this.#read.add(frame.at.segment)
      changes += frame.changes.length + frame.records.length
      if (changes < changesMax || this.#held !== undefined) continue
      if (!this.#commit()) return false
      changes = 0
    }
    return !this.#db.isTransaction || changesMax === Number.POSITIVE_INFINITY || this.#commit()
  }

  /** True also where a held transaction has to be held on. */
  #commit(): boolean {
    this.#applier.finish()
    if (this.#held !== undefined && !(this.#triesAgain && this.#hasRoom())) return true
    try {
      this.#syncRead()
      this.#db.exec('COMMIT')
      this.#held = undefined
      return true
    } catch (error) {
      this.#held = error as Error
      return false
    }
  }

  #hasRoom(): boolean {
    const { bavail, bsize } = statfsSync(this.#parts.folder)
    return bavail * bsize >= roomBytesMin
  }

  /** The log first: an index that knew more than the log after a power cut would point at nothing. */
  #syncRead(): void {
    for (const segment of this.#read) {
      const file = openSync(segmentPath(this.#parts.folder, segment), 'r')
      try {
        fdatasyncSync(file)
      } finally {
        closeSync(file)
      }
      if (segment > this.#newest) syncFolder(this.#parts.folder)
      this.#newest = Math.max(this.#newest, segment)
    }
    this.#read.clear()
  }

  /** Applies again what could not be committed, to be read until it can. */
  #hold(to: Position | undefined): void {
    const why = this.#held
    this.#takeBack()
    this.#held = why
    this.#applyFrames(to, Number.POSITIVE_INFINITY)
    this.#applier.finish()
  }

  /** Back to what the file has. */
  #takeBack(): void {
    this.#held = undefined
    try {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
      this.#applier = this.#readTables()
      this.#kept.cutTo(this.#lastKept())
    } catch {
      // A disk that fails in the middle of a rollback leaves a connection nobody should trust.
      if (this.#db.isOpen) this.#db.close()
    }
  }

  /** A new connection for one that was given up, as soon as the disk allows it. */
  #reopen(): void {
    if (this.#db.isOpen) return
    this.#db = open(this.#parts.path, this.#parts)
    this.#statements = prepare(this.#db)
    this.#applier = this.#readTables()
    this.#kept.cutTo(this.#lastKept())
  }

  /** Gives some space back to the disk; true when there is more to do. */
  tidy(): boolean {
    if (this.#held !== undefined || !this.#db.isOpen) return false
    try {
      this.#db.exec('BEGIN IMMEDIATE')
      const parts = { ...this.#parts, statements: this.#statements, applier: this.#applier }
      const isDone = !tidy({ ...parts, bodies: this.bodies, kept: this.#kept })
      this.#db.exec(isDone ? 'ROLLBACK' : 'COMMIT')
      return !isDone
    } catch {
      // The next round tries again; what the disk thinks of writes is told by commits.
      this.#takeBack()
      return false
    }
  }

  interests(): ReadInterest[] {
    return [...this.#applier.interests.values()].map((row) => readInterest(this.#statements, row))
  }

  objects(name: string): Iterable<ReadObject> {
    const row = this.#applier.interests.get(name)
    return row === undefined ? [] : readObjects(this.#statements, row.id)
  }

  history(name: string, after: Cursor, limit: HistoryLimit): ReturnType<typeof readHistory> {
    this.#reopen()
    const row = this.#applier.interests.get(name)
    if (row === undefined) return { entries: [], more: false }
    if (after.version < row.floor) throw new HistoryGone(name, row.floor)
    return readHistory(this.#statements, row.id, { after, limit })
  }

  records(kind: string, key?: string): ReturnType<typeof readRecords> {
    this.#reopen()
    return readRecords(this.#statements, kind, key)
  }

  close(): void {
    this.bodies.closeAll()
    this.#kept.close()
    if (this.#db.isOpen) this.#db.close()
  }
}
