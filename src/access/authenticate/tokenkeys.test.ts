/** The keys of tokens behind a hub, which says whether they are what they were. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeClock } from '../../base/fakeclock.test-support.ts'
import { signOf, type ToldSigns } from '../../upstream/told.ts'
import { FakeCloud, settle } from '../access.test-support.ts'
import { TokenKeys } from './tokenkeys.ts'
import { issuer, jwksOf, makeSigner } from './tokens.test-support.ts'

const [first, second] = [jwksOf(makeSigner()), jwksOf(makeSigner())]
const configuration = JSON.stringify({ issuer })

test('[I5] keys that the hub says to be the same are not asked for after a cut, nor by the hour, and count for no token until they are', async () => {
  const clock = fakeClock()
  const cloud = new FakeCloud()
  const listeners = new Set<() => void>()
  let sign: Buffer | undefined = signOf(configuration, first)
  const told: ToldSigns = {
    of: () => sign,
    observe: (listener) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
  const publish = (jwks: string) => {
    cloud.documents.set('/.well-known/openid-configuration', configuration)
    cloud.documents.set('/openid/v1/jwks', jwks)
  }
  publish(first)
  const parts = { upstream: Object.assign(cloud, { told }), clock, stored: undefined }
  const keys = new TokenKeys({ ...parts, keep: () => {}, changed: () => {} })
  const ending = new AbortController()
  const running = keys.run(ending.signal)
  await settle()
  assert.equal(keys.record?.jwks, first)
  const asked = () => cloud.asked.splice(0).filter((one) => one.includes('jwks')).length
  assert.equal(asked(), 1)
  for (let hour = 0; hour < 3; hour++) {
    clock.advance(3_600_000)
    cloud.state = 'unreachable'
    cloud.state = 'reachable'
    await settle()
  }
  assert.equal(asked(), 0)
  assert.equal(keys.isFresh(), false, 'what was not asked for in half a minute verifies nothing')
  await settle()
  assert.deepEqual([asked(), keys.isFresh()], [1, true])
  // Others count from the moment in which the hub tells of them.
  clock.advance(60_000)
  publish(second)
  sign = signOf(configuration, second)
  for (const listener of listeners) listener()
  await settle()
  assert.deepEqual([asked(), keys.record?.jwks], [1, second])
  // An older hub says nothing.
  sign = undefined
  clock.advance(60_000)
  cloud.state = 'reachable'
  await settle()
  assert.equal(asked(), 1)
  ending.abort()
  await running
  assert.equal(listeners.size, 0)
})
