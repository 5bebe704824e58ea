import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '../base/log.ts'
import { openMemory } from '../store/memory.ts'
import { LinkEpochs } from './linkepochs.ts'

test('epochs outlive a restart, go with their interests, and are written when they change', async () => {
  const store = openMemory({ historyBytesMax: 1 << 20 })
  let commits = 0
  const counted = {
    records: (kind: string) => store.records(kind),
    commit: (batch: Parameters<typeof store.commit>[0]) => {
      commits++
      return store.commit(batch)
    },
  }
  const open = () => LinkEpochs.open({ store: counted, log: silentLog })
  const first = await open()
  assert.equal(first.newest, undefined)
  first.reached('v1/pods', 3)
  first.reached('v1/pods', 3)
  first.reached('v1/nodes', 2)
  assert.equal(commits, 2)
  const second = await open()
  assert.deepEqual([second.of('v1/pods'), second.of('v1/nodes'), second.of('v1/secrets')], [3, 2, undefined])
  assert.equal(second.newest, 3)
  second.keep(new Set(['v1/nodes']))
  assert.equal(second.newest, 2)
  const third = await open()
  assert.deepEqual([third.of('v1/pods'), third.of('v1/nodes')], [undefined, 2])
})

test('what is no number counts as unknown, and a disk that refuses harms nobody', async () => {
  const store = openMemory({ historyBytesMax: 1 << 20 })
  await store.commit({
    changes: [],
    records: [{ kind: 'epoch', key: 'v1/pods', value: Buffer.from('x') }],
    synced: false,
  })
  const refusing = { records: (kind: string) => store.records(kind), commit: () => Promise.reject(new Error('full')) }
  const epochs = await LinkEpochs.open({ store: refusing, log: silentLog })
  assert.equal(epochs.of('v1/pods'), undefined)
  epochs.reached('v1/pods', 1)
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(epochs.of('v1/pods'), 1)
})
