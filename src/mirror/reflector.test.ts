import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mock, test } from 'node:test'
import { until } from '../base/until.test-support.ts'
import { openDurable } from '../store/durable.ts'
import { ApiServer } from './apiserver.test-support.ts'
import { Client, stepping } from './client.test-support.ts'
import type { MirroredInterest } from './mirrored.ts'
import { MirrorWorld, type Wish } from './world.test-support.ts'

async function opened(objects = 3, pageMax = 500): Promise<MirrorWorld> {
  const server = new ApiServer()
  server.pageMax = pageMax
  for (let i = 0; i < objects; i++) server.put('pods', `a/k${i}`)
  return await MirrorWorld.open({ server })
}

/** A client that has a list of ours and watches. */
async function watching(world: MirrorWorld, wish: Wish = {}, watchList = false): Promise<Client> {
  const client = new Client(world, wish, watchList)
  await stepping(world, [client], () => client.idle)
  return client
}

const synced = (mirrored: MirroredInterest | undefined) => mirrored?.state.kind === 'synced'

test('[A2] [A3] list, then watch: one request of each, and a resumed watch costs one probe and one watch', async () => {
  const world = await opened()
  const { server } = world
  const client = await watching(world)
  server.put('pods', 'a/k0', { value: 'new' })
  server.remove('pods', 'a/k1')
  await stepping(world, [client], () => client.isRight())
  assert.deepEqual(
    server.requests.map((one) => one.what),
    ['list', 'watch'],
  )
  server.cutWatches()
  server.put('pods', 'a/k2', { value: 'meanwhile' })
  await stepping(world, [client], () => client.isRight())
  assert.deepEqual(
    server.requests.map((one) => one.what),
    ['list', 'watch', 'probe', 'watch'],
  )
  assert.deepEqual([client.lists, client.expired], [1, []])
})

test('[D5] a first list holds nothing of its own of what another interest has', async () => {
  const world = await opened(9, 4)
  await watching(world, { labels: 'app!=x' })
  const [first] = world.copy.caches.values()
  world.server.put('pods', 'a/new')
  const begin = mock.method(world.copy, 'begin')
  await watching(world, { labels: 'app!=y' })
  const [, , items = []] = begin.mock.calls[0]?.arguments ?? []
  assert.equal(items.length, 10)
  const own = items.filter((item) => item !== first?.get(item.key))
  assert.ok(own.length <= 1, own.map(({ key }) => key).join())
})

test('[D5] first lists that overlap and are asked for together hold what one of them brings', async () => {
  const world = await opened(9, 4)
  const begin = mock.method(world.copy, 'begin')
  const clients = Array.from({ length: 5 }, (_, i) => new Client(world, { labels: `app!=x${i}` }, false))
  await stepping(world, clients, () => clients.every(({ idle }) => idle))
  const brought = begin.mock.calls.flatMap(({ arguments: [, , items] }) => items)
  assert.equal(brought.length, 5 * 9)
  assert.equal(new Set(brought.map(({ bytes }) => bytes)).size, 9, 'distinct buffers')
})

test('a first list that never ends keeps those of other namespaces from nothing', async () => {
  const world = await opened(0, 4)
  for (let i = 0; i < 18; i++) world.server.put('pods', `${i < 9 ? 'a' : 'b'}/k${i}`)
  let held = 0
  world.server.fault = ({ what, path }) => {
    if (what !== 'page' || !path.includes('/namespaces/a/')) return undefined
    held++
    return { kind: 'status', code: 502 }
  }
  const [stuck, other] = ['a', 'b'].map((namespace) => new Client(world, { namespace }, false)) as [Client, Client]
  await stepping(world, [stuck, other], () => other.idle && held > 0)
  other.assertRight()
  assert.ok(held < 4, `${held} pages were asked for meanwhile`)
})

