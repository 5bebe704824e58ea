/** What somebody hears about whom nothing is decided yet. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EdgeWorld } from './edgeworld.test-support.ts'

const path = '/api/v1/namespaces/a/configmaps?resourceVersion=0'

test('[I2] while nobody knows whether the cloud is there, a stranger is asked to come again, and gets nothing', async () => {
  const world = await EdgeWorld.open()
  world.cloud.reachability.set('suspect')
  const told = await world.ask('GET', path, { token: 'never-seen' })
  assert.deepEqual([told.status, told.json.kind, told.headers['retry-after']], [429, 'Status', '1'])
  assert.equal((await world.ask('GET', path)).status, 403, 'without a credential there is nothing to find out')
  world.cloud.reachability.set('unreachable')
  assert.equal((await world.ask('GET', path, { token: 'never-seen' })).status, 401)
  await world.stop()
})
