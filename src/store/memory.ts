/** The engine that forgets everything with the process: for tests, and for the hub, whose truth is next door. */
import { entryOverheadBytes, forgetEntriesMax, historyBytesAfter } from './bounds.ts'
import {
  type Batch,
  type Change,
  type Cursor,
  type Entry,
  type Gap,
  HistoryGone,
  type HistoryLimit,
  type HistoryPage,
  type InterestChange,
  type Loaded,
  type LoadedObject,
  type Make,
  noFigures,
  type SharedBody,
  type Store,
  type StoredRecord,
} from './store.ts'

/** `lost`: a seed has dropped its object. */
type MemoryEntry = Entry & { readonly size: number; lost: boolean }
type MemoryInterest = {
  floor: number
  synced: number | undefined
  lastPosition: number
  bytes: number
  readonly objects: Map<string, { version: number; body: Buffer }>
  readonly history: MemoryEntry[]
}

export function openMemory(parts: { historyBytesMax: number }): Store {
  return new MemoryStore(parts.historyBytesMax)
}

class MemoryStore implements Store {
  readonly #historyBytesMax: number
  readonly #collections = new Map<string, MemoryInterest>()
  readonly #records = new Map<string, Map<string, Buffer>>()
  #names = 0
  readonly figures = noFigures()

  constructor(historyBytesMax: number) {
    this.#historyBytesMax = historyBytesMax
  }

