/** What is of one cluster: dropped as a whole or not at all, and nothing comes after. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { openAccess } from '../access/open.ts'
import { fakeClock } from '../base/fakeclock.test-support.ts'
import { silentLog } from '../base/log.ts'
import { openDurable } from '../store/durable.ts'
import { openMemory } from '../store/memory.ts'
import { type Batch, type Store, StoreRefused } from '../store/store.ts'
import { ClusterStore } from './clusterstore.ts'

const kinds = [
  'interest',
  'caller',
  'decision',
  'token',
  'access',
  'document',
  'documentbody',
  'documentrefusal',
  'aging',
]
const known = { kind: 'cluster', key: 'known', value: Buffer.from('b') }
const record = (kind: string, key: string) => ({ kind, key, value: Buffer.from('x') })
const written = (batch: Partial<Batch>): Batch => ({ changes: [], synced: true, ...batch })

function objects(interest: string, count: number): Batch['changes'] {
  return Array.from({ length: count }, (_, at) => {
    const body = Buffer.from(JSON.stringify({ metadata: { name: `o${at}`, resourceVersion: String(at + 1) } }))
    return { interest, key: `o${at}`, version: at + 1, position: 0, kind: 'seed' as const, body }
  })
}

async function filled(inner: Store): Promise<ClusterStore> {
  const store = new ClusterStore(inner)
  await store.commit(
    written({
      changes: [...objects('pods', 3), ...objects('half', 2)],
      interests: [{ interest: 'pods', synced: 3, floor: 3 }],
      records: kinds.flatMap((kind) => [record(kind, 'one'), record(kind, 'two')]),
    }),
  )
  await inner.commit(written({ records: [{ ...known, value: Buffer.from('a') }] }))
  return store
}

async function contents(store: Store): Promise<string[]> {
  const { interests } = await store.load()
  const found = interests.map(({ name, objects: held }) => `${name} ${held.length}`)
  for (const kind of [...kinds, 'cluster']) {
    for (const { key, value } of await store.records(kind)) found.push(`${kind} ${key} ${value}`)
  }
  return found.sort()
}

const engines = {
  memory: async (body: (store: Store) => Promise<void>) => body(openMemory({ historyBytesMax: 1 << 20 })),
  durable: async (body: (store: Store) => Promise<void>) => {
    const folder = mkdtempSync(join(tmpdir(), 'ake-cluster-'))
    const store = openDurable({ folder, historyBytesMax: 1 << 20 })
    try {
      await body(store)
    } finally {
      await store.close()
      rmSync(folder, { recursive: true, force: true })
    }
  },
}

for (const [name, engine] of Object.entries(engines)) {
  test(`[A10] ${name}: of the old cluster nothing is left, and nothing that still runs for it can write`, () =>
    engine(async (inner) => {
      const store = await filled(inner)
      const late = (key: string) =>
        store.commit(written({ changes: objects('pods', 1), records: [record('token', key)] }))
      const dropping = store.drop(['pods', 'half'], known)
      const meanwhile = late('meanwhile')
      await dropping
      await meanwhile
      await late('later')
      assert.deepEqual(await contents(inner), ['cluster known b'])
      const next = new ClusterStore(inner)
      await next.commit(written({ records: [record('token', 'new')] }))
      assert.deepEqual(await contents(inner), ['cluster known b', 'token new x'])
    }))
}

test('[A10] a disk that refuses leaves all of it, and what was written meanwhile', () =>
  engines.memory(async (inner) => {
    const store = await filled(inner)
    const before = await contents(inner)
    const commit = inner.commit.bind(inner)
    inner.commit = async (batch) => {
      if (batch.records?.includes(known)) throw new StoreRefused('no space', true)
      await commit(batch)
    }
    const dropping = store.drop(['pods', 'half'], known)
    const meanwhile = store.commit(written({ records: [record('token', 'meanwhile')] }))
    await assert.rejects(dropping, StoreRefused)
    await meanwhile
    assert.deepEqual(await contents(inner), [...before, 'token meanwhile x'].sort())
  }))

test('what would outlive its cluster is refused', () =>
  engines.memory(async (inner) => {
    assert.throws(() => void new ClusterStore(inner).commit(written({ records: [record('novel', 'x')] })), /novel/)
  }))

test('[A10] neither salt nor caller nor decision of the old cluster is known to the next', () =>
  engines.memory(async (inner) => {
    const clock = fakeClock()
    const reachability = { state: 'unreachable', limitMs: 300, observe: () => () => {} }
    const upstream = { reachability } as never
    const opened = (store: Store) => openAccess({ upstream, records: store, clock, log: silentLog })
    const store = new ClusterStore(inner)
    const first = await opened(store)
    const ended = AbortSignal.abort()
    await first.run(ended)
    const [salt] = (await inner.records('access')).filter(({ key }) => key === 'salt')
    assert.ok(salt)
    await store.drop([], known)
    await first.run(ended)
    const next = await opened(new ClusterStore(inner))
    await next.run(ended)
    const [other] = (await inner.records('access')).filter(({ key }) => key === 'salt')
    assert.ok(other && !other.value.equals(salt.value))
  }))
