/** What a caller with few rights, or none, tries at an edge: to see more, to stop it, to fill its memory. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { questionOf } from '../access/question.ts'
import { parseRequest } from '../kube/request.ts'
import { interestOf } from '../mirror/interest.ts'
import { mirrorLimits } from '../mirror/mirror.ts'
import { Unreachable } from '../upstream/upstream.ts'
import { aliceToken, answered, EdgeCloud, EdgeWorld, settle, statusText } from './edgeworld.test-support.ts'
import { identityOf } from './identify.ts'

const maps = '/api/v1/namespaces/a/configmaps'

/** Alice may do everything in namespace a, and nothing elsewhere. */
async function inNamespaceA(): Promise<EdgeWorld> {
  const cloud = new EdgeCloud()
  cloud.publish('', 'v1', { resource: 'namespaces', kind: 'Namespace', namespaced: false })
  const world = await EdgeWorld.open({ cloud })
  cloud.server.put('namespaces', 'a', {})
  cloud.server.put('namespaces', 'b', {})
  await world.synced('namespaces')
  cloud.judge.allows = ({ name }, spec) => name !== 'alice' || spec.resourceAttributes?.namespace === 'a'
  cloud.clock.advance(11_000)
  return world
}

test('[I1] rights within one namespace show no other: namespaces are in none', async () => {
  await using world = await inNamespaceA()
  world.cloud.script = ({ path, identity }) =>
    identity.kind === 'token' && path.startsWith('/api/') ? answered(404, statusText(404, 'theirs')) : undefined
  for (const path of ['namespaces', 'namespaces/b', 'namespaces/b/status', 'namespaces?watch=1']) {
    const { status, passedThrough } = await world.get(`/api/v1/namespaces/a/${path}`)
    assert.deepEqual([status, passedThrough], [404, true], path)
  }
  const own = await world.get('/api/v1/namespaces/a?resourceVersion=0')
  assert.deepEqual([own.status, own.json.metadata.name, own.passedThrough], [200, 'a', false])
})

test('[I1] rights within one namespace do not tell, offline, which others exist', async () => {
  await using world = await inNamespaceA()
  const path = '/api/v1/namespaces/a/namespaces'
  const post = (name: string) => world.ask('POST', path, { token: aliceToken, body: { metadata: { name } } })
  world.cloud.script = ({ method }) => (method === 'POST' ? answered(201, '{}') : undefined)
  await post('c')
  await settle()
  world.cloud.script = () => undefined
  world.cloud.reachability.set('unreachable')
  assert.deepEqual([(await post('b')).status, (await post('nowhere')).status], [503, 503])
})

test('a namespace that reads like selectors is no other interest, and stops nobody', async () => {
  await using world = await EdgeWorld.open()
  world.cloud.server.put('configmaps', 'a/c1', {})
  const first = world.later('GET', `${maps}?labelSelector=app%3Dweb&resourceVersion=0`)
  await world.until(() => first.done)
  const [mirrored] = world.interests.all
  const known = world.catalog.find('', 'v1', 'configmaps')
  assert.ok(mirrored !== undefined && known !== undefined)
  // A caller would wait for the one that is there, again and again: it is synced, and covers nothing of this.
  const strange = { group: '', version: 'v1', resource: 'configmaps', namespace: 'a?app=web&' }
  assert.notEqual(interestOf(strange).name, mirrored.interest.name)
  const second = world.later('GET', '/api/v1/namespaces/a%3Fapp=web&/configmaps?resourceVersion=0')
  await world.until(() => second.done)
  assert.deepEqual((await second.answer).json.items, [])
})

test('a watch that is left before its first sync, which then fails, harms nobody', async () => {
  await using world = await EdgeWorld.open()
  const unheard: unknown[] = []
  const hear = (why: unknown) => unheard.push(why)
  process.on('unhandledRejection', hear)
  try {
    world.cloud.server.fault = ({ what }) => (what === 'list' ? { kind: 'slow', ms: 15_000 } : undefined)
    const query = 'watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'
    const opening = world.response('GET', `${maps}?${query}`, { token: aliceToken })
    await world.pass(500)
    const { body } = await opening
    const chunks = (body as AsyncIterable<Buffer>)[Symbol.asyncIterator]()
    const next = assert.rejects(chunks.next())
    await settle()
    await chunks.return?.()
    world.cloud.reachability.set('unreachable')
    for (const mirrored of [...world.interests.all])
      if (!mirrored.record.standing) await world.interests.end(mirrored, 'in vain')
    await next
    await settle()
    assert.deepEqual(unheard, [])
  } finally {
    process.removeListener('unhandledRejection', hear)
  }
})

