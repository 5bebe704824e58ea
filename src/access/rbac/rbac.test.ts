import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seeded } from '../../base/seeded.test-support.ts'
import type { Caller } from '../../kube/caller.ts'
import { aggregatedRules, readAggregable } from './aggregation.ts'
import { Rbac, type RbacResource } from './rbac.ts'
import type { AccessWish } from './rules.ts'
import { rulesStatus } from './rulesreview.ts'

const ann: Caller = { name: 'ann', uid: '', groups: ['devs', 'system:authenticated'] }
const robot: Caller = { name: 'system:serviceaccount:shop:robot', uid: '', groups: ['system:serviceaccounts'] }

function wish(given: Partial<AccessWish>): AccessWish {
  return { verb: 'get', group: '', resource: 'pods', subresource: '', namespace: '', name: '', path: '', ...given }
}

function put(rbac: Rbac, resource: RbacResource, key: string, object: object): void {
  rbac.put(resource, key, Buffer.from(JSON.stringify(object)))
}

const toUser = (name: string) => ({ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name })
const toGroup = (name: string) => ({ kind: 'Group', apiGroup: 'rbac.authorization.k8s.io', name })
const role = (...rules: object[]) => ({ rules })
const binding = (kind: string, name: string, ...subjects: object[]) => ({ roleRef: { kind, name }, subjects })

/** One ClusterRole with this rule, bound to ann. */
function withRule(rule: object): Rbac {
  const rbac = new Rbac()
  put(rbac, 'clusterroles', 'r', role(rule))
  put(rbac, 'clusterrolebindings', 'b', binding('ClusterRole', 'r', toUser('ann')))
  return rbac
}

const all = { verbs: ['*'], apiGroups: ['*'], resources: ['*'] }
const rows: readonly [rule: object, asked: Partial<AccessWish>, allowed: boolean][] = [
  [all, { verb: 'sing', group: 'x', resource: 'songs', subresource: 'loud' }, true],
  [all, { resource: '', path: '/metrics' }, false],
  [{ ...all, verbs: ['get'] }, { verb: 'list' }, false],
  [{ ...all, apiGroups: [''] }, { group: 'apps' }, false],
  [{ ...all, resources: ['pods'] }, { subresource: 'log' }, false],
  [{ ...all, resources: ['pods/log'] }, { subresource: 'log' }, true],
  [{ ...all, resources: ['pods/log'] }, {}, false],
  [{ ...all, resources: ['*/scale'] }, { resource: 'deployments', subresource: 'scale' }, true],
  [{ ...all, resources: ['*/scale'] }, { resource: 'scale' }, false],
  [{ ...all, resources: ['*/'] }, {}, false],
  [{ ...all, resources: [''] }, {}, false],
  [{ ...all, resources: ['pods/*'] }, { subresource: 'log' }, false],
  [{ ...all, resourceNames: ['a', 'b'] }, { name: 'b' }, true],
  [{ ...all, resourceNames: ['a'] }, { verb: 'list' }, false],
  [{ verbs: ['get'], nonResourceURLs: ['/healthz'] }, { resource: '', path: '/healthz' }, true],
  [{ verbs: ['get'], nonResourceURLs: ['/healthz'] }, { resource: '', path: '/healthz/etcd' }, false],
  [{ verbs: ['get'], nonResourceURLs: ['/healthz/*'] }, { resource: '', path: '/healthz/etcd' }, true],
  [{ verbs: ['get'], nonResourceURLs: ['/healthz/*'] }, { resource: '', path: '/healthz' }, false],
  [{ verbs: ['get'], nonResourceURLs: ['/he**'] }, { resource: '', path: '/healthz' }, true],
  [{ verbs: ['get'], nonResourceURLs: ['/a*b'] }, { resource: '', path: '/axb' }, false],
  [{ verbs: ['get'], nonResourceURLs: ['/a*b'] }, { resource: '', path: '/a*bc' }, false],
  [{ verbs: ['get'], nonResourceURLs: ['*'] }, { verb: 'post', resource: '', path: '/x' }, false],
]

