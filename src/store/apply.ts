/**
 * Brings frames of the log into the index. Whatever the log holds can be applied: there is no change that the tables
 * refuse. What is kept at hand here mirrors them, and is thrown away with a transaction that was taken back.
 */
import { entryOverheadBytes, forgetEntriesMax, historyBytesAfter } from './bounds.ts'
import type { Statements } from './connection.ts'
import { changeBytesMin, type FrameChange } from './frame.ts'
import { HeldBodies } from './heldbodies.ts'
import { type InterestRow, interestSum, kinds, lastEntry, readInterestRows } from './reading.ts'
import type { Position } from './segment.ts'
import { Segments } from './segments.ts'
import type { EntryKind } from './store.ts'
import { minus, objectSum, plus, recordSum, rowSum } from './sums.ts'
import type { Hole, TailFrame } from './tail.ts'

/** How many of the oldest entries are looked at together. */
const oldestEntries = 64

export class Applier {
  readonly #use: Statements
  readonly #historyBytesMax: number
  readonly #interests = new Map<string, InterestRow>()
  /** Floors that forgetting has raised since they were last told. */
  readonly #raised = new Set<string>()
  /** Rows that have to be written before the transaction ends. */
  readonly #changed = new Set<InterestRow>()
  /** Interests that were forgotten behind a hole: what they hold from then on is all there is. */
  readonly #begun = new Set<string>()
  readonly segments: Segments
  readonly bodies: HeldBodies
  historyBytes = 0
  applied: Position
  /** Of the log; 0 while it has none. */
  identity: number
  /** What was lost may have borne versions up to here; 0 if nothing was, or what followed is newer. */
  raised: number
  /** The number of the last base that was written from it. */
  bases: number
  /** Whether part of the log was lost: an interest of which the beginning was not seen since is doubted. */
  #hasHoles: boolean
  /** Over records and the names of interests. */
  #sum: number
  #written = 0

