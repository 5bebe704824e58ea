/** Somebody sets the clock while clients page through lists and wait for versions. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openWorld } from '../src/endpoint/world.test-support.ts'
import { configMap, configMaps } from './process.ts'

const hourMs = 3_600_000

async function paged() {
  const world = await openWorld()
  for (const name of ['a', 'b', 'c']) await world.ask('POST', configMaps, configMap(name, {}))
  const first = await world.ask('GET', `${configMaps}?limit=1`)
  await world.ask('DELETE', `${configMaps}/b`)
  const next = () => world.ask('GET', `${configMaps}?continue=${first.json.metadata.continue}`)
  return { ...world, next }
}

const names = (json: { items: { metadata: { name: string } }[] }) => json.items.map(({ metadata }) => metadata.name)

test('a clock set back does not age a continue token', async () => {
  const { clock, next } = await paged()
  clock.jump(-24 * hourMs)
  const { status, json } = await next()
  assert.equal(status, 200)
  assert.deepEqual(names(json), ['b', 'c'])
})

test('a clock set forward ends its life as time would: 410, with a token to go on', async () => {
  const { ask, clock, next } = await paged()
  clock.jump(24 * hourMs)
  const { status, json } = await next()
  assert.deepEqual([status, json.reason], [410, 'Expired'])
  const rest = await ask('GET', `${configMaps}?continue=${json.metadata.continue}`)
  assert.equal(rest.status, 200)
  assert.deepEqual(names(rest.json), ['c'])
})

test('a clock that is set does not change how long a read waits for a version ahead', async () => {
  const { ask, clock } = await openWorld()
  const asked = ask('GET', `${configMaps}?resourceVersion=999&resourceVersionMatch=NotOlderThan`)
  await new Promise((resolve) => setImmediate(resolve))
  clock.jump(-hourMs)
  clock.advance(2_999)
  assert.equal(clock.pending(), 1)
  clock.advance(1)
  assert.equal((await asked).status, 504)
})
