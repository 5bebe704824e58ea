import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { until } from '../../base/until.test-support.ts'
import { aggregated, quiet, World } from './cloud.test-support.ts'
import { isDocument } from './place.ts'

const oxUrl = (world: World) => world.cloud.documents.find(({ path }) => path.includes('?hash='))?.path ?? ''

async function body(world: World, path: string, headers: Record<string, string> = {}): Promise<string> {
  const answer = await world.get(path, headers)
  return typeof answer === 'string' ? answer : answer.body.toString('utf8')
}

async function started(): Promise<World> {
  const world = new World()
  await world.start()
  await until(() => world.catalog.complete)
  await world.pass(60_000)
  return world
}

test('[A5] every form of discovery is served as it came, online and, after a restart, offline (kubeedge 1.1)', async () => {
  await using world = await started()
  const check = async () => {
    for (const { path, accept, headers: sent, body: expected } of world.cloud.documents) {
      if (path.startsWith('/openapi/')) continue
      const answer = await world.get(path, { accept: accept === 'aggregated' ? aggregated : 'application/json' })
      assert.ok(typeof answer === 'object', `${path} ${accept}`)
      assert.equal(answer.body.toString('utf8'), expected, path)
      assert.equal(String(answer.headers['content-length']), String(Buffer.byteLength(expected)))
      for (const name of ['content-type', 'etag', 'vary', 'cache-control']) {
        assert.equal(answer.headers[name], sent[name], `${name} of ${path}`)
      }
      for (const name of ['date', 'x-kubernetes-pf-flowschema-uid']) assert.equal(answer.headers[name], undefined)
      assert.notEqual(answer.headers['audit-id'], sent['audit-id'])
    }
  }
  await check()
  world.cloud.turn('unreachable')
  await world.restart()
  const asked = world.cloud.asked.length
  await check()
  assert.equal(world.cloud.asked.length, asked)
  assert.equal(world.catalog.find('pasture.test', 'v1', 'oxen')?.resource.kind, 'Ox')
  assert.ok(world.catalog.complete)
})

test('[A6] a document is asked for whenever somebody asks, by its ETag; a restart fetches nothing that is the same', async () => {
  await using world = await started()
  world.cloud.said.length = 0
  for (let i = 0; i < 3; i++) await world.get(`/apis?timeout=${i}s`, { accept: aggregated })
  assert.deepEqual(world.cloud.said, ['/apis 304', '/apis 304', '/apis 304'])
  const list = world.cloud.document('/apis/apps/v1')
  for (const changed of ['{"kind":"APIResourceList","resources":[{"name":"a"}]}', list.body]) {
    list.body = changed
    assert.equal(await body(world, '/apis/apps/v1?timeout=32s', { accept: 'application/json' }), changed)
  }
  world.cloud.said.length = 0
  await world.restart()
  await world.pass(60_000)
  assert.deepEqual([...new Set(world.cloud.said)].sort(), ['/api 304', '/apis 304'])
})

test('[A6] who asks at once shares a question, and nobody hears the answer to one from before he came', async () => {
  await using world = await started()
  const json = { accept: 'application/json' }
  const version = world.cloud.document('/version')
  world.cloud.slow.set('/version', 100)
  world.cloud.said.length = 0
  const first = body(world, '/version', json)
  await quiet()
  world.cloud.slow.delete('/version')
  version.body = '{"minor":"later"}'
  const later = Array.from({ length: 20 }, () => body(world, '/version', json))
  await world.pass(100)
  assert.notEqual(await first, version.body)
  for (const one of await Promise.all(later)) assert.equal(one, version.body)
  assert.equal(world.cloud.said.length, 2)
})

const oxPlaces = ['/apis/pasture.test', '/apis/pasture.test/v1', '/openapi/v3/apis/pasture.test/v1']

