import assert from 'node:assert/strict'
import { createHmac, generateKeyPairSync, sign } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { fromPlain } from '../../kube/json/json.ts'
import { type BoundObject, type BoundObjects, judgeToken, type TokenVerdict } from './accounttoken.ts'
import { PublicKeys } from './publickeys.ts'
import { readToken } from './signedtoken.ts'
import { issuer, jwksOf, makeSigner, podClaims, signToken } from './tokens.test-support.ts'

const nowMs = Date.parse('2026-11-16T12:00:00Z')
const own = makeSigner('ES256')
const next = makeSigner('RS256')
const foreign = makeSigner('ES256')

type Known = Record<string, Partial<BoundObject> | 'absent'>

const exist: Known = {
  'ServiceAccount shop/till': { uid: 'account-uid' },
  'Pod shop/till-1': { uid: 'pod-uid' },
  'Secret shop/key': { uid: 'secret-uid' },
  'Node /n1': { uid: 'node-uid' },
}

type Given = { readonly known?: Known; readonly at?: number; readonly jwks?: string; readonly cluster?: string }

function objectsOf(known: Known): BoundObjects {
  return {
    find(kind, namespace, name) {
      const found = known[`${kind} ${namespace}/${name}`] ?? 'unknown'
      return typeof found === 'string' ? found : { uid: '', deletionMs: undefined, read: () => fromPlain({}), ...found }
    },
  }
}

function judge(token: string, given: Given = {}): TokenVerdict {
  const { known = exist, at = nowMs, jwks = jwksOf(own, next), cluster = issuer } = given
  const keys = PublicKeys.read(jwks)
  assert.ok(keys)
  const isAudience = (audiences: readonly string[]) => audiences.includes(issuer)
  return judgeToken(readToken(token), { issuer: cluster, keys, isAudience, objects: objectsOf(known), nowMs: at })
}

const kindOf = (token: string, options?: Parameters<typeof judge>[1]) => judge(token, options).kind

test('[I1] a pod whose token verifies is the caller that kube-apiserver sees', () => {
  const claims = podClaims(nowMs)
  assert.deepEqual(judge(signToken(own, claims)), {
    kind: 'caller',
    expiresMs: nowMs + 3_600_000,
    caller: {
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
    },
  })
})

for (const algorithm of ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512']) {
  test(`a token signed with ${algorithm} verifies with its own key and no other`, () => {
    const [signer, other] = [makeSigner(algorithm), makeSigner(algorithm)]
    const token = signToken(signer, podClaims(nowMs))
    assert.equal(kindOf(token, { jwks: jwksOf(signer) }), 'caller')
    assert.equal(kindOf(token, { jwks: jwksOf({ ...other, id: signer.id }) }), 'refused')
    const at = token.lastIndexOf('.') + 10
    const changed = `${token.slice(0, at)}${token[at] === 'A' ? 'B' : 'A'}${token.slice(at + 1)}`
    assert.equal(kindOf(changed, { jwks: jwksOf(signer) }), 'refused')
  })
}

test('[I1] no algorithm, an HMAC made with the public key, an algorithm of another kind of key: each is forged', () => {
  const claims = podClaims(nowMs)
  const [head, body] = signToken(next, claims, { alg: 'none' }).split('.') as [string, string]
  assert.equal(kindOf(`${head}.${body}.`), 'refused')
  for (const format of ['pem', 'der'] as const) {
    for (const algorithm of ['HS256', 'HS512', 'hs256']) {
      const parts = signToken(next, claims, { alg: algorithm }).split('.')
      const secret = next.publicKey.export({ type: 'spki', format })
      const mac = createHmac(`sha${algorithm.slice(2)}`, secret)
        .update(`${parts[0]}.${parts[1]}`)
        .digest('base64url')
      assert.equal(kindOf(`${parts[0]}.${parts[1]}.${mac}`), 'refused')
    }
  }
  for (const alg of ['ES256', 'ES384', 'EdDSA', 'rs256', 'RS1', '', 'sha256']) {
    assert.equal(kindOf(signToken(next, claims, { alg })), 'refused', alg)
  }
  // Signatures that the key itself could verify, under a name that is not for such a key.
  const pss = makeSigner('PS256')
  const posing = signToken(pss, claims, { alg: 'HS256' })
  assert.equal(kindOf(posing, { jwks: jwksOf(pss) }), 'refused')
  const unsigned = signToken(own, claims, { alg: 'RS256' }).split('.').slice(0, 2).join('.')
  const der = sign('sha256', Buffer.from(unsigned), own.privateKey).toString('base64url')
  assert.equal(kindOf(`${unsigned}.${der}`), 'refused')
  for (const alg of ['RS256', 'PS256', 'ES384', 'ES512']) {
    assert.equal(kindOf(signToken(own, claims, { alg })), 'refused', alg)
  }
})

