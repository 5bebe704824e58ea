import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openWorld, type World } from './world.test-support.ts'

const rbac = '/apis/rbac.authorization.k8s.io/v1'
const maps = '/api/v1/namespaces/default/configmaps'
const account = 'system:serviceaccount:default:robot'

async function withRobot(world: World): Promise<string> {
  await world.ask('POST', '/api/v1/namespaces/default/serviceaccounts', { metadata: { name: 'robot' } })
  const { json } = await world.ask('POST', '/api/v1/namespaces/default/serviceaccounts/robot/token', {})
  return json.status.token
}

async function bind(world: World, role: string): Promise<void> {
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role }
  const subjects = [{ kind: 'ServiceAccount', name: 'robot', namespace: 'default' }]
  const { status } = await world.ask('POST', `${rbac}/namespaces/default/rolebindings`, {
    ...{ metadata: { name: role }, roleRef, subjects },
  })
  assert.equal(status, 201)
}

const said = async (asked: Promise<{ status: number; json: any }>) => {
  const { status, json } = await asked
  return status < 300 ? `${status}` : `${status} ${json.message}`
}

test('[I2] the administrator may do everything; a token gets what is bound to its account, from the moment it is', async () => {
  const world = await openWorld({ rbac: true, documents: true })
  const authorization = `Bearer ${await withRobot(world)}`
  const robot = (method: string, url: string, body?: unknown) =>
    said(world.ask(method, url, body, { authorization }, world.stranger))
  assert.equal(
    await robot('GET', maps),
    `403 configmaps is forbidden: User "${account}" cannot list resource "configmaps" in API group "" in the namespace "default"`,
  )
  assert.equal(await robot('GET', '/api'), '200', 'system:discovery')
  await world.ask('POST', `${rbac}/clusterroles`, {
    ...{
      metadata: { name: 'maps' },
      rules: [{ verbs: ['list', 'create'], apiGroups: [''], resources: ['configmaps'] }],
    },
  })
  await bind(world, 'maps')
  assert.equal(await robot('GET', maps), '200')
  assert.equal(await robot('POST', maps, { metadata: { name: 'a' } }), '201')
  assert.match(await robot('DELETE', `${maps}/a`), /^403 configmaps "a" is forbidden: User .* cannot delete/)
  assert.match(await robot('GET', '/api/v1/namespaces/kube-system/configmaps'), /^403/)
  await world.ask('DELETE', `${rbac}/namespaces/default/rolebindings/maps`)
  assert.match(await robot('GET', maps), /^403/)
  assert.equal(await said(world.ask('GET', maps)), '200', 'the administrator')
  await world.ask('DELETE', '/api/v1/namespaces/default/serviceaccounts/robot')
  assert.equal(await robot('GET', '/api'), '401 Unauthorized', 'the account is gone')
})

test('[I3] anonymous gets what the default roles give it, and a token of another none at all', async () => {
  const world = await openWorld({ rbac: true, documents: true })
  const stranger = (url: string, headers: Record<string, string> = {}) =>
    said(world.ask('GET', url, undefined, headers, world.stranger))
  for (const path of ['/healthz', '/livez', '/readyz', '/version']) {
    assert.equal((await world.ask('GET', path, undefined, {}, world.stranger)).status, 200, path)
  }
  assert.equal(await stranger('/api'), '403 forbidden: User "system:anonymous" cannot get path "/api"')
  assert.match(await stranger(maps), /^403 configmaps is forbidden: User "system:anonymous" cannot list/)
  assert.equal(await stranger('/healthz', { authorization: 'Bearer nonsense' }), '401 Unauthorized')
})

test('[I2] a caller that speaks for another needs the right to each part of it, then has what the other has', async () => {
  const world = await openWorld({ rbac: true })
  const as = (headers: Record<string, string>, url = maps) => said(world.ask('GET', url, undefined, headers))
  assert.match(await as({ 'impersonate-user': 'ann' }), /^403 configmaps is forbidden: User "ann" cannot list/)
  assert.equal(await as({ 'impersonate-user': 'ann', 'impersonate-group': 'system:masters' }), '200')
  const authorization = `Bearer ${await withRobot(world)}`
  const robot = world.ask('GET', maps, undefined, { authorization, 'impersonate-user': 'ann' }, world.stranger)
  assert.equal(
    await said(robot),
    `403 configmaps is forbidden: User "${account}" cannot impersonate-on:user-info:list resource "configmaps" in API group "" in the namespace "default"`,
  )
  const self = await world.ask(
    'POST',
    '/apis/authentication.k8s.io/v1/selfsubjectreviews',
    {},
    { 'impersonate-user': 'ann' },
  )
  assert.deepEqual(self.json.status.userInfo, { username: 'ann', groups: ['system:authenticated'] })
})

