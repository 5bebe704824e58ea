/** Where each kind of read is answered: the table of docs/architecture.md (decisions 11 and 12), row by row. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StatusError } from '../../../kube/status.ts'
import { ApiServer } from '../../../mirror/apiserver.test-support.ts'
import { mirrorLimits } from '../../../mirror/mirror.ts'
import type { MirroredInterest } from '../../../mirror/mirrored.ts'
import { known, MirrorWorld, readOf, scopeOf, type Wish } from '../../../mirror/world.test-support.ts'
import type { ReachabilityState } from '../../../upstream/upstream.ts'
import { neverSynced } from '../../forward/offline.ts'
import { Front, notSynced, type Read, type ReadRoute } from './front.ts'

async function opened(parts: { limits?: { objects: number; bytes: number } } = {}): Promise<MirrorWorld> {
  const server = new ApiServer()
  for (let i = 0; i < 3; i++) server.put('pods', `a/k${i}`)
  server.put('pods', 'b/k9')
  return await MirrorWorld.open({ server, ...parts })
}

async function synced(wish: Wish): Promise<MirrorWorld> {
  const world = await opened()
  const mirrored = world.begin(wish) as MirroredInterest
  await world.until(() => mirrored.state.kind === 'synced')
  return world
}

/** The kind of place, `+` where it comes with a warning, or the code of the refusal. */
function kindOf(place: () => ReadRoute): string {
  try {
    const found = place()
    return found.kind === 'local' && found.warning !== undefined ? 'local+' : found.kind
  } catch (error) {
    assert.ok(error instanceof StatusError)
    assert.equal(error.status.details?.retryAfterSeconds, undefined, 'client-go would ask ten times within the call')
    return String(error.code)
  }
}

const get = (world: MirrorWorld, key: string, more: Partial<Read> = {}) => {
  const [namespace = '', name = ''] = key.split('/')
  return kindOf(() => world.place('get', { namespace, fields: `metadata.name=${name}` }, { key, ...more }))
}

/** The API server had what was forwarded. */
const found = (world: MirrorWorld, key: string) => {
  const [namespace = '', name = ''] = key.split('/')
  const scope = scopeOf({ namespace, fields: `metadata.name=${name}` })
  world.front.found({ verb: 'get', known: known(), scope, key, state: 'recent', version: 0, caller: 'somebody' })
}

const recent = { state: 'recent' } as const
const version = { state: 'version', version: 3 } as const

const states: readonly ReachabilityState[] = ['reachable', 'suspect', 'unreachable']

test('a covered GET: confirmed by the cloud where it asks for the newest and the cloud is there, else local', async () => {
  const world = await synced({})
  const rows: [Partial<Read>, string[]][] = [
    [recent, ['confirm', 'local+', 'local+']],
    [{ state: 'any' }, ['local', 'local', 'local']],
    [version, ['local', 'local', 'local']],
  ]
  for (const [more, expected] of rows) {
    for (const key of ['a/k0', 'a/absent']) {
      const found = states.map((state) => {
        world.server.reachability.set(state)
        return get(world, key, more)
      })
      assert.deepEqual(found, expected, `${key} ${JSON.stringify(more)}`)
    }
  }
})

test('[A1] an uncovered GET: forwarded and remembered, refused while the cloud is away', async () => {
  const world = await opened()
  for (const more of [recent, { state: 'any' }, version] as const) {
    world.server.reachability.set('unreachable')
    assert.equal(get(world, 'a/k0', more), '503')
  }
  world.server.reachability.set('reachable')
  assert.equal(get(world, 'a/k0', recent), 'forward')
  found(world, 'a/k0')
  // It is itself forwarded until the copy knows.
  assert.equal(get(world, 'a/k0', { state: 'any' }), 'forward')
  const mirrored = world.mirrored({ namespace: 'a', fields: 'metadata.name=k0' })
  await world.until(() => mirrored?.cache !== undefined)
  assert.equal(get(world, 'a/k0', { state: 'any' }), 'local')
  assert.equal(get(world, 'a/k1', { state: 'any' }), 'forward', 'another name is another interest')
  found(world, 'a/k1')
  assert.equal(world.interests.size, 2)
})

