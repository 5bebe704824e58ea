/**
 * The index of the log, a SQLite file: which objects, history and records there are and where their bodies lie. It is
 * synchronous and runs inside the worker thread. It follows the log, never precedes it: what it commits is synced in the
 * log before, and how far it has come is part of the same transaction. So a crash only makes it read a little again.
 * Whatever is wrong with it, it is made again from the log (`remake.ts`).
 *
 * A disk that takes no write stops no reads: what was read from the log then stays in an open transaction, which answers
 * questions until it can be committed.
 */
import type { DatabaseSync } from 'node:sqlite'
import { Applier } from './apply.ts'
import { Aside, type Loss } from './aside.ts'
import { type Base, newestBase } from './base.ts'
import { Bodies } from './bodies.ts'
import { BodySegments } from './bodysegments.ts'
import { LogRewritten } from './chain.ts'
import type { LogEnd } from './commitlog.ts'
import { IndexDamaged, isDamage, open, prepare, type Statements } from './connection.ts'
import { hasRoom } from './disk.ts'
import { Ending } from './mark.ts'
import { type ReadInterest, type ReadObject, readInterest, readObjects, readPage, readRecords } from './reading.ts'
import { Reads } from './reads.ts'
import { recoverEnd } from './recovery.ts'
import { openSound, type RemakeParts, remake } from './remake.ts'
import { Scrub, type ScrubStep, type ScrubTables } from './scrub.ts'
import { Seal } from './seal.ts'
import { mendBody, Sealing, type SealProgress } from './sealing.ts'
import { makeLogFolder, type Position } from './segment.ts'
import { hasSealable, makeBase, type SpaceParts, tidy } from './space.ts'
import type { Cursor, HistoryLimit } from './store.ts'
import { type Hole, readLog } from './tail.ts'
import type { Cut } from './tidyfiles.ts'

/** One transaction takes at most about so many changes: its pages are held in memory. */
const transactionChangesMax = 2_048
/** `seal` opens what is sealed, and seals what is moved: what the log brings is sealed already. */
export type IndexParts = RemakeParts & { readonly seal?: Seal }

/** What the owner of the store has to hear of. `remade`: why the index could not be used. */
export type IndexNews = {
  readonly losses: readonly Loss[]
  readonly cuts: readonly Cut[]
  readonly remade: string | undefined
}

export class Index {
  readonly #parts: IndexParts
  readonly bodies: Bodies
  readonly #aside: Aside
  readonly #sealing: Sealing
  readonly #scrub: Scrub
  #db: DatabaseSync
  #statements: Statements
  #applier: Applier
  #kept: BodySegments
  #base: Base | undefined
  /** Since the last commit. */
  readonly #reads: Reads
  /** Why what was applied is not committed. */
  #held: Error | undefined
  #triesAgain = true
  /** The log before this sequence stays where it is: a base may say where that is. */
  #proven = 0
  #losses: Loss[] = []
  #cuts: readonly Cut[] = []
  readonly #ending: Ending
  #remade: string | undefined

  constructor(parts: IndexParts) {
    this.#parts = parts
    const { folder, seal = new Seal() } = parts
    makeLogFolder(folder)
    Sealing.refuseUnknown(folder, seal)
    this.bodies = new Bodies(folder, seal)
    this.#reads = new Reads(folder)
    this.#aside = new Aside(folder)
    this.#base = newestBase(folder)
    this.#ending = new Ending(parts)
    const { db, statements, applier } = this.#openTables()
    this.#db = db
    this.#statements = statements
    this.#applier = applier
    this.#kept = new BodySegments({ ...parts, last: this.#lastKept(), seal: seal.id })
    this.#sealing = new Sealing(folder, seal)
    this.#scrub = new Scrub({ bodies: this.bodies, tables: () => this.#durableTables() })
  }

