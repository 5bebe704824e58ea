import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Clock } from '../base/clock.ts'
import { fakeClock } from '../base/fakeclock.test-support.ts'
import { alice, type Bench, FakeCloud, openBench, settle } from './access.test-support.ts'
import { Changes } from './changes.ts'
import { makeQuestion } from './question.ts'
import { OpenWatches } from './watches.ts'

const token = { kind: 'token', token: 'secret-of-alice' } as const
const inShop = makeQuestion({ verb: 'watch', resource: 'pods', namespace: 'shop' })
const elsewhere = makeQuestion({ verb: 'watch', resource: 'pods', namespace: 'elsewhere' })

async function withWatch(): Promise<Bench & { readonly ended: string[]; pass(ms: number): Promise<void> }> {
  const bench = await openBench()
  bench.cloud.users.set(token.token, alice)
  await bench.access.decide(token, inShop)
  await bench.access.decide(token, elsewhere)
  const ending = new AbortController()
  void bench.watches.run(ending.signal)
  const ended: string[] = []
  for (const question of [inShop, inShop, elsewhere]) {
    const gone = bench.watches.add(token, question, () => {
      ended.push(question.namespace)
      gone()
    })
  }
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 500) {
      bench.clock.advance(500)
      await settle()
    }
  }
  return { ...bench, ended, pass }
}

const reviews = ({ cloud }: Bench) => cloud.asked.filter((line) => line.startsWith('access')).length

test('[I5] an open watch is asked about every five minutes, and a caller that lost the right gets its end', async () => {
  const bench = await withWatch()
  const before = reviews(bench)
  await bench.pass(200_000)
  assert.equal(reviews(bench), before)
  await bench.pass(170_000)
  assert.equal(reviews(bench), before + 2, 'once for all that ask the same')
  assert.deepEqual(bench.ended, [])
  bench.cloud.allows = (_, { resourceAttributes }) => resourceAttributes?.namespace === 'elsewhere'
  await bench.pass(370_000)
  assert.deepEqual(bench.ended, ['shop', 'shop'])
  const then = reviews(bench)
  await bench.pass(370_000)
  assert.ok(reviews(bench) <= then + 2, 'of what has ended nothing is asked')
})

test('[I5] a change of roles in its namespace has a watch asked about at once, and once more', async () => {
  const bench = await withWatch()
  await bench.pass(20_000)
  const before = reviews(bench)
  bench.changes.note('shop')
  await bench.pass(2_000)
  assert.equal(reviews(bench), before + 1)
  assert.deepEqual(bench.ended, [])
  // The API server's authorizer has only now heard of it.
  bench.cloud.allows = (_, { resourceAttributes }) => resourceAttributes?.namespace === 'elsewhere'
  await bench.pass(16_000)
  assert.deepEqual(bench.ended, ['shop', 'shop'])
  bench.cloud.allows = () => false
  bench.changes.note('')
  await bench.pass(2_000)
  assert.deepEqual(bench.ended, ['shop', 'shop', 'elsewhere'])
})

test('[I5] a review that fails after a change of roles is soon tried again, its second look too', async () => {
  const bench = await withWatch()
  await bench.pass(20_000)
  bench.changes.note('shop')
  await bench.pass(2_000)
  bench.cloud.allows = (_, { resourceAttributes }) => resourceAttributes?.namespace === 'elsewhere'
  // The second look meets an API server that is too busy, some times in a row.
  bench.cloud.mode = 'error'
  await bench.pass(13_000)
  const before = reviews(bench)
  bench.cloud.mode = 'answer'
  await bench.pass(10_000)
  assert.deepEqual(bench.ended, ['shop', 'shop'])
  bench.cloud.mode = 'error'
  bench.cloud.allows = () => false
  bench.changes.note('')
  await bench.pass(1_000)
  bench.cloud.mode = 'answer'
  await bench.pass(2_500)
  assert.deepEqual(bench.ended, ['shop', 'shop', 'elsewhere'])
  assert.ok(reviews(bench) < before + 6, 'and not in a loop')
})

test('[I5] a timer that fires a moment early is early enough', async () => {
  const clock = fakeClock()
  const early: Clock = { ...clock, setTimer: (ms, fn) => clock.setTimer(Math.floor(ms) - 1, fn) }
  const changes = new Changes(early)
  const { reachability } = new FakeCloud()
  const recheck = async () => 'denied' as const
  const parts = { recheck, keyOf: () => 'k', changes, reachability, clock: early, random: () => 0.1 }
  let ended = false
  new OpenWatches(parts).add(token, inShop, () => {
    ended = true
  })
  changes.note('')
  clock.advance(1_000)
  await settle()
  assert.ok(ended, 'before anybody looks again')
})

test('[I5] a revoked token loses its watches, and only they end', async () => {
  const bench = await withWatch()
  const other = { kind: 'token', token: 'another-of-alice' } as const
  bench.cloud.users.set(other.token, alice)
  await bench.access.caller(other)
  bench.watches.add(other, inShop, () => bench.ended.push('other'))
  bench.cloud.users.delete(token.token)
  await bench.pass(740_000)
  assert.deepEqual(bench.ended.sort(), ['elsewhere', 'shop', 'shop'])
})

test('neither a review that fails nor a cloud that is away ends a watch', async () => {
  const bench = await withWatch()
  bench.cloud.allows = () => false
  bench.cloud.mode = 'error'
  bench.changes.note('')
  await bench.pass(400_000)
  bench.cloud.mode = 'silent'
  bench.cloud.probes = () => true
  await bench.pass(400_000)
  bench.cloud.mode = 'answer'
  bench.cloud.state = 'unreachable'
  bench.changes.note('')
  await bench.pass(400_000)
  assert.deepEqual(bench.ended, [])
  bench.cloud.state = 'reachable'
  await bench.pass(70_000)
  assert.equal(bench.ended.length, 3, 'it is asked when it can be')
})

test('the administrator’s watches are nobody’s to ask about', async () => {
  const bench = await withWatch()
  bench.watches.add({ kind: 'edge' }, inShop, () => bench.ended.push('administrator'))
  bench.cloud.allows = () => false
  bench.changes.note('')
  await bench.pass(400_000)
  assert.ok(!bench.ended.includes('administrator'))
})
