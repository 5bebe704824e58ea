/** Two numbers: how far the cloud's changes are in, and the label that clients are shown. Here the label is ahead. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeClock } from '../base/fakeclock.test-support.ts'
import { silentLog } from '../base/log.ts'
import { seeded } from '../base/seeded.test-support.ts'
import { openMemory } from '../store/memory.ts'
import type { SharedBody, Store } from '../store/store.ts'
import type { Cache } from './cache.ts'
import { labelRecordKind } from './cloudstate.ts'
import { differ } from './differ.ts'
import { Event } from './event.ts'
import { after, bytesOf, plan, Reader } from './fixture.test-support.ts'
import { Intake } from './intake.ts'
import { type Item, makeItem } from './item.ts'
import { MirrorCopy } from './mirrorcopy.ts'

const name = 'v1/pods'

function item(key: string, version: number, value = `v${version}`, uid = 'u'): Item {
  const bytes = bytesOf(key, version, { value })
  return makeItem(Buffer.from(String(bytes).replace('"metadata":{', `"metadata":{"uid":"${uid}",`)), version, plan)
}

function open(store: Store): Promise<MirrorCopy> {
  return MirrorCopy.open({ store, clock: fakeClock(), log: silentLog, planOf: () => plan })
}

async function begun(items: readonly Item[], version: number) {
  const store = openMemory({ historyBytesMax: 1 << 30 })
  const copy = await open(store)
  const cache = await copy.begin(name, version, items)
  return { store, copy, cache, intake: new Intake({ copy, cache }) }
}

/** What accepting a write offline comes to here: an entry under a label that the cloud does not know. */
async function writtenLocally(copy: MirrorCopy, cache: Cache, key: string, label: number): Promise<void> {
  const { cloud } = cache
  const change = { key, version: 0, item: cloud.peek(key), label, shown: item(key, label, 'local') }
  const position = ++cache.lastPosition
  const records = cloud.records([change], cloud.version, label)
  await copy.commit({
    changes: [{ interest: name, key, version: label, kind: 'put', position, body: change.shown.bytes }],
    records,
    synced: true,
  })
  cloud.wrote(records)
  cloud.note(change)
  cache.publish(new Event({ position, version: label, key, item: change.shown, previous: cache.peek(key) }))
  cache.progress.advance(label)
}

const shown = (cache: Cache) => cache.all().map((one) => `${one.key}@${one.version}`)
const beneath = (cache: Cache) => cache.cloud.all().map((one) => `${one.key}@${one.version}`)

test('[A3] changes of the cloud below the label come in and are told under labels that rise; above it under their own', async () => {
  const { copy, cache, intake } = await begun([item('n/a', 3), item('n/b', 4)], 100)
  const live = new Reader(cache, after(100), {}, true)
  await live.drain()
  await writtenLocally(copy, cache, 'n/a', 110)
  intake.put(item('n/b', 103))
  intake.remove('n/b', 104)
  intake.reach(105)
  await intake.settled()
  assert.deepEqual([cache.version, cache.cloud.version, intake.version], [112, 105, 105])
  intake.put(item('n/c', 108))
  intake.put(item('n/d', 120))
  await intake.settled()
  assert.deepEqual([cache.version, cache.cloud.version], [120, 120])
  assert.deepEqual(shown(cache), ['n/a@110', 'n/c@113', 'n/d@120'])
  assert.deepEqual(beneath(cache), ['n/a@3', 'n/c@108', 'n/d@120'])
  const told = ['MODIFIED 110 n/a local@110', 'MODIFIED 111 n/b v103@111', 'DELETED 112 n/b v103@112']
  const later = ['ADDED 113 n/c v108@113', 'ADDED 120 n/d v120@120']
  assert.deepEqual(
    (await live.drain()).filter((line) => !line.startsWith('BOOKMARK')),
    [...told, ...later],
  )
  assert.deepEqual(await new Reader(cache, after(111)).drain(), [told[2], ...later])
  // Its next version is the cloud's own again.
  intake.put(item('n/c', 121))
  await intake.settled()
  assert.deepEqual([cache.get('n/c')?.version, cache.cloud.peek('n/c')?.version], [121, 121])
})

