import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FakeWorld } from './fakeworld.test-support.ts'

const authorization = '/apis/authorization.k8s.io/v1'
const authentication = '/apis/authentication.k8s.io/v1'
const pods = { verb: 'get', resource: 'pods' }

test('the administrator may do everything, strangers nothing, and nothing is stored', async () => {
  const world = new FakeWorld()
  const self = await world.send('POST', `${authorization}/selfsubjectaccessreviews`, {
    spec: { resourceAttributes: pods },
  })
  assert.deepEqual([self.code, self.body.status.allowed, self.body.spec.resourceAttributes.verb], [201, true, 'get'])
  const ask = (spec: object) => world.send('POST', `${authorization}/subjectaccessreviews`, { spec })
  assert.equal((await ask({ user: 'bob', resourceAttributes: pods })).body.status.allowed, false)
  assert.equal(
    (await ask({ user: 'bob', groups: ['system:authenticated'], resourceAttributes: pods })).body.status.allowed,
    true,
    'where roles do not count every known caller may do everything',
  )
  assert.equal(
    (await ask({ user: 'bob', groups: ['system:masters'], resourceAttributes: pods })).body.status.allowed,
    true,
  )
  const rules = await world.send('POST', `${authorization}/selfsubjectrulesreviews`, { spec: { namespace: 'default' } })
  assert.deepEqual(rules.body.status.resourceRules[0].verbs, ['*'])
  assert.deepEqual(world.events, [])
})

test('who am I, and tokens nobody issued', async () => {
  const world = new FakeWorld()
  const self = await world.send('POST', `${authentication}/selfsubjectreviews`, {})
  assert.deepEqual(
    [self.body.status.userInfo.username, self.body.status.userInfo.groups[0]],
    ['admin', 'system:masters'],
  )
  const token = await world.send('POST', `${authentication}/tokenreviews`, { spec: { token: 'x' } })
  assert.deepEqual([token.code, token.body.status.error], [201, 'invalid bearer token'])
})

test('questions that make no sense', async () => {
  const world = new FakeWorld()
  const answer = async (url: string, body: object) => {
    const { code, body: status } = await world.send('POST', url, body)
    return `${code} ${status.message}`
  }
  const local = `${authorization}/namespaces/default/localsubjectaccessreviews`
  assert.match(
    await answer(`${authorization}/selfsubjectaccessreviews`, { spec: {} }),
    /^422 .authorization.k8s.io "" .*exactly one of/,
  )
  assert.match(
    await answer(`${authorization}/subjectaccessreviews`, { spec: { resourceAttributes: pods } }),
    /at least one of/,
  )
  assert.match(await answer(local, { spec: { user: 'a', resourceAttributes: pods } }), /must match metadata.namespace/)
  assert.equal(await answer(`${authorization}/selfsubjectrulesreviews`, { spec: {} }), '400 no namespace on request')
  assert.match(await answer(`${authentication}/tokenreviews`, { spec: {} }), /^400 token is required/)
})

test('a review is decoded like any object', async () => {
  const world = new FakeWorld()
  const url = `${authorization}/selfsubjectaccessreviews`
  const other = await world.send('POST', url, {
    kind: 'SubjectAccessReview',
    apiVersion: 'authorization.k8s.io/v1',
    spec: { user: 'a', resourceAttributes: pods },
  })
  assert.deepEqual(
    [other.code, other.body.message],
    [
      400,
      'SubjectAccessReview in version "v1" cannot be handled as a SelfSubjectAccessReview: converting (v1.SubjectAccessReview) to (authorization.SelfSubjectAccessReview): unknown conversion',
    ],
  )
  const wrong = await world.send('POST', url, { spec: { resourceAttributes: { verb: 5 } } })
  assert.match(
    wrong.body.message,
    /cannot unmarshal number into Go struct field ResourceAttributes.spec.resourceAttrib/,
  )
  const strange = await world.send('POST', url, { spec: { resourceAttributes: { ...pods, foo: 1 } } })
  assert.deepEqual([strange.code, ...strange.warnings], [201, 'unknown field "spec.resourceAttributes.foo"'])
  assert.equal(strange.body.spec.resourceAttributes.foo, undefined)
  const both = { resourceAttributes: pods, nonResourceAttributes: { path: '/', verb: 'get' } }
  assert.match(
    (await world.send('POST', url, { spec: both })).body.message,
    /Invalid value: \{"Path":"\/","Verb":"get"\}: cannot be specified in combination with resourceAttributes$/,
  )
  const local = await world.send('POST', `${authorization}/namespaces/default/localsubjectaccessreviews`, {
    spec: { user: 'a', nonResourceAttributes: { path: '/', verb: 'get' } },
  })
  assert.match(local.body.message, /Invalid value: \{"Path":"\/","Verb":"get"\}: disallowed on this kind of request$/)
})

test('selectors that make no sense are refused, those of younger clients are left out and said', async () => {
  const world = new FakeWorld()
  const ask = async (selectors: object) => {
    const spec = { resourceAttributes: { ...pods, ...selectors } }
    const { code, body } = await world.send('POST', `${authorization}/selfsubjectaccessreviews`, { spec })
    return code === 201 ? body.status : body.message.replace(/^.*is invalid: /, '')
  }
  const at = 'spec.resourceAttributes.fieldSelector'
  const wanted = { key: 'spec.nodeName', operator: 'In', values: ['n1'] }
  assert.equal(
    await ask({ fieldSelector: {} }),
    `${at}.requirements: Required value: when ${at} is specified, requirements or rawSelector is required`,
  )
  assert.equal(
    await ask({ fieldSelector: { rawSelector: 'a=b', requirements: [wanted] } }),
    `${at}.rawSelector: Invalid value: "a=b": may not specified at the same time as requirements`,
  )
  assert.equal(
    await ask({ fieldSelector: { requirements: [{ ...wanted, values: [] }] } }),
    `${at}.requirements[0].values: Required value: must be specified when \`operator\` is 'In' or 'NotIn'`,
  )
  assert.match(
    await ask({ labelSelector: { requirements: [{ key: 'a b', operator: 'Exists' }] } }),
    /^spec.resourceAttributes.labelSelector.requirements\[0\].key: Invalid value: "a b": name part must consist/,
  )
  const error = 'spec.resourceAttributes.fieldSelector ignored due to parse error'
  const later = { fieldSelector: { requirements: [{ ...wanted, operator: 'Later' }] } }
  assert.deepEqual({ ...(await ask(later)) }, { allowed: true, evaluationError: error })
})
