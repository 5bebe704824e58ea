import assert from 'node:assert/strict'
import { test } from 'node:test'
import { alice, aliceToken, makeJwt, openBench, settle, withAlice } from './access.test-support.ts'
import { makeQuestion } from './question.ts'

const pods = makeQuestion({ verb: 'list', resource: 'pods' })
const dayMs = 86_400_000

function tokenUntil(clock: { now(): number }, ms: number) {
  return { kind: 'token', token: makeJwt({ exp: (clock.now() + ms) / 1000, iat: clock.now() / 1000 }) } as const
}

test('a token is known after an offline restart, until its own expiry', async () => {
  let bench = await openBench()
  const token = tokenUntil(bench.clock, 3_600_000)
  bench.cloud.users.set(token.token, alice)
  await bench.access.decide(token, pods)
  bench.cloud.state = 'unreachable'
  bench = await bench.restart()
  assert.deepEqual(bench.access.held(token), alice)
  assert.equal(bench.access.decide(token, pods), 'allowed')
  bench.clock.advance(3_600_000)
  assert.equal(bench.access.held(token), undefined)
  assert.equal(bench.access.decide(token, pods), 'unauthorized')
})

test('[I1] a clock that was set back does not revive an expired token, also after a restart', async () => {
  let bench = await openBench()
  const token = tokenUntil(bench.clock, 3_600_000)
  bench.cloud.users.set(token.token, alice)
  await bench.access.decide(token, pods)
  bench.cloud.state = 'unreachable'
  bench.clock.advance(2 * 3_600_000)
  bench = await bench.restart()
  bench.clock.jump(-30 * dayMs)
  assert.equal(bench.access.decide(token, pods), 'unauthorized')
  bench = await bench.restart()
  assert.equal(bench.access.decide(token, pods), 'unauthorized')
})

test('the time of the API server puts a clock right that once ran ahead', async () => {
  let bench = await openBench()
  const trueMs = bench.clock.now()
  bench.clock.jump(365 * dayMs)
  bench = await bench.restart()
  bench = await bench.restart()
  bench.clock.jump(-365 * dayMs)
  assert.ok(bench.nowMs() > trueMs + 364 * dayMs)
  const token = tokenUntil(bench.clock, 3_600_000)
  bench.cloud.users.set(token.token, alice)
  bench.cloud.date = new Date(trueMs).toUTCString()
  await bench.access.decide(token, pods)
  assert.ok(bench.nowMs() < trueMs + dayMs)
  bench.cloud.state = 'unreachable'
  assert.equal(bench.access.decide(token, pods), 'allowed')
})

test('an expiry that only our clock sees is put to the API server while it can be reached', async () => {
  const { access, cloud, clock } = await openBench()
  const token = tokenUntil(clock, -60_000)
  cloud.users.set(token.token, alice)
  assert.equal(await access.decide(token, pods), 'allowed')
  assert.equal(access.decide(token, pods), 'allowed')
  clock.advance(10_000)
  cloud.users.delete(token.token)
  assert.equal(await access.decide(token, pods), 'unauthorized')
})

test('how long a token without an expiry counts without the cloud can be said', async () => {
  const bench = await openBench({ opaqueMsMax: dayMs })
  const token = { kind: 'token', token: 'opaque' } as const
  bench.cloud.users.set(token.token, alice)
  await bench.access.decide(token, pods)
  bench.cloud.state = 'unreachable'
  bench.clock.advance(dayMs - 1)
  assert.equal(bench.access.decide(token, pods), 'allowed')
  bench.clock.advance(1)
  assert.equal(bench.access.decide(token, pods), 'unauthorized')
})

test('where tokens count no more without the cloud none does, whatever it says itself, until the cloud is back', async () => {
  const state = { takes: true }
  const { access, cloud, clock } = await openBench({ takesTokens: () => state.takes })
  const tokens = [tokenUntil(clock, dayMs), { kind: 'token', token: 'opaque' } as const]
  for (const token of tokens) {
    cloud.users.set(token.token, alice)
    assert.equal(await access.decide(token, pods), 'allowed')
  }
  cloud.state = 'unreachable'
  for (const token of tokens) assert.equal(access.decide(token, pods), 'allowed')
  state.takes = false
  for (const token of tokens) assert.equal(access.decide(token, pods), 'unauthorized')
  cloud.state = 'reachable'
  for (const token of tokens) assert.equal(await access.decide(token, pods), 'allowed')
})

test('a token without an expiry counts for a month without the cloud', async () => {
  const { access, cloud, clock } = await openBench()
  const token = { kind: 'token', token: 'opaque' } as const
  cloud.users.set(token.token, alice)
  await access.decide(token, pods)
  cloud.state = 'unreachable'
  clock.advance(29 * dayMs)
  assert.equal(access.decide(token, pods), 'allowed')
  clock.advance(2 * dayMs)
  assert.equal(access.decide(token, pods), 'unauthorized')
})

