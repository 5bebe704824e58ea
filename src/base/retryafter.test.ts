import assert from 'node:assert/strict'
import { test } from 'node:test'
import { retryAfterMs, retryAfterMsMax } from './retryafter.ts'

const nowMs = Date.parse('1994-11-06T08:49:00Z')

test('[L4] Retry-After is seconds or a date in any spelling of HTTP', () => {
  const spellings: [unknown, number][] = [
    ['0', 0],
    ['7', 7_000],
    [' 7 ', 7_000],
    [7, 7_000],
    [['7', '9'], 7_000],
    ['Sun, 06 Nov 1994 08:49:37 GMT', 37_000],
    ['Sunday, 06-Nov-94 08:49:37 GMT', 37_000],
    ['Sun Nov  6 08:49:37 1994', 37_000],
  ]
  for (const [value, ms] of spellings) assert.equal(retryAfterMs(value, nowMs), ms, String(value))
})

test('[L4] whatever else stands there is no wait, and none is longer than its limit', () => {
  for (const value of [
    undefined,
    null,
    '',
    '-5',
    -5,
    'soon',
    '1e9',
    '0x10',
    '1.5',
    Number.NaN,
    {},
    [],
    'Sun, 99 Foo',
    true,
  ]) {
    assert.equal(retryAfterMs(value, nowMs), 0, String(value))
  }
  assert.equal(retryAfterMs('Sun, 06 Nov 1994 08:48:37 GMT', nowMs), 0)
  for (const value of ['86400', '9'.repeat(400), 2 ** 53, 'Fri, 31 Dec 9999 23:59:59 GMT']) {
    assert.equal(retryAfterMs(value, nowMs), retryAfterMsMax, String(value))
  }
})
