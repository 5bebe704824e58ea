/** What a caller hears about whom nothing is decided yet. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EdgeWorld } from '../../edgeworld.test-support.ts'

const path = '/api/v1/namespaces/a/configmaps?resourceVersion=0'

test('[I2] while nobody knows whether the cloud is there, a stranger is asked to come again, and gets nothing', async () => {
  await using world = await EdgeWorld.open()
  world.cloud.reachability.set('suspect')
  const told = await world.ask('GET', path, { token: 'never-seen' })
  assert.deepEqual([told.status, told.json.kind, told.headers['retry-after']], [429, 'Status', '1'])
  assert.equal((await world.ask('GET', path)).status, 403, 'without a credential there is nothing to find out')
  world.cloud.reachability.set('unreachable')
  assert.equal((await world.ask('GET', path, { token: 'never-seen' })).status, 401)
})

test('a caller whose certificate counts as anonymous is told so where it is refused', async () => {
  await using world = await EdgeWorld.open()
  world.cloud.reachability.set('unreachable')
  const certificate = { name: 'technician', organizations: [], issuedBy: 'clients' as const, expiresMs: Infinity }
  const { status, json } = await world.ask('GET', path, { peer: { certificate } })
  assert.equal(status, 403)
  assert.match(
    json.message,
    /"system:anonymous".*; the certificate of "technician" counts as anonymous here: "ake status"/,
  )
  assert.doesNotMatch((await world.ask('GET', path)).json.message, /certificate/)
})

test('[I2] on a long line, where the first review of a caller takes longer than a read may wait, the API server answers itself', async () => {
  await using world = await EdgeWorld.open()
  const { clock, reachability } = world.cloud
  world.cloud.judge.users.set('first-seen', { name: 'bob', uid: 'b', groups: [] })
  // Four round trips of 0.8 s: a connection, then who it is. A probe, which has its connection, takes one.
  reachability.limitMs = 2_000
  world.cloud.script = async ({ path }) => {
    if (/selfsubject/.test(path)) await new Promise<void>((resolve) => void clock.setTimer(2_400, resolve))
    return undefined
  }
  const asking = world.later('GET', path, { token: 'first-seen' })
  await world.pass(2_100)
  assert.equal(asking.done, true)
  const { status, passedThrough } = await asking.answer
  assert.deepEqual([status, passedThrough, reachability.state], [200, true, 'reachable'])
  await world.pass(5_000)
})
