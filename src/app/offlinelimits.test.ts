/** How long an edge goes on without the cloud: what its hub said last, and for how long that lets it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '../base/log.ts'
import { openMemory } from '../store/memory.ts'
import { ClusterStore } from './clusterstore.ts'
import { EdgeTerms } from './edgeterms.ts'
import { OfflineLimits } from './offlinelimits.ts'

const hourMs = 3_600_000

test('what policies say of an edge outlives a restart, and is written only when it changes', async () => {
  // As an edge has it: what would outlive its cluster is refused there.
  const store = new ClusterStore(openMemory({ historyBytesMax: 1 << 20 }))
  let commits = 0
  const counted = {
    record: (kind: string, key: string) => store.record(kind, key),
    commit: (batch: Parameters<typeof store.commit>[0]) => {
      commits++
      return store.commit(batch)
    },
  }
  const open = () => EdgeTerms.open({ store: counted, log: silentLog })
  const first = await open()
  assert.deepEqual([first.tokenAgeMs, first.serveAgeMs], [undefined, undefined])
  first.told({ trusts: false, tokenAgeMs: 0, serveAgeMs: 0 })
  assert.equal(commits, 0)
  first.told({ trusts: false, tokenAgeMs: hourMs, serveAgeMs: 0 })
  first.told({ trusts: true, tokenAgeMs: hourMs, serveAgeMs: 0 })
  assert.equal(commits, 1)
  const second = await open()
  assert.deepEqual([second.tokenAgeMs, second.serveAgeMs], [hourMs, undefined])
  second.told({ trusts: true, tokenAgeMs: 0, serveAgeMs: 2 * hourMs })
  const third = await open()
  assert.deepEqual([third.tokenAgeMs, third.serveAgeMs], [undefined, 2 * hourMs])
  await store.commit({
    ...{ changes: [], synced: false },
    records: [{ kind: 'policy', key: 'terms', value: Buffer.from('x -1') }],
  })
  const damaged = await open()
  assert.deepEqual([damaged.tokenAgeMs, damaged.serveAgeMs], [undefined, undefined])
})

test('limits count from when the API server was last heard, and only while it is away', () => {
  const world = { state: 'unreachable' as 'unreachable' | 'reachable', lastMs: 0 as number | undefined, nowMs: 0 }
  const limitsOf = (tokenAgeMs?: number, serveAgeMs?: number) =>
    new OfflineLimits({
      terms: { tokenAgeMs, serveAgeMs },
      contact: {
        get lastMs() {
          return world.lastMs
        },
      },
      reachability: {
        get state() {
          return world.state
        },
      },
      nowMs: () => world.nowMs,
    })
  const limits = limitsOf(hourMs, 2 * hourMs)
  world.nowMs = hourMs
  assert.deepEqual([limits.takesTokens, limits.unserved], [true, undefined])
  world.nowMs = hourMs + 1
  assert.deepEqual([limits.takesTokens, limits.unserved], [false, undefined])
  world.nowMs = 2 * hourMs + 1
  assert.match(limits.unserved ?? '', /last heard more than 120m ago, which is how long a policy/)
  const free = limitsOf()
  assert.deepEqual([free.takesTokens, free.unserved], [true, undefined])
  world.state = 'reachable'
  assert.deepEqual([limits.takesTokens, limits.unserved], [true, undefined])
  // One that never was there cannot have been long ago.
  world.state = 'unreachable'
  world.lastMs = undefined
  assert.equal(limits.takesTokens, false)
})