test('[A8] names that do not exist open no watch at the first asking, and displace nothing', async () => {
  await using world = await synced({ resource: 'configmaps' })
  const before = world.server.requests.length
  for (let at = 0; at < 1_200; at++) assert.equal(get(world, `a/invented${at}`, recent), 'forward')
  await world.pass(30_000)
  assert.equal(world.interests.size, 1)
  assert.deepEqual([world.server.watches.size, world.server.requests.length - before], [1, 0])
  // Asked for again, its absence is worth knowing; too late, it is a one-off look again.
  get(world, 'a/invented7', recent)
  await world.until(() => world.server.watches.size === 2)
  await world.pass(mirrorLimits.repeatedWithinMs, 200)
  get(world, 'a/invented8', recent)
  await world.pass(5_000)
  assert.equal(world.mirrored({ namespace: 'a', fields: 'metadata.name=invented8' }), undefined)
})

test('presence is knowledge: an object is shown from any interest that holds it, its absence is not', async () => {
  const world = await synced({ labels: '!app' })
  world.server.reachability.set('unreachable')
  assert.equal(get(world, 'a/k0', { state: 'any' }), 'local')
  assert.equal(get(world, 'a/k0', recent), 'local+')
  assert.equal(get(world, 'a/absent', { state: 'any' }), '503')
  world.server.reachability.set('reachable')
  assert.equal(get(world, 'a/k0', recent), 'confirm')
  assert.equal(get(world, 'a/absent', { state: 'any' }), 'forward')
})

test('a covered LIST is local; the newest without a warning only as long as its watch is alive', async () => {
  const world = await synced({})
  const list = (more: Partial<Read>, wish: Wish = {}) => kindOf(() => world.place('list', wish, more))
  world.server.bookmark()
  await world.pass(100)
  assert.deepEqual([list(recent), list({ state: 'any' }), list(version)], ['local', 'local', 'local'])
  assert.equal(list(recent, { namespace: 'a', labels: 'app=web' }), 'local')
  await world.pass(mirrorLimits.freshMs + 1_000)
  assert.deepEqual([list(recent), list({ state: 'any' }), list(version)], ['local+', 'local', 'local'])
  world.server.bookmark()
  await world.pass(100)
  assert.equal(list(recent), 'local')
  for (const state of ['suspect', 'unreachable'] as const) {
    world.server.reachability.set(state)
    assert.deepEqual([list(recent), list({ state: 'any' }), list(version)], ['local+', 'local', 'local'])
  }
})

test('[A6] where an interest is not heard of all the time it is asked for once, before a LIST says how old it is', async () => {
  const world = await synced({})
  const { interests, server } = world
  const upstream = Object.create(server, { freshen: { value: () => Promise.resolve() } }) as typeof server
  const front = new Front({ interests, upstream, clock: server.clock, contact: { ageMsOf: () => 0 } })
  const list = (more: Partial<Read>) => kindOf(() => front.route(readOf('list', {}, more)))
  world.server.bookmark()
  await world.pass(100)
  assert.equal(list(recent), 'local')
  await world.pass(mirrorLimits.freshMs + 1_000)
  assert.deepEqual([list(recent), list({ state: 'any' })], ['freshen', 'local'])
  assert.equal(list({ ...recent, isAsked: true }), 'local')
  await world.pass(mirrorLimits.askedFreshMs)
  assert.equal(list({ ...recent, isAsked: true }), 'local+')
  world.server.reachability.set('unreachable')
  assert.equal(list(recent), 'local+')
})

