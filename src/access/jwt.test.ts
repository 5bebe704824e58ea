import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { makeJwt } from './access.test-support.ts'
import { readClaims } from './jwt.ts'

test('the claims of a service account token', () => {
  const token = makeJwt({
    aud: ['https://kubernetes.default.svc'],
    exp: 1_800_000_000,
    iat: 1_799_996_400.5,
    'kubernetes.io': {
      namespace: 'shop',
      serviceaccount: { name: 'till', uid: 'u-9' },
      pod: { name: 'p', uid: 'u' },
      node: { name: 'n' },
    },
  })
  assert.deepEqual(readClaims(token), {
    expiresMs: 1_800_000_000_000,
    issuedMs: 1_799_996_400_500,
    audiences: ['https://kubernetes.default.svc'],
    account: { namespace: 'shop', name: 'till', uid: 'u-9', pod: { name: 'p', uid: 'u' } },
  })
})

test('what is no token of that kind has no claims, and hostile ones do no harm', () => {
  for (const token of ['', 'opaque', 'a.b', 'a.b.c', '..', '.e30.', 'a.bnVsbA.c', 'a.W10.c', 'a.e30.c.d']) {
    assert.equal(readClaims(token), undefined)
  }
  assert.equal(readClaims(`a.${'e'.repeat(20_000)}.c`), undefined)
  const odd = makeJwt({ exp: 'soon', iat: -1, aud: [1, 'x', null], 'kubernetes.io': { serviceaccount: [] } })
  assert.deepEqual(readClaims(odd), { expiresMs: undefined, issuedMs: undefined, audiences: ['x'], account: undefined })
  assert.equal(readClaims(makeJwt({ exp: 1e300 }))?.expiresMs, undefined)
  assert.equal(readClaims(makeJwt({ aud: 'one' }))?.audiences[0], 'one')
})

test('reading claims never throws', () => {
  const text = fc.oneof(
    fc.string(),
    fc.json().map((json) => `a.${Buffer.from(json).toString('base64url')}.c`),
  )
  fc.assert(fc.property(text, (token) => assert.doesNotThrow(() => readClaims(token))))
})
