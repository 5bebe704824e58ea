/** What the main thread has asked the index and not heard yet, and what the index has not heard of yet. */
import {
  type Batch,
  HistoryGone,
  type Loaded,
  type LoadedInterest,
  type LoadedObject,
  type Make,
  StoreRefused,
} from './store.ts'
import { type FromWorker, type PackedObject, unpackEntry } from './wire.ts'

type Loading = {
  readonly make: Make<unknown>
  readonly interests: LoadedInterest<unknown>[]
  readonly objects: Map<string, unknown[]>
  /** Those whose body others have too, by the index's number. */
  readonly shared: Map<number, LoadedObject>
  resolve(value: Loaded<unknown>): void
  reject(error: Error): void
}

type Waiter = { resolve(value: never): void; reject(error: Error): void; readonly interest?: string }

type Answer = Extract<
  FromWorker,
  { kind: 'objects' | 'interest' | 'loaded' | 'unloaded' | 'page' | 'records' | 'gone' | 'failed' }
>

export class Questions {
  readonly #waiters = new Map<number, Waiter>()
  readonly #loading: Loading[] = []
  #lastId = 0
  /** The last frame that concerns an interest, or records of a kind, where the index does not have it. */
  readonly #news = { interest: new Map<string, number>(), record: new Map<string, number>() }
  /** Whether the index has what it said it had. */
  #isSettled = false
  /** Resolves when the log was found, or never will be. */
  readonly opened: Promise<void>
  open: () => void = () => {}

  constructor() {
    this.opened = new Promise((resolve) => {
      this.open = resolve
    })
  }

  commit({ changes, interests = [], records = [] }: Batch, sequence: number): void {
    let last: string | undefined
    for (const { interest } of changes) {
      if (interest !== last) this.#news.interest.set(interest, sequence)
      last = interest
    }
    for (const { interest } of interests) this.#news.interest.set(interest, sequence)
    for (const { kind } of records) this.#news.record.set(kind, sequence)
  }

  /** The index has every frame before this sequence. */
  applied(sequence: number): void {
    this.#isSettled = true
    for (const news of Object.values(this.#news)) {
      for (const [name, at] of news) if (at < sequence) news.delete(name)
    }
  }

  /** The index may have lost what it said it had: it held that in memory. */
  unsettle(): void {
    this.#isSettled = false
  }

  /** Whether the index has to follow the log before it can answer. */
  isNews(what: 'interest' | 'record', name: string): boolean {
    return !this.#isSettled || this.#news[what].has(name)
  }

  load<Made>(make: Make<Made>, send: () => void): Promise<Loaded<Made>> {
    return new Promise((resolve, reject) => {
      send()
      const resolveAny = resolve as (value: Loaded<unknown>) => void
      this.#loading.push({ make, interests: [], objects: new Map(), shared: new Map(), resolve: resolveAny, reject })
    })
  }

  ask<Answered>(send: (id: number) => void, interest?: string): Promise<Answered> {
    return new Promise((resolve, reject) => {
      const id = ++this.#lastId
      send(id)
      this.#waiters.set(id, { resolve, reject, ...(interest === undefined ? {} : { interest }) })
    })
  }

  #settle(id: number, settle: (waiter: Waiter) => void): void {
    const waiter = this.#waiters.get(id)
    this.#waiters.delete(id)
    if (waiter !== undefined) settle(waiter)
  }

  receive(message: Answer): void {
    switch (message.kind) {
      case 'objects': {
        const loading = this.#loading[0] as Loading
        const bytes = Buffer.from(message.bytes.buffer)
        const objects = loading.objects.get(message.name) ?? []
        loading.objects.set(message.name, objects)
        for (const packed of message.objects) {
          objects.push(loading.make(message.name, unpack(packed, bytes, loading.shared)))
        }
        return
      }
      case 'interest': {
        const loading = this.#loading[0] as Loading
        const { kind: _, isDoubted, ...interest } = message
        const doubted = isDoubted ? { isDoubted } : {}
        loading.interests.push({ ...interest, ...doubted, objects: loading.objects.get(interest.name) ?? [] })
        return
      }
      case 'loaded': {
        const { interests, resolve } = this.#loading.shift() as Loading
        resolve({ version: message.version, interests })
        return
      }
      case 'unloaded':
        this.#loading.shift()?.reject(new StoreRefused(message.message, false))
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
    }
  }

  reject(error: Error): void {
    for (const waiter of this.#waiters.values()) waiter.reject(error)
    this.#waiters.clear()
    for (const waiter of this.#loading.splice(0)) waiter.reject(error)
  }
}

/** The same for each interest that has it. */
function unpack(packed: PackedObject | number, bytes: Buffer, known: Loading['shared']): LoadedObject {
  if (typeof packed === 'number') return known.get(packed) as LoadedObject
  const { key, version, start, end, name, shared } = packed
  const body = bytes.subarray(start, end)
  const found = name === undefined ? { key, version, body } : { key, version, body, shared: { name } }
  if (shared !== undefined) known.set(shared, found)
  return found
}
