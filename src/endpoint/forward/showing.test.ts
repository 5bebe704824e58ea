import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeClock } from '../../base/fakeclock.test-support.ts'
import { silentLog } from '../../base/log.ts'
import { Intake } from '../../cache/intake.ts'
import { makeItem } from '../../cache/item.ts'
import { MirrorCopy } from '../../cache/mirrorcopy.ts'
import { noFields } from '../../kube/object.ts'
import { openMemory } from '../../store/memory.ts'
import { shows } from './showing.ts'

const item = (version: number) =>
  makeItem(Buffer.from(`{"metadata":{"name":"x","resourceVersion":"${version}","uid":"u"}}`), version, noFields)

test('[A7] a write is shown once the cloud’s change is in, not by a label that clients were shown before it', async () => {
  const clock = fakeClock()
  const store = openMemory({ historyBytesMax: 1 << 20 })
  const copy = await MirrorCopy.open({ store, clock, log: silentLog, planOf: () => noFields })
  const cache = await copy.begin('v1/nodes', 10, [item(5)])
  cache.progress.advance(30)
  let isShown = false
  const effect = { namespace: '', name: 'x', key: 'x', kind: 'reached' as const, version: 12 }
  const shown = shows(cache, [effect], { clock, endMs: clock.steady() + 2_000 }).then((is) => {
    isShown = is
  })
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(isShown, false)
  const intake = new Intake({ copy, cache })
  intake.put(item(12))
  await shown
  assert.equal(isShown, true)
  assert.deepEqual([cache.get('x')?.version, cache.cloud.peek('x')?.version], [31, 12])
})
