import assert from 'node:assert/strict'
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import { issueCertificate } from './certificate.ts'
import { credentialText, nodeNamedBy, parseCredential } from './credentialfile.ts'

const dates = { notBefore: 0, notAfter: Date.UTC(2040, 0, 1) }
const name = { commonName: 'hub-ca' }
const ca = issueCertificate({ ...dates, use: 'authority', subject: name })
const other = issueCertificate({ ...dates, use: 'authority', subject: name })
const issuer = { name, key: createPrivateKey(ca.key) }
const pair = issueCertificate({ ...dates, use: 'client', subject: { commonName: 'system:node:a' } }, issuer)
const stranger = issueCertificate({ ...dates, use: 'client', subject: { commonName: 'somebody' } }, issuer)

test('what is written is read, in whatever order it stands', () => {
  const text = credentialText({ ca: ca.cert, pair, title: 'credential of a' })
  for (const one of [text, `${ca.cert}\n${pair.key}\nwords\n${pair.cert}`]) {
    const read = parseCredential(one, 'FILE')
    assert.deepEqual([read.ca, read.pair], [ca.cert, pair])
    assert.equal(read.certificate.subject, 'CN=system:node:a')
  }
})

test("the hub's authorities may be several, and need not have signed the certificate", () => {
  for (const authorities of [[other], [other, ca], [ca, other]]) {
    const text = credentialText({ ca: authorities.map(({ cert }) => cert).join(''), pair, title: 'credential of a' })
    const { ca: told, authorities: found } = parseCredential(text, 'FILE')
    assert.equal(told, authorities.map(({ cert }) => cert).join(''))
    assert.deepEqual(
      found.map(({ fingerprint256 }) => fingerprint256),
      authorities.map(({ cert }) => new X509Certificate(cert).fingerprint256),
    )
  }
})

test('the node that a certificate names', () => {
  assert.equal(nodeNamedBy(new X509Certificate(pair.cert)), 'a')
  assert.equal(nodeNamedBy(new X509Certificate(stranger.cert)), undefined)
})

test('[I4] what is missing or does not fit is a sentence without a word of the file', () => {
  const cases: [string, RegExp][] = [
    ['', /has not one private key/],
    [`${pair.key}${ca.key}${pair.cert}${ca.cert}`, /has not one private key/],
    [`${pair.key}${ca.cert}`, /has not the certificate of its key/],
    [`${pair.key}${pair.cert}`, /with the hub's authority/],
    [`${pair.key}${pair.cert}${stranger.cert}`, /with the hub's authority/],
    [`${pair.key}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----`, /no certificate or no key/],
  ]
  for (const [text, sentence] of cases) {
    assert.throws(
      () => parseCredential(text, 'FILE'),
      (error: Error) => {
        assert.equal(error.name, 'UsageError')
        assert.match(error.message, sentence)
        assert.match(error.message, /^FILE .*: give the file that "ake join" or "ake hub issue" wrote$/)
        return true
      },
    )
  }
})