test('[I1] the name of a key chooses among the known ones and brings none: without it all are tried', () => {
  const claims = podClaims(nowMs)
  assert.equal(kindOf(signToken(next, claims, { kid: undefined })), 'caller')
  assert.equal(kindOf(signToken(next, claims, { kid: '' })), 'caller')
  assert.equal(kindOf(signToken(next, claims, { kid: own.id })), 'refused')
  assert.equal(kindOf(signToken(foreign, claims, { kid: own.id })), 'refused')
  assert.equal(kindOf(signToken(foreign, claims, { kid: undefined })), 'refused')
  for (const kid of ['unknown', '../../dev/null', "' OR 1=1", '__proto__', 'constructor']) {
    assert.deepEqual(judge(signToken(own, claims, { kid })), {
      kind: 'undecided',
      why: 'its key is not known',
      key: true,
    })
  }
  // Whatever else it says of itself is not believed, but for what it was bound to being gone.
  const named = signToken(own, claims, { kid: 'unknown' })
  assert.equal(kindOf(named, { at: nowMs + 7_200_000 }), 'undecided')
  assert.equal(kindOf(named, { known: { ...exist, 'Pod shop/till-1': 'absent' } }), 'refused')
  const jwk = foreign.publicKey.export({ format: 'jwk' })
  for (const header of [{ jwk }, { jku: 'https://evil' }, { x5c: [] }, { x5u: '' }, { crit: ['b64'], b64: false }]) {
    assert.equal(kindOf(signToken(foreign, claims, header)), 'undecided')
    assert.equal(kindOf(signToken(own, claims, header)), 'undecided')
  }
})

test('[I1] a token that is spelled in another way than API servers spell it opens nothing', () => {
  const claims = podClaims(nowMs)
  const token = signToken(own, claims)
  const [head, body, signature] = token.split('.') as [string, string, string]
  const twice = `{"iss":"${issuer}",${JSON.stringify(claims).slice(1)}`
  const deepTwice = JSON.stringify(claims).replace('"namespace"', '"namespace":"kube-system","namespace"')
  const others = [
    `${head}.${body}.${signature}=`,
    `${head}.${body}.${signature}.`,
    `${head}.${body}`,
    `${head}=.${body}.${signature}`,
    ` ${token}`,
    `${token}\n`,
    `${head}.${body.slice(0, 8)}\n${body.slice(8)}.${signature}`,
    token.replaceAll('-', '+').replaceAll('_', '/'),
    signToken(own, twice),
    signToken(own, deepTwice),
    signToken(own, claims, `{"alg":"none","alg":"ES256","kid":"${own.id}"}`),
    signToken(own, claims, { typ: 'JWE' }),
    signToken(own, claims, { typ: 1 }),
    signToken(own, claims, '[]'),
    signToken(own, claims, 'null'),
    signToken(own, '"claims"'),
    signToken(own, 'null'),
    signToken(own, { ...claims, long: 'x'.repeat(16_384) }),
    '',
    '..',
  ]
  for (const other of others) {
    if (other !== token) assert.equal(kindOf(other), 'undecided', other.slice(0, 40))
  }
  assert.equal(kindOf(signToken(own, claims, { typ: 'jwt' })), 'caller')
})

test('[I1] claims of a wrong type spoil a token, also where they count for nothing', () => {
  const kubernetes = podClaims(nowMs)['kubernetes.io'] as Record<string, unknown>
  const changes: readonly object[] = [
    { aud: [issuer, 1] },
    { aud: { [issuer]: true } },
    { aud: null },
    { exp: '9999999999' },
    { exp: 1e300 },
    { nbf: {} },
    { sub: 1 },
    { jti: ['x'] },
    { 'kubernetes.io': 'shop' },
    { 'kubernetes.io': { ...kubernetes, namespace: 1 } },
    { 'kubernetes.io': { ...kubernetes, serviceaccount: 'till' } },
    { 'kubernetes.io': { ...kubernetes, warnafter: 'soon' } },
    { 'kubernetes.io': { ...kubernetes, pod: [] } },
    { 'kubernetes.io': null },
    { 'kubernetes.io': { ...kubernetes, pod: {} } },
  ]
  for (const change of changes) {
    assert.equal(kindOf(signToken(own, podClaims(nowMs, change))), 'refused', JSON.stringify(change))
  }
  assert.equal(kindOf(signToken(own, podClaims(nowMs, { aud: issuer, jti: null, sub: null }))), 'caller')
})

