/** What overlapping interests hold: one item, one buffer and one body in the store for each object version. */

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fakeClock } from '../base/fakeclock.test-support.ts'
import { silentLog } from '../base/log.ts'
import { seeded } from '../base/seeded.test-support.ts'
import { planFields } from '../kube/object.ts'
import { openDurable } from '../store/durable.ts'
import { openMemory } from '../store/memory.ts'
import { type SharedBody, type Store, StoreRefused } from '../store/store.ts'
import type { Cache } from './cache.ts'
import { bytesOf, plan } from './fixture.test-support.ts'
import { Intake } from './intake.ts'
import { type Item, makeItem } from './item.ts'
import { MirrorCopy } from './mirrorcopy.ts'

const seedOfRun = Number(process.env.AKE_SEED ?? Date.now() % 1_000_000)
const interests = Array.from({ length: 20 }, (_, i) => `v1/pods?app${i}&`)
const resourceOf = (interest: string) => interest.split('?', 1)[0] as string

/** Bytes of their own each time, as each watch and each list brings them. */
function item(key: string, version: number, value = `v${version}`): Item {
  return makeItem(bytesOf(key, version, { value }), version, plan)
}

/** What the store can still be referred to by, and what it refuses. */
class Disk {
  readonly inner: Store
  readonly named = new Set<SharedBody>()
  refusing = false

  constructor(inner: Store = openMemory({ historyBytesMax: 1 << 30 })) {
    this.inner = inner
  }

