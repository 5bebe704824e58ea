import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeClock } from '../../../base/fakeclock.test-support.ts'
import { mirrorLimits } from '../../../mirror/mirror.ts'
import { Repeats } from './repeats.ts'

function bench() {
  const clock = fakeClock()
  const repeats = new Repeats(clock)
  /** A caller asks for names that it invents. */
  const flood = (caller: string, names: number) => {
    for (let at = 0; at < names; at++) repeats.note(caller, `v1/pods@a?name=${caller}-${at}`)
  }
  return { clock, repeats, flood }
}

test('[A8] names that one caller invents displace its own, not what others asked for', () => {
  const { repeats, flood } = bench()
  assert.equal(repeats.note('operator', 'v1/pods'), false)
  flood('flood', 20_000)
  assert.ok(repeats.size < 3_000, `${repeats.size} of one caller`)
  assert.equal(repeats.note('operator', 'v1/pods'), true)
  assert.equal(repeats.note('flood', 'v1/pods@a?name=flood-19999'), true, 'its latest')
  assert.equal(repeats.note('flood', 'v1/pods@a?name=flood-0'), false)
})

test('[A8] many callers who invent names fill what there is for all, and those who have the most give', () => {
  const { repeats, flood } = bench()
  repeats.note('operator', 'v1/pods')
  for (let at = 0; at < 20; at++) flood(`flood${at}`, 1_500)
  assert.equal(repeats.size, 10_000)
  assert.equal(repeats.note('operator', 'v1/pods'), true)
  assert.equal(repeats.note('late', 'v1/nodes'), false)
  assert.equal(repeats.note('late', 'v1/nodes'), true)
  assert.equal(repeats.size, 10_000)
})

test('what is too old to count gives way first', () => {
  const { clock, repeats, flood } = bench()
  for (let at = 0; at < 4; at++) flood(`old${at}`, 2_000)
  clock.advance(mirrorLimits.repeatedWithinMs + 1)
  flood('new', 2_000)
  assert.equal(repeats.size, 10_000)
  repeats.note('late', 'v1/pods')
  assert.equal(repeats.size, 2_001)
  assert.equal(repeats.note('new', 'v1/pods@a?name=new-0'), true)
})