test('[A3] a list below the label comes in as a gap above it, with its deletions and changes, and is compared by the cloud’s versions', async () => {
  const { copy, cache, intake } = await begun([item('n/a', 3), item('n/b', 4), item('n/c', 5)], 100)
  await writtenLocally(copy, cache, 'n/a', 110)
  const found = new Map([item('n/a', 3), item('n/c', 104), item('n/d', 103)].map((one) => [one.key, one]))
  const { repaired, ...difference } = differ(cache.cloud, found, true)
  assert.deepEqual(
    [repaired, difference.gone, difference.changed.map(({ key }) => key)],
    [[], ['n/b'], ['n/c', 'n/d']],
    'what a local write stands on is the same as before',
  )
  await intake.differ({ version: 106, ...difference })
  assert.deepEqual([cache.version, cache.cloud.version], [112, 106])
  assert.deepEqual(shown(cache), ['n/a@110', 'n/c@112', 'n/d@111'])
  const all = ['DELETED 110 n/b v4@110', 'ADDED 111 n/d v103@111', 'MODIFIED 112 n/c v104@112']
  assert.deepEqual(await new Reader(cache, after(110)).drain(), all)
  assert.deepEqual(await new Reader(cache, after(111)).drain(), ['DELETED 111 n/b v4@111', all[2]])
  // Only deletions: they too need a label above the one that clients have.
  await intake.differ({ version: 107, changed: [], gone: ['n/d'] })
  assert.deepEqual([cache.version, cache.cloud.version], [113, 107])
  assert.deepEqual(await new Reader(cache, after(112)).drain(), ['DELETED 112 n/d v103@112'])
  await assert.rejects(intake.differ({ version: 107, changed: [], gone: ['n/c'] }), /a list at 107 differs/)
})

test('[A2] both numbers, and what lies beneath, survive a restart; none is written down once they are one again', async () => {
  const { store, copy, cache, intake } = await begun([item('n/a', 3), item('n/b', 4)], 100)
  await writtenLocally(copy, cache, 'n/a', 110)
  intake.put(item('n/b', 103))
  await intake.settled()
  intake.reach(106)
  await intake.settled()
  const again = (await open(store)).caches.get(name) as Cache
  assert.deepEqual([again.version, again.cloud.version], [111, 106])
  assert.deepEqual(
    [shown(again), beneath(again)],
    [
      ['n/a@110', 'n/b@111'],
      ['n/a@3', 'n/b@103'],
    ],
  )
  assert.equal(String(again.cloud.peek('n/b')?.bytes), String(item('n/b', 103).bytes))
  assert.deepEqual(await new Reader(again, after(110)).drain(), ['MODIFIED 111 n/b v103@111'])
  intake.reach(115)
  await intake.settled()
  const caughtUp = (await open(store)).caches.get(name) as Cache
  assert.deepEqual([caughtUp.version, caughtUp.cloud.version, beneath(caughtUp)], [115, 115, ['n/a@3', 'n/b@103']])
  intake.put(item('n/a', 116))
  intake.put(item('n/b', 117))
  await intake.settled()
  assert.deepEqual(await store.records(labelRecordKind), [])
  intake.put(item('n/b', 118))
  await intake.settled()
  const last = (await open(store)).caches.get(name) as Cache
  assert.deepEqual([last.version, last.cloud.version, beneath(last)], [118, 118, ['n/a@116', 'n/b@118']])
})

test('what is written down of the two numbers goes with the interest', async () => {
  const { store, copy, cache } = await begun([item('n/a', 3)], 100)
  await writtenLocally(copy, cache, 'n/a', 110)
  const anew = await copy.begin(name, 50, [item('n/a', 40)])
  assert.deepEqual([anew.version, anew.cloud.version, beneath(anew)], [50, 50, ['n/a@40']])
  assert.deepEqual(await store.records(labelRecordKind), [])
})

test('[D4] a doubted interest that the cloud has no newer version of is restated at its label', async () => {
  const { copy, cache, intake } = await begun([item('n/a', 3), item('n/b', 4)], 100)
  await writtenLocally(copy, cache, 'n/b', 110)
  cache.isDoubted = true
  await intake.differ({ version: 100, changed: [item('n/a', 90)], gone: ['n/b'] })
  assert.deepEqual([cache.version, cache.cloud.version, cache.history.floor], [110, 100, 110])
  assert.deepEqual([shown(cache), beneath(cache)], [['n/a@90'], ['n/a@90']])
})

