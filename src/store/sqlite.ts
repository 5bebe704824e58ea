/**
 * The durable engine: a SQLite file owned by a worker thread, with group commit. This is its side on the main thread,
 * which outlives the thread: one that ends unexpectedly (out of memory, a bug) is followed by another.
 */

import { join } from 'node:path'
import {
  MessageChannel,
  type MessagePort,
  receiveMessageOnPort,
  type Transferable,
  Worker,
  type WorkerOptions,
} from 'node:worker_threads'
import { type Clock, systemClock } from '../base/clock.ts'
import {
  type Batch,
  type Cursor,
  HistoryGone,
  type HistoryLimit,
  type HistoryPage,
  type Loaded,
  type LoadedInterest,
  type LoadedObject,
  type Make,
  type Store,
  type StoredRecord,
  type StoreFigures,
  StoreRefused,
  StoreUnusable,
} from './store.ts'
import { type FromWorker, packBatch, type ThreadParts, type ToWorker, unpackEntry } from './wire.ts'

/** The V8 heap of the disk thread stays small: it holds one group at a time, bodies lie outside. */
const workerHeapMb = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 2 }
/** A thread that keeps ending is started no more often than this: each start reads the whole history's sizes. */
const restartsMax = 3
const restartWindowMs = 60_000

type Loading = {
  readonly make: Make<unknown>
  readonly interests: LoadedInterest<unknown>[]
  readonly objects: Map<string, unknown[]>
  resolve(value: Loaded<unknown>): void
  reject(error: Error): void
}

type Waiter = { resolve(value: never): void; reject(error: Error): void; readonly interest?: string }

type Thread = { readonly port: MessagePort; why: Error }

type SqliteParts = {
  readonly folder: string
  readonly historyBytesMax: number
  readonly clock?: Clock
  readonly startThread?: (options: WorkerOptions) => Worker
}

export function openSqlite(parts: SqliteParts): Store {
  return new SqliteStore(parts)
}

class SqliteStore implements Store {
  readonly #path: string
  readonly #historyBytesMax: number
  readonly #clock: Clock
  readonly #startThread: (options: WorkerOptions) => Worker
  readonly #waiters = new Map<number, Waiter>()
  readonly #floors = new Map<string, number>()
  readonly #loading: Loading[] = []
  /** Undefined while the last one has ended and the next may not start yet. */
  #thread: Thread | undefined
  #restarts: number[] = []
  #lastId = 0
  /** Whether the file has been of use: if not, there is no point in trying again. */
  #usable = false
  #closed: (() => void) | undefined
  /** Why nothing can be asked any more. */
  #broken: Error | undefined
  figures: StoreFigures = { commits: 0, groups: 0, bytesWritten: 0, historyBytes: 0, failures: 0 }

  constructor({ folder, historyBytesMax, clock = systemClock, startThread = startWorker }: SqliteParts) {
    this.#path = join(folder, 'ake.db')
    this.#historyBytesMax = historyBytesMax
    this.#clock = clock
    this.#startThread = startThread
    this.#thread = this.#start()
  }

