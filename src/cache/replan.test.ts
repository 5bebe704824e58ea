/** A definition changes its selectable fields while one client watches and another writes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { planFields } from '../kube/object.ts'
import { after, openWorld, plan, Reader } from './fixture.test-support.ts'

/** The same fields, and one before them: every place in an item's values is another one now. */
const other = planFields(['spec.extra', ...plan.paths])

test('[A3] new fields end every watch, a fresh silent one too: none stays where events no longer come', async () => {
  const world = await openWorld()
  await world.put('a/x', '1')
  const live = new Reader(world.cache, after(2))
  const unread = new Reader(world.cache, after(2))
  await live.drain()
  world.cache.replan(other)
  await world.put('a/x', '2')
  for (const reader of [live, unread]) {
    await reader.drain()
    assert.ok(reader.ended, 'its client asks again, and then misses nothing')
  }
  assert.equal(world.cache.watchers.size, 0)
})

test('a write that was on its way when the fields changed is read by the new ones', async () => {
  const world = await openWorld()
  const writing = world.put('a/x', { value: '1', node: 'n1' })
  world.cache.replan(other)
  await writing
  assert.deepEqual(world.cache.get('a/x')?.fields, ['', 'n1'])
})

test('[A3] a watch that is ending promises nothing more: no bookmark passes events it will not get', async () => {
  const world = await openWorld()
  await world.put('a/x', '1')
  const reader = new Reader(world.cache, after(2), {}, true)
  await reader.drain()
  // Its pull stays open and is given the first change; the bookmark of the end waits behind it.
  await world.put('a/x', '2')
  await new Promise((resolve) => setImmediate(resolve))
  world.cache.replan(other)
  await world.put('a/x', '3')
  reader.watcher.bookmark(0)
  const told = await reader.drain()
  assert.ok(reader.ended)
  assert.deepEqual(told.slice(-2), ['MODIFIED 3 a/x 2@3', 'BOOKMARK 3'])
})
