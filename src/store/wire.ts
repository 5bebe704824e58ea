/**
 * What travels between the main thread and the SQLite thread. Bodies go packed in one transferred buffer per message, so
 * a batch costs one copy and no clone per object.
 */
import type { Cursor, EntryKind, HistoryLimit, StoreFigures } from './store.ts'

export type PackedChange = {
  interest: string
  position: number
  version: number
  key: string
  kind: EntryKind
  /** Where the body lies in the message's buffer; -1 when there is none. */
  start: number
  end: number
}

export type ToWorker =
  | { kind: 'load' }
  | { kind: 'commit'; id: number; changes: PackedChange[]; bytes: Uint8Array; synced: boolean }
  | { kind: 'history'; id: number; interest: string; after: Cursor; limit: HistoryLimit }
  | { kind: 'close' }

export type PackedObject = { key: string; version: number; start: number; end: number }

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
      lastPosition: number
      gaps: { position: number; from: number; to: number }[]
      corrupt: string[]
    }
  | { kind: 'objects'; name: string; objects: PackedObject[]; bytes: Uint8Array }
  | { kind: 'loaded'; version: number }
  | { kind: 'committed'; ids: number[]; floors: Floors; figures: StoreFigures }
  | { kind: 'refused'; ids: number[]; message: string; full: boolean; figures: StoreFigures }
  | { kind: 'page'; id: number; entries: PackedEntry[]; bytes: Uint8Array; more: boolean }
  | { kind: 'gone'; id: number; floor: number }
  | { kind: 'failed'; id: number; message: string }
  | { kind: 'unusable'; message: string }
  | { kind: 'closed' }