test('[A2] a watch that was compacted away is followed by a list, of which clients see the difference only', async () => {
  const world = await opened(9, 4)
  const { server } = world
  const clients = [await watching(world), await watching(world, {}, true)]
  server.reachability.set('unreachable')
  server.cutWatches()
  server.remove('pods', 'a/k1')
  server.put('pods', 'a/k2', { value: 'new' })
  server.remove('pods', 'a/k3')
  server.put('pods', 'a/k3', { value: 'made again' })
  server.put('pods', 'a/k9')
  server.compact()
  server.reachability.set('reachable')
  await stepping(world, clients, () => clients.every((one) => one.isRight()))
  const heard = clients.map((one) => one.heard.filter((frame) => !/^(BOOKMARK|SYNCED)/.test(frame)))
  for (const frames of heard) {
    const types = frames.slice(-5).map((frame) => frame.split(' ').slice(0, 2).join(' '))
    assert.deepEqual(types, ['DELETED a/k1', 'DELETED a/k3', 'MODIFIED a/k2', 'ADDED a/k3', 'ADDED a/k9'])
  }
  for (const client of clients) assert.deepEqual([client.lists, client.expired], [1, []])
})

test('[A1] a WATCH that comes first with a version is synced at exactly that one: nothing is missed', async () => {
  const world = await opened()
  const { server } = world
  const { version } = server
  const known = server.listed('pods')
  server.remove('pods', 'a/k1')
  server.put('pods', 'a/k5')
  const place = world.place('watch', {}, { state: 'version', version })
  assert.equal(place.kind, 'hold')
  await world.until(() => world.mirrored({})?.cache !== undefined)
  assert.equal(world.mirrored({})?.cache?.history.floor, version)
  const client = new Client(world, {})
  client.version = version
  for (const [key, text] of known) client.objects.set(key, text)
  await stepping(world, [client], () => client.isRight())
  assert.deepEqual([client.lists, client.expired], [0, []])
  assert.equal(server.requests.find((one) => one.what === 'list')?.query.get('resourceVersionMatch'), 'Exact')
})

test('[A1] if that version is gone its client is told 410, and its list finds a synced interest', async () => {
  const world = await opened()
  const { server } = world
  const client = new Client(world, {})
  client.version = server.version
  client.fromCloud = true
  server.put('pods', 'a/k5')
  server.compact()
  await stepping(world, [client], () => client.isRight() && client.idle)
  assert.deepEqual([client.lists, client.expired.length], [1, 1])
  assert.deepEqual(
    server.requests.map((one) => one.what),
    ['list', 'list', 'watch'],
  )
})

test('[A3] if it lies ahead, the newest state is synced and the watch is silent until then', async () => {
  const world = await opened()
  const { server } = world
  const client = new Client(world, {})
  client.version = server.version + 3
  client.objects.set('a/k0', 'as it saw it elsewhere')
  await stepping(world, [client], () => client.idle)
  server.put('pods', 'a/k0', { value: 'the client has seen this' })
  server.put('pods', 'a/k1', { value: 'and this' })
  server.put('pods', 'a/k2', { value: 'and this' })
  await world.pass(5_000)
  client.step()
  assert.deepEqual(
    client.heard.filter((frame) => !frame.startsWith('BOOKMARK')),
    [],
  )
  server.put('pods', 'a/k0', { value: 'but not this' })
  await stepping(world, [client], () => client.objects.get('a/k0')?.includes('but not this') === true)
  assert.deepEqual(client.expired, [])
})

for (const code of [401, 403, 404]) {
  test(`a refusal (${code}) changes no data: it is told, retried, and over when it is over`, async () => {
    const world = await opened()
    const { server } = world
    const client = await watching(world)
    server.fault = () => ({ kind: 'status', code })
    server.cutWatches()
    server.put('pods', 'a/k0', { value: 'new' })
    await world.until(() => world.mirrored({})?.state.kind === 'refused')
    await world.pass(120_000)
    assert.equal(world.mirrored({})?.cache?.size, 3)
    const { state } = world.mirrored({}) as MirroredInterest
    assert.equal(state.kind === 'refused' && state.code, code)
    assert.ok(server.requests.length < 30, `${server.requests.length} requests`)
    server.fault = () => undefined
    await stepping(world, [client], () => client.isRight(), 300)
    assert.deepEqual(client.expired, [])
    assert.deepEqual(world.confirmed, [])
  })
}

