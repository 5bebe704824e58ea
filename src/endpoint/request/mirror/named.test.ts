/** Callers whose certificate names them and that no credential goes with: judged like callers with one, and nothing goes up for them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Unspoken } from '../../../upstream/upstream.ts'
import { answered, EdgeCloud, EdgeWorld, statusText } from '../../edgeworld.test-support.ts'
import type { Peer } from '../../endpoint.ts'

const maps = '/api/v1/namespaces/a/configmaps'
const cached = `${maps}?resourceVersion=0`
const elsewhere = cached.replace('/a/', '/b/')
const rbac = 'rbac.authorization.k8s.io'
const reads = ['get', 'list', 'watch']

function peerOf(name: string, organizations: readonly string[] = ['shop']): Peer {
  const expiresMs = Number.MAX_SAFE_INTEGER
  return { certificate: { name, organizations, uids: [], issuedBy: 'clients', expiresMs } }
}

const everyone = { kind: 'Group', name: 'system:authenticated' }
const technician = { peer: peerOf('technician') }

/** An edge that mirrors the roles by which its API server judges: the group shop reads the ConfigMaps of a, and the pods of c. */
async function opened(): Promise<EdgeWorld> {
  const cloud = new EdgeCloud()
  for (const [resource, kind, namespaced] of [
    ['roles', 'Role', true],
    ['clusterroles', 'ClusterRole', false],
    ['rolebindings', 'RoleBinding', true],
    ['clusterrolebindings', 'ClusterRoleBinding', false],
  ] as const) {
    cloud.publish(rbac, 'v1', { resource, kind, namespaced })
  }
  for (const [resource, kind] of [
    ['selfsubjectaccessreviews', 'SelfSubjectAccessReview'],
    ['selfsubjectrulesreviews', 'SelfSubjectRulesReview'],
  ] as const) {
    cloud.publish('authorization.k8s.io', 'v1', { resource, kind, namespaced: false })
  }
  cloud.publish('authentication.k8s.io', 'v1', {
    ...{ resource: 'selfsubjectreviews', kind: 'SelfSubjectReview', namespaced: false },
  })
  const subjects = [
    { kind: 'Group', name: 'shop' },
    { kind: 'User', name: 'system:node:n1' },
  ]
  const roleRef = { kind: 'Role', name: 'reads' }
  const wanted = { a: 'configmaps', c: 'pods' }
  for (const [namespace, resource] of Object.entries(wanted)) {
    const rules = [{ verbs: reads, apiGroups: [''], resources: [resource] }]
    cloud.server.put('roles', `${namespace}/reads`, { more: { rules } })
    cloud.server.put('rolebindings', `${namespace}/shop`, { more: { roleRef, subjects } })
  }
  const asking = [{ verbs: ['create'], apiGroups: ['authorization.k8s.io', 'authentication.k8s.io'], resources: ['*'] }]
  cloud.server.put('clusterroles', 'basic-user', { more: { rules: asking } })
  cloud.server.put('clusterrolebindings', 'basic-user', {
    ...{ more: { roleRef: { kind: 'ClusterRole', name: 'basic-user' }, subjects: [everyone] } },
  })
  cloud.judge.allows = ({ name, groups }, { resourceAttributes: { verb, resource, namespace } = {} }) => {
    const isReader = groups.includes('shop') || name === 'system:node:n1'
    const isTheirs = (namespace === 'a' && resource === 'configmaps') || (namespace === 'c' && resource === 'pods')
    return name === 'edge' || name === 'alice' || (isReader && reads.includes(String(verb)) && isTheirs)
  }
  cloud.server.put('configmaps', 'a/c1', { value: 'one' })
  cloud.server.put('configmaps', 'b/c2', { value: 'hidden' })
  cloud.server.put('pods', 'c/p1', { value: 'pod' })
  const world = await EdgeWorld.open({ cloud })
  await world.until(() => world.access.evaluation.isCurrent(cloud.clock.steady()), 60)
  await world.synced('configmaps', 'a')
  cloud.asked.length = 0
  cloud.judge.asked.length = 0
  return world
}

/** Requests of clients, and whatever is asked in another name than the edge's own. */
function wentUp({ cloud }: EdgeWorld): string[] {
  const found = cloud.asked.filter(({ identity, passedOn }) => identity.kind !== 'edge' || passedOn === true)
  return [...found, ...cloud.connects].map(({ identity, method, path }) => `${identity.kind} ${method} ${path}`)
}

