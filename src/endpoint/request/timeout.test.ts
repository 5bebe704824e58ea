import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openWorld } from '../world.test-support.ts'

test('a timeout that cannot be read is refused before anything is looked for, written or denied', async () => {
  const world = await openWorld()
  for (const [method, url] of [
    ['GET', '/api/v1/namespaces/default/configmaps?timeout=abc'],
    ['POST', '/api/v1/namespaces/default/configmaps?timeout=abc'],
    ['GET', '/apis/no.such/v1/things?timeout=abc'],
  ] as const) {
    const { status, json } = await world.ask(method, url, method === 'POST' ? { metadata: { name: 'a' } } : undefined)
    const message = 'invalid timeout specified in the request URL - time: invalid duration "abc"'
    assert.deepEqual([status, json.message], [400, message], url)
  }
  assert.equal((await world.ask('GET', '/api/v1/namespaces/default?timeout=10s')).status, 200)
})
