/** The engine that forgets everything with the process: for tests, and for the hub, whose truth is next door. */
import {
  type Batch,
  type Cursor,
  type Entry,
  type Gap,
  HistoryGone,
  type HistoryLimit,
  type HistoryPage,
  type Loaded,
  type LoadedObject,
  type Make,
  type Store,
  type StoreFigures,
} from './store.ts'

type Kept = Entry & { readonly size: number }
type Collection = {
  floor: number
  lastPosition: number
  bytes: number
  readonly objects: Map<string, { version: number; body: Buffer }>
  readonly history: Kept[]
}

/** The same measure as on disk, so that both engines forget at the same time. */
const entryOverheadBytes = 128

export function openMemory(parts: { historyBytesMax: number }): Store {
  return new MemoryStore(parts.historyBytesMax)
}

class MemoryStore implements Store {
  readonly #historyBytesMax: number
  readonly #collections = new Map<string, Collection>()
  readonly figures: StoreFigures = { commits: 0, groups: 0, bytesWritten: 0, historyBytes: 0, failures: 0 }
  #version = 0

  constructor(historyBytesMax: number) {
    this.#historyBytesMax = historyBytesMax
  }

  async load<Made = LoadedObject>(make: Make<Made> = asItIs): Promise<Loaded<Made>> {
    const interests = [...this.#collections].map(([name, { floor, lastPosition, objects, history }]) => ({
      name,
      floor,
      lastPosition,
      gaps: history.filter((entry) => entry.kind === 'gap').map(asGap),
      objects: [...objects]
        .map(([key, { version, body }]) => ({ key, version, body }))
        .sort((a, b) => (a.key < b.key ? -1 : 1))
        .map((object) => make(name, object)),
      corrupt: [],
    }))
    return { version: this.#version, interests }
  }

  async commit(batch: Batch): Promise<void> {
    for (const { interest, position, version, key, kind, body } of batch.changes) {
      const collection = this.#collection(interest)
      const previous = kind === 'gap' ? undefined : collection.objects.get(key)
      const size = entryOverheadBytes + key.length + (previous?.body.length ?? 0)
      if (body !== undefined) collection.objects.set(key, { version, body })
      else if (kind === 'delete') collection.objects.delete(key)
      collection.history.push({
        position,
        version,
        key,
        kind,
        body,
        size,
        previous: previous?.body,
        previousVersion: previous?.version ?? 0,
      })
      collection.lastPosition = position
      collection.bytes += size
      this.figures.historyBytes += size
      this.figures.bytesWritten += body?.length ?? 0
      this.#version = Math.max(this.#version, version)
    }
    this.figures.commits++
    this.figures.groups++
    this.#forget()
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
      const { size: _, ...plain } = entry
      entries.push(plain)
      bytes += (entry.body?.length ?? 0) + (entry.previous?.length ?? 0)
    }
    return { entries, more: false }
  }

  floor(interest: string): number {
    return this.#collections.get(interest)?.floor ?? 0
  }

  async close(): Promise<void> {}

  #collection(name: string): Collection {
    let collection = this.#collections.get(name)
    if (collection === undefined) {
      collection = { floor: 0, lastPosition: 0, bytes: 0, objects: new Map(), history: [] }
      this.#collections.set(name, collection)
    }
    return collection
  }

  #forget(): void {
    while (this.figures.historyBytes > this.#historyBytesMax) {
      let largest: Collection | undefined
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

function asItIs<Made>(_: string, object: LoadedObject): Made {
  return object as Made
}

function asGap(entry: Entry): Gap {
  return { position: entry.position, from: entry.version, to: Number(entry.key) }
}