test('[I5] a revoked token ends within 30 s, though another token of the same caller is in use', async () => {
  const { access, cloud, clock } = await openBench()
  const [old, current] = ['old', 'current'].map((token) => ({ kind: 'token', token }) as const)
  assert.ok(old && current)
  for (const { token } of [old, current]) cloud.users.set(token, alice)
  await access.decide(old, pods)
  await access.decide(current, pods)
  cloud.users.delete(old.token)
  for (let passed = 0; passed < 30_000; passed += 4_000) {
    clock.advance(4_000)
    // The decision of the caller stays fresh by the other token.
    assert.equal(await access.decide(current, pods), 'allowed')
    await settle()
  }
  assert.equal(await access.decide(old, pods), 'unauthorized')
  assert.equal(access.decide(current, pods), 'allowed')
})

test('who it is gets asked again beside the requests of a busy caller; new groups are a new caller', async () => {
  const { access, cloud, clock } = await openBench()
  const token = { kind: 'token', token: 'opaque' } as const
  const subjects = () => cloud.asked.filter((line) => line.startsWith('subject')).length
  cloud.users.set(token.token, alice)
  await access.decide(token, pods)
  cloud.users.set(token.token, { ...alice, groups: ['ops'] })
  cloud.allows = ({ groups }) => groups.includes('ops')
  for (const [passed, asked] of [
    [9_000, 1],
    [5_999, 1],
    [1, 2],
  ] as const) {
    clock.advance(passed)
    await access.decide(token, pods)
    await settle()
    assert.equal(subjects(), asked)
  }
  assert.deepEqual(access.held(token)?.groups, ['ops'])
  const before = { kind: 'token', token: 'still-of-the-old-groups' } as const
  cloud.users.set(before.token, alice)
  await access.caller(before)
  cloud.state = 'unreachable'
  assert.equal(access.decide(before, pods), 'unknown', 'what was said meanwhile may have been said of either')
})

test('[I1] an answer counts for nobody if its credential has come to stand for somebody else meanwhile', async () => {
  const { access, cloud, clock } = await openBench()
  const [moved, left] = ['moved', 'left-behind'].map((token) => ({ kind: 'token', token }) as const)
  assert.ok(moved && left)
  for (const { token } of [moved, left]) cloud.users.set(token, alice)
  await access.decide(moved, pods)
  clock.advance(5_000)
  cloud.users.set(moved.token, { ...alice, groups: ['ops'] })
  cloud.allows = ({ groups }) => groups.includes('ops')
  cloud.mode = 'hang'
  void access.decide(moved, pods)
  await settle()
  cloud.mode = 'answer'
  clock.advance(30_000)
  assert.equal(await access.decide(moved, pods), 'allowed')
  cloud.release()
  await settle()
  await access.caller(left)
  cloud.state = 'unreachable'
  assert.equal(access.decide(left, pods), 'unknown')
})

test('[I5] who was known before a restart is asked for before its first use online, together with what it may do', async () => {
  let bench = await openBench()
  const token = { kind: 'token', token: 'opaque' } as const
  bench.cloud.users.set(token.token, alice)
  await bench.access.decide(token, pods)
  bench = await bench.restart()
  bench.cloud.mode = 'hang'
  const verdict = bench.access.decide(token, pods)
  await settle()
  assert.equal(bench.cloud.atOnce, 2, 'both are asked at once')
  bench.cloud.release()
  assert.equal(await verdict, 'allowed')
})

test('what was written down before extra counted is asked again', async () => {
  const bench = await openBench()
  const token = { kind: 'token', token: 'opaque' } as const
  bench.cloud.users.set(token.token, alice)
  await bench.access.decide(token, pods)
  await bench.restart()
  for (const [place, record] of bench.records.kept) {
    if (record.kind !== 'caller') continue
    const { extra: _, ...old } = JSON.parse(record.value.toString())
    bench.records.kept.set(place, { ...record, value: Buffer.from(JSON.stringify(old)) })
  }
  const next = await bench.crash()
  next.cloud.state = 'unreachable'
  assert.equal(next.access.decide(token, pods), 'unknown')
  next.cloud.state = 'reachable'
  assert.equal(await next.access.decide(token, pods), 'allowed')
})

test('a refusal is remembered for 10 s only', async () => {
  const { access, cloud, clock } = await openBench()
  const token = { kind: 'token', token: 'not-yet-valid' } as const
  for (let i = 0; i < 5; i++) assert.equal(await access.decide(token, pods), 'unauthorized')
  assert.equal(cloud.asked.length, 1)
  cloud.users.set(token.token, alice)
  clock.advance(10_000)
  assert.equal(await access.decide(token, pods), 'allowed')
})

test('[I1] an acceptance that was asked for before a 401 was told does not count', async () => {
  const { access, cloud, clock } = await openBench()
  const token = { kind: 'token', token: 'soon-revoked' } as const
  cloud.users.set(token.token, alice)
  cloud.mode = 'hang'
  const verdict = access.decide(token, pods)
  await settle()
  clock.advance(10)
  access.learn(token, pods, { status: 401, askedAt: clock.steady() })
  cloud.mode = 'answer'
  cloud.release()
  assert.equal(await verdict, 'unauthorized')
})

