import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Health } from '../../endpoint/documents/health.ts'
import { StatusPath } from '../../endpoint/documents/status.ts'
import { HubHealth } from './health.ts'

test('a hub answers probes and people over plain HTTP, only by reading, and whatever else is asked is not there', async () => {
  let fault: string | undefined = 'it begins'
  const health = new Health({ checks: [{ name: 'edges', ready: true, run: () => fault }] })
  const served = new HubHealth([health, new StatusPath(() => ({ open: fault === undefined }))])
  const { host, port } = await served.listen({ host: '127.0.0.1', port: 0 })
  const twice = new HubHealth([]).listen({ host, port })
  await assert.rejects(twice, /cannot listen on 127\.0\.0\.1:\d+ .*: choose another address with --health-listen/)
  const ending = new AbortController()
  const running = served.run(ending.signal)
  const ask = async (path: string, method = 'GET') => {
    const answer = await fetch(`http://${host}:${port}${path}`, { method })
    return [answer.status, await answer.text()] as const
  }
  try {
    assert.deepEqual(await ask('/livez'), [200, 'ok'])
    const [status, text] = await ask('/readyz')
    assert.equal(status, 500)
    assert.match(text, /\[-\]edges failed: it begins/)
    assert.deepEqual(await ask('/ake/status'), [200, '{"open":false}\n'])
    fault = undefined
    assert.deepEqual(await ask('/readyz'), [200, 'ok'])
    assert.deepEqual(await ask('/readyz', 'HEAD'), [200, ''])
    assert.equal((await ask('/readyz', 'POST'))[0], 405)
    for (const path of ['/', '/api/v1/secrets', '/ake/status/x', '/%ff'])
      assert.ok([400, 404].includes((await ask(path))[0]), path)
  } finally {
    ending.abort()
    await running
  }
  await assert.rejects(ask('/livez'))
})
