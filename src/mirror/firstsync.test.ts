/** A first sync that cannot come about: callers get the API server's own answers, and it is tried again later. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiServer, type Fault, type ServerRequest } from './apiserver.test-support.ts'
import { Client, stepping } from './client.test-support.ts'
import { mirrorLimits } from './mirror.ts'
import type { MirroredInterest } from './mirrored.ts'
import { MirrorWorld } from './world.test-support.ts'

const page = (version: string, item = '') =>
  `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"${version}"},"items":[${item}]}`
const beyond = '9007199254740993'
const lists =
  (fault: Fault) =>
  ({ what }: ServerRequest) =>
    what === 'watch' ? undefined : fault

type Cause = {
  fault: (request: ServerRequest) => Fault | undefined
  why: RegExp
  state?: MirroredInterest['state']['kind']
}

const causes: Record<string, Cause> = {
  'versions no number holds': { fault: lists({ kind: 'text', text: page(beyond) }), why: /version/ },
  'an object of such a version': {
    fault: lists({
      kind: 'text',
      text: page('9', `{"metadata":{"name":"x","namespace":"a","resourceVersion":"${beyond}"}}`),
    }),
    why: /no resourceVersion/,
  },
  'an object that cannot be read': { fault: lists({ kind: 'text', text: page('9', '{"metadata":7}') }), why: /./ },
  'a list of another kind': {
    fault: lists({ kind: 'text', text: page('9').replace('Pod', 'Ox') }),
    why: /another kind/,
  },
  'LIST answers 500': { fault: lists({ kind: 'status', code: 500 }), why: /answers 500/ },
  'LIST answers 413': { fault: lists({ kind: 'status', code: 413 }), why: /answers 413/ },
  'LIST is cut off': { fault: lists({ kind: 'cut', after: 20 }), why: /cut/ },
  'LIST takes for ever': { fault: lists({ kind: 'slow', ms: 3_600_000 }), why: /takes too long/ },
  'no watch can be opened': {
    fault: ({ what }) => (what === 'watch' ? { kind: 'status', code: 500 } : undefined),
    why: /answers 500/,
  },
  'the edge may list and not watch': {
    fault: ({ what }) => (what === 'watch' ? { kind: 'status', code: 403 } : undefined),
    why: /answers 403/,
    state: 'refused',
  },
  'every watch ends at once': {
    fault: ({ what }) => (what === 'watch' ? { kind: 'text', text: '' } : undefined),
    why: /ended the watch/,
  },
}

for (const [name, { fault, why, state = 'failing' }] of Object.entries(causes)) {
  test(`[A1] ${name}: standing for a bounded time, then passed through with the reason, tried again later`, async () => {
    const server = new ApiServer({ random: (below) => below - 1 })
    server.put('pods', 'a/k0')
    await using world = await MirrorWorld.open({ server })
    server.fault = fault
    assert.equal(world.place('list', {}).kind, 'hold')
    await world.pass(mirrorLimits.firstSyncMsMax + 5_000, 100)
    const mirrored = world.mirrored({}) as MirroredInterest
    for (const verb of ['list', 'watch', 'get'] as const) assert.equal(world.place(verb, {}).kind, 'forward', verb)
    assert.equal(mirrored.state.kind, state)
    assert.match('why' in mirrored.state ? mirrored.state.why : '', why)
    assert.ok(mirrored.hopeless)
    assert.equal(await mirrored.synced(10_000), 'refused')
    // It is asked for every few minutes, where only a right is missing twice a minute, and no caller is held again meanwhile.
    await world.pass(20 * 60_000, 600)
    const before = server.requests.length
    await world.pass(10 * 60_000, 600)
    assert.ok(
      server.requests.length - before <= (state === 'refused' ? 90 : 40),
      `${server.requests.length - before} requests in ten minutes`,
    )
    assert.equal(world.place('list', {}).kind, 'forward')
    // Offline nothing was ever mirrored.
    server.reachability.set('unreachable')
    server.cutWatches()
    if (mirrored.cache === undefined) assert.throws(() => world.place('list', {}), /no local copy/)
    await world.pass(60_000)
    server.reachability.set('reachable')
    assert.notEqual(world.place('list', {}).kind, 'hold')
    // And when it can be had, it is.
    server.fault = () => undefined
    await world.until(() => world.place('list', {}).kind === 'local', 900)
    await world.pass(60_000)
    assert.equal(mirrored.state.kind, 'synced')
    assert.equal(mirrored.hopeless, false)
  })
}

test('[A1] what is synced already keeps its data, and answers, whatever its lists and watches do later', async () => {
  const server = new ApiServer()
  server.put('pods', 'a/k0')
  const world = await MirrorWorld.open({ server })
  const client = new Client(world, {})
  await stepping(world, [client], () => client.idle)
  await world.pass(10_000)
  server.fault = () => ({ kind: 'status', code: 500 })
  server.cutWatches()
  await world.pass(10 * 60_000, 600)
  const place = world.place('list', {}, { state: 'recent' })
  assert.equal(place.kind, 'local')
  assert.match(place.kind === 'local' ? (place.warning ?? '') : '', /local copy/)
  assert.equal(world.mirrored({})?.state.kind, 'waiting')
  // A restart does not turn it into one that never was.
  await world.reopen()
  await world.pass(60_000)
  assert.equal(world.place('list', {}).kind, 'local')
  world.crash()
})

test('[A1] a copy in doubt that cannot be verified holds nobody for longer than a first sync does', async () => {
  const server = new ApiServer()
  server.put('pods', 'a/k0')
  await using world = await MirrorWorld.open({ server })
  const mirrored = world.begin({}) as MirroredInterest
  await world.until(() => mirrored.state.kind === 'synced')
  server.fault = () => ({ kind: 'status', code: 500 })
  mirrored.doubt()
  assert.equal(world.place('list', {}).kind, 'hold')
  await world.pass(mirrorLimits.firstSyncMsMax + 1_000)
  assert.equal(world.place('list', {}).kind, 'forward')
  server.reachability.set('unreachable')
  assert.equal(world.place('list', {}).kind, 'local')
  server.reachability.set('reachable')
  server.fault = () => undefined
  await world.until(() => world.place('list', {}).kind === 'local', 60)
})

test('[D4] [A1] a copy of which the disk has lost something holds nobody for longer than a first sync does', async () => {
  const server = new ApiServer()
  server.put('pods', 'a/k0')
  await using world = await MirrorWorld.open({ server })
  const mirrored = world.begin({}) as MirroredInterest
  await world.until(() => mirrored.state.kind === 'synced')
  server.fault = () => ({ kind: 'status', code: 500 })
  const load = world.store.load.bind(world.store)
  world.store.load = (async (make: Parameters<typeof load>[0]) => {
    const loaded = await load(make)
    return { ...loaded, interests: loaded.interests.map((one) => ({ ...one, isDoubted: true })) }
  }) as unknown as typeof load
  await world.reopen()
  assert.equal(world.place('list', {}).kind, 'hold')
  await world.pass(mirrorLimits.firstSyncMsMax + 5_000)
  assert.equal(world.place('list', {}).kind, 'forward')
  server.fault = () => undefined
  await world.until(() => world.place('list', {}).kind === 'local', 400)
})