test('[A2] a cluster put back to lower versions: one 410 for each client, whether versions have passed ours or not', async () => {
  for (const writes of [0, 30]) {
    const world = await opened()
    const { server } = world
    const { version } = server
    for (let i = 0; i < 10; i++) server.put('pods', 'a/k0', { value: `lost ${i}` })
    const client = await watching(world)
    server.restore(version)
    let probed = false
    server.fault = ({ what }) => {
      // By the time of the list the new past has come further than ours.
      if (what === 'list' && !probed) for (let i = 0; i < writes; i++) server.put('pods', 'a/k0', { value: `won ${i}` })
      probed ||= what === 'list'
      return undefined
    }
    await stepping(world, [client], () => client.isRight() && client.idle)
    assert.deepEqual([client.lists, client.expired.length], [2, 1], `${writes} writes`)
  }
})

test('objects of another past with the same versions are not taken for ours', async () => {
  const world = await opened()
  const { server } = world
  const { version } = server
  for (let i = 0; i < 4; i++) server.put('pods', 'a/k0', { value: `lost ${i}` })
  const client = await watching(world)
  server.restore(version)
  server.put('pods', 'a/k0', { value: 'other' })
  server.put('pods', 'a/k1', { value: 'other' })
  await stepping(world, [client], () => client.isRight() && client.idle)
  assert.equal(client.expired.length, 1)
})

test('an API server that went away in order may come back as another: it is asked', async () => {
  const world = await opened()
  const { server } = world
  const { version } = server
  server.put('pods', 'a/k9')
  const client = await watching(world)
  server.endWatches()
  server.restore(version)
  await stepping(world, [client], () => client.isRight() && client.idle)
  assert.equal(client.expired.length, 1)
})

test('[A2] a restore that let versions go on is an ordinary gap', async () => {
  const world = await opened()
  const { server } = world
  const { version } = server
  server.put('pods', 'a/k0', { value: 'lost' })
  server.put('pods', 'a/k9', { value: 'lost' })
  server.remove('pods', 'a/k1')
  const clients = [await watching(world), await watching(world, { namespace: 'a' })]
  server.restore(version, 1_000)
  await stepping(world, clients, () => clients.every((one) => one.isRight()))
  for (const client of clients) assert.deepEqual([client.lists, client.expired], [1, []])
})

test('[D3] a full disk stops ingest, not reads; afterwards everything comes, and nothing upstream is left open', async () => {
  const world = await opened(9, 4)
  const { server } = world
  const client = await watching(world)
  world.refusing = true
  server.put('pods', 'a/k0', { value: 'new' })
  await world.pass(10_000)
  server.remove('pods', 'a/k1')
  server.compact()
  await world.pass(60_000)
  const { cache } = world.mirrored({}) as MirroredInterest
  assert.equal(cache?.size, 9)
  assert.equal(world.place('list', {}).kind, 'local')
  assert.ok(server.watches.size <= 1, `${server.watches.size} watches`)
  world.refusing = false
  await stepping(world, [client], () => client.isRight())
  assert.deepEqual(client.expired, [])
  assert.equal(server.watches.size, 1)
})

test('[D3] what the disk refused comes though nothing else happens that would tell of it', async () => {
  const world = await opened(9, 4)
  const client = await watching(world)
  world.refusing = true
  world.server.put('pods', 'a/k0', { value: 'new' })
  await world.pass(100)
  world.refusing = false
  await world.pass(2_000)
  assert.equal(world.server.watches.size, 1)
  await stepping(world, [client], () => client.isRight())
})

test('[D3] a first sync that the disk refuses is answered by nobody until it is there', async () => {
  const world = await opened()
  world.refusing = true
  const client = new Client(world, {})
  await stepping(world, [client], () => world.server.count('list') > 3)
  assert.deepEqual([client.lists, world.place('list', {}).kind], [0, 'hold'])
  world.refusing = false
  await stepping(world, [client], () => client.isRight() && client.idle)
  // What was refused is written down after all.
  await world.pass(6_000)
  await world.reopen()
  assert.equal(world.place('list', {}).kind, 'local')
})

