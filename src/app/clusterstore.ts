/**
 * The store as everything sees it that is of one cluster. When another cluster is believed in, all of that is dropped in one
 * commit, which a crash leaves done or undone; from then on nothing that still runs for the old one can write any more.
 *
 * Dropped and not set aside: all of it can be read again from the cluster it came from, and a stolen machine should not hold
 * what its owner has turned away from.
 */
import {
  type Batch,
  type Cursor,
  type HeldBytes,
  type HistoryLimit,
  type Loaded,
  type LoadedObject,
  type Make,
  type RecordChange,
  type SharedBody,
  type Store,
  StoreUnusable,
} from '../store/store.ts'

/** Every kind of record that is of a cluster. What is written under another could outlive it, and is refused. */
const kinds = [
  'interest',
  'label',
  'caller',
  'decision',
  'denial',
  'token',
  'access',
  'document',
  'documentbody',
  'documentrefusal',
  'aging',
  'contact',
  'view',
  'rules',
  'epoch',
  'policy',
]

export class ClusterStore implements Store {
  readonly #store: Store
  /** Resolves with whether everything was dropped. */
  #dropping: Promise<boolean> | undefined

  constructor(store: Store) {
    this.#store = store
  }

  /** Drops the interests and every record; `known` says whose the store is from then on. Rejects with `StoreRefused`. */
  async drop(interests: Iterable<string>, known: RecordChange): Promise<void> {
    const dropped = Promise.withResolvers<boolean>()
    this.#dropping = dropped.promise
    try {
      const names = new Set(interests)
      const records: RecordChange[] = []
      for (const kind of kinds) {
        for (const { key } of await this.#store.records(kind)) records.push({ kind, key, value: undefined })
      }
      for (const { kind, key } of this.#store.figures.damagedRecords) {
        if (kinds.includes(kind)) records.push({ kind, key, value: undefined })
      }
      for (const { kind, key } of records) if (kind === 'interest') names.add(key)
      const forgotten = [...names].map((interest) => ({ interest, forget: true as const }))
      await this.#store.commit({ changes: [], interests: forgotten, records: [...records, known], synced: true })
      dropped.resolve(true)
    } catch (error) {
      this.#dropping = undefined
      dropped.resolve(false)
      throw error
    }
  }

  commit(batch: Batch): Promise<void> {
    for (const { kind } of batch.records ?? []) {
      if (!kinds.includes(kind)) throw new Error(`records of kind "${kind}" would outlive their cluster`)
    }
    return this.#dropping === undefined ? this.#store.commit(batch) : this.#commitLater(batch, this.#dropping)
  }

  /** What comes after the end is of nothing any more: it is taken, and lost. */
  async #commitLater(batch: Batch, dropping: Promise<boolean>): Promise<void> {
    if (!(await dropping)) await this.commit(batch)
  }

  load(): Promise<Loaded>
  load<Made>(make: Make<Made>): Promise<Loaded<Made>>
  async load<Made>(make?: Make<Made>): Promise<Loaded<Made | LoadedObject>> {
    const loaded = make === undefined ? await this.#store.load() : await this.#store.load(make)
    // A mirror drops what it has no record of; but no cluster could send these again.
    if (loaded.interests.some(({ name }) => isAuthoritys(name))) {
      throw new StoreUnusable('it is a folder of `ake serve`: choose another one with --data')
    }
    return loaded
  }

  release(shared: SharedBody): void {
    this.#store.release(shared)
  }

  history(interest: string, after: Cursor, limit: HistoryLimit): ReturnType<Store['history']> {
    return this.#store.history(interest, after, limit)
  }

  mendFrom(held: HeldBytes): void {
    this.#store.mendFrom(held)
  }

  floor(interest: string): number {
    return this.#store.floor(interest)
  }

  records(kind: string): ReturnType<Store['records']> {
    return this.#store.records(kind)
  }

  record(kind: string, key: string): ReturnType<Store['record']> {
    return this.#store.record(kind, key)
  }

  get figures(): Store['figures'] {
    return this.#store.figures
  }

  /** The store belongs to the folder, and stays open for the next cluster. */
  close(): Promise<void> {
    return Promise.resolve()
  }
}

/** An authority calls its core resources `/pods`, a mirror `v1/pods`; no authority is without namespaces. */
function isAuthoritys(interest: string): boolean {
  return interest.startsWith('/')
}
