import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { pem } from './certificate.ts'
import { readSigningRequest, signingRequest } from './signingrequest.ts'

const subject = { commonName: 'system:node:edge-1', organization: 'system:nodes' }
const newKey = (): KeyObject => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
const derOf = (text: string) => Buffer.from(text.replace(/-----[^-]+-----|\s/g, ''), 'base64')
const again = (der: Buffer) => pem(der, 'CERTIFICATE REQUEST')

test('openssl reads what is written, and verifies it', () => {
  const dir = mkdtempSync(join(tmpdir(), 'ake-csr-'))
  try {
    const file = join(dir, 'request.pem')
    const read = (text: string) => {
      writeFileSync(file, text)
      return execFileSync('openssl', ['req', '-in', file, '-noout', '-text', '-verify'], {
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'pipe'],
      })
    }
    const client = read(signingRequest({ subject }, newKey()))
    assert.match(client, /Subject: O ?= ?system:nodes, CN ?= ?system:node:edge-1/)
    assert.match(client, /ecdsa-with-SHA256/)
    assert.doesNotMatch(client, /Alternative/)
    const serving = read(signingRequest({ subject, hosts: ['edge-1', '192.0.2.7', '2001:db8::1'] }, newKey()))
    assert.match(serving, /DNS:edge-1, IP Address:192\.0\.2\.7, IP Address:2001:DB8:0:0:0:0:0:1/)
  } finally {
    rmSync(dir, { recursive: true })
  }
})

test('what is written is read; what asks for more than a subject says so', () => {
  const key = newKey()
  const parts = [
    { type: '2.5.4.10', text: 'system:nodes' },
    { type: '2.5.4.3', text: 'system:node:edge-1' },
  ]
  const publicKey = createPublicKey(key).export({ type: 'spki', format: 'der' })
  assert.deepEqual(readSigningRequest(signingRequest({ subject }, key)), {
    ...{ subject: parts, publicKey, hasAttributes: false },
  })
  assert.equal(readSigningRequest(signingRequest({ subject, hosts: ['edge-1'] }, key))?.hasAttributes, true)
})

test('whatever bytes come, it is read as what it says or as none: none is read that its key did not sign', () => {
  const text = signingRequest({ subject }, newKey())
  const der = derOf(text)
  assert.notEqual(readSigningRequest(again(der)), undefined)
  for (let at = 0; at < der.length; at++) {
    for (const bit of [0x01, 0x80]) {
      const turned = Buffer.from(der)
      turned[at] = (turned[at] as number) ^ bit
      assert.equal(readSigningRequest(again(turned)), undefined, `byte ${at}`)
    }
    assert.equal(readSigningRequest(again(der.subarray(0, at))), undefined, `${at} bytes`)
  }
  assert.equal(readSigningRequest(again(Buffer.concat([der, Buffer.of(5, 0)]))), undefined)
  for (const none of ['', 'x', `${text}${text}`, text.replaceAll('CERTIFICATE REQUEST', 'CERTIFICATE')])
    assert.equal(readSigningRequest(none), undefined)
  assert.equal(readSigningRequest(`${text}${' '.repeat(5_000)}`), undefined, 'longer than any')
})

test('a key of another kind is none of ours', () => {
  const dir = mkdtempSync(join(tmpdir(), 'ake-csr-'))
  try {
    for (const kind of [['rsa:2048'], ['ec', '-pkeyopt', 'ec_paramgen_curve:secp384r1']]) {
      const text = execFileSync(
        'openssl',
        ['req', '-new', '-nodes', '-newkey', ...kind, '-subj', '/CN=a', '-keyout', join(dir, 'key')],
        { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] },
      )
      assert.match(text, /BEGIN CERTIFICATE REQUEST/)
      assert.equal(readSigningRequest(text), undefined)
    }
  } finally {
    rmSync(dir, { recursive: true })
  }
})
