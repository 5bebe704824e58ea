import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeClock } from '../base/fakeclock.test-support.ts'
import { silentLog } from '../base/log.ts'
import { planFields } from '../kube/object.ts'
import { openMemory } from '../store/memory.ts'
import { type Batch, type LoadedInterest, type Store, StoreRefused } from '../store/store.ts'
import type { Cache } from './cache.ts'
import { after, bytesOf, plan, Reader } from './fixture.test-support.ts'
import { Intake } from './intake.ts'
import { type Item, makeItem } from './item.ts'
import { MirrorCopy } from './mirrorcopy.ts'

const name = 'v1/pods'

function item(key: string, version: number, value = `v${version}`, uid = 'u'): Item {
  const bytes = bytesOf(key, version, { value })
  return makeItem(Buffer.from(String(bytes).replace('"metadata":{', `"metadata":{"uid":"${uid}",`)), version, plan)
}

/** A disk whose commits wait for the test, or are refused. */
class Disk {
  readonly inner = openMemory({ historyBytesMax: 1 << 30 })
  refusing = false
  held: (() => void)[] | undefined
  commits: Batch[] = []

  get store(): Store {
    const { inner } = this
    return {
      load: inner.load.bind(inner),
      release: (shared) => inner.release(shared),
      commit: async (batch) => {
        if (this.held !== undefined) await new Promise<void>((resolve) => this.held?.push(resolve))
        if (this.refusing) throw new StoreRefused('no room', true)
        this.commits.push(batch)
        await inner.commit(batch)
      },
      history: (interest, cursor, limit) => inner.history(interest, cursor, limit),
      floor: (interest) => inner.floor(interest),
      mendFrom: (held) => inner.mendFrom(held),
      records: (kind) => inner.records(kind),
      record: (kind, key) => inner.record(kind, key),
      figures: inner.figures,
      close: async () => {},
    }
  }
}

async function open(disk: Disk, lost = 0): Promise<MirrorCopy> {
  const parts = { store: disk.store, clock: fakeClock(), log: silentLog, planOf: () => plan, lostOf: () => lost }
  return await MirrorCopy.open(parts)
}

async function begun(items: readonly Item[] = [], version = 10, disk = new Disk()) {
  const copy = await open(disk)
  const cache = await copy.begin(name, version, items)
  return { copy, cache, disk, intake: new Intake({ copy, cache }) }
}

const keys = (cache: Cache) => cache.all().map((one) => `${one.key}@${one.version}`)
const turn = () => new Promise((resolve) => setImmediate(resolve))

test('[A1] nothing of a first sync is there before all of it is committed, and a cut one leaves nothing', async () => {
  const disk = new Disk()
  const copy = await open(disk)
  disk.held = []
  const beginning = copy.begin(name, 10, [item('a/k', 3)])
  for (let commit = 0; commit < 2; commit++) {
    await turn()
    assert.equal(copy.caches.size, 0)
    disk.held.shift()?.()
  }
  await turn()
  assert.equal(copy.caches.size, 0)
  // The process ends here: the seeds are on the disk, the word that they are all is not.
  const again = await open(Object.assign(new Disk(), { inner: disk.inner }))
  assert.equal(again.caches.size, 0)
  assert.deepEqual((await disk.inner.load()).interests, [])
  void beginning
})

test('[D1] a change is published after its commit, and what comes meanwhile shares the next one', async () => {
  const { cache, intake, disk } = await begun()
  disk.commits = []
  disk.held = []
  intake.put(item('a/k1', 11))
  await turn()
  for (const version of [12, 13, 14]) intake.put(item(`a/k${version}`, version))
  assert.deepEqual([keys(cache), cache.version], [[], 10])
  disk.held.shift()?.()
  await turn()
  assert.deepEqual([keys(cache), cache.version], [['a/k1@11'], 11])
  disk.held.shift()?.()
  await intake.settled()
  assert.deepEqual([cache.size, cache.version], [4, 14])
  assert.deepEqual(
    disk.commits.map(({ changes }) => changes.length),
    [1, 3],
  )
})

