/** The checks of /readyz as they are shown. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseRequest } from '../../kube/request.ts'
import { Health } from './health.ts'

test('what is not well, and yet no reason to send clients away, is not called ok', () => {
  let warning: string | undefined
  const upstream = {
    name: 'upstream',
    ready: true,
    run: () => undefined,
    note: () => 'reachable',
    warning: () => warning,
  }
  const health = new Health({ checks: [upstream] })
  const nothing = { hasBody: false, body: async () => Buffer.alloc(0), stream: async function* () {}, peer: {} }
  const ask = (url: string) => {
    const answer = health.answer(parseRequest('GET', url), { ...nothing, method: 'GET', url, headers: {} })
    return [answer?.status, String(answer?.body)]
  }
  assert.deepEqual(ask('/readyz?verbose'), [200, '[+]ping ok\n[+]upstream ok: reachable\nreadyz check passed\n'])
  warning = 'unreachable, the line is cut'
  const shown = '[+]ping ok\n[!]upstream: unreachable, the line is cut\nreadyz check passed\n'
  assert.deepEqual(ask('/readyz?verbose'), [200, shown])
  assert.deepEqual(ask('/readyz/upstream'), [200, 'ok'])
})
