/** Bookmarks by the clock, a clock that jumps included. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeClock } from '../base/fakeclock.test-support.ts'
import { after, openWorld, Reader } from './fixture.test-support.ts'

const turn = () => new Promise((resolve) => setImmediate(resolve))

async function watched() {
  const clock = fakeClock()
  const world = await openWorld({ clock })
  const reader = new Reader(world.cache, after(1), {}, true)
  const plain = new Reader(world.cache, after(1))
  const stop = new AbortController()
  const running = world.copy.run(stop.signal)
  await world.put('a/x', '1')
  await Promise.all([reader.drain(), plain.drain()])
  const pass = async (seconds: number) => {
    for (let i = 0; i < seconds; i++) {
      clock.advance(1_000)
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
  return { world, reader, pass, bookmarks, jump: (ms: number) => clock.jump(ms), end, [Symbol.asyncDispose]: end }
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

test('a clock set forward or back changes nothing about bookmarks', async () => {
  await using it = await watched()
  const { pass, bookmarks, jump } = it
  jump(24 * 3_600_000)
  await pass(5)
  assert.equal(bookmarks(), 0)
  await pass(56)
  assert.equal(bookmarks(), 1)
  jump(-48 * 3_600_000)
  await pass(60)
  assert.equal(bookmarks(), 2)
})

test('a clock set back does not keep a silent watch from ending', async () => {
  const { world, jump, end } = await watched()
  const silent = new Reader(world.cache, { kind: 'now' })
  await silent.drain()
  jump(-3_600_000)
  assert.equal(silent.watcher.finish(), 1_000)
  world.clock.advance(1_000)
  await end()
  await silent.drain()
  assert.ok(silent.ended)
})
