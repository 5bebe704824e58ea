/** Who gets how much of what is scarce. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Holder, strangers } from './holder.ts'
import { placesOf, Shares } from './shares.ts'

const own = (name: string): Holder => ({ standing: 'own', name })
const known = (name: string): Holder => ({ standing: 'known', name })

/** Takes until it is refused; answers how much that was. */
function takeAll(shares: Shares, holder: Holder): number {
  let taken = 0
  while (shares.take(holder)) taken++
  return taken
}

test('[A8] however greedy those before are, the next caller finds something', () => {
  const shares = new Shares(160)
  const got = Array.from({ length: 8 }, (_, n) => takeAll(shares, known(`greedy${n}`)))
  assert.deepEqual(got.slice(0, 3), [75, 38, 19])
  assert.ok(
    got.every((one) => one > 0),
    `${got}`,
  )
})

test('[A8] what callers leave the administrator has alone, and each of its connections apart', () => {
  const shares = new Shares(160)
  for (let n = 0; n < 1_000; n++) takeAll(shares, known(`greedy${n}`))
  assert.equal(takeAll(shares, known('late')), 0)
  assert.equal(takeAll(shares, own('admin#1')), 5)
  assert.ok(takeAll(shares, own('admin#2')) > 0)
})

test('[A8] strangers are one holder, with little', () => {
  const shares = new Shares(160)
  assert.equal(takeAll(shares, strangers), 17)
  assert.ok(takeAll(shares, known('caller')) >= 60)
})

test('what is given back is free again', () => {
  const shares = new Shares(160)
  const one = known('one')
  assert.equal(takeAll(shares, one), 75)
  for (let n = 0; n < 75; n++) shares.give(one)
  assert.equal(shares.take(one, 75), true)
  assert.equal(shares.take(one, 1), false)
  shares.give(one, 75)
  assert.equal(shares.take(one, 76), true, 'in one piece it may be what is free')
})

test('[A8] a URL takes one place, and one that a selector fills as many as its memory is worth', () => {
  for (const length of [1, 300, 1_024]) assert.equal(placesOf('x'.repeat(length), 10_000), 1)
  assert.equal(placesOf('x'.repeat(1_025), 10_000), 2)
  assert.equal(placesOf('x'.repeat(61_024), 10_000), 301)
})
