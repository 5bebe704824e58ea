import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clamped, parseInt64, parseUint64, quoted } from './gotext.ts'

test('quoted() spells strings as %q does', () => {
  assert.equal(quoted('a"b\\c é'), '"a\\"b\\\\c é"')
  assert.equal(quoted('\n\t\x07\x00\x7f'), '"\\n\\t\\a\\x00\\x7f"')
  assert.equal(quoted('\u00ad\u{e0001}😀'), '"\\u00ad\\U000e0001😀"')
})

test('parseInt64() and parseUint64() take what strconv takes', () => {
  assert.deepEqual(parseInt64('-9223372036854775808'), { value: -(2n ** 63n) })
  assert.deepEqual(parseInt64('+07'), { value: 7n })
  assert.deepEqual(parseInt64('9223372036854775808'), {
    fault: 'strconv.ParseInt: parsing "9223372036854775808": value out of range',
  })
  assert.ok('fault' in parseInt64('-9223372036854775809'))
  assert.deepEqual(parseInt64('1e3'), { fault: 'strconv.ParseInt: parsing "1e3": invalid syntax' })
  assert.deepEqual(parseUint64('18446744073709551615'), { value: 2n ** 64n - 1n })
  assert.deepEqual(parseUint64('+1'), { fault: 'strconv.ParseUint: parsing "+1": invalid syntax' })
  assert.equal(clamped(2n ** 60n), Number.MAX_SAFE_INTEGER)
  assert.equal(clamped(-(2n ** 60n)), -Number.MAX_SAFE_INTEGER)
  assert.equal(clamped(-5n), -5)
})
