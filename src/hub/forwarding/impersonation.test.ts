import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeClock } from '../../base/fakeclock.test-support.ts'
import { createLog } from '../../base/log.ts'
import { Unreachable, type UpstreamRequest, type UpstreamResponse } from '../../upstream/upstream.ts'
import { NodeImpersonation } from './impersonation.ts'
import { asNode } from './passable.ts'

function world() {
  const asked: UpstreamRequest[] = []
  const lines: string[] = []
  const log = createLog({ level: 'warn', write: (line) => lines.push(line) })
  let answer: (request: UpstreamRequest) => { status: number; text: string } = () => ({ status: 500, text: '' })
  const ask = async (request: UpstreamRequest): Promise<UpstreamResponse> => {
    asked.push(request)
    const { status, text } = answer(request)
    const body = (async function* () {
      yield Buffer.from(text)
    })()
    return { status, headers: {}, body, heardAt: () => 0 }
  }
  const impersonation = new NodeImpersonation({ upstream: { ask }, clock: fakeClock(), log })
  return {
    ...{ asked, impersonation, lines },
    answers: (with_: typeof answer) => {
      answer = with_
    },
  }
}

const whoami = (...groups: string[]) => JSON.stringify({ status: { userInfo: { username: 'x', groups } } })

test('the group of nodes is named where the API server does not add it, and left out where it does', async () => {
  const { impersonation, answers, asked } = world()
  assert.equal(impersonation.namesGroup, true)
  answers(() => ({ status: 201, text: whoami('system:nodes', 'system:authenticated') }))
  assert.equal(await impersonation.look(), true)
  assert.equal(impersonation.namesGroup, false)
  assert.equal(asked[0]?.headers?.['impersonate-group'], undefined)
  // What cannot be asked now is as it was.
  answers(() => ({ status: 503, text: '' }))
  assert.equal(await impersonation.look(), false)
  answers(() => {
    throw new Unreachable('away', false)
  })
  assert.equal(await impersonation.look(), false)
  assert.equal(impersonation.namesGroup, false)
  for (const other of [
    { status: 201, text: whoami('system:authenticated') },
    { status: 403, text: '{}' },
    { status: 201, text: 'none' },
  ]) {
    answers(() => ({ status: 201, text: whoami('system:nodes') }))
    await impersonation.look()
    answers(() => other)
    assert.equal(await impersonation.look(), true)
    assert.equal(impersonation.namesGroup, true, JSON.stringify(other))
  }
})

test('a hub that may act as no node says once what to apply', async () => {
  const { impersonation, answers, asked, lines } = world()
  const forbidden = { status: 403, text: '{}' }
  answers(() => forbidden)
  assert.equal(await impersonation.look(), true)
  assert.equal(await impersonation.look(), true)
  assert.equal(lines.length, 1)
  assert.match(lines[0] as string, /act as no node.*deploy\/hub\.yaml, and deploy\/hub-legacy\.yaml where/)
  assert.equal(asked.at(-1)?.headers?.['impersonate-group'], 'system:nodes')
  // The old way, the group being named.
  const old = ({ headers }: UpstreamRequest) =>
    headers?.['impersonate-group'] === undefined ? forbidden : { status: 201, text: whoami('system:nodes') }
  answers(old)
  assert.equal(await impersonation.look(), true)
  assert.equal(impersonation.namesGroup, true)
  assert.equal(lines.length, 1)
  answers(() => forbidden)
  await impersonation.look()
  assert.equal(lines.length, 2)
})

test('[I1] a node named alone has no group of its own writing', () => {
  const given = { accept: '*/*', 'impersonate-group': 'system:masters', 'impersonate-user': 'admin' }
  assert.deepEqual(asNode(given, 'n1', false), { accept: '*/*', 'impersonate-user': 'system:node:n1' })
  const named = { accept: '*/*', 'impersonate-user': 'system:node:n1', 'impersonate-group': 'system:nodes' }
  assert.deepEqual(asNode(given, 'n1', true), named)
})
