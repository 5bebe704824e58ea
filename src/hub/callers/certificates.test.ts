import assert from 'node:assert/strict'
import { createPublicKey, generateKeyPairSync, type KeyObject, sign, X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import { distinguishedName, ecdsaWithSha256, extension, pem } from '../../pki/certificate.ts'
import { bitString, booleanTrue, integer, oid, sequence, tagged, time } from '../../pki/der.ts'
import { CarriedCertificate } from '../../tunnel/credentials.ts'
import { nowMs, shownBy, TestAuthority } from './certificates.test-support.ts'
import { CallerCertificates } from './certificates.ts'

const cluster = new TestAuthority('kubernetes')
const other = new TestAuthority('kubernetes')

function judging(authorities = [cluster.certificate]) {
  const clock = { now: () => at.ms }
  const at = { ms: nowMs, authorities }
  return { at, certificates: new CallerCertificates({ authorities: () => at.authorities, clock }) }
}

test('[L26] a certificate of the cluster names its user and groups, with the groups and the credential that kube-apiserver adds', () => {
  const { certificates } = judging()
  const jane = cluster.issue('jane', 'dev')
  const fingerprint = jane.fingerprint256.replaceAll(':', '').toLowerCase()
  assert.deepEqual(certificates.judge(shownBy(jane)), {
    caller: {
      ...{ name: 'jane', uid: '', groups: ['dev', 'system:authenticated'] },
      extra: { 'authentication.kubernetes.io/credential-id': [`X509SHA256=${fingerprint}`] },
    },
  })
})

test('[L26] one of another authority, expired, not yet valid, of a server, of an authority, or none at all names nobody', () => {
  const { at, certificates } = judging()
  const sub = new TestAuthority('sub', cluster)
  const cases: [CarriedCertificate, RegExp][] = [
    [shownBy(other.issue('jane')), /no authority/],
    [shownBy(cluster.issue('jane', 'dev', { notAfter: nowMs - 1_000 })), /has expired/],
    [shownBy(cluster.issue('jane', 'dev', { notBefore: nowMs + 1_000 })), /not valid yet/],
    [shownBy(cluster.issue('jane', 'dev', { use: 'server' })), /not one of a client/],
    [shownBy(cluster.certificate), /one of an authority/],
    [shownBy(cluster.issue('')), /names no user/],
    [shownBy(sub.issue('jane')), /no authority/],
    [new CarriedCertificate('YWJj'), /no certificate/],
  ]
  for (const [shown, expected] of cases) {
    const judged = certificates.judge(shown)
    assert.match('sentence' in judged ? judged.sentence : JSON.stringify(judged), expected)
  }
  at.authorities = []
  const unread = certificates.judge(shownBy(cluster.issue('jane')))
  assert.match(JSON.stringify(unread), /does not know yet .*: try again","isForeign":false,"isUnread":true/)
})

test('[L26] it is judged each time: by the time, and by the authorities as they are', () => {
  const { at, certificates } = judging()
  const shown = shownBy(cluster.issue('jane', 'dev', { notAfter: nowMs + 60_000 }))
  assert.ok('caller' in certificates.judge(shown))
  at.authorities = [other.certificate]
  assert.ok('sentence' in certificates.judge(shown))
  at.authorities = [other.certificate, cluster.certificate]
  assert.ok('caller' in certificates.judge(shown))
  at.ms = nowMs + 61_000
  assert.deepEqual(certificates.judge(shown), { sentence: 'the certificate has expired', isForeign: true })
})

test('[L26] an authority counts that is listed and lives; none that an edge has shown, whatever has signed it', () => {
  const { at, certificates } = judging()
  const sub = new TestAuthority('sub', cluster)
  const chains = [
    [sub.issue('jane'), sub.certificate],
    [sub.issue('jane'), sub.certificate, cluster.certificate],
    [sub.issue('jane'), cluster.issue('mallory')],
  ]
  for (const chain of chains) {
    const judged = certificates.judge(shownBy(...chain))
    // The API server might take it, so this is no word of it.
    assert.ok('sentence' in judged && /has signed itself/.test(judged.sentence) && !judged.isForeign)
  }
  // What is shown behind one that a listed authority has signed does not matter.
  assert.ok('caller' in certificates.judge(shownBy(cluster.issue('jane'), cluster.certificate)))
  at.authorities = [sub.certificate]
  assert.ok('caller' in certificates.judge(shownBy(sub.issue('jane'))))
  const brief = new TestAuthority('brief', undefined, { notAfter: nowMs + 60_000 })
  at.authorities = [brief.certificate]
  const shown = shownBy(brief.issue('jane'))
  assert.ok('caller' in certificates.judge(shown))
  at.ms = nowMs + 61_000
  assert.match(JSON.stringify(certificates.judge(shown)), /authority that has signed the certificate has expired/)
})

test('[L26] an authority for servers alone, or one that is none, makes no callers, and SHA-1 proves nothing', () => {
  const { at, certificates } = judging()
  const { privateKey: key } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const authority = { name: 'made', isAuthority: true, key }
  const verdictOf = (use: string | undefined, isAuthority = true, digest: 'sha256' | 'sha1' = 'sha256') => {
    at.authorities = [made({ ...authority, isAuthority, use }, key, 'sha256')]
    const leaf = made({ name: 'jane', isAuthority: false, use: clientUse, key }, key, digest)
    return 'caller' in certificates.judge(shownBy(leaf))
  }
  assert.deepEqual(
    [verdictOf(undefined), verdictOf(clientUse), verdictOf(serverUse), verdictOf(undefined, false)],
    [true, true, false, false],
  )
  assert.equal(verdictOf(undefined, true, 'sha1'), false)
})

const [serverUse, clientUse] = ['1.3.6.1.5.5.7.3.1', '1.3.6.1.5.5.7.3.2']

type Made = {
  readonly name: string
  readonly isAuthority: boolean
  readonly use: string | undefined
  readonly key: KeyObject
}

/** As no authority of ours would sign it, in the name of `made`. */
function made({ name, isAuthority, use, key }: Made, by: KeyObject, digest: 'sha256' | 'sha1'): X509Certificate {
  const algorithm = digest === 'sha256' ? ecdsaWithSha256 : sequence(oid('1.2.840.10045.4.1'))
  const body = sequence(
    ...[tagged(0, integer(Uint8Array.of(2))), integer(Uint8Array.of(7)), algorithm],
    ...[distinguishedName({ commonName: 'made' }), sequence(time(0), time(nowMs * 2))],
    ...[distinguishedName({ commonName: name }), createPublicKey(key).export({ type: 'spki', format: 'der' })],
    tagged(
      3,
      sequence(
        extension('2.5.29.19', isAuthority ? sequence(booleanTrue()) : sequence()),
        ...(use === undefined ? [] : [extension('2.5.29.37', sequence(oid(use)))]),
      ),
    ),
  )
  return new X509Certificate(pem(sequence(body, algorithm, bitString(sign(digest, body, by)))))
}
