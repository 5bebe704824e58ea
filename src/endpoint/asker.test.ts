import assert from 'node:assert/strict'
import { test } from 'node:test'
import { askerOf } from './asker.ts'

const parts = { isMapped: (name: string) => name === 'system:node:n1', nowMs: () => 1_000 }
const nobody = { peer: {} }

test('[I1] every header of impersonation leaves the judgement to the API server', () => {
  for (const name of ['impersonate-user', 'impersonate-uid', 'impersonate-group', 'impersonate-extra-scopes']) {
    const asker = askerOf({ ...nobody, headers: { authorization: 'Bearer t', [name]: 'x' } }, parts)
    assert.equal(asker.impersonates, true, name)
  }
  assert.equal(askerOf({ ...nobody, headers: { authorization: 'Bearer t' } }, parts).impersonates, false)
})

test('[I1] a certificate speaks for its name only while it is valid and a credential is configured for it', () => {
  const by = (name: string, expiresMs: number, issuedBy: 'own' | 'clients' = 'clients') =>
    askerOf({ peer: { certificate: { name, organizations: [], issuedBy, expiresMs } }, headers: {} }, parts)
  assert.deepEqual(by('system:node:n1', 2_000).identity, { kind: 'certificate', name: 'system:node:n1' })
  assert.deepEqual(by('system:node:n1', 1_000).identity, { kind: 'anonymous' })
  assert.deepEqual(by('system:node:n2', 2_000).identity, { kind: 'anonymous' })
  assert.equal(by('ake-admin', 0, 'own').isAdministrator, true)
  assert.equal(by('ake-admin', 2_000).isAdministrator, false)
})

test('[I1] a browser shows its token among the subprotocols of a WebSocket; an Authorization header goes before it', () => {
  const protocol = `v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.${Buffer.from('t1').toString('base64url')}`
  const by = (headers: Record<string, string>) => askerOf({ ...nobody, headers }, parts).identity
  assert.deepEqual(by({ 'sec-websocket-protocol': protocol }), { kind: 'token', token: 't1' })
  assert.deepEqual(by({ 'sec-websocket-protocol': protocol, authorization: 'Bearer t2' }), {
    kind: 'token',
    token: 't2',
  })
  assert.deepEqual(by({ 'sec-websocket-protocol': 'v5.channel.k8s.io' }), { kind: 'anonymous' })
})