test('[I1] a certificate that no credential goes with reads what its caller may, by a review about it', async () => {
  await using world = await opened()
  const list = await world.ask('GET', cached, technician)
  assert.deepEqual([list.status, list.json.items?.length], [200, 1], list.text)
  assert.deepEqual(world.cloud.judge.asked, ['access edge of technician'])
  const { user, uid, groups } = world.cloud.judge.specs.at(-1) ?? {}
  assert.deepEqual([user, uid, groups], ['technician', '', ['shop', 'system:authenticated']])
  const one = await world.ask('GET', `${maps}/c1`, technician)
  assert.equal(one.json.value, 'one')
  assert.match(
    String(one.headers.warning),
    /no credential is configured to ask the API server in the name of this caller/,
  )
  const refused = await world.ask('GET', elsewhere, technician)
  const text =
    'configmaps is forbidden: User "technician" cannot list resource "configmaps" in API group "" in the namespace "b"'
  assert.deepEqual([refused.status, refused.json.message, refused.passedThrough], [403, text, false])
  assert.equal((await world.ask('GET', cached, { peer: peerOf('technician', []) })).status, 403, 'groups count')
  assert.deepEqual(wentUp(world), [])
})

test('[I1] nothing goes up for a caller that is known by its certificate alone, in no name, and it is told what to configure', async () => {
  await using world = await opened()
  const body = { metadata: { name: 'new' } }
  const rows: [method: string, url: string, asking?: object][] = [
    ['POST', maps, { body }],
    ['PUT', `${maps}/c1`, { body }],
    ['PATCH', `${maps}/c1`, { body }],
    ['DELETE', `${maps}/c1`],
    ['POST', '/api/v1/namespaces/a/serviceaccounts/robot/token', { body: {} }],
    ['GET', '/api/v1/namespaces/c/pods/p1/log'],
    ['GET', '/nowhere'],
    ['GET', cached, { headers: { 'impersonate-user': 'alice' } }],
  ]
  for (const state of ['reachable', 'suspect'] as const) {
    world.cloud.reachability.set(state)
    for (const [method, url, asking] of rows) {
      const { status, json } = await world.ask(method, url, { ...technician, ...asking })
      assert.equal(status, 403, `${method} ${url}`)
      assert.match(json.message, /"technician".*certificate alone.*--client-credential technician=CERT,KEY/)
    }
    const stream = async function* () {}
    const upgrade = await world.endpoint.upgrade({
      ...{ method: 'GET', url: '/api/v1/namespaces/c/pods/p1/exec', headers: {}, rawHeaders: [], hasBody: false },
      ...{ body: async () => Buffer.alloc(0), stream, ...technician },
    })
    assert.equal(upgrade.status, 403)
  }
  assert.deepEqual(wentUp(world), [])
})

/** Of a hub: it says of each that it speaks for it, and finds out with the first request. */
function hubbed({ cloud }: EdgeWorld, isSpokenFor: boolean): void {
  let why = ''
  cloud.speaksFor = () => ({ yes: why === '', why })
  cloud.script = ({ identity, passedOn }) => {
    if (identity.kind !== 'named' || passedOn !== true) return undefined
    if (isSpokenFor) return answered(200, '{"kind":"Fresh"}')
    why = 'its hub does not let it'
    throw new Unspoken(why)
  }
}

const shown = {
  peer: { certificate: { ...technician.peer.certificate, chain: [Buffer.from('abc'), Buffer.from('def')] } as never },
}

test('[I1, L27] behind a hub that speaks for such a caller its requests go up with its certificate, reads are confirmed', async () => {
  await using world = await opened()
  hubbed(world, true)
  const rows = [
    ['POST', maps, { body: {} }],
    ['GET', `${maps}/c1`, {}],
    ['GET', '/api/v1/namespaces/c/pods/p1/log', {}],
    ['GET', cached, { headers: { 'impersonate-user': 'alice' } }],
  ] as const
  for (const [method, url, asking] of rows) {
    const { json, text } = await world.ask(method, url, { ...shown, ...asking })
    assert.equal(json.kind, 'Fresh', `${method} ${url} ${text}`)
  }
  assert.deepEqual(
    wentUp(world),
    rows.map(([method, url]) => `named ${method} ${url}`),
  )
  const [first] = world.cloud.asked.filter(({ passedOn }) => passedOn)
  assert.ok(first?.identity.kind === 'named' && first.identity.chain === 'YWJj.ZGVm')
  assert.equal((await world.ask('GET', cached, shown)).json.items?.length, 1, 'the copy answers what may be old')
})

test('[I1, L27] a hub that does not speak for it says so once, and it is served as without a hub; nothing is learned of that', async () => {
  await using world = await opened()
  hubbed(world, false)
  const asking = world.later('GET', '/api/v1/namespaces/c/pods', shown)
  await world.until(() => asking.done)
  const listed = await asking.answer
  assert.deepEqual([listed.status, listed.passedThrough], [200, false], listed.text)
  const review = { spec: { resourceAttributes: { verb: 'list', resource: 'configmaps', namespace: 'a' } } }
  const self = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'
  const reviewed = await world.ask('POST', self, { ...shown, body: review })
  assert.equal(reviewed.json.status?.allowed, true, reviewed.text)
  const written = await world.ask('POST', maps, { ...shown, body: {} })
  assert.equal(written.status, 403)
  assert.match(written.json.message, /certificate alone: its hub does not let it, ask with a token/)
  assert.equal((await world.ask('GET', `${maps}/c1`, shown)).json.value, 'one')
})

