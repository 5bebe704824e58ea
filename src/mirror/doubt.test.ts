import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiServer } from './apiserver.test-support.ts'
import type { MirroredInterest } from './mirrored.ts'
import { MirrorWorld } from './world.test-support.ts'

test('[A3] a list that was asked for before the cluster was put back is never told behind the doubt, however late it comes', async () => {
  const server = new ApiServer()
  server.put('pods', 'a/k0')
  const { version } = server
  server.put('pods', 'a/gone')
  server.fault = ({ what }) => (what === 'list' ? { kind: 'slow', ms: 3_000 } : undefined)
  const world = await MirrorWorld.open({ server })
  const mirrored = world.begin({}) as MirroredInterest
  const putBack = async () => {
    await world.until(() => server.requests.at(-1)?.what === 'list')
    server.restore(version)
    world.interests.doubt()
    await world.until(() => mirrored.readable !== undefined)
    return mirrored.readable?.get('a/gone')
  }
  assert.equal(await putBack(), undefined, 'a first list')
  server.put('pods', 'a/gone')
  await world.until(() => mirrored.readable?.get('a/gone') !== undefined)
  // The comparison that an earlier doubt has begun.
  world.interests.doubt()
  assert.equal(await putBack(), undefined, 'a comparison')
})
