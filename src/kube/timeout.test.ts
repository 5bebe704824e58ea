import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseRequest } from './request.ts'
import { checkTimeout } from './timeout.ts'

const fault = (timeout: string, path = '/api/v1/pods/p', more = '') => {
  try {
    checkTimeout(parseRequest('GET', `${path}?timeout=${encodeURIComponent(timeout)}${more}`))
    return undefined
  } catch (error) {
    return (error as Error).message.replace('invalid timeout specified in the request URL - time: ', '')
  }
}

test('a timeout must be a Go duration', () => {
  for (const good of ['', '0', '0s', '1h', '1.5s', '-1s', '+5s', '1µs', '1h5m.5s', '100h'])
    assert.equal(fault(good), undefined, good)
  const cases: Record<string, string> = {
    abc: 'invalid duration "abc"',
    '1': 'missing unit in duration "1"',
    '1s2': 'missing unit in duration "1s2"',
    '.s': 'invalid duration ".s"',
    '-': 'invalid duration "-"',
    '1x': 'unknown unit "x" in duration "1x"',
    '999999999h': 'invalid duration "999999999h"',
  }
  for (const [timeout, why] of Object.entries(cases)) assert.equal(fault(timeout), why)
})

test('it is read for every path, except where a request lasts', () => {
  assert.equal(fault('abc', '/healthz'), 'invalid duration "abc"')
  assert.equal(fault('abc', '/api/v1/pods', '&watch=1'), undefined)
  assert.equal(fault('abc', '/api/v1/namespaces/n/pods/p/log'), undefined)
})
