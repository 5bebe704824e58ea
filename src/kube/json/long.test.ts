import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseInt64, quoted } from './gotext.ts'
import { equalJson, parseJson } from './json.ts'
import { isInt64, Spelled } from './number.ts'
import { plainValue } from './yaml/scalar.ts'

/** How many digits were given to BigInt, whose time grows faster than their number. */
function digitsSummed(work: () => void): number {
  const { BigInt: real } = globalThis
  let digits = 0
  const counting = (value: string | number | bigint | boolean) => {
    digits += String(value).length
    return real(value)
  }
  globalThis.BigInt = Object.assign(counting, real)
  try {
    work()
  } finally {
    globalThis.BigInt = real
  }
  return digits
}

const many = '9'.repeat(2000)

test('[A8] of a number with thousands of digits none are summed up', () => {
  const summed = digitsSummed(() => {
    assert.equal(isInt64(new Spelled(many)), false)
    assert.equal(isInt64(new Spelled(`-${many}`)), false)
    assert.deepEqual(parseInt64(many), { fault: `strconv.ParseInt: parsing "${many}": value out of range` })
    assert.deepEqual(plainValue(`-${many}`), new Spelled(`-${many}`))
  })
  assert.equal(summed, 0)
})

test('what fits an int64 is read with its sign and its zeros', () => {
  const least = '-9223372036854775808'
  assert.equal(isInt64(new Spelled(least)), true)
  for (const [text, value] of [
    [least, -(2n ** 63n)],
    ['+007', 7n],
    ['-0', 0n],
    [`${'0'.repeat(50)}12`, 12n],
  ] as const) {
    assert.deepEqual(parseInt64(text), { value })
  }
  assert.ok('fault' in parseInt64('9223372036854775808'))
  assert.deepEqual([plainValue('0'), plainValue('-0'), plainValue('+12'), plainValue('-12')], [0, 0, 12, -12])
})

test('[A8] comparing numbers takes time in proportion to their digits', () => {
  const best = (zeros: number) => {
    const [a, b] = ['', '.0'].map((tail) => parseJson(`1${'0'.repeat(zeros)}1${tail}`)) as [Spelled, Spelled]
    const times = Array.from({ length: 3 }, () => {
      // What this process has computed, and not what passed while others did.
      const began = process.cpuUsage()
      assert.equal(equalJson(a, b), true)
      return process.cpuUsage(began).user / 1_000
    })
    return Math.max(1, Math.min(...times))
  }
  // In proportion: 4 times; each zero with each other: 16 times, and seconds.
  assert.ok(best(80_000) < 10 * best(20_000))
})

test('text in quotes is the same whether or not it had to be looked at', () => {
  assert.equal(quoted('a b~'), '"a b~"')
  assert.equal(quoted('a"\\\n\u00e9\u0000'), '"a\\"\\\\\\n\u00e9\\x00"')
})
