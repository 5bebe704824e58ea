/** What is read from the SQLite file: interests, objects, pages of history and records, each body behind its checksum. */
import { crc32 } from 'node:zlib'
import type { Statements } from './connection.ts'
import { type Cursor, type EntryKind, type Gap, HistoryGone, type HistoryLimit } from './store.ts'

/** An interest as the engine keeps it at hand. `bytes` is what its history holds. */
export type InterestRow = {
  readonly id: number
  readonly name: string
  floor: number
  synced: number | undefined
  bytes: number
}

export type ReadInterest = {
  readonly name: string
  readonly floor: number
  readonly synced: number | undefined
  readonly lastPosition: number
  readonly lastVersion: number
  readonly gaps: Gap[]
}

type Body = { readonly version: number; readonly bytes: Uint8Array }

export type ReadEntry = {
  readonly position: number
  readonly version: number
  readonly key: string
  readonly kind: EntryKind
  readonly body: Body | undefined
  readonly previous: Body | undefined
}

export type ReadRecord = { readonly key: string; readonly value: Uint8Array }

/** A kind is stored as its place in this row. */
export const kinds: readonly EntryKind[] = ['put', 'delete', 'gap']

export function readInterestRows(use: Statements): InterestRow[] {
  const rows = use.interests.all() as unknown as [number, string, number, number | null, number][]
  return rows.map(([id, name, floor, synced, bytes]) => ({ id, name, floor, synced: synced ?? undefined, bytes }))
}

export function readInterest(use: Statements, { id, name, floor, synced }: InterestRow): ReadInterest {
  const newest = use.newest.get(id) as unknown as [version: number, position: number] | undefined
  const gaps = use.gaps.all(id) as unknown as [position: number, version: number, key: string][]
  // Where all history was forgotten, the floor is what is left of its newest label.
  const lastVersion = newest?.[0] ?? floor
  return {
    name,
    floor,
    synced: synced === undefined && lastVersion === 0 ? undefined : Math.max(synced ?? 0, lastVersion),
    lastPosition: newest?.[1] ?? 0,
    lastVersion,
    gaps: gaps.map(([position, from, to]) => ({ position, from, to: Number(to) })),
  }
}

/** The objects of an interest in key order; `bytes` undefined where the checksum does not hold. */
export function* readObjects(
  use: Statements,
  interest: number,
): Iterable<{ key: string; version: number; bytes: Uint8Array | undefined }> {
  for (const found of use.objects.iterate(interest)) {
    const [key, version, checksum, bytes] = found as unknown as [string, number, number, Uint8Array | null]
    const sound = bytes !== null && crc32(bytes) === checksum
    yield { key, version: version ?? 0, bytes: sound ? bytes : undefined }
  }
}

export function readHistory(
  use: Statements,
  { id, name }: InterestRow,
  after: Cursor,
  limit: HistoryLimit,
): { entries: ReadEntry[]; more: boolean } {
  const entries: ReadEntry[] = []
  let bytes = 0
  for (const found of use.page.iterate(id, after.version, after.position)) {
    if (entries.length >= limit.entries || bytes >= limit.bytes) return { entries, more: true }
    const columns = found as unknown as PageRow
    const body = readBody(columns, 4)
    const previous = readBody(columns, 8)
    if (body === 'corrupt' || previous === 'corrupt') {
      if (entries.length > 0) return { entries, more: true }
      // As good as forgotten: whoever needs this step has to list again.
      throw new HistoryGone(name, columns[0])
    }
    const [version, position, kind, key] = columns
    entries.push({ version, position, kind: kinds[kind] as EntryKind, key, body, previous })
    bytes += (body?.bytes.length ?? 0) + (previous?.bytes.length ?? 0)
  }
  return { entries, more: false }
}

/** The records of a kind, or the one with this key, without those whose checksum fails. */
export function readRecords(use: Statements, kind: string, key?: string): ReadRecord[] {
  const rows = key === undefined ? use.records.all(kind) : use.record.all(kind, key)
  return (rows as unknown as [string, number, Uint8Array][])
    .filter(([, checksum, value]) => crc32(value) === checksum)
    .map(([name, , value]) => ({ key: name, value }))
}

type PageRow = [
  version: number,
  position: number,
  kind: number,
  key: string,
  id: number | null,
  bodyVersion: number,
  checksum: number,
  bytes: Uint8Array | null,
  previousId: number | null,
  previousVersion: number,
  previousChecksum: number,
  previousBytes: Uint8Array | null,
]

function readBody(row: PageRow, at: 4 | 8): Body | 'corrupt' | undefined {
  if (row[at] === null) return undefined
  const bytes = row[at + 3] as Uint8Array | null
  if (bytes === null || crc32(bytes) !== row[at + 2]) return 'corrupt'
  return { version: row[at + 1] as number, bytes }
}