  get store(): Store {
    const { inner } = this
    return {
      load: inner.load.bind(inner),
      release: (shared) => {
        this.named.delete(shared)
        inner.release(shared)
      },
      commit: async (batch) => {
        await new Promise((resolve) => setImmediate(resolve))
        if (this.refusing) throw new StoreRefused('no room', true)
        await inner.commit(batch)
        for (const { shared } of batch.changes) if (shared !== undefined) this.named.add(shared)
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

function open(disk: Disk): Promise<MirrorCopy> {
  return MirrorCopy.open({ store: disk.store, clock: fakeClock(), log: silentLog, planOf: () => plan, resourceOf })
}

/** Everything that interests hold: their objects, and what windows keep of the past. */
function held(caches: Iterable<Cache>): Item[] {
  const items: Item[] = []
  for (const cache of caches) {
    items.push(...cache.all())
    for (const { previous } of cache.history.window.after({ version: 0, position: 0 })) {
      if (previous !== undefined) items.push(previous)
    }
  }
  return items
}

const buffers = (caches: Iterable<Cache>) => new Set(held(caches).map(({ bytes }) => bytes))
const bytesIn = (found: Set<Buffer>) => [...found].reduce((sum, { length }) => sum + length, 0)

test('[D5] twenty interests that list and watch the same objects hold and write each version once', async () => {
  const disk = new Disk()
  const copy = await open(disk)
  const keys = Array.from({ length: 50 }, (_, i) => `a/k${i}`)
  const caches = await Promise.all(
    interests.map((interest) =>
      copy.begin(
        interest,
        60,
        keys.map((key, i) => item(key, i + 2)),
      ),
    ),
  )
  const items = new Set(held(caches))
  assert.equal(items.size, keys.length, 'items')
  assert.equal(disk.inner.figures.bytesWritten, bytesIn(buffers(caches)))
  // Twenty watches bring the same events in one turn: no commit of any has ended.
  const intakes = caches.map((cache) => new Intake({ copy, cache }))
  for (const intake of intakes) for (const version of [61, 62, 63]) intake.put(item('a/k1', version))
  await Promise.all(intakes.map((intake) => intake.settled()))
  assert.equal(buffers(caches).size, keys.length + 3)
  assert.equal(disk.inner.figures.bytesWritten, bytesIn(buffers(caches)))
  assert.equal(disk.named.size, keys.length + 3)
})

test('[A5] the same key and version with other bytes is another object', async () => {
  const disk = new Disk()
  const copy = await open(disk)
  const [one, another] = await Promise.all(
    ['x', 'y'].map((value, i) => copy.begin(interests[i] as string, 10, [item('a/k', 5, value)])),
  )
  assert.match(String(one?.get('a/k')?.bytes), /"value":"x"/)
  assert.match(String(another?.get('a/k')?.bytes), /"value":"y"/)
  assert.equal(disk.named.size, 2)
  await copy.end(interests[0] as string, 'over')
  assert.equal(disk.named.size, 1)
})

test('[D5] after a restart they are read once and held once, also from a folder that has them twice', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ake-shareditems-'))
  let store = openDurable({ folder, historyBytesMax: 1 << 20 })
  try {
    const first = await open(new Disk(store))
    for (const interest of interests) await first.begin(interest, 10, [item('a/k', 5), item('a/l', 6)])
    // As an older ake wrote it.
    const { key, version, bytes } = item('a/k', 5)
    const seed = { key, version, body: bytes, kind: 'seed' as const, position: 0 }
    const said = { interest: 'v1/pods?old', synced: 10, floor: 10 }
    await store.commit({ changes: [{ interest: said.interest, ...seed }], interests: [said], synced: true })
    await store.close()
    store = openDurable({ folder, historyBytesMax: 1 << 20 })
    const copy = await open(new Disk(store))
    assert.equal(copy.caches.size, interests.length + 1)
    assert.equal(new Set(held(copy.caches.values())).size, 2)
    await copy.begin('v1/pods?late', 12, [item('a/k', 5), item('a/l', 6)])
    assert.equal(store.figures.bytesWritten, 0)
  } finally {
    await store.close()
    rmSync(folder, { recursive: true })
  }
})

test('[D5] objects that are read by another plan are read once for all interests', async () => {
  const copy = await open(new Disk())
  const caches = await Promise.all(interests.map((interest) => copy.begin(interest, 10, [item('a/k', 5)])))
  const other = planFields(['status.phase'])
  for (const cache of caches) cache.replan(other)
  assert.equal(new Set(held(caches)).size, 1)
})

test('[D5] whatever happens, the store keeps what is held and nothing else', async () => {
  for (let run = 0; run < 20; run++) {
    const seed = seedOfRun + run
    try {
      await live(seed)
    } catch (error) {
      throw new Error(`AKE_SEED=${seed}: ${(error as Error).message}`, { cause: error })
    }
  }
})

/** Interests come, go, hear the same events, list anew, are refused and forget; at rest what is named is what is held. */
async function live(seed: number): Promise<void> {
  const random = seeded(seed)
  const disk = new Disk()
  const copy = await open(disk)
  const names = interests.slice(0, 4)
  const objects = new Map<string, number>()
  let version = 10
  const listed = () => [...objects].map(([key, at]) => item(key, at))
  for (let step = 0; step < 60; step++) {
    disk.refusing = random(8) === 0
    const name = names[random(names.length)] as string
    const cache = copy.caches.get(name)
    const does = random(6)
    if (cache === undefined || does === 0) await copy.begin(name, ++version, listed()).catch(() => {})
    else if (does === 1) await copy.end(name, 'over').catch(() => {})
    else if (does === 2) cache.history.window.shrink(random(2_000))
    else {
      const from = version
      const events = Array.from({ length: 1 + random(4) }, () => ({ key: `a/k${random(5)}`, version: ++version }))
      const isRemoval = random(4) === 0
      for (const event of events) {
        if (isRemoval) objects.delete(event.key)
        else objects.set(event.key, event.version)
      }
      const work = [...copy.caches.values()].map(async (one) => {
        const intake = new Intake({ copy, cache: one })
        // One that missed something finds it by a list.
        if (one.version < from) {
          const gone = one
            .all()
            .filter(({ key }) => !objects.has(key))
            .map(({ key }) => key)
          const changed = listed().filter((now) => one.peek(now.key)?.version !== now.version)
          return await intake.differ({ version, changed, gone })
        }
        for (const event of events) {
          if (isRemoval) intake.remove(event.key, event.version)
          else intake.put(item(event.key, event.version))
        }
        return await intake.settled()
      })
      await Promise.allSettled(work)
    }
    const items = held(copy.caches.values())
    const shared = new Set(items.map((one) => one.shared as SharedBody))
    assert.ok(!shared.has(undefined as never), 'every item is shared')
    assert.deepEqual(
      [disk.named.size, [...shared].every((one) => disk.named.has(one))],
      [shared.size, true],
      `step ${step}`,
    )
    const distinct = new Set(items.map(({ key, version: at }) => `${key}@${at}`))
    assert.equal(new Set(items.map(({ bytes }) => bytes)).size, distinct.size)
  }
  disk.refusing = false
  for (const name of [...copy.caches.keys()]) {
    const [before, weighed] = [copy.bytes, copy.holdings().get(name)?.alone]
    await copy.end(name, 'over')
    assert.equal(before - copy.bytes, weighed, `what the end of ${name} freed`)
  }
  assert.equal(disk.named.size, 0)
}
