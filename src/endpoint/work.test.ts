/** What a read at an edge costs, counted: nothing upstream, nothing of the disk, no object taken apart, no line in the log. */
import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Query } from '../kube/request.ts'
import { openMemory } from '../store/memory.ts'
import { aliceToken, answered, EdgeWorld, settle, whole } from './edgeworld.test-support.ts'

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
  const { world: running, store } = await synced()
  await using world = running
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
})

test('a list is made of the bytes that came: no object is parsed or printed for it (kubeedge 8.3, superedge g3, g4)', async () => {
  const { world: running } = await synced()
  await using world = running
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
  // A few belong to the request, whatever it finds.
  for (const { calls } of [whole, none]) assert.ok(calls < 10, `${calls} calls for ${objects} objects`)
})

test('an answer that was passed on is not kept (kubeedge 8.12)', async () => {
  const { world: running } = await synced()
  await using world = running
  const chunks: WeakRef<Buffer>[] = []
  world.cloud.script = ({ path }) => {
    if (!path.endsWith('/log')) return undefined
    const chunk = Buffer.alloc(1 << 20)
    chunks.push(new WeakRef(chunk))
    return answered(200, [chunk], {})
  }
  for (let at = 0; at < 5; at++)
    assert.equal((await body(world, `/api/v1/namespaces/a/pods/p${at}/log`)).length, 1 << 20)
  world.cloud.script = () => undefined
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  for (let turn = 0; turn < 3; turn++) {
    await settle()
    collect()
  }
  assert.deepEqual([chunks.length, chunks.filter((one) => one.deref() !== undefined).length], [5, 0])
})

test('[A8] a selector is parsed once for a request, however many ask for it, whether it can be or not', async () => {
  const { world: running } = await synced()
  await using world = running
  const many = Array.from({ length: 1_000 }, (_, i) => i)
  const labels = `labelSelector=${encodeURIComponent(many.map((i) => `!a${i}`).join(','))}`
  const fields = `fieldSelector=${encodeURIComponent(many.map((i) => `metadata.name!=a${i}`).join(','))}`
  const cases: [query: string, status: number][] = [
    [`${labels}&${fields}`, 200],
    [`${labels}%2C_&${fields}`, 400],
    [`${labels}&${fields}%2Cx`, 400],
  ]
  for (const [query, status] of cases) {
    const asked = mock.method(Query.prototype, 'get')
    try {
      const response = await world.response('GET', `${maps}?resourceVersion=0&${query}`, { token: aliceToken })
      assert.equal(response.status, status)
      // The form of a refusal is read from its URL anew.
      const [first] = asked.mock.calls
      const texts = asked.mock.calls.filter((call) => call.this === first?.this).map(({ arguments: [name] }) => name)
      // The decision also wants the text, for what cannot be parsed; whether there is a name is a question of its own.
      assert.ok(texts.filter((name) => name === 'labelSelector').length <= 2, `${texts}`)
      assert.ok(texts.filter((name) => name === 'fieldSelector').length <= 3, `${texts}`)
    } finally {
      asked.mock.restore()
    }
  }
})
