import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiServer } from './apiserver.test-support.ts'
import { Client, stepping } from './client.test-support.ts'
import { interestOf } from './interest.ts'
import { mirrorLimits } from './mirror.ts'
import type { MirroredInterest } from './mirrored.ts'
import { MirrorWorld, scopeOf, settle } from './world.test-support.ts'

const hourMs = 3_600_000

async function opened(parts: { limits?: { objects: number; bytes: number } } = {}): Promise<MirrorWorld> {
  const server = new ApiServer()
  for (let i = 0; i < 4; i++) server.put('pods', `a/k${i}`, { labels: { app: 'web' }, node: `n${i}` })
  return await MirrorWorld.open({ server, ...parts })
}

/** Long times in ticks of the interests' own. */
async function long(world: MirrorWorld, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 5_000) {
    world.server.clock.advance(5_000)
    for (let turn = 0; turn < 12; turn++) await Promise.resolve()
  }
  await world.pass(10_000)
}

const names = (world: MirrorWorld) => [...world.interests.all].map((mirrored) => mirrored.interest.name).sort()

test('[A2] interests are written down with what is known of them, and are there again after a restart, offline', async () => {
  const world = await opened()
  const wishes = [{}, { namespace: 'a', labels: 'app=web' }, { fields: 'spec.nodeName=n1' }]
  for (const wish of wishes) world.begin(wish)
  world.begin({ resource: 'configmaps' }, { standing: true })
  await world.until(() => [...world.interests.all].every((mirrored) => mirrored.cache !== undefined))
  const before = names(world)
  const records = [...world.interests.all].map(({ interest, record }) => [interest.name, { ...record }] as const)
  world.server.reachability.set('unreachable')
  await world.reopen()
  assert.deepEqual(names(world), before)
  assert.deepEqual(
    [...world.interests.all].map(({ interest, record }) => [interest.name, { ...record }] as const).sort(),
    records.sort(),
  )
  assert.deepEqual([...world.interests.all].map((mirrored) => mirrored.cache?.size).sort(), [0, 1, 4, 4])
  assert.equal(world.mirrored({ resource: 'configmaps' })?.record.standing, true)
  // The fields that selectors need were read again, before any discovery.
  assert.ok(world.mirrored({ fields: 'spec.nodeName=n1' })?.cache?.get('a/k1')?.fields.includes('n1'))
})

test('[A1] an interest whose first sync was cut is there after a restart, and answers nothing', async () => {
  const world = await opened()
  world.server.pageMax = 2
  world.server.fault = ({ what }) => (what === 'page' ? { kind: 'refuse' } : undefined)
  world.begin({})
  await world.pass(2_000)
  world.server.reachability.set('unreachable')
  await world.reopen()
  assert.deepEqual(names(world), ['v1/pods'])
  assert.equal(world.mirrored({})?.cache, undefined)
  assert.throws(() => world.place('list', {}), /no local copy/)
})

test('what nobody has asked for a day, running and reachable, is let go with all its data', async () => {
  const world = await opened()
  const mirrored = world.begin({}) as MirroredInterest
  world.begin({ resource: 'configmaps' }, { standing: true })
  await world.until(() => mirrored.cache !== undefined)
  await long(world, 20 * hourMs)
  world.place('list', {})
  await long(world, 20 * hourMs)
  assert.equal(world.interests.size, 2)
  await long(world, 5 * hourMs)
  assert.deepEqual(names(world), ['v1/configmaps'])
  assert.deepEqual(
    (await world.store.load()).interests.map((one) => one.name),
    ['v1/configmaps'],
  )
  assert.equal((await world.store.records('interest')).length, 1)
  assert.equal(world.server.watches.size, 1)
})

test('a caller that watches asks all the time', async () => {
  const world = await opened()
  const client = new Client(world, {})
  for (let i = 0; i < 20; i++) {
    await world.pass(500)
    client.step()
  }
  assert.ok(client.idle)
  await long(world, 30 * hourMs)
  assert.equal(world.interests.size, 1)
})

test('nothing ends while the cloud is away, and that time does not count', async () => {
  const world = await opened()
  const mirrored = world.begin({}) as MirroredInterest
  await world.until(() => mirrored.cache !== undefined)
  await long(world, 10 * hourMs)
  world.server.reachability.set('unreachable')
  world.server.cutWatches()
  await long(world, 40 * hourMs)
  assert.equal(world.interests.size, 1)
  await world.reopen()
  await long(world, 40 * hourMs)
  world.server.reachability.set('reachable')
  await long(world, 10 * hourMs)
  assert.equal(world.interests.size, 1)
  // What was counted before the restart still is: ten hours and ten, less what a restart may forget.
  await long(world, 5 * hourMs)
  assert.equal(world.interests.size, 0)
})

