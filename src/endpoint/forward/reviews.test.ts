/** Reviews while the cloud is away: answered by what is known, in kube-apiserver's form, and otherwise not at all. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeClock } from '../../base/fakeclock.test-support.ts'
import { Unreachable } from '../../upstream/upstream.ts'
import { admin, aliceToken, answered, EdgeCloud, EdgeWorld } from '../edgeworld.test-support.ts'

const authorization = '/apis/authorization.k8s.io/v1'
const authentication = '/apis/authentication.k8s.io/v1'
const maps = { verb: 'list', resource: 'configmaps', namespace: 'a' }
const away = 'the API server cannot be reached, and only it can answer this: the test says so'

const jwt = (claims: object) => `h.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.s`
const inAnHour = fakeClock().now() / 1_000 + 3_600
const robotToken = jwt({ exp: inAnHour, aud: ['https://kubernetes.default.svc'] })
const robot = {
  name: 'system:serviceaccount:a:robot',
  uid: 'u-2',
  groups: ['system:serviceaccounts', 'system:authenticated'],
  extra: { 'authentication.kubernetes.io/pod-name': ['p'] },
}

/** Alice lists ConfigMaps and posts reviews, the robot may do neither; then the cloud goes away. */
async function offline(): Promise<EdgeWorld> {
  const cloud = new EdgeCloud()
  for (const [group, resource, kind, namespaced] of [
    ['authorization.k8s.io', 'subjectaccessreviews', 'SubjectAccessReview', false],
    ['authorization.k8s.io', 'localsubjectaccessreviews', 'LocalSubjectAccessReview', true],
    ['authorization.k8s.io', 'selfsubjectaccessreviews', 'SelfSubjectAccessReview', false],
    ['authorization.k8s.io', 'selfsubjectrulesreviews', 'SelfSubjectRulesReview', false],
    ['authentication.k8s.io', 'selfsubjectreviews', 'SelfSubjectReview', false],
    ['authentication.k8s.io', 'tokenreviews', 'TokenReview', false],
  ] as const) {
    cloud.publish(group, 'v1', { resource, kind, namespaced })
  }
  cloud.judge.users.set(robotToken, robot)
  cloud.judge.reason = 'no role says so'
  cloud.judge.allows = ({ name }) => name !== robot.name
  cloud.server.put('configmaps', 'a/cm', { value: 'one' })
  const world = await EdgeWorld.open({ cloud })
  await world.synced('configmaps', 'a')
  await world.ask('GET', '/api/v1/namespaces/a/configmaps', { token: robotToken })
  cloud.script = ({ method, identity }) => {
    if (method !== 'POST' || identity.kind !== 'token' || identity.token !== aliceToken) return undefined
    return answered(201, '{}')
  }
  for (const path of [`${authorization}/subjectaccessreviews`, `${authentication}/tokenreviews`]) {
    await world.ask('POST', path, { token: aliceToken, body: {} })
  }
  await world.ask('POST', `${authorization}/namespaces/a/localsubjectaccessreviews`, { token: aliceToken, body: {} })
  cloud.script = () => undefined
  cloud.reachability.set('unreachable')
  return world
}

const self = (resourceAttributes: object) => ({ spec: { resourceAttributes } })

test('[I2] what a caller may do itself is answered as it was decided, and what was never decided is 503', async () => {
  await using world = await offline()
  const ask = (attributes: object, token = aliceToken) =>
    world.ask('POST', `${authorization}/selfsubjectaccessreviews`, { token, body: self(attributes) })
  const allowed = await ask(maps)
  assert.equal(allowed.status, 201)
  assert.deepEqual(
    [allowed.json.kind, allowed.json.apiVersion, allowed.json.spec.resourceAttributes, allowed.json.status],
    ['SelfSubjectAccessReview', 'authorization.k8s.io/v1', maps, { allowed: true }],
  )
  assert.deepEqual((await ask({ ...maps, name: 'cm' })).json.status, { allowed: true }, 'a part of what is allowed')
  const denied = await ask(maps, robotToken)
  assert.deepEqual([denied.status, denied.json.status], [201, { allowed: false, reason: 'no role says so' }])
  const unheard = await ask({ ...maps, verb: 'delete' })
  assert.deepEqual([unheard.status, unheard.json.reason], [503, 'ServiceUnavailable'])
  assert.match(unheard.json.message, /whether User "alice" can delete resource "configmaps" .* only it can tell$/)
  const nonsense = await ask({ ...maps, fieldSelector: {} })
  assert.deepEqual([nonsense.status, nonsense.json.reason], [422, 'Invalid'])
})

