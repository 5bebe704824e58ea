/**
 * The index of the log, a SQLite file: which objects, history and records there are and where their bodies lie. It is
 * synchronous and runs inside the worker thread. It follows the log, never precedes it: what it commits is synced in the
 * log before, and how far it has come is part of the same transaction. So a crash only makes it read a little again.
 * Whatever is wrong with it, it is made again from the log (`remake.ts`); while a disk takes no write it answers from what is held
 * (`indexfile.ts`).
 */
import type { Applier } from './apply.ts'
import { Aside, type Loss } from './aside.ts'
import { type Base, newestBase } from './base.ts'
import { Bodies } from './bodies.ts'
import { LogRewritten } from './chain.ts'
import type { LogEnd } from './commitlog.ts'
import { besideBytes, isDamage, settle } from './connection.ts'
import { IndexFile, type Note } from './indexfile.ts'
import { Ending } from './mark.ts'
import { type ReadInterest, type ReadObject, readInterest, readObjects, readPage, readRecords } from './reading.ts'
import { recoverEnd } from './recovery.ts'
import type { RemakeParts } from './remake.ts'
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
/** What may lie beside the file of an index at rest: to put it in costs most of the file's pages once more. */
const restingBytesMax = 4 * 1024 * 1024
/** It is at rest if the log has brought less since it was asked last: marks of progress, and not events. */
const restingNewsMax = 16 * 1024

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
  readonly #file: IndexFile
  #base: Base | undefined
  #triesAgain = true
  /** The log before this sequence stays where it is: a base may say where that is. */
  #proven = 0
  #losses: Loss[] = []
  #cuts: readonly Cut[] = []
  /** How far it had come when it was last asked whether it is at rest. */
  #restedAt: Position | undefined
  readonly #ending: Ending

  constructor(parts: IndexParts) {
    this.#parts = parts
    const { folder, seal = new Seal() } = parts
    makeLogFolder(folder)
    Sealing.refuseUnknown(folder, seal)
    this.bodies = new Bodies(folder, seal)
    this.#aside = new Aside(folder)
    this.#base = newestBase(folder)
    this.#ending = new Ending(parts)
    this.#file = new IndexFile({ ...parts, aside: this.#aside, bodies: this.bodies, base: this.#base })
    this.#sealing = new Sealing(folder, seal)
    this.#scrub = new Scrub({ bodies: this.bodies, tables: () => this.#durableTables() })
  }

  get applied(): Position {
    return this.#file.applier.applied
  }

  get historyBytes(): number {
    return this.#file.applier.historyBytes
  }

  /** What was lost may have borne versions up to here. */
  get raised(): number {
    return this.#file.applier.raised
  }

  /** Why the index is not as durable as it should be. */
  get behind(): Error | undefined {
    return this.#file.held
  }

  /** What is noted as lost, by this start or an earlier one. */
  get losses(): Loss[] {
    return this.#aside.losses()
  }

  takeFloors(): [string, number][] {
    return this.#file.applier.takeFloors()
  }

  /** What was found since it was last asked. */
  takeNews(): IndexNews {
    const news = { losses: this.#losses, cuts: this.#cuts, remade: this.#file.remade }
    this.#losses = []
    this.#cuts = []
    this.#file.remade = undefined
    return news
  }

  /** After a start: applies what counts, cuts off what was torn, and answers where the log ends. */
  recover(): LogEnd {
    this.#applyOrRemake()
    // A page that is only read here may be damaged too.
    this.#asking(() => this.release(this.#file.applier.bodies.otherNames()))
    const { end, isWhole, last, identity, losses, cuts, lacksBase } = recoverEnd({
      folder: this.#parts.folder,
      aside: this.#aside,
      ending: this.#ending,
      base: this.#base,
      isRemade: this.#file.remade !== undefined,
      applier: () => this.#file.applier,
      note: (change) => this.#noteSynced(change),
    })
    this.#losses.push(...losses)
    this.#cuts = cuts
    if (this.#file.held === undefined) this.#proven = end.sequence
    if (this.#file.held === undefined && lacksBase) this.#tryBase()
    this.#markReached()
    this.#sealing.look(this.#aside)
    const mayExtend = isWhole && !this.#sealing.stale.has(end.segment)
    return { end, isWhole: mayExtend, last, isSynced: this.#file.held === undefined, identity }
  }

  get sealProgress(): SealProgress {
    return this.#sealing.progress
  }

  /** Once for each segment, and at the end. */
  #markReached({ isLast = false } = {}): void {
    if (this.#file.held !== undefined || this.applied.sequence > this.#proven) return
    this.#ending.reach(this.#file.applier, isLast)
  }

  /** Of an older ake, whose log does not say it all. */
  #tryBase(): void {
    try {
      const { db, applier } = this.#file
      db.exec('BEGIN IMMEDIATE')
      this.#base = makeBase({ db, folder: this.#parts.folder, applier })
      db.exec('COMMIT')
    } catch {
      // No room: the first removal writes one.
      this.#file.takeBack()
    }
  }

  /** Changes what is noted besides the log's content; a power cut does not take it back. Where it is held, this is so once it is committed. */
  #noteSynced(change: (applier: Applier) => void): void {
    const at = this.applied
    if (this.#file.held === undefined) {
      this.#file.commitsSynced(true)
      this.#file.begin()
      change(this.#file.applier)
      if (this.#file.commit()) {
        this.#file.commitsSynced(false)
        return
      }
    }
    this.#hold(at, { at, change })
  }

  /** No later frame refers to bodies by these names. What cannot be noted now goes at the next start. */
  release(names: readonly number[]): void {
    if (names.length === 0 || !this.#file.isOpen) return
    try {
      const to = this.applied
      this.#file.begin()
      this.#file.applier.bodies.release(names)
      if (this.#file.held !== undefined || this.#file.commit()) return
      this.#hold(to)
      this.#file.applier.bodies.release(names)
    } catch {
      this.#file.takeBack()
    }
  }

  /**
   * Applies the log up to there. Throws where nothing can be said about what lies behind. A commit that failed is tried
   * again only now and then: where it fails once more everything that is held has to be applied again.
   */
  apply(to: Position, { triesAgain = true, proven = 0 } = {}): void {
    this.#proven = Math.max(this.#proven, proven)
    this.#file.reopen()
    this.#triesAgain = triesAgain
    const { segment, offset, sequence } = this.applied
    // What was read may have been written again elsewhere since, after a sync that failed: a base must not say the old place.
    const isElsewhere = to.sequence === sequence && (to.segment !== segment || to.offset !== offset)
    if (to.sequence > sequence || isElsewhere || (this.#file.held !== undefined && triesAgain)) this.#applyOrRemake(to)
    this.#markReached()
  }

  #applyOrRemake(to?: Position): void {
    try {
      this.#applyAll(to)
    } catch (error) {
      if (!isDamage(error) && !(error instanceof LogRewritten)) throw error
      this.#file.remake(error as Error)
      this.#applyAll(to)
    }
  }

  #applyAll(to?: Position): void {
    try {
      if (this.#file.lacksNotes || !this.#applyFrames(to, transactionChangesMax)) this.#hold(to)
    } catch (error) {
      this.#file.takeBack()
      throw error
    }
  }

  /** What is held is applied again: it is told once. */
  #lose(hole: Hole): void {
    const loss = this.#aside.note(hole)
    const isKnown = this.#losses.some(({ segment, offset }) => segment === loss.segment && offset === loss.offset)
    if (!isKnown) this.#losses.push(loss)
    this.#file.applier.lose(hole)
  }

  /** False when a commit failed. */
  #applyFrames(to: Position | undefined, changesMax: number): boolean {
    const file = this.#file
    let changes = 0
    for (const step of readLog({ folder: this.#parts.folder, from: this.applied, ...(to && { to }) })) {
      file.begin()
      if ('hole' in step) {
        this.#lose(step.hole)
        continue
      }
      const { frame } = step
      file.apply(frame)
      changes += frame.changes.length + frame.records.length
      if (changes < changesMax || file.held !== undefined) continue
      if (!file.commit(this.#triesAgain)) return false
      changes = 0
    }
    return !file.db.isTransaction || changesMax === Number.POSITIVE_INFINITY || file.commit(this.#triesAgain)
  }

  /** All of it in one transaction, whatever its size: no part of it can be committed. */
  #hold(to: Position | undefined, note?: Note): void {
    this.#file.hold((until) => this.#applyFrames(until, Number.POSITIVE_INFINITY), to, note)
  }

  /** Gives some space back to the disk; true when there is more to do. */
  tidy(): boolean {
    return this.#change((parts) => {
      const done = tidy(parts)
      if (done?.base !== undefined) this.#base = done.base
      return done !== undefined
    })
  }

  /** True where it is to be asked again later: much lies beside the file, and more has come since it was asked last. */
  rest(): boolean {
    const before = this.#restedAt
    this.#restedAt = this.applied
    // Its size alone tells nothing: SQLite writes what lies there over from its beginning, without making it longer.
    if (besideBytes(this.#parts.path) <= restingBytesMax || !this.#file.isOpen) return false
    const { segment, offset } = this.applied
    const isQuiet = before?.segment === segment && offset - before.offset <= restingNewsMax
    if (this.#file.held !== undefined || !isQuiet) return true
    settle(this.#file.db)
    return false
  }

  /** Writes a damaged body again; false where that is not what was stored, or the disk does not take it. */
  mend(body: Parameters<typeof mendBody>[1]): boolean {
    return this.#change((parts) => mendBody(parts, body))
  }

  /** A change of where things lie, which says whether it has done any. */
  #change(change: (parts: SpaceParts) => boolean): boolean {
    if (this.#file.held !== undefined || !this.#file.isOpen) return false
    try {
      const { db, statements, applier, kept } = this.#file
      const tables = { db, statements, applier, base: this.#base }
      const files = { bodies: this.bodies, kept, sealing: this.#sealing }
      const mayRemove = this.applied.sequence <= this.#proven
      const parts = { ...this.#parts, ...tables, ...files, mayRemove }
      if (this.#sealing.needsScrub && !hasSealable(parts)) this.#sealing.scrub(db, this.#aside)
      db.exec('BEGIN IMMEDIATE')
      const isDone = change(parts)
      db.exec(isDone ? 'COMMIT' : 'ROLLBACK')
      return isDone
    } catch {
      // The next round tries again; what the disk thinks of writes is told by commits.
      this.#file.takeBack()
      return false
    }
  }

  /** Rereads some of what is stored. */
  scrub(): ScrubStep | undefined {
    return this.#asking(() => this.#scrub.step())
  }

  #durableTables(): ScrubTables | undefined {
    const { held, statements, applier } = this.#file
    return held === undefined ? { statements, interests: applier.interests } : undefined
  }

  interests(): ReadInterest[] {
    return [...this.#file.applier.interests.values()].map((row) => readInterest(this.#file.statements, row))
  }

  objects(name: string): Iterable<ReadObject> {
    const row = this.#file.applier.interests.get(name)
    return row === undefined ? [] : readObjects(this.#file.statements, row.id)
  }

  /** What the file no longer tells is asked of one that was made again. */
  #asking<Answer>(ask: () => Answer): Answer {
    this.#file.reopen()
    try {
      return ask()
    } catch (error) {
      if (!isDamage(error)) throw error
      const to = this.applied
      this.#file.remake(error as Error)
      this.#applyAll(to)
      return ask()
    }
  }

  history(name: string, after: Cursor, limit: HistoryLimit): ReturnType<typeof readPage> {
    return this.#asking(() => readPage(this.#file.statements, this.#file.applier.interests.get(name), { after, limit }))
  }

  records(kind: string, key?: string): ReturnType<typeof readRecords> {
    return this.#asking(() => readRecords(this.#file.statements, kind, key))
  }

  close(): void {
    if (this.#file.isOpen) this.#markReached({ isLast: true })
    this.#file.close()
  }
}