test('[I2] nobody gives away what it does not hold: created, replaced, patched, applied or bound', async () => {
  const world = await openWorld({ rbac: true })
  const authorization = `Bearer ${await withRobot(world)}`
  const roles = `${rbac}/namespaces/default/roles`
  await world.ask('POST', `${rbac}/clusterroles`, {
    metadata: { name: 'writer' },
    rules: [
      { verbs: ['get', 'list'], apiGroups: [''], resources: ['pods'] },
      {
        verbs: ['*'],
        apiGroups: ['rbac.authorization.k8s.io'],
        resources: ['roles', 'rolebindings'],
        resourceNames: [],
      },
    ],
  })
  const robot = (method: string, url: string, body: unknown, type = 'application/json') =>
    said(world.ask(method, url, body, { authorization, 'content-type': type }, world.stranger))
  await bind(world, 'writer')
  // `*` on roles is escalate on them too: only bindings are left to be refused.
  assert.equal(
    await robot('POST', roles, {
      metadata: { name: 'all' },
      rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }],
    }),
    '201',
  )
  await world.ask(
    'PATCH',
    `${rbac}/clusterroles/writer`,
    [{ op: 'replace', path: '/rules/1/verbs', value: ['create', 'update', 'patch', 'get'] }],
    { 'content-type': 'application/json-patch+json' },
  )
  const pods = (...verbs: string[]) => ({ verbs, apiGroups: [''], resources: ['pods'] })
  const role = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role', metadata: { name: 'r' } }
  const refused =
    /^403 roles.rbac.authorization.k8s.io "r" is forbidden: user ".*:robot" \(groups=\["system:serviceaccounts" .*is attempting to grant RBAC permissions not currently held:\n\{APIGroups:\[""\], Resources:\["pods"\], Verbs:\["delete"\]\}$/
  assert.match(await robot('POST', roles, { ...role, rules: [pods('get', 'delete')] }), refused)
  assert.equal(await robot('POST', roles, { ...role, rules: [pods('get')] }), '201')
  assert.match(await robot('PUT', `${roles}/r`, { ...role, rules: [pods('delete')] }), refused)
  assert.match(await robot('PATCH', `${roles}/r`, { rules: [pods('delete')] }, 'application/merge-patch+json'), refused)
  const applied = { ...role, rules: [pods('delete')] }
  assert.match(
    await robot('PATCH', `${roles}/r?fieldManager=x&force=true`, applied, 'application/apply-patch+yaml'),
    refused,
  )
  assert.equal(await robot('PUT', `${roles}/r`, { ...role, rules: [pods('list')] }), '200')
  const binding = { metadata: { name: 'b' }, subjects: [{ kind: 'User', name: 'x' }] }
  const bindings = `${rbac}/namespaces/default/rolebindings`
  const to = (name: string) => ({ ...binding, roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name } })
  assert.match(
    await robot('POST', bindings, to('all')),
    /^403 rolebindings.rbac.authorization.k8s.io "b" is forbidden: user/,
  )
  assert.equal(await robot('POST', bindings, to('none')), '404 rolebindings.rbac.authorization.k8s.io "none" not found')
  assert.equal(await robot('POST', bindings, to('r')), '201')
})

test('[I2] reviews are answered by roles, and by the tokens that were issued', async () => {
  const world = await openWorld({ rbac: true })
  const token = await withRobot(world)
  await bind(world, 'view')
  await world.ask(
    'PATCH',
    `${rbac}/clusterroles/view`,
    { rules: [{ verbs: ['get'], apiGroups: [''], resources: ['pods'] }] },
    {
      'content-type': 'application/merge-patch+json',
    },
  )
  const review = async (path: string, spec: object, headers: Record<string, string> = {}, peer = world.stranger) =>
    (await world.ask('POST', `/apis/${path}`, { spec }, headers, peer)).json.status
  const authorization = `Bearer ${token}`
  const pods = { verb: 'get', resource: 'pods', namespace: 'default' }
  const reason = `RBAC: allowed by RoleBinding "view/default" of ClusterRole "view" to ServiceAccount "robot/default"`
  const self = 'authorization.k8s.io/v1/selfsubjectaccessreviews'
  assert.deepEqual(await review(self, { resourceAttributes: pods }, { authorization }), { allowed: true, reason })
  assert.deepEqual(await review(self, { resourceAttributes: { ...pods, verb: 'list' } }, { authorization }), {
    allowed: false,
  })
  const rules = await review(
    'authorization.k8s.io/v1/selfsubjectrulesreviews',
    { namespace: 'default' },
    { authorization },
  )
  assert.ok(rules.resourceRules.some(({ resources, verbs }: any) => resources[0] === 'pods' && verbs[0] === 'get'))
  const { authenticated, user } = (
    await world.ask('POST', '/apis/authentication.k8s.io/v1/tokenreviews', { spec: { token } })
  ).json.status
  assert.deepEqual([authenticated, user.username], [true, account])
})

test('[I2] where roles do not count a token of the server is let in, and what is none is not', async () => {
  const world = await openWorld()
  const authorization = `Bearer ${await withRobot(world)}`
  assert.equal((await world.ask('GET', maps, undefined, { authorization }, world.stranger)).status, 200)
  assert.equal(
    await said(world.ask('GET', maps, undefined, { authorization: 'Bearer x' }, world.stranger)),
    '401 Unauthorized',
  )
  assert.equal(await said(world.ask('GET', maps, undefined, {}, world.stranger)), '401 Unauthorized')
})