test('[D3] after a refusal nothing that follows counts: neither a change nor a bookmark makes a hole', async () => {
  const { copy, cache, intake, disk } = await begun([item('a/k', 5)])
  disk.refusing = true
  intake.put(item('a/k', 11))
  await assert.rejects(intake.settled())
  disk.refusing = false
  assert.throws(() => intake.reach(20))
  assert.throws(() => intake.put(item('a/k2', 21)))
  await turn()
  assert.deepEqual([keys(cache), cache.version], [['a/k@5'], 10])
  // Reads go on, and the next watch brings it all again.
  const next = new Intake({ copy, cache })
  next.put(item('a/k', 11))
  next.reach(20)
  await next.settled()
  assert.deepEqual([keys(cache), cache.version], [['a/k@11'], 20])
})

test('a removal of what is not there changes nothing; the versions go on', async () => {
  const { cache, intake, disk } = await begun()
  intake.remove('a/k', 12)
  await intake.settled()
  assert.equal(cache.version, 12)
  assert.equal(disk.inner.figures.historyBytes, 0)
})

/** A reader that is cut after so many frames and comes back at the version of the last one it was given. */
async function cutAfter(cache: Cache, from: number, known: ReadonlySet<string>, cut: number): Promise<Set<string>> {
  const state = new Set(known)
  const apply = (frame: string) => {
    const [type = '', version = '', key = ''] = frame.split(' ')
    if (type === 'ADDED' || type === 'MODIFIED') state.add(key)
    if (type === 'DELETED') state.delete(key)
    return Number(version)
  }
  const first = new Reader(cache, after(from), {}, true)
  await first.drain()
  const heard = first.frames.slice(0, cut)
  let last = from
  for (const frame of heard) {
    const version = apply(frame)
    assert.ok(version >= last, `${frame} after ${last}`)
    last = version
  }
  await first.watcher.return()
  const second = new Reader(cache, after(last), {}, true)
  for (const frame of await second.drain()) {
    assert.ok(!frame.startsWith('ERROR'), frame)
    assert.ok(apply(frame) >= last, `${frame} after ${last}`)
  }
  await second.watcher.return()
  return state
}

test('[A2] [A3] a client cut after every event of a 200-object difference ends up right', async () => {
  const before = Array.from({ length: 150 }, (_, i) => item(`a/k${i}`, 5 + i))
  const { cache, intake, disk } = await begun(before, 200)
  const known = new Set(before.map((one) => one.key))
  // 70 are gone, 30 were made again, 50 changed, 50 are new: 200 deletions and changes of objects.
  const gone = before.slice(0, 100).map((one) => one.key)
  const again = before.slice(70, 100).map((one, i) => item(one.key, 300 + 3 * i, 'again', 'u2'))
  const changed = before.slice(100).map((one, i) => item(one.key, 301 + 3 * i, 'changed'))
  const added = Array.from({ length: 50 }, (_, i) => item(`b/n${i}`, 302 + 3 * i))
  await intake.differ({ version: 500, changed: [...again, ...changed, ...added], gone })
  const right = new Set(cache.all().map((one) => one.key))
  assert.equal(right.size, 130)
  const frames = 230
  const check = async (from: Cache) => {
    const cuts = Array.from({ length: frames + 1 }, async (_, cut) => {
      assert.deepEqual(await cutAfter(from, 200, known, cut), right, `cut after ${cut}`)
    })
    await Promise.all(cuts)
  }
  const whole = new Reader(cache, after(200))
  assert.equal((await whole.drain()).length, frames)
  await check(cache)
  // The same from the disk, after a restart.
  await check((await open(disk)).caches.get(name) as Cache)
})

test('[A3] a crash right after a difference: the next one begins where that one ended, and hides none of it', async () => {
  const before = ['a/k1', 'a/k2', 'a/k3'].map((key) => item(key, 5))
  const { cache, intake, disk } = await begun(before, 10)
  await intake.differ({ version: 20, changed: [], gone: ['a/k1', 'a/k2'] })
  assert.equal(cache.version, 20)
  const copy = await open(disk)
  const reopened = copy.caches.get(name) as Cache
  assert.equal(reopened.version, 20)
  await new Intake({ copy, cache: reopened }).differ({ version: 30, changed: [], gone: ['a/k3'] })
  // It was cut after the first deletion, which bears the label 10.
  const reader = new Reader(reopened, after(10))
  const deleted = (await reader.drain()).map((frame) => frame.split(' ')[2])
  assert.deepEqual(deleted, ['a/k1', 'a/k2', 'a/k3'])
})