test('[D5] what lies beneath holds its bytes, and lets go of them with its next version or with the interest', async () => {
  const store: Store = openMemory({ historyBytesMax: 1 << 30 })
  const brought = new Set<SharedBody>()
  const released = new Set<SharedBody>()
  store.release = (shared) => void released.add(shared)
  const copy = await MirrorCopy.open({
    ...{ store, clock: fakeClock(), log: silentLog, planOf: () => plan },
    resourceOf: () => 'pods',
  })
  const both = await Promise.all([name, 'v1/pods@n'].map((one) => copy.begin(one, 100, [])))
  const intakes = both.map((cache) => new Intake({ copy, cache }))
  both[0]?.progress.advance(110)
  const put = async (key: string, version: number) => {
    for (const intake of intakes) intake.put(item(key, version))
    await Promise.all(intakes.map((intake) => intake.settled()))
    for (const cache of both) brought.add(cache.cloud.peek(key)?.shared as SharedBody)
  }
  await put('n/a', 103)
  await put('n/b', 104)
  const [first, second] = both.map((cache) => cache.cloud.peek('n/a'))
  assert.equal(first?.bytes, second?.bytes, 'beneath a label they are shared as anywhere')
  await put('n/a', 105)
  await put('n/a', 120)
  assert.equal(brought.size, 4)
  for (const { interest } of both) await copy.end(interest, 'over')
  assert.deepEqual(
    [...brought].filter((one) => !released.has(one)),
    [],
  )
})

async function simulate(seed: number): Promise<void> {
  const pick = seeded(seed)
  const keys = ['n/a', 'n/b', 'n/c', 'n/d']
  const world = await begun([], 100)
  let { copy, cache, intake } = world
  const cloud = new Map<string, Item>()
  let newest = 100
  const client = { at: 100, held: new Map<string, string>() }
  const hear = async () => {
    const reader = new Reader(cache, after(client.at), {}, pick(2) === 0)
    for (const line of await reader.drain()) {
      const [type, version, key, content] = line.split(' ') as [string, string, string, string]
      assert.ok(Number(version) >= client.at, `seed ${seed}: ${line} after ${client.at}`)
      client.at = Number(version)
      if (type === 'DELETED') client.held.delete(key)
      else if (type !== 'BOOKMARK') client.held.set(key, content)
    }
    await reader.watcher.return()
  }
  for (let step = 0; step < 60; step++) {
    const key = keys[pick(keys.length)] as string
    const what = pick(10)
    if (what < 4) {
      cloud.set(key, item(key, ++newest))
      if (pick(3) > 0) intake.put(cloud.get(key) as Item)
      else await compare()
    } else if (what < 6 && cloud.delete(key)) {
      newest++
      if (pick(3) > 0) intake.remove(key, newest)
      else await compare()
    } else if (what === 6) intake.reach(++newest)
    else if (what === 7 && cloud.has(key)) {
      await intake.settled()
      await writtenLocally(copy, cache, key, cache.version + 1 + pick(6))
      newest += pick(3)
    } else if (what === 8) {
      await intake.settled()
      copy = await open(world.store)
      cache = copy.caches.get(name) as Cache
      intake = new Intake({ copy, cache })
    } else await intake.settled().then(hear)
    await intake.settled()
    assert.deepEqual(
      beneath(cache),
      [...cloud.values()].map((one) => `${one.key}@${one.version}`).sort(),
      `seed ${seed}, step ${step}`,
    )
  }
  async function compare(): Promise<void> {
    await intake.settled()
    const { repaired: _, ...difference } = differ(cache.cloud, cloud, true)
    await intake.differ({ version: newest, ...difference })
  }
  await hear()
  const held = [...client.held].map(([key, content]) => `${key} ${content}`).sort()
  const served = cache.all().map((one) => `${one.key} ${JSON.parse(String(one.bytes)).value}@${one.version}`)
  assert.deepEqual(held, served, `seed ${seed}`)
}

test('[A3] whatever comes while the label is ahead, no client’s version falls, and what it resumed to is what is shown', async () => {
  for (let seed = 1; seed <= 15; seed++) await simulate(seed)
})