test('[I1] documents are fetched in the name of the edge only by paths that nobody can take for others', async () => {
  await using world = await EdgeWorld.open()
  const paths = [
    '/openapi/v3/../../api/v1/secrets',
    '/openapi/v3/%2e%2e/%2e%2e/api/v1/secrets',
    '/openapi/v3/x%3Fy',
    '/openapi/v3/x%0d%0ay',
    '/openapi/v3//api',
    '/apis/../metrics',
    '/apis/x%20y',
  ]
  world.cloud.script = ({ identity, method }) =>
    identity.kind === 'token' && method === 'GET' ? answered(404, statusText(404, 'theirs')) : undefined
  for (const path of paths) {
    const before = world.cloud.asked.length
    assert.equal((await world.get(path)).passedThrough, true, path)
    const own = world.cloud.asked.slice(before).filter(({ identity }) => identity.kind === 'edge')
    assert.deepEqual(own, [], path)
  }
})

test('one caller cannot take the room of all interests: beyond its share it is passed on', async () => {
  await using world = await EdgeWorld.open()
  world.cloud.judge.users.set('bob', { name: 'bob', uid: 'u-2', groups: [] })
  const before = world.interests.size
  for (let at = 0; at <= mirrorLimits.interestsPerCallerMax + 20; at++) {
    world.cloud.judge.users.set(`${aliceToken}${at % 3}`, { name: 'alice', uid: 'u-1', groups: ['devs'] })
    world.later('GET', `${maps}?labelSelector=n%3D${at}&resourceVersion=0`, { token: `${aliceToken}${at % 3}` })
  }
  await world.until(() => world.interests.size - before >= mirrorLimits.interestsPerCallerMax)
  await world.pass(500)
  assert.equal(world.interests.size - before, mirrorLimits.interestsPerCallerMax)
  assert.equal(world.lines.filter((line) => line.includes('interest.passedThrough')).length, 1)
  world.later('GET', `${maps}?labelSelector=bob&resourceVersion=0`, { token: 'bob' })
  await world.pass(500)
  assert.equal(world.interests.size - before, mirrorLimits.interestsPerCallerMax + 1)
})

test('[A8] names that one caller invents open no watch upstream; one that exists is kept from its first GET', async () => {
  await using world = await EdgeWorld.open()
  const before = [world.interests.size, world.cloud.server.watches.size]
  for (let at = 0; at < 1_200; at++) assert.equal((await world.get(`${maps}/invented${at}`)).status, 404)
  await world.pass(5_000)
  assert.deepEqual([world.interests.size, world.cloud.server.watches.size], before)
  world.cloud.server.put('configmaps', 'a/c1')
  assert.equal((await world.get(`${maps}/c1`)).status, 200)
  await world.until(() => world.cloud.server.watches.size === (before[1] as number) + 1)
})

test('selectors that are too long to be kept are passed on', async () => {
  await using world = await EdgeWorld.open()
  const url = `${maps}?fieldSelector=metadata.name%3D${'x'.repeat(3_000)}&resourceVersion=0`
  const { status, passedThrough } = await world.get(url)
  assert.deepEqual([status, passedThrough, world.interests.size], [200, true, 0])
})

test('refusals of resources that nobody serves make no series of their own', async () => {
  await using world = await EdgeWorld.open()
  world.cloud.script = ({ path }) => (path.includes('invented') ? answered(403, statusText(403, 'no')) : undefined)
  for (let at = 0; at < 20; at++) assert.equal((await world.ask('GET', `/api/v1/invented${at}`)).status, 403)
  await world.synced('configmaps')
  world.cloud.script = ({ path }) => (path.startsWith(maps) ? answered(403, statusText(403, 'no')) : undefined)
  await world.ask('POST', maps, { token: aliceToken, body: {} })
  const shown = String(world.measures.answer(parseRequest('GET', '/metrics'))?.body)
  assert.doesNotMatch(shown, /invented/)
  assert.match(shown, /verb="create".*resource="configmaps".*code="403"/)
})

test('[I1] what cannot stand in a header is no token', () => {
  const parts = { standingOf: () => 'stranger' as const, nowMs: () => 0 }
  for (const token of ['a\r\nx-remote-user: root', 'a b', 'ä', '\0']) {
    const protocol = `base64url.bearer.authorization.k8s.io.${Buffer.from(token).toString('base64url')}`
    const identity = identityOf({ peer: {}, headers: { 'sec-websocket-protocol': protocol } }, parts)
    assert.deepEqual(identity, { kind: 'anonymous' }, JSON.stringify(token))
  }
})

