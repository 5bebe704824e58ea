import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FakeWorld } from './fakeworld.test-support.ts'

const nowSeconds = Date.UTC(2026, 0, 2, 3, 4, 5) / 1000
const own = 'https://kubernetes.default.svc'
const seeded = { metadata: { namespace: 'default' } }

function worldWith(): FakeWorld {
  const world = new FakeWorld()
  const seed = (interest: string, metadata: object, rest: object = {}) =>
    world.seed(interest, JSON.stringify({ metadata: { ...seeded.metadata, ...metadata }, ...rest }))
  seed('/serviceaccounts', { name: 'till', uid: 'account-uid' })
  seed('/pods', { name: 'till-1', uid: 'pod-uid' }, { spec: { serviceAccountName: 'till', nodeName: 'n1' } })
  seed('/pods', { name: 'other', uid: 'other-uid' }, { spec: {} })
  seed('/secrets', { name: 'key', uid: 'secret-uid' })
  world.seed('/nodes', JSON.stringify({ metadata: { name: 'n1', uid: 'node-uid' } }))
  return world
}

const url = '/api/v1/namespaces/default/serviceaccounts/till/token'

async function claims(world: FakeWorld, spec: object): Promise<any> {
  const { code, body } = await world.send('POST', url, { spec })
  assert.equal(code, 201, JSON.stringify(body))
  return JSON.parse(body.status.token)
}

test('a token claims what one of kube-apiserver does: issuer, subject, audiences, times, account', async () => {
  const world = worldWith()
  const { code, body } = await world.send('POST', url, {})
  assert.equal(code, 201)
  assert.deepEqual(JSON.parse(body.status.token), {
    aud: [own],
    exp: nowSeconds + 3600,
    iat: nowSeconds,
    iss: own,
    jti: 'uid-1',
    'kubernetes.io': { namespace: 'default', serviceaccount: { name: 'till', uid: 'account-uid' } },
    nbf: nowSeconds,
    sub: 'system:serviceaccount:default:till',
  })
  const { managedFields: _, ...metadata } = body.metadata
  assert.deepEqual(
    { kind: body.kind, metadata, spec: body.spec, until: body.status.expirationTimestamp },
    {
      kind: 'TokenRequest',
      metadata: { name: 'till', namespace: 'default', uid: 'account-uid', creationTimestamp: '2026-01-02T03:04:05Z' },
      spec: { audiences: [own], expirationSeconds: 3600, boundObjectRef: null },
      until: '2026-01-02T04:04:05Z',
    },
  )
  assert.deepEqual(world.events, [], 'nothing is stored')
})

test('a token is bound to a pod and its node, to a node, or to a secret', async () => {
  const world = worldWith()
  const bound = async (kind: string, name: string, more: object = {}) =>
    (await claims(world, { boundObjectRef: { kind, apiVersion: 'v1', name, ...more } }))['kubernetes.io']
  const account = { namespace: 'default', serviceaccount: { name: 'till', uid: 'account-uid' } }
  const node = { name: 'n1', uid: 'node-uid' }
  assert.deepEqual(await bound('Pod', 'till-1'), { ...account, node, pod: { name: 'till-1', uid: 'pod-uid' } })
  assert.deepEqual(await bound('Node', 'n1', { uid: 'node-uid' }), { ...account, node })
  assert.deepEqual(await bound('Secret', 'key'), { ...account, secret: { name: 'key', uid: 'secret-uid' } })
})

test('what a kubelet asks for counts for a year, with a warning after its hour; for other audiences it does not', async () => {
  const world = worldWith()
  const boundObjectRef = { kind: 'Pod', apiVersion: 'v1', name: 'till-1' }
  const { exp, 'kubernetes.io': account } = await claims(world, { expirationSeconds: 3607, boundObjectRef })
  assert.deepEqual([exp - nowSeconds, account.warnafter - nowSeconds], [365 * 24 * 3600, 3607])
  const other = await claims(world, { expirationSeconds: 3607, boundObjectRef, audiences: ['vault'] })
  assert.deepEqual([other.exp - nowSeconds, other['kubernetes.io'].warnafter, other.aud], [3607, undefined, ['vault']])
})

const refusals: readonly [what: string, body: object, expected: string][] = [
  [
    'too short',
    { spec: { expirationSeconds: 599 } },
    '422 TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes',
  ],
  [
    'too long',
    { spec: { expirationSeconds: 2 ** 32 + 1 } },
    '422 TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds',
  ],
  [
    'another name',
    { metadata: { name: 'x' } },
    '422 TokenRequest.authentication.k8s.io "till" is invalid: metadata.name: Invalid value: "x": must match the service account name if specified',
  ],
  [
    'another uid',
    { metadata: { uid: 'x' } },
    '409 Operation cannot be fulfilled on TokenRequest.authentication.k8s.io "till": the UID in the token request (x) does not match the UID of the service account (account-uid)',
  ],
  [
    'a pod that is not there',
    { spec: { boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: 'x' } } },
    '404 pods "x" not found',
  ],
  [
    'a pod of another account',
    { spec: { boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: 'other' } } },
    '400 cannot bind token for serviceaccount "till" to pod running with different serviceaccount name.',
  ],
  [
    'another pod of that name',
    { spec: { boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: 'till-1', uid: 'x' } } },
    '409 Operation cannot be fulfilled on Pod "till-1": the UID in the bound object reference (x) does not match the UID in record. The object might have been deleted and then recreated',
  ],
  [
    'another kind',
    { spec: { boundObjectRef: { kind: 'ConfigMap', apiVersion: 'v1', name: 'x' } } },
    '400 cannot bind token to object of type /v1, Kind=ConfigMap',
  ],
]

for (const [what, body, expected] of refusals) {
  test(`a token is refused: ${what}`, async () => {
    const { code, body: status } = await worldWith().send('POST', url, body)
    assert.equal(`${code} ${status.message}`, expected)
  })
}

test('a token is refused: no such account', async () => {
  const { code, body } = await new FakeWorld().send('POST', url, {})
  assert.deepEqual(
    [code, body.message, body.details],
    [404, 'serviceaccounts "till" not found', { name: 'till', kind: 'serviceaccounts' }],
  )
})
