/** The way of a request with parts that only say that they were asked. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Verdict } from '../../access/access.ts'
import { silentLog } from '../../base/log.ts'
import { unauthorized } from '../../kube/status.ts'
import type { Beyond } from '../composition.ts'
import type { Request, Response } from '../endpoint.ts'
import { Endpoint } from './pipeline.ts'

const text = (content: string): Response => ({ status: 200, headers: {}, body: Buffer.from(content) })

/** `steps` is what was asked, in order. */
function way({ verdict = 'allowed', beyond }: { verdict?: Verdict; beyond?: { ours: boolean; instead?: boolean } }) {
  const steps: string[] = []
  const did = <T>(step: string, then: T): T => {
    steps.push(step)
    return then
  }
  const behind: Beyond = {
    isOurs: () => beyond?.ours ?? true,
    pass: async () => text('passed'),
    instead: () => (beyond?.instead === true ? Promise.resolve(text('instead')) : undefined),
    connect: async () => assert.fail(),
  }
  const endpoint = new Endpoint({
    authentication: { identify: () => did('authenticate', { kind: 'anonymous' }), callerOf: () => undefined },
    authorization: { decide: () => did('authorise', verdict), refusal: () => unauthorized() },
    answering: { answer: () => did('answer', text('answered')) },
    ...(beyond === undefined ? {} : { beyond: behind }),
    catalog: { find: () => undefined },
    measures: { answered: (_, code) => did(String(code), undefined) },
    log: silentLog,
  })
  return { steps, endpoint }
}

const nothing = { hasBody: false, body: async () => Buffer.alloc(0), stream: async function* () {} }
const asked: Request = { method: 'GET', url: '/api/v1/pods', headers: {}, peer: {}, ...nothing }

async function answerOf(endpoint: Endpoint, request = asked): Promise<string> {
  const { body } = await endpoint.handle(request)
  return String(body)
}

test('[I2] no answer is made without a decision, and none at all for what cannot be parsed', async () => {
  const allowed = way({})
  assert.equal(await answerOf(allowed.endpoint), 'answered')
  assert.deepEqual(allowed.steps, ['authenticate', 'authorise', 'answer', '200'])
  const denied = way({ verdict: 'denied' })
  assert.match(await answerOf(denied.endpoint), /Unauthorized/)
  assert.deepEqual(denied.steps, ['authenticate', 'authorise', '401'])
  const broken = way({})
  await answerOf(broken.endpoint, { ...asked, url: '/api/%zz' })
  assert.deepEqual(broken.steps, ['400'])
})

test('what is passed on is judged where it is answered; what is refused here may be answered there', async () => {
  const passed = way({ beyond: { ours: false } })
  assert.equal(await answerOf(passed.endpoint), 'passed')
  assert.deepEqual(passed.steps, ['authenticate', '200'])
  const kept = way({ verdict: 'unknown', beyond: { ours: true } })
  assert.match(await answerOf(kept.endpoint), /Unauthorized/)
  const instead = way({ verdict: 'unknown', beyond: { ours: true, instead: true } })
  assert.equal(await answerOf(instead.endpoint), 'instead')
})

test('an upgrade that leads nowhere is refused', async () => {
  const response = await way({}).endpoint.upgrade(asked)
  assert.equal(response.status, 405)
})
