/** Bits that turn in a store that runs: found by the slow scrub, named, written again from what the process holds; and never found where none have. */
import assert from 'node:assert/strict'
import fs, { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, test } from 'node:test'
import { fakeClock } from '../base/fakeclock.test-support.ts'
import { seeded } from '../base/seeded.test-support.ts'
import { until } from '../base/until.test-support.ts'
import { disk, Told, withoutSyncs, withSyncs } from './damage.test-support.ts'
import { type Damage, openDurable } from './durable.ts'
import { stepEveryMs } from './scrub.ts'
import { logFolder } from './segment.ts'
import { packRecords } from './slab.ts'
import type { Batch } from './store.ts'
import { filesIn, type Limits, objectsOf, oneKey, otherKey, World } from './world.test-support.ts'

const limits: Limits = { historyBytesMax: 40_000, segmentBytes: 4_000 }

async function inFolder(body: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'ake-scrub-'))
  try {
    await body(folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

afterEach(withSyncs)

const bodyOf = (key: string, version: number) => Buffer.from(`{"the object ${key} at ${version}":"${'x'.repeat(50)}"}`)
const put = (interest: string, key: string, version: number) => {
  return { interest, key, version, position: version, kind: 'put', body: bodyOf(key, version) } as const
}

/** Turns a bit of the body that lies there, sealed or not. */
function turnBit(folder: string, at: { readonly segment: number; readonly start: number }): void {
  const path = filesIn(logFolder(folder)).find((one) => Number(one.match(/(\d+)\.log$/)?.[1]) === at.segment) as string
  const file = fs.openSync(path, 'r+')
  const byte = Buffer.alloc(1)
  fs.readSync(file, byte, 0, 1, at.start + 30)
  byte[0] = (byte[0] as number) ^ 4
  fs.writeSync(file, byte, 0, 1, at.start + 30)
  fs.closeSync(file)
}

function placeOf({ index }: World, interest: string, key: string): { segment: number; start: number } {
  for (const object of index.objects(interest)) if (object.key === key && object.body !== undefined) return object.body
  throw new Error(`${key} is not there`)
}

for (const [name, keys] of Object.entries({ 'a plain store': [], 'a sealed store': [oneKey] })) {
  test(`[D4] a bit that turns in ${name} is found while it runs, named once, and what is held of it is written again`, () =>
    inFolder(async (folder) => {
      const world = new World({ folder, limits, disk, keys })
      const shared = { name: 0 }
      const twice = ['/a', '/b'].map((interest) => ({ ...put(interest, 'k1', 2), shared }))
      assert.ok(await world.commit({ changes: [...twice, put('/a', 'k2', 3)], synced: true }))
      world.follow()
      assert.deepEqual(world.index.scrub()?.damaged, [])
      turnBit(folder, placeOf(world, '/a', 'k1'))
      // The week is not over, and a small store was read as a whole.
      assert.equal(world.index.scrub(), undefined)
      const found = stepsUntilFound(world)
      assert.equal(found.length, 1)
      const held = ['/a', '/b'].map((interest) => ({ kind: 'object', interest, key: 'k1', version: 2 }))
      assert.deepEqual(found[0]?.holders, held)
      const { id } = found[0] as { id: number }
      assert.equal(world.index.mend({ id, version: 2, body: Buffer.from('something else') }), false)
      assert.equal(world.index.mend({ id, version: 3, body: bodyOf('another', 3) }), false)
      assert.ok(world.index.mend({ id, version: 2, body: bodyOf('k1', 2) }))
      assert.equal(world.index.mend({ id, version: 2, body: bodyOf('k1', 2) }), false, 'it is sound by now')
      const sound = ['k1 2', 'k2 3']
      for (const one of world.index.scrub()?.damaged ?? []) assert.fail(JSON.stringify(one))
      assert.deepEqual(
        objectsOf(world.index, '/a').map((text) => text.split(' ', 2).join(' ')),
        sound,
      )
      await world.close()
      const again = new World({ folder, limits, disk, keys })
      assert.deepEqual([objectsOf(again.index, '/a').length, objectsOf(again.index, '/b').length], [2, 1])
      assert.equal(again.index.takeNews().remade, undefined)
      await again.close()
    }))
}

/** Steps of a round later: what failed is looked at once more before it is told. */
function stepsUntilFound({ index }: World) {
  for (let step = 0; step < 3_000; step++) {
    const { damaged = [] } = index.scrub() ?? {}
    if (damaged.length > 0) return damaged
  }
  throw new Error('nothing was found')
}

test('[D4] what only history or a record holds is named too, and goes as it always does', () =>
  inFolder(async (folder) => {
    const world = new World({ folder, limits, disk, keys: [] })
    const records = [{ kind: 'token', key: 't', value: Buffer.from(`a record of a token ${'y'.repeat(50)}`) }]
    assert.ok(await world.commit({ changes: [put('/a', 'k1', 2)], records, synced: true }))
    world.follow()
    const was = placeOf(world, '/a', 'k1')
    assert.ok(await world.commit({ changes: [put('/a', 'k1', 3)], synced: true }))
    world.follow()
    const [record] = world.index.records('token')
    turnBit(folder, was)
    turnBit(folder, record?.body as { segment: number; start: number })
    const found = stepsUntilFound(world)
    assert.deepEqual(
      found.flatMap(({ holders }) => holders),
      [
        { kind: 'history', interest: '/a', key: 'k1', version: 2 },
        { kind: 'record', of: 'token', key: 't' },
      ],
    )
    const { rows } = packRecords(world.index.bodies, { kind: 'token', records: world.index.records('token') })
    assert.deepEqual(rows, [])
    await world.close()
  }))

test('what fails once is looked at again: a disk that could not read it for a moment has damaged nothing', () =>
  inFolder(async (folder) => {
    const world = new World({ folder, limits, disk, keys: [] })
    assert.ok(await world.commit({ changes: [put('/a', 'k1', 2)], synced: true }))
    world.follow()
    const place = placeOf(world, '/a', 'k1')
    turnBit(folder, place)
    assert.deepEqual(world.index.scrub()?.damaged, [])
    turnBit(folder, place)
    for (let step = 0; step < 3_000; step++) assert.deepEqual(world.index.scrub()?.damaged ?? [], [])
    await world.close()
  }))

test('a store is read once in a week, a little at a time; where nothing is stored nothing is done', () =>
  inFolder(async (folder) => {
    const world = new World({ folder, limits: { historyBytesMax: 1 << 30, segmentBytes: 1 << 20 }, disk, keys: [] })
    for (let step = 0; step < 10; step++) assert.equal(world.index.scrub(), undefined)
    const body = Buffer.alloc(10_000, 'x')
    const changes = Array.from({ length: 100 }, (_, at) => ({ ...put('/a', `k${at}`, at + 2), body }))
    assert.ok(await world.commit({ changes, synced: true }))
    world.follow()
    const bytes: number[] = []
    const worked: number[] = []
    let before = 0
    for (let step = 0; step < 2 * 2_016 - 1; step++) {
      const { progress } = world.index.scrub() ?? {}
      if (progress === undefined) continue
      worked.push(step)
      assert.equal(progress.of, 1_000_000)
      bytes.push(progress.bytes - (progress.bytes < before ? 0 : before))
      before = progress.bytes
    }
    assert.ok(Math.max(...bytes) <= 64 * 1024, `${Math.max(...bytes)} in one step`)
    assert.equal(
      bytes.reduce((sum, one) => sum + one, 0),
      2_000_000,
    )
    const [first = 0, second = 0] = [worked[0], worked[worked.length / 2]]
    assert.equal(second - first, 2_016)
    await world.close()
  }))

test('[D4] a store that is sound is never said to be damaged, while it is written, forgotten, moved, sealed and tidied', async () => {
  withoutSyncs()
  for (let seed = 1; seed <= 2; seed++) {
    await inFolder(async (folder) => {
      const random = seeded(seed)
      const told = new Told()
      const small = { historyBytesMax: 6_000, segmentBytes: 2_000 }
      let rounds = 0
      for (const keys of [[], [oneKey], [otherKey, oneKey]]) {
        const world = new World({ folder, limits: small, disk, keys })
        for (let at = 0; at < 60; at++) {
          assert.ok(await world.commit(told.batch(random)))
          if (random(3) === 0) world.follow()
          while (random(2) === 0 && world.index.tidy());
          // Weeks pass: a round is due again and again.
          for (let step = 0; step < 1_500; step++) {
            const found = world.index.scrub()
            assert.deepEqual(found?.damaged ?? [], [], `seed ${seed}`)
            rounds = Math.max(rounds, found?.progress.rounds ?? 0)
          }
        }
        await world.close()
      }
      assert.ok(rounds > 20, `${rounds} rounds`)
    })
  }
})

for (const keys of [[], [oneKey]]) {
  test(`[D4] a store that runs${keys.length > 0 ? ' sealed' : ''} tells what a disk did to it, has it written again, and opens sound`, () =>
    inFolder(async (folder) => {
      const clock = fakeClock()
      const damages: Damage[] = []
      const open = () =>
        openDurable({ folder, historyBytesMax: 1 << 20, clock, keys, onDamage: (one) => damages.push(one) })
      const store = open()
      try {
        await store.load()
        const body = bodyOf('k2', 3)
        store.mendFrom((interest, key) => (interest === '/a' && key === 'k2' ? { bytes: body, version: 3 } : undefined))
        const batch: Batch = { changes: [put('/a', 'k1', 2), put('/a', 'k2', 3)], synced: true }
        await store.commit(batch)
        const [path] = filesIn(logFolder(folder)).filter((one) => one.endsWith('.log'))
        // The index has followed.
        await store.history('/a', { version: 0, position: 0 }, { entries: 10, bytes: 1 << 20 })
        clock.advance(stepEveryMs)
        await until(() => store.figures.scrub?.rounds === 1)
        const bytes = fs.readFileSync(path as string)
        // The body that was written last.
        const at = bytes.length - 20
        bytes[at] = (bytes[at] as number) ^ 1
        fs.writeFileSync(path as string, bytes)
        for (let step = 0; step < 2_030; step++) clock.advance(stepEveryMs)
        await until(() => store.figures.scrub?.mended === 1)
        const holder = { kind: 'object', interest: '/a', key: 'k2', version: 3 }
        assert.deepEqual(damages, [holder, { kind: 'mended', holder }])
        assert.equal(store.figures.scrub?.damaged, 1)
      } finally {
        await store.close()
      }
      const again = open()
      const [loaded] = (await again.load()).interests
      assert.deepEqual([loaded?.corrupt, loaded?.objects.map(({ key }) => key)], [[], ['k1', 'k2']])
      assert.equal(loaded?.objects[1]?.body.toString(), bodyOf('k2', 3).toString())
      await again.close()
    }))
}
