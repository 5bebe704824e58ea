/**
 * What travels between the main thread and the thread of the index. Bodies go packed in one transferred buffer per
 * message, so a load costs one copy and no clone per object.
 */
import type { Loss } from './aside.ts'
import type { LogEnd } from './commitlog.ts'
import type { IndexNews } from './index.ts'
import type { ScrubStep } from './scrub.ts'
import type { SealProgress } from './sealing.ts'
import type { Position } from './segment.ts'
import type { Cursor, Entry, EntryKind, HistoryLimit } from './store.ts'

/** Where a body lies in the message's buffer; -1 when there is none. */
type Span = { start: number; end: number }

/** The log is written up to here, and synced up to `proven`; `bytes` is how much that is since the process began. */
export type Reach = Position & { readonly bytes: number; readonly proven: number }

/** What the thread is started with: one that follows another is told where the log ends. */
export type ThreadParts = {
  path: string
  folder: string
  historyBytesMax: number
  segmentBytes: number
  /** The first one seals, all of them open. */
  keys: readonly Uint8Array[]
  isFirst: boolean
}

/** Where there is a `reach` the answer has to know everything up to it. */
export type ToWorker =
  | { kind: 'reach'; reach: Reach; released: readonly number[] }
  | { kind: 'load'; reach: Reach | undefined }
  | { kind: 'history'; id: number; interest: string; after: Cursor; limit: HistoryLimit; reach: Reach | undefined }
  | { kind: 'records'; id: number; of: string; key?: string; reach: Reach | undefined }
  | { kind: 'scrub' }
  /** What the copy holds of a damaged body, and in which version. */
  | { kind: 'mend'; id: number; version: number; body: Uint8Array }
  | { kind: 'close'; reach: Reach | undefined; released: readonly number[] }

/** `shared`: a body that other objects have too, and which. */
export type PackedObject = { key: string; version: number; shared?: number; name?: number } & Span
export type PackedRecord = { key: string } & Span

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

export type FloorEntries = readonly (readonly [interest: string, floor: number])[]

export type FromWorker =
  | ({ kind: 'opened'; losses: readonly Loss[] } & LogEnd)
  | ({ kind: 'news' } & IndexNews)
  | { kind: 'applied'; reach: Reach; floors: FloorEntries; historyBytes: number; behind: string | undefined }
  | { kind: 'stuck'; message: string }
  | {
      kind: 'interest'
      name: string
      floor: number
      synced: number | undefined
      lastPosition: number
      lastVersion: number
      gaps: { position: number; from: number; to: number }[]
      corrupt: string[]
      isDoubted: boolean
    }
  /** One that was handed over with another interest is only named, by `shared`. */
  | { kind: 'objects'; name: string; objects: (PackedObject | number)[]; bytes: Uint8Array }
  | { kind: 'loaded'; version: number; historyBytes: number }
  | { kind: 'unloaded'; message: string }
  | { kind: 'page'; id: number; entries: PackedEntry[]; bytes: Uint8Array; more: boolean }
  | { kind: 'records'; id: number; of: string; records: PackedRecord[]; bytes: Uint8Array; corrupt: string[] }
  | { kind: 'gone'; id: number; floor: number }
  | { kind: 'failed'; id: number; message: string }
  | { kind: 'unusable'; message: string; damaged: boolean }
  | ({ kind: 'sealing' } & SealProgress)
  | ({ kind: 'scrubbed' } & ScrubStep)
  | { kind: 'mended'; id: number; isDone: boolean }
  | { kind: 'closed' }

export function unpackEntry(entry: PackedEntry, bytes: Buffer): Entry {
  const { start, end, previousStart, previousEnd, ...rest } = entry
  return {
    ...rest,
    body: start < 0 ? undefined : bytes.subarray(start, end),
    previous: previousStart < 0 ? undefined : bytes.subarray(previousStart, previousEnd),
  }
}
