import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { tokenRequest } from './protobuf/messages.test-support.ts'
import { readTokenRequest } from './protobuf/peek.ts'
import { readEnvelope } from './protobuf/protobuf.ts'
import { printTokenRequest, readTokenRequestJson, TokenRequestFault } from './tokenrequest.ts'

const account = { namespace: 'pbwork', name: 'robot' }
/** As a kube-apiserver of 1.36 answered, apart from managedFields and the token's text. */
const metadata =
  '"metadata":{"name":"robot","namespace":"pbwork","uid":"837fd2ad-1b3e-430d-a801-9788e2a1649c","creationTimestamp":"2026-11-15T13:27:32Z"}'
const head = `{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1",${metadata}`
const status = '"status":{"token":"header.payload.signature","expirationTimestamp":"2026-11-15T14:27:39Z"}}'
const bound = `${head},"spec":{"audiences":["api","\\u003c\\u0026\\u003eé\\u2028"],"expirationSeconds":3607,"boundObjectRef":{"kind":"Secret","apiVersion":"v1","name":"s1"}},${status}`
const unbound = `${head},"spec":{"audiences":["https://kubernetes.default.svc"],"expirationSeconds":3600,"boundObjectRef":null},${status}`

test('[A5] an answer is read and printed again as the API server printed it', () => {
  for (const answer of [bound, unbound]) {
    assert.equal(printTokenRequest(readTokenRequestJson(Buffer.from(answer)), account).toString(), answer)
  }
})

test('protobuf and JSON tell the same', () => {
  const facts = readTokenRequest(readEnvelope(tokenRequest).raw)
  assert.deepEqual(readTokenRequestJson(printTokenRequest(facts, account)), facts)
})

test('a request says what it asks for, and need not name its kind', () => {
  const request = '{"spec":{"audiences":["a"],"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":"p","uid":"u"}}}'
  assert.deepEqual(readTokenRequestJson(Buffer.from(request)), {
    uid: '',
    createdSeconds: undefined,
    audiences: ['a'],
    expirationSeconds: undefined,
    boundTo: { kind: 'Pod', apiVersion: 'v1', name: 'p', uid: 'u' },
    token: '',
    expiresSeconds: undefined,
  })
  assert.deepEqual(
    readTokenRequestJson(Buffer.from('{"spec":{"audiences":null,"expirationSeconds":null}}')).audiences,
    [],
  )
})

test('what is no TokenRequest is refused by name', () => {
  const texts = ['', 'null', '[]', '{"kind":"Pod"}', '{"spec":{"audiences":"a"}}', '{"spec":{"audiences":[1]}}']
  texts.push('{"spec":{"expirationSeconds":"1"}}', '{"spec":{"expirationSeconds":1.5}}', bound.slice(0, -3))
  for (const text of texts) assert.throws(() => readTokenRequestJson(Buffer.from(text)), TokenRequestFault, text)
})

test('printing and reading are inverse, whatever the texts', () => {
  const texts = fc.string({ unit: 'grapheme', minLength: 1 })
  const seconds = fc.integer({ min: 1, max: 4_000_000_000 })
  const plain = { noNullPrototype: true } as const
  const facts = fc.record(
    {
      uid: texts,
      createdSeconds: fc.option(seconds, { nil: undefined }),
      audiences: fc.array(texts),
      expirationSeconds: fc.option(seconds, { nil: undefined }),
      boundTo: fc.option(fc.record({ kind: texts, apiVersion: texts, name: texts, uid: texts }, plain), {
        nil: undefined,
      }),
      token: texts,
      expiresSeconds: fc.option(seconds, { nil: undefined }),
    },
    plain,
  )
  fc.assert(fc.property(facts, (one) => assert.deepEqual(readTokenRequestJson(printTokenRequest(one, account)), one)))
})
