/** What comes and what goes when the budget of bytes, of interests or of one caller is used up. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiServer } from './apiserver.test-support.ts'
import { Client, stepping } from './client.test-support.ts'
import { mirrorLimits } from './mirror.ts'
import { MirrorWorld, type Wish } from './world.test-support.ts'

const kubelet = 'system:node:n1'
const { idleMsMin } = mirrorLimits
const [interestsMax, interestsPerCallerMax] = [100, 30]

async function opened(bytesMax = 1 << 28): Promise<MirrorWorld> {
  const server = new ApiServer()
  server.put('pods', 'a/k0', { labels: { app: 'web' } })
  return await MirrorWorld.open({ server, budget: { bytesMax, interestsMax, interestsPerCallerMax } })
}

const names = (world: MirrorWorld) => [...world.interests.all].map(({ interest }) => interest.name)
/** A caller asks, and what it asked for is synced: whether it is mirrored. */
async function asks(world: MirrorWorld, caller: string, wish: Wish): Promise<boolean> {
  const place = world.place('list', wish, { caller })
  if (place.kind !== 'hold') return place.kind === 'local'
  const outcome = place.mirrored.synced(60_000)
  await world.pass(2_000)
  return (await outcome) === 'synced'
}

/** A GET of an object that the cloud has. */
function gets(world: MirrorWorld, caller: string, at: number, namespace = `ns${at}`): void {
  const key = `${namespace}/x${at}`
  const wish = { namespace, fields: `metadata.name=x${at}` }
  if (world.place('get', wish, { caller, key }).kind !== 'forward') return
  world.found(wish, { caller, key })
}

test('names that one caller reads by the hundred leave room for lists, its own and others’, also after a restart', async () => {
  await using world = await opened()
  for (let at = 0; at < 60; at++) gets(world, 'operator', at)
  assert.equal(world.interests.size, interestsPerCallerMax)
  for (let at = 0; at < 60; at++) gets(world, 'second', at + 1_000)
  for (let at = 0; at < 60; at++) gets(world, 'third', at + 2_000)
  for (let at = 0; at < 60; at++) gets(world, 'fourth', at + 3_000)
  assert.equal(world.interests.size, interestsMax)
  for (const life of ['first', 'second']) {
    assert.ok(await asks(world, 'operator', { labels: `own=${life}` }), 'its own list')
    assert.ok(await asks(world, 'cni', { labels: `other=${life}` }), 'another’s')
    assert.equal(world.interests.size, interestsMax)
    // Whose the names are is written down: they are no newcomer's after a restart.
    gets(world, 'operator', life === 'first' ? 901 : 902)
    assert.ok(!names(world).some((name) => name.includes('x90')), 'the caller has its share')
    await world.reopen()
  }
})

test('the kubelet’s stay, whatever others ask for; and theirs give way to it', async () => {
  await using world = await opened()
  for (let at = 0; at < 20; at++) gets(world, kubelet, at)
  assert.ok(await asks(world, kubelet, { fields: 'spec.nodeName=n1' }))
  for (const caller of ['a', 'b', 'c', 'd', 'e']) {
    for (let at = 0; at < interestsPerCallerMax + 10; at++)
      world.place('list', { labels: `${caller}=${at}` }, { caller })
  }
  assert.equal(world.interests.size, interestsMax)
  assert.equal(names(world).filter((name) => /x\d+$|spec.nodeName/.test(name)).length, 21)
  gets(world, kubelet, 20)
  assert.ok(names(world).some((name) => name.endsWith('x20')))
  assert.equal(world.interests.size, interestsMax)
})

test('what the kubelet reads from another caller’s wider list becomes its own, and outlives that list', async () => {
  await using world = await opened()
  assert.ok(await asks(world, 'operator', {}))
  const wish = { namespace: 'a', fields: 'metadata.name=k0' }
  assert.equal(world.place('get', wish, { caller: kubelet, key: 'a/k0', state: 'any' }).kind, 'local')
  assert.equal(world.mirrored({})?.record.node, false, 'it keeps no more than it asked for')
  await world.until(() => world.mirrored(wish)?.state.kind === 'fed')
  const wide = world.mirrored({})
  assert.ok(wide)
  await world.interests.end(wide, 'a test')
  world.server.reachability.set('unreachable')
  assert.equal(world.place('get', wish, { caller: kubelet, key: 'a/k0', state: 'any' }).kind, 'local')
})

test('nothing is evicted while the cloud is away: what is new is refused', async () => {
  await using world = await opened()
  for (const caller of ['a', 'b', 'c', 'd']) for (let at = 0; at < 30; at++) gets(world, caller, at, `${caller}${at}`)
  const before = names(world)
  assert.equal(before.length, interestsMax)
  world.server.reachability.set('suspect')
  assert.equal(world.place('list', { labels: 'x' }, { caller: 'late' }).kind, 'forward')
  world.server.reachability.set('unreachable')
  assert.throws(() => world.place('list', { labels: 'x' }, { caller: 'late' }), /no local copy/)
  assert.deepEqual(names(world), before)
})

