import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeClock } from '../../base/fakeclock.test-support.ts'
import { Unavailable, UsageError } from '../../base/fault.ts'
import { createLog } from '../../base/log.ts'
import type { UpstreamResponse } from '../../upstream/upstream.ts'
import { HubReadiness, newestVersion } from './readiness.ts'

function world() {
  const clock = fakeClock()
  const lines: string[] = []
  const log = createLog({ level: 'info', write: (line) => void lines.push(line) })
  const gate: { known: { uid: string; authorities: string[]; addresses: string[] } | undefined } = { known: undefined }
  const catalog = { complete: false }
  const reachability = { state: 'unreachable', why: 'connection refused' } as const
  const readiness = new HubReadiness({ gate, catalog, reachability, clock, log })
  const settle = async (ms: number) => {
    clock.advance(ms)
    for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate)
  }
  return { gate, catalog, readiness, lines, settle }
}

const site = { authorities: [], addresses: [] }

test('edges are let in once the uid of the cluster and its resources are known, and until then it is said why not, once', async () => {
  const { gate, catalog, readiness, lines, settle } = world()
  const ending = new AbortController()
  const known = readiness.known(ending.signal)
  assert.match(readiness.why ?? '', /not known: connection refused/)
  for (let at = 0; at < 30; at++) await settle(200)
  assert.equal(lines.length, 1)
  assert.match(lines[0] ?? '', /hub\.waits for=cluster/)
  gate.known = { uid: '', ...site }
  for (let at = 0; at < 5; at++) await settle(200)
  assert.match(lines[1] ?? '', /let the hub get the namespace kube-system/)
  gate.known = { uid: 'u1', ...site }
  assert.match(readiness.why ?? '', /which resources there are/)
  catalog.complete = true
  await settle(200)
  assert.equal(await known, true)
  readiness.opened()
  assert.equal(readiness.why, undefined)
  readiness.ends()
  assert.equal(readiness.why, 'this hub ends')
})

test('what cannot be had now is asked for again, what an operator has to put right is not, and a signal ends the wait', async () => {
  const { readiness, lines, settle } = world()
  const ending = new AbortController()
  const answers = [new Unavailable('the Secret cannot be read'), 'found']
  const had = readiness.had(
    'state',
    async () => {
      const answer = answers.shift()
      if (answer instanceof Error) throw answer
      return answer
    },
    ending.signal,
  )
  await settle(0)
  assert.equal(readiness.why, 'the Secret cannot be read')
  await settle(2_000)
  assert.equal(await had, 'found')
  assert.equal(lines.length, 1)
  const refused = () => Promise.reject(new UsageError('it is damaged'))
  await assert.rejects(readiness.had('state', refused, ending.signal), /it is damaged/)
  const never = readiness.had('state', () => Promise.reject(new Unavailable('away')), ending.signal)
  ending.abort()
  assert.equal(await never, undefined)
  assert.equal(await readiness.known(ending.signal), false)
})

test('how far the cluster is stands in a list; a refusal says which right is missing', async () => {
  const upstream = (status: number, text: string) => ({
    ask: async (): Promise<UpstreamResponse> => {
      const body = (async function* () {
        yield Buffer.from(text)
      })()
      return { status, headers: {}, body, heardAt: () => 0 }
    },
  })
  assert.equal(await newestVersion(upstream(200, '{"metadata":{"resourceVersion":"42"}}')), 42)
  await assert.rejects(newestVersion(upstream(403, '{}')), /\(403\): let the hub list namespaces/)
  await assert.rejects(newestVersion(upstream(200, '{}')), Unavailable)
})
