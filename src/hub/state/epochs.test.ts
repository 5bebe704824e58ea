import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeClock } from '../../base/fakeclock.test-support.ts'
import { Unavailable } from '../../base/fault.ts'
import { silentLog } from '../../base/log.ts'
import { KeptEpoch } from './epochs.ts'
import { KeptState, type StateStore, type StoredState } from './keptstate.ts'
import type { StateTexts } from './state.ts'

/** One place that several hubs share. */
class MemoryState implements StateStore {
  readonly name = 'memory'
  readonly outlivesCluster = true
  texts: StateTexts | undefined
  isAway = false
  writes = 0

  async read(): Promise<StoredState | undefined> {
    if (this.isAway) throw new Unavailable('it is away')
    return this.texts && { texts: this.texts, version: JSON.stringify(this.texts) }
  }

  async create(texts: StateTexts): Promise<boolean> {
    this.texts ??= texts
    return this.texts === texts
  }

  async replace({ version }: StoredState, texts: StateTexts): Promise<boolean> {
    if (JSON.stringify(this.texts) !== version) return false
    this.texts = texts
    this.writes++
    return true
  }
}

async function world(hubs: number) {
  const clock = fakeClock()
  const store = new MemoryState()
  await KeptState.open({ store, clock, log: silentLog })
  const open = async () => {
    const kept = await KeptEpoch.open({ store, clock, log: silentLog })
    const heard: string[] = []
    kept.observe(({ number, lost }, noticed) => void heard.push(`${number} ${lost} ${noticed}`))
    return { kept, heard }
  }
  const all = []
  for (let at = 0; at < hubs; at++) all.push(await open())
  return { clock, store, open, all: all as Awaited<ReturnType<typeof open>>[] }
}

test('[L7] hubs that notice at the same time that the cluster was put back begin one new epoch, and who did not hears of it', async () => {
  const { clock, store, all, open } = await world(3)
  const [a, b, c] = all as [(typeof all)[0], (typeof all)[0], (typeof all)[0]]
  const first = a.kept.current.number
  assert.equal(first, Math.floor(clock.now() / 1_000))
  await Promise.all([a.kept.raise(900), b.kept.raise(800)])
  const next = a.kept.current
  assert.ok(next.number > first)
  assert.deepEqual(b.kept.current, next)
  assert.equal(store.writes, 1)
  assert.equal(c.kept.current.number, first)
  await c.kept.look()
  assert.deepEqual(c.heard, [`${next.number} ${next.lost} elsewhere`])
  assert.deepEqual(a.heard, [`${next.number} ${next.lost} here`])
  assert.deepEqual((await open()).kept.current, next)
})

test('[L7] an epoch that cannot be written counts at once, and is written later', async () => {
  const { store, all, open } = await world(1)
  const [{ kept, heard }] = all as [(typeof all)[0]]
  store.isAway = true
  await kept.raise(900)
  assert.equal(heard.length, 1)
  store.isAway = false
  await kept.look()
  assert.deepEqual((await open()).kept.current, kept.current)
})

test('[L7] a state that was put back with its cluster gives out no number twice', async () => {
  const { clock, store, all, open } = await world(1)
  const [{ kept }] = all as [(typeof all)[0]]
  const backup = store.texts
  clock.jump(60_000)
  await kept.raise(900)
  const before = kept.current.number
  store.texts = backup
  clock.jump(60_000)
  const { kept: restarted } = await open()
  await restarted.raise(950)
  assert.ok(restarted.current.number > before)
})

test('[L7] a single hub whose cluster was put back while it did not run notices it by how far that was', async () => {
  const { store, all, open } = await world(1)
  const [{ kept }] = all as [(typeof all)[0]]
  await kept.look(700)
  assert.equal(store.texts?.newest, '700')
  const { kept: same, heard: nothing } = await open()
  await same.begin(700)
  assert.deepEqual(nothing, [])
  const { kept: back, heard } = await open()
  await back.begin(699)
  assert.deepEqual(heard, [`${back.current.number} 700 here`])
  // Told once: what it is now is where the next one begins.
  const { kept: next, heard: again } = await open()
  await next.begin(699)
  assert.deepEqual(again, [])
})

test('a state without an epoch, or of one that is none, is refused', async () => {
  const { store, open } = await world(0)
  const { epoch: _, ...before } = store.texts as Record<string, string>
  store.texts = before
  await assert.rejects(open(), /state in memory is damaged \(it has no epoch\)/)
  for (const epoch of ['x', '0', '1.5']) {
    store.texts = { ...before, epoch }
    await assert.rejects(open(), /state in memory is damaged \(epoch is no number\)/)
  }
})
