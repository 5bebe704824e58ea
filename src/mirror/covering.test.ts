/** Which interest answers a read, where several cover it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { coveringOf } from './covering.ts'
import { interestOf } from './interest.ts'
import type { MirroredInterest } from './mirrored.ts'
import { scopeOf } from './world.test-support.ts'

function synced(labels: string, version: number, floor: number, listedOver = 0): MirroredInterest {
  const readable = {
    version,
    history: { floor, unknownAt: (named: number) => (named === listedOver ? {} : undefined) },
  }
  return { interest: interestOf(scopeOf({ labels })), readable } as unknown as MirroredInterest
}

test('[A3] a watch goes to an interest that has reached its version, before a wider one that is behind it or has forgotten it', () => {
  const asked = scopeOf({ labels: 'app=web' })
  const wide = synced('', 23, 5)
  const narrow = synced('app=web', 29, 10)
  const both = [wide, narrow]
  assert.equal(coveringOf(both, asked, 29), narrow, 'the wide one may never have known what its client has seen')
  assert.equal(coveringOf(both, asked, 20), wide, 'where both have it the wider one')
  assert.equal(coveringOf(both, asked, 7), wide, 'below the floor of the narrow one')
  assert.equal(coveringOf(both, asked, 0), narrow, 'without a version the one that shows most')
  assert.equal(coveringOf(both.toReversed(), asked, 0), narrow)
  assert.equal(coveringOf([synced('', 29, 5), narrow], asked, 0)?.interest.labels.empty, true, 'as far: the wider one')
  assert.equal(coveringOf([wide], asked, 29), wide, 'one that is behind is better than none')
})

test('[A3] a watch goes to an interest that was told of every change around its version, before a wider one that passed it by a list', () => {
  const asked = scopeOf({ labels: 'app=web' })
  const wide = synced('', 40, 5, 29)
  const narrow = synced('app=web', 35, 10)
  assert.equal(coveringOf([wide, narrow], asked, 29), narrow)
  assert.equal(coveringOf([wide], asked, 29), wide)
})
