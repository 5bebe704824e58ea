/** That a credential in what a process says would be found: each suite's processes are looked through when they end. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeSigner, podClaims, signToken } from '../src/access/authenticate/tokens.test-support.ts'
import { credentialsIn } from './credentials.ts'

const signer = makeSigner()
const token = signToken(signer, podClaims(Date.now()))
const [, claims = ''] = token.split('.')
const key = signer.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
const old = makeSigner('RS256').privateKey.export({ type: 'pkcs1', format: 'pem' }).toString()
const curve = signer.privateKey.export({ type: 'sec1', format: 'pem' }).toString()
const base64 = (text: string) => Buffer.from(text).toString('base64')

const told: Readonly<Record<string, string>> = {
  'a token in a header': `authorization: Bearer ${token}`,
  'a token alone': `{"event":"x","why":"${token} was refused"}`,
  'its claims': `{"claims":"${claims}"}`,
  'its claims, read': JSON.stringify(podClaims(Date.now())),
  'its claims in a string': JSON.stringify({ why: JSON.stringify(podClaims(Date.now())) }),
  'a token of no form': 'Authorization: "Bearer 0123456789abcdef.token"',
  'a key': key,
  'a key in a log line': JSON.stringify({ key }),
  'a key of RSA in base64': base64(old),
  'a key of PKCS #8 in base64': base64(key),
  'a key of SEC 1 in base64': base64(curve),
}

for (const [name, text] of Object.entries(told)) {
  test(`[I4] ${name} is found in what was told`, () => {
    const found = credentialsIn(`first line\n${text}\n`)
    assert.notEqual(found.length, 0)
    assert.ok(!found.some((one) => one.includes(token) || one.includes(claims)), 'and not told again')
  })
}

test('[I4] what is no secret is not taken for one', () => {
  const certificate = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n'
  const harmless = [
    certificate,
    `"certificate-authority-data":"${base64(certificate)}"`,
    'continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MTAsInN0YXJ0IjoiYVx1MDAwMCJ9',
    '{"metadata":{"labels":{"kubernetes.io/hostname":"n1"}}}',
    'a bearer token is verified here',
    'ake_token_reviews_total{result="bearer"} 12',
  ]
  assert.deepEqual(harmless.flatMap(credentialsIn), [])
})
