import assert from 'node:assert/strict'
import { test } from 'node:test'
import { identityOf, impersonates } from './identify.ts'

const parts = {
  standingOf: ({ name }: { name: string }) =>
    name === 'system:node:n1' ? 'credential' : name === 'another' ? 'stranger' : 'named',
  nowMs: () => 1_000,
} as const
const nobody = { peer: {} }

test('[I1] every header of impersonation leaves the judgement to the API server', () => {
  for (const name of ['impersonate-user', 'impersonate-uid', 'impersonate-group', 'impersonate-extra-scopes']) {
    assert.equal(impersonates({ headers: { authorization: 'Bearer t', [name]: 'x' } }), true, name)
    for (const spelled of [name, name.toUpperCase(), name.replace('i', 'I')]) {
      assert.equal(
        impersonates({ headers: {}, rawHeaders: ['Authorization', 'Bearer t', spelled, 'x'] }),
        true,
        spelled,
      )
    }
  }
  assert.equal(impersonates({ headers: { authorization: 'Bearer t' } }), false)
  // A value is no name, whatever it says.
  assert.equal(impersonates({ headers: {}, rawHeaders: ['Accept', 'impersonate-user', 'If-Match', 'x'] }), false)
})

test('[I1] a certificate speaks for its name only while it is valid and a credential is configured for it', () => {
  const by = (name: string, expiresMs: number, issuedBy: 'own' | 'clients' = 'clients') =>
    identityOf(
      { peer: { certificate: { name, organizations: [], uids: [], issuedBy, expiresMs } }, headers: {} },
      parts,
    )
  const caller = (name: string) => ({ name, uid: '', groups: ['system:authenticated'] })
  const name = 'system:node:n1'
  assert.deepEqual(by(name, 2_000), { kind: 'certificate', name, caller: caller(name) })
  assert.throws(() => by(name, 1_000), /Unauthorized/)
  assert.deepEqual(by('another', 2_000), { kind: 'anonymous' })
  assert.deepEqual(by('ake-admin', 0, 'own'), { kind: 'edge' })
  assert.deepEqual(by('ake-admin', 2_000), { kind: 'named', caller: caller('ake-admin') })
})

test('[I1] a certificate that no credential goes with is the caller that kube-apiserver would take it for, or none', () => {
  const fingerprint = 'ab'.repeat(32)
  const certificate = { name: 'jane', organizations: ['devs'], uids: [], fingerprint, issuedBy: 'clients' as const }
  const by = (changed: object = {}, headers: Record<string, string> = {}) =>
    identityOf({ peer: { certificate: { ...certificate, expiresMs: 2_000, ...changed } }, headers }, parts)
  const extra = { 'authentication.kubernetes.io/credential-id': [`X509SHA256=${fingerprint}`] }
  const caller = { name: 'jane', uid: '', groups: ['devs', 'system:authenticated'], extra }
  assert.deepEqual(by(), { kind: 'named', caller })
  assert.deepEqual(by({ uids: ['u1'] }), { kind: 'named', caller: { ...caller, uid: 'u1' } })
  for (const odd of [{ uids: ['u1', 'u2'] }, { uids: [''] }, { uids: undefined }, { name: '' }]) {
    assert.deepEqual(by(odd), { kind: 'anonymous' }, JSON.stringify(odd))
  }
  // A token can go up, and goes before.
  assert.deepEqual(by({}, { authorization: 'Bearer t1' }), { kind: 'token', token: 't1' })
})

test('[I3] who shows a certificate that proves nothing is not even anonymous, unless a token is shown with it', () => {
  const certificate = { name: 'jane', organizations: [], uids: [], issuedBy: 'clients', expiresMs: 1_000 } as const
  for (const peer of [{ unverified: true }, { certificate }]) {
    assert.throws(() => identityOf({ peer, headers: {} }, parts), /Unauthorized/)
    assert.throws(() => identityOf({ peer, headers: { authorization: 'Basic x' } }, parts), /Unauthorized/)
    const headers = { authorization: 'Bearer t1' }
    assert.deepEqual(identityOf({ peer, headers }, parts), { kind: 'token', token: 't1' })
  }
})

test('requests of one connection with one certificate share an identity', () => {
  const certificate = { name: 'jane', organizations: [], uids: [], issuedBy: 'clients', expiresMs: 2_000 } as const
  const by = () => identityOf({ peer: { certificate }, headers: {} }, parts)
  assert.equal(by(), by())
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
  // What follows the token is not looked at, as at kube-apiserver.
  assert.deepEqual(by({ authorization: ' BEARER t2 t1 ' }), { kind: 'token', token: 't2' })
  for (const authorization of ['Basic t2', 'Bearer', 'Bearer  t2', 'Bearert2']) {
    assert.deepEqual(by({ authorization }), { kind: 'anonymous' }, authorization)
  }
  assert.deepEqual(by({}), { kind: 'anonymous' })
  const protocol = (token: string) =>
    `v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.${Buffer.from(token).toString('base64url')}`
  for (const token of ['t3', 't4']) {
    const headers = { authorization: 'Basic x', 'sec-websocket-protocol': protocol(token) }
    assert.deepEqual(by(headers), { kind: 'token', token })
  }
  assert.deepEqual(by({ authorization: 'Bearer t1' }), { kind: 'token', token: 't1' })
})
