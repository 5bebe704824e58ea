/**
 * The file of the index, with what is kept at hand of it: its connection and statements, what was applied, the segments of bodies that
 * it counts. All of that is thrown away together where a transaction is taken back, a connection given up or the file made again.
 *
 * A disk that takes no write stops no reads: what was read from the log then stays in an open transaction, which answers
 * questions until it can be committed. It is *held*.
 */
import type { DatabaseSync } from 'node:sqlite'
import { Applier } from './apply.ts'
import type { Aside } from './aside.ts'
import type { Base } from './base.ts'
import type { Bodies } from './bodies.ts'
import { BodySegments } from './bodysegments.ts'
import { IndexDamaged, isDamage, open, prepare, type Statements } from './connection.ts'
import { hasRoom } from './disk.ts'
import { Reads } from './reads.ts'
import { openSound, type RemakeParts, remake } from './remake.ts'
import type { Position } from './segment.ts'
import type { TailFrame } from './tail.ts'

/** A change of what is noted besides the log's content, and how far that was applied before it. */
export type Note = { readonly at: Position; readonly change: (applier: Applier) => void }

type Parts = RemakeParts & { readonly aside: Aside; readonly bodies: Bodies; readonly base: Base | undefined }

export class IndexFile {
  readonly #parts: Parts
  #db: DatabaseSync
  #statements: Statements
  #applier: Applier
  readonly kept: BodySegments
  /** Since the last commit. */
  readonly #reads: Reads
  #held: Error | undefined
  /** What no frame of the log says again, of what is held; and whether it was taken back, and has to be applied again. */
  #heldNotes: Note[] = []
  #lacksNotes = false
  /** Why it had to be made again, until its owner has heard of it. */
  remade: string | undefined

  constructor(parts: Parts) {
    this.#parts = parts
    this.#reads = new Reads(parts.folder)
    const { db, statements, applier } = this.#openTables()
    this.#db = db
    this.#statements = statements
    this.#applier = applier
    this.kept = new BodySegments({ ...parts, last: this.#lastKept(), seal: parts.bodies.seal.id })
  }

  #openTables(): ReturnType<typeof remake> {
    try {
      return openSound(this.#parts, this.#parts.base)
    } catch (error) {
      if (!isDamage(error)) throw error
      this.remade = (error as Error).message
      return remake(this.#parts, this.#parts.aside)
    }
  }

  get db(): DatabaseSync {
    return this.#db
  }

  get statements(): Statements {
    return this.#statements
  }

  get applier(): Applier {
    return this.#applier
  }

  get isOpen(): boolean {
    return this.#db.isOpen
  }

  /** Why what was applied is not committed. */
  get held(): Error | undefined {
    return this.#held
  }

  /** Whether notes have to be held again before anything else is applied: what is behind them may be committed with them only. */
  get lacksNotes(): boolean {
    return this.#lacksNotes
  }

  /** A new file, from the log, in place of one that cannot be used. */
  remake(why: Error): void {
    this.kept.close()
    if (this.#db.isOpen) this.#db.close()
    this.#parts.bodies.closeAll()
    this.#lackNotes()
    this.remade = why.message
    const { db, statements, applier } = remake(this.#parts, this.#parts.aside)
    this.#db = db
    this.#statements = statements
    this.#applier = applier
    this.kept.cutTo(this.#lastKept())
  }

  /** A new connection for one that was given up, as soon as the disk allows it. */
  reopen(): void {
    if (this.#db.isOpen) return
    try {
      this.#db = open(this.#parts.path, this.#parts)
      this.#statements = prepare(this.#db)
      this.#readTables()
    } catch (error) {
      if (!(error instanceof IndexDamaged)) throw error
      this.remake(error)
    }
  }

  #readTables(): void {
    this.#applier = new Applier({ statements: this.#statements, historyBytesMax: this.#parts.historyBytesMax })
    this.kept.cutTo(this.#lastKept())
  }

  #lastKept(): { segment: number; size: number } {
    const { counts } = this.#applier.segments
    const segment = Math.min(0, ...counts.keys())
    return { segment, size: counts.get(segment)?.size ?? 0 }
  }

  /** What is held already stays in its transaction. */
  begin(): void {
    if (!this.#db.isTransaction) this.#db.exec('BEGIN IMMEDIATE')
  }

  apply(frame: TailFrame): void {
    this.#applier.apply(frame)
    this.#reads.add(frame.at.segment)
  }

  /** Whether a power cut may take back what is committed from here on: usually it may, since the log says it again. */
  commitsSynced(isSynced: boolean): void {
    if (!this.#db.isTransaction) this.#db.exec(`PRAGMA synchronous = ${isSynced ? 'FULL' : 'NORMAL'}`)
  }

  /** True also where a held transaction has to be held on; false where the disk does not take it, which then is to be held. */
  commit(triesAgain = true): boolean {
    this.#applier.finish()
    if (this.#held !== undefined && !(triesAgain && hasRoom(this.#parts.folder))) return true
    try {
      this.#parts.aside.settle()
      this.#reads.sync()
      this.#db.exec('COMMIT')
      if (this.#held !== undefined) this.commitsSynced(false)
      this.#held = undefined
      this.#heldNotes = []
      return true
    } catch (error) {
      this.#held = error as Error
      return false
    }
  }

  /** Applies again what could not be committed, up to there, to be read until it can; with it what was noted meanwhile, then synced. */
  hold(applyTo: (to: Position | undefined) => void, to: Position | undefined, note?: Note): void {
    const why = this.#held
    this.takeBack()
    this.#held = why
    if (note !== undefined) this.#heldNotes.push(note)
    if (this.#heldNotes.length > 0) this.commitsSynced(true)
    // Also where there is nothing to apply: what is held is what the next try commits.
    this.begin()
    for (const { at, change } of this.#heldNotes) {
      applyTo(at)
      change(this.#applier)
    }
    this.#lacksNotes = false
    applyTo(to)
    this.#applier.finish()
  }

  /** Nothing is held any more, but for what only notes say. */
  #lackNotes(): void {
    this.#lacksNotes = this.#heldNotes.length > 0
    if (!this.#lacksNotes) this.#held = undefined
  }

  /** Back to what the file has. */
  takeBack(): void {
    this.#lackNotes()
    try {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
      this.#readTables()
    } catch {
      // A disk that fails in the middle of a rollback leaves a connection that cannot be trusted.
      if (this.#db.isOpen) this.#db.close()
    }
  }

  close(): void {
    this.#parts.bodies.closeAll()
    this.kept.close()
    if (this.#db.isOpen) this.#db.close()
  }
}