  async load<Made = LoadedObject>(make: Make<Made> = asItIs): Promise<Loaded<Made>> {
    let newest = 0
    const interests = [...this.#collections].map(([name, { floor, synced, lastPosition, objects, history }]) => {
      const lastVersion = history.at(-1)?.version ?? floor
      newest = Math.max(newest, lastVersion)
      return {
        name,
        floor,
        synced: synced === undefined && lastVersion === 0 ? undefined : Math.max(synced ?? 0, lastVersion),
        lastPosition,
        lastVersion,
        gaps: history.filter((entry) => entry.kind === 'gap').map(asGap),
        objects: [...objects]
          .map(([key, { version, body }]) => ({ key, version, body }))
          .sort(byKey)
          .map((object) => make(name, object)),
        corrupt: [],
      }
    })
    return { version: newest, interests }
  }

  async commit({ changes, interests = [], records = [] }: Batch): Promise<void> {
    for (const change of interests) if ('forget' in change) this.#forgetInterest(change.interest)
    for (const change of changes) this.#write(change)
    for (const change of interests) if (!('forget' in change)) this.#note(change)
    for (const { kind, key, value } of records) {
      const ofKind = this.#records.get(kind) ?? new Map<string, Buffer>()
      this.#records.set(kind, ofKind)
      if (value === undefined) ofKind.delete(key)
      else ofKind.set(key, value)
      this.figures.bytesWritten += value?.length ?? 0
    }
    this.figures.commits++
    this.figures.groups++
    this.#forgetHistory(changes.length)
  }

  #write({ interest, position, version, key, kind, body, shared }: Change): void {
    const collection = this.#collection(interest)
    const previous = kind === 'gap' ? undefined : collection.objects.get(key)
    if (body !== undefined) collection.objects.set(key, { version, body })
    else if (kind === 'delete') collection.objects.delete(key)
    const isHere = shared !== undefined && shared.name !== 0
    this.figures.bytesWritten += isHere ? 0 : (body?.length ?? 0)
    if (shared?.name === 0) shared.name = ++this.#names
    if (kind === 'seed') {
      // A later entry that replaced the body keeps it.
      const isKept = collection.history.some(
        (entry) => entry.previous !== undefined && entry.previous === previous?.body,
      )
      for (const entry of isKept ? [] : collection.history)
        if (entry.body !== undefined && entry.body === previous?.body) entry.lost = true
      return
    }
    const size = entryOverheadBytes + key.length + (previous?.body.length ?? 0)
    collection.history.push({
      position,
      version,
      key,
      kind,
      body,
      size,
      previous: previous?.body,
      previousVersion: previous?.version ?? 0,
      lost: false,
    })
    collection.lastPosition = position
    collection.bytes += size
    this.figures.historyBytes += size
  }

  #note({ interest, synced, floor = 0 }: Exclude<InterestChange, { forget: true }>): void {
    const collection = this.#collection(interest)
    collection.synced = synced
    if (floor <= collection.floor) return
    collection.floor = floor
    // As on disk: what lies below a floor that is said is forgotten.
    while ((collection.history[0]?.version ?? Number.POSITIVE_INFINITY) <= floor) {
      const { size } = collection.history.shift() as MemoryEntry
      collection.bytes -= size
      this.figures.historyBytes -= size
    }
  }

  #forgetInterest(name: string): void {
    this.figures.historyBytes -= this.#collections.get(name)?.bytes ?? 0
    this.#collections.delete(name)
  }

  /** What is shared is one buffer already: a name only says that it is here. */
  release(shared: SharedBody): void {
    shared.name = 0
  }

  async records(kind: string): Promise<readonly StoredRecord[]> {
    return [...(this.#records.get(kind) ?? [])].map(([key, value]) => ({ key, value })).sort(byKey)
  }

  async record(kind: string, key: string): Promise<Buffer | undefined> {
    return this.#records.get(kind)?.get(key)
  }

  async history(interest: string, after: Cursor, limit: HistoryLimit): Promise<HistoryPage> {
    const collection = this.#collections.get(interest)
    if (collection === undefined) return { entries: [], more: false }
    if (after.version < collection.floor) throw new HistoryGone(interest, collection.floor)
    const entries: Entry[] = []
    let bytes = 0
    for (const entry of collection.history) {
      if (entry.version < after.version || (entry.version === after.version && entry.position <= after.position))
        continue
      if (entries.length >= limit.entries || bytes >= limit.bytes) return { entries, more: true }
      const { size: _, lost, ...plain } = entry
      if (lost && entries.length > 0) return { entries, more: true }
      if (lost) throw new HistoryGone(interest, entry.version)
      entries.push(plain)
      bytes += (entry.body?.length ?? 0) + (entry.previous?.length ?? 0)
    }
    return { entries, more: false }
  }

  /** Nothing of it lies on a disk. */
  mendFrom(): void {}

  floor(interest: string): number {
    return this.#collections.get(interest)?.floor ?? 0
  }

  async close(): Promise<void> {}

  #collection(name: string): MemoryInterest {
    let collection = this.#collections.get(name)
    if (collection === undefined) {
      collection = { floor: 0, synced: undefined, lastPosition: 0, bytes: 0, objects: new Map(), history: [] }
      this.#collections.set(name, collection)
    }
    return collection
  }

  #forgetHistory(written: number): void {
    if (this.figures.historyBytes <= this.#historyBytesMax) return
    const bytesAfter = historyBytesAfter(this.#historyBytesMax)
    for (let left = forgetEntriesMax(written); left > 0 && this.figures.historyBytes > bytesAfter; left--) {
      let largest: MemoryInterest | undefined
      for (const one of this.#collections.values()) if (one.bytes > (largest?.bytes ?? 0)) largest = one
      const oldest = largest?.history.shift()
      if (largest === undefined || oldest === undefined) return
      // As on disk: with the first part of a gap the whole of it is gone.
      largest.floor = Math.max(largest.floor, oldest.kind === 'gap' ? Number(oldest.key) : oldest.version)
      largest.bytes -= oldest.size
      this.figures.historyBytes -= oldest.size
    }
  }
}

function byKey(a: { key: string }, b: { key: string }): number {
  return a.key < b.key ? -1 : 1
}

function asItIs<Made>(_: string, object: LoadedObject): Made {
  return object as Made
}

function asGap(entry: Entry): Gap {
  return { position: entry.position, from: entry.version, to: Number(entry.key) }
}
