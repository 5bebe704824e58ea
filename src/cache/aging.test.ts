/** What is forgotten by age, and for whom: a clock of its own that counts only the time in which a client could have asked. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { type FakeClock, fakeClock } from '../base/fakeclock.test-support.ts'
import { silentLog } from '../base/log.ts'
import { openDurable } from '../store/durable.ts'
import { openMemory } from '../store/memory.ts'
import { afterAll, HistoryGone, type Store } from '../store/store.ts'
import { Aging } from './aging.ts'
import { AuthorityCopy } from './authoritycopy.ts'
import { everything } from './filter.ts'
import { after, bytesOf, interest, plan, Reader } from './fixture.test-support.ts'

const hour = 3_600_000
const ageMs = 24 * hour
const other = '/secrets'

type World = { copy: AuthorityCopy; clock: FakeClock; store: Store; put(value: string, of?: string): Promise<number> }

/** The copy runs: it looks every second. */
async function open(parts: { store?: Store; clock?: FakeClock; counts?: () => boolean } = {}): Promise<World> {
  const clock = parts.clock ?? fakeClock()
  const store = parts.store ?? openMemory({ historyBytesMax: 1 << 30 })
  const { counts } = parts
  const aging = { ageMs, ...(counts && { counts }) }
  const copy = await AuthorityCopy.open({ store, clock, log: silentLog, planOf: () => plan, aging })
  void copy.run(new AbortController().signal)
  const put = async (value: string, of = interest) =>
    (await copy.put(of, 'a/x', (version) => bytesOf('a/x', version, { value }))).version
  return { copy, clock, store, put }
}

async function pass(clock: FakeClock, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += hour / 4) {
    clock.advance(hour / 4)
    // Timers are set again a turn later, and commits take one.
    for (let turn = 0; turn < 4; turn++) await new Promise((resolve) => setImmediate(resolve))
  }
}

const everyEntry = { entries: 1_000, bytes: 1 << 24 }

test('[A9] what happened longer ago than the age is forgotten, the last change of a quiet interest too, and nothing newer', async () => {
  const world = await open()
  await world.put('old')
  const rotated = await world.put('new')
  await pass(world.clock, 20 * hour)
  const fresh = await world.put('newest', other)
  await pass(world.clock, 6 * hour)
  const cache = world.copy.cache(interest)
  assert.equal(cache.history.floor, rotated, 'not above its last entry')
  assert.equal(world.copy.cache(other).history.floor, 0)
  const left = await world.store.history(interest, { version: rotated, position: 0 }, everyEntry)
  assert.deepEqual(left.entries, [], 'the entry that still held the old state is gone')
  await assert.rejects(
    world.store.history(interest, { version: rotated - 1, position: afterAll }, everyEntry),
    HistoryGone,
  )
  // In memory it would still be there.
  await assert.rejects(cache.listAt(rotated - 1, everything), HistoryGone)
  assert.equal((await cache.listAt(rotated, everything)).length, 1)
  assert.deepEqual(await new Reader(cache, after(rotated)).drain(), [], 'who saw the last change resumes')
  await pass(world.clock, 40 * hour)
  assert.equal(cache.history.floor, rotated)
  assert.equal(world.copy.cache(other).history.floor, fresh)
})

test('[A9] nothing gets older while the cloud is away, nor by a clock that somebody sets', async () => {
  let isReachable = true
  const world = await open({ counts: () => isReachable })
  const first = await world.put('1')
  const second = await world.put('2')
  await pass(world.clock, 2 * hour)
  isReachable = false
  await pass(world.clock, 72 * hour)
  world.clock.jump(10 * 365 * 24 * hour)
  isReachable = true
  await pass(world.clock, 20 * hour)
  world.clock.jump(-20 * 365 * 24 * hour)
  await pass(world.clock, 1 * hour)
  const cache = world.copy.cache(interest)
  assert.equal(cache.history.floor, 0)
  assert.equal((await new Reader(cache, after(first)).drain(1)).length, 1, 'who slept through the outage resumes')
  await pass(world.clock, 4 * hour)
  assert.equal(cache.history.floor, second)
})

test('[A9] age goes on over restarts, and the bodies of what is forgotten are no longer referred to', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ake-aging-'))
  const clock = fakeClock()
  try {
    const opened = () => openDurable({ folder, historyBytesMax: 1 << 30, clock })
    let store = opened()
    let world = await open({ store, clock })
    await world.put('old')
    const last = await world.put('new')
    const { historyBytes } = await settled(store, clock)
    assert.ok(historyBytes > 0)
    for (let day = 0; day < 6; day++) {
      await pass(clock, 5 * hour)
      await store.close()
      store = opened()
      world = await open({ store, clock })
    }
    await pass(clock, 1 * hour)
    assert.equal(world.copy.cache(interest).history.floor, last)
    assert.equal((await settled(store, clock)).historyBytes, 0)
    await store.close()
    store = opened()
    const loaded = await store.load()
    assert.deepEqual([loaded.version, loaded.interests[0]?.floor, loaded.interests[0]?.lastVersion], [last, last, last])
    await store.close()
  } finally {
    rmSync(folder, { recursive: true })
  }
})

/** The figures once the index has followed. */
async function settled(store: Store, clock: FakeClock): Promise<Store['figures']> {
  clock.advance(5_000)
  await store.history(interest, { version: afterAll, position: afterAll }, everyEntry)
  await store.load()
  return store.figures
}

test('[A9] a gap goes as a whole, and not while it opened right behind the mark', async () => {
  const { copy } = await open()
  const { history } = copy.cache(interest)
  history.noteGap({ position: 5, from: 100, to: 150 })
  assert.equal(history.floorUpTo({ version: 90, position: 4 }), 90)
  assert.equal(history.floorUpTo({ version: 100, position: 4 }), undefined)
  assert.equal(history.floorUpTo({ version: 100, position: 8 }), 150)
  assert.equal(history.floorUpTo({ version: 160, position: 9 }), 160)
})

test('[A9] marks of an interest that began anew at lower versions forget nothing of it', async () => {
  const { copy, clock, put } = await open()
  await put('1')
  const marks = { [interest]: [{ atMs: 0, version: 900, position: 1 }] }
  const saved = Buffer.from(JSON.stringify({ ranMs: 100 * hour, marks }))
  const commits: unknown[] = []
  const commit = async ({ interests = [] }: { interests?: readonly unknown[] }) => void commits.push(...interests)
  const aging = new Aging({ ageMs, clock, caches: copy.caches, commit, saved })
  clock.advance(2 * hour)
  aging.tick()
  assert.deepEqual(commits, [])
})