test('[A3] a watch that is up to date but has not begun to read hears of the difference that comes first', async () => {
  const { cache, intake } = await begun([item('a/k1', 5), item('a/k2', 6)], 10)
  const reader = new Reader(cache, after(10))
  const elsewhere = new Reader(cache, after(15))
  await elsewhere.drain()
  await intake.differ({ version: 15, changed: [], gone: ['a/k1'] })
  await intake.differ({ version: 20, changed: [], gone: ['a/k2'] })
  const heard = async (one: Reader) => (await one.drain()).map((frame) => frame.split(' ').slice(0, 3).join(' '))
  assert.deepEqual(await heard(reader), ['DELETED 10 a/k1', 'DELETED 15 a/k2'])
  assert.deepEqual(await heard(elsewhere), ['DELETED 15 a/k2'])
})

test('a list that is no newer and yet differs is not believed: what happens next would be lost', async () => {
  const { cache, intake } = await begun([item('a/k', 5)], 10)
  await assert.rejects(intake.differ({ version: 10, changed: [], gone: ['a/k'] }))
  assert.deepEqual([keys(cache), cache.version], [['a/k@5'], 10])
  await intake.differ({ version: 10, changed: [], gone: [] })
})

test('[A2] objects put back to older versions: each comes with a bookmark, and a cut anywhere resumes', async () => {
  const before = ['a/k1', 'a/k2', 'a/k3'].map((key, i) => item(key, 5 + i))
  const { cache, intake, disk } = await begun(before, 10)
  const changed = ['a/k1', 'a/k2', 'a/k3'].map((key, i) => item(key, 2 + i, 'old'))
  const live = new Reader(cache, after(10), {}, true)
  await live.drain()
  await intake.differ({ version: 1_000, changed, gone: [] })
  const expected = changed.flatMap((one) => [`MODIFIED ${one.version} ${one.key} old@${one.version}`, 'BOOKMARK 10'])
  assert.deepEqual((await live.drain()).slice(1), [...expected, 'BOOKMARK 1000'])
  const reopened = (await open(disk)).caches.get(name) as Cache
  assert.deepEqual(keys(reopened), ['a/k1@2', 'a/k2@3', 'a/k3@4'])
  const later = new Reader(reopened, after(10), {}, true)
  assert.deepEqual((await later.drain()).slice(0, 6), expected)
})

test('[D4] a damaged object that is found again is put in place, and nobody hears of it', async () => {
  const { cache: _, disk } = await begun([item('a/k1', 5), item('a/k2', 6)], 10)
  const damaged: Store = {
    ...disk.store,
    load: (async (make: (name: string, object: unknown) => unknown) => {
      const loaded = await disk.inner.load(make as never)
      const [only] = loaded.interests as unknown as LoadedInterest<Item>[]
      const objects = only?.objects.filter((one) => one.key !== 'a/k1')
      return { ...loaded, interests: [{ ...only, objects, corrupt: ['a/k1'] }] }
    }) as unknown as Store['load'],
  }
  const parts = { store: damaged, clock: fakeClock(), log: silentLog, planOf: () => plan }
  const copy = await MirrorCopy.open(parts)
  const cache = copy.caches.get(name) as Cache
  assert.throws(() => cache.get('a/k1'))
  const reader = new Reader(cache, after(10))
  await reader.drain()
  await new Intake({ copy, cache }).repair([item('a/k1', 5)])
  assert.equal(cache.get('a/k1')?.version, 5)
  assert.deepEqual([[...cache.corrupt], await reader.drain()], [[], []])
  assert.equal((await disk.inner.load()).interests[0]?.objects.length, 2)
})

/** The copy after a start that found part of its log lost. */
async function doubted(disk: Disk): Promise<{ copy: MirrorCopy; cache: Cache }> {
  const load = (async (make: (name: string, object: unknown) => unknown) => {
    const loaded = await disk.inner.load(make as never)
    return { ...loaded, interests: loaded.interests.map((one) => ({ ...one, isDoubted: true })) }
  }) as unknown as Store['load']
  const parts = { store: { ...disk.store, load }, clock: fakeClock(), log: silentLog, planOf: () => plan }
  const copy = await MirrorCopy.open(parts)
  return { copy, cache: copy.caches.get(name) as Cache }
}

