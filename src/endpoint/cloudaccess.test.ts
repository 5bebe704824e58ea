import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Verdict } from '../access/access.ts'
import type { Question } from '../access/question.ts'
import type { Caller } from '../kube/caller.ts'
import { parseRequest } from '../kube/request.ts'
import { failure } from '../kube/status.ts'
import type { Identity, ReachabilityState } from '../upstream/upstream.ts'
import { Call } from './call.ts'
import { CloudAccess } from './cloudaccess.ts'
import type { Request } from './endpoint.ts'

const front: Caller = { name: 'front', uid: '', groups: ['system:authenticated'] }

/** What is decided of whom: `USER VERB RESOURCE NAME`. */
function world(allowed: readonly string[], state: ReachabilityState = 'unreachable') {
  const asked: string[] = []
  const nameOf = (identity: Identity) => (identity.kind === 'local' ? identity.caller.name : front.name)
  const spelled = (identity: Identity, { verb, resource, subresource, name, path }: Question) =>
    `${nameOf(identity)} ${verb} ${resource}${subresource && `/${subresource}`}${path} ${name}`.trim()
  const reachability = { state }
  const access = new CloudAccess({
    access: {
      held: () => front,
      decide: (identity, question): Verdict => {
        if (identity.kind === 'edge') return 'allowed'
        const line = spelled(identity, question)
        asked.push(line)
        return allowed.includes(line) ? 'allowed' : 'denied'
      },
      refusal: (identity, question) => failure(403, 'Forbidden', spelled(identity, question)),
    },
    ...{ standingOf: () => 'stranger' as const, nowMs: () => 0, reachability },
  })
  const call = (url: string, lines: readonly string[], identity: Identity = { kind: 'token', token: 't' }) => {
    const request = { method: 'GET', url, headers: {}, rawHeaders: lines, peer: {} } as unknown as Request
    return new Call({ api: parseRequest('GET', url), request, identity })
  }
  return { access, asked, call }
}

const secret = '/api/v1/namespaces/a/secrets/s'
const jane = ['Impersonate-User', 'jane', 'Impersonate-Group', 'devs']

test('[I1] without the cloud a caller who may be another reads what that one may, and no more', () => {
  const may = ['front impersonate users jane', 'front impersonate groups devs']
  const { access, asked, call } = world([...may, 'jane get secrets s'])
  assert.equal(access.decide(call(secret, jane)), 'allowed')
  assert.deepEqual(asked, [...may, 'jane get secrets s'])
  // What the front itself may is not the other's.
  const poor = world([...may, 'front get secrets s'])
  assert.equal(poor.access.decide(poor.call(secret, jane)), 'denied')
  assert.equal(poor.access.refusal(poor.call(secret, jane), 'denied').message, 'jane get secrets s')
})

test('[I1] a caller that may not be every part of another is refused for the first of them, before anything is asked of the other', () => {
  const { access, asked, call } = world(['front impersonate users jane', 'jane get secrets s'])
  const asking = call(secret, jane)
  assert.equal(access.decide(asking), 'denied')
  assert.deepEqual(asked, ['front impersonate users jane', 'front impersonate groups devs'])
  assert.equal(access.refusal(asking, 'denied').message, 'front impersonate groups devs')
})

test('[I1] while the API server can be asked, or is only in doubt, it alone says who may be another', () => {
  for (const state of ['reachable', 'suspect'] as const) {
    const { access, asked, call } = world(['front impersonate users jane', 'jane get secrets s'], state)
    assert.equal(access.decide(call(secret, jane)), 'unknown')
    assert.deepEqual(asked, [])
  }
})

test('[I1] no one who is impersonated sees what is this machine’s alone; its administrator may be anybody', () => {
  const { access, call } = world(['root get /ake/status'])
  const root = ['Impersonate-User', 'root']
  for (const identity of [{ kind: 'edge' }, { kind: 'token', token: 't' }] as const) {
    assert.equal(access.decide(call('/ake/status', root, identity)), 'denied')
  }
  const { access: own, call: asking } = world(['jane get secrets s'])
  assert.equal(own.decide(asking(secret, jane, { kind: 'edge' })), 'allowed')
  assert.equal(own.decide(asking(secret, root, { kind: 'edge' })), 'denied')
})

test('headers of impersonation without a user are a bad request', () => {
  const { access, call } = world([])
  assert.throws(() => access.decide(call(secret, ['Impersonate-Group', 'devs'])), /without impersonating a user name/)
})