test("a LIST at exactly a version from before our history is the cloud's to give, as long as it is there", async () => {
  const world = await synced({})
  const floor = (world.begin({}) as MirroredInterest).cache?.history.floor ?? 0
  assert.ok(floor > 1)
  const at = (exact: boolean, past: number) =>
    states.map((state) => {
      world.server.reachability.set(state)
      return kindOf(() => world.place('list', {}, { state: 'version', version: past, exact }))
    })
  assert.deepEqual(at(true, floor - 1), ['forward', 'local', 'local'])
  assert.deepEqual(at(true, floor), ['local', 'local', 'local'])
  assert.deepEqual(at(false, floor - 1), ['local', 'local', 'local'])
})

test('[A1] an uncovered LIST: held for its first sync, never answered beside it; refused while the cloud is away', async () => {
  for (const more of [{ state: 'any' }, version] as const) {
    const world = await opened()
    world.server.reachability.set('unreachable')
    assert.equal(
      kindOf(() => world.place('list', {}, more)),
      '503',
    )
    assert.equal(world.interests.size, 0)
    world.server.reachability.set('reachable')
    assert.equal(
      kindOf(() => world.place('list', {}, more)),
      'hold',
    )
    assert.equal(
      kindOf(() => world.place('list', { namespace: 'a' }, recent)),
      'hold',
      'a part of it too',
    )
    assert.equal(world.interests.size, 1)
    world.server.reachability.set('unreachable')
    assert.equal(
      kindOf(() => world.place('list', {}, more)),
      '503',
    )
    world.server.reachability.set('reachable')
    await world.until(() => kindOf(() => world.place('list', {}, more)) === 'local')
  }
})

test('a LIST without a version is a one-off look, unless its caller repeats it within ten minutes', async () => {
  const world = await opened()
  const list = (caller: string, wish: Wish = {}) => kindOf(() => world.place('list', wish, { ...recent, caller }))
  assert.equal(list('a'), 'forward')
  assert.equal(list('b'), 'forward')
  assert.equal(list('a', { namespace: 'a' }), 'forward')
  assert.equal(world.interests.size, 0)
  world.server.clock.advance(mirrorLimits.repeatedWithinMs + 1)
  assert.equal(list('a'), 'forward', 'too long ago')
  world.server.clock.advance(mirrorLimits.repeatedWithinMs - 1)
  assert.equal(list('a'), 'hold')
  world.server.reachability.set('unreachable')
  assert.equal(list('c', { resource: 'configmaps' }), '503')
})

test('pages go on where they began', async () => {
  const world = await opened()
  const page = (ownToken: boolean) => kindOf(() => world.place('list', {}, { state: 'continue', ownToken }))
  assert.deepEqual([page(true), page(false), world.interests.size], ['forward', 'forward', 0])
  world.begin({})
  assert.deepEqual([page(true), page(false)], ['forward', 'forward'], 'not synced yet')
  await world.until(() => world.mirrored({})?.cache !== undefined)
  assert.deepEqual([page(true), page(false)], ['local', 'forward'])
  world.server.reachability.set('unreachable')
  assert.equal(page(true), 'local')
})

test('[A1] a WATCH: local where it is covered, else held for the first sync; refused while the cloud is away', async () => {
  const world = await opened()
  const watch = (more: Partial<Read>, wish: Wish = {}) => kindOf(() => world.place('watch', wish, more))
  world.server.reachability.set('unreachable')
  for (const more of [recent, { state: 'any' }, version] as const) assert.equal(watch(more), '503')
  world.server.reachability.set('suspect')
  assert.equal(watch(recent), 'hold')
  world.server.reachability.set('unreachable')
  assert.equal(watch(recent), '503')
  world.server.reachability.set('reachable')
  await world.until(() => world.mirrored({})?.cache !== undefined)
  for (const state of states) {
    world.server.reachability.set(state)
    for (const more of [recent, { state: 'any' }, version] as const) assert.equal(watch(more), 'local')
    assert.equal(watch(version, { fields: 'spec.nodeName=n1' }), 'local')
  }
})

