import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LinkCost } from './linkcost.ts'

test('what the edges begin with is told apart from what changes cost', () => {
  const cost = new LinkCost()
  assert.deepEqual(cost.read({ line: 100_000, plain: 0 }), { start: 100_000, since: undefined })
  cost.read({ line: 900_000, plain: 10_000 })
  // A pause is not the end of it.
  cost.read({ line: 900_500, plain: 11_000 })
  assert.deepEqual(cost.read({ line: 2_000_000, plain: 12_000 }), { start: 2_000_000, since: undefined })
  cost.read({ line: 2_000_500, plain: 13_000 })
  cost.read({ line: 2_001_000, plain: 14_000 })
  assert.deepEqual(cost.read({ line: 2_001_500, plain: 15_000 }), { start: 2_001_500, since: { line: 0, plain: 0 } })
  assert.deepEqual(cost.read({ line: 2_901_500, plain: 18_000 }), {
    start: 2_001_500,
    since: { line: 900_000, plain: 3_000 },
  })
})