test('an upgrade that nobody answers is given up: its place is free for others', async () => {
  await using world = await EdgeWorld.open()
  world.cloud.connectAs = () => Promise.reject(new Unreachable('no answer within 75000 ms', true))
  const request = { method: 'GET', url: '/api/v1/namespaces/a/pods/p/exec', headers: {}, hasBody: false, peer: {} }
  const nothing = { body: async () => Buffer.alloc(0), stream: async function* () {} }
  assert.equal((await world.endpoint.upgrade({ ...request, ...nothing })).status, 503)
  assert.ok((world.cloud.connects[0]?.headMsMax ?? Number.POSITIVE_INFINITY) <= 75_000)
})

test('[I1] what is allowed with a selector that only the API server can read is not allowed without', () => {
  const key = (query: string) => questionOf(parseRequest('GET', `/api/v1/pods${query}`)).key
  const keys = ['', '?fieldSelector=a%5Cxb%3Dc', '?labelSelector=%3F%3F', '?labelSelector=%21%21'].map(key)
  assert.equal(new Set(keys).size, keys.length)
})

test('a question is remembered in few bytes, however long it is, and none passes for another', () => {
  const key = (name: string) => questionOf(parseRequest('GET', `/api/v1/namespaces/a/pods/${name}`)).key
  const long = 'x'.repeat(60_000)
  assert.ok(key(long).length < 600)
  assert.notEqual(key(long), key(`${long}y`))
  assert.equal(key(long), key(long))
})

test('[I1] where a query begins before the path, there is no path', () => {
  for (const url of ['http://h?/api/v1/secrets', 'https://h?x=/api/v1/secrets'])
    assert.equal(parseRequest('GET', url).isResource, false, url)
  assert.equal(parseRequest('GET', 'https://h/api/v1/secrets?x=/y').resource, 'secrets')
})

test('[I1] no spelling of a path reads what its caller may not, nor teaches a right that was never given', async () => {
  const cloud = new EdgeCloud()
  await using world = await EdgeWorld.open({ cloud })
  cloud.server.put('configmaps', 'a/shown', {})
  cloud.server.put('configmaps', 'b/hidden', {})
  await world.synced('configmaps')
  cloud.judge.allows = ({ name }, spec) => name !== 'alice' || spec.resourceAttributes?.namespace === 'a'
  cloud.clock.advance(11_000)
  assert.match((await world.get(`${maps}?resourceVersion=0`)).text, /shown/)
  const there = '/api/v1/namespaces/b/configmaps'
  const paths = [
    '/api/v1/namespaces/a/../b/configmaps',
    '/api/v1/namespaces/a/%2e%2e/b/configmaps',
    '/api/v1/namespaces/a%2f..%2fb/configmaps',
    '/api/v1/namespaces/a%2fconfigmaps/../../b/configmaps/hidden',
    '/api/v1/namespaces/a/configmaps/..%2f..%2fb%2fconfigmaps%2fhidden',
    '/api/v1/namespaces/a/configmaps/b%2fhidden',
    '/api/v1/namespaces/a;/../b/configmaps',
    '/api/v1/namespaces/b;a/configmaps',
    '/api/v1/namespaces/a/configmaps;/hidden',
    '/api/v1/namespaces/a//configmaps',
    '/api/v1/namespaces//configmaps',
    '/api/v1//namespaces/b/configmaps',
    `/${there}`,
    `${there}/`,
    `${there}//hidden`,
    `${there}/./hidden`,
    `${there}/hidden/`,
    `${there}/hidden%00`,
    `${there}%23/hidden`,
    `${there}?namespace=a`,
    '/api/v1/watch/namespaces/b/configmaps',
    '/api/v1/watch/configmaps',
    '/api/v1/configmaps?fieldSelector=metadata.namespace%3Da',
    '/api/v1/configmaps?fieldSelector=metadata.namespace%3Db',
    `https://edge${there}`,
    `https://edge/?x=${maps}`,
  ]
  // Whatever it is that the API server reads in a path, its success is no right to what we read in it.
  world.cloud.script = ({ identity, method }) =>
    identity.kind === 'token' && method === 'GET' ? answered(404, statusText(404, 'theirs')) : undefined
  for (const state of ['reachable', 'unreachable'] as const) {
    cloud.reachability.set(state)
    for (const path of paths) {
      const { status, text, passedThrough } = await world.get(path)
      assert.doesNotMatch(text, /"uid"/, `${state} ${path}`)
      assert.ok(passedThrough || status >= 400, `${state} ${path}: ${status}`)
    }
  }
})