test('[D4] damaged bytes are found, fetched again, and no client hears of it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ake-reflector-'))
  const server = new ApiServer()
  for (let i = 0; i < 3; i++) server.put('pods', `a/k${i}`, { value: 'value to be damaged' })
  try {
    const first = openDurable({ folder, historyBytesMax: 1 << 28 })
    const world = new MirrorWorld({ server, store: first })
    await world.start()
    const disk = async (holds: () => boolean) => {
      await until(async () => {
        if (!holds()) await world.pass(250)
        return holds()
      }, String(holds))
    }
    world.begin({})
    await disk(() => synced(world.mirrored({})))
    world.crash()
    await first.close()
    const file = join(folder, 'log', '0000000001.log')
    const log = readFileSync(file)
    log.write('DAMAGED', log.indexOf('damaged', log.indexOf('"k1"')))
    writeFileSync(file, log)
    server.reachability.set('unreachable')
    const second = openDurable({ folder, historyBytesMax: 1 << 28 })
    world.store = second
    await world.start()
    const cache = world.mirrored({})?.cache
    assert.deepEqual([...(cache?.corrupt ?? [])], ['a/k1'])
    const client = new Client(world, {})
    client.version = cache?.version as number
    client.step()
    const getPlace = () => world.place('get', { namespace: 'a', fields: 'metadata.name=k1' }, { key: 'a/k1' }).kind
    assert.throws(getPlace, /no local copy/)
    server.reachability.set('reachable')
    assert.deepEqual(
      [getPlace(), world.place('list', {}).kind, world.place('watch', {}).kind],
      Array(3).fill('forward'),
    )
    await disk(() => [...(cache?.corrupt ?? [])].length === 0)
    client.step()
    await disk(() => true)
    assert.equal(String(cache?.get('a/k1')?.bytes), server.get('pods', 'a/k1')?.text)
    assert.deepEqual(
      client.heard.filter((frame) => !frame.startsWith('BOOKMARK')),
      [],
    )
    assert.deepEqual([cache?.version, server.watches.size], [server.version, 1])
    // What happens next under the very next version is not lost.
    server.put('pods', 'a/k0', { value: 'next' })
    await disk(() => String(cache?.get('a/k0')?.bytes).includes('next'))
    world.crash()
    await second.close()
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('failures are followed by longer pauses, and good news cuts them short', async () => {
  const world = await opened()
  const { server } = world
  const client = await watching(world)
  server.fault = () => ({ kind: 'refuse' })
  server.cutWatches()
  await world.pass(300_000, 600)
  const asked = server.requests.length
  assert.ok(asked > 8 && asked < 40, `${asked} requests in five minutes`)
  server.fault = () => undefined
  server.reachability.set('unreachable')
  await world.pass(1_000)
  server.reachability.set('reachable')
  server.put('pods', 'a/k0', { value: 'new' })
  await stepping(world, [client], () => client.isRight(), 5)
})

test('an API server that forgets faster than it lists is not asked in a loop', async () => {
  const world = await opened(2, 1)
  const { server } = world
  server.fault = ({ what }) => {
    // A loop would never let go of this process: it is let out of it.
    if (what === 'list' || server.requests.length > 500) return undefined
    server.put('pods', 'a/k0')
    server.compact()
    return what === 'watch' ? { kind: 'status', code: 410 } : undefined
  }
  world.begin({})
  await world.pass(60_000, 240)
  const lists = server.count('list')
  assert.ok(lists > 3 && lists < 30, `${lists} lists in a minute`)
})

test('frames that break off in the middle come again, and nothing is made of their halves', async () => {
  const world = await opened()
  const { server } = world
  const client = await watching(world)
  let cut = 150
  server.fault = ({ what }) => {
    if (what !== 'watch' || cut >= 400) return undefined
    cut += 7
    return { kind: 'cut', after: cut }
  }
  server.cutWatches()
  for (let i = 0; i < 20; i++) {
    server.put('pods', `a/k${i % 4}`, { value: `${i}` })
    await world.pass(2_000)
    client.step()
  }
  await stepping(world, [client], () => client.isRight(), 600)
  assert.deepEqual([client.lists, client.expired], [1, []])
})
