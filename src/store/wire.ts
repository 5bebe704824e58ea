/**
 * What travels between the main thread and the SQLite thread. Bodies go packed in one transferred buffer per message, so
 * a batch costs one copy and no clone per object.
 */
import type { DatabaseBatch } from './database.ts'
import type { Batch, Change, Cursor, Entry, EntryKind, HistoryLimit, InterestChange, StoreFigures } from './store.ts'

/** Where a body lies in the message's buffer; -1 when there is none. */
type Place = { start: number; end: number }

type PackedChange = Omit<Change, 'body'> & Place
type PackedRecord = { kind: string; key: string } & Place

type PackedCommit = {
  changes: PackedChange[]
  interests: readonly InterestChange[]
  records: PackedRecord[]
  bytes: Uint8Array
}

/** What the thread is started with. The figures go on counting where the thread before it ended. */
export type ThreadParts = { path: string; historyBytesMax: number; figures: StoreFigures }

export type ToWorker =
  | { kind: 'load' }
  | ({ kind: 'commit'; id: number; synced: boolean } & PackedCommit)
  | { kind: 'history'; id: number; interest: string; after: Cursor; limit: HistoryLimit }
  | { kind: 'records'; id: number; of: string; key?: string }
  | { kind: 'close' }

export type PackedObject = { key: string; version: number } & Place

export type PackedEntry = {
  position: number
  version: number
  key: string
  kind: EntryKind
  start: number
  end: number
  previousStart: number
  previousEnd: number
  previousVersion: number
}

export type Floors = readonly (readonly [interest: string, floor: number])[]

export type FromWorker =
  | {
      kind: 'interest'
      name: string
      floor: number
      synced: number | undefined
      lastPosition: number
      gaps: { position: number; from: number; to: number }[]
      corrupt: string[]
    }
  | { kind: 'objects'; name: string; objects: PackedObject[]; bytes: Uint8Array }
  | { kind: 'loaded'; version: number; figures: StoreFigures }
  | { kind: 'committed'; ids: number[]; floors: Floors; figures: StoreFigures }
  | { kind: 'refused'; ids: number[]; message: string; full: boolean; figures: StoreFigures }
  | { kind: 'page'; id: number; entries: PackedEntry[]; bytes: Uint8Array; more: boolean }
  | { kind: 'records'; id: number; records: ({ key: string } & Place)[]; bytes: Uint8Array }
  | { kind: 'gone'; id: number; floor: number }
  | { kind: 'failed'; id: number; message: string }
  | { kind: 'unusable'; message: string }
  | { kind: 'closed' }

/** All bodies and values in one buffer. */
export function packBatch({ changes, interests = [], records = [] }: Batch): PackedCommit {
  let size = 0
  for (const { body } of changes) size += body?.length ?? 0
  for (const { value } of records) size += value?.length ?? 0
  const bytes = new Uint8Array(size)
  let end = 0
  const place = (part: Buffer | undefined) => {
    if (part === undefined) return { start: -1, end: -1 }
    const start = end
    bytes.set(part, start)
    end += part.length
    return { start, end }
  }
  return {
    changes: changes.map(({ body, ...change }) => ({ ...change, ...place(body) })),
    interests,
    records: records.map(({ value, ...record }) => ({ ...record, ...place(value) })),
    bytes,
  }
}

export function unpackBatch({ changes, interests, records, bytes }: PackedCommit): DatabaseBatch {
  const at = ({ start, end }: { start: number; end: number }) => (start < 0 ? undefined : bytes.subarray(start, end))
  return {
    changes: changes.map((change) => ({ ...change, body: at(change) })),
    interests,
    records: records.map((record) => ({ ...record, value: at(record) })),
  }
}

export function unpackEntry(entry: PackedEntry, bytes: Buffer): Entry {
  const { start, end, previousStart, previousEnd, ...rest } = entry
  return {
    ...rest,
    body: start < 0 ? undefined : bytes.subarray(start, end),
    previous: previousStart < 0 ? undefined : bytes.subarray(previousStart, previousEnd),
  }
}