test('a refusal is believed after minutes, and only when the cloud confirms it; the data go later still', async () => {
  const world = await opened()
  const { server } = world
  const client = new Client(world, {})
  for (let i = 0; i < 20; i++) {
    await world.pass(500)
    client.step()
  }
  server.fault = () => ({ kind: 'status', code: 403 })
  server.cutWatches()
  await world.pass(mirrorLimits.refusalMsMin - 30_000, 100)
  assert.deepEqual(world.confirmed, [])
  await world.pass(60_000)
  assert.ok(world.confirmed.length > 0, 'it was asked')
  assert.equal(world.place('list', {}).kind, 'local', 'and said that it may be read')
  world.confirms = true
  await world.pass(40_000)
  assert.notEqual(world.mirrored({})?.withdrawnAtMs, undefined)
  assert.equal(world.place('list', {}).kind, 'forward')
  client.step()
  await settle()
  client.step()
  assert.equal(
    client.heard.some((frame) => frame.startsWith('ERROR')),
    false,
    'its watch ended in order',
  )
  // A cut line takes nothing back.
  server.fault = () => ({ kind: 'refuse' })
  await world.pass(60_000)
  assert.notEqual(world.mirrored({})?.withdrawnAtMs, undefined)
  server.fault = () => ({ kind: 'status', code: 403 })
  await world.pass(mirrorLimits.withdrawnMsMin / 2, 60)
  assert.equal((await world.store.load()).interests.length, 1)
  await world.pass(mirrorLimits.withdrawnMsMin, 200)
  assert.deepEqual([world.interests.size, (await world.store.load()).interests.length], [0, 0])
})

test('what an option names is emptied by a refusal that is confirmed twice, is not asked about while it is empty, and comes again', async () => {
  const world = await opened()
  const { server } = world
  const mirrored = world.begin({}, { standing: true, by: ['reader', 'system:node:n1'] }) as MirroredInterest
  await world.until(() => mirrored.cache !== undefined)
  const heard: (readonly string[])[] = []
  let isMeant = true
  world.confirms = (_, callers) => {
    heard.push(callers)
    return Promise.resolve(isMeant)
  }
  server.fault = () => ({ kind: 'status', code: 403 })
  server.cutWatches()
  await world.until(() => mirrored.withdrawnAtMs !== undefined, 600)
  assert.deepEqual(heard, [['reader']], 'the node is judged by itself')
  // What cannot be confirmed again when the time has come stays, and is asked about now and then.
  isMeant = false
  await world.pass(mirrorLimits.withdrawnMsMin + 5 * 60_000, 200)
  assert.equal((await world.store.load()).interests.length, 1)
  assert.ok(heard.length > 3 && heard.length < 13, `${heard.length} questions`)
  isMeant = true
  await world.pass(60_000)
  assert.deepEqual([mirrored.isEmptied, (await world.store.load()).interests.length], [true, 0])
  const { length } = heard
  await world.pass(30 * 60_000, 300)
  assert.equal(heard.length, length)
  assert.equal(world.place('list', {}).kind, 'forward')
  server.fault = () => undefined
  await world.until(() => mirrored.cache?.size === 4, 600)
  await world.pass(10_000)
  assert.deepEqual([mirrored.isEmptied, mirrored.withdrawnAtMs], [false, undefined])
})

test('[A2] a refusal that was believed too soon is forgotten: the data are there again, with their history', async () => {
  const world = await opened()
  const { server } = world
  const mirrored = world.begin({}) as MirroredInterest
  await world.until(() => mirrored.cache !== undefined)
  const floor = mirrored.cache?.history.floor
  world.confirms = true
  server.fault = () => ({ kind: 'status', code: 404 })
  server.cutWatches()
  await world.until(() => mirrored.withdrawnAtMs !== undefined, 600)
  server.fault = () => undefined
  server.put('pods', 'a/k0', { value: 'meanwhile' })
  await world.until(() => mirrored.withdrawnAtMs === undefined, 120)
  assert.deepEqual([mirrored.cache?.history.floor, mirrored.cache?.version], [floor, server.version])
})

test('a credential that is no longer accepted says nothing about data', async () => {
  const world = await opened()
  const mirrored = world.begin({}) as MirroredInterest
  await world.until(() => mirrored.cache !== undefined)
  world.confirms = true
  world.server.fault = () => ({ kind: 'status', code: 401 })
  world.server.cutWatches()
  await world.pass(3 * mirrorLimits.refusalMsMin, 200)
  assert.deepEqual([world.confirmed, mirrored.withdrawnAtMs, mirrored.cache?.size], [[], undefined, 4])
})

