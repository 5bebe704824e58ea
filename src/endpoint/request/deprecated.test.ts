import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseRequest } from '../../kube/request.ts'
import type { Response } from '../endpoint.ts'
import { warnOfDeprecation } from './deprecated.ts'

function warnings(path: string, status = 200, headers: Response['headers'] = {}) {
  const response: Response = { status, headers, body: Buffer.alloc(0) }
  const find = (_: string, version: string) => (version === 'v1beta1' ? { deprecation: 'old' } : undefined)
  warnOfDeprecation(parseRequest('GET', path), response, { find })
  return response.headers.warning
}

const endpoints = '299 - "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"'

test('every answer about a deprecated resource says so, refusals too, before all other warnings', () => {
  assert.deepEqual(warnings('/api/v1/endpoints?watch=1'), [endpoints])
  assert.deepEqual(warnings('/api/v1/namespaces/a/endpoints/none', 404), [endpoints])
  assert.deepEqual(warnings('/api/v1/namespaces/a/endpoints', 201, { warning: ['299 - "x"'] }), [
    endpoints,
    '299 - "x"',
  ])
  assert.deepEqual(warnings('/apis/example.com/v1beta1/boats'), ['299 - "old"'])
  assert.deepEqual(warnings('/api/v1/componentstatuses'), ['299 - "v1 ComponentStatus is deprecated in v1.19+"'])
})

test('nothing else is warned of, and nobody who was not let in', () => {
  assert.equal(warnings('/api/v1/pods'), undefined)
  assert.equal(warnings('/apis/example.com/v1/endpoints'), undefined)
  assert.equal(warnings('/api/v1/endpoints', 401), undefined)
})
