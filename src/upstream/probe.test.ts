import assert from 'node:assert/strict'
import { test } from 'node:test'
import { signOf } from './probe.ts'

test('any answer of a live API server is good; what comes in its stead is not', () => {
  const cases: [status: number, type: string, text: string, expected: RegExp][] = [
    [200, 'text/plain', 'ok', /^answered undefined/],
    [401, 'application/json', '{}', /^answered .*refuses the edge's credential \(401\)/],
    [403, 'application/json', '{}', /^answered .*\(403\)/],
    [404, 'application/json', '{}', /^answered/],
    [429, 'application/json', '{}', /^answered/],
    [500, 'text/plain', '[+]ping ok\n[-]shutdown failed: reason withheld\n', /^failed .*shutting down/],
    [500, 'text/plain', '[+]ping ok\n[-]etcd failed: reason withheld\n', /^failed .*not ready: etcd/],
    [503, '', '', /^failed nobody behind the load balancer \(503\)/],
    [302, '', '', /^failed/],
    [200, 'text/html; charset=utf-8', '<html>', /^failed a web page/],
  ]
  for (const [status, type, text, expected] of cases) {
    const sign = signOf(status, type, text, 5)
    assert.match(
      sign.kind === 'probe answered' ? `answered ${sign.note}` : `failed ${'why' in sign && sign.why}`,
      expected,
    )
    assert.equal(sign.kind === 'probe answered' && sign.refusesEdge === true, status === 401)
  }
})
