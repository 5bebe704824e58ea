/** Whom a kubelet asks about, in either form in which it may write a review. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { encodeMessage, type Message, messageOf, wrap } from './protobuf/protobuf.ts'
import { reviewedSubject } from './reviewedsubject.ts'

const apiVersion = 'authorization.k8s.io/v1'
const protobuf = 'application/vnd.kubernetes.protobuf'

function inProtobuf(review: object, kind = 'SubjectAccessReview', version = apiVersion): Buffer {
  const message = messageOf(version, kind) as Message
  return wrap({ apiVersion: version, kind }, encodeMessage(message, Buffer.from(JSON.stringify(review))))
}

test('[L29] a review in protobuf, as kubelets write it, names the same subject as in JSON', () => {
  const spec = {
    resourceAttributes: { verb: 'get', resource: 'nodes', subresource: 'metrics', name: 'n1' },
    ...{ user: 'system:serviceaccount:monitoring:prometheus', uid: 'u1' },
    groups: ['system:serviceaccounts', 'system:serviceaccounts:monitoring', 'system:authenticated'],
    extra: { 'authentication.kubernetes.io/pod-name': ['prometheus-0'] },
  }
  const expected = { name: spec.user, groups: spec.groups }
  assert.deepEqual(reviewedSubject(protobuf, inProtobuf({ spec })), expected)
  assert.deepEqual(reviewedSubject(`${protobuf};charset=x`, inProtobuf({ spec })), expected)
  assert.deepEqual(reviewedSubject('application/json', Buffer.from(JSON.stringify({ spec }))), expected)
  assert.equal(reviewedSubject(protobuf, inProtobuf({ spec: { groups: ['g'] } })), undefined)
})

test('[L29] what is no such review names nobody: a review of a token, another form than the header says, any bytes', () => {
  const token = inProtobuf({ spec: { token: 'abc' } }, 'TokenReview', 'authentication.k8s.io/v1')
  assert.equal(reviewedSubject(protobuf, token), undefined)
  const json = Buffer.from(JSON.stringify({ spec: { user: 'u' } }))
  assert.equal(reviewedSubject(protobuf, json), undefined)
  assert.equal(reviewedSubject('application/json', inProtobuf({ spec: { user: 'u' } })), undefined)
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      const found = reviewedSubject(protobuf, Buffer.concat([Buffer.from('k8s\0'), bytes]))
      assert.ok(found === undefined || typeof found.name === 'string')
    }),
  )
})
