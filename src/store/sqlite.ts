/** The durable engine: a SQLite file owned by a worker thread, with group commit. This is its side on the main thread. */

import { join } from 'node:path'
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads'
import {
  type Batch,
  type Cursor,
  type Entry,
  HistoryGone,
  type HistoryLimit,
  type HistoryPage,
  type Loaded,
  type LoadedInterest,
  type LoadedObject,
  type Make,
  type Store,
  type StoreFigures,
  StoreRefused,
  StoreUnusable,
} from './store.ts'
import type { FromWorker, PackedChange, PackedEntry, ToWorker } from './wire.ts'

/** The V8 heap of the disk thread stays small: it holds one group at a time, bodies lie outside. */
const workerHeapMb = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 2 }

type Loading = {
  readonly make: Make<unknown>
  readonly interests: LoadedInterest<unknown>[]
  readonly objects: Map<string, unknown[]>
  resolve(value: Loaded<unknown>): void
  reject(error: Error): void
}

type Waiter = { resolve(value: never): void; reject(error: Error): void; readonly interest?: string }

export function openSqlite(parts: { folder: string; historyBytesMax: number }): Store {
  return new SqliteStore(parts)
}

class SqliteStore implements Store {
  readonly #port: MessagePort
  readonly #worker: Worker
  readonly #waiters = new Map<number, Waiter>()
  readonly #floors = new Map<string, number>()
  readonly #loading: Loading[] = []
  #lastId = 0
  #closed: (() => void) | undefined
  /** Why nothing can be asked any more. */
  #broken: Error | undefined
  figures: StoreFigures = { commits: 0, groups: 0, bytesWritten: 0, historyBytes: 0, failures: 0 }

  constructor(parts: { folder: string; historyBytesMax: number }) {
    const { port1, port2 } = new MessageChannel()
    this.#port = port1
    const path = join(parts.folder, 'ake.db')
    this.#worker = new Worker(new URL('./worker.ts', import.meta.url), {
      workerData: { port: port2, path, historyBytesMax: parts.historyBytesMax },
      transferList: [port2],
      resourceLimits: workerHeapMb,
      name: 'store',
    })
    port1.on('message', (message: FromWorker) => this.#receive(message))
    this.#worker.on('error', (error: Error) => this.#ended(error))
    this.#worker.on('exit', () => this.#ended(new Error('the store is closed')))
  }

  /** The end of the thread may be told before what it said last: why it cannot go on, or what it has committed. */
  #ended(why: Error): void {
    for (;;) {
      const said = this.#broken === undefined ? receiveMessageOnPort(this.#port) : undefined
      if (said === undefined) break
      this.#receive(said.message as FromWorker)
    }
    this.#break(why)
  }

  load<Made = LoadedObject>(make: Make<Made> = asItIs): Promise<Loaded<Made>> {
    return new Promise((resolve, reject) => {
      if (this.#broken !== undefined) return reject(this.#broken)
      const resolveAny = resolve as (value: Loaded<unknown>) => void
      this.#loading.push({ make, interests: [], objects: new Map(), resolve: resolveAny, reject })
      this.#send({ kind: 'load' })
    })
  }

  commit(batch: Batch): Promise<void> {
    const size = batch.changes.reduce((sum, change) => sum + (change.body?.length ?? 0), 0)
    const bytes = new Uint8Array(size)
    let at = 0
    const changes: PackedChange[] = batch.changes.map(({ body, ...change }) => {
      if (body === undefined) return { ...change, start: -1, end: -1 }
      const start = at
      bytes.set(body, start)
      at += body.length
      return { ...change, start, end: at }
    })
    return this.#ask((id) => ({ kind: 'commit', id, changes, bytes, synced: batch.synced }), [bytes.buffer])
  }

  history(interest: string, after: Cursor, limit: HistoryLimit): Promise<HistoryPage> {
    return this.#ask((id) => ({ kind: 'history', id, interest, after, limit }), [], interest)
  }

  floor(interest: string): number {
    return this.#floors.get(interest) ?? 0
  }

  close(): Promise<void> {
    if (this.#broken !== undefined) return Promise.resolve()
    return new Promise((resolve) => {
      this.#closed = resolve
      this.#send({ kind: 'close' })
    })
  }

  #send(message: ToWorker, transfer: ArrayBuffer[] = []): void {
    this.#port.postMessage(message, transfer)
  }

  #ask<Answer>(message: (id: number) => ToWorker, transfer: ArrayBuffer[], interest?: string): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (this.#broken !== undefined) return reject(this.#broken)
      const id = ++this.#lastId
      this.#waiters.set(id, { resolve, reject, ...(interest === undefined ? {} : { interest }) })
      this.#send(message(id), transfer)
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
        this.#floors.set(interest.name, interest.floor)
        loading.interests.push({ ...interest, objects: loading.objects.get(interest.name) ?? [] })
        return
      }
      case 'loaded': {
        const { interests, resolve } = this.#loading.shift() as Loading
        resolve({ version: message.version, interests })
        return
      }
      case 'committed':
        this.figures = message.figures
        for (const [interest, floor] of message.floors) this.#floors.set(interest, floor)
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
        const entries = message.entries.map((entry) => unpack(entry, bytes))
        this.#settle(message.id, (waiter) => waiter.resolve({ entries, more: message.more } as never))
        return
      }
      case 'gone':
        this.#settle(message.id, (waiter) => waiter.reject(new HistoryGone(waiter.interest ?? '', message.floor)))
        return
      case 'failed':
        this.#settle(message.id, (waiter) => waiter.reject(new StoreRefused(message.message, false)))
        return
      case 'unusable':
        this.#break(new StoreUnusable(message.message))
        return
      case 'closed':
        this.#break(new Error('the store is closed'))
    }
  }

  #break(error: Error): void {
    this.#broken ??= error
    for (const waiter of this.#waiters.values()) waiter.reject(this.#broken)
    this.#waiters.clear()
    for (const waiter of this.#loading.splice(0)) waiter.reject(this.#broken)
    this.#port.close()
    this.#closed?.()
  }
}

function asItIs<Made>(_: string, object: LoadedObject): Made {
  return object as Made
}

function unpack(entry: PackedEntry, bytes: Buffer): Entry {
  const { start, end, previousStart, previousEnd, ...rest } = entry
  return {
    ...rest,
    body: start < 0 ? undefined : bytes.subarray(start, end),
    previous: previousStart < 0 ? undefined : bytes.subarray(previousStart, previousEnd),
  }
}