test('who else issued a token, or to whom it speaks, is not decided here', () => {
  assert.equal(kindOf(signToken(own, podClaims(nowMs, { iss: 'https://other' }))), 'undecided')
  assert.equal(kindOf(signToken(own, podClaims(nowMs, { iss: undefined }))), 'undecided')
  const ofSecrets = 'kubernetes/serviceaccount'
  assert.equal(kindOf(signToken(own, podClaims(nowMs, { iss: ofSecrets })), { cluster: ofSecrets }), 'undecided')
  for (const key of ['ISS', 'Iss', 'i\u017fs']) {
    assert.equal(kindOf(signToken(own, podClaims(nowMs, { [key]: 'https://other' }))), 'undecided', key)
  }
  assert.equal(kindOf(signToken(own, podClaims(nowMs, { aud: ['vault'] }))), 'undecided')
  assert.equal(kindOf(signToken(own, podClaims(nowMs, { aud: ['vault', issuer] }))), 'caller')
  assert.equal(kindOf(signToken(own, podClaims(nowMs, { aud: [] }))), 'caller')
})

test('[I1] times count with the minute that kube-apiserver allows', () => {
  const token = signToken(own, podClaims(nowMs))
  const end = nowMs + 3_600_000
  assert.equal(kindOf(token, { at: end + 60_000 }), 'caller')
  assert.deepEqual(judge(token, { at: end + 60_001 }), {
    kind: 'refused',
    why: 'service account token has expired',
    gone: false,
  })
  assert.equal(kindOf(token, { at: nowMs - 60_000 }), 'caller')
  assert.equal(kindOf(token, { at: nowMs - 60_001 }), 'refused')
  const later = Math.floor(nowMs / 1000) + 61
  for (const claim of ['nbf', 'iat']) {
    assert.equal(kindOf(signToken(own, podClaims(nowMs, { [claim]: later }))), 'refused', claim)
    assert.equal(kindOf(signToken(own, podClaims(nowMs, { [claim]: later - 1 }))), 'caller', claim)
  }
  assert.equal(kindOf(signToken(own, podClaims(nowMs, { exp: end / 1000 + 0.9 })), { at: end + 60_900 }), 'refused')
  assert.equal(kindOf(signToken(own, podClaims(nowMs, { exp: undefined }))), 'caller')
})

test('[I1] what a token is bound to has to exist under the same uid, and a minute longer at most', () => {
  const inNamespace = { namespace: 'shop', serviceaccount: { name: 'till', uid: 'account-uid' } }
  const bound = (reference: object) =>
    signToken(own, podClaims(nowMs, { 'kubernetes.io': { ...inNamespace, ...reference } }))
  const cases = [
    ['ServiceAccount shop/till', bound({}), 'account-uid'],
    ['Pod shop/till-1', bound({ pod: { name: 'till-1', uid: 'pod-uid' } }), 'pod-uid'],
    ['Secret shop/key', bound({ secret: { name: 'key', uid: 'secret-uid' } }), 'secret-uid'],
    ['Node /n1', bound({ node: { name: 'n1', uid: 'node-uid' } }), 'node-uid'],
  ] as const
  for (const [name, token, uid] of cases) {
    const among = (found: Known[string] | undefined) => {
      const { [name]: _, ...others } = exist
      return { known: found === undefined ? others : { ...others, [name]: found } }
    }
    assert.equal(kindOf(token, among({ uid })), 'caller', name)
    assert.equal(kindOf(token, among(undefined)), 'undecided', name)
    for (const found of ['absent', { uid: 'other' }, { uid, deletionMs: nowMs - 60_001 }] as const) {
      const verdict = judge(token, among(found))
      assert.equal(verdict.kind === 'refused' && verdict.gone, true, name)
    }
    assert.equal(kindOf(token, among({ uid, deletionMs: nowMs - 60_000 })), 'caller', name)
    assert.equal(kindOf(token, among({ uid, deletionMs: nowMs + 30_000 })), 'caller', name)
  }
  // The node of a bound pod is only told, and what is known to be gone outweighs what is not known.
  const both = bound({ pod: { name: 'till-1', uid: 'pod-uid' }, node: { name: 'n9', uid: 'x' } })
  assert.equal(kindOf(both), 'caller')
  assert.equal(kindOf(both, { known: { 'Pod shop/till-1': 'absent' } }), 'refused')
  const elsewhere = signToken(own, podClaims(nowMs, { aud: ['vault'] }))
  assert.equal(kindOf(elsewhere, { known: { ...exist, 'Pod shop/till-1': 'absent' } }), 'refused')
})