test('[I2] what another caller may do is answered to a caller that may ask, as it was decided of the same caller', async () => {
  await using world = await offline()
  const { name: user, ...rest } = robot
  const spec = { user, ...rest, resourceAttributes: maps }
  const path = `${authorization}/subjectaccessreviews`
  const told = await world.ask('POST', path, { token: aliceToken, body: { spec } })
  assert.deepEqual([told.status, told.json.status], [201, { allowed: false, reason: 'no role says so' }])
  const local = `${authorization}/namespaces/a/localsubjectaccessreviews`
  assert.equal((await world.ask('POST', local, { token: aliceToken, body: { spec } })).json.status.allowed, false)
  const { extra: _, ...bare } = spec
  assert.equal(
    (await world.ask('POST', path, { token: aliceToken, body: { spec: bare } })).status,
    503,
    'another caller',
  )
  const refused = await world.ask('POST', path, { token: robotToken, body: { spec } })
  assert.deepEqual([refused.status, refused.json.message], [503, away], 'whether the robot may ask was never decided')
})

test('[I2] whose a token is: as the API server said of it, for the audience it names, until it expires', async () => {
  await using world = await offline()
  const review = (spec: object) =>
    world.ask('POST', `${authentication}/tokenreviews`, { token: aliceToken, body: { spec } })
  const { name: username, ...rest } = robot
  const audiences = ['https://kubernetes.default.svc']
  const known = await review({ token: robotToken })
  assert.deepEqual(known.json.status, { authenticated: true, user: { username, ...rest }, audiences })
  const wanted = await review({ token: robotToken, audiences: ['vault', ...audiences] })
  assert.deepEqual(wanted.json.status.audiences, audiences)
  const other = await review({ token: robotToken, audiences: ['vault'] })
  const why = `token audiences ["${audiences[0]}"] is invalid for the target audiences ["vault"]`
  assert.deepEqual(other.json.status, { user: {}, error: `[invalid bearer token, ${why}]` })
  const stranger = await review({ token: 'never-seen' })
  assert.deepEqual([stranger.status, stranger.json.message], [503, away], 'not seen is not refused')
  const opaque = await review({ token: aliceToken })
  assert.deepEqual([opaque.json.status.user.username, opaque.json.status.audiences], ['alice', undefined])
  assert.equal((await review({ token: aliceToken, audiences: ['vault'] })).status, 503)
  assert.equal((await review({})).json.message, 'token is required for TokenReview in authentication')
  world.cloud.clock.advance(3_700_000)
  assert.deepEqual((await review({ token: robotToken })).json.status, { user: {}, error: 'invalid bearer token' })
})

test('[I2] who a caller is, but not who the edge is; nothing for a stranger, nor for one that would be another', async () => {
  await using world = await offline()
  const path = `${authentication}/selfsubjectreviews`
  const { json } = await world.ask('POST', path, { token: aliceToken, body: {} })
  assert.deepEqual(json.status, { userInfo: { username: 'alice', uid: 'u-1', groups: ['devs'] } })
  assert.match(json.metadata.creationTimestamp, /^\d{4}-/)
  assert.equal((await world.ask('POST', path, { peer: admin, body: {} })).status, 503)
  assert.equal((await world.ask('POST', path, { body: {} })).status, 503)
  const headers = { 'impersonate-user': 'root' }
  assert.equal((await world.ask('POST', path, { token: aliceToken, headers, body: {} })).status, 503)
  const access = (verb: string) =>
    world.ask('POST', `${authorization}/selfsubjectaccessreviews`, { peer: admin, body: self({ ...maps, verb }) })
  assert.equal((await access('get')).json.status.allowed, true)
  assert.deepEqual([(await access('delete')).status], [503])
  const rules = await world.ask('POST', `${authorization}/selfsubjectrulesreviews`, {
    token: aliceToken,
    body: { spec: { namespace: 'a' } },
  })
  assert.deepEqual([rules.status, rules.json.message], [503, away])
})

test('[I2] a review that is cut off on its way is answered here: it did nothing', async () => {
  await using world = await offline()
  world.cloud.reachability.set('reachable')
  world.cloud.script = ({ method }) => {
    if (method === 'POST') throw new Unreachable('the test says so', true)
    return undefined
  }
  const body = self(maps)
  const told = await world.ask('POST', `${authorization}/selfsubjectaccessreviews`, { token: aliceToken, body })
  assert.deepEqual([told.status, told.json.status], [201, { allowed: true }])
})
