/**
 * Random writes, watches that are slow, cut and resumed, lists of the past, a window that forgets and a store that takes
 * its time: whatever happens, every watch and every stream has told exactly what its filter selects of the changes since
 * its start. AKE_SEED repeats a run that failed.
 */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { lives } from '../base/lives.test-support.ts'
import { type SeededRandom, seeded } from '../base/seeded.test-support.ts'
import { openMemory } from '../store/memory.ts'
import type { Batch, Store } from '../store/store.ts'
import {
  type Asked,
  after,
  bytesOf,
  filterFor,
  openWorld,
  plan,
  Reader,
  StreamReader,
  shortened,
  type Thing,
  type World,
} from './fixture.test-support.ts'
import { makeItem } from './item.ts'

const runs = lives(12)
const stepsPerRun = 300
const firstSeed = Number(process.env.AKE_SEED ?? Math.floor(Math.random() * 1e9))

/** Commits are taken in order, each after a random while; a page may be old news by the time it arrives. */
function slowStore(inner: Store, random: SeededRandom): Store {
  let last: Promise<unknown> = Promise.resolve()
  const later = <T>(work: () => Promise<T>): Promise<T> => {
    const turns = random(4)
    const mine = last.then(async () => {
      for (let i = 0; i < turns; i++) await new Promise((resolve) => setImmediate(resolve))
      return work()
    })
    last = mine.catch(() => {})
    return mine
  }
  return {
    load: inner.load.bind(inner),
    release: (shared) => inner.release(shared),
    commit: (batch: Batch) => later(() => inner.commit(batch)),
    history: async (name, cursor, limit) => {
      const page = await later(() => inner.history(name, cursor, { ...limit, entries: 1 + random(20) }))
      for (let turns = random(4); turns > 0; turns--) await new Promise((resolve) => setImmediate(resolve))
      return page
    },
    floor: (name) => inner.floor(name),
    mendFrom: (held) => inner.mendFrom(held),
    figures: inner.figures,
    close: () => inner.close(),
    records: (kind) => inner.records(kind),
    record: (kind, key) => inner.record(kind, key),
  }
}

/** What really happened, by version. */
type Change = { readonly key: string; readonly version: number; readonly thing: Thing | undefined }

class Truth {
  readonly changes: Change[] = []

  at(version: number): Map<string, Change> {
    const state = new Map<string, Change>()
    for (const change of this.changes) {
      if (change.version > version) break
      if (change.thing === undefined) state.delete(change.key)
      else state.set(change.key, change)
    }
    return state
  }

  /** The frames a watch of this filter has to tell after a version. */
  story(asked: Asked, from: number): string[] {
    const filter = filterFor(asked)
    const selects = ({ key, version, thing }: Change) =>
      thing !== undefined && filter.matches(makeItem(bytesOf(key, version, thing), version, plan))
    const state = this.at(from)
    const frames: string[] = []
    for (const change of this.changes) {
      if (change.version <= from) continue
      const { key, version, thing } = change
      const before = state.get(key)
      const was = before !== undefined && selects(before)
      const is = selects(change)
      if (is) frames.push(`${was ? 'MODIFIED' : 'ADDED'} ${version} ${key} ${thing?.value}@${version}`)
      else if (was) frames.push(`DELETED ${version} ${key} ${before.thing?.value}@${version}`)
      if (thing === undefined) state.delete(key)
      else state.set(key, change)
    }
    return frames.map(shortened)
  }

  listed(asked: Asked, version: number): string[] {
    const filter = filterFor(asked)
    return [...this.at(version).values()]
      .filter((one) => filter.matches(makeItem(bytesOf(one.key, one.version, one.thing as Thing), one.version, plan)))
      .map(({ key, version: of }) => `${key}@${of}`)
      .sort()
  }
}

const selections: readonly Asked[] = [
  {},
  { namespace: 'a' },
  { namespace: 'a', name: 'k1' },
  { labels: 'app=web' },
  { labels: 'app!=web' },
  { labels: 'app in (web,api)', namespace: 'b' },
  { labels: '!app' },
  { fields: 'spec.nodeName=n1' },
  { fields: 'spec.nodeName=' },
  { fields: 'spec.nodeName!=n1', labels: 'tier' },
  { labels: 'app=web,tier=x', fields: 'spec.nodeName=n2' },
]

/** One client: it watches, or reads a stream, is cut, and resumes from the last version it heard of. */
class Client {
  readonly asked: Asked
  readonly start: number
  readonly heard: string[] = []
  #reader: Reader | StreamReader
  readonly #streams: boolean
  #taken = 0

