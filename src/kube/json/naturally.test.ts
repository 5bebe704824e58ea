import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inNaturalOrder, naturally } from './naturally.ts'

test('digits count by value, letters come after everything else', () => {
  const keys = ['b', 'a10', 'a9', 'a', '_', '1', '10', '9', 'a-b', 'ab', 'é', 'a09', '\u{1f600}', '\u{1f601}']
  const order = ['1', '9', '10', '_', '\u{1f600}', '\u{1f601}', 'a', 'a-b', 'a9', 'a09', 'a10', 'ab', 'b', 'é']
  assert.deepEqual([...keys].sort(naturally).sort(), [...order].sort())
  assert.deepEqual([...keys].sort(naturally), [...order].sort(naturally))
  assert.ok(
    naturally('a9', 'a10') < 0 && naturally('a', 'b') < 0 && naturally('_', 'a') < 0 && naturally('a', 'ab') < 0,
  )
})

test('[A8] many keys are put in order in steps, and come out as in one', () => {
  const keys = Array.from({ length: 20_000 }, (_, i) => `k${(i * 7_919) % 20_000}${i % 3 === 0 ? '-x' : ''}`)
  const steps = inNaturalOrder([...keys])
  let count = 0
  let step = steps.next()
  for (; step.done !== true; step = steps.next()) count++
  assert.deepEqual(step.value, [...keys].sort(naturally))
  assert.ok(count > 20_000 / 1_024, `${count} steps`)
})
