/** What a watcher owes its client when its queue overflows: the same events, once each, in a form the client can read. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { after, filterFor, form, openWorld, Reader } from './fixture.test-support.ts'

const large = 'v'.repeat(300_000)

test('[A3] a bookmark at the head of an overflowing queue does not bring back the event before it', async () => {
  const world = await openWorld()
  const reader = new Reader(world.cache, after(1), {}, true)
  await reader.drain()
  await world.put('a/x', '1')
  await reader.drain()
  // Its pull stays open: the next event is given to it, and then it takes nothing.
  await world.put('a/x', '2')
  await new Promise((resolve) => setImmediate(resolve))
  reader.watcher.bookmark(0)
  for (let i = 3; i < 10; i++) await world.put('a/x', `${i}${large}`)
  const versions = (await reader.drain())
    .filter((frame) => !frame.startsWith('BOOKMARK'))
    .map((one) => one.split(' ')[1])
  assert.deepEqual(versions, ['2', '3', '4', '5', '6', '7', '8', '9', '10'])
})

test('[A8] a change that cannot be spelled for one reader ends that stream; writers and other readers go on', async () => {
  const world = await openWorld()
  const frame = () => {
    throw new Error('no such form')
  }
  const errorFrame = () => Buffer.from('ERROR\n')
  const asked = { filter: filterFor({}), start: after(1), bookmarks: false, errorFrame }
  const broken = world.cache.watch({ ...asked, form: { ...form, frame } })
  const sound = new Reader(world.cache, after(1))
  const waiting = broken.next()
  await sound.drain()
  assert.equal(await world.put('a/x', '1'), 2)
  assert.deepEqual(await waiting, { value: undefined, done: true })
  assert.deepEqual(await sound.drain(), ['ADDED 2 a/x 1@2'])
})

test('a form that says something only once is told when its frames were thrown away', async () => {
  const world = await openWorld()
  let said = false
  const once = {
    ...form,
    frame: () => {
      const text = said ? 'row' : 'columns, row'
      said = true
      return Buffer.from(`${text}${large}\n`)
    },
    dropped: () => {
      said = false
    },
  }
  const errorFrame = () => Buffer.from('ERROR\n')
  const asked = { filter: filterFor({}), start: after(1), bookmarks: true, errorFrame }
  const watcher = world.cache.watch({ ...asked, form: once })
  assert.equal(String((await watcher.next()).value), 'BOOKMARK 1\n')
  for (let i = 0; i < 10; i++) await world.put('a/x', String(i))
  assert.match(String((await watcher.next()).value), /^columns, row/)
})
