/** What follows from a decision for other questions, and what does not. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { settle, aliceToken as token, withAlice } from './access.test-support.ts'
import { makeQuestion } from './question.ts'

const pods = makeQuestion({ verb: 'list', version: 'v1', resource: 'pods', namespace: 'shop' })
const everywhere = { verb: 'list', version: 'v1', resource: 'pods' }
const inShop = { ...everywhere, namespace: 'shop' }

test('[I2] a decision answers its own question and its parts, nothing else', async () => {
  const { access, cloud } = await withAlice()
  assert.equal(await access.decide(token, pods), 'allowed')
  cloud.state = 'unreachable'
  for (const other of [
    { ...inShop, verb: 'watch' },
    everywhere,
    { ...inShop, namespace: 'other' },
    { ...inShop, group: 'apps' },
    { ...inShop, subresource: 'log' },
    { verb: 'list', path: '/pods' },
  ]) {
    assert.equal(access.decide(token, makeQuestion(other)), 'unknown')
  }
  for (const part of [
    { name: 'a' },
    { labels: 'a=b' },
    { fields: 'spec.nodeName=n', labels: 'a' },
    { version: 'v2' },
  ]) {
    assert.equal(access.decide(token, makeQuestion({ ...inShop, ...part })), 'allowed')
  }
})

test('[I2] a permission without a namespace covers each, also with a selector, while the cloud is away', async () => {
  const { access, cloud } = await withAlice()
  await access.decide(token, makeQuestion(everywhere))
  cloud.state = 'unreachable'
  for (const part of [{ namespace: 't' }, { labels: 'app=x' }, { namespace: 't', labels: 'app=x', fields: 'a=b' }]) {
    assert.equal(access.decide(token, makeQuestion({ ...everywhere, ...part })), 'allowed')
  }
})

test('[I2] what is limited by a name or a selector does not widen, nor to another', async () => {
  const { access, cloud } = await withAlice()
  for (const limited of [
    { ...inShop, labels: 'a=b' },
    { ...inShop, name: 'x' },
    { ...everywhere, fields: 'a=b' },
  ]) {
    await access.decide(token, makeQuestion(limited))
  }
  cloud.state = 'unreachable'
  for (const other of [inShop, everywhere, { ...inShop, labels: 'a=c' }, { ...inShop, name: 'y' }]) {
    assert.equal(access.decide(token, makeQuestion(other)), 'unknown')
  }
  const both = { ...inShop, labels: 'a=b', fields: 'c=d' }
  assert.equal(access.decide(token, makeQuestion(both)), 'allowed', 'a further selector is a part')
})

test('[I2] a denial answers what contains it, and undoes an older allowance of that, on disk too', async () => {
  let bench = await withAlice()
  await bench.access.decide(token, makeQuestion(everywhere))
  bench.clock.advance(3000)
  await settle()
  bench.clock.advance(7000)
  bench.cloud.allows = () => false
  assert.equal(await bench.access.decide(token, makeQuestion({ ...inShop, labels: 'a' })), 'denied')
  await settle()
  bench.cloud.state = 'unreachable'
  for (const whole of [inShop, everywhere, { ...everywhere, labels: 'a' }]) {
    assert.equal(bench.access.decide(token, makeQuestion(whole)), 'denied')
  }
  assert.equal(bench.access.decide(token, makeQuestion({ ...inShop, labels: 'b' })), 'unknown', 'another part')
  bench = await bench.crash()
  assert.equal(bench.access.decide(token, makeQuestion(everywhere)), 'unknown')
})

test('why a part was denied is not said of the whole: that is asked', async () => {
  const { access, cloud } = await withAlice()
  cloud.allows = () => false
  cloud.reason = 'only that part'
  await access.decide(token, makeQuestion(inShop))
  const whole = makeQuestion(everywhere)
  cloud.reason = 'all of it'
  assert.equal(await access.decide(token, whole), 'denied')
  cloud.state = 'unreachable'
  assert.match(access.refusal(token, whole, 'denied').message, /: all of it$/)
  assert.match(access.refusal(token, makeQuestion(inShop), 'denied').message, /: only that part$/)
})

test('[I2] what was said of a question itself counts more than what follows from another', async () => {
  const { access, cloud, clock } = await withAlice()
  const narrow = makeQuestion(inShop)
  cloud.allows = (_, { resourceAttributes }) => resourceAttributes?.namespace !== 'shop'
  assert.equal(await access.decide(token, narrow), 'denied')
  clock.advance(1)
  // As with an authorizer that denies one namespace expressly.
  access.learn(token, makeQuestion(everywhere), { status: 200, askedAt: clock.steady() })
  cloud.state = 'unreachable'
  assert.equal(access.decide(token, makeQuestion(everywhere)), 'allowed')
  assert.equal(access.decide(token, narrow), 'denied')
  const part = makeQuestion({ ...inShop, labels: 'a' })
  assert.equal(access.decide(token, part), 'unknown', 'nor for a part of what was denied')
  assert.equal(access.decide(token, makeQuestion({ ...everywhere, namespace: 'other' })), 'allowed')
})

test('[I5] what follows from a permission counts online while that is fresh, then it is asked for itself', async () => {
  const { access, cloud, clock } = await withAlice()
  await access.decide(token, makeQuestion(everywhere))
  const narrow = makeQuestion(inShop)
  assert.equal(access.decide(token, narrow), 'allowed')
  assert.equal(cloud.specs.length, 1)
  cloud.allows = () => false
  clock.advance(10_000)
  assert.equal(await access.decide(token, narrow), 'denied')
  assert.equal(cloud.specs[1]?.resourceAttributes?.namespace, 'shop')
})

test('[I2] an open watch is not ended by what only follows from the denial of a part', async () => {
  const { access, cloud, clock } = await withAlice()
  cloud.allows = (_, { resourceAttributes }) => resourceAttributes?.namespace !== 'shop'
  await access.decide(token, makeQuestion(inShop))
  clock.advance(1)
  assert.equal(await access.recheck(token, makeQuestion(everywhere)), 'allowed')
})
