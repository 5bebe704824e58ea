import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StatusError } from '../kube/status.ts'
import { openMemory } from '../store/memory.ts'
import { type Batch, type Store, StoreRefused } from '../store/store.ts'
import { after, openWorld, Reader } from './fixture.test-support.ts'

/** A store whose commits wait until the test lets them through, or refuses them. */
function heldStore() {
  const inner = openMemory({ historyBytesMax: 1 << 30 })
  const held: { batch: Batch; settle(error?: Error): Promise<void> }[] = []
  const store: Store = {
    load: inner.load.bind(inner),
    release: (shared) => inner.release(shared),
    history: (name, cursor, limit) => inner.history(name, cursor, limit),
    floor: (name) => inner.floor(name),
    mendFrom: (held) => inner.mendFrom(held),
    figures: inner.figures,
    close: () => inner.close(),
    records: (kind) => inner.records(kind),
    record: (kind, key) => inner.record(kind, key),
    commit: (batch) =>
      new Promise((resolve, reject) => {
        const settle = async (error?: Error) => {
          if (error !== undefined) reject(error)
          else resolve(await inner.commit(batch))
          await turn()
        }
        held.push({ batch, settle })
      }),
  }
  return { store, held }
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

test('[D1] nothing is seen by a read or a watch, and nobody is told, before the store has it', async () => {
  const { store, held } = heldStore()
  const world = await openWorld({ store })
  const reader = new Reader(world.cache, after(1))
  void reader.drain()
  let acknowledged = 0
  void world.put('n/a', '1').then(() => acknowledged++)
  void world.put('n/b', '2').then(() => acknowledged++)
  await turn()
  await turn()
  assert.equal(held.length, 1, 'changes of one turn share a commit')
  assert.deepEqual([world.cache.size, reader.frames.length, acknowledged, world.cache.version], [0, 0, 0, 1])
  await held[0]?.settle()
  assert.deepEqual([world.cache.size, acknowledged, world.cache.version], [2, 2, 3])
  assert.deepEqual(await reader.drain(), ['ADDED 2 n/a 1@2', 'ADDED 3 n/b 2@3'])
})

test('[D3] a full disk: 507, a failing one: 500; nothing of it is seen, reads go on, and it heals by itself', async () => {
  const { store, held } = heldStore()
  const world = await openWorld({ store })
  const first = world.put('n/a', '1')
  await turn()
  await held.shift()?.settle()
  await first
  const reader = new Reader(world.cache, after(1))
  await reader.drain()
  for (const [full, code] of [
    [true, 507],
    [false, 500],
  ] as const) {
    const refused = assert.rejects(world.put('n/a', '2'), (error: StatusError) => {
      assert.ok(error instanceof StatusError)
      assert.equal(error.code, code)
      return true
    })
    await turn()
    await held.shift()?.settle(new StoreRefused('the disk says no', full))
    await refused
    assert.equal(world.copy.healthy, false)
    assert.equal(world.cache.get('n/a')?.version, 2)
  }
  const healed = world.put('n/a', '3')
  await turn()
  await held.shift()?.settle()
  assert.equal(await healed, 5)
  assert.equal(world.copy.healthy, true)
  assert.deepEqual(await reader.drain(), ['ADDED 2 n/a 1@2', 'MODIFIED 5 n/a 3@5'])
})

test('writes that a slow disk has not taken are bounded: 429 beyond, and room again afterwards', async () => {
  const { store, held } = heldStore()
  const world = await openWorld({ store })
  const value = 'v'.repeat(10_000_000)
  const waiting = Array.from({ length: 7 }, (_, i) => world.put(`n/k${i}`, value))
  await assert.rejects(world.put('n/more', value), (error: StatusError) => error.code === 429)
  await turn()
  await held.shift()?.settle()
  await Promise.all(waiting)
  const next = world.put('n/more', value)
  await turn()
  await held.shift()?.settle()
  assert.equal(await next, 9)
})

test('versions go on after a restart, holes of refused writes included', async () => {
  const { store, held } = heldStore()
  const world = await openWorld({ store })
  const refused = assert.rejects(world.put('n/a', '1'))
  await turn()
  await held.shift()?.settle(new StoreRefused('no', true))
  await refused
  const kept = world.put('n/a', '2')
  await turn()
  await held.shift()?.settle()
  assert.equal(await kept, 3)
  const again = await openWorld({ store })
  assert.equal(again.cache.version, 3)
  assert.deepEqual(await new Reader(again.cache, after(1)).drain(), ['ADDED 3 n/a 2@3'])
})

test('[D3] while the disk refuses it is asked again every second, and is ready again without anybody writing', async () => {
  const { store, held } = heldStore()
  const world = await openWorld({ store })
  const stop = new AbortController()
  const running = world.copy.run(stop.signal)
  const tick = async () => {
    world.clock.advance(1_000)
    await turn()
  }
  await tick()
  assert.equal(held.length, 0, 'nothing is asked of a disk that works')
  const refused = assert.rejects(world.put('n/a', '1'))
  await turn()
  await held.shift()?.settle(new StoreRefused('no', true))
  await refused
  for (let i = 0; i < 3; i++) {
    await tick()
    await tick()
    assert.deepEqual(
      held.map(({ batch }) => batch.changes.length),
      [0],
      'one question at a time',
    )
    assert.equal(world.copy.healthy, false)
    await held.shift()?.settle(i < 2 ? new StoreRefused('still no', true) : undefined)
  }
  assert.equal(world.copy.healthy, true)
  stop.abort()
  await running
})
