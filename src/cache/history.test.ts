/** Gaps (decision 3 of docs/architecture.md), told from entries made up as a mirror would write them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openMemory } from '../store/memory.ts'
import { type Change, HistoryGone } from '../store/store.ts'
import { after, bytesOf, filterFor, interest, openWorld, Reader } from './fixture.test-support.ts'

let position = 0
const put = (version: number, key: string): Change => ({
  interest,
  position: ++position,
  version,
  key,
  kind: 'put',
  body: bytesOf(key, version, { value: String(version) }),
})
const drop = (version: number, key: string): Change => ({
  interest,
  position: ++position,
  version,
  key,
  kind: 'delete',
})
const gap = (from: number, to: number): Change => ({
  interest,
  position: ++position,
  version: from,
  key: String(to),
  kind: 'gap',
})

/** Up to 20 all is ordinary; then a relist at 50 finds b and c gone, c back again at 40, and d new at 45. */
async function relisted() {
  position = 0
  const store = openMemory({ historyBytesMax: 1 << 30 })
  const changes = [put(10, 'n/a'), put(15, 'n/b'), put(20, 'n/c'), gap(20, 50)]
  changes.push(drop(20, 'n/b'), drop(20, 'n/c'), put(40, 'n/c'), put(45, 'n/d'), put(60, 'n/e'))
  await store.commit({ changes, synced: true })
  return openWorld({ store })
}

/** Under the gap's label for who was before it, under its own version for who resumes inside: versions never go back. */
const deletionsAt = (version: number) => [
  `DELETED ${version} n/b 15@${version}`,
  `DELETED ${version} n/c 20@${version}`,
]
const rest = ['ADDED 40 n/c 40@40', 'ADDED 45 n/d 45@45', 'ADDED 60 n/e 60@60']

async function from(version: number): Promise<string[]> {
  const { cache } = await relisted()
  return new Reader(cache, after(version)).drain()
}

test('[A3] a watch from before a gap hears everything in order, the deletions once', async () => {
  assert.deepEqual(await from(15), ['ADDED 20 n/c 20@20', ...deletionsAt(20), ...rest])
})

test('[A3] a watch that resumes inside a gap first hears of every deletion of it, then what is above', async () => {
  for (const version of [20, 21, 39])
    assert.deepEqual(await from(version), [...deletionsAt(version), ...rest], `from ${version}`)
})

test('[A3] except of keys that were added again at a version it has seen', async () => {
  for (const version of [40, 44])
    assert.deepEqual(await from(version), [deletionsAt(version)[0], ...rest.slice(1)], `from ${version}`)
  assert.deepEqual(await from(45), [deletionsAt(45)[0], rest[2]])
})

test('[A3] from the end of a gap on it is ordinary history', async () => {
  for (const version of [50, 59]) assert.deepEqual(await from(version), [rest[2]], `from ${version}`)
  assert.deepEqual(await from(60), [])
})

test('a list of the past knows of the gap too', async () => {
  const { cache } = await relisted()
  const names = async (version: number) => (await cache.listAt(version, filterFor({}))).map((item) => item.name)
  assert.deepEqual(await names(15), ['a', 'b'])
  assert.deepEqual(await names(20), ['a'])
  assert.deepEqual(await names(45), ['a', 'c', 'd'])
  assert.deepEqual(await names(60), ['a', 'c', 'd', 'e'])
})

test('a list of the past below the floor is refused', async () => {
  const world = await openWorld({ historyBytesMax: 3_000 })
  for (let i = 0; i < 100; i++) await world.put('n/x', 'v'.repeat(100))
  world.cache.history.window.shrink(Number.POSITIVE_INFINITY)
  await assert.rejects(world.cache.listAt(3, filterFor({})), HistoryGone)
})

test('a list of the past is of one moment, though writes go on while it is read', async () => {
  const world = await openWorld()
  for (let i = 0; i < 300; i++) await world.put(`n/k${i % 10}`, `${i}`)
  world.cache.history.window.shrink(20_000)
  const version = 250
  const expected = Array.from({ length: 10 }, (_, i) => `k${i}@${world.cache.version >= version ? lastBefore(i) : 0}`)
  const reading = world.cache.listAt(version, filterFor({}))
  const writing = (async () => {
    for (let i = 0; i < 200; i++) {
      await world.put(`n/k${i % 10}`, 'v'.repeat(1_000))
      world.cache.history.window.shrink(5_000)
    }
  })()
  const found = (await reading).map((item) => `${item.name}@${item.version}`)
  await writing
  assert.deepEqual(found, expected)

  /** Key i was written at versions 2 + i, 12 + i, and so on. */
  function lastBefore(i: number): number {
    return 2 + i + 10 * Math.floor((version - 2 - i) / 10)
  }
})