test('[A6] a definition that is gone: its documents are refused from then on, in every form, offline and after a restart', async () => {
  await using world = await started()
  const forms = ['application/json', '*/*', 'application/json, */*']
  const json = { accept: 'application/json' }
  const { headers: sent, body: schema } = world.cloud.document(oxUrl(world))
  const { etag: _, ...headers } = sent
  world.cloud.documents.push({ path: oxPlaces[2] ?? '', accept: 'any', headers, body: schema })
  const places = [...oxPlaces, oxUrl(world)]
  for (const place of places) for (const accept of forms) await body(world, place, { accept })
  const kept = world.cloud.documents
  world.cloud.documents = kept.filter(({ path }) => !path.includes('pasture.test'))
  // The API server itself answers, by turns with nothing: no old list comes back between its refusals.
  for (let turn = 0; turn < 5; turn++) {
    for (const place of oxPlaces) assert.equal(await world.get(place, json), 'forward', place)
    await world.pass(7_000)
  }
  world.cloud.turn('unreachable')
  for (let start = 0; start < 2; start++) {
    for (const place of places) {
      for (const accept of forms) {
        const answer = await world.get(place, { accept })
        assert.equal(typeof answer === 'object' && answer.status, 404, `${place} ${accept}`)
      }
    }
    await world.restart()
  }
  // Its API server has it again, and so has the edge.
  world.cloud.documents = kept
  world.cloud.turn('reachable')
  for (const place of oxPlaces) assert.notEqual(await body(world, place, json), '', place)
  world.cloud.turn('unreachable')
  for (const place of oxPlaces) assert.notEqual(await body(world, place, json), '', place)
})

test('[A6] a refused group takes its versions and their OpenAPI with it; the refusal is kept in its own words', async () => {
  await using world = await started()
  const json = { accept: 'application/json' }
  await body(world, oxUrl(world), json)
  world.cloud.refusals.set('/apis/pasture.test', 404)
  assert.equal(await world.get('/apis/pasture.test', json), 'forward')
  world.cloud.turn('unreachable')
  await world.restart()
  for (const place of [...oxPlaces.slice(0, 2), oxUrl(world)]) {
    const answer = await world.get(place, json)
    assert.ok(typeof answer === 'object', place)
    assert.equal(answer.status, 404, place)
    assert.equal(answer.body.toString('utf8'), 'no')
  }
  assert.equal(await body(world, '/apis/apps/v1', json), world.cloud.document('/apis/apps/v1').body)
  // A server that says that there is no discovery at all is no API server.
  world.cloud.turn('reachable')
  world.cloud.refusals.set('/apis', 404)
  assert.equal(await world.get('/apis', { accept: aggregated }), 'forward')
  world.cloud.turn('unreachable')
  assert.equal(await body(world, '/apis', { accept: aggregated }), world.cloud.document('/apis', 'aggregated').body)
})

test('another spelling of Accept is learned once and shares the document; one that nobody can satisfy is passed on', async () => {
  await using world = await started()
  const before = world.cloud.asked.length
  const spellings = ['application/json, */*', 'application/json,*/*', 'APPLICATION/JSON , */*;q=1']
  for (const accept of spellings)
    assert.equal(await body(world, '/apis/apps', { accept }), world.cloud.document('/apis/apps').body)
  assert.equal(world.cloud.asked.length, before + 3)
  assert.equal(await world.get('/apis/apps', { accept: 'text/html' }), 'forward')
  assert.equal(await world.get('/apis/nothing.test', {}), 'forward')
  world.cloud.turn('unreachable')
  // Never asked for before: the nearest form does.
  assert.equal(
    await body(world, '/apis/apps', { accept: 'application/json;q=0.9' }),
    world.cloud.document('/apis/apps').body,
  )
  assert.equal(
    await body(world, '/apis', { accept: `${aggregated},text/plain` }),
    world.cloud.document('/apis', 'aggregated').body,
  )
  assert.equal(await world.get('/apis/apps', { accept: 'text/html' }), 'unknown')
  assert.equal(await world.get('/apis/nothing.test', {}), 'unknown')
})

test('a client that has it already hears 304, compared as kube-apiserver compares', async () => {
  await using world = await started()
  const { etag = '' } = world.cloud.document('/apis', 'aggregated').headers
  const apis = (tag: string) => world.get('/apis', { accept: aggregated, 'if-none-match': tag })
  const same = await apis(etag)
  assert.ok(typeof same === 'object')
  assert.equal(same.status, 304)
  const { 'audit-id': _, ...headers } = same.headers
  assert.deepEqual(headers, { etag, vary: 'Accept', 'cache-control': 'public' })
  assert.equal(same.body.length, 0)
  for (const other of [`W/${etag}`, `"x", ${etag}`, '*']) {
    const answer = await apis(other)
    assert.equal(typeof answer === 'object' && answer.status, 200, other)
  }
  const url = oxUrl(world)
  const { headers: sent } = world.cloud.document(url)
  for (const tag of [sent.etag, `W/${sent.etag}`, `"x", ${sent.etag}`, '*']) {
    const answer = await world.get(url, { accept: 'application/json', 'if-none-match': tag ?? '' })
    assert.ok(typeof answer === 'object')
    assert.equal(answer.status, 304, tag ?? '')
    const { 'audit-id': __, ...left } = answer.headers
    assert.deepEqual(left, {
      etag: sent.etag,
      vary: 'Accept',
      'cache-control': 'public, immutable',
      expires: sent.expires,
    })
  }
})

