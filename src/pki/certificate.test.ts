import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { issueCertificate } from './certificate.ts'

const folder = mkdtempSync(join(tmpdir(), 'ake-cert-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const dates = { notBefore: Date.now() - 3600_000, notAfter: Date.now() + 3600_000 }
const name = { commonName: 'test-ca' }
const ca = issueCertificate({ ...dates, use: 'authority', subject: name })
const issuer = { name, key: createPrivateKey(ca.key) }
const hosts = ['localhost', '127.0.0.1', '::1', '2001:db8::a:1', '::ffff:1.2.3.4', 'kubernetes.default.svc']
const server = issueCertificate({ ...dates, use: 'server', subject: { commonName: 'ake' }, hosts }, issuer)
const subject = { commonName: 'ådmin', organization: 'system:masters' }
const client = issueCertificate({ ...dates, use: 'client', subject }, issuer)

test('node:crypto reads what was written', () => {
  const parsed = new X509Certificate(ca.cert)
  assert.equal(parsed.ca, true)
  assert.equal(parsed.subject, 'CN=test-ca')
  assert.equal(parsed.verify(parsed.publicKey), true)
  assert.equal(Date.parse(parsed.validTo), Math.floor(dates.notAfter / 1000) * 1000)
  const leaf = new X509Certificate(client.cert)
  assert.equal(leaf.subject, 'O=system:masters\nCN=ådmin')
  assert.deepEqual(leaf.keyUsage, ['1.3.6.1.5.5.7.3.2'])
  assert.equal(leaf.ca, false)
  assert.equal(leaf.checkIssued(parsed), true)
  assert.equal(leaf.verify(parsed.publicKey), true)
  assert.equal(leaf.checkPrivateKey(createPrivateKey(client.key)), true)
  assert.notEqual(leaf.serialNumber, parsed.serialNumber)
})

test('every host is an alternative name', () => {
  const parsed = new X509Certificate(server.cert)
  assert.equal(
    parsed.subjectAltName,
    'DNS:localhost, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1, IP Address:2001:DB8:0:0:0:0:A:1, ' +
      'IP Address:0:0:0:0:0:FFFF:102:304, DNS:kubernetes.default.svc',
  )
})

test('openssl, strict, accepts the chain for its purpose and no other', { skip: openssl(['version']) !== 0 }, () => {
  const path = (file: string, text: string) => {
    writeFileSync(join(folder, file), text)
    return join(folder, file)
  }
  const authority = path('ca.crt', ca.cert)
  const verify = (purpose: string, file: string) =>
    openssl(['verify', '-x509_strict', '-CAfile', authority, '-purpose', purpose, file])
  const serverFile = path('server.crt', server.cert)
  const clientFile = path('client.crt', client.cert)
  assert.equal(verify('sslserver', serverFile), 0)
  assert.equal(verify('sslclient', clientFile), 0)
  assert.notEqual(verify('sslserver', clientFile), 0)
  assert.notEqual(verify('sslclient', serverFile), 0)
})

function openssl(args: string[]): number | null {
  return spawnSync('openssl', args).status
}
