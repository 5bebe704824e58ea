import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Caller } from '../../kube/caller.ts'
import { fromPlain, type JsonObject } from '../../kube/json/json.ts'
import { StatusError } from '../../kube/status.ts'
import { refuseEscalation } from './escalation.ts'
import { Rbac, type RbacResource } from './rbac.ts'

const group = 'rbac.authorization.k8s.io'
const ann: Caller = { name: 'ann', uid: '', groups: ['devs', 'system:authenticated'] }

function put(rbac: Rbac, resource: RbacResource, key: string, object: object): void {
  rbac.put(resource, key, Buffer.from(JSON.stringify(object)))
}

/** Ann holds these rules in the namespace `shop`. */
function holding(...rules: object[]): Rbac {
  const rbac = new Rbac()
  put(rbac, 'clusterroles', 'held', { rules })
  const roleRef = { kind: 'ClusterRole', name: 'held' }
  put(rbac, 'rolebindings', 'shop/held', { roleRef, subjects: [{ kind: 'User', name: 'ann' }] })
  return rbac
}

type Write = { resource?: string; namespace?: string; old?: object; caller?: Caller; name?: string }

/** What the write is refused with; 'taken' where it is not. */
function refusal(rbac: Rbac, next: object, write: Write = {}): string {
  const { resource = 'roles', namespace = 'shop', old, caller = ann, name = '' } = write
  const tree = (object: object) => fromPlain(object) as JsonObject
  try {
    refuseEscalation(rbac, { resource: { group, resource }, namespace, name, caller }, tree(next), old && tree(old))
    return 'taken'
  } catch (error) {
    if (!(error instanceof StatusError)) throw error
    return `${error.code} ${error.message}`
  }
}

const pods = (...verbs: string[]) => ({ verbs, apiGroups: [''], resources: ['pods'] })
const role = (...rules: object[]) => ({ metadata: { name: 'r' }, rules })
const bindingTo = (kind: string, name: string) => ({
  metadata: { name: 'b' },
  roleRef: { apiGroup: group, kind, name },
})
const lacks = (what: string) =>
  `403 roles.${group} "r" is forbidden: user "ann" (groups=["devs" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n${what}`

test('[I2] a caller that holds every right of a role may write it, in whatever parts it holds them', () => {
  const rbac = holding(
    pods('get'),
    { ...pods('list'), resources: ['*'] },
    { verbs: ['*'], apiGroups: ['apps'], resources: ['*/scale'] },
  )
  assert.equal(refusal(rbac, role(pods('get', 'list'))), 'taken')
  assert.equal(refusal(rbac, role({ ...pods('get'), resourceNames: ['a'] })), 'taken')
  assert.equal(
    refusal(rbac, role({ verbs: ['patch'], apiGroups: ['apps'], resources: ['deployments/scale'] })),
    'taken',
  )
  assert.equal(refusal(rbac, role()), 'taken')
})

test('[I2] what is not held is named, verbs of one resource together', () => {
  const rbac = holding(pods('get'))
  const wanted = role(pods('get', 'list', 'watch'), {
    verbs: ['get'],
    apiGroups: [''],
    resources: ['nodes'],
    resourceNames: ['n'],
  })
  assert.equal(
    refusal(rbac, wanted),
    lacks(
      '{APIGroups:[""], Resources:["nodes"], ResourceNames:["n"], Verbs:["get"]}\n{APIGroups:[""], Resources:["pods"], Verbs:["list" "watch"]}',
    ),
  )
  assert.equal(
    refusal(rbac, role({ verbs: ['get'], nonResourceURLs: ['/x'] })),
    lacks('{NonResourceURLs:["/x"], Verbs:["get"]}'),
  )
})