  #openTables(): ReturnType<typeof remake> {
    try {
      return openSound(this.#parts, this.#base)
    } catch (error) {
      if (!isDamage(error)) throw error
      this.#remade = (error as Error).message
      return remake(this.#parts, this.#aside)
    }
  }

  /** A new file, from the log, in place of one that cannot be used. */
  #remake(why: Error): void {
    this.#kept.close()
    if (this.#db.isOpen) this.#db.close()
    this.bodies.closeAll()
    this.#held = undefined
    this.#remade = why.message
    const { db, statements, applier } = remake(this.#parts, this.#aside)
    this.#db = db
    this.#statements = statements
    this.#applier = applier
    this.#kept.cutTo(this.#lastKept())
  }

  #useTables(): void {
    this.#statements = prepare(this.#db)
    this.#applier = this.#readTables()
    this.#kept.cutTo(this.#lastKept())
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

  /** What was lost may have borne versions up to here. */
  get raised(): number {
    return this.#applier.raised
  }

  /** Why the index is not as durable as it should be. */
  get behind(): Error | undefined {
    return this.#held
  }

  /** What is noted as lost, by this start or an earlier one. */
  get losses(): Loss[] {
    return this.#aside.losses()
  }

  takeFloors(): [string, number][] {
    return this.#applier.takeFloors()
  }

  /** What was found since it was last asked. */
  takeNews(): IndexNews {
    const news = { losses: this.#losses, cuts: this.#cuts, remade: this.#remade }
    this.#losses = []
    this.#cuts = []
    this.#remade = undefined
    return news
  }

  /** After a start: applies what counts, cuts off what was torn, and answers where the log ends. */
  recover(): LogEnd {
    this.#applyOrRemake()
    // A page that is only read here may be damaged too.
    this.#asking(() => this.release(this.#applier.otherNames()))
    const { end, isWhole, identity, losses, cuts, lacksBase } = recoverEnd({
      folder: this.#parts.folder,
      aside: this.#aside,
      ending: this.#ending,
      base: this.#base,
      isRemade: this.#remade !== undefined,
      applier: () => this.#applier,
      note: (change) => this.#note(change),
    })
    this.#losses.push(...losses)
    this.#cuts = cuts
    if (this.#held === undefined) this.#proven = end.sequence
    if (this.#held === undefined && lacksBase) this.#tryBase()
    this.#markReached()
    this.#sealing.look(this.#aside)
    const mayExtend = isWhole && !this.#sealing.stale.has(end.segment)
    return { end, isWhole: mayExtend, isSynced: this.#held === undefined, identity }
  }

  get sealProgress(): SealProgress {
    return this.#sealing.progress
  }

  /** Once for each segment, and at the end. */
  #markReached({ isLast = false } = {}): void {
    if (this.#held !== undefined || this.applied.sequence > this.#proven) return
    this.#ending.reach(this.#applier, isLast)
  }

  /** Of an older ake, whose log does not say it all. */
  #tryBase(): void {
    try {
      this.#db.exec('BEGIN IMMEDIATE')
      this.#base = makeBase({ db: this.#db, folder: this.#parts.folder, applier: this.#applier })
      this.#db.exec('COMMIT')
    } catch {
      // No room: the first removal writes one.
      this.#takeBack()
    }
  }

  /** Changes what is noted besides the log's content. */
  #note(change: (applier: Applier) => void): void {
    const to = this.applied
    if (this.#held === undefined) this.#db.exec('BEGIN IMMEDIATE')
    change(this.#applier)
    if (this.#held !== undefined || this.#commit()) return
    this.#hold(to)
    change(this.#applier)
  }

  /** No later frame refers to bodies by these names. What cannot be noted now goes at the next start. */
  release(names: readonly number[]): void {
    if (names.length === 0 || !this.#db.isOpen) return
    try {
      this.#note((applier) => applier.release(names))
    } catch {
      this.#takeBack()
    }
  }

  /**
   * Applies the log up to there. Throws where nothing can be said about what lies behind. A commit that failed is tried
   * again only now and then: where it fails once more everything that is held has to be applied again.
   */
  apply(to: Position, { triesAgain = true, proven = 0 } = {}): void {
    this.#proven = Math.max(this.#proven, proven)
    this.#reopen()
    this.#triesAgain = triesAgain
    const { segment, offset, sequence } = this.applied
    // What was read may have been written again elsewhere since, after a sync that failed: a base must not say the old place.
    const isElsewhere = to.sequence === sequence && (to.segment !== segment || to.offset !== offset)
    if (to.sequence > sequence || isElsewhere || (this.#held !== undefined && triesAgain)) this.#applyOrRemake(to)
    this.#markReached()
  }

  #applyOrRemake(to?: Position): void {
    try {
      this.#applyAll(to)
    } catch (error) {
      if (!isDamage(error) && !(error instanceof LogRewritten)) throw error
      this.#remake(error as Error)
      this.#applyAll(to)
    }
  }

  #applyAll(to?: Position): void {
    try {
      if (!this.#applyFrames(to, transactionChangesMax)) this.#hold(to)
    } catch (error) {
      this.#takeBack()
      throw error
    }
  }

  /** What is held is applied again: it is told once. */
  #lose(hole: Hole): void {
    const loss = this.#aside.note(hole)
    const isKnown = this.#losses.some(({ segment, offset }) => segment === loss.segment && offset === loss.offset)
    if (!isKnown) this.#losses.push(loss)
    this.#applier.lose(hole)
  }

  /** False when a commit failed. */
  #applyFrames(to: Position | undefined, changesMax: number): boolean {
    let changes = 0
    for (const step of readLog({ folder: this.#parts.folder, from: this.applied, ...(to && { to }) })) {
      if (!this.#db.isTransaction) this.#db.exec('BEGIN IMMEDIATE')
      if ('hole' in step) {
        this.#lose(step.hole)
        continue
      }
      const { frame } = step
      this.#applier.apply(frame)
      this.#reads.add(frame.at.segment)
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
    if (this.#held !== undefined && !(this.#triesAgain && hasRoom(this.#parts.folder))) return true
    try {
      this.#reads.sync()
      this.#db.exec('COMMIT')
      this.#held = undefined
      return true
    } catch (error) {
      this.#held = error as Error
      return false
    }
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
      // A disk that fails in the middle of a rollback leaves a connection that cannot be trusted.
      if (this.#db.isOpen) this.#db.close()
    }
  }

  /** A new connection for one that was given up, as soon as the disk allows it. */
  #reopen(): void {
    if (this.#db.isOpen) return
    try {
      this.#db = open(this.#parts.path, this.#parts)
      this.#useTables()
    } catch (error) {
      if (!(error instanceof IndexDamaged)) throw error
      this.#remake(error)
    }
  }

  /** Gives some space back to the disk; true when there is more to do. */
  tidy(): boolean {
    return this.#change((parts) => {
      const done = tidy(parts)
      if (done?.base !== undefined) this.#base = done.base
      return done !== undefined
    })
  }

  /** Writes a damaged body again; false where that is not what was stored, or the disk does not take it. */
  mend(body: Parameters<typeof mendBody>[1]): boolean {
    return this.#change((parts) => mendBody(parts, body))
  }

  /** A change of where things lie, which says whether it has done any. */
  #change(change: (parts: SpaceParts) => boolean): boolean {
    if (this.#held !== undefined || !this.#db.isOpen) return false
    try {
      const tables = { db: this.#db, statements: this.#statements, applier: this.#applier, base: this.#base }
      const files = { bodies: this.bodies, kept: this.#kept, sealing: this.#sealing }
      const mayRemove = this.applied.sequence <= this.#proven
      const parts = { ...this.#parts, ...tables, ...files, mayRemove }
      if (this.#sealing.needsScrub && !hasSealable(parts)) this.#sealing.scrub(this.#db, this.#aside)
      this.#db.exec('BEGIN IMMEDIATE')
      const isDone = change(parts)
      this.#db.exec(isDone ? 'COMMIT' : 'ROLLBACK')
      return isDone
    } catch {
      // The next round tries again; what the disk thinks of writes is told by commits.
      this.#takeBack()
      return false
    }
  }

  /** Rereads some of what is stored. */
  scrub(): ScrubStep | undefined {
    return this.#asking(() => this.#scrub.step())
  }

  #durableTables(): ScrubTables | undefined {
    return this.#held === undefined ? { statements: this.#statements, interests: this.#applier.interests } : undefined
  }

  interests(): ReadInterest[] {
    return [...this.#applier.interests.values()].map((row) => readInterest(this.#statements, row))
  }

  objects(name: string): Iterable<ReadObject> {
    const row = this.#applier.interests.get(name)
    return row === undefined ? [] : readObjects(this.#statements, row.id)
  }

  /** What the file no longer tells is asked of one that was made again. */
  #asking<Answer>(ask: () => Answer): Answer {
    this.#reopen()
    try {
      return ask()
    } catch (error) {
      if (!isDamage(error)) throw error
      const to = this.applied
      this.#remake(error as Error)
      this.#applyAll(to)
      return ask()
    }
  }

  history(name: string, after: Cursor, limit: HistoryLimit): ReturnType<typeof readPage> {
    return this.#asking(() => readPage(this.#statements, this.#applier.interests.get(name), { after, limit }))
  }

  records(kind: string, key?: string): ReturnType<typeof readRecords> {
    return this.#asking(() => readRecords(this.#statements, kind, key))
  }

  close(): void {
    if (this.#db.isOpen) this.#markReached({ isLast: true })
    this.bodies.closeAll()
    this.#kept.close()
    if (this.#db.isOpen) this.#db.close()
  }
}