test('a token that is kept in a Secret is worth what the Secret holds', () => {
  const claims = {
    iss: 'kubernetes/serviceaccount',
    sub: 'system:serviceaccount:shop:till',
    'kubernetes.io/serviceaccount/namespace': 'shop',
    'kubernetes.io/serviceaccount/secret.name': 'old',
    'kubernetes.io/serviceaccount/service-account.name': 'till',
    'kubernetes.io/serviceaccount/service-account.uid': 'account-uid',
  }
  const token = signToken(own, claims)
  const holding = (kept: string, metadata: object = {}): Known => {
    const data = { token: Buffer.from(kept).toString('base64') }
    return { ...exist, 'Secret shop/old': { uid: 's', read: () => fromPlain({ metadata, data }) } }
  }
  assert.deepEqual(judge(token, { known: holding(token) }), {
    kind: 'caller',
    expiresMs: undefined,
    caller: {
      name: 'system:serviceaccount:shop:till',
      uid: 'account-uid',
      groups: ['system:serviceaccounts', 'system:serviceaccounts:shop', 'system:authenticated'],
    },
  })
  assert.equal(kindOf(token), 'undecided')
  const marked = { labels: { 'kubernetes.io/legacy-token-invalid-since': '2026-01-01' } }
  const revoked: readonly Known[] = [
    holding('another'),
    holding(token, marked),
    { ...exist, 'Secret shop/old': 'absent' },
    { ...exist, 'Secret shop/old': { ...(holding(token)['Secret shop/old'] as object), deletionMs: nowMs } },
    { ...holding(token), 'ServiceAccount shop/till': 'absent' },
    { ...holding(token), 'ServiceAccount shop/till': { uid: 'other' } },
    { ...holding(token), 'ServiceAccount shop/till': { uid: 'account-uid', deletionMs: nowMs } },
  ]
  for (const known of revoked) assert.equal(kindOf(token, { known }), 'refused')
  for (const name of Object.keys(claims).slice(1)) {
    const without = signToken(own, { ...claims, [name]: undefined })
    assert.equal(kindOf(without, { known: holding(without) }), 'refused', name)
  }
  const posing = signToken(own, { ...claims, sub: 'system:serviceaccount:kube-system:till' })
  assert.equal(kindOf(posing, { known: holding(posing) }), 'refused')
})

test('a JWKS in which nothing can verify is none, and one bad key does not spoil the others', () => {
  const good = JSON.parse(jwksOf(own)).keys[0]
  for (const document of ['', '[]', '{}', '{"keys":{}}', '{"keys":[null,1,{}]}', '{"keys":[{"kty":"oct","k":"eA"}]}']) {
    assert.equal(PublicKeys.read(document), undefined, document)
  }
  const keys = [{ kty: 'RSA', n: 'AQAB', e: 'AQAB' }, { kty: 'EC', crv: 'P-256', x: 'eA', y: 'eA' }, good]
  assert.equal(kindOf(signToken(own, podClaims(nowMs)), { jwks: JSON.stringify({ keys }) }), 'caller')
  const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 768 })
  const short = JSON.stringify({ keys: [publicKey.export({ format: 'jwk' })] })
  assert.equal(PublicKeys.read(short), undefined, 'Go does not verify with a key as short as that')
  const encrypting = JSON.stringify({ keys: [{ ...good, use: 'enc' }] })
  assert.equal(PublicKeys.read(encrypting), undefined)
})

test('whatever is shown as a token is judged without an error, and nothing but the signed bytes opens anything', () => {
  const token = signToken(own, podClaims(nowMs))
  const changed = fc
    .tuple(fc.nat(token.length - 1), fc.constantFrom(...'AZaz09-_.=+/ {'))
    .map(([at, character]) => `${token.slice(0, at)}${character}${token.slice(at + 1)}`)
  fc.assert(
    fc.property(fc.oneof(fc.string(), changed), (text) => text === token || judge(text).kind !== 'caller'),
    { numRuns: 500 },
  )
})
