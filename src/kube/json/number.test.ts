import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isInt64, numberFrom } from './number.ts'

test('an int64 is one however JavaScript holds it', () => {
  const int64 = ['0', '-1', '9007199254740992', '9007199254740993', '1000000000000000000', '9223372036854775807']
  for (const source of [...int64, '-9223372036854775808', '9223372036854775000']) {
    assert.equal(isInt64(numberFrom(source)), true, source)
  }
  const float = ['1.0', '1.5', '1e3', '1e18', '9223372036854775808', '9223372036854776000', '-9223372036854776000']
  for (const source of [...float, '1e21']) assert.equal(isInt64(numberFrom(source)), false, source)
})