  #start(): Thread {
    const { port1, port2 } = new MessageChannel()
    const parts: ThreadParts = { path: this.#path, historyBytesMax: this.#historyBytesMax, figures: this.figures }
    const worker = this.#startThread({
      workerData: { ...parts, port: port2 },
      transferList: [port2],
      resourceLimits: workerHeapMb,
      name: 'store',
    })
    const thread: Thread = { port: port1, why: new Error('it ended by itself') }
    port1.on('message', (message: FromWorker) => this.#receive(message))
    worker.on('error', (error: Error) => {
      thread.why = error
    })
    // Not on an error already: only when it has ended is its file closed.
    worker.on('exit', () => this.#ended(thread))
    return thread
  }

  #restart(): Thread | undefined {
    const now = this.#clock.steady()
    this.#restarts = this.#restarts.filter((at) => now - at < restartWindowMs)
    if (this.#restarts.length >= restartsMax) return undefined
    this.#restarts.push(now)
    this.#thread = this.#start()
    return this.#thread
  }

  /** The end of the thread may be told before what it said last: why it cannot go on, or what it has committed. */
  #ended(thread: Thread): void {
    if (this.#broken !== undefined) return
    for (;;) {
      const said = this.#broken === undefined ? receiveMessageOnPort(thread.port) : undefined
      if (said === undefined) break
      this.#receive(said.message as FromWorker)
    }
    if (this.#closed !== undefined) this.#break(closedError())
    if (this.#broken !== undefined) return
    this.#reject(new StoreRefused(`the thread of the store ended: ${thread.why.message}`, false))
    thread.port.close()
    this.#thread = undefined
    this.#restart()
  }

  load<Made = LoadedObject>(make: Make<Made> = asItIs): Promise<Loaded<Made>> {
    return new Promise((resolve, reject) => {
      const thread = this.#live()
      if (thread instanceof Error) return reject(thread)
      const resolveAny = resolve as (value: Loaded<unknown>) => void
      this.#loading.push({ make, interests: [], objects: new Map(), resolve: resolveAny, reject })
      send(thread, { kind: 'load' })
    })
  }

  commit(batch: Batch): Promise<void> {
    const packed = packBatch(batch)
    const transfer = [packed.bytes.buffer as ArrayBuffer]
    return this.#ask((id) => ({ kind: 'commit', id, synced: batch.synced, ...packed }), transfer)
  }

  records(kind: string): Promise<readonly StoredRecord[]> {
    return this.#ask((id) => ({ kind: 'records', id, of: kind }))
  }

  async record(kind: string, key: string): Promise<Buffer | undefined> {
    const found = await this.#ask<readonly StoredRecord[]>((id) => ({ kind: 'records', id, of: kind, key }))
    return found[0]?.value
  }

  history(interest: string, after: Cursor, limit: HistoryLimit): Promise<HistoryPage> {
    return this.#ask((id) => ({ kind: 'history', id, interest, after, limit }), [], interest)
  }

  floor(interest: string): number {
    return this.#floors.get(interest) ?? 0
  }

  close(): Promise<void> {
    const thread = this.#thread
    if (thread === undefined) this.#break(closedError())
    if (this.#broken !== undefined || thread === undefined) return Promise.resolve()
    return new Promise((resolve) => {
      this.#closed = resolve
      send(thread, { kind: 'close' })
    })
  }

  /** The thread to ask, or why there is none. */
  #live(): Thread | Error {
    if (this.#broken !== undefined) return this.#broken
    return this.#thread ?? this.#restart() ?? new StoreRefused('the thread of the store ended too often', false)
  }

  #ask<Answer>(message: (id: number) => ToWorker, transfer: Transferable[] = [], interest?: string): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const thread = this.#live()
      if (thread instanceof Error) return reject(thread)
      const id = ++this.#lastId
      this.#waiters.set(id, { resolve, reject, ...(interest === undefined ? {} : { interest }) })
      send(thread, message(id), transfer)
    })
  }

  #settle(id: number, settle: (waiter: Waiter) => void): void {
    const waiter = this.#waiters.get(id)
    this.#waiters.delete(id)
    if (waiter !== undefined) settle(waiter)
  }

  #receive(message: FromWorker): void {
    switch (message.kind) {
      case 'objects': {
        const loading = this.#loading[0] as Loading
        const bytes = Buffer.from(message.bytes.buffer)
        const objects = loading.objects.get(message.name) ?? []
        loading.objects.set(message.name, objects)
        for (const { key, version, start, end } of message.objects) {
          objects.push(loading.make(message.name, { key, version, body: bytes.subarray(start, end) }))
        }
        return
      }
      case 'interest': {
        const loading = this.#loading[0] as Loading
        const { kind: _, ...interest } = message
        this.#noteFloor(interest.name, interest.floor)
        loading.interests.push({ ...interest, objects: loading.objects.get(interest.name) ?? [] })
        return
      }
      case 'loaded': {
        const { interests, resolve } = this.#loading.shift() as Loading
        this.#usable = true
        this.figures = message.figures
        resolve({ version: message.version, interests })
        return
      }
      case 'committed':
        this.#usable = true
        this.figures = message.figures
        for (const [interest, floor] of message.floors) this.#noteFloor(interest, floor)
        for (const id of message.ids) this.#settle(id, (waiter) => waiter.resolve(undefined as never))
        return
      case 'refused':
        this.figures = message.figures
        for (const id of message.ids) {
          this.#settle(id, (waiter) => waiter.reject(new StoreRefused(message.message, message.full)))
        }
        return
      case 'page': {
        const bytes = Buffer.from(message.bytes.buffer)
        const entries = message.entries.map((entry) => unpackEntry(entry, bytes))
        this.#settle(message.id, (waiter) => waiter.resolve({ entries, more: message.more } as never))
        return
      }
      case 'records': {
        const bytes = Buffer.from(message.bytes.buffer)
        const records = message.records.map(({ key, start, end }) => ({ key, value: bytes.subarray(start, end) }))
        this.#settle(message.id, (waiter) => waiter.resolve(records as never))
        return
      }
      case 'gone':
        this.#settle(message.id, (waiter) => waiter.reject(new HistoryGone(waiter.interest ?? '', message.floor)))
        return
      case 'failed':
        this.#settle(message.id, (waiter) => waiter.reject(new StoreRefused(message.message, false)))
        return
      case 'unusable':
        // One that has been of use may be so again: the thread ends now, and the next one tries.
        if (!this.#usable) this.#break(new StoreUnusable(message.message))
        else if (this.#thread !== undefined) this.#thread.why = new Error(message.message)
        return
      case 'closed':
        this.#break(closedError())
    }
  }

  #noteFloor(interest: string, floor: number): void {
    if (floor === 0) this.#floors.delete(interest)
    else this.#floors.set(interest, floor)
  }

  #reject(error: Error): void {
    for (const waiter of this.#waiters.values()) waiter.reject(error)
    this.#waiters.clear()
    for (const waiter of this.#loading.splice(0)) waiter.reject(error)
  }

  #break(error: Error): void {
    this.#broken ??= error
    this.#reject(this.#broken)
    this.#thread?.port.close()
    this.#closed?.()
  }
}

function startWorker(options: WorkerOptions): Worker {
  return new Worker(new URL('./worker.ts', import.meta.url), options)
}

function send({ port }: Thread, message: ToWorker, transfer: Transferable[] = []): void {
  port.postMessage(message, transfer)
}

function closedError(): Error {
  return new Error('the store is closed')
}

function asItIs<Made>(_: string, object: LoadedObject): Made {
  return object as Made
}