test('a 401 takes a token off the disk at once', async () => {
  const bench = await openBench()
  const token = { kind: 'token', token: 'revoked' } as const
  bench.cloud.users.set(token.token, alice)
  await bench.access.decide(token, pods)
  bench.clock.advance(3000)
  await settle()
  bench.access.learn(token, pods, { status: 401, askedAt: bench.clock.steady() })
  await settle()
  bench.cloud.state = 'unreachable'
  const next = await bench.crash()
  assert.equal(next.access.held(token), undefined)
})

test('a certificate caller is reviewed like a token, by the name of its credential', async () => {
  const { access, cloud } = await openBench()
  const node = { name: 'system:node:n1', uid: '', groups: ['system:nodes'] }
  cloud.users.set('n1', node)
  assert.deepEqual(await access.caller({ kind: 'certificate', name: 'n1' }), node)
  assert.equal(await access.caller({ kind: 'token', token: 'n1-other' }), undefined)
  cloud.state = 'unreachable'
  assert.deepEqual(access.held({ kind: 'certificate', name: 'n1' }), node)
})

test('damaged records are as if they were not there', async () => {
  const bench = await openBench()
  for (const kind of ['caller', 'decision', 'token', 'access']) {
    for (const text of ['', '{', 'null', '[]', '{"untilMs":"x"}']) {
      bench.records.kept.set(kind + text, { kind, key: `k${text}`, value: Buffer.from(text) })
    }
  }
  bench.records.kept.set('n', { kind: 'access', key: 'newest', value: Buffer.from('soon') })
  const next = await bench.crash()
  assert.equal(next.nowMs(), bench.clock.now())
  assert.equal(await next.access.decide({ kind: 'token', token: 'x' }, pods), 'unauthorized')
})

test('invented tokens do not push out honest ones, and known callers are bounded', async () => {
  const { access, cloud, clock } = await openBench()
  const honest = { kind: 'token', token: 'honest' } as const
  cloud.users.set(honest.token, alice)
  await access.decide(honest, pods)
  for (let i = 0; i < 5000; i++) await access.decide({ kind: 'token', token: `invented-${i}` }, pods)
  cloud.state = 'unreachable'
  assert.equal(access.decide(honest, pods), 'allowed')
  cloud.state = 'reachable'
  for (let i = 0; i < 4200; i++) {
    const token = { kind: 'token', token: `own-${i}` } as const
    cloud.users.set(token.token, alice)
    clock.advance(1)
    await access.caller(token)
    if (i % 100 === 0) access.held(honest)
  }
  assert.equal(access.held({ kind: 'token', token: 'own-1' }), undefined)
  assert.deepEqual(access.held(honest), alice)
})

test('[I5] what the API server does with a certificate confirms its caller as a review would; a token may be another’s by now', async () => {
  const bench = await withAlice()
  const { access, cloud, clock } = bench
  cloud.users.set('n1', { name: 'system:node:n1', uid: '', groups: ['system:nodes'] })
  const reviews = () => cloud.asked.filter((one) => one.startsWith('subject')).length
  const node = { kind: 'certificate', name: 'n1' } as const
  const lease = makeQuestion({ verb: 'update', group: 'coordination.k8s.io', resource: 'leases', name: 'n1' })
  for (const [identity, more] of [
    [node, 0],
    [aliceToken, 4],
  ] as const) {
    await access.caller(identity)
    const before = reviews()
    for (let at = 0; at < 20; at++) {
      clock.advance(10_000)
      access.learn(identity, lease, { status: 200, askedAt: clock.steady() })
      await settle()
    }
    const found = reviews() - before
    assert.ok(more === 0 ? found === 0 : found >= more, `${identity.kind}: ${found}`)
  }
  // Neither a refusal nor an answer of long ago tells anything of it, and offline it counts only as long as after its last review.
  clock.advance(31_000)
  const before = reviews()
  access.learn(node, lease, { status: 403, askedAt: clock.steady() })
  await settle()
  assert.equal(reviews() - before, 1)
  clock.advance(16 * 86_400_000)
  access.learn(node, lease, { status: 200, askedAt: clock.steady() })
  await settle()
  assert.equal(reviews() - before, 2)
})

test('[I5] who stands behind a credential is asked for anew where that is not certain, and never told without the API server', async () => {
  const { cloud, clock, access, recheckCaller } = await withAlice()
  assert.deepEqual(await recheckCaller(aliceToken), alice)
  assert.deepEqual(await recheckCaller(aliceToken), alice)
  assert.deepEqual(cloud.asked, ['subject alice'])
  cloud.state = 'unreachable'
  assert.equal(await recheckCaller(aliceToken), 'unknown')
  assert.deepEqual(access.held(aliceToken), alice)
  cloud.state = 'reachable'
  clock.advance(60_000)
  cloud.mode = 'error'
  assert.equal(await recheckCaller(aliceToken), 'unknown')
  cloud.mode = 'answer'
  cloud.users.clear()
  clock.advance(60_000)
  assert.equal(await recheckCaller(aliceToken), 'refused')
  assert.equal(await recheckCaller(aliceToken), 'refused')
})
