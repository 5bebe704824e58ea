/** What a refusal looks like on the wire, byte for byte. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLog } from '../base/log.ts'
import { badRequest } from '../kube/status.ts'
import type { Request } from './endpoint.ts'
import { refusal } from './respond.ts'

const log = createLog({ level: 'error', write: () => {} })

function refused(url: string, headers: Record<string, string> = {}): string {
  const request = { method: 'GET', url, headers } as unknown as Request
  return String(refusal(badRequest('found "<a&b>"'), request, log).body)
}

test('[A5] a Status escapes what Go escapes, on one line and indented', () => {
  assert.equal(
    refused('/api/v1/pods'),
    '{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",' +
      '"message":"found \\"\\u003ca\\u0026b\\u003e\\"","reason":"BadRequest","code":400}\n',
  )
  assert.match(refused('/api/v1/pods?pretty=1'), /\n {2}"message": "found \\"\\u003ca\\u0026b\\u003e\\"",\n/)
  assert.match(
    refused('/api/v1/pods', { accept: 'nonsense' }),
    /\n {2}"message": "found \\"\\u003ca\\u0026b\\u003e\\"",\n/,
  )
})
