import assert from 'node:assert/strict'
import { test } from 'node:test'
import { identityOf, impersonates } from './identify.ts'

const parts = { isMapped: ({ name }: { name: string }) => name === 'system:node:n1', nowMs: () => 1_000 }
const nobody = { peer: {} }

test('[I1] every header of impersonation leaves the judgement to the API server', () => {
  for (const name of ['impersonate-user', 'impersonate-uid', 'impersonate-group', 'impersonate-extra-scopes']) {
    assert.equal(impersonates({ authorization: 'Bearer t', [name]: 'x' }), true, name)
  }
  assert.equal(impersonates({ authorization: 'Bearer t' }), false)
})

test('[I1] a certificate speaks for its name only while it is valid and a credential is configured for it', () => {
  const by = (name: string, expiresMs: number, issuedBy: 'own' | 'clients' = 'clients') =>
    identityOf({ peer: { certificate: { name, organizations: [], issuedBy, expiresMs } }, headers: {} }, parts)
  assert.deepEqual(by('system:node:n1', 2_000), { kind: 'certificate', name: 'system:node:n1' })
  assert.deepEqual(by('system:node:n1', 1_000), { kind: 'anonymous' })
  assert.deepEqual(by('system:node:n2', 2_000), { kind: 'anonymous' })
  assert.deepEqual(by('ake-admin', 0, 'own'), { kind: 'edge' })
  assert.deepEqual(by('ake-admin', 2_000), { kind: 'anonymous' })
})

test('[I1] a browser shows its token among the subprotocols of a WebSocket; an Authorization header goes before it', () => {
  const protocol = `v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.${Buffer.from('t1').toString('base64url')}`
  const by = (headers: Record<string, string>) => identityOf({ ...nobody, headers }, parts)
  assert.deepEqual(by({ 'sec-websocket-protocol': protocol }), { kind: 'token', token: 't1' })
  assert.deepEqual(by({ 'sec-websocket-protocol': protocol, authorization: 'Bearer t2' }), {
    kind: 'token',
    token: 't2',
  })
  assert.deepEqual(by({ 'sec-websocket-protocol': 'v5.channel.k8s.io' }), { kind: 'anonymous' })
})

test('[I1] requests of one connection with one token share an identity; another token, or none, is another', () => {
  const peer = {}
  const by = (headers: Record<string, string>) => identityOf({ peer, headers }, parts)
  const first = by({ authorization: 'Bearer t1' })
  assert.equal(by({ authorization: 'Bearer t1' }), first)
  assert.deepEqual(by({ authorization: 'Bearer t2' }), { kind: 'token', token: 't2' })
  assert.deepEqual(by({ authorization: 'Basic t2' }), { kind: 'anonymous' })
  assert.deepEqual(by({}), { kind: 'anonymous' })
  const protocol = (token: string) =>
    `v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.${Buffer.from(token).toString('base64url')}`
  for (const token of ['t3', 't4']) {
    const headers = { authorization: 'Basic x', 'sec-websocket-protocol': protocol(token) }
    assert.deepEqual(by(headers), { kind: 'token', token })
  }
  assert.deepEqual(by({ authorization: 'Bearer t1' }), { kind: 'token', token: 't1' })
})
