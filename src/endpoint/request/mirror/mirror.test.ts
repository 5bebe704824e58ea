/** The way of a request at an edge: no local answer without a decision, documents, unknown resources, its own paths. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { admin, aliceToken, answered, EdgeWorld, settle, statusText, warningsOf } from '../../edgeworld.test-support.ts'

const maps = '/api/v1/namespaces/a/configmaps'
const c1 = `${maps}/c1?resourceVersion=0`

async function synced(): Promise<EdgeWorld> {
  const world = await EdgeWorld.open()
  world.cloud.server.put('configmaps', 'a/c1', { value: 'one' })
  await world.synced('configmaps')
  return world
}

test('[I2] every local answer needs a decision for its caller, and a denial is the API server’s own', async () => {
  await using world = await synced()
  const { judge } = world.cloud
  judge.users.set('bob-token', { name: 'bob', uid: 'b', groups: [] })
  judge.allows = ({ name }, { resourceAttributes }) => name !== 'bob' || resourceAttributes?.name === 'c1'
  world.cloud.script = ({ identity, path }) =>
    identity.kind === 'token' && identity.token === 'bob-token' && path.startsWith('/api/v1/')
      ? answered(403, statusText(403, 'theirs'))
      : undefined
  const bob = (url: string) => world.ask('GET', url, { token: 'bob-token' })
  const reviewed = judge.specs.length
  assert.equal((await bob(c1)).json.value, 'one')
  assert.equal(judge.specs.length, reviewed + 1)
  assert.equal((await bob(c1)).status, 200)
  assert.equal(judge.specs.length, reviewed + 1, 'one review per decision')
  for (const url of [`${maps}?resourceVersion=0`, `${maps}?watch=1`, `${maps}/c2?resourceVersion=0`]) {
    const { status, json } = await bob(url)
    assert.deepEqual([status, json.message], [403, 'theirs'], url)
  }
  world.cloud.reachability.set('unreachable')
  assert.equal((await bob(c1)).json.value, 'one', 'the last decision holds')
  assert.equal((await bob(`${maps}?resourceVersion=0`)).status, 403)
  const { status, json } = await bob('/api/v1/namespaces/a/pods?resourceVersion=0')
  assert.deepEqual([status, json.reason], [503, 'ServiceUnavailable'], 'no decision is a refusal, and no denial')
  assert.match(json.message, /^no decision is known for this caller/)
  assert.equal((await world.ask('GET', c1, { token: 'invented' })).status, 401)
})

test('[I2] only a request that is allowed creates an interest', async () => {
  await using world = await EdgeWorld.open()
  world.cloud.judge.allows = ({ name }) => name === 'edge'
  world.cloud.script = ({ identity, path }) =>
    identity.kind !== 'edge' && path.startsWith('/api/v1/') ? answered(403, statusText(403, 'theirs')) : undefined
  const before = world.interests.size
  for (const url of [c1, `${maps}?resourceVersion=0`, `${maps}?watch=1`])
    assert.equal((await world.get(url)).status, 403)
  assert.equal(world.interests.size, before)
})

test('[I3] anonymous gets what the API server gives it, and locally nothing that it was not given', async () => {
  await using world = await synced()
  world.cloud.script = ({ identity, path }) =>
    identity.kind === 'anonymous' && path.startsWith('/api/v1/') ? answered(401, statusText(401, 'theirs')) : undefined
  assert.equal((await world.ask('GET', c1)).json.message, 'theirs')
  world.cloud.reachability.set('unreachable')
  const { status, text } = await world.ask('GET', c1)
  assert.ok([401, 403].includes(status), String(status))
  assert.ok(!text.includes('one'))
  const { judge } = world.cloud
  world.cloud.reachability.set('reachable')
  judge.anonymousMayReview = true
  judge.allows = (_, { resourceAttributes }) => resourceAttributes?.name === 'c1'
  await world.pass(20_000)
  assert.equal((await world.ask('GET', c1)).json.value, 'one', 'what it was given')
  assert.equal((await world.ask('GET', `${maps}?resourceVersion=0`)).status, 401)
})

test('discovery is served from here, indented for people, and goes on without the cloud and after a restart', async () => {
  await using world = await EdgeWorld.open()
  await world.pass(60_000)
  const forPrograms = await world.get('/api/v1')
  assert.equal(forPrograms.json.kind, 'APIResourceList')
  assert.ok(!forPrograms.text.includes('\n  '))
  for (const [url, headers] of [
    ['/api/v1', { 'user-agent': 'curl/8' }],
    ['/api/v1?pretty=true', {}],
  ] as const) {
    const { text, json, headers: got } = await world.get(url, headers)
    assert.match(text, /^{\n {2}"kind": "APIResourceList"/, url)
    assert.deepEqual(json, forPrograms.json)
    assert.equal(got['content-length'], String(text.length))
  }
  world.cloud.reachability.set('unreachable')
  assert.equal((await world.get('/api/v1')).text, forPrograms.text)
  assert.equal((await world.ask('GET', '/apis/none/v1', { peer: admin })).status, 503, 'nothing is known of it')
  await world.restart()
  assert.equal((await world.get('/api/v1')).text, forPrograms.text)
})

test('a resource that nobody knows is passed on, and discovery is looked at again', async () => {
  await using world = await EdgeWorld.open()
  const url = '/apis/fresh.test/v1/things?resourceVersion=0'
  world.cloud.script = ({ path }) => (path === url ? answered(200, '{"kind":"ThingList","items":[]}') : undefined)
  const looks = () => world.cloud.documents.asked.filter((path) => path === '/apis').length
  const before = looks()
  assert.equal((await world.get(url)).passedThrough, true)
  await world.pass(1_000)
  assert.ok(looks() > before)
  world.cloud.publish('fresh.test', 'v1', { resource: 'things', kind: 'Thing', namespaced: true })
  await world.pass(5_500)
  await world.get(url)
  await world.until(() => world.catalog.find('fresh.test', 'v1', 'things') !== undefined)
})

test('[A1] the first request of a first start waits a moment for discovery, then never again', async () => {
  await using world = new EdgeWorld({})
  world.cloud.server.put('configmaps', 'a/c1', { value: 'one' })
  const { promise: comes, resolve: come } = Promise.withResolvers<undefined>()
  world.cloud.script = ({ path }) => (path === '/api' || path === '/apis' ? comes : undefined)
  await world.start({ waits: false })
  const list = world.later('GET', `${maps}?resourceVersion=0`, { peer: admin })
  await world.pass(1_000)
  assert.equal(list.done, false)
  come(undefined)
  // Documents are compressed beside the loop, in time that no test decides.
  while (!world.catalog.complete) await pause(1)
  await world.until(() => list.done)
  const { passedThrough, json } = await list.answer
  assert.deepEqual([passedThrough, json.items.length], [false, 1], 'from the copy, not beside it')

  await using poor = new EdgeWorld({})
  poor.cloud.script = ({ path }) => (path === '/api' || path === '/apis' ? 'hang' : undefined)
  await poor.start({ waits: false })
  const first = poor.later('GET', `${maps}?resourceVersion=0`, { peer: admin })
  await poor.pass(2_100)
  assert.deepEqual([first.done, (await first.answer).passedThrough], [true, true])
  const second = poor.later('GET', `${maps}?resourceVersion=0`, { peer: admin })
  await settle()
  assert.equal(second.done, true)
})

test('what is about this process is answered here: metrics to a caller that may, the status to the administrator', async () => {
  await using world = await synced()
  world.cloud.judge.allows = (_, { nonResourceAttributes }) => nonResourceAttributes?.path === '/metrics'
  assert.equal((await world.get('/metrics')).status, 200)
  world.cloud.judge.users.set('bob-token', { name: 'bob', uid: 'b', groups: [] })
  world.cloud.judge.allows = () => false
  assert.equal((await world.ask('GET', '/metrics', { token: 'bob-token' })).status, 403)
  const shown = await world.ask('GET', '/ake/status', { peer: admin })
  assert.deepEqual([shown.status, shown.json.upstream.state], [200, 'reachable'])
  for (const asking of [{ token: aliceToken }, {}]) {
    assert.equal((await world.ask('GET', '/ake/status', asking)).status, 403)
  }
})

test('[A8] one caller’s wait for its first decision or sync delays nobody else', async () => {
  await using world = await synced()
  const { judge } = world.cloud
  await world.get(c1)
  judge.users.set('bob-token', { name: 'bob', uid: 'b', groups: [] })
  judge.mode = 'hang'
  const bob = world.later('GET', c1, { token: 'bob-token' })
  world.cloud.server.fault = ({ resource }) => (resource === 'pods' ? { kind: 'slow', ms: 5_000 } : undefined)
  const slow = world.later('GET', '/api/v1/pods?resourceVersion=0', { peer: admin })
  await settle()
  assert.equal((await world.get(c1)).json.value, 'one')
  assert.deepEqual([bob.done, slow.done], [false, false])
  judge.mode = 'answer'
  judge.release()
  await world.pass(6_000)
  assert.deepEqual([bob.done, slow.done], [true, true])
})

test('what cannot be read as a request is refused in the API’s form', async () => {
  await using world = await synced()
  for (const url of [`${maps}?resourceVersion=x`, `${maps}?labelSelector=%21%21`, `${maps}?timeout=soon`]) {
    const { status, json } = await world.ask('GET', url, { peer: admin })
    assert.deepEqual([status, json.kind], [400, 'Status'], url)
  }
})

test('[A6] a slow document is answered as last seen, with a warning, and makes nobody else think the cloud is gone', async () => {
  await using world = await EdgeWorld.open()
  const { documents, reachability } = world.cloud
  const { text } = await world.get('/version')
  documents.document('/version').body = '{"minor":"later"}'
  documents.slow.set('/version', 60_000)
  const late = world.later('GET', '/version')
  await world.until(() => late.done, 30)
  const answer = await late.answer
  assert.equal(answer.text, text)
  assert.match(warningsOf(answer).join(), /served as last seen: the API server has not answered within \d+ ms/)
  assert.equal(reachability.state, 'reachable')
  documents.slow.clear()
  await world.pass(60_000)
  let newest = await world.get('/version')
  for (let i = 0; i < 500 && warningsOf(newest).length > 0; i++) {
    await pause(1)
    newest = await world.get('/version')
  }
  assert.deepEqual([newest.text, warningsOf(newest)], ['{"minor":"later"}', []])
})

test('[A6] what the API server has taken back is its refusal offline too', async () => {
  await using world = await EdgeWorld.open()
  const path = '/apis/pasture.test/v1'
  assert.equal((await world.get(path)).status, 200)
  world.cloud.documents.refusals.set(path, 404)
  for (let i = 0; i < 3; i++) assert.equal((await world.get(path)).status, 404)
  world.cloud.reachability.set('unreachable')
  assert.deepEqual([(await world.get(path)).status, (await world.get(path)).text], [404, 'no'])
})

test('[I1] a caller that speaks for another one is told nothing about this process on its own rights', async () => {
  await using world = await synced()
  const as = { 'impersonate-user': 'bob' }
  for (const url of ['/metrics', '/ake/status']) {
    assert.equal((await world.ask('GET', url, { peer: admin })).status, 200, url)
    const { status, headers, json } = await world.ask('GET', url, { peer: admin, headers: as })
    assert.deepEqual([status, headers['x-content-type-options'], json.reason], [403, 'nosniff', 'Forbidden'], url)
  }
  assert.equal(world.cloud.asked.filter(({ path }) => path === '/metrics').length, 0, 'nor about the API server')
})

test('an edge that may not answer without the cloud any more says so to every caller, and still tells of itself', async () => {
  await using world = await synced()
  await world.get(c1)
  world.cloud.reachability.set('unreachable')
  assert.equal((await world.get(c1)).status, 200)
  world.unserved = 'a policy says so'
  for (const asking of [{ peer: admin }, { token: aliceToken }])
    for (const url of 'peer' in asking ? [c1, maps, '/api/v1'] : [c1]) {
      const { status, json } = await world.ask('GET', url, asking)
      assert.deepEqual([status, json.reason, json.message], [503, 'ServiceUnavailable', 'a policy says so'], url)
    }
  assert.equal((await world.ask('GET', '/metrics', { peer: admin })).status, 200)
  // Who may not read it is told that first.
  assert.notEqual((await world.ask('GET', c1, { token: 'invented' })).status, 503)
})
