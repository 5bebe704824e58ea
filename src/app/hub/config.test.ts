import assert from 'node:assert/strict'
import { test } from 'node:test'
import { forwardingLimits } from '../../hub/forwarding/limits.ts'
import { readConfig } from '../config.ts'
import { linksWithin } from '../openfiles.ts'
import { forwardingLimitsOf, hubHosts } from './config.ts'

const read = (...args: string[]) => readConfig('hub', { args: ['--state', './hub', ...args], env: {} })

test('without options a hub listens everywhere for edges and on loopback for health, trusts no edge, and limits as its parts do', async () => {
  const config = await read()
  assert.deepEqual(
    config.listen.map(({ port }) => port),
    [10002],
  )
  assert.ok(['::', '0.0.0.0'].includes(config.listen[0]?.host ?? ''))
  assert.deepEqual(config.healthListen, { host: '127.0.0.1', port: 10003 })
  assert.equal(config.trustEdges, false)
  assert.equal(config.drain, 30_000)
  const { edgePerSecond, edgeBurst, callerPerSecond, callerBurst } = forwardingLimits
  assert.deepEqual(forwardingLimitsOf(config), { edgePerSecond, edgeBurst, callerPerSecond, callerBurst })
  const other = await read('--edge-requests-per-second', '10', '--caller-requests-per-second', '20')
  assert.deepEqual(forwardingLimitsOf(other), {
    ...{ edgePerSecond: 10, edgeBurst: 50, callerPerSecond: 20, callerBurst: 80 },
  })
})

test('the certificate of a hub is for where it listens and for what it is called, and for no address of the machine unless it listens there', async () => {
  const machine = () => ['192.0.2.1']
  const named = await read('--listen', '198.51.100.1:10002', '--host', 'hub.example.com', '--host', '203.0.113.7')
  assert.deepEqual(hubHosts(named, machine), [
    ...['localhost', '127.0.0.1', '::1', '198.51.100.1', 'hub.example.com', '203.0.113.7'],
  ])
  assert.ok(hubHosts(await read(), machine).includes('192.0.2.1'))
  await assert.rejects(read('--host', 'no name'), /--host cannot be "no name": give HOST/)
})

test('links are as many as there are files for', () => {
  assert.equal(linksWithin('Max open files            1024                 524288               files'), 512)
  assert.equal(linksWithin('Max open files            100                  100                  files'), 64)
  assert.equal(linksWithin(undefined), Number.POSITIVE_INFINITY)
})