  constructor(parts: { statements: Statements; historyBytesMax: number }) {
    this.#use = parts.statements
    this.#historyBytesMax = parts.historyBytesMax
    this.segments = new Segments(this.#use)
    this.bodies = new HeldBodies(this.#use, this.segments)
    const row = this.#use.applied.get() as unknown as AppliedRow
    const [segment, offset, sequence, identity, bases, raised, holes, sum] = row
    this.applied = { segment, offset, sequence }
    this.identity = identity
    this.bases = bases
    this.raised = raised
    this.#hasHoles = holes !== 0
    for (const interest of readInterestRows(this.#use)) {
      this.#interests.set(interest.name, interest)
      this.historyBytes += interest.bytes
    }
    this.#sum = sum === null ? this.#factSum() : minus(sum, this.#positionSum())
    if (sum === null) this.#sumUp()
  }

  /** A file of an older schema has no sums: what it holds is taken as it is. */
  #sumUp(): void {
    const sums = this.#objectSums()
    for (const row of this.#interests.values()) {
      row.sum = sums.get(row.id) ?? 0
      this.#changed.add(row)
    }
  }

  /** Whether the tables are what was written into them, as far as it concerns what is there now. */
  isSound(): boolean {
    const sums = this.#objectSums()
    for (const row of this.#interests.values()) if (row.sum !== (sums.get(row.id) ?? 0)) return false
    return this.#sum === this.#factSum()
  }

  #objectSums(): Map<number, number> {
    const sums = new Map<number, number>()
    for (const row of this.#use.objectSums.iterate()) {
      const [interest, key, version, checksum] = row as unknown as [number, string, number | null, number | null]
      sums.set(interest, plus(sums.get(interest) ?? 0, objectSum(key, version, checksum)))
    }
    return sums
  }

  #factSum(): number {
    let sum = 0
    for (const name of this.#interests.keys()) sum = plus(sum, rowSum(name))
    for (const row of this.#use.recordSums.iterate()) {
      sum = plus(sum, recordSum(...(row as unknown as [string, string, number | null])))
    }
    return sum
  }

  #positionSum(): number {
    const { segment, offset, sequence } = this.applied
    return rowSum(segment, offset, sequence, this.identity, this.bases, this.raised, this.#hasHoles ? 1 : 0)
  }

  get interests(): ReadonlyMap<string, InterestRow> {
    return this.#interests
  }

  apply(frame: TailFrame): void {
    const { at, changes, interests, records } = frame
    for (const change of interests) if ('forget' in change) this.#forgetInterest(change.interest)
    for (const change of changes) this.#write(change, at)
    for (const change of interests) {
      if ('forget' in change) continue
      const row = this.#interest(change.interest)
      row.synced = change.synced
      if ((change.floor ?? 0) > row.floor) this.#forgetUpTo(row, change.floor as number)
      if (change.sound === true) row.isDoubted = false
      this.#changed.add(row)
    }
    for (const { kind, key, value } of records) {
      const [old, checksum] = (this.#use.recordBody.get(kind, key) as unknown as RecordRow | undefined) ?? []
      if (old !== undefined) this.#sum = minus(this.#sum, recordSum(kind, key, checksum ?? null))
      if (value !== undefined) this.#sum = plus(this.#sum, recordSum(kind, key, value.checksum))
      if (value !== undefined) this.#use.setRecord.run(kind, key, this.bodies.add(0, value, at))
      else if (old !== undefined) this.#use.dropRecord.run(kind, key)
      if (old !== undefined) this.bodies.drop(old)
    }
    this.#written += changes.length
    this.applied = frame.next
    this.segments.reach(frame.next.segment, frame.next.offset)
  }

  /** The last step of a transaction: what is too much is forgotten, and how far the log was read is noted. */
  finish(): void {
    this.#forgetHistory(this.#written)
    this.#written = 0
    this.store()
  }

  /** Writes down what is kept at hand. */
  store(): void {
    this.segments.store()
    for (const row of this.#changed) {
      const { id, floor, synced, isDoubted, sum = 0 } = row
      this.#use.setInterest.run(floor, synced ?? null, isDoubted ? 1 : 0, plus(sum, interestSum(row)), id)
    }
    this.#changed.clear()
    const { segment, offset, sequence } = this.applied
    const sum = plus(this.#sum, this.#positionSum())
    const holes = this.#hasHoles ? 1 : 0
    this.#use.setApplied.run(segment, offset, sequence, this.identity, this.bases, this.raised, holes, sum)
  }

  /** Steps over what is lost: it may have concerned every interest, and borne any version that came next. */
  lose({ next, bytes, version = 0 }: Hole): void {
    this.#hasHoles = true
    this.raised = Math.max(this.raised, version)
    this.raise(bytes)
    for (const row of this.#interests.values()) {
      row.isDoubted = true
      this.#changed.add(row)
    }
    this.#begun.clear()
    this.applied = next
    this.segments.reach(next.segment, next.offset)
  }

  /** So many bytes were lost: whatever versions they held are not given out again. */
  raise(bytes: number): void {
    this.raised = this.newestVersion() + Math.ceil(bytes / changeBytesMin)
  }

  newestVersion(): number {
    let newest = this.raised
    for (const row of this.#interests.values()) newest = Math.max(newest, lastEntry(this.#use, row).version)
    return newest
  }

  /** The floors that forgetting has raised, told once. */
  takeFloors(): [string, number][] {
    const floors: [string, number][] = []
    for (const name of this.#raised) floors.push([name, this.#interests.get(name)?.floor ?? 0])
    this.#raised.clear()
    return floors
  }

  #write(change: FrameChange, at: Position): void {
    const use = this.#use
    const interest = this.#interest(change.interest)
    const { key, kind } = change
    const current = kind === 'gap' ? undefined : use.current.get(interest.id, key)
    const [id, previous, previousBytes, was, checksum] = (current as unknown as CurrentRow | undefined) ?? []
    let body: number | null = null
    const before = id === undefined ? 0 : objectSum(key, was ?? null, checksum ?? null)
    if (change.body !== undefined) {
      const brought = this.bodies.bodyOf(change, change.body, at)
      body = brought.id
      if (id !== undefined) use.setObject.run(interest.id, id, body)
      else use.addObject.run(interest.id, (use.addKey.get(key) as unknown as [number])[0], body)
      this.#sumObject(interest, before, objectSum(key, change.version, brought.checksum))
    } else if (kind === 'delete' && id !== undefined) {
      use.dropObject.run(interest.id, id)
      for (const statement of [use.letGoOfKey, use.dropKey]) statement.run(id)
      this.#sumObject(interest, before, 0)
    }
    if (kind !== 'seed' && this.#addEntry(interest, change, { body, previous, size: previousBytes ?? 0 })) return
    // Nothing needs what was replaced; a step of history that has brought it can no longer be told.
    if (previous === undefined || (body === null && kind !== 'delete')) return
    if (interest.bytes > 0) use.loseBody.run(interest.id, previous)
    this.bodies.drop(previous)
  }

  #sumObject(interest: InterestRow, before: number, now: number): void {
    interest.sum = plus(minus(interest.sum ?? 0, before), now)
    this.#changed.add(interest)
  }

  /** The bytes that are stored of an object of this interest, by its number, are others from now on. */
  resumObject(interest: number, before: number, now: number): void {
    for (const row of this.#interests.values()) if (row.id === interest) this.#sumObject(row, before, now)
  }

  resumRecord(before: number, now: number): void {
    this.#sum = plus(minus(this.#sum, before), now)
  }

  /** False where history has an entry at this place already, which no writer that counts positions writes. */
  #addEntry(
    interest: InterestRow,
    { key, version, position, kind }: FrameChange,
    { body, previous, size }: { body: number | null; previous: number | undefined; size: number },
  ): boolean {
    const whole = entryOverheadBytes + key.length + size
    const at = kinds.indexOf(kind as EntryKind)
    const added = this.#use.addEntry.run(interest.id, version, position, at, key, body, previous ?? null, whole)
    if (added.changes === 0) return false
    interest.bytes += whole
    this.historyBytes += whole
    return true
  }

  #forgetInterest(name: string): void {
    const use = this.#use
    const row = this.#interests.get(name)
    if (this.#hasHoles) this.#begun.add(name)
    if (row === undefined) return
    this.#changed.delete(row)
    this.#sum = minus(this.#sum, rowSum(name))
    const bodies = use.bodiesOfInterest.all(row.id).map((body) => (body as unknown as [number])[0])
    this.bodies.dropAll(bodies)
    const { letGoOfKeys, dropKeys, dropObjects, dropHistory, dropInterest } = use
    for (const statement of [letGoOfKeys, dropKeys, dropObjects, dropHistory, dropInterest]) statement.run(row.id)
    this.#interests.delete(name)
    this.#raised.delete(name)
    this.historyBytes -= row.bytes
  }

  #interest(name: string): InterestRow {
    let row = this.#interests.get(name)
    if (row === undefined) {
      const id = this.#use.addInterest.run(name).lastInsertRowid as number
      const isDoubted = this.#hasHoles && !this.#begun.has(name)
      row = { id, name, floor: 0, synced: undefined, bytes: 0, isDoubted, sum: 0 }
      this.#interests.set(name, row)
      this.#changed.add(row)
      this.#begun.delete(name)
      this.#sum = plus(this.#sum, rowSum(name))
    }
    return row
  }

  /** A floor that is said: no reader can ask for what lies below it, and its bodies go. */
  #forgetUpTo(interest: InterestRow, floor: number): void {
    interest.floor = floor
    for (;;) {
      const rows = this.#use.oldest.all(interest.id, oldestEntries) as unknown as OldestRow[]
      const old = rows.filter(([version]) => version <= floor)
      this.#dropEntries(interest, old)
      if (old.length < oldestEntries) return
    }
  }

  /** The oldest there are of an interest, in one statement: history is written and forgotten all the time. */
  #dropEntries(interest: InterestRow, rows: readonly OldestRow[]): void {
    const [version, position] = rows.at(-1) ?? []
    if (version === undefined || position === undefined) return
    this.#use.dropEntries.run(interest.id, version, position)
    const replaced: number[] = []
    for (const [, , previous, size] of rows) {
      // The body this entry replaced was kept for its sake alone: older entries are gone already.
      if (previous !== null) replaced.push(previous)
      interest.bytes -= size
      this.historyBytes -= size
    }
    this.bodies.dropAll(replaced)
  }

  /** Forgets the oldest entries of whichever interest holds the most. */
  #forgetHistory(written: number): void {
    if (this.historyBytes <= this.#historyBytesMax) return
    const use = this.#use
    const bytesAfter = historyBytesAfter(this.#historyBytesMax)
    let left = forgetEntriesMax(written)
    while (this.historyBytes > bytesAfter && left > 0) {
      let largest: InterestRow | undefined
      for (const row of this.#interests.values()) if (row.bytes > (largest?.bytes ?? 0)) largest = row
      if (largest === undefined) return
      const rows = use.oldest.all(largest.id, Math.min(left, oldestEntries)) as unknown as OldestRow[]
      if (rows.length === 0) return
      let [count, bytes] = [0, 0]
      for (const [version, , , size, kind, key] of rows) {
        if (this.historyBytes - bytes <= bytesAfter) break
        // A watch that resumes inside a gap needs all of its deletions: with the first part of it the whole of it is gone.
        largest.floor = Math.max(largest.floor, kinds[kind] === 'gap' ? Number(key) : version)
        bytes += size
        count++
      }
      this.#dropEntries(largest, rows.slice(0, count))
      left -= count
      this.#changed.add(largest)
      this.#raised.add(largest.name)
    }
  }
}

type AppliedRow = [
  segment: number,
  offset: number,
  sequence: number,
  identity: number,
  bases: number,
  raised: number,
  holes: number,
  sum: number | null,
]
type CurrentRow = [key: number, body: number, length: number | null, version: number | null, checksum: number | null]
type RecordRow = [body: number, checksum: number | null]
type OldestRow = [version: number, position: number, previous: number | null, size: number, kind: number, key: string]
