/** What a read at an edge costs, counted: nothing upstream, nothing of the disk, no object taken apart, no line in the log. */
import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { openMemory } from '../store/memory.ts'
import { aliceToken, EdgeWorld, whole } from './edgeworld.test-support.ts'

const maps = '/api/v1/namespaces/a/configmaps'
const objects = 300
const reads = [
  `${maps}?resourceVersion=0`,
  `${maps}?resourceVersion=0&labelSelector=x%3Dy`,
  `${maps}/c7?resourceVersion=0`,
]

async function synced() {
  const store = openMemory({ historyBytesMax: 1 << 24 })
  const world = await EdgeWorld.open({ store })
  for (let at = 0; at < objects; at++) world.cloud.server.put('configmaps', `a/c${at}`, { value: 'v' })
  await world.synced('configmaps', 'a')
  // Each is decided for its caller once.
  for (const url of reads) await body(world, url)
  return { world, store }
}

async function body(world: EdgeWorld, url: string): Promise<Buffer> {
  const { status, body } = await world.response('GET', url, { token: aliceToken })
  assert.equal(status, 200, url)
  return await whole(body)
}

test('covered reads cost neither the cloud, nor the disk, nor a line of the log, line up or cut (kubeedge 8.2, 8.11, superedge g4, g6)', async () => {
  const { world, store } = await synced()
  for (const state of ['reachable', 'unreachable'] as const) {
    world.cloud.reachability.set(state)
    await world.pass(100)
    const disk = [
      mock.method(store, 'record'),
      mock.method(store, 'records'),
      mock.method(store, 'history'),
      mock.method(store, 'commit'),
    ]
    const [asked, lines] = [world.cloud.asked.length, world.lines.length]
    for (let round = 0; round < 50; round++) for (const url of reads) await body(world, url)
    assert.deepEqual([world.cloud.asked.length - asked, world.lines.length - lines], [0, 0], state)
    for (const call of disk) {
      assert.equal(call.mock.callCount(), 0, state)
      call.mock.restore()
    }
  }
  await world.stop()
})

test('a list is made of the bytes that came: no object is parsed or printed for it (kubeedge 8.3, superedge g3, g4)', async () => {
  const { world } = await synced()
  world.cloud.reachability.set('unreachable')
  await world.pass(100)
  const counted = async (url: string) => {
    const json = [mock.method(JSON, 'parse'), mock.method(JSON, 'stringify')]
    const { length } = await body(world, url)
    const calls = json.reduce((sum, one) => sum + one.mock.callCount(), 0)
    for (const one of json) one.mock.restore()
    return { length, calls }
  }
  const whole = await counted(`${maps}?resourceVersion=0`)
  const none = await counted(`${maps}?resourceVersion=0&labelSelector=x%3Dy`)
  assert.ok(whole.length > objects * 50 && none.length < 500)
  assert.deepEqual([whole.calls, none.calls], [none.calls, none.calls])
  assert.ok(none.calls < 5, `${none.calls} calls`)
  await world.stop()
})