for (const [rule, asked, allowed] of rows) {
  const text = `${JSON.stringify(rule)} ${allowed ? 'allows' : 'does not allow'} ${JSON.stringify(asked)}`
  test(`[I2] ${text}`, () => assert.equal(withRule(rule).judge(ann, wish(asked)).allowed, allowed))
}

test('[I2] reasons are those of kube-apiserver: binding, role, and the first subject that the caller is', () => {
  const rbac = new Rbac()
  put(rbac, 'clusterroles', 'view', role({ ...all, verbs: ['get'] }))
  put(rbac, 'roles', 'shop/edit', role({ ...all, verbs: ['update'] }))
  put(
    rbac,
    'clusterrolebindings',
    'views',
    binding('ClusterRole', 'view', toGroup('x'), toGroup('devs'), toUser('ann')),
  )
  const account = { kind: 'ServiceAccount', name: 'robot' }
  put(rbac, 'rolebindings', 'shop/edits', binding('Role', 'edit', account))
  assert.equal(
    rbac.judge(ann, wish({})).reason,
    'RBAC: allowed by ClusterRoleBinding "views" of ClusterRole "view" to Group "devs"',
  )
  assert.equal(
    rbac.judge(robot, wish({ verb: 'update', namespace: 'shop' })).reason,
    'RBAC: allowed by RoleBinding "edits/shop" of Role "edit" to ServiceAccount "robot/shop"',
  )
  assert.equal(rbac.judge(robot, wish({ verb: 'update', namespace: 'other' })).allowed, false)
  assert.equal(rbac.judge(robot, wish({ verb: 'update' })).allowed, false, 'a RoleBinding gives nothing at the cluster')
})

test('[I2] a role that is not there gives nothing and is named in the denial, whichever way it comes and goes', () => {
  const rbac = new Rbac()
  const missing = 'RBAC: clusterrole.rbac.authorization.k8s.io "r" not found'
  put(rbac, 'clusterrolebindings', 'b', binding('ClusterRole', 'r', toUser('ann')))
  assert.deepEqual(rbac.judge(ann, wish({})), { allowed: false, reason: missing })
  put(rbac, 'clusterroles', 'r', role(all))
  assert.equal(rbac.judge(ann, wish({})).allowed, true)
  put(rbac, 'rolebindings', 'shop/b', binding('Role', 'q', toGroup('devs')))
  rbac.delete('clusterroles', 'r')
  const both = `RBAC: [${missing.slice(6)}, role.rbac.authorization.k8s.io "q" not found]`
  assert.deepEqual(rbac.judge(ann, wish({ namespace: 'shop' })), { allowed: false, reason: both })
  rbac.delete('clusterrolebindings', 'b')
  assert.deepEqual(rbac.judge(ann, wish({})), { allowed: false, reason: '' })
})

const subjectRows: readonly [subject: object, caller: Partial<Caller>, isMeant: boolean][] = [
  [toGroup('ops'), { groups: ['devs', 'ops'] }, true],
  [toGroup('ann'), {}, false],
  [toUser('devs'), {}, false],
  [{ kind: 'group', name: 'devs' }, {}, false],
  [{ kind: 'Account', name: 'robot', namespace: 'shop' }, robot, false],
  [{ kind: 'ServiceAccount', name: 'robot', namespace: 'shop' }, robot, true],
  [{ kind: 'ServiceAccount', name: 'robot', namespace: 'other' }, robot, false],
  [{ kind: 'ServiceAccount', name: 'robot' }, { name: 'system:serviceaccount::robot' }, false],
]

