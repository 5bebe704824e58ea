/** How long what was decided counts while the API server can be asked. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { settle, aliceToken as token, withAlice } from './access.test-support.ts'
import { makeQuestion } from './question.ts'

const pods = makeQuestion({ verb: 'list', version: 'v1', resource: 'pods', namespace: 'shop' })
const secrets = makeQuestion({ verb: 'list', version: 'v1', resource: 'secrets', namespace: 'shop' })
const other = makeQuestion({ verb: 'list', version: 'v1', resource: 'pods', namespace: 'other' })

test('[I5] a busy caller never waits: its decision is asked again beside a request, and a denial counts from then on', async () => {
  const { access, cloud, clock } = await withAlice()
  await access.decide(token, pods)
  clock.advance(4999)
  assert.equal(access.decide(token, pods), 'allowed')
  await settle()
  assert.equal(cloud.asked.length, 2)
  clock.advance(1)
  assert.equal(access.decide(token, pods), 'allowed')
  assert.equal(access.decide(token, pods), 'allowed')
  await settle()
  assert.equal(cloud.asked.length, 3)
  clock.advance(9999)
  cloud.allows = () => false
  assert.equal(access.decide(token, pods), 'allowed')
  await settle()
  assert.equal(access.decide(token, pods), 'denied')
})

test('[I5] while the API server can be asked nobody reads on a decision of 10 s: a new one is waited for', async () => {
  const { access, cloud, clock } = await withAlice()
  await access.decide(token, pods)
  cloud.allows = () => false
  clock.advance(10_000)
  const verdict = access.decide(token, pods)
  assert.ok(verdict instanceof Promise)
  assert.equal(await verdict, 'denied')
})

test('[I5] its age counts from when it was asked for, however slow the answer', async () => {
  const { access, cloud, clock } = await withAlice()
  await access.decide(token, secrets)
  cloud.mode = 'hang'
  cloud.probes = () => true
  const first = access.decide(token, pods)
  await settle()
  clock.advance(200)
  cloud.release()
  assert.equal(await first, 'allowed')
  cloud.mode = 'answer'
  cloud.allows = () => false
  clock.advance(9800)
  assert.equal(await access.decide(token, pods), 'denied')
})

test('[I5] what came from disk is asked again before its first use online', async () => {
  let bench = await withAlice()
  await bench.access.decide(token, pods)
  bench = await bench.restart()
  bench.cloud.allows = () => false
  assert.equal(await bench.access.decide(token, pods), 'denied')
})

test('[I5] a review that fails while the API server is reachable leaves it to say so itself', async () => {
  const { access, cloud, clock } = await withAlice()
  await access.decide(token, pods)
  await access.decide(token, secrets)
  cloud.mode = 'error'
  clock.advance(10_000)
  assert.equal(await access.decide(token, pods), 'unknown')
  assert.equal(await access.decide(token, pods), 'unknown', 'also where it is not tried again so soon')
  assert.deepEqual(cloud.suspicions, [])
  cloud.mode = 'answer'
  clock.advance(1000)
  assert.equal(await access.decide(token, pods), 'allowed')
})

test('[I5] a review that breaks off is a lost line only if a probe says so', async () => {
  const { access, cloud, clock } = await withAlice()
  await access.decide(token, pods)
  cloud.mode = 'break'
  cloud.probes = () => true
  clock.advance(10_000)
  assert.equal(await access.decide(token, pods), 'unknown')
  clock.advance(1000)
  cloud.probes = () => false
  assert.equal(await access.decide(token, pods), 'allowed', 'the last decision holds')
  assert.equal(cloud.reachability.state, 'suspect')
})

test('[I5] a slow authenticator of one caller makes nobody doubt the line: a probe is asked first', async () => {
  const { access, cloud, clock } = await withAlice()
  const stranger = { kind: 'token', token: 'slow-to-verify' } as const
  await access.decide(token, pods)
  cloud.mode = 'hang'
  cloud.probes = () => true
  const slow = access.decide(stranger, pods)
  await settle()
  clock.advance(150)
  await settle()
  clock.advance(150)
  assert.equal(await slow, 'unknown')
  assert.deepEqual([cloud.suspicions.length, cloud.reachability.state], [0, 'reachable'])
  clock.advance(10_000)
  const own = access.decide(token, pods)
  await settle()
  clock.advance(150)
  await settle()
  clock.advance(150)
  assert.equal(await own, 'unknown', 'and whose own is slow does not read on for that')
})

test('[I5] a change of roles makes every decision old at once, in its namespace or everywhere', async () => {
  const { access, changes, cloud, clock } = await withAlice()
  await access.decide(token, pods)
  await access.decide(token, other)
  cloud.allows = () => false
  clock.advance(100)
  changes.note('shop')
  assert.equal(access.decide(token, other), 'allowed')
  assert.equal(await access.decide(token, pods), 'denied')
  changes.note('')
  assert.equal(access.decide(token, other), 'allowed', 'more within a second count together, at its end')
  clock.advance(1000)
  assert.equal(await access.decide(token, other), 'denied')
})

test('[I5] a review that was sent before roles changed is not what anybody waits for', async () => {
  const { access, changes, cloud, clock } = await withAlice()
  await access.decide(token, secrets)
  cloud.mode = 'hang'
  cloud.probes = () => true
  const before = access.decide(token, pods)
  await settle()
  clock.advance(1)
  cloud.mode = 'answer'
  cloud.allows = () => false
  changes.note('shop')
  assert.equal(await access.decide(token, pods), 'denied')
  cloud.release()
  assert.equal(await before, 'denied', 'nor does its allowance count')
})