test('beyond the budget of bytes what was not asked for lately goes, then what its callers hold most of', async () => {
  await using world = await opened(100_000)
  const value = 'v'.repeat(9_000)
  for (const place of ['a', 'b', 'c'])
    for (let at = 0; at < 4; at++) world.server.put('pods', `${place}/p${at}`, { value })
  assert.ok(await asks(world, 'one', { namespace: 'a' }))
  await world.pass(idleMsMin + 10_000)
  assert.ok(await asks(world, 'two', { namespace: 'b' }))
  assert.ok(await asks(world, 'three', { namespace: 'c' }))
  assert.deepEqual(names(world), ['v1/pods@b', 'v1/pods@c'], 'the least recently asked went for the newcomer')
  // Those in use do not: what is new is passed through, and it is told why.
  assert.ok(!(await asks(world, 'one', { namespace: 'a' })))
  assert.equal(world.mirrored({ namespace: 'a' })?.state.kind, 'tooLarge')
  assert.equal(world.mirrored({ namespace: 'b' })?.cache?.size, 4)
  assert.ok(world.interests.budget.bytes <= 100_000)
  // The kubelet's comes all the same; and what grows makes the largest holder give.
  assert.ok(await asks(world, kubelet, { namespace: 'a', labels: '!none' }))
  assert.ok(world.interests.budget.bytes <= 100_000)
  assert.ok(world.mirrored({ namespace: 'a', labels: '!none' }))
})

test('[A2] a watch whose interest is evicted ends in order', async () => {
  await using world = await opened(50_000)
  world.server.put('pods', 'a/large', { value: 'v'.repeat(30_000) })
  const client = new Client(world, { namespace: 'a' })
  await stepping(world, [client], () => client.idle)
  const { watcher } = client
  await world.pass(20_000)
  world.server.put('configmaps', 'b/large', { value: 'v'.repeat(30_000) })
  assert.ok(await asks(world, kubelet, { resource: 'configmaps' }))
  assert.deepEqual(names(world), ['v1/configmaps'])
  await stepping(world, [client], () => client.watcher !== watcher)
  assert.deepEqual(
    client.heard.filter((frame) => frame.startsWith('ERROR')),
    [],
  )
})

test('what is refused is told: how full it is, what was passed through and why, and how often', async () => {
  await using world = await opened()
  const { budget } = world.interests
  assert.match(
    budget.figures().join(''),
    /\nake_turned_away_total 0\n/,
    'before it has happened, or its rate is unknown',
  )
  for (let at = 0; at < interestsPerCallerMax + 2; at++) world.place('list', { labels: `n=${at}` }, { caller: 'flood' })
  assert.deepEqual(
    budget.turnedAway.map(({ interest, why }) => [interest.name, why]),
    [30, 31].map((at) => [`v1/pods?n=${at}&`, `its caller has ${interestsPerCallerMax} interests`]),
  )
  const figures = budget.figures().join('')
  assert.match(figures, /\nake_turned_away_total 2\n/)
  assert.match(figures, /\nake_mirror_bytes_max \d+\n/)
  await world.pass(idleMsMin + 10_000)
  assert.deepEqual(budget.turnedAway, [])
})

test('bytes that several interests hold count once', async () => {
  await using world = await opened(10_000)
  for (let at = 0; at < 5; at++) world.server.put('pods', `a/p${at}`, { value: 'v'.repeat(900), labels: { app: 'x' } })
  for (let at = 0; at < 6; at++) assert.ok(await asks(world, 'operator', { labels: `app,n!=${at}` }), `${at}`)
  assert.equal(world.interests.size, 6)
  const { bytes } = world.interests.budget
  assert.ok(bytes > 4_500 && bytes < 6_000, `${bytes} bytes`)
})

const budgetBytes = 40_000

/** Six selectors of one caller over the same 10 KB, and another caller's namespace of some 26 KB, which has come before or after. */
async function overlapping(first: 'operator' | 'cni'): Promise<MirrorWorld> {
  const world = await opened(budgetBytes)
  for (let at = 0; at < 5; at++) {
    world.server.put('pods', `a/p${at}`, { value: 'v'.repeat(1_800), labels: { app: 'x' } })
    world.server.put('pods', `b/p${at}`, { value: 'v'.repeat(5_000) })
  }
  const asked = {
    operator: async () => {
      for (let at = 0; at < 6; at++) assert.ok(await asks(world, 'operator', { labels: `app=x,n!=${at}` }), `${at}`)
    },
    cni: async () => assert.ok(await asks(world, 'cni', { namespace: 'b' })),
  }
  for (const caller of first === 'cni' ? (['cni', 'operator'] as const) : (['operator', 'cni'] as const))
    await asked[caller]()
  assert.equal(world.interests.size, 7)
  // It grows, by more than is free.
  for (let at = 0; at < 2; at++) world.server.put('pods', `b/more${at}`, { value: 'v'.repeat(3_000) })
  await world.until(() => world.interests.budget.bytes > budgetBytes, 4)
  return world
}

test('selectors of one caller over the same objects weigh what these weigh: what frees room goes, and they stay', async () => {
  await using world = await overlapping('cni')
  await world.pass(6_000)
  assert.equal(names(world).filter((name) => name.includes('app')).length, 6)
  assert.equal(world.mirrored({ namespace: 'b' }), undefined)
  assert.ok(world.interests.budget.bytes <= budgetBytes)
})

test('where interests that hold the same have to go, all of them go at once, until the rest fits', async () => {
  await using world = await overlapping('operator')
  await world.pass(6_000)
  assert.deepEqual(names(world), ['v1/pods@b'])
  assert.ok(world.interests.budget.bytes <= budgetBytes)
})