test('there is a limit to interests; what an option names comes on top', async () => {
  const world = await opened()
  world.server.reachability.set('unreachable')
  for (let i = 0; i < mirrorLimits.interestsMax; i++)
    assert.ok(world.begin({ namespace: `n${i}` }, { by: [`caller${i % 10}`] }))
  assert.equal(world.begin({}, { by: ['caller0'] }), undefined)
  assert.ok(world.begin({ namespace: 'n7' }), 'what is there is there')
  world.server.reachability.set('reachable')
  assert.equal(world.place('list', {}, { caller: 'caller0' }).kind, 'forward')
  assert.ok(world.begin({}, { standing: true }))
})

test('a first list beyond the limit is passed through, and a read that waits for it is told at once', async () => {
  const world = await opened({ limits: { objects: 3, bytes: 1 << 20 } })
  const place = world.place('list', {})
  assert.ok(place.kind === 'hold')
  const outcome = place.mirrored.synced(10_000)
  await world.pass(500, 5)
  assert.equal(await outcome, 'refused')
  assert.equal(world.mirrored({})?.state.kind, 'tooLarge')
  assert.equal(world.place('list', {}).kind, 'forward')
  assert.equal(world.place('watch', {}).kind, 'forward')
  // What is mirrored already stays mirrored, however much it grows.
  const small = world.begin({ fields: 'metadata.name=k1' }) as MirroredInterest
  await world.until(() => small.cache !== undefined)
  for (let i = 0; i < 9; i++) world.server.put('pods', `n${i}/k1`)
  world.server.cutWatches()
  world.server.compact()
  await world.until(() => small.cache?.size === 10)
})

test('a read that waits for a first sync waits no longer than asked', async () => {
  const world = await opened()
  world.server.fault = () => ({ kind: 'slow', ms: 15_000 })
  const mirrored = world.begin({}) as MirroredInterest
  const outcome = mirrored.synced(10_000)
  await world.pass(9_900, 99)
  let told = false
  void outcome.then(() => {
    told = true
  })
  await settle()
  assert.equal(told, false)
  await world.pass(200)
  assert.equal(await outcome, 'late')
  assert.equal(await Promise.race([mirrored.synced(60_000), world.pass(60_000)]), 'synced')
})

test('an interest that is asked for again while it ends is kept', async () => {
  const world = await opened()
  const mirrored = world.begin({}) as MirroredInterest
  await world.until(() => mirrored.cache !== undefined)
  const ending = world.interests.end(mirrored, 'a test')
  const again = world.begin({}) as MirroredInterest
  assert.notEqual(again, mirrored)
  await ending
  await world.until(() => again.state.kind === 'synced')
  assert.equal(world.server.count('list'), 1, 'it goes on with what is there')
  await world.reopen()
  assert.deepEqual(names(world), ['v1/pods'])
  assert.notEqual(world.mirrored({})?.cache, undefined)
})

test('an interest that has ended already does not take with it what a caller began again', async () => {
  const world = await opened()
  const mirrored = world.begin({}) as MirroredInterest
  await world.until(() => mirrored.state.kind === 'synced')
  await world.interests.end(mirrored, 'a test')
  const again = world.begin({}) as MirroredInterest
  await world.until(() => again.state.kind === 'synced')
  await world.interests.end(mirrored, 'a test that had waited')
  assert.equal(world.mirrored({}), again)
  assert.notEqual(again.cache, undefined)
  await world.reopen()
  assert.deepEqual(names(world), ['v1/pods'])
})

test('[D3] what a full disk refused to write down of an interest is written when there is room', async () => {
  const world = await opened()
  const mirrored = world.begin({}) as MirroredInterest
  await world.until(() => mirrored.state.kind === 'synced')
  world.refusing = true
  world.begin({}, { standing: true })
  await world.pass(10_000)
  world.refusing = false
  await world.pass(6_000)
  await world.reopen()
  assert.equal(world.mirrored({})?.record.standing, true)
})

test('objects without a record are what was left of an interest that ended: they go', async () => {
  const world = await opened()
  const mirrored = world.begin({}) as MirroredInterest
  await world.until(() => mirrored.cache !== undefined)
  const { name } = interestOf(scopeOf({}))
  world.crash()
  await world.store.commit({ changes: [], records: [{ kind: 'interest', key: name, value: undefined }], synced: false })
  await world.start()
  await settle()
  assert.deepEqual([world.interests.size, (await world.store.load()).interests], [0, []])
})

