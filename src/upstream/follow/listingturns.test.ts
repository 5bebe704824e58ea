import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeClock } from '../../base/fakeclock.test-support.ts'
import { settle } from '../../mirror/world.test-support.ts'
import { ListingTurns } from './listingturns.ts'

const never = new AbortController().signal

test('[D5] large first lists of one resource come one after the other; another resource, and one that is stuck, keep none waiting', async () => {
  const clock = fakeClock()
  const turns = new ListingTurns(clock)
  const [first, second, third, other] = [turns.of('pods'), turns.of('pods'), turns.of('pods'), turns.of('nodes')]
  const begun: string[] = []
  assert.deepEqual([first.join(), second.join(), third.join(), other.join()], [true, false, false, true])
  void second.wait(never).then(() => begun.push('second'))
  void third.wait(never).then(() => begun.push('third'))
  await settle()
  assert.deepEqual(begun, [])
  first.leave()
  await settle()
  assert.deepEqual(begun, ['second'])
  clock.advance(60_000)
  await settle()
  assert.deepEqual(begun, ['second', 'third'])
  for (const turn of [second, third, other]) turn.leave()
  assert.equal(clock.pending(), 0)
  assert.ok(turns.of('pods').join())
})

test('a list that ends while it waits makes room for those behind it', async () => {
  const turns = new ListingTurns(fakeClock())
  const [first, second, third] = [turns.of('pods'), turns.of('pods'), turns.of('pods')]
  for (const turn of [first, second, third]) turn.join()
  const ending = new AbortController()
  const begun: string[] = []
  void second.wait(ending.signal).then(() => begun.push('second'))
  void third.wait(never).then(() => begun.push('third'))
  await settle()
  assert.deepEqual(begun, [])
  ending.abort()
  await settle()
  assert.deepEqual(begun, ['second'])
  second.leave()
  await settle()
  assert.deepEqual(begun, ['second'], 'the first still reads')
  first.leave()
  await settle()
  assert.deepEqual(begun, ['second', 'third'])
})