test('OpenAPI is fetched on first use, by its hash once, and offline any hash will do (kubeedge 1.1)', async () => {
  await using world = await started()
  const url = oxUrl(world)
  const path = url.split('?')[0] ?? ''
  assert.ok(!world.cloud.asked.some((one) => one.startsWith('/openapi/')))
  const expected = world.cloud.document(url).body
  const json = { accept: 'application/json' }
  for (let i = 0; i < 3; i++) assert.equal(await body(world, url, json), expected)
  await world.pass(120_000)
  assert.equal(await body(world, url, json), expected)
  const answers = world.cloud.said.filter((one) => one.startsWith(url))
  assert.deepEqual(
    answers,
    [200, 304, 304, 304].map((status) => `${url} ${status}`),
  )
  // A hash that is not the document's: the API server redirects.
  assert.equal(await world.get(`${path}?hash=OTHER`, json), 'forward')
  assert.equal(await body(world, '/openapi/v3', json), world.cloud.document('/openapi/v3', 'any').body)
  world.cloud.turn('unreachable')
  await world.restart()
  for (const one of [url, `${path}?hash=OTHER`, path]) assert.equal(await body(world, one, json), expected, one)
  // Without a hash no client may keep it for good.
  const bare = await world.get(path, json)
  assert.ok(typeof bare === 'object')
  assert.deepEqual([bare.headers['cache-control'], bare.headers.expires], ['no-cache, private', undefined])
  assert.equal(
    await body(world, '/openapi/v3', { accept: 'whatever/else' }),
    world.cloud.document('/openapi/v3', 'any').body,
  )
  assert.equal(await world.get('/openapi/v2', {}), 'unknown')
})

test('[A6] a late answer: what is held with a warning, and its slowness is nobody else’s', async () => {
  await using world = await started()
  const json = { accept: 'application/json' }
  const version = world.cloud.document('/version')
  const old = await body(world, '/version', json)
  version.body = '{"minor":"later"}'
  world.cloud.slow.set('/version', 1_000)
  const late = world.get('/version', json)
  await quiet()
  // Others do not wait for it.
  assert.equal(await body(world, '/apis/apps/v1', json), world.cloud.document('/apis/apps/v1').body)
  world.clock.advance(300)
  const answer = await late
  assert.ok(typeof answer === 'object')
  assert.equal(answer.body.toString('utf8'), old)
  assert.match(answer.warning ?? '', /as last seen: .* within 300 ms/)
  // The next caller does not wait a second time; the answer comes in behind it.
  const next = await world.get('/version', json)
  assert.match((typeof next === 'object' && next.warning) || '', /as last seen/)
  await world.pass(1_000)
  world.cloud.slow.delete('/version')
  const newest = await until(async () => {
    const got = await world.get('/version', json)
    return typeof got === 'object' && got.warning === undefined && got
  })
  assert.equal(newest.body.toString('utf8'), version.body)
  assert.deepEqual(world.cloud.suspicions, [])
  assert.equal(world.cloud.reachability.state, 'reachable')
})

test('a server without an answer, or that cannot give one, replaces nothing and is warned of; a refusal of the edge is the caller’s to hear', async () => {
  await using world = await started()
  const json = { accept: 'application/json' }
  const expected = await body(world, '/version', json)
  for (const status of [429, 500, 503]) {
    world.cloud.refusals.set('/version', status)
    const answer = await world.get('/version', json)
    assert.ok(typeof answer === 'object', String(status))
    assert.equal(answer.body.toString('utf8'), expected)
    assert.match(answer.warning ?? '', new RegExp(`answered ${status}`))
  }
  for (const status of [401, 403]) {
    world.cloud.refusals.set('/version', status)
    assert.equal(await world.get('/version', json), 'forward')
  }
  world.cloud.silent = true
  const answer = world.get('/version', json)
  await world.pass(11_000)
  assert.equal(typeof (await answer), 'object')
  assert.deepEqual(world.cloud.suspicions, [])
  world.cloud.turn('unreachable')
  assert.equal(await body(world, '/version', json), expected)
})