  constructor(world: World, asked: Asked, start: number, streams: boolean) {
    this.asked = asked
    this.start = start
    this.#streams = streams
    this.#reader = this.#read(world, start)
  }

  #read({ cache }: World, from: number): Reader | StreamReader {
    return this.#streams ? new StreamReader(cache, after(from), this.asked) : new Reader(cache, after(from), this.asked)
  }

  take(): void {
    void this.#reader.pull()
    this.#hear()
  }

  #hear(): void {
    this.heard.push(...this.#reader.frames.slice(this.#taken))
    this.#taken = this.#reader.frames.length
  }

  /** Its connection breaks: what was pulled and not yet looked at is lost with it. */
  async cut(world: World): Promise<void> {
    this.#hear()
    await this.#reader.close()
    const last = this.heard.length === 0 ? this.start : Number(this.heard.at(-1)?.split(' ')[1])
    this.#reader = this.#read(world, last)
    this.#taken = 0
  }

  /** Listens until it has heard this many frames, and a moment longer: there must not be more. */
  async finish(frames: number): Promise<void> {
    const before = this.heard.length - this.#taken
    await this.#reader.drain(frames - before)
    this.#hear()
  }
}

async function simulate(seed: number): Promise<void> {
  const random = seeded(seed)
  const store = slowStore(openMemory({ historyBytesMax: 1 << 30 }), random)
  const world = await openWorld({ store })
  const truth = new Truth()
  const clients: Client[] = []
  const lists: Promise<void>[] = []
  const writing = new Set<string>()
  const one = <T>(from: readonly T[]) => from[random(from.length)] as T
  // Published is what counts: a change is true from the moment observers hear of it.
  const made = new Map<number, Thing>()
  world.cache.observe(({ key, version, item }) => {
    truth.changes.push({ key, version, thing: item === undefined ? undefined : made.get(version) })
  })
  const write = async () => {
    const key = `${one(['a', 'b'])}/k${random(6)}`
    if (writing.has(key)) return
    writing.add(key)
    if (world.cache.get(key) !== undefined && random(4) === 0) await world.remove(key)
    else {
      const labels = { ...one([{}, { app: 'web' }, { app: 'api' }]), ...one([{}, { tier: 'x' }]) }
      const size = random(20) === 0 ? 400_000 : random(40)
      const value = `${random(1e6)}${'v'.repeat(size)}`
      const thing: Thing = { value, labels, ...one([{}, { node: 'n1' }, { node: 'n2' }]) }
      await world.copy.put('/pods', key, (version) => {
        made.set(version, thing)
        return bytesOf(key, version, thing)
      })
    }
    writing.delete(key)
  }
  const list = async () => {
    const asked = one(selections)
    const version = 1 + random(world.cache.version)
    const items = await world.cache.listAt(version, filterFor(asked))
    assert.deepEqual(
      items.map((item) => `${item.key}@${item.version}`).sort(),
      truth.listed(asked, version),
      `list at ${version}`,
    )
  }
  const writes: Promise<void>[] = []
  for (let step = 0; step < stepsPerRun; step++) {
    const what = random(100)
    if (what < 45) writes.push(write())
    else if (what < 50)
      clients.push(new Client(world, one(selections), 1 + random(world.cache.version), random(3) === 0))
    else if (what < 75) clients[random(clients.length || 1)]?.take()
    else if (what < 80) await clients[random(clients.length || 1)]?.cut(world)
    else if (what < 84) world.cache.history.window.shrink(1 + random(3_000))
    else if (what < 87) lists.push(list())
    else await new Promise((resolve) => setImmediate(resolve))
  }
  await Promise.all([...writes, ...lists])
  const check = async (client: Client) => {
    const story = truth.story(client.asked, client.start)
    await client.finish(story.length)
    assert.deepEqual(client.heard, story, `${JSON.stringify(client.asked)} from ${client.start}`)
  }
  await Promise.all(clients.map(check))
  for (const asked of selections) {
    const items = world.cache.list(filterFor(asked)).map((item) => `${item.key}@${item.version}`)
    assert.deepEqual(items.sort(), truth.listed(asked, world.cache.version))
  }
}

test(`[A3] [A4] [A8] ${runs} random lives of a cache: every watch and every stream told exactly what happened`, async () => {
  for (let run = 0; run < runs; run++) {
    const seed = firstSeed + run
    await simulate(seed).catch((error: Error) => {
      throw new Error(`AKE_SEED=${seed}: ${error.message.slice(0, 4_000)}`, { cause: error })
    })
  }
})
