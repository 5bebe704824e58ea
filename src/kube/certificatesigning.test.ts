import assert from 'node:assert/strict'
import { test } from 'node:test'
import { signingRequestOf, signingStateOf } from './certificatesigning.ts'

test('a request is written as the API server takes it, for the signer of its use', () => {
  const { spec } = signingRequestOf({ name: 'a', request: 'PEM', use: 'client' }) as { spec: object }
  assert.deepEqual(spec, {
    signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
    usages: ['digital signature', 'client auth'],
    request: Buffer.from('PEM').toString('base64'),
  })
})

test('what became of a request', () => {
  const certificate = Buffer.from('PEM').toString('base64')
  const approved = { type: 'Approved', status: 'True' }
  const cases: [object, object][] = [
    [{}, { state: 'pending', approved: false }],
    [{ status: {} }, { state: 'pending', approved: false }],
    [{ status: { conditions: [approved] } }, { state: 'pending', approved: true }],
    [{ status: { conditions: [approved], certificate } }, { state: 'issued', certificate: 'PEM' }],
    [{ status: { conditions: [{ type: 'Denied', message: 'no' }] } }, { state: 'denied', why: 'no' }],
    [{ status: { conditions: [approved, { type: 'Failed', reason: 'R' }] } }, { state: 'failed', why: 'R' }],
  ]
  for (const [object, expected] of cases) assert.deepEqual(signingStateOf(object), expected)
})
