import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UsageError } from '../base/fault.ts'
import { nodeOfWay, wayOf } from './way.ts'

const nothing = {
  kubeletServingCertificate: undefined,
  kubeconfig: undefined,
  server: [],
  hub: [],
  credential: undefined,
  clientCredential: [],
}
const hub = ['wss://hub:10002']

test('an edge takes one way to its cloud, and is told which option is one too many or too few', () => {
  assert.deepEqual(wayOf({ ...nothing, kubeconfig: '/k' }), { kubeconfig: '/k' })
  assert.deepEqual(wayOf({ ...nothing, hub, credential: '/c' }), { hub, credential: '/c', serving: undefined })
  const refused = (given: Partial<Parameters<typeof wayOf>[0]>, sentence: RegExp) =>
    assert.throws(
      () => wayOf({ ...nothing, ...given }),
      (error) => error instanceof UsageError && sentence.test(error.message),
    )
  refused({}, /needs --kubeconfig.*--hub and --credential/)
  refused({ credential: '/c' }, /give --hub/)
  refused({ hub }, /--hub needs --credential/)
  refused({ hub, credential: '/c', kubeconfig: '/k' }, /^--kubeconfig has no effect with --hub/)
  refused({ hub, credential: '/c', server: ['https://s'] }, /^--server has no effect/)
  const clientCredential = [{ name: 'a', cert: '/a', key: '/b' }]
  refused({ hub, credential: '/c', clientCredential }, /^--client-credential has no effect/)
})

test('through a hub the edge is the node of its credential', () => {
  assert.equal(nodeOfWay(undefined, undefined), undefined)
  assert.equal(nodeOfWay('n1', undefined), 'n1')
  assert.equal(nodeOfWay(undefined, 'n1'), 'n1')
  assert.equal(nodeOfWay('n1', 'n1'), 'n1')
  assert.throws(() => nodeOfWay('n2', 'n1'), /--node n2 is not the node of --credential \(n1\)/)
})
