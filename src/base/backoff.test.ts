import assert from 'node:assert/strict'
import { test } from 'node:test'
import { backoff, backoffMs } from './backoff.ts'

test('[L4] waits double up to the limit, spread over their upper half, and start again after a success', () => {
  const longest = backoff({ firstMs: 100, maxMs: 350, random: () => 1 })
  assert.deepEqual([longest.next(), longest.next(), longest.next(), longest.next()], [100, 200, 350, 350])
  longest.reset()
  assert.equal(longest.next(), 100)
  assert.equal(backoff({ firstMs: 100, maxMs: 350, random: () => 0 }).next(), 50)
})

test('[L4] a series of failures without end waits for the limit, not for ever', () => {
  assert.equal(backoffMs(5_000, { firstMs: 100, maxMs: 350, random: () => 1 }), 350)
})