for (const [subject, caller, isMeant] of subjectRows) {
  const who = { ...ann, ...caller }
  test(`[I2] ${JSON.stringify(subject)} ${isMeant ? 'is' : 'is not'} ${who.name} of ${who.groups}`, () => {
    const rbac = new Rbac()
    put(rbac, 'clusterroles', 'r', role(all))
    put(rbac, 'clusterrolebindings', 'b', binding('ClusterRole', 'r', subject))
    assert.equal(rbac.judge(who, wish({})).allowed, isMeant)
  })
}

test('[I2] a binding gives the role that it names, of the kind and in the namespace that it says', () => {
  const rbac = new Rbac()
  put(rbac, 'clusterroles', 'r', role(all))
  put(rbac, 'roles', 'shop/r', role(all, { verbs: ['get'], nonResourceURLs: ['/metrics'] }))
  const refused = (resource: RbacResource, key: string, kind: string, reason: string) => {
    put(rbac, resource, key, binding(kind, 'r', toUser('ann')))
    assert.deepEqual(rbac.judge(ann, wish({ namespace: 'shop' })), { allowed: false, reason: `RBAC: ${reason}` })
    rbac.delete(resource, key)
  }
  refused('clusterrolebindings', 'b', 'Role', 'role.rbac.authorization.k8s.io "r" not found')
  refused('rolebindings', 'shop/b', 'role', 'unsupported role reference kind: "role"')
  put(rbac, 'rolebindings', 'shop/b', binding('Role', 'r', toUser('ann')))
  assert.equal(rbac.judge(ann, wish({ namespace: 'shop' })).allowed, true)
  const path = { resource: '', path: '/metrics', namespace: 'shop' }
  assert.equal(rbac.judge(ann, wish(path)).allowed, false, 'a path is in no namespace')
})

test('[I2] what is read anew of one resource leaves the other as it was', () => {
  const rbac = new Rbac()
  put(rbac, 'clusterroles', 'r', role({ ...all, verbs: ['get'] }))
  put(rbac, 'roles', 'shop/r', role({ ...all, verbs: ['list'] }))
  put(rbac, 'clusterrolebindings', 'b', binding('ClusterRole', 'r', toUser('ann')))
  put(rbac, 'rolebindings', 'shop/b', binding('Role', 'r', toUser('ann')))
  const may = () => ['get', 'list'].filter((verb) => rbac.judge(ann, wish({ verb, namespace: 'shop' })).allowed)
  for (const [cleared, left] of [
    ['roles', ['get']],
    ['rolebindings', ['get']],
    ['clusterrolebindings', []],
  ] as const) {
    rbac.clear(cleared)
    assert.deepEqual(may(), left)
  }
  put(rbac, 'clusterrolebindings', 'b', binding('ClusterRole', 'r', toUser('ann')))
  assert.deepEqual(may(), ['get'])
  rbac.clear('clusterroles')
  assert.deepEqual(may(), [])
})

test('[I2] members of system:masters may everything, without a binding', () => {
  const root: Caller = { name: 'root', uid: '', groups: ['system:masters'] }
  assert.deepEqual(new Rbac().judge(root, wish({})), { allowed: true, reason: '' })
  assert.equal(new Rbac().judge({ ...ann, name: 'system:masters' }, wish({})).allowed, false)
})

test('[I2] a rules review has the rules of the cluster and of the namespace, and says what is missing', () => {
  const rbac = new Rbac()
  put(rbac, 'clusterroles', 'r', role({ verbs: ['get'], nonResourceURLs: ['/metrics'] }))
  put(rbac, 'roles', 'shop/q', role({ verbs: ['get'], apiGroups: [''], resources: ['pods'], resourceNames: ['a'] }))
  put(rbac, 'clusterrolebindings', 'b', binding('ClusterRole', 'r', toUser('ann'), toGroup('devs')))
  put(rbac, 'rolebindings', 'shop/b', binding('Role', 'q', toGroup('devs')))
  put(rbac, 'rolebindings', 'shop/c', binding('Role', 'gone', toGroup('devs')))
  const evaluationError = 'role.rbac.authorization.k8s.io "gone" not found'
  const told = {
    resourceRules: [{ verbs: ['get'], apiGroups: [''], resources: ['pods'], resourceNames: ['a'] }],
    nonResourceRules: [{ verbs: ['get'], nonResourceURLs: ['/metrics'] }],
    incomplete: false,
    evaluationError,
  }
  assert.deepEqual(rulesStatus(rbac.rulesOf(ann, 'shop')), told)
  const both = `[node authorizer does not support user rule resolution, ${evaluationError}]`
  assert.deepEqual(rulesStatus(rbac.rulesOf(ann, 'shop'), true), { ...told, incomplete: true, evaluationError: both })
})

