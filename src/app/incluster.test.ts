import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inClusterOf, reachedByPods } from './incluster.ts'

const authority = 'PEM'
const loopback = [
  { host: '127.0.0.1', port: 10005 },
  { host: '::1', port: 10005 },
  { host: 'localhost', port: 10005 },
]
const lan = { host: '169.254.77.1', port: 10005 }

test('pods are led here where they reach us, or told of our authority where that was asked for', () => {
  const of = (inCluster: 'service' | 'ca' | 'off', listening = [...loopback, lan], node: string | undefined = 'n1') =>
    inClusterOf({ config: { node, inCluster }, authority, listening })
  assert.deepEqual(of('service'), { authority, here: [lan] })
  assert.deepEqual(of('service', loopback), {}, 'loopback is another one inside of a pod')
  assert.deepEqual(of('ca', loopback), { authority })
  assert.deepEqual(of('off'), {})
  assert.deepEqual(inClusterOf({ config: { node: undefined, inCluster: 'ca' }, authority, listening: [lan] }), {})
})

test('of a wildcard the first address of each of its families is shown', () => {
  const machine = () => ['192.0.2.7', '192.0.2.8', 'fd00::7']
  assert.deepEqual(reachedByPods([{ host: '0.0.0.0', port: 1 }], machine), [{ host: '192.0.2.7', port: 1 }])
  assert.deepEqual(reachedByPods([{ host: '::', port: 1 }], machine), [
    { host: '192.0.2.7', port: 1 },
    { host: 'fd00::7', port: 1 },
  ])
  assert.deepEqual(
    reachedByPods([{ host: '0.0.0.0', port: 1 }], () => []),
    [],
  )
})