test('[A1] an interest that may be of a lost past is not read until the cloud, if it is there, has said that it is not', async () => {
  const server = new ApiServer()
  for (let i = 0; i < 4; i++) server.put('pods', `a/k${i}`, { labels: { app: i % 2 === 0 ? 'web' : 'api' } })
  const world = await MirrorWorld.open({ server })
  const web = world.begin({ labels: 'app=web' }) as MirroredInterest
  const api = world.begin({ labels: 'app=api' }) as MirroredInterest
  await world.until(() => web.state.kind === 'synced' && api.state.kind === 'synced')
  api.doubt()
  assert.equal(api.readable, undefined, 'it may be of a lost past')
  assert.ok(api.cache !== undefined, 'its data stay')
  assert.equal(await Promise.race([api.synced(1_000), Promise.resolve('waits')]), 'waits')
  server.reachability.set('unreachable')
  assert.ok(api.readable !== undefined, 'nobody can say while the cloud is away: what is known counts')
  server.reachability.set('reachable')
  await world.until(() => api.readable !== undefined)
})

test('[A3] a lost past that one resource shows is looked for in all: a busy object may stand at the same version in both', async () => {
  const server = new ApiServer()
  server.put('configmaps', 'a/leader')
  server.put('pods', 'a/k0')
  const { version } = server
  server.put('configmaps', 'a/ghost')
  server.put('pods', 'a/gone')
  server.put('configmaps', 'a/leader', { value: 'renewed' })
  const world = await MirrorWorld.open({ server })
  const clients = [new Client(world, { resource: 'configmaps' }), new Client(world, {})] as const
  await stepping(world, clients, () => clients.every((one) => one.idle))
  server.restore(version)
  server.put('pods', 'a/k0', { value: 'other' })
  server.put('pods', 'a/k0', { value: 'another' })
  server.put('configmaps', 'a/leader', { value: 'renewed' })
  server.put('pods', 'a/k0', { value: 'the last' })
  await stepping(world, clients, () => clients.every((one) => one.isRight()))
  await world.pass(5_000)
  const lists = (resource: string) => server.requests.filter((one) => one.what === 'list' && one.resource === resource)
  assert.equal(world.mirrored({ resource: 'configmaps' })?.cache?.size, 1)
  assert.ok(
    lists('configmaps').length <= 3 && lists('pods').length <= 3,
    'and neither has the other look again and again',
  )
})

test('many informers of one resource cost one upstream list and one watch', async () => {
  const world = await opened()
  const clients = Array.from(
    { length: 20 },
    (_, i) => new Client(world, i % 2 === 0 ? {} : { labels: 'app=web' }, i > 9),
  )
  clients[0]?.step()
  for (let i = 0; i < 40; i++) {
    await world.pass(250)
    for (const client of clients) client.step()
  }
  for (const client of clients) client.assertRight()
  assert.deepEqual(
    world.server.requests.map((one) => one.what),
    ['list', 'watch'],
  )
})

test('a process that ends in order leaves nothing open', async () => {
  const world = await opened()
  const mirrored = world.begin({}) as MirroredInterest
  await world.until(() => mirrored.cache !== undefined)
  await world.stop()
  assert.equal(world.server.watches.size, 0)
})

test('after a renewed credential all that was refused is asked for at once, also what was under way with the old one', async () => {
  await using world = await opened()
  const { server } = world
  const wishes = [{ namespace: 'a' }, { namespace: 'b' }, { resource: 'configmaps' }, { resource: 'secrets' }]
  const all = wishes.map((wish) => world.begin(wish) as MirroredInterest)
  const are = (kind: string) => all.every(({ state }) => state.kind === kind)
  await world.until(() => are('synced'))
  for (const isUnderWay of [false, true]) {
    await world.pass(10_000)
    server.fault = () => ({ kind: 'status', code: 401 })
    server.cutWatches()
    await world.pass(3 * 60_000, 360)
    assert.ok(are('refused'), all.map(({ state }) => state.kind).join())
    if (isUnderWay) {
      let isRenewed = false
      server.fault = () => {
        if (isRenewed) return undefined
        isRenewed = true
        world.interests.hurry()
        return { kind: 'status', code: 401 }
      }
      await world.until(() => isRenewed)
    } else {
      server.fault = () => undefined
      world.interests.hurry()
    }
    await world.pass(2_500)
    assert.ok(are('synced'), `under way: ${isUnderWay}: ${all.map(({ state }) => state.kind).join()}`)
  }
})