test('[I2] what such a caller may read and is not mirrored yet begins to be', async () => {
  await using world = await opened()
  for (const url of ['/api/v1/namespaces/c/pods/p1', '/api/v1/namespaces/c/pods']) {
    const asking = world.later('GET', url, technician)
    await world.until(() => asking.done)
    const { status, text, passedThrough } = await asking.answer
    assert.deepEqual([status, passedThrough], [200, false], text)
    assert.match(text, /"value":"pod"/)
  }
  assert.deepEqual(wentUp(world), [])
})

test('[I2] where the edge may not ask about others, roles decide as long as they are as new as a review', async () => {
  await using world = await opened()
  world.cloud.judge.edgeMayReview = false
  assert.equal((await world.ask('GET', cached, technician)).status, 200)
  assert.equal((await world.ask('GET', elsewhere, technician)).status, 403)
  // Nor is it the caller's credential that the API server refuses.
  world.cloud.script = ({ path }) => (path.endsWith('/subjectaccessreviews') ? answered(401, '{}') : undefined)
  assert.equal((await world.ask('GET', `${cached}&labelSelector=x`, technician)).status, 200)
  // The watches of roles are silent from here on.
  await world.pass(20_000)
  const { status, json } = await world.ask('GET', cached, technician)
  assert.equal(status, 403)
  assert.match(json.message, /could not be asked: .*create subjectaccessreviews \(deploy\/edge-rbac.yaml\)/)
})

test('[I5] a right that is taken away is gone within 10 s, and open watches end when bindings are seen to change', async () => {
  await using world = await opened()
  const response = await world.response('GET', `${maps}?watch=1&resourceVersion=0`, technician)
  assert.equal(response.status, 200)
  let over = false
  const read = async () => {
    for await (const piece of response.body as AsyncIterable<Buffer>) assert.ok(piece)
    over = true
  }
  void read()
  await world.pass(20_000)
  assert.equal(over, false)
  world.cloud.judge.allows = ({ name }) => name === 'edge'
  await world.pass(10_000)
  assert.equal((await world.ask('GET', cached, technician)).status, 403)
  world.cloud.server.remove('rolebindings', 'a/shop')
  await world.pass(15_000)
  assert.equal(over, true)
})

test('[I2] without the cloud roles judge such a caller, who may never have asked, after a restart too', async () => {
  await using world = await opened()
  world.cloud.reachability.set('unreachable')
  for (const start of ['first', 'second']) {
    if (start === 'second') await world.restart()
    const list = await world.ask('GET', cached, technician)
    assert.deepEqual([list.status, list.json.items?.length], [200, 1], list.text)
    assert.match(
      (await world.ask('GET', elsewhere, technician)).json.message,
      /User "technician" cannot list resource "configmaps" in API group "" in the namespace "b"$/,
    )
    assert.equal((await world.ask('POST', maps, { ...technician, body: {} })).status, 403)
    assert.equal((await world.ask('GET', cached, { peer: peerOf('mallory', []) })).status, 403)
  }
})

test('[I2] what such a caller asks about itself is answered here, with the cloud and without it', async () => {
  await using world = await opened()
  const may = (attributes: object) =>
    world.ask('POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {
      ...{ ...technician, body: { spec: { resourceAttributes: attributes } } },
    })
  const maps = { verb: 'list', resource: 'configmaps', namespace: 'a' }
  for (const state of ['reachable', 'unreachable'] as const) {
    world.cloud.reachability.set(state)
    const { json } = await world.ask('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', {
      ...{ ...technician, body: {} },
    })
    const userInfo = { username: 'technician', groups: ['shop', 'system:authenticated'] }
    assert.deepEqual(json.status, { userInfo })
    assert.equal((await may(maps)).json.status.allowed, true)
    assert.equal((await may({ ...maps, verb: 'delete' })).json.status.allowed, false)
    const rules = await world.ask('POST', '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews', {
      ...{ ...technician, body: { spec: { namespace: 'a' } } },
    })
    const listed = { verbs: reads, apiGroups: [''], resources: ['configmaps'] }
    assert.deepEqual(rules.json.status.resourceRules.slice(1), [listed])
  }
  assert.deepEqual(wentUp(world), [])
})

test('[I2] a caller with a credential that has never asked is known by its certificate without the cloud, unless it was refused', async () => {
  await using world = await opened()
  const node = { peer: peerOf('system:node:n1', []) }
  world.cloud.reachability.set('unreachable')
  assert.equal((await world.ask('GET', cached, node)).status, 200)
  world.cloud.reachability.set('reachable')
  world.cloud.script = ({ identity }) =>
    identity.kind === 'certificate' ? answered(401, statusText(401, 'Unauthorized')) : undefined
  assert.equal((await world.ask('GET', cached, node)).status, 401)
  await world.pass(20_000)
  world.cloud.reachability.set('unreachable')
  assert.equal((await world.ask('GET', cached, node)).status, 401)
})
