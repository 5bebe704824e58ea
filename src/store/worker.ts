/**
 * The thread that owns the disk. It takes whatever waits at its port as one group and commits it in one transaction, so
 * that under load many writers share one sync; the main loop never waits for a disk.
 */
import { type MessagePort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { Database, type DatabaseBatch, sqliteFull } from './database.ts'
import { HistoryGone, type StoreFigures } from './store.ts'
import {
  type FromWorker,
  type PackedEntry,
  type PackedObject,
  type ThreadParts,
  type ToWorker,
  unpackBatch,
} from './wire.ts'

/** What was committed without a sync reaches the disk within this time: a power cut takes back no more. */
const unsyncedMsMax = 3_000
/** Objects are handed over in slabs of this size at load: few allocations, and one live object pins no more than it. */
const slabBytes = 128 * 1024
/** One transaction takes at most this many changes: a flood must not make a single sync endless. */
const groupChangesMax = 2_048

const { port, path, historyBytesMax, ...rest } = workerData as ThreadParts & { port: MessagePort }
const figures: StoreFigures = rest.figures
let unsynced: NodeJS.Timeout | undefined

const say = (message: FromWorker, transfer: ArrayBuffer[] = []) => port.postMessage(message, transfer)

let database: Database
try {
  database = new Database({ path, historyBytesMax })
  figures.historyBytes = database.historyBytes
  port.on('message', (first: ToWorker) => {
    let next: ToWorker | undefined = first
    while (next !== undefined) next = handle(next)
  })
} catch (error) {
  giveUp(error)
}

function giveUp(error: unknown): void {
  say({ kind: 'unusable', message: (error as Error).message })
  port.close()
}

function waiting(): ToWorker | undefined {
  return receiveMessageOnPort(port)?.message as ToWorker | undefined
}

/** Handles one message, or a run of commits as a group; returns the message that ended the run. */
function handle(message: ToWorker): ToWorker | undefined {
  if (message.kind === 'commit') return commitGroup(message)
  if (message.kind === 'load') tryLoad()
  else if (message.kind === 'history') readHistory(message)
  else if (message.kind === 'records') readRecords(message)
  else {
    clearTimeout(unsynced)
    database.close()
    say({ kind: 'closed' })
    port.close()
    return undefined
  }
  return waiting()
}

function commitGroup(first: Extract<ToWorker, { kind: 'commit' }>): ToWorker | undefined {
  const ids: number[] = []
  const batches: DatabaseBatch[] = []
  const buffers: ArrayBuffer[] = []
  let synced = false
  let bytes = 0
  let changes = 0
  let message: ToWorker | undefined = first
  while (message?.kind === 'commit' && changes < groupChangesMax) {
    ids.push(message.id)
    synced ||= message.synced
    bytes += message.bytes.length
    buffers.push(message.bytes.buffer as ArrayBuffer)
    changes += message.changes.length + message.interests.length + message.records.length
    batches.push(unpackBatch(message))
    message = waiting()
  }
  try {
    const floors = database.commit(batches, synced)
    figures.groups++
    figures.commits += ids.length
    figures.bytesWritten += bytes
    figures.historyBytes = database.historyBytes
    if (!synced) unsynced ??= setTimeout(syncLate, unsyncedMsMax)
    say({ kind: 'committed', ids, floors, figures })
  } catch (error) {
    figures.failures++
    const { message: text, errcode } = error as Error & { errcode?: number }
    // The lower byte is the primary code.
    say({ kind: 'refused', ids, message: text, full: ((errcode ?? 0) & 0xff) === sqliteFull, figures })
  }
  // This thread makes so little else that it would not collect for long: bodies of tens of megabytes would lie around.
  for (const buffer of buffers) buffer.transfer(0)
  return message
}

function syncLate(): void {
  unsynced = undefined
  try {
    database.sync()
  } catch {
    unsynced = setTimeout(syncLate, unsyncedMsMax)
  }
}

/** A file that cannot be read to its end is damaged beyond what checksums of single bodies tell. */
function tryLoad(): void {
  try {
    load()
  } catch (error) {
    giveUp(error)
  }
}

function load(): void {
  let newest = 0
  for (const { lastVersion, ...interest } of database.interests()) {
    newest = Math.max(newest, lastVersion)
    const corrupt: string[] = []
    let slab = new Slab<PackedObject>()
    const send = () => say({ kind: 'objects', name: interest.name, ...slab.take('objects') }, slab.transfer)
    for (const { key, version, bytes } of database.objects(interest.name)) {
      if (bytes === undefined) {
        corrupt.push(key)
        continue
      }
      if (slab.size + bytes.length > slabBytes && slab.size > 0) {
        send()
        slab = new Slab()
      }
      const [start, end] = slab.add(bytes)
      slab.rows.push({ key, version, start, end })
    }
    if (slab.rows.length > 0) send()
    say({ kind: 'interest', ...interest, corrupt })
  }
  say({ kind: 'loaded', version: newest, figures })
}

function readHistory(message: Extract<ToWorker, { kind: 'history' }>): void {
  try {
    const page = database.history(message.interest, message.after, message.limit)
    const slab = new Slab<PackedEntry>()
    for (const { body, previous, ...entry } of page.entries) {
      const [start, end] = slab.add(body?.bytes)
      const [previousStart, previousEnd] = slab.add(previous?.bytes)
      slab.rows.push({ ...entry, start, end, previousStart, previousEnd, previousVersion: previous?.version ?? 0 })
    }
    say({ kind: 'page', id: message.id, more: page.more, ...slab.take('entries') }, slab.transfer)
  } catch (error) {
    if (error instanceof HistoryGone) say({ kind: 'gone', id: message.id, floor: error.floor })
    else say({ kind: 'failed', id: message.id, message: (error as Error).message })
  }
}

function readRecords({ id, of, key }: Extract<ToWorker, { kind: 'records' }>): void {
  try {
    const slab = new Slab<{ key: string; start: number; end: number }>()
    for (const record of database.records(of, key)) {
      const [start, end] = slab.add(record.value)
      slab.rows.push({ key: record.key, start, end })
    }
    say({ kind: 'records', id, ...slab.take('records') }, slab.transfer)
  } catch (error) {
    say({ kind: 'failed', id, message: (error as Error).message })
  }
}

/** Bodies collected for one message. */
class Slab<Row> {
  readonly rows: Row[] = []
  readonly #parts: Uint8Array[] = []
  size = 0
  transfer: ArrayBuffer[] = []

  add(bytes: Uint8Array | undefined): [number, number] {
    if (bytes === undefined) return [-1, -1]
    const start = this.size
    this.#parts.push(bytes)
    this.size += bytes.length
    return [start, this.size]
  }

  take<Name extends string>(name: Name): Record<Name, Row[]> & { bytes: Uint8Array } {
    const bytes = new Uint8Array(this.size)
    let at = 0
    for (const part of this.#parts) {
      bytes.set(part, at)
      at += part.length
    }
    this.transfer = [bytes.buffer]
    return { [name]: this.rows, bytes } as Record<Name, Row[]> & { bytes: Uint8Array }
  }
}
