/** How long a read waits for a version ahead of the copy, and what it gets when that does not come. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeClock } from '../../base/fakeclock.test-support.ts'
import { silentLog } from '../../base/log.ts'
import { Intake } from '../../cache/intake.ts'
import { MirrorCopy } from '../../cache/mirrorcopy.ts'
import { planFields } from '../../kube/object.ts'
import { StatusError } from '../../kube/status.ts'
import { openMemory } from '../../store/memory.ts'
import type { ReadParts } from '../endpoint.ts'
import { reach, reachOrNewest } from './get.ts'

const patienceMs = 3_000

async function copyAt(version: number, lost: number) {
  const clock = fakeClock()
  const parts = {
    store: openMemory({ historyBytesMax: 1 << 20 }),
    clock,
    log: silentLog,
    planOf: () => planFields([]),
    lostOf: () => lost,
  }
  const copy = await MirrorCopy.open(parts)
  const cache = await copy.begin('v1/pods', version, [])
  return { clock, copy, cache, read: { clock } as unknown as ReadParts }
}

const isTooLarge = (error: unknown) => error instanceof StatusError && error.status.code === 504

test('[A3] what is not older than a version ahead is waited for, then refused', async () => {
  const { clock, cache, read } = await copyAt(10, 0)
  const asked = reachOrNewest(read, cache, 20)
  clock.advance(patienceMs)
  await assert.rejects(asked, isTooLarge)
})

test('[A3] after a restore to lower versions a list that names a lost one gets what there is', async () => {
  const { clock, cache, read } = await copyAt(10, 30)
  const newest = reachOrNewest(read, cache, 20)
  const exactly = reach(read, cache, 20)
  assert.equal(clock.pending(), 2, 'a version of the present may still come')
  clock.advance(patienceMs)
  await newest
  await assert.rejects(exactly, isTooLarge)
})

test('[A3] once a copy has come as far as before its restore, versions ahead are of the present again', async () => {
  const { clock, copy, cache, read } = await copyAt(10, 30)
  assert.equal(cache.isSetBack, true)
  const intake = new Intake({ copy, cache })
  intake.reach(31)
  await intake.settled()
  assert.equal(cache.isSetBack, false)
  const asked = reachOrNewest(read, cache, 40)
  clock.advance(patienceMs)
  await assert.rejects(asked, isTooLarge)
})
