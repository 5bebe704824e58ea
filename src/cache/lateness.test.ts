/** Requests that found an interest and open their watch only after its end: they are ended as those before them were. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeClock } from '../base/fakeclock.test-support.ts'
import { silentLog } from '../base/log.ts'
import { openMemory } from '../store/memory.ts'
import { after, bytesOf, plan, Reader, StreamReader } from './fixture.test-support.ts'
import { makeItem } from './item.ts'
import { MirrorCopy } from './mirrorcopy.ts'

async function open() {
  const clock = fakeClock()
  const copy = await MirrorCopy.open({
    store: openMemory({ historyBytesMax: 1 << 20 }),
    log: silentLog,
    clock,
    planOf: () => plan,
    resourceOf: (interest) => interest,
  })
  return { clock, copy, cache: await copy.begin('v1/pods', 10, [makeItem(bytesOf('a/k', 5, { value: 'v' }), 5, plan)]) }
}

test('[A10] a watch that is opened on a copy of another cluster, which was just dropped, ends with 410', async () => {
  const { copy, cache } = await open()
  const early = new Reader(cache, after(10))
  await early.drain()
  await copy.end('v1/pods', 'anew')
  const late = new Reader(cache, after(10))
  for (const reader of [early, late]) {
    assert.match((await reader.drain()).join(), /^ERROR 410 /)
    assert.ok(reader.ended)
  }
  assert.equal(cache.watchers.size, 0)
  await assert.rejects(new StreamReader(cache, after(10)).stream.next(), /too old/)
})

test('[A2] one that is opened on an interest that ended in order ends in order, when its client does not take that for a fault', async () => {
  const { clock, copy, cache } = await open()
  await copy.end('v1/pods', 'over')
  const late = new Reader(cache, after(10))
  assert.deepEqual([await late.drain(), late.ended], [[], false])
  clock.advance(1_000)
  assert.deepEqual([await late.drain(), late.ended], [[], true])
  assert.equal(cache.watchers.size, 0)
  const stream = new StreamReader(cache, after(10))
  await stream.drain()
  assert.ok(stream.ended)
})