test('[A2] a WATCH resumes where history reaches back far enough, if anything does', async () => {
  const world = await synced({ namespace: 'a' })
  const old = world.server.version
  world.server.put('pods', 'a/k0')
  await world.pass(1_000)
  const wide = world.begin({}) as MirroredInterest
  await world.until(() => wide.cache !== undefined && world.mirrored({ namespace: 'a' })?.fed === true)
  const at = (from: number) => {
    const place = world.place('watch', { namespace: 'a' }, { state: 'version', version: from })
    return place.kind === 'local' ? place.cache.interest : place.kind
  }
  assert.equal(at(old), 'v1/pods@a')
  assert.equal(at(world.server.version), 'v1/pods')
  assert.equal(at(1), 'v1/pods', 'too old for both')
})

test('what is not mirrored is passed through: events, and the leases that every node renews', async () => {
  const world = await opened()
  const wishes: Wish[] = [
    { resource: 'events', namespace: 'a' },
    { resource: 'leases' },
    { resource: 'leases', namespace: 'kube-node-lease' },
  ]
  for (const wish of wishes) {
    for (const verb of ['get', 'list', 'watch'] as const) {
      assert.equal(
        kindOf(() => world.place(verb, wish, { key: 'x' })),
        'forward',
        `${verb} ${wish.resource}`,
      )
    }
  }
  assert.equal(world.interests.size, 0)
  assert.equal(
    kindOf(() => world.place('watch', { resource: 'leases', namespace: 'kube-system' })),
    'hold',
  )
})

test('what the edge may not read, or is too large for it, is passed through to who may', async () => {
  const world = await opened()
  world.server.fault = () => ({ kind: 'status', code: 403 })
  world.begin({})
  await world.until(() => world.mirrored({})?.state.kind === 'refused')
  const small = await opened({ limits: { objects: 1, bytes: 1 << 20 } })
  small.begin({})
  await small.until(() => small.mirrored({})?.state.kind === 'tooLarge')
  for (const { place, server } of [world, small].map((one) => ({ place: one.place.bind(one), server: one.server }))) {
    assert.equal(
      kindOf(() => place('get', { namespace: 'a', fields: 'metadata.name=k0' }, { key: 'a/k0' })),
      'forward',
    )
    assert.equal(
      kindOf(() => place('list', {})),
      'forward',
    )
    assert.equal(
      kindOf(() => place('list', {}, recent)),
      'forward',
    )
    assert.equal(
      kindOf(() => place('watch', {}, version)),
      'forward',
    )
    server.reachability.set('unreachable')
    assert.equal(
      kindOf(() => place('list', {})),
      '503',
    )
    assert.equal(
      kindOf(() => place('watch', {})),
      '503',
    )
  }
})

test('reading keeps an interest alive, and a warning says how old the copy is and why', async () => {
  const world = await synced({})
  const mirrored = world.mirrored({}) as MirroredInterest
  for (const verb of ['get', 'list', 'watch'] as const) {
    mirrored.record.unaskedMs = 77
    world.place(verb, { namespace: 'a', fields: 'metadata.name=k0' }, { key: 'a/k0' })
    assert.equal(mirrored.record.unaskedMs, 0, verb)
  }
  world.server.cutWatches()
  world.server.reachability.set('unreachable')
  await world.pass(42_000)
  const place = world.place('list', {}, recent)
  assert.ok(place.kind === 'local')
  assert.match(place.warning ?? '', /local copy, 4[23] s old \(the API server cannot be asked: the test says so\)/)
  await world.reopen()
  const again = world.place('list', {}, recent)
  assert.match((again.kind === 'local' && again.warning) || '', /from before the last start/)
})

test('the refusals: a client is told to come again for what is on its way, and not for what is away', () => {
  assert.deepEqual([notSynced('pods').code, notSynced('pods').status.details?.retryAfterSeconds], [429, 1])
  assert.deepEqual([neverSynced('x').code, neverSynced('x').status.details?.retryAfterSeconds], [503, undefined])
})