test('however many forms are asked for at once, few bodies are in memory, and each has its turn', async () => {
  await using world = await started()
  const { cloud } = world
  const ask = cloud.ask.bind(cloud)
  let reading = 0
  let most = 0
  cloud.ask = async (asked) => {
    const answer = await ask(asked)
    const { body: whole } = answer
    const slowly = async function* () {
      most = Math.max(most, ++reading)
      await quiet()
      yield* whole
      reading--
    }
    return { ...answer, body: slowly() }
  }
  const forms = Array.from({ length: 40 }, (_, i) => `application/json;q=0.${i + 10}`)
  const lists = await Promise.all(forms.map((accept) => body(world, '/apis/apps/v1', { accept })))
  assert.ok(lists.every((one) => one === cloud.document('/apis/apps/v1').body))
  assert.ok(most > 1 && most <= 8, String(most))
})

test('gzip goes as it came to those who take it, and unpacked to the others', async () => {
  await using world = new World()
  world.cloud.gzips = true
  await world.start()
  await until(() => world.catalog.complete)
  const expected = world.cloud.document('/apis', 'aggregated').body
  const packed = await world.get('/apis', { accept: aggregated, 'accept-encoding': 'deflate, gzip;q=1.0' })
  assert.ok(typeof packed === 'object')
  assert.equal(packed.headers['content-encoding'], 'gzip')
  assert.equal(gunzipSync(packed.body).toString('utf8'), expected)
  const plain = await world.get('/apis', { accept: aggregated, 'accept-encoding': 'gzip;q=0' })
  assert.ok(typeof plain === 'object')
  assert.equal(plain.headers['content-encoding'], undefined)
  assert.equal(plain.body.toString('utf8'), expected)
})

test('beyond the limit the OpenAPI used least goes, and discovery stays', async () => {
  await using world = new World(20_000)
  await world.start()
  await until(() => world.catalog.complete)
  await world.pass(60_000)
  const [template] = world.cloud.documents.filter(({ path }) => path.includes('?hash='))
  assert.ok(template)
  // What does not compress: the limit counts bytes as they are kept.
  const noise = (seed: number) =>
    Array.from({ length: 1500 }, (_, i) => ((seed * 7919 + i * 104729 + i * i * 31) % 65536).toString(36)).join('')
  for (let i = 0; i < 5; i++) {
    const { etag: _, ...headers } = template.headers
    world.cloud.documents.push({ path: `/openapi/v3/apis/g${i}/v1`, accept: 'plain', headers, body: noise(i) })
    assert.equal(await body(world, `/openapi/v3/apis/g${i}/v1`), noise(i))
    await body(world, '/openapi/v3/apis/g0/v1')
  }
  world.cloud.turn('unreachable')
  await world.restart()
  const left = await Promise.all([0, 1, 2, 3, 4].map((i) => world.get(`/openapi/v3/apis/g${i}/v1`)))
  assert.ok(typeof left[0] === 'object' && typeof left[4] === 'object')
  assert.equal(left[1], 'unknown')
  assert.equal(await body(world, '/apis', { accept: aggregated }), world.cloud.document('/apis', 'aggregated').body)
})

test('which paths are documents', () => {
  for (const path of [
    '/api',
    '/apis',
    '/api/',
    '/api/v1',
    '/apis/a.b',
    '/apis/a.b/v1',
    '/apis/a.b/v1/',
    '/version',
    '/version/',
  ]) {
    assert.ok(isDocument(path), path)
  }
  for (const path of [
    '/openapi/v2',
    '/openapi/v3',
    '/openapi/v3/apis/apps/v1',
    '/openapi/v3/.well-known/openid-configuration',
    '/openid/v1/jwks',
  ]) {
    assert.ok(isDocument(path), path)
  }
  for (const path of [
    '/',
    '/healthz',
    '/api/v1/pods',
    '/apis/a.b/v1/oxen',
    '/openapi',
    '/openapi/v2/',
    '/apis//v1',
    '/metrics',
  ]) {
    assert.ok(!isDocument(path), path)
  }
})
