import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StatusError } from '../../kube/status.ts'
import { impersonationOf } from './impersonation.ts'

const lines = (headers: readonly (readonly [string, string])[]) => headers.flat()

const shortly = (headers: readonly (readonly [string, string])[]) =>
  impersonationOf(lines(headers))?.asked.map(({ group, resource, subresource, namespace, name }) =>
    [group, resource, subresource, namespace, name].join('|'),
  )

test('[I1] each part of the other caller is asked for: user, uid, groups, extra, in the order of kube-apiserver', () => {
  const headers = [
    ['Impersonate-Extra-Scopes', 'view'],
    ['impersonate-group', 'devs'],
    ['Impersonate-Extra-Acme.com%2Fproject', 'one'],
    ['IMPERSONATE-EXTRA-SCOPES', 'edit'],
    ['Impersonate-Uid', 'u1'],
    ['Impersonate-Group', 'ops, too'],
    ['Impersonate-User', 'jane'],
    ['Impersonate-User', 'root'],
    ['Accept', 'impersonate-user'],
    ['X-Replicate-Group', 'root'],
  ] as const
  assert.deepEqual(shortly(headers), [
    '|users|||jane',
    'authentication.k8s.io|uids|||u1',
    '|groups|||devs',
    '|groups|||ops, too',
    'authentication.k8s.io|userextras|scopes||view',
    'authentication.k8s.io|userextras|scopes||edit',
    'authentication.k8s.io|userextras|acme.com/project||one',
  ])
  assert.deepEqual(impersonationOf(lines(headers))?.caller, {
    name: 'jane',
    uid: 'u1',
    groups: ['devs', 'ops, too', 'system:authenticated'],
    extra: { scopes: ['view', 'edit'], 'acme.com/project': ['one'] },
  })
})

test('[I1] the groups of the other caller are those that kube-apiserver gives it', () => {
  const groups = (user: string, ...named: string[]) => {
    const headers = [['Impersonate-User', user] as const, ...named.map((one) => ['Impersonate-Group', one] as const)]
    return impersonationOf(lines(headers))?.caller.groups
  }
  assert.deepEqual(groups('jane'), ['system:authenticated'])
  assert.deepEqual(groups('jane', 'system:authenticated', 'a'), ['system:authenticated', 'a'])
  assert.deepEqual(groups('jane', 'system:unauthenticated'), ['system:unauthenticated'])
  assert.deepEqual(groups('system:anonymous'), ['system:unauthenticated'])
  assert.deepEqual(groups('system:anonymous', 'a'), ['a', 'system:unauthenticated'])
  const account = 'system:serviceaccount:shop:till'
  const own = ['system:serviceaccounts', 'system:serviceaccounts:shop', 'system:authenticated']
  assert.deepEqual(groups(account), own)
  assert.deepEqual(groups(account, 'a'), ['a', 'system:authenticated'])
})

test('[I1] what is a service account by its name is asked for as one, and only that', () => {
  assert.deepEqual(shortly([['Impersonate-User', 'system:serviceaccount:shop:till']]), ['|serviceaccounts||shop|till'])
  for (const user of ['system:serviceaccount:shop', 'system:serviceaccount:Shop:till', 'system:serviceaccount:a:b:c']) {
    assert.deepEqual(shortly([['Impersonate-User', user]]), [`|users|||${user}`])
  }
})

test('[I1] names are texts in UTF-8, keys may be escaped, and none can reach a prototype', () => {
  const user = Buffer.from('jürgen').toString('latin1')
  const found = impersonationOf(
    lines([
      ['Impersonate-User', user],
      ['Impersonate-Extra-__proto__', 'x'],
      ['Impersonate-Extra-bad%zz', 'y'],
    ]),
  )
  assert.equal(found?.caller.name, 'jürgen')
  assert.deepEqual(Object.keys(found?.caller.extra ?? {}), ['__proto__', 'bad%zz'])
})

test('a caller that names no user impersonates none, and is told so in the words of kube-apiserver', () => {
  assert.equal(impersonationOf(lines([['Impersonate-User', '']])), undefined)
  assert.equal(impersonationOf([]), undefined)
  const message = (...headers: (readonly [string, string])[]) => {
    try {
      impersonationOf(lines(headers))
    } catch (error) {
      assert.ok(error instanceof StatusError)
      assert.equal(error.status.code, 400)
      return error.message
    }
    return ''
  }
  assert.equal(
    message(['Impersonate-Group', 'a'], ['Impersonate-Group', 'b']),
    'requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"a", "b"}, Extra:map[string][]string(nil)} without impersonating a user name',
  )
  assert.equal(
    message(['Impersonate-Uid', 'u'], ['Impersonate-Extra-Scopes', 's']),
    'requested &user.DefaultInfo{Name:"", UID:"u", Groups:[]string(nil), Extra:map[string][]string{"scopes":[]string{"s"}}} without impersonating a user name',
  )
})
