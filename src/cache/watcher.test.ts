import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { openDurable } from '../store/durable.ts'
import type { Form } from './event.ts'
import { after, filterFor, form, openWorld, Reader, type World } from './fixture.test-support.ts'
import type { WatchStart } from './watcher.ts'

const steps = ['ADDED 2 a/x 1@2', 'ADDED 3 a/y 2@3', 'MODIFIED 4 a/x 3@4', 'DELETED 5 a/y 2@5', 'ADDED 6 b/z 4@6']

async function play(world: World): Promise<void> {
  await world.put('a/x', '1')
  await world.put('a/y', '2')
  await world.put('a/x', '3')
  await world.remove('a/y')
  await world.put('b/z', '4')
}

async function resumesEverywhere(world: World): Promise<void> {
  for (let version = 1; version <= 6; version++) {
    const reader = new Reader(world.cache, after(version))
    const rest = steps.slice(version - 1)
    assert.deepEqual(await reader.drain(rest.length), rest, `from ${version}`)
    await reader.watcher.return()
  }
}

test('[A3] a watch from any version in memory yields what came after it, in order, once', async () => {
  const world = await openWorld()
  await play(world)
  await resumesEverywhere(world)
})

test('[A3] so it does from disk after a restart, and across the edge of the window', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ake-cache-'))
  let store = openDurable({ folder, historyBytesMax: 1 << 30 })
  try {
    await play(await openWorld({ store }))
    await store.close()
    store = openDurable({ folder, historyBytesMax: 1 << 30 })
    const world = await openWorld({ store })
    assert.equal(world.cache.history.window.size, 0)
    await resumesEverywhere(world)
    // Now part of the history is on disk and part in memory.
    await world.put('c/n', '5')
    await world.put('c/n', '6')
    const more = [...steps, 'ADDED 7 c/n 5@7', 'MODIFIED 8 c/n 6@8']
    for (let version = 1; version <= 8; version++) {
      const reader = new Reader(world.cache, after(version))
      const rest = more.slice(version - 1)
      assert.deepEqual(await reader.drain(rest.length), rest, `from ${version}`)
    }
  } finally {
    await store.close()
    rmSync(folder, { recursive: true })
  }
})

test('[A3] however much the window has forgotten', async () => {
  for (let forgotten = 0; forgotten <= 5; forgotten++) {
    const world = await openWorld()
    await play(world)
    for (let i = 0; i < forgotten; i++) world.cache.history.window.shrink(1)
    assert.equal(world.cache.history.window.size, 5 - forgotten)
    await resumesEverywhere(world)
  }
})

test('[A3] cut after every single event it resumes exactly', async () => {
  const world = await openWorld()
  for (let i = 0; i < 40; i++) {
    if (i % 5 === 4) await world.remove(`n/k${(i - 1) % 7}`)
    else await world.put(`n/k${i % 7}`, String(i))
  }
  const whole = await new Reader(world.cache, after(1)).drain()
  assert.equal(whole.length, 40)
  world.cache.history.window.shrink(3_000)
  const seen: string[] = []
  while (seen.length < whole.length) {
    const last = seen.length === 0 ? 1 : Number(seen.at(-1)?.split(' ')[1])
    const reader = new Reader(world.cache, after(last))
    await reader.pull()
    seen.push(reader.frames[0] as string)
    await reader.watcher.return()
  }
  assert.deepEqual(seen, whole)
})

test('[A3] below the floor: 410 as an event, then the end', async () => {
  const world = await openWorld({ historyBytesMax: 2_000 })
  for (let i = 0; i < 50; i++) await world.put('a/x', 'v'.repeat(100))
  world.cache.history.window.shrink(Number.POSITIVE_INFINITY)
  const reader = new Reader(world.cache, after(5))
  const [frame, ...rest] = await reader.drain()
  assert.match(frame as string, /^ERROR 410 too old resource version: 5 \(\d+\)$/)
  assert.deepEqual(rest, [])
  assert.equal(reader.ended, true)
  assert.equal(world.cache.watchers.size, 0)
})

test('[A4] entering a selector is ADDED, leaving it DELETED, staying out nothing', async () => {
  const world = await openWorld()
  const selecting = [{ labels: 'app=web' }, { fields: 'spec.nodeName=n1' }, { labels: 'app in (web,api)' }]
  const live = selecting.map((asked) => new Reader(world.cache, after(1), asked))
  for (const reader of live) void reader.drain()
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve))
  await world.put('a/x', { value: 'out' })
  await world.put('a/x', { value: 'in', labels: { app: 'web' }, node: 'n1' })
  await world.put('a/x', { value: 'still', labels: { app: 'web' }, node: 'n1' })
  await world.put('a/x', { value: 'other', labels: { app: 'api' }, node: 'n2' })
  await world.put('a/x', { value: 'back', labels: { app: 'web' }, node: 'n1' })
  await world.remove('a/x')
  await world.put('a/x', { value: 'out again' })
  const expected = ['ADDED 3 a/x in@3', 'MODIFIED 4 a/x still@4', 'DELETED 5 a/x still@5', 'ADDED 6 a/x back@6']
  expected.push('DELETED 7 a/x back@7')
  const either = [...expected.slice(0, 2), 'MODIFIED 5 a/x other@5', 'MODIFIED 6 a/x back@6', 'DELETED 7 a/x back@7']
  // Told live and told from history it is the same story.
  const late = selecting.map((asked) => new Reader(world.cache, after(1), asked))
  for (const readers of [live, late]) {
    const told = await Promise.all(readers.map((reader) => reader.drain()))
    assert.deepEqual(told, [expected, expected, either])
  }
})