test('aggregated rules come by selector and name, each once, without the role itself', () => {
  const labelled = (name: string, labels: object, rules: object[], more = {}) =>
    readAggregable(Buffer.from(JSON.stringify({ metadata: { name, labels }, rules, ...more })))
  const [pods, jobs] = [
    { verbs: ['get'], apiGroups: [''], resources: ['pods'] },
    { verbs: ['get'], apiGroups: ['batch'], resources: ['jobs'] },
  ]
  const clusterRoleSelectors = [
    { matchExpressions: [{ key: 'tier', operator: 'NotIn', values: ['a', 'b'] }], matchLabels: { to: 'view' } },
    { matchLabels: { to: 'view' } },
  ]
  const view = labelled('view', { to: 'view' }, [all], { aggregationRule: { clusterRoleSelectors } })
  const roles = [
    view,
    labelled('z', { to: 'view', tier: 'c' }, [pods]),
    labelled('a', { to: 'view', tier: 'a' }, [jobs, pods]),
  ]
  assert.deepEqual(
    aggregatedRules(view, roles).map(({ resources }) => resources),
    [['pods'], ['jobs']],
  )
})

test('[I2] an index that followed random changes says what one built from the outcome says (seeds 1 to 20)', () => {
  for (let seed = 1; seed <= 20; seed++) {
    const below = seeded(seed)
    const followed = new Rbac()
    const present = new Map<string, { resource: RbacResource; key: string; object: object }>()
    for (let i = 0; i < 300; i++) {
      const resource = (['roles', 'rolebindings', 'clusterroles', 'clusterrolebindings'] as const)[below(4)]!
      const key = `${resource.startsWith('cluster') ? '' : `n${below(2)}/`}o${below(4)}`
      const subjects = [toUser('ann'), toGroup('devs'), { kind: 'ServiceAccount', name: 'robot', namespace: 'shop' }]
      const kind = resource === 'rolebindings' && below(2) === 0 ? 'Role' : 'ClusterRole'
      const object = resource.endsWith('roles')
        ? role({ ...all, verbs: [`v${below(4)}`] })
        : binding(kind, `o${below(4)}`, ...subjects.slice(below(3)))
      if (below(3) === 0) {
        followed.delete(resource, key)
        present.delete(`${resource} ${key}`)
      } else {
        put(followed, resource, key, object)
        present.set(`${resource} ${key}`, { resource, key, object })
      }
    }
    const built = new Rbac()
    for (const { resource, key, object } of present.values()) put(built, resource, key, object)
    assert.equal(followed.bindings, built.bindings)
    for (const caller of [ann, robot]) {
      for (let verb = 0; verb < 4; verb++) {
        for (const namespace of ['', 'n0', 'n1']) {
          const asked = wish({ verb: `v${verb}`, namespace })
          const [one, other] = [followed.judge(caller, asked), built.judge(caller, asked)]
          assert.equal(one.allowed, other.allowed, `seed ${seed}: ${JSON.stringify(asked)}`)
          if (!one.allowed) assert.equal(one.reason, other.reason, `seed ${seed}: ${JSON.stringify(asked)}`)
        }
      }
    }
  }
})
