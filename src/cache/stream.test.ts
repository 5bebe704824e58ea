import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { tooOld } from '../kube/status.ts'
import { after, filterFor, openWorld, StreamReader } from './fixture.test-support.ts'

const changesOf = (reader: StreamReader) => reader.events.filter((event) => event.type !== 'BOOKMARK')

test('[A3] a stream tells the objects it begins with, where they end, and then each change with what its reader had', async () => {
  const world = await openWorld()
  await world.put('a/x', '1')
  await world.put('b/y', '2')
  const items = world.cache.list(filterFor({ namespace: 'a' }))
  const reader = new StreamReader(world.cache, { kind: 'state', items }, { namespace: 'a' })
  await world.put('a/z', '3')
  assert.deepEqual(await reader.drain(), ['ADDED 2 a/x 1@2', 'SYNCED 3', 'ADDED 4 a/z 3@4'])
  await world.put('a/x', '4')
  await world.put('b/y', '5')
  await world.remove('a/z')
  assert.deepEqual((await reader.drain()).slice(3), ['MODIFIED 5 a/x 4@5', 'DELETED 7 a/z 3@7'])
  assert.deepEqual(
    changesOf(reader).map(({ version, position, previous }) => [version, position, previous?.version]),
    [
      [2, 2, undefined],
      [4, 3, undefined],
      [5, 4, 2],
      [7, 6, 4],
    ],
  )
})

test('[A4] what enters a selector was not there before, as far as its reader knows', async () => {
  const world = await openWorld()
  const reader = new StreamReader(world.cache, { kind: 'now' }, { labels: 'app=web' })
  const late = new StreamReader(world.cache, after(1), { labels: 'app=web' })
  await reader.drain()
  await world.put('a/x', { value: 'out' })
  await world.put('a/x', { value: 'in', labels: { app: 'web' } })
  await world.put('a/x', { value: 'out' })
  for (const one of [reader, late]) {
    await one.drain()
    assert.deepEqual(
      changesOf(one).map(({ type, previous }) => [type, previous?.version]),
      [
        ['ADDED', undefined],
        ['DELETED', 3],
      ],
    )
  }
})

test('[A8] a stream that is not read holds a burst at most, goes back to history and misses nothing', async () => {
  const world = await openWorld()
  const slow = new StreamReader(world.cache, after(1))
  const quick = new StreamReader(world.cache, after(1))
  await Promise.all([slow.drain(), quick.drain()])
  const value = 'v'.repeat(100_000)
  const history = mock.method(world.cache.history, 'next')
  for (let i = 0; i < 30; i++) {
    await world.put(`a/k${i % 3}`, `${i}${value}`)
    await quick.drain()
  }
  assert.deepEqual([quick.frames.length, history.mock.callCount()], [30, 0])
  // It was inside a pull when the burst began, and was given that event.
  assert.equal(slow.frames.length, 1)
  assert.deepEqual(await slow.drain(), quick.frames)
  assert.ok(history.mock.callCount() > 0)
})

test('[A3] a stream from a version that lies ahead is silent until the copy has passed it', async () => {
  const world = await openWorld()
  const reader = new StreamReader(world.cache, after(3))
  await world.put('a/x', '2')
  await world.put('a/x', '3')
  assert.deepEqual(await reader.drain(), [])
  await world.put('a/x', '4')
  assert.deepEqual(await reader.drain(), ['MODIFIED 4 a/x 4@4'])
})

test('a reader that asks for bookmarks is told how far the copy is, behind every event up to there', async () => {
  const world = await openWorld()
  const reader = new StreamReader(world.cache, after(1), { namespace: 'a' }, true)
  assert.deepEqual(await reader.drain(), ['BOOKMARK 1'])
  await world.put('a/x', '1')
  await world.put('b/x', '2')
  assert.deepEqual((await reader.drain()).slice(1), ['ADDED 2 a/x 1@2', 'BOOKMARK 3'])
  await Promise.all([world.put('b/y', '3'), world.put('a/y', '4'), world.put('b/z', '5')])
  await reader.drain()
  assert.deepEqual(reader.frames.filter((frame) => frame.startsWith('BOOKMARK')).at(-1), 'BOOKMARK 6')
  const plain = new StreamReader(world.cache, after(5))
  assert.deepEqual(await plain.drain(), ['ADDED 6 b/z 5@6'])
})

test('[A3] below the floor, or when its past is lost, a stream fails with 410 and has ended', async () => {
  const world = await openWorld({ historyBytesMax: 2_000 })
  for (let i = 0; i < 50; i++) await world.put('a/x', 'v'.repeat(100))
  world.cache.history.window.shrink(Number.POSITIVE_INFINITY)
  const old = world.cache.stream({ filter: filterFor({}), start: after(5), bookmarks: false })
  await assert.rejects(old.next(), /too old resource version: 5/)
  assert.deepEqual(await old.next(), { value: undefined, done: true })
  const open = () => world.cache.stream({ filter: filterFor({}), start: { kind: 'now' }, bookmarks: false })
  const [waiting, reading] = [open(), open()]
  const next = waiting.next()
  await new Promise((resolve) => setImmediate(resolve))
  for (const stream of [waiting, reading]) stream.fail(tooOld(5, 9))
  await assert.rejects(next, /too old resource version: 5/)
  await assert.rejects(reading.next(), /too old resource version: 5/)
  for (const stream of [waiting, reading]) assert.deepEqual(await stream.next(), { value: undefined, done: true })
  assert.equal(world.cache.streams.size, 0)
})

test('a stream ends when its reader leaves it, also in the middle of a wait, and hears of nothing more', async () => {
  const world = await openWorld()
  const ahead = world.cache.stream({ filter: filterFor({}), start: after(9), bookmarks: true })
  const live = world.cache.stream({ filter: filterFor({}), start: after(1), bookmarks: false })
  const [one, other] = [ahead.next(), live.next()]
  await new Promise((resolve) => setImmediate(resolve))
  await Promise.all([ahead.return(), live.return()])
  assert.deepEqual(await Promise.all([one, other]), [
    { value: undefined, done: true },
    { value: undefined, done: true },
  ])
  assert.equal(world.cache.streams.size, 0)
  await world.put('a/x', '1')
  assert.deepEqual(await live.next(), { value: undefined, done: true })
})

test('other selectable fields end a stream: its filter reads what is no longer there', async () => {
  const world = await openWorld()
  const reader = new StreamReader(world.cache, after(1))
  await reader.drain()
  world.cache.replan({ ...world.cache.plan, paths: ['spec.other'] })
  await reader.drain()
  assert.equal(reader.ended, true)
})
