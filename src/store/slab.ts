/** Answers of the index with their bodies, packed for the other thread: bodies that are damaged are told, never packed. */
import type { Bodies, BodyRow } from './bodies.ts'
import type { ReadEntry, ReadObject, ReadRecord } from './reading.ts'
import { isSealed, objectPlace, recordPlace, type Seal } from './seal.ts'
import { HistoryGone } from './store.ts'
import type { PackedEntry, PackedObject, PackedRecord } from './wire.ts'

/** Objects are handed over in slabs of this size at load: few allocations, and one live object pins no more than it. */
const slabBytes = 128 * 1024
/** Bodies that were handed over before take no room in it, but their rows do. */
const slabRowsMax = 4_096

type Slab<Row> = { readonly rows: Row[]; readonly bytes: Uint8Array<ArrayBuffer> }

/** Which shared bodies were read, by number, and whether they were sound. */
export type Handed = Map<number, boolean>

/**
 * Objects, a slab at a time; `corrupt` hears of those whose checksum fails. A shared body is read and handed over with
 * the first object that has it, and named with the others.
 */
export function* packObjects(
  bodies: Bodies,
  objects: Iterable<ReadObject>,
  { corrupt, handed = new Map() }: { corrupt: (key: string) => void; handed?: Handed },
): Iterable<Slab<PackedObject>> {
  let waiting: (ReadObject & { body: BodyRow })[] = []
  let size = 0
  for (const object of objects) {
    const { body } = object
    if (body === undefined) {
      corrupt(object.key)
      continue
    }
    const isHanded = object.shared !== undefined && handed.has(object.shared)
    if ((!isHanded && size + body.length > slabBytes && size > 0) || waiting.length >= slabRowsMax) {
      yield packRows(bodies, waiting, { corrupt, handed, placeOf: placeOfObject })
      waiting = []
      size = 0
    }
    waiting.push({ ...object, body })
    if (!isHanded) size += body.length
  }
  if (waiting.length > 0) yield packRows(bodies, waiting, { corrupt, handed, placeOf: placeOfObject })
}

function placeOfObject({ key, version }: { readonly key: string; readonly version: number }): string {
  return objectPlace(key, version)
}

export function packRecords(
  bodies: Bodies,
  { kind, records }: { kind: string; records: readonly ReadRecord[] },
  corrupt: (key: string) => void = () => {},
): Slab<PackedRecord> {
  return packRows(bodies, records, { corrupt, handed: new Map(), placeOf: ({ key }) => recordPlace(kind, key) })
}

function packRows<Row extends { readonly key: string; readonly body: BodyRow; readonly shared?: number }>(
  bodies: Bodies,
  rows: readonly Row[],
  parts: { corrupt: (key: string) => void; handed: Handed; placeOf: (row: Row) => string },
): Slab<Omit<Row, 'body'> & { start: number; end: number }> {
  const { corrupt, handed, placeOf } = parts
  const known = rows.map(({ shared }) => (shared === undefined ? undefined : handed.get(shared)))
  const places = rows.filter((_, index) => known[index] === undefined).map(({ body }) => body)
  const { bytes, sound } = read(bodies, places)
  const packed: (Omit<Row, 'body'> & { start: number; end: number })[] = []
  let start = 0
  let next = 0
  for (const [index, whole] of rows.entries()) {
    const { body, ...row } = whole
    const { key, shared } = row
    const isHanded = known[index] !== undefined
    let isSound = known[index] ?? sound[next++] === true
    let { length } = body
    if (isSound && !isHanded && isSealed(bytes, start, length)) {
      length = openInPlace(bodies.seal, bytes.subarray(start, start + length), placeOf(whole))
      isSound = length >= 0
    }
    if (!isSound) corrupt(key)
    else packed.push({ ...row, start: isHanded ? -1 : start, end: isHanded ? -1 : start + length })
    if (isHanded) continue
    if (shared !== undefined) handed.set(shared, isSound)
    start += body.length
  }
  return { rows: packed, bytes: new Uint8Array(bytes.buffer) }
}

/** What was sealed stands at the beginning afterwards. Answers how long it is; -1 where it is not what was sealed there. */
function openInPlace(seal: Seal, sealed: Buffer, place: string): number {
  const body = seal.open(sealed, place)
  return body === undefined ? -1 : body.copy(sealed)
}

/** A page of history ends before a step that can no longer be told; where it would begin with one, history is gone. */
export function packPage(
  bodies: Bodies,
  interest: string,
  { entries, more }: { entries: readonly ReadEntry[]; more: boolean },
): Slab<PackedEntry> & { more: boolean } {
  const places: BodyRow[] = []
  for (const { body, previous } of entries) {
    for (const one of [body, previous]) if (typeof one === 'object') places.push(one)
  }
  const { bytes, sound } = read(bodies, places)
  const rows: PackedEntry[] = []
  let next = 0
  let at = 0
  const place = (body: ReadEntry['body'], key: string): [number, number] | undefined => {
    if (body === 'lost') return undefined
    if (body === undefined) return [-1, -1]
    const start = at
    at += body.length
    if (sound[next++] !== true) return undefined
    if (!isSealed(bytes, start, body.length)) return [start, at]
    const length = openInPlace(bodies.seal, bytes.subarray(start, at), objectPlace(key, body.version))
    return length < 0 ? undefined : [start, start + length]
  }
  for (const { body, previous, ...entry } of entries) {
    const placed = place(body, entry.key)
    const placedPrevious = place(previous, entry.key)
    if (placed === undefined || placedPrevious === undefined) {
      // As good as forgotten: a client that needs this step has to list again.
      if (rows.length === 0) throw new HistoryGone(interest, entry.version)
      return { rows, bytes: new Uint8Array(bytes.buffer), more: true }
    }
    const [start, end] = placed
    const [previousStart, previousEnd] = placedPrevious
    const previousVersion = typeof previous === 'object' ? previous.version : 0
    rows.push({ ...entry, start, end, previousStart, previousEnd, previousVersion })
  }
  return { rows, bytes: new Uint8Array(bytes.buffer), more }
}

/** In a buffer of its own, which can be handed over as a whole. */
function read(bodies: Bodies, rows: readonly BodyRow[]): { bytes: Buffer<ArrayBuffer>; sound: boolean[] } {
  const size = rows.reduce((sum, { length }) => sum + length, 0)
  const bytes = Buffer.allocUnsafeSlow(size)
  return { bytes, sound: bodies.readInto(bytes, rows) }
}
