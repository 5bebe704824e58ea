import assert from 'node:assert/strict'
import { test } from 'node:test'
import { askJson } from './askjson.ts'
import type { UpstreamRequest } from './upstream.ts'
import { AnswerTooLarge } from './whole.ts'

const limits = { headMsMax: 1_000, bytesMax: 10 }

function answering(text: string) {
  const asked: UpstreamRequest[] = []
  const ask = (request: UpstreamRequest) => {
    asked.push(request)
    const body = [Buffer.from(text)].values()
    const chunks: AsyncIterableIterator<Buffer> = {
      [Symbol.asyncIterator]: () => chunks,
      next: () => Promise.resolve(body.next()),
      return: () => Promise.resolve({ done: true, value: undefined }),
    }
    return Promise.resolve({ status: 404, headers: {}, body: chunks, heardAt: () => 0 })
  }
  return { asked, ask }
}

test('an object goes up as JSON, in the process’s own name or the one that is given; a question without one has no body', async () => {
  const upstream = answering('{"a":1}')
  assert.deepEqual(await askJson(upstream, { method: 'GET', path: '/a', ...limits }), { status: 404, text: '{"a":1}' })
  await askJson(upstream, {
    ...{ method: 'PUT', path: '/b', content: { b: 2 }, identity: { kind: 'token', token: 't' }, byStranger: true },
    ...limits,
  })
  const accept = 'application/json'
  assert.deepEqual(upstream.asked, [
    { method: 'GET', path: '/a', identity: { kind: 'edge' }, headMsMax: 1_000, headers: { accept } },
    {
      ...{ method: 'PUT', path: '/b', identity: { kind: 'token', token: 't' }, byStranger: true, headMsMax: 1_000 },
      ...{ headers: { accept, 'content-type': accept }, body: Buffer.from('{"b":2}') },
    },
  ])
})

test('an answer beyond the limit is refused', async () => {
  await assert.rejects(askJson(answering('x'.repeat(11)), { method: 'GET', path: '/a', ...limits }), AnswerTooLarge)
})
