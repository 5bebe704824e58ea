import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeClock } from '../../base/fakeclock.test-support.ts'
import { silentLog } from '../../base/log.ts'
import { Unreachable, type UpstreamRequest, type UpstreamResponse } from '../../upstream/upstream.ts'
import { NodeImpersonation } from './impersonation.ts'
import { asNode } from './passable.ts'

function world() {
  const asked: UpstreamRequest[] = []
  let answer: () => { status: number; text: string } = () => ({ status: 500, text: '' })
  const ask = async (request: UpstreamRequest): Promise<UpstreamResponse> => {
    asked.push(request)
    const { status, text } = answer()
    const body = (async function* () {
      yield Buffer.from(text)
    })()
    return { status, headers: {}, body, heardAt: () => 0 }
  }
  const impersonation = new NodeImpersonation({ upstream: { ask }, clock: fakeClock(), log: silentLog })
  return {
    ...{ asked, impersonation },
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

test('[I1] a node named alone has no group of its own writing', () => {
  const given = { accept: '*/*', 'impersonate-group': 'system:masters', 'impersonate-user': 'admin' }
  assert.deepEqual(asNode(given, 'n1', false), { accept: '*/*', 'impersonate-user': 'system:node:n1' })
  const named = { accept: '*/*', 'impersonate-user': 'system:node:n1', 'impersonate-group': 'system:nodes' }
  assert.deepEqual(asNode(given, 'n1', true), named)
})
