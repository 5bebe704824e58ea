/** What a refusal looks like on the wire, byte for byte. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLog } from '../../base/log.ts'
import { badRequest } from '../../kube/status.ts'
import type { Request, Response } from '../endpoint.ts'
import { refusal, warn } from './respond.ts'

const log = createLog({ level: 'error', write: () => {} })

function refused(url: string, headers: Record<string, string> = {}): string {
  const request = { method: 'GET', url, headers, peer: {} } as unknown as Request
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

test('[A8] of a hundred thousand warnings no more are looked at than are shown', () => {
  const texts = Array.from({ length: 100_000 }, (_, at) => `unknown field "f${at}"`)
  let looked = 0
  const counted = new Proxy(texts, {
    get: (target, name, self) => {
      if (typeof name === 'string' && /^\d+$/.test(name)) looked++
      return Reflect.get(target, name, self)
    },
  })
  const answer: Response = { status: 200, headers: {}, body: Buffer.alloc(0) }
  warn(answer, counted)
  const shown = answer.headers.warning as unknown as string[]
  assert.equal(shown[0], '299 - "unknown field \\"f0\\""')
  assert.ok(shown.length > 100 && looked <= shown.length + 1, `${looked} for ${shown.length}`)
})

test('warnings are shown once each, whole where they fit and cut short where they do not', () => {
  const shown = (...texts: string[]) => {
    const answer: Response = { status: 200, headers: {}, body: Buffer.alloc(0) }
    warn(answer, texts)
    return (answer.headers.warning as unknown as string[] | undefined)?.map((text) => text.length - '299 - ""'.length)
  }
  assert.deepEqual(shown('', 'a\n'), undefined)
  assert.deepEqual(shown('a', 'b'.repeat(4095), 'a'), [1, 4095])
  assert.deepEqual(shown('a', 'b'.repeat(4096)), [1, 256])
  const many = Array.from({ length: 100 }, (_, at) => `${at}`.padEnd(500))
  assert.deepEqual(shown(...many), new Array(16).fill(256))
})
