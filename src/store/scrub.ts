/**
 * Rereads at leisure the bodies that the index names, each behind its checksum. What a disk has changed since it was written is
 * then found while its process still holds the object, which has it written again, and not by the start that needs it.
 *
 * A round takes the bodies that there are when it begins, in the order of their numbers, which they keep wherever they are moved
 * to. One that fails is looked at once more with the next step: a process without a free file, or a disk that fails for a moment,
 * damages nothing. What the system still has in its own memory is read from there: rot shows once that is gone.
 */
import { crc32 } from 'node:zlib'
import type { Bodies, BodyRow } from './bodies.ts'
import type { Statements } from './connection.ts'

/** How often a step is asked for (`scrubbing.ts`): seldom enough that a disk goes back to sleep. */
export const stepEveryMs = 5 * 60_000
/** A round takes a week, or longer where a step would read more than it may: then all is read at the most that it may. */
const stepsPerRound = (7 * 24 * 3_600_000) / stepEveryMs
/** 12 MiB an hour, which no flash and no processor notices; and a question that comes meanwhile waits for no more than one step. */
const stepBytesMax = 1024 * 1024
const stepBodiesMax = 512
/** Less is not worth a disk's waking up. A small store is done within hours, and rests until the week is over. */
const stepBytesMin = 64 * 1024

/** Where a damaged body is held: by an object, by history alone, or by a record. */
export type DamagedHolder =
  | { readonly kind: 'object' | 'history'; readonly interest: string; readonly key: string; readonly version: number }
  | { readonly kind: 'record'; readonly of: string; readonly key: string }

/** `id` is what the index calls it. */
export type DamagedBody = { readonly id: number; readonly holders: readonly DamagedHolder[] }

/** How much of this round's bytes was read; `rounds` were ended since the thread began. */
export type ScrubProgress = { readonly bytes: number; readonly of: number; readonly rounds: number }

export type ScrubStep = { readonly progress: ScrubProgress; readonly damaged: readonly DamagedBody[] }

type Row = [id: number, segment: number, start: number, length: number, checksum: number, version: number]

type ScrubParts = {
  readonly bodies: Bodies
  /** Undefined while the index is not what its file has: what it names may lie elsewhere in a moment. */
  readonly tables: () => ScrubTables | undefined
}

export type ScrubTables = {
  readonly statements: Statements
  readonly interests: ReadonlyMap<string, { readonly id: number }>
}

export class Scrub {
  readonly #parts: ScrubParts
  #rounds = 0
  #steps = 0
  /** Every body up to this number was read in this round, which ends with `until`. */
  #at = 0
  #until = 0
  #bytes = 0
  #of = 0
  /** Failed once. */
  #suspects = new Map<number, BodyRow>()

  constructor(parts: ScrubParts) {
    this.#parts = parts
  }

  /** Undefined where there is nothing to do. */
  step(): ScrubStep | undefined {
    const tables = this.#parts.tables()
    if (tables === undefined) return undefined
    const failed = this.#lookAgain(tables.statements)
    if (!this.#isDue(tables.statements) && failed.length === 0) return undefined
    const bytesMax = Math.min(Math.max(this.#of / stepsPerRound, stepBytesMin), stepBytesMax)
    if (this.#at < this.#until) this.#readSome(tables.statements, bytesMax)
    if (this.#at >= this.#until && this.#until > 0) this.#endRound()
    const progress = { bytes: this.#bytes, of: this.#of, rounds: this.#rounds }
    return { progress, damaged: failed.length === 0 ? [] : damagedBodies(tables, failed) }
  }

  /** Whether a round is under way, or begins. */
  #isDue({ extent }: Statements): boolean {
    this.#steps++
    if (this.#until > 0) return true
    if (this.#rounds > 0 && this.#steps < stepsPerRound) return false
    const [until, of] = extent.get() as unknown as [number, number]
    if (until === 0) return false
    this.#steps = 0
    this.#at = 0
    this.#until = until
    this.#bytes = 0
    this.#of = of
    return true
  }

  #endRound(): void {
    this.#rounds++
    this.#until = 0
    // What is gone by now was not read.
    this.#bytes = this.#of
  }

  /** The next ones, within so many bytes; one that is larger alone. */
  #readSome(statements: Statements, bytesMax: number): void {
    const found = statements.bodiesAfter.all(this.#at, this.#until, stepBodiesMax) as unknown as Row[]
    const rows: Row[] = []
    let bytes = 0
    for (const row of found) {
      if (bytes > 0 && bytes + row[3] > bytesMax) break
      rows.push(row)
      bytes += row[3]
    }
    const places = rows.map(placeOf)
    const sound = this.#parts.bodies.readInto(Buffer.allocUnsafeSlow(bytes), places)
    for (const [index, [id]] of rows.entries()) {
      if (sound[index] !== true) this.#suspects.set(id, places[index] as BodyRow)
    }
    this.#bytes = Math.min(this.#of, this.#bytes + bytes)
    this.#at = rows.at(-1)?.[0] ?? this.#until
  }

  /** Those of the last step that are still there, and still fail. */
  #lookAgain(statements: Statements): Row[] {
    const failed: Row[] = []
    for (const id of this.#suspects.keys()) {
      const row = statements.body.get(id) as unknown as Row | undefined
      if (row !== undefined && !isSound(this.#parts.bodies, placeOf(row))) failed.push(row)
    }
    this.#suspects.clear()
    return failed
  }
}

export function isSound(bodies: Bodies, row: BodyRow): boolean {
  const bytes = bodies.readRaw(row)
  return bytes !== undefined && crc32(bytes) === row.checksum
}

function placeOf([, segment, start, length, checksum]: Row): BodyRow {
  return { segment, start, length, checksum }
}

function damagedBodies({ statements, interests }: ScrubTables, rows: readonly Row[]): DamagedBody[] {
  const names = new Map([...interests].map(([name, { id }]) => [id, name]))
  const nameOf = (interest: number) => names.get(interest) ?? ''
  const holders = new Map<number, DamagedHolder[]>(rows.map(([id]) => [id, []]))
  const versions = new Map(rows.map(([id, , , , , version]) => [id, version]))
  const ids = JSON.stringify([...versions.keys()])
  for (const row of statements.objectsWith.iterate(ids)) {
    const [id, interest, key] = row as unknown as [number, number, string]
    holders.get(id)?.push({ kind: 'object', interest: nameOf(interest), key, version: versions.get(id) as number })
  }
  for (const row of statements.historyWith.iterate(ids)) {
    const [id, key, interest] = row as unknown as [number, string, number]
    holders.get(id)?.push({ kind: 'history', interest: nameOf(interest), key, version: versions.get(id) as number })
  }
  for (const row of statements.recordsWith.iterate(ids)) {
    const [id, of, key] = row as unknown as [number, string, string]
    holders.get(id)?.push({ kind: 'record', of, key })
  }
  return [...holders].map(([id, held]) => ({ id, holders: held }))
}
