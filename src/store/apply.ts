/**
 * Brings frames of the log into the index. Whatever the log holds can be applied: there is no change that the tables
 * refuse. What is kept at hand here mirrors them, and is thrown away with a transaction that was taken back.
 */
import { entryOverheadBytes, forgetEntriesMax, historyBytesAfter } from './bounds.ts'
import type { Statements } from './connection.ts'
import type { FrameChange, Piece } from './frame.ts'
import { type InterestRow, kinds, readInterestRows } from './reading.ts'
import type { Position } from './segment.ts'
import { Segments } from './segments.ts'
import type { EntryKind } from './store.ts'
import type { TailFrame } from './tail.ts'

/** How many of the oldest entries are looked at together. */
const oldestEntries = 64

export class Applier {
  readonly #use: Statements
  readonly #historyBytesMax: number
  readonly #interests = new Map<string, InterestRow>()
  /** Floors that forgetting has raised since they were last told. */
  readonly #raised = new Set<string>()
  readonly segments: Segments
  historyBytes = 0
  applied: Position
  #written = 0

  constructor(parts: { statements: Statements; historyBytesMax: number }) {
    this.#use = parts.statements
    this.#historyBytesMax = parts.historyBytesMax
    this.segments = new Segments(this.#use)
    const [segment, offset, sequence] = this.#use.applied.get() as unknown as [number, number, number]
    this.applied = { segment, offset, sequence }
    for (const row of readInterestRows(this.#use)) {
      this.#interests.set(row.name, row)
      this.historyBytes += row.bytes
    }
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
      this.#use.setInterest.run(row.floor, row.synced, row.id)
    }
    for (const { kind, key, value } of records) {
      const [old] = (this.#use.recordBody.get(kind, key) as [number] | undefined) ?? []
      if (value !== undefined) this.#use.setRecord.run(kind, key, this.#addBody(0, value, at))
      else if (old !== undefined) this.#use.dropRecord.run(kind, key)
      if (old !== undefined) this.#dropBody(old)
    }
    this.#written += changes.length
    this.applied = frame.next
    this.segments.reach(frame.next.segment, frame.next.offset)
  }

  /** The last step of a transaction: what is too much is forgotten, and how far the log was read is noted. */
  finish(): void {
    this.#forgetHistory(this.#written)
    this.#written = 0
    this.segments.store()
    const { segment, offset, sequence } = this.applied
    this.#use.setApplied.run(segment, offset, sequence)
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
    const { key, version, kind } = change
    const current = kind === 'gap' ? undefined : use.current.get(interest.id, key)
    const [head, previous, previousBytes] = (current as [number, number, number | null] | undefined) ?? []
    let body: number | null = null
    if (change.body !== undefined) {
      body = this.#addBody(version, change.body, at)
      if (head !== undefined) use.setHead.run(body, head)
      else use.addObject.run(interest.id, key, use.addHead.run(body).lastInsertRowid)
    } else if (kind === 'delete' && head !== undefined) {
      use.dropObject.run(interest.id, key)
      use.dropHead.run(head)
    }
    if (kind !== 'seed' && this.#addEntry(interest, change, { body, previous, size: previousBytes ?? 0 })) return
    // Nothing needs what was replaced; a step of history that has brought it can no longer be told.
    if (previous === undefined || (body === null && kind !== 'delete')) return
    if (interest.bytes > 0) use.loseBody.run(interest.id, previous)
    this.#dropBody(previous)
  }

  /** False where history has an entry at this place already, which nobody who counts positions writes. */
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

  #addBody(version: number, { start, length, checksum }: Piece, at: Position): number {
    this.segments.refer(at.segment, length)
    const added = this.#use.addBody.run(version, checksum, at.segment, at.offset + start, length)
    return added.lastInsertRowid as number
  }

  #dropBody(body: number): void {
    const dropped = this.#use.dropBody.get(body) as unknown as [segment: number, length: number] | undefined
    if (dropped !== undefined) this.segments.refer(dropped[0], -dropped[1])
  }

  #forgetInterest(name: string): void {
    const use = this.#use
    const row = this.#interests.get(name)
    if (row === undefined) return
    for (const statement of [use.dropObjectBodies, use.dropReplacedBodies]) {
      for (const dropped of statement.all(row.id)) {
        const [segment, length] = dropped as unknown as [number, number]
        this.segments.refer(segment, -length)
      }
    }
    for (const statement of [use.dropHeads, use.dropObjects, use.dropHistory, use.dropInterest]) statement.run(row.id)
    this.#interests.delete(name)
    this.#raised.delete(name)
    this.historyBytes -= row.bytes
  }

  #interest(name: string): InterestRow {
    let row = this.#interests.get(name)
    if (row === undefined) {
      const id = this.#use.addInterest.run(name).lastInsertRowid as number
      row = { id, name, floor: 0, synced: undefined, bytes: 0 }
      this.#interests.set(name, row)
    }
    return row
  }

  /** A floor that is said: nobody can ask for what lies below it, and its bodies go. */
  #forgetUpTo(interest: InterestRow, floor: number): void {
    interest.floor = floor
    for (;;) {
      const rows = this.#use.oldest.all(interest.id, oldestEntries) as unknown as OldestRow[]
      const old = rows.filter(([version]) => version <= floor)
      for (const row of old) this.#dropEntry(interest, row)
      if (old.length < oldestEntries) return
    }
  }

  #dropEntry(interest: InterestRow, [version, position, previous, size]: OldestRow): void {
    this.#use.dropEntry.run(interest.id, version, position)
    // The body this entry replaced was kept for its sake alone: older entries are gone already.
    if (previous !== null) this.#dropBody(previous)
    interest.bytes -= size
    this.historyBytes -= size
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
      for (const row of rows) {
        if (this.historyBytes <= bytesAfter) break
        this.#dropEntry(largest, row)
        const [version, , , , kind, key] = row
        // Who resumes inside a gap needs all of its deletions: with the first part of it the whole of it is gone.
        largest.floor = Math.max(largest.floor, kinds[kind] === 'gap' ? Number(key) : version)
        left--
      }
      use.setInterest.run(largest.floor, largest.synced ?? null, largest.id)
      this.#raised.add(largest.name)
    }
  }
}

type OldestRow = [version: number, position: number, previous: number | null, size: number, kind: number, key: string]
