/** What is read from the index: interests, objects, pages of history and records, and where the bodies of them lie. */
import type { BodyRow } from './bodies.ts'
import type { Statements } from './connection.ts'
import { type Cursor, type EntryKind, type Gap, HistoryGone, type HistoryLimit } from './store.ts'
import { minus, rowSum } from './sums.ts'

/** An interest as the engine keeps it at hand. `bytes` is what its history holds. */
export type InterestRow = {
  readonly id: number
  readonly name: string
  floor: number
  synced: number | undefined
  bytes: number
  isDoubted: boolean
  /** Over its objects; undefined where the file has none yet. */
  sum: number | undefined
}

export type ReadInterest = {
  readonly name: string
  readonly floor: number
  readonly synced: number | undefined
  readonly lastPosition: number
  readonly lastVersion: number
  readonly gaps: Gap[]
  readonly isDoubted: boolean
}

/** `body` undefined where the index itself has lost it; `shared` where others hold it too: which one it is. */
export type ReadObject = {
  readonly key: string
  readonly version: number
  readonly body: BodyRow | undefined
  readonly shared?: number
  readonly name?: number
}

type VersionedBody = BodyRow & { readonly version: number }

export type ReadEntry = {
  readonly position: number
  readonly version: number
  readonly key: string
  readonly kind: EntryKind
  /** `lost`: there was one, and the index has no place for it. */
  readonly body: VersionedBody | 'lost' | undefined
  readonly previous: VersionedBody | 'lost' | undefined
}

export type ReadRecord = { readonly key: string; readonly body: BodyRow }

/** A kind is stored as its place in this row. */
export const kinds: readonly EntryKind[] = ['put', 'delete', 'gap']

export function readInterestRows(use: Statements): InterestRow[] {
  const rows = use.interests.all() as unknown as InterestColumns[]
  return rows.map(([id, name, floor, from, doubted, sum, bytes]) => {
    const row: InterestRow = {
      id,
      name,
      floor,
      synced: from ?? undefined,
      bytes,
      isDoubted: doubted !== 0,
      sum: undefined,
    }
    if (sum !== null) row.sum = minus(sum, interestSum(row))
    return row
  })
}

/** What the row of an interest says besides its objects. */
export function interestSum({ name, floor, synced, isDoubted }: InterestRow): number {
  return rowSum(name, floor, synced, isDoubted ? 1 : 0)
}

type InterestColumns = [number, string, number, number | null, number, number | null, number]

/** The newest entry of its history. Where all of that was forgotten, the floor is what is left of its label. */
export function lastEntry(use: Statements, { id, floor }: InterestRow): { version: number; position: number } {
  const newest = use.newest.get(id) as unknown as [version: number, position: number] | undefined
  return { version: newest?.[0] ?? floor, position: newest?.[1] ?? 0 }
}

export function readInterest(use: Statements, row: InterestRow): ReadInterest {
  const { id, name, floor, synced, isDoubted } = row
  const { version: lastVersion, position: lastPosition } = lastEntry(use, row)
  const gaps = use.gaps.all(id) as unknown as [position: number, version: number, key: string][]
  return {
    name,
    floor,
    synced: synced === undefined && lastVersion === 0 ? undefined : Math.max(synced ?? 0, lastVersion),
    lastPosition,
    lastVersion,
    isDoubted,
    gaps: gaps.map(([position, from, to]) => ({ position, from, to: Number(to) })),
  }
}

/** The objects of an interest in key order. */
export function* readObjects(use: Statements, interest: number): Iterable<ReadObject> {
  for (const found of use.objects.iterate(interest)) {
    const [key, version, id, holders, name, ...place] = found as unknown as ObjectColumns
    const object = { key, version: version ?? 0, body: bodyOf(place) }
    if (name === null) yield holders > 1 ? { ...object, shared: id } : object
    else yield holders > 1 ? { ...object, shared: id, name } : { ...object, name }
  }
}

/** Some of an interest's history. */
export function readPage(
  use: Statements,
  interest: InterestRow | undefined,
  { after, limit }: { after: Cursor; limit: HistoryLimit },
): { entries: ReadEntry[]; more: boolean } {
  if (interest === undefined) return { entries: [], more: false }
  if (after.version < interest.floor) throw new HistoryGone(interest.name, interest.floor)
  const entries: ReadEntry[] = []
  let bytes = 0
  for (const found of use.page.iterate(interest.id, after.version, after.position)) {
    if (entries.length >= limit.entries || bytes >= limit.bytes) return { entries, more: true }
    const columns = found as unknown as PageRow
    const [version, position, kind, key] = columns
    const body = entryBody(columns, 4)
    const previous = entryBody(columns, 10)
    entries.push({ version, position, kind: kinds[kind] as EntryKind, key, body, previous })
    for (const one of [body, previous]) if (typeof one === 'object') bytes += one.length
  }
  return { entries, more: false }
}

/** The records of a kind, or the one with this key. */
export function readRecords(use: Statements, kind: string, key?: string): ReadRecord[] {
  const rows = key === undefined ? use.records.all(kind) : use.record.all(kind, key)
  return (rows as unknown as [string, ...PlaceColumns][]).flatMap(([name, ...place]) => {
    const body = bodyOf(place)
    return body === undefined ? [] : [{ key: name, body }]
  })
}

type PlaceColumns = [segment: number | null, start: number, length: number, checksum: number]
type ObjectColumns = [string, number | null, id: number, holders: number, name: number | null, ...PlaceColumns]

type PageRow = [
  version: number,
  position: number,
  kind: number,
  key: string,
  body: number | null,
  bodyVersion: number,
  ...body: PlaceColumns,
  previous: number | null,
  previousVersion: number,
  ...previous: PlaceColumns,
]

function bodyOf([segment, start, length, checksum]: PlaceColumns): BodyRow | undefined {
  return segment === null ? undefined : { segment, start, length, checksum }
}

function entryBody(row: PageRow, at: 4 | 10): VersionedBody | 'lost' | undefined {
  if (row[at] === null) return undefined
  const body = bodyOf(row.slice(at + 2, at + 6) as PlaceColumns)
  return body === undefined ? 'lost' : { ...body, version: row[at + 1] as number }
}
