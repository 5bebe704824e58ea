import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { test } from 'node:test'
import { AccountIssuer } from './accountissuer.ts'
import type { BoundObject } from './accounttoken.ts'
import { OwnTokens } from './owntokens.ts'
import { issuer as own, podClaims } from './tokens.test-support.ts'

const keyOf = () => generateKeyPairSync('ec', { namedCurve: 'prime256v1' }).privateKey
const startMs = Date.UTC(2026, 0, 1)

/** Its objects are by kind, each with the uid that a pod's token names. */
function opened() {
  let nowMs = startMs
  const issuer = new AccountIssuer(keyOf())
  const objects = new Map<string, string>([
    ['ServiceAccount', 'account-uid'],
    ['Pod', 'pod-uid'],
  ])
  let looks = 0
  const tokens = new OwnTokens({
    issuer,
    nowMs: () => nowMs,
    objects: {
      find: (kind) => {
        looks++
        const uid = objects.get(kind)
        const object: BoundObject = { uid: uid ?? '', deletionMs: undefined, read: () => null }
        return uid === undefined ? 'absent' : object
      },
    },
  })
  const pass = (ms: number) => {
    nowMs += ms
  }
  const callerOf = (token: string) => tokens.caller({ kind: 'token', token })?.name
  return { issuer, tokens, objects, pass, callerOf, looks: () => looks }
}

test('[I2] a token that was issued here is its account, until it ends or what it is bound to does', () => {
  const { issuer, tokens, objects, pass, callerOf, looks } = opened()
  const token = issuer.sign(podClaims(startMs))
  const identity = { kind: 'token', token } as const
  assert.deepEqual(tokens.caller(identity), {
    name: 'system:serviceaccount:shop:till',
    uid: 'account-uid',
    groups: ['system:serviceaccounts', 'system:serviceaccounts:shop', 'system:authenticated'],
    extra: {
      'authentication.kubernetes.io/credential-id': ['JTI=c4d7a1f0-0000-4000-8000-000000000001'],
      'authentication.kubernetes.io/pod-name': ['till-1'],
      'authentication.kubernetes.io/pod-uid': ['pod-uid'],
      'authentication.kubernetes.io/node-name': ['n1'],
      'authentication.kubernetes.io/node-uid': ['node-uid'],
    },
  })
  const before = looks()
  assert.ok(tokens.caller(identity) !== undefined && looks() > before, 'what it is bound to is looked at each time')
  objects.set('Pod', 'another-uid')
  assert.equal(tokens.caller(identity), undefined)
  objects.set('Pod', 'pod-uid')
  objects.delete('ServiceAccount')
  assert.equal(tokens.caller(identity), undefined)
  objects.set('ServiceAccount', 'account-uid')
  assert.notEqual(tokens.caller(identity), undefined)
  pass(3600_000 + 61_000)
  assert.equal(callerOf(token), undefined)
})

test('[I2] what another signed, is for another, or says nothing, is nobody', () => {
  const { issuer, callerOf } = opened()
  const claims = podClaims(startMs)
  const good = issuer.sign(claims)
  assert.equal(callerOf(new AccountIssuer(keyOf()).sign(claims)), undefined)
  assert.equal(callerOf(issuer.sign({ ...claims, aud: ['vault'] })), undefined)
  assert.equal(callerOf(issuer.sign({ ...claims, iss: 'https://elsewhere' })), undefined)
  const [head = '', body = '', signature = ''] = good.split('.')
  const none = Buffer.from('{"alg":"none"}').toString('base64url')
  assert.equal(callerOf(`${none}.${body}.`), undefined)
  assert.equal(
    callerOf(`${head}.${Buffer.from(JSON.stringify({ ...claims, sub: 'x' })).toString('base64url')}.${signature}`),
    undefined,
  )
  assert.equal(callerOf('nonsense'), undefined)
  assert.equal(callerOf(good), 'system:serviceaccount:shop:till')
})

test('[I2] a review of a token tells its caller and the audiences that were asked for, or why not', () => {
  const { issuer, tokens, objects, pass } = opened()
  const review = (token: string, ...audiences: string[]) => {
    const told = tokens.review(token, audiences)
    return 'error' in told ? told.error : [told.caller.name, ...told.audiences]
  }
  const claims = podClaims(startMs)
  const account = 'system:serviceaccount:shop:till'
  const good = issuer.sign({ ...claims, aud: [own, 'vault'] })
  assert.deepEqual(review(good), [account, own])
  assert.deepEqual(review(good, 'vault', 'x'), [account, 'vault'])
  assert.equal(
    review(good, 'x'),
    `[invalid bearer token, token audiences ["${own}" "vault"] is invalid for the target audiences ["x"]]`,
  )
  assert.equal(review('nonsense'), 'invalid bearer token')
  assert.equal(
    review(new AccountIssuer(keyOf()).sign(claims)),
    '[invalid bearer token, invalid signature, no keys found]',
  )
  objects.delete('Pod')
  assert.equal(review(good), '[invalid bearer token, service account token has been invalidated]')
  pass(2 * 3600_000)
  assert.equal(review(good), '[invalid bearer token, service account token has expired]')
})

test('the published documents name the key by which tokens are signed', () => {
  const issuer = new AccountIssuer(keyOf())
  const { configuration, jwks } = issuer.documents('192.0.2.1:6443')
  assert.deepEqual(JSON.parse(configuration), {
    issuer: own,
    jwks_uri: 'https://192.0.2.1:6443/openid/v1/jwks',
    response_types_supported: ['id_token'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['ES256'],
  })
  const [head = ''] = issuer.sign({}).split('.')
  const { kid } = JSON.parse(Buffer.from(head, 'base64url').toString()) as { kid: string }
  assert.equal(JSON.parse(jwks).keys[0].kid, kid)
})
