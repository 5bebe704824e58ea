/** Bookmarks by the clock, a clock that jumps included. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeClock } from '../base/clock.ts'
import { after, openWorld, Reader } from './fixture.test-support.ts'

const turn = () => new Promise((resolve) => setImmediate(resolve))

async function watched() {
  let skewMs = 0
  const steady = fakeClock()
  const clock = { ...steady, now: () => steady.now() + skewMs }
  const world = await openWorld({ clock })
  const reader = new Reader(world.cache, after(1), {}, true)
  const plain = new Reader(world.cache, after(1))
  const stop = new AbortController()
  const running = world.copy.run(stop.signal)
  await world.put('a/x', '1')
  await Promise.all([reader.drain(), plain.drain()])
  const pass = async (seconds: number) => {
    for (let i = 0; i < seconds; i++) {
      steady.advance(1_000)
      await turn()
    }
    await reader.drain()
  }
  const bookmarks = () => reader.frames.filter((frame) => frame.startsWith('BOOKMARK')).length
  const end = async () => {
    stop.abort()
    await running
    await Promise.all([reader.drain(), plain.drain()])
    assert.ok(reader.ended && plain.ended)
    assert.ok(plain.frames.every((frame) => !frame.startsWith('BOOKMARK')))
  }
  const jump = (ms: number) => {
    skewMs += ms
  }
  return { world, reader, pass, bookmarks, jump, end }
}

test('a bookmark a minute for who asked, with the newest version of the whole store, and one at the end', async () => {
  const { world, reader, pass, bookmarks, end } = await watched()
  await pass(59)
  assert.equal(bookmarks(), 0)
  await pass(2)
  assert.equal(bookmarks(), 1)
  await world.copy.put('/other', 'k', () => Buffer.from('{"metadata":{"name":"k"}}'))
  await pass(60)
  assert.equal(bookmarks(), 2)
  assert.equal(reader.frames.at(-1), 'BOOKMARK 3')
  await end()
  assert.equal(bookmarks(), 3)
})

test('a clock set forward gives one bookmark, not a flood; set back it delays none by more than its jump', async () => {
  const { pass, bookmarks, jump, end } = await watched()
  jump(24 * 3_600_000)
  await pass(5)
  assert.equal(bookmarks(), 1)
  await pass(60)
  assert.equal(bookmarks(), 2)
  jump(-24 * 3_600_000)
  await pass(61)
  assert.equal(bookmarks(), 3, 'a clock set back must not silence bookmarks for a day')
  await end()
})

test('a clock set back does not keep a silent watch from ending', async () => {
  const { world, jump, end } = await watched()
  const silent = new Reader(world.cache, { kind: 'now' })
  await silent.drain()
  jump(-3_600_000)
  assert.ok(silent.watcher.finish() <= 1_000)
  jump(3_600_000 + 1_000)
  await end()
})
