/** The disk's thread ends without being asked to: out of memory, or a bug. The store goes on with a new one. */
import assert from 'node:assert/strict'
import { chmodSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mock, test } from 'node:test'
import { MessagePort, Worker, type WorkerOptions } from 'node:worker_threads'
import { type FakeClock, fakeClock } from '../base/fakeclock.test-support.ts'
import { until } from '../base/until.test-support.ts'
import { openDurable } from './durable.ts'
import { type Batch, type Store, StoreRefused, StoreUnusable } from './store.ts'

type World = { store: Store; clock: FakeClock; threads: Worker[]; folder: string; kill(): Promise<unknown> }

async function inWorld(body: (world: World) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'ake-thread-'))
  const clock = fakeClock()
  const threads: Worker[] = []
  const startThread = (options: WorkerOptions) => {
    const worker = new Worker(new URL('./worker.ts', import.meta.url), options)
    threads.push(worker)
    return worker
  }
  const store = openDurable({ folder, historyBytesMax: 1 << 20, clock, startThread })
  try {
    await store.load()
    await body({ store, clock, threads, folder, kill: () => (threads.at(-1) as Worker).terminate() })
  } finally {
    await store.close()
    rmSync(folder, { recursive: true })
  }
}

const put = (version: number): Batch => ({
  synced: false,
  changes: [{ interest: '/pods', kind: 'put', position: version, version, key: `k${version}`, body: Buffer.from('x') }],
})

const keys = async (store: Store) => (await store.load()).interests[0]?.objects.map(({ key }) => key)

test('[D3] a thread that ended is followed by another, which has everything that was committed', () =>
  inWorld(async ({ store, threads, kill }) => {
    await store.commit(put(2))
    await store.commit(put(3))
    await kill()
    await store.commit(put(4))
    assert.equal(threads.length, 2)
    assert.deepEqual(await keys(store), ['k2', 'k3', 'k4'])
    assert.equal(store.figures.commits, 3)
    assert.equal(store.figures.bytesWritten, 3)
  }))

test('[D3] a reader that asks a thread which ends is refused; commits need none', () =>
  inWorld(async ({ store, kill }) => {
    const killed = kill()
    const limit = { entries: 1, bytes: 1 }
    const committed = store.commit(put(2))
    const asked = [store.load(), store.record('token', 'a'), store.history('/pods', { version: 0, position: 0 }, limit)]
    const outcomes = await Promise.allSettled(asked)
    await killed
    await committed
    for (const outcome of outcomes) {
      assert.ok(outcome.status === 'rejected' && outcome.reason instanceof StoreRefused, outcome.status)
    }
    assert.deepEqual(await keys(store), ['k2'])
  }))

test('[D3] a thread that keeps ending is given a rest, and then another try', () =>
  inWorld(async ({ store, clock, threads, kill }) => {
    for (let i = 0; i < 4; i++) {
      await kill()
      // The end is known when the next question is answered or refused.
      if (i < 3) await store.load()
    }
    await assert.rejects(store.load(), StoreRefused)
    await store.commit(put(2))
    assert.equal(threads.length, 4)
    clock.advance(60_000)
    assert.deepEqual(await keys(store), ['k2'])
    assert.equal(threads.length, 5)
  }))

test('[D3] a new thread that finds the file damaged makes it anew from the log', () =>
  inWorld(async ({ store, folder, kill }) => {
    await store.commit(put(2))
    const path = join(folder, 'ake.db')
    await kill()
    for (const name of readdirSync(folder)) if (name.startsWith('ake.db')) rmSync(join(folder, name))
    writeFileSync(path, 'this is no database, and long enough to be looked at'.repeat(20))
    chmodSync(path, 0o600)
    assert.deepEqual(await keys(store), ['k2'])
    await store.commit(put(3))
    assert.deepEqual(await keys(store), ['k2', 'k3'])
  }))

test('[D3] a store whose thread never gets as far as the log is told to be unusable, also to commits that wait', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ake-thread-'))
  let threads = 0
  const startThread = (options: WorkerOptions) => {
    threads++
    return new Worker('throw new Error("broken")', { ...options, eval: true })
  }
  const store = openDurable({ folder, historyBytesMax: 1 << 20, clock: fakeClock(), startThread })
  await assert.rejects(store.commit(put(2)), StoreUnusable)
  assert.equal(threads, 4)
  await assert.rejects(store.load(), StoreUnusable)
  await store.close()
  rmSync(folder, { recursive: true })
})

test('a store whose thread has ended closes', () =>
  inWorld(async ({ store, kill }) => {
    await Promise.all([kill(), store.close()])
    await assert.rejects(store.commit(put(2)), /closed/)
  }))

test('names are released together, after a minute or when there are many, not with each round', () =>
  inWorld(async ({ store, clock }) => {
    const posted = mock.method(MessagePort.prototype, 'postMessage').mock
    /** How many names each round has released. */
    const told = () =>
      posted.calls
        .map(({ arguments: [said] }) => said)
        .flatMap(({ kind, released }) => (kind === 'reach' ? [released.length] : []))
    let version = 1
    /** Commits objects that others may refer to, and lets go of them. */
    const passing = async (count: number) => {
      const shared = Array.from({ length: count }, () => ({ name: 0 }))
      const changes = shared.map((one) => {
        version++
        const key = `k${version}`
        return {
          interest: '/pods',
          kind: 'put' as const,
          position: version,
          version,
          key,
          body: Buffer.from(key),
          shared: one,
        }
      })
      await store.commit({ changes, synced: false })
      for (const one of shared) store.release(one)
    }
    await passing(3)
    clock.advance(3_000)
    await until(() => told().length > 0, 'a round')
    assert.deepEqual(told(), [0])
    clock.advance(57_000)
    await until(() => told().includes(3), 'after a minute')
    await passing(4_096)
    clock.advance(3_000)
    await until(() => told().includes(4_096), 'many')
    // Due while a round waits, whose timer is not forgotten by that.
    await passing(1)
    clock.advance(3_000)
    await until(() => told().at(-1) === 0, 'a round')
    clock.advance(56_000)
    await store.commit(put(9_999))
    clock.advance(1_000)
    await until(() => told().includes(1), 'after another minute')
    await store.close()
    assert.equal(clock.pending(), 0)
    mock.restoreAll()
  }))