test('[A8] a reader that does not read is taken off the queue, holds nothing, and later reads all of it', async () => {
  const world = await openWorld()
  const slow = new Reader(world.cache, after(1))
  const quick = new Reader(world.cache, after(1))
  await world.put('a/x', '0')
  await Promise.all([slow.pull(), quick.pull()])
  await world.put('a/x', '1')
  for (const reader of [slow, quick]) await reader.drain()
  const value = 'v'.repeat(100_000)
  for (let i = 2; i < 60; i++) {
    await world.put('a/x', `${i}${value}`)
    await quick.drain()
  }
  assert.equal(quick.frames.length, 60)
  // The first one waited inside a pull when the burst began, and was given that frame.
  assert.ok(slow.frames.length <= 3)
  assert.deepEqual(await slow.drain(), quick.frames)
})

test('[A2] a list of the state, its closing bookmark and one to count from, and what follows', async () => {
  const world = await openWorld()
  await play(world)
  const items = world.cache.list(filterFor({ namespace: 'a' }))
  const reader = new Reader(world.cache, { kind: 'state', items, closingBookmark: true }, { namespace: 'a' })
  await world.put('a/late', '7')
  await world.put('b/late', '8')
  assert.deepEqual(await reader.drain(), ['ADDED 4 a/x 3@4', 'SYNCED 6', 'BOOKMARK 6', 'ADDED 7 a/late 7@7'])
})

test('an orderly end: what is queued, a bookmark for who asked, then the end', async () => {
  const world = await openWorld()
  const asked = new Reader(world.cache, after(1), {}, true)
  const plain = new Reader(world.cache, after(1))
  await world.put('a/x', '1')
  for (const reader of [asked, plain]) await reader.drain()
  await world.put('a/x', '2')
  await world.put('b/x', '3')
  for (const reader of [asked, plain]) assert.equal(reader.watcher.finish(), 0)
  const frames = ['ADDED 2 a/x 1@2', 'MODIFIED 3 a/x 2@3', 'ADDED 4 b/x 3@4']
  assert.deepEqual(await plain.drain(), frames)
  assert.deepEqual(await asked.drain(), [...frames, 'BOOKMARK 4'])
  assert.ok(asked.ended && plain.ended)
  assert.equal(world.cache.watchers.size, 0)
})

test('a silent young watch without bookmarks is not ended before its first second', async () => {
  const world = await openWorld()
  const reader = new Reader(world.cache, { kind: 'now' })
  await reader.drain()
  assert.equal(reader.watcher.finish(), 1_000)
  world.clock.advance(400)
  assert.equal(reader.watcher.finish(), 600)
  assert.equal(reader.ended, false)
  world.clock.advance(600)
  assert.equal(reader.watcher.finish(), 0)
  await reader.drain()
  assert.equal(reader.ended, true)
})

test('[A8] frames that take work to make are made a few at a time, in turns: the first objects and history alike', async () => {
  const world = await openWorld()
  await play(world)
  for (let i = 0; i < 10; i++) await world.put(`c/n${i}`, String(i))
  const starts: WatchStart[] = [
    { kind: 'state', items: world.cache.all(), closingBookmark: false },
    { kind: 'after', version: 1 },
  ]
  for (const start of starts) {
    let made = 0
    const slow: Form = {
      ...form,
      isLaborious: true,
      frame: (type, item) => {
        made++
        world.clock.advance(3)
        return form.frame(type, item)
      },
    }
    const errorFrame = () => Buffer.from('ERROR\n')
    const watcher = world.cache.watch({ filter: filterFor({}), form: slow, start, bookmarks: false, errorFrame })
    const first = await watcher.next()
    assert.equal(String(first.value).trimEnd().split('\n').length, 2, 'two frames take six milliseconds')
    assert.equal(made, 2, 'nothing is made ahead of the reader')
    let rounds = 0
    const tick = () => {
      rounds++
      if (made < 12) setImmediate(tick)
    }
    setImmediate(tick)
    while (made < 12) await watcher.next()
    assert.ok(rounds >= 4, `${rounds} rounds of the loop`)
    await watcher.return()
  }
})
