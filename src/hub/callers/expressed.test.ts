import assert from 'node:assert/strict'
import { test } from 'node:test'
import { callerAs, wantedBy } from '../../access/authenticate/impersonation.ts'
import { impersonationWays } from '../../access/authenticate/impersonationways.ts'
import type { Caller } from '../../kube/caller.ts'
import { headerLines } from '../../tunnel/request/request.ts'
import { expressed } from './expressed.ts'

const all = 'system:authenticated'
const person: Caller = { name: 'jane', uid: '', groups: ['dev', 'ops', all] }
const node: Caller = { name: 'system:node:n1', uid: '', groups: ['system:nodes', all] }
const account: Caller = {
  ...{ name: 'system:serviceaccount:shop:web', uid: '' },
  groups: ['system:serviceaccounts', 'system:serviceaccounts:shop', all],
}

test('[L27] nodes and accounts are named alone, other users with their groups', () => {
  assert.deepEqual(expressed(person, true), { 'impersonate-user': 'jane', 'impersonate-group': ['dev', 'ops'] })
  assert.deepEqual(expressed(person, false), expressed(person, true))
  assert.deepEqual(expressed({ ...person, groups: [all] }, true), { 'impersonate-user': 'jane' })
  assert.deepEqual(expressed(node, true), { 'impersonate-user': 'system:node:n1' })
  assert.deepEqual(expressed(node, false), {
    'impersonate-user': 'system:node:n1',
    'impersonate-group': 'system:nodes',
  })
  assert.deepEqual(expressed(account, true), { 'impersonate-user': account.name })
  assert.deepEqual(expressed(account, false), { 'impersonate-user': account.name })
  const anonymous = { name: 'system:anonymous', uid: '', groups: ['system:unauthenticated'] }
  assert.deepEqual(expressed(anonymous, true), { 'impersonate-user': 'system:anonymous' })
  const extra = { 'authentication.kubernetes.io/credential-id': ['X509SHA256=ab'], 'acme.io/a(b': ['x', 'y'] }
  assert.deepEqual(expressed({ ...person, uid: 'u-1', extra }, true), {
    ...{ 'impersonate-user': 'jane', 'impersonate-uid': 'u-1', 'impersonate-group': ['dev', 'ops'] },
    'impersonate-extra-authentication.kubernetes.io%2fcredential-id': 'X509SHA256=ab',
    'impersonate-extra-acme.io%2fa%28b': ['x', 'y'],
  })
})

test('[L27] what is said is whom the API server takes it for', () => {
  const extra = { 'acme.io/scope': ['ä', 'b c'] }
  const callers: Caller[] = [
    ...[person, node, account, { ...person, groups: [all] }, { ...person, name: 'jäné', groups: ['größe', all] }],
    ...[
      { ...person, uid: 'u', extra },
      { name: 'system:anonymous', uid: '', groups: ['system:unauthenticated'] },
    ],
    { name: 'odd', uid: '', groups: ['system:unauthenticated', 'x'] },
  ]
  for (const caller of callers)
    for (const isConstrained of [true, false]) {
      const headers = expressed(caller, isConstrained)
      assert.ok(typeof headers !== 'string', `${caller.name}: ${headers}`)
      const wanted = wantedBy(headerLines(headers).flatMap(({ name, value }) => [name, value]))
      assert.ok(wanted !== undefined)
      const [way] = impersonationWays(wanted, person)
      const taken = isConstrained ? (way?.caller as Caller) : callerAs(wanted)
      assert.deepEqual({ ...taken, groups: [...taken.groups].sort() }, { ...caller, groups: [...caller.groups].sort() })
      if (isConstrained) assert.notEqual(way?.name, '')
    }
})

test('[L27] nobody is named whom HTTP would make another, nor a member of system:masters', () => {
  const cases: Caller[] = [
    ...[' jane', 'jane ', 'jane\n', 'ja\r\nimpersonate-group: x', '', '\t'].map((name) => ({ ...person, name })),
    ...['system:masters', '', ' dev', 'de\u0000v'].map((group) => ({ ...person, groups: [group, all] })),
    { ...person, extra: { 'Acme.io/a': ['x'] } },
    { ...person, extra: { 'acme.io/a': [''] } },
    { ...person, uid: ' 1' },
  ]
  for (const caller of cases)
    for (const isConstrained of [true, false])
      assert.equal(typeof expressed(caller, isConstrained), 'string', JSON.stringify(caller))
  // Those of these kinds that are not as all others are cannot be told in the constrained way, and are not told as something else.
  for (const caller of [
    { ...node, groups: ['system:nodes', 'dev', all] },
    { ...node, groups: [all] },
    { ...account, groups: [all] },
    { ...account, uid: 'u' },
  ]) {
    assert.equal(typeof expressed(caller, true), 'string', JSON.stringify(caller))
  }
})