test('[I2] a right to some names is no right to all, nor one in a namespace one everywhere', () => {
  const rbac = holding({ ...pods('get'), resourceNames: ['a'] })
  assert.equal(refusal(rbac, role({ ...pods('get'), resourceNames: ['a'] })), 'taken')
  assert.match(refusal(rbac, role(pods('get'))), /^403/)
  assert.match(refusal(holding(pods('get')), role(pods('get')), { namespace: 'other' }), /^403/)
  assert.match(
    refusal(holding(pods('get')), role(pods('get')), { resource: 'clusterroles', namespace: '' }),
    /^403 clusterroles/,
  )
})

test('[I2] the verbs escalate and bind give the right itself, by name where they are given so', () => {
  const escalate = { verbs: ['escalate'], apiGroups: [group], resources: ['roles'], resourceNames: ['r'] }
  assert.equal(refusal(holding(escalate), role(pods('*')), { name: 'r' }), 'taken')
  assert.match(refusal(holding(escalate), role(pods('*'))), /^403/, 'a new one has no name yet')
  const rbac = holding({ verbs: ['bind'], apiGroups: [group], resources: ['clusterroles'], resourceNames: ['big'] })
  put(rbac, 'clusterroles', 'big', role(pods('*')))
  assert.equal(refusal(rbac, bindingTo('ClusterRole', 'big'), { resource: 'rolebindings' }), 'taken')
  assert.match(
    refusal(rbac, bindingTo('ClusterRole', 'held'), { resource: 'clusterrolebindings', namespace: '' }),
    /^403/,
  )
})

test('[I2] a binding gives away the rights of its role; one whose role is not there is refused', () => {
  const rbac = holding(pods('get'))
  put(rbac, 'roles', 'shop/small', role(pods('get')))
  put(rbac, 'roles', 'shop/big', role(pods('get', 'delete')))
  const write = { resource: 'rolebindings' }
  assert.equal(refusal(rbac, bindingTo('Role', 'small'), write), 'taken')
  assert.match(
    refusal(rbac, bindingTo('Role', 'big'), write),
    /not currently held:\n\{APIGroups:\[""\], Resources:\["pods"\], Verbs:\["delete"\]\}$/,
  )
  assert.equal(refusal(rbac, bindingTo('Role', 'none'), write), `404 rolebindings.${group} "none" not found`)
  assert.equal(refusal(rbac, bindingTo('User', 'x'), write), '500 unsupported role reference kind: "User"')
})

test('[I2] an aggregation rule may gather anything: it takes all rights', () => {
  const aggregationRule = { clusterRoleSelectors: [{ matchLabels: { a: 'b' } }] }
  const write = { resource: 'clusterroles', namespace: '' }
  const rbac = holding(pods('get'))
  const why = `403 clusterroles.${group} "r" is forbidden: must have cluster-admin privileges to use the aggregationRule`
  assert.equal(refusal(rbac, { ...role(), aggregationRule }, write), why)
  assert.equal(refusal(rbac, role(), { ...write, old: { ...role(), aggregationRule } }), why)
})

test('[I2] owners and finalizers alone give nothing away, nor does the administrator need a right', () => {
  const rbac = holding()
  const big = role(pods('*'))
  const owned = { ...big, metadata: { name: 'r', finalizers: ['x'], ownerReferences: [] } }
  assert.equal(refusal(rbac, owned, { old: big }), 'taken')
  assert.match(refusal(rbac, { ...big, metadata: { name: 'r', labels: { a: 'b' } } }, { old: big }), /^403/)
  assert.equal(refusal(rbac, big, { caller: { ...ann, groups: ['system:masters'] } }), 'taken')
})

test('[I2] a role that is bound and not there is told with what is lacking', () => {
  const rbac = holding()
  const roleRef = { kind: 'Role', name: 'gone' }
  put(rbac, 'rolebindings', 'shop/b', { roleRef, subjects: [{ kind: 'Group', name: 'devs' }] })
  assert.match(
    refusal(rbac, role(pods('get'))),
    new RegExp(`; resolution errors: \\[role.${group} "gone" not found\\]$`),
  )
})