test('[D4] what was lost of a log comes as a difference, and no watch has to list again', async () => {
  const { disk } = await begun([item('a/k1', 5), item('a/k2', 6)], 10)
  const { copy, cache } = await doubted(disk)
  assert.equal(cache.isDamaged, true)
  await new Intake({ copy, cache }).differ({
    version: 20,
    changed: [item('a/k1', 8), item('a/k3', 15)],
    gone: ['a/k2'],
  })
  assert.equal(cache.isDamaged, false)
  assert.deepEqual(disk.commits.at(-1)?.interests, [{ interest: name, synced: 20, sound: true }])
  const reader = new Reader(cache, after(12))
  assert.deepEqual(
    (await reader.drain()).map((line) => line.split(' ').slice(0, 3).join(' ')),
    ['DELETED 12 a/k2', 'ADDED 15 a/k3'],
  )
})

test('[D4] where the cloud has no newer version to tell it under, what was lost is put in place and older watches list again', async () => {
  const { disk } = await begun([item('a/k1', 5), item('a/k2', 6)], 10)
  const { copy, cache } = await doubted(disk)
  await new Intake({ copy, cache }).differ({ version: 10, changed: [item('a/k1', 8)], gone: ['a/k2'] })
  assert.deepEqual([keys(cache), cache.isDamaged, cache.history.floor], [['a/k1@8'], false, 10])
  const again = (await open(Object.assign(new Disk(), { inner: disk.inner }))).caches.get(name) as Cache
  assert.deepEqual(keys(again), ['a/k1@8'])
})

test('a change under way while other fields become selectable is read anew', async () => {
  const { cache, intake, disk } = await begun()
  disk.held = []
  intake.put(makeItem(bytesOf('a/k', 11, { value: 'v', node: 'n1' }), 11, plan))
  await turn()
  cache.replan(planFields(['value', 'spec.nodeName']))
  disk.held.shift()?.()
  await intake.settled()
  assert.deepEqual(cache.get('a/k')?.fields, ['v', 'n1'])
})

test('[A2] after a restore, how far it has come is written before it is told, until the lost versions are passed', async () => {
  const disk = new Disk()
  const copy = await open(disk, 100)
  const cache = await copy.begin(name, 50, [])
  const intake = new Intake({ copy, cache })
  const synced = async () => (await disk.inner.load()).interests[0]?.synced
  intake.reach(60)
  await intake.settled()
  assert.deepEqual([cache.version, await synced()], [60, 60])
  await intake.differ({ version: 70, changed: [], gone: [] })
  assert.deepEqual([cache.version, await synced()], [70, 70])
  intake.reach(101)
  await intake.settled()
  intake.reach(200)
  await intake.settled()
  assert.deepEqual([cache.version, await synced()], [200, 101])
})

test('[A3] a watch that was opened inside a gap which is forgotten before it is read hears all of it from memory or gets 410, and never the changes without the deletions', async () => {
  const { copy, cache, intake } = await begun([item('a/gone', 5)], 10)
  await intake.differ({ version: 20, changed: [item('a/new', 15)], gone: ['a/gone'] })
  const [inMemory, forgotten] = [new Reader(cache, after(10)), new Reader(cache, after(10))]
  await copy.commit({ changes: [], interests: [{ interest: name, synced: 20, floor: 20 }], synced: false })
  assert.deepEqual(await inMemory.drain(), ['DELETED 10 a/gone v5@10', 'ADDED 15 a/new v15@15'])
  cache.history.window.shrink(Number.POSITIVE_INFINITY)
  assert.deepEqual(await forgotten.drain(), ['ERROR 410 too old resource version: 10 (20)'])
})

test('[A2] an object that was put back to an older version, and is gone by the next list: read from disk its deletion takes no watch back', async () => {
  const disk = new Disk()
  const { intake } = await begun([item('a/k', 12)], 12, disk)
  await intake.differ({ version: 13, changed: [item('a/k', 8, 'put back')], gone: [] })
  await intake.differ({ version: 20, changed: [], gone: ['a/k'] })
  const reader = new Reader((await open(disk)).caches.get(name) as Cache, after(13))
  assert.deepEqual(await reader.drain(), ['DELETED 13 a/k put back@13'])
})
