import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeClock } from '../../base/fakeclock.test-support.ts'
import { CloudRelease } from './cloudrelease.ts'

type Content = ConstructorParameters<typeof CloudRelease>[0]['documents']['content']

const settle = () => new Promise((resolve) => setImmediate(resolve))

/** A cloud that says this about itself; `come` is its coming back. */
function setUp() {
  const clock = fakeClock()
  const observers = new Set<(state: 'reachable') => void>()
  const cloud = { asked: 0, says: '' }
  const content: Content = async () => {
    cloud.asked++
    return cloud.says === 'unknown' ? undefined : Buffer.from(cloud.says)
  }
  const observe = (observer: (state: 'reachable') => void) => {
    observers.add(observer)
    return () => void observers.delete(observer)
  }
  const release = new CloudRelease({ documents: { content }, reachability: { observe } as never, clock })
  const ending = new AbortController()
  const running = release.run(ending.signal)
  const end = async () => {
    ending.abort()
    await running
    assert.deepEqual([clock.pending(), observers.size], [0, 0])
  }
  const come = () => [...observers].map((observer) => observer('reachable'))
  return { clock, cloud, release, come, [Symbol.asyncDispose]: end }
}

test('a release that is known is no later one, and until it is known it may be', async () => {
  await using it = setUp()
  const { clock, cloud, release } = it
  cloud.says = 'unknown'
  await settle()
  assert.equal(release.isLater, true)
  for (const [says, isLater] of [
    ['{"major":"1","minor":"36"}', false],
    ['{"major":"1","minor":"37"}', true],
    ['{"major":"1","minor":"31+"}', false],
    ['{"major":"1","minor":"40+"}', true],
    ['no JSON', true],
  ] as const) {
    cloud.says = says
    clock.advance(600_000)
    await settle()
    assert.equal(release.isLater, isLater, says)
  }
})

test('a cloud that comes back is asked anew, one that says nothing soon', async () => {
  await using it = setUp()
  const { clock, cloud, release, come } = it
  cloud.says = 'unknown'
  await settle()
  clock.advance(5_000)
  await settle()
  assert.equal(cloud.asked, 2)
  cloud.says = '{"major":"1","minor":"36"}'
  come()
  await settle()
  assert.deepEqual([cloud.asked, release.isLater], [3, false])
  clock.advance(5_000)
  await settle()
  assert.equal(cloud.asked, 3)
})
