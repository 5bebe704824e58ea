/** A client that saw more elsewhere than the copy has, and what the copy may tell it once it has passed it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeClock } from '../base/fakeclock.test-support.ts'
import { silentLog } from '../base/log.ts'
import { openMemory } from '../store/memory.ts'
import { after, bytesOf, plan, Reader } from './fixture.test-support.ts'
import { Intake } from './intake.ts'
import { makeItem } from './item.ts'
import { MirrorCopy } from './mirrorcopy.ts'

const name = 'v1/pods'
const web = { labels: 'app=web' }

function item(key: string, version: number, app: string) {
  return makeItem(bytesOf(key, version, { value: `v${version}`, labels: { app } }), version, plan)
}

function opened(store = openMemory({ historyBytesMax: 1 << 30 })) {
  return MirrorCopy.open({ store, clock: fakeClock(), log: silentLog, planOf: () => plan })
}

/** At 10 there is n/a, which is no web. */
async function begun() {
  const copy = await opened()
  const cache = await copy.begin(name, 10, [item('n/a', 5, 'api')])
  return { cache, intake: new Intake({ copy, cache }) }
}

/** The same after a start, where n/a is web. */
async function started(store: ReturnType<typeof openMemory>) {
  await (await opened(store)).begin(name, 10, [item('n/a', 5, 'web')])
  const copy = await opened(store)
  const cache = copy.caches.get(name)
  assert.ok(cache !== undefined)
  return { cache, intake: new Intake({ copy, cache }) }
}

test('[A3] a client ahead of the copy is told 410 where a list passes it: what entered its selector and left it again was seen by it alone', async () => {
  const { cache, intake } = await begun()
  // Elsewhere n/a became web at 20, which the client has, and api again at 25.
  const client = new Reader(cache, after(20), web)
  assert.deepEqual(await client.drain(), [])
  await intake.differ({ version: 30, changed: [item('n/a', 25, 'api')], gone: [] })
  assert.deepEqual(await client.drain(), ['ERROR 410 too old resource version: 20 (30)'])
  assert.ok(client.ended)
})

test('[A3] so is one without a selector, which may have seen what was made and deleted since, even at a version of the gap', async () => {
  const { cache, intake } = await begun()
  // Elsewhere n/ghost was made at 15 and deleted at 25; the client has it.
  const client = new Reader(cache, after(20))
  assert.deepEqual(await client.drain(), [])
  await intake.differ({ version: 30, changed: [item('n/b', 20, 'web')], gone: ['n/a'] })
  assert.deepEqual(await client.drain(), ['ERROR 410 too old resource version: 20 (30)'])
})

test('[A3] a client ahead of the copy hears what comes after its version where changes pass it, or a list that finds nothing', async () => {
  const { cache, intake } = await begun()
  const passed = new Reader(cache, after(20), web)
  const quiet = new Reader(cache, after(26))
  for (const client of [passed, quiet]) assert.deepEqual(await client.drain(), [])
  intake.put(item('n/a', 20, 'web'))
  intake.put(item('n/a', 25, 'api'))
  await intake.settled()
  await intake.differ({ version: 30, changed: [], gone: [] })
  intake.put(item('n/c', 31, 'web'))
  await intake.settled()
  assert.deepEqual(await passed.drain(), ['DELETED 25 n/a v20@25', 'ADDED 31 n/c v31@31'])
  assert.deepEqual(await quiet.drain(), ['ADDED 31 n/c v31@31'])
})

test('[A3] a client that comes at a version which the gap passed over gets 410, one that was told a part of the gap hears the rest', async () => {
  const { cache, intake } = await begun()
  await intake.differ({ version: 30, changed: [item('n/b', 20, 'web'), item('n/c', 25, 'web')], gone: ['n/a'] })
  const from = (version: number) => new Reader(cache, after(version)).drain()
  for (const version of [11, 19, 21, 29])
    assert.deepEqual(await from(version), [`ERROR 410 too old resource version: ${version} (30)`])
  assert.deepEqual(await from(20), ['DELETED 20 n/a v5@20', 'ADDED 25 n/c v25@25'])
  assert.deepEqual(await from(25), ['DELETED 25 n/a v5@25'])
  assert.deepEqual(await from(30), [])
})

test('[A2] after a start a client is not taken for one of elsewhere: a bookmark that it was given need not be on the disk', async () => {
  const store = openMemory({ historyBytesMax: 1 << 30 })
  const { cache, intake } = await started(store)
  const client = new Reader(cache, after(20))
  assert.deepEqual(await client.drain(), [])
  await intake.differ({ version: 30, changed: [item('n/b', 25, 'web')], gone: ['n/a'] })
  assert.deepEqual(await client.drain(), ['DELETED 20 n/a v5@20', 'ADDED 25 n/b v25@25'])
  const again = (await opened(store)).caches.get(name)
  assert.ok(again !== undefined)
  assert.deepEqual(await new Reader(again, after(20)).drain(), client.frames, 'nor after the next start')
  // The next gap is one like any other.
  const later = new Reader(cache, after(35))
  assert.deepEqual(await later.drain(), [])
  await intake.differ({ version: 40, changed: [], gone: ['n/b'] })
  assert.deepEqual(await later.drain(), ['ERROR 410 too old resource version: 35 (40)'])
})

test('[A2, A3] where a list is more than history holds, a client that was ahead of the copy hears all of it, deletions too, or 410', async () => {
  const { cache, intake } = await started(openMemory({ historyBytesMax: 600 }))
  const waiting = new Reader(cache, after(20))
  assert.deepEqual(await waiting.drain(), [])
  const changed = Array.from({ length: 20 }, (_, at) => item(`n/b${at}`, 21 + at, 'web'))
  await intake.differ({ version: 50, changed, gone: ['n/a'] })
  assert.ok(cache.history.floor > 20, 'the list is still on the disk')
  const added = changed.map(({ key, version }) => `ADDED ${version} ${key} v${version}@${version}`)
  assert.deepEqual(await waiting.drain(), ['DELETED 20 n/a v5@20', ...added])
  // In memory nothing is left of it either.
  const late = new Reader(cache, after(20))
  cache.history.window.shrink(Number.POSITIVE_INFINITY)
  assert.deepEqual(await late.drain(), ['ERROR 410 too old resource version: 20 (50)'])
})
