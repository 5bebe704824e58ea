/** Reads at an edge as their callers see them: held, local, confirmed or passed on, and never ignorance shown as absence. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeContinue } from '../../../kube/continue.ts'
import { readStatus } from '../../../kube/protobuf/peek.ts'
import { encodeMessage, type Message, messageOf, readEnvelope } from '../../../kube/protobuf/protobuf.ts'
import { definition } from '../../../mirror/documents/cloud.test-support.ts'
import {
  admin,
  aliceToken,
  answered,
  EdgeWorld,
  objectText,
  settle,
  statusText,
  warningsOf,
} from '../../edgeworld.test-support.ts'

const maps = '/api/v1/namespaces/a/configmaps'
const c1 = `${maps}/c1`

async function opened(): Promise<EdgeWorld> {
  const world = await EdgeWorld.open()
  world.cloud.server.put('configmaps', 'a/c1', { value: 'one' })
  world.cloud.server.put('configmaps', 'a/c2', { value: 'two' })
  world.cloud.server.put('configmaps', 'b/c3', { value: 'three' })
  return world
}

async function synced(): Promise<EdgeWorld> {
  const world = await opened()
  await world.synced('configmaps')
  return world
}

const asAdmin = (world: EdgeWorld, url: string) => world.ask('GET', url, { peer: admin })

const names = (list: { items: { metadata: { name: string } }[] }) => list.items.map(({ metadata }) => metadata.name)

test('[A1] a LIST that begins an interest is held until its first sync, and answered from it', async () => {
  await using world = await opened()
  world.cloud.server.fault = ({ what }) => (what === 'list' ? { kind: 'slow', ms: 4_000 } : undefined)
  const first = world.later('GET', `${maps}?resourceVersion=0`)
  const second = world.later('GET', `${maps}?resourceVersion=2`)
  await world.pass(3_000)
  assert.deepEqual([first.done, second.done], [false, false], 'nothing is committed yet')
  await world.pass(2_000)
  for (const { answer } of [first, second]) {
    const { status, json, passedThrough } = await answer
    assert.equal(status, 200)
    assert.deepEqual(names(json), ['c1', 'c2'])
    assert.equal(passedThrough, false, 'never passed through beside the sync')
  }
  assert.equal(world.cloud.passed('GET', `${maps}?resourceVersion=0`).length, 0)
})

test('[A1] a LIST is held for 10 s, and then told to come again: 429 with Retry-After', async () => {
  await using world = await opened()
  world.cloud.server.fault = ({ what }) => (what === 'list' ? { kind: 'slow', ms: 60_000 } : undefined)
  const list = world.later('GET', `${maps}?resourceVersion=0`)
  await world.pass(9_900)
  assert.equal(list.done, false)
  await world.pass(200)
  const { status, headers, json } = await list.answer
  assert.deepEqual([status, headers['retry-after'], json.reason], [429, '1', 'TooManyRequests'])
})

test('[A3] a watch that begins with what there is has begun when its headers come: what is made then it tells in order', async () => {
  await using world = await opened()
  world.cloud.server.fault = ({ what }) => (what === 'list' ? { kind: 'slow', ms: 4_000 } : undefined)
  let isOpen = false
  const opening = world.response('GET', `${maps}?watch=1`, { token: aliceToken }).then((response) => {
    isOpen = true
    return response
  })
  await world.pass(3_000)
  assert.equal(isOpen, false, 'its state is not known yet')
  await world.pass(2_000)
  const { status, body } = await opening
  assert.equal(status, 200)
  const frames = (body as AsyncIterable<Buffer>)[Symbol.asyncIterator]()
  let text = ''
  const reading = (async () => {
    while (!text.includes('"DELETED"')) text += (await frames.next()).value
  })()
  world.cloud.server.put('configmaps', 'a/later', { value: 'x' })
  world.cloud.server.put('configmaps', 'a/c0', { value: 'x' })
  world.cloud.server.remove('configmaps', 'a/later')
  await world.pass(1_000)
  await reading
  const told = [...text.matchAll(/"type":"(\w+)".*?"name":"(\w+)"/g)].map(([, type, name]) => `${type} ${name}`)
  assert.deepEqual(told, ['ADDED c1', 'ADDED c2', 'ADDED later', 'ADDED c0', 'DELETED later'])
  await frames.return?.()
})

test('[A1] a WatchList gets its headers at once and the rest from the first sync', async () => {
  await using world = await opened()
  world.cloud.server.fault = ({ what }) => (what === 'list' ? { kind: 'slow', ms: 15_000 } : undefined)
  const url = `${maps}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true`
  const opening = world.response('GET', url, { token: aliceToken })
  await settle()
  const { status, headers, body } = await opening
  assert.deepEqual([status, headers['content-type']], [200, 'application/json'])
  const frames = (body as AsyncIterable<Buffer>)[Symbol.asyncIterator]()
  let text = ''
  const reading = (async () => {
    while (!text.includes('k8s.io/initial-events-end')) text += (await frames.next()).value
  })()
  await world.pass(14_000)
  assert.equal(text, '', 'longer than a LIST may wait, and nothing is made up')
  await world.pass(2_000)
  await reading
  const [first, second, ...bookmarks] = text.match(/"type":"\w+"/g) ?? []
  assert.deepEqual([first, second], ['"type":"ADDED"', '"type":"ADDED"'])
  assert.deepEqual(new Set(bookmarks), new Set(['"type":"BOOKMARK"']))
  await frames.return?.()
})

test('a WatchList that cannot be synced here is passed on in the form its headers promise', async () => {
  await using world = await opened()
  const { server } = world.cloud
  server.fault = ({ what }) => (what === 'list' ? { kind: 'status', code: 403 } : undefined)
  const url = `${maps}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan`
  const passed = '{"type":"ADDED","object":{}}\n'
  world.cloud.script = ({ path }) => (path === url ? answered(200, passed) : undefined)
  const protobuf = 'application/vnd.kubernetes.protobuf'
  const accept = `${protobuf};stream=watch,application/json`
  const { status, headers, body } = await world.response('GET', url, { token: aliceToken, headers: { accept } })
  assert.deepEqual([status, headers['content-type']], [200, `${protobuf};stream=watch`])
  const read = Array.fromAsync(body as AsyncIterable<Buffer>)
  await world.pass(2_000)
  assert.equal(Buffer.concat(await read).toString(), passed)
  assert.equal(world.cloud.passed('GET', url)[0]?.headers?.accept, protobuf)
})

test('[A5] the copy answers a client in protobuf that prefers it, online and offline: objects, lists, watches, refusals', async () => {
  await using world = await synced()
  const headers = { accept: 'application/vnd.kubernetes.protobuf,application/json' }
  const ask = async (url: string) => {
    const { status, text } = await world.ask('GET', url, { token: aliceToken, headers })
    return { status, ...readEnvelope(Buffer.from(text, 'latin1')) }
  }
  const message = messageOf('v1', 'ConfigMap') as Message
  for (const state of ['reachable', 'unreachable'] as const) {
    await world.get(`${maps}?resourceVersion=0`)
    world.cloud.reachability.set(state)
    const { text } = await world.get(`${c1}?resourceVersion=0`)
    const object = await ask(`${c1}?resourceVersion=0`)
    assert.deepEqual([object.status, object.kind], [200, 'ConfigMap'])
    assert.deepEqual(object.raw, encodeMessage(message, Buffer.from(text)))
    const list = await ask(`${maps}?resourceVersion=0`)
    assert.equal(list.kind, 'ConfigMapList')
    assert.ok(list.raw.includes(object.raw), 'made of the same messages')
    const gone = await ask(`${maps}/none?resourceVersion=0`)
    assert.deepEqual([gone.status, gone.kind, readStatus(gone.raw).reason], [404, 'Status', 'NotFound'])
    const watch = await world.response('GET', `${maps}?watch=1`, { token: aliceToken, headers })
    assert.equal(watch.headers['content-type'], 'application/vnd.kubernetes.protobuf;stream=watch')
    const frames = (watch.body as AsyncIterable<Buffer>)[Symbol.asyncIterator]()
    assert.ok(((await frames.next()).value as Buffer).includes(object.raw))
    await frames.return?.()
  }
  const refused = await ask('/apis/unknown.test/v1/namespaces/a/things?resourceVersion=0')
  assert.deepEqual([refused.status, refused.kind], [503, 'Status'], 'never synced')
})

test('[A5] what a later cloud put into its objects is not lost in protobuf: JSON is preferred wherever it is taken', async () => {
  await using world = await synced()
  world.release.isLater = true
  const protobuf = 'application/vnd.kubernetes.protobuf'
  const url = `${c1}?resourceVersion=0`
  const ask = (path: string, accept: string) => world.ask('GET', path, { token: aliceToken, headers: { accept } })
  assert.equal((await ask(url, `${protobuf},application/json`)).json.value, 'one')
  assert.equal((await ask(`${maps}?resourceVersion=0`, `${protobuf}, */*`)).json.items.length, 2)
  assert.equal(
    (await ask(url, protobuf)).headers['content-type'],
    protobuf,
    'who takes nothing else gets what there is',
  )
  const headers = { accept: `${protobuf},application/json` }
  const watch = await world.response('GET', `${maps}?watch=1`, { token: aliceToken, headers })
  assert.equal(watch.headers['content-type'], 'application/json')
  await (watch.body as AsyncIterable<Buffer>)[Symbol.asyncIterator]().return?.()
})

test('[A6] a most-recent GET is the API server’s own answer while it is reachable, with a version the copy’s', async () => {
  await using world = await synced()
  const own = `${objectText('configmaps', '{"metadata":{"name":"c1","resourceVersion":"99"}}')}`
  const headers = { 'content-type': 'application/json', 'audit-id': 'theirs', warning: '299 - "told"' }
  world.cloud.script = ({ path, method }) => (path === c1 && method === 'GET' ? answered(200, own, headers) : undefined)
  const recent = await world.get(c1)
  assert.equal(recent.text, own)
  assert.deepEqual([recent.headers['audit-id'], recent.headers.warning], ['theirs', '299 - "told"'])
  const any = await world.get(`${c1}?resourceVersion=0`)
  assert.equal(any.json.value, 'one')
  assert.equal(any.headers.warning, undefined)
})

test('[A6] where the upstream says that the API server has what is held, the copy answers, in each form and without a warning', async () => {
  await using world = await synced()
  const held = () => world.cloud.passed('GET', c1).at(-1)?.held
  const whole = (await world.get(c1)).text
  assert.deepEqual(held(), { uid: world.cloud.server.get('configmaps', 'a/c1')?.uid, version: 2 })
  world.cloud.script = ({ path }) => (path === c1 ? { ...answered(200, ''), isSame: true } : undefined)
  const same = await world.get(c1)
  assert.deepEqual([same.status, same.text, same.passedThrough, warningsOf(same)], [200, whole, false, []])
  const accept = 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io'
  const meta = await world.ask('GET', c1, { token: aliceToken, headers: { accept } })
  assert.equal(meta.json.kind, 'PartialObjectMetadata')
  // What the copy could not show as the API server would is asked for as a whole.
  const odd = { token: aliceToken, headers: { accept: 'application/cbor' } }
  world.cloud.script = ({ path }) => (path === c1 ? answered(200, '"theirs"') : undefined)
  assert.equal((await world.ask('GET', c1, odd)).json, 'theirs')
  assert.equal(held(), undefined)
  world.release.isLater = true
  await world.get(c1)
  assert.equal(held(), undefined)
})

test('[A6] an administrator for whom a hub asks nothing reads the copy, with a warning; what is not mirrored is refused as the hub says it', async () => {
  await using world = await synced()
  world.cloud.keepsAdministrator = true
  const refusal = statusText(403, 'only read here')
  world.cloud.script = ({ identity, passedOn }) =>
    identity.kind === 'edge' && passedOn === true ? answered(403, refusal) : undefined
  const one = await asAdmin(world, c1)
  assert.deepEqual([one.status, one.json.value, one.passedThrough], [200, 'one', false])
  assert.match(warningsOf(one).join(), /local copy, \d+ s old \(its hub asks the API server nothing/)
  const impersonated = await world.ask('GET', c1, { peer: admin, headers: { 'impersonate-user': 'alice' } })
  assert.equal(impersonated.status, 403)
  assert.equal((await asAdmin(world, '/api/v1/namespaces/a/serviceaccounts/robot')).status, 403)
  // Others are asked for as ever.
  await world.get(c1)
  assert.equal(world.cloud.passed('GET', c1).at(-1)?.identity.kind, 'token')
})

test('[A6] an answer that takes longer than the limit is the copy’s, with a warning, and nobody else waits', async () => {
  await using world = await synced()
  world.cloud.reachability.answersProbes = false
  world.cloud.script = ({ path }) => (path === c1 ? 'hang' : undefined)
  await world.get(`${c1}?resourceVersion=0`)
  const waiting = world.later('GET', c1)
  await world.pass(299)
  assert.equal(waiting.done, false)
  await world.pass(2)
  const answer = await waiting.answer
  assert.deepEqual([answer.status, answer.json.value, answer.passedThrough], [200, 'one', false])
  assert.match(warningsOf(answer).join(), /^299 - "served from the local copy, \d+ s old/)
  assert.equal(world.cloud.reachability.state, 'suspect')
  const asked = world.cloud.passed('GET', c1).length
  const next = await world.get(c1)
  assert.equal(next.json.value, 'one')
  assert.match(warningsOf(next).join(), /local copy/)
  assert.equal(world.cloud.passed('GET', c1).length, asked, 'it was not even asked')
})

test('[A6] an answer that is late while probes are answered is slow by itself: nobody else goes without the API server', async () => {
  await using world = await synced()
  world.cloud.script = ({ path }) => (path === c1 ? 'hang' : undefined)
  const waiting = world.later('GET', c1)
  await world.pass(301)
  const answer = await waiting.answer
  assert.deepEqual([answer.status, answer.json.value, answer.passedThrough], [200, 'one', false])
  assert.match(warningsOf(answer).join(), /the API server did not answer in time/)
  assert.equal(world.cloud.reachability.state, 'reachable')
})

test('[A6] what a load balancer says for an API server that is away is not passed on while there is a copy', async () => {
  for (const code of [502, 503, 504]) {
    await using world = await synced()
    world.cloud.script = ({ path }) => (path === c1 ? answered(code, 'no backend', {}) : undefined)
    const answer = await world.get(c1)
    assert.deepEqual([answer.status, answer.json.value], [200, 'one'], String(code))
    assert.equal(world.cloud.reachability.state, 'suspect')
  }
})

test('[A6] a 503 that the API server says of one thing is no doubt about the API server', async () => {
  await using world = await synced()
  world.cloud.script = ({ path }) =>
    path === c1 ? answered(503, statusText(503, 'unable'), { 'audit-id': 'a' }) : undefined
  const answer = await world.get(c1)
  assert.deepEqual([answer.status, answer.json.value], [200, 'one'])
  assert.equal(world.cloud.reachability.state, 'reachable')
})

test('[A6] what the API server says of one object is final: its 403 or 404 is not covered up by the copy (kubeedge 1.2)', async () => {
  await using world = await synced()
  await world.get(`${c1}?resourceVersion=0`)
  for (const code of [404, 403]) {
    world.cloud.script = ({ path }) => (path === c1 ? answered(code, statusText(code, 'theirs')) : undefined)
    const answer = await world.get(c1)
    assert.deepEqual([answer.status, answer.json.message], [code, 'theirs'])
  }
})

test('[A6] a LIST is local: without a warning while its watch is alive, with one when it is silent', async () => {
  await using world = await synced()
  world.cloud.server.bookmark()
  await world.pass(100)
  const fresh = await world.get(maps)
  assert.deepEqual([fresh.passedThrough, warningsOf(fresh)], [false, []])
  await world.pass(6_000)
  const old = await world.get(maps)
  assert.match(warningsOf(old).join(), /local copy, 6 s old \(its watch is silent\)/)
  assert.deepEqual(warningsOf(await world.get(`${maps}?resourceVersion=0`)), [], 'who asks for any state gets one')
  world.cloud.server.bookmark()
  await world.pass(100)
  assert.deepEqual(warningsOf(await world.get(maps)), [])
})

test('a GET creates an interest of its name and is itself forwarded', async () => {
  await using world = await opened()
  const first = await world.get(`${c1}?resourceVersion=0`)
  assert.deepEqual([first.passedThrough, first.json.value], [true, 'one'])
  await world.pass(1_000)
  const second = await world.get(`${c1}?resourceVersion=0`)
  assert.deepEqual([second.passedThrough, second.json.value], [false, 'one'])
  world.cloud.reachability.set('unreachable')
  assert.equal((await world.get(c1)).json.value, 'one')
  assert.equal((await asAdmin(world, `${maps}/c2`)).status, 503, 'its neighbour is not known')
})

test('a LIST without a version becomes an interest when its caller repeats it, not when another does', async () => {
  await using world = await opened()
  world.cloud.judge.users.set('bob-token', { name: 'bob', uid: 'u-2', groups: [] })
  const list = async (token: string) => {
    const listing = world.later('GET', maps, { token })
    await world.until(() => listing.done)
    return await listing.answer
  }
  assert.equal((await list(aliceToken)).passedThrough, true)
  assert.equal((await list('bob-token')).passedThrough, true)
  await world.pass(600_500)
  assert.equal((await list(aliceToken)).passedThrough, true, 'ten minutes have passed')
  const again = await list(aliceToken)
  assert.deepEqual([again.passedThrough, names(again.json)], [false, ['c1', 'c2']])
})

test('pages go on where they began: ours here, the API server’s there', async () => {
  await using world = await synced()
  const first = await world.get(`${maps}?limit=1&resourceVersion=0`)
  const whole = first.json.metadata.continue === undefined
  const page = whole ? await world.get(`${maps}?limit=1`) : first
  assert.deepEqual(names(page.json), ['c1'])
  const next = await world.get(`${maps}?limit=1&continue=${page.json.metadata.continue}`)
  assert.deepEqual([next.passedThrough, names(next.json)], [false, ['c2']])
  const { t, ...theirs } = JSON.parse(Buffer.from(encodeContinue('a/c1', 4, 1, 'a/'), 'base64url').toString())
  assert.equal(t, 1)
  const token = Buffer.from(JSON.stringify(theirs)).toString('base64url')
  const passed = await world.get(`${maps}?limit=1&continue=${token}`)
  assert.deepEqual([passed.passedThrough, names(passed.json)], [true, ['c2']])
  world.cloud.reachability.set('unreachable')
  const offline = await world.get(`${maps}?limit=1&continue=${token}`)
  assert.deepEqual([offline.status, names(offline.json)], [200, ['c2']])
})

test('[A1] 404 is for what was verified to be absent, 503 for what nobody here ever saw', async () => {
  await using world = await opened()
  await world.synced('configmaps', 'a')
  world.cloud.reachability.set('unreachable')
  assert.equal((await asAdmin(world, `${maps}/none`)).status, 404)
  const other = '/api/v1/namespaces/b/configmaps'
  for (const url of [`${other}/none`, `${other}/c3`, other, `${other}?watch=1`, '/api/v1/nodes?resourceVersion=0']) {
    const { status, json, headers } = await asAdmin(world, url)
    assert.deepEqual([status, json.reason, headers['retry-after']], [503, 'ServiceUnavailable', undefined], url)
  }
})

test('status shows the object itself, other subresources and a namespaced name without namespace are passed on', async () => {
  await using world = await opened()
  world.cloud.server.put('pods', 'a/p1', { value: 'pod' })
  await world.synced('pods')
  const pod = '/api/v1/namespaces/a/pods/p1'
  const status = await world.get(`${pod}/status?resourceVersion=0`)
  assert.deepEqual([status.passedThrough, status.json.value], [false, 'pod'])
  // The edge's copy of what has no status must not be shown as one.
  await world.synced('configmaps')
  const others = [`${pod}/log?resourceVersion=0`, '/api/v1/pods/p1', '/api/v1/namespaces/a/nodes']
  for (const url of [...others, `${c1}/status?resourceVersion=0`]) {
    world.cloud.script = ({ path }) => (path === url ? answered(200, 'theirs', {}) : undefined)
    assert.equal((await world.get(url)).text, 'theirs', url)
  }
})

test('offline every read goes on: selectors, pages, a watch that resumes, also after a restart', async () => {
  await using world = await synced()
  world.cloud.server.put('configmaps', 'a/c2', { value: 'later' })
  await world.pass(1_000)
  world.cloud.reachability.set('unreachable')
  world.cloud.server.cutWatches()
  for (let life = 0; life < 2; life++) {
    assert.deepEqual(names((await asAdmin(world, '/api/v1/configmaps?fieldSelector=metadata.name%3Dc3')).json), ['c3'])
    const { json, headers } = await asAdmin(world, maps)
    assert.deepEqual(names(json), ['c1', 'c2'])
    assert.match(String(headers.warning), /local copy, \d+ s old/)
    const { status, body } = await world.response('GET', `${maps}?watch=1&resourceVersion=4`, { peer: admin })
    assert.equal(status, 200)
    const frames = (body as AsyncIterable<Buffer>)[Symbol.asyncIterator]()
    assert.match(String((await frames.next()).value), /"type":"MODIFIED".*"value":"later"/)
    await frames.return?.()
    await world.restart()
  }
})

const deployments = '/apis/apps/v1/namespaces/a/deployments'

async function withDeployment(): Promise<EdgeWorld> {
  const world = await EdgeWorld.open()
  const selector = { matchLabels: { app: 'web' }, matchExpressions: [{ key: 'tier', operator: 'Exists' }] }
  world.cloud.server.put('deployments', 'a/web', { spec: { replicas: 3, selector }, status: { replicas: 2 } })
  const listing = world.later('GET', `${deployments}?resourceVersion=0`)
  await world.until(() => listing.done)
  world.cloud.script = ({ path }) => (path === `${deployments}/web/scale` ? answered(200, 'theirs', {}) : undefined)
  return world
}

test('scale of what is mirrored is answered from the copy while the cloud is away, by rights of its own', async () => {
  await using world = await withDeployment()
  assert.equal((await world.get(`${deployments}/web/scale`)).text, 'theirs', 'the newest is the API server’s to tell')
  world.cloud.reachability.set('unreachable')
  const scale = await world.get(`${deployments}/web/scale`)
  assert.deepEqual([scale.status, scale.passedThrough], [200, false])
  assert.deepEqual(scale.json, {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: { name: 'web', namespace: 'a', uid: 'u1', resourceVersion: '2' },
    spec: { replicas: 3 },
    status: { replicas: 2, selector: 'app=web,tier' },
  })
  assert.match(warningsOf(scale).join(), /served from the local copy/)
  const table = await world.get(`${deployments}/web/scale`, { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' })
  assert.deepEqual(table.json.rows[0].cells.slice(0, 3), ['web', 3, 2])
  assert.equal((await asAdmin(world, `${deployments}/none/scale`)).status, 404)
  // Who may read deployments was never said to be allowed to read how they scale.
  world.cloud.judge.users.set('bob-token', { name: 'bob', uid: 'b', groups: [] })
  world.cloud.reachability.set('reachable')
  assert.equal((await world.ask('GET', `${deployments}?resourceVersion=0`, { token: 'bob-token' })).status, 200)
  world.cloud.reachability.set('unreachable')
  const bobs = await world.ask('GET', `${deployments}/web/scale`, { token: 'bob-token' })
  assert.deepEqual([bobs.status, bobs.json.reason], [503, 'ServiceUnavailable'])
})

test('scale of a custom resource follows the paths of its definition, and is passed on where that is not known', async () => {
  await using world = await EdgeWorld.open()
  const oxen = '/apis/pasture.test/v1/namespaces/a/oxen'
  world.catalog.applyDefinition('oxen.pasture.test', definition)
  await settle()
  world.cloud.server.put('oxen', 'a/elsa', { spec: { count: 4 }, status: { count: 1 } })
  const listing = world.later('GET', `${oxen}?resourceVersion=0`)
  await world.until(() => listing.done)
  world.cloud.script = ({ path }) => (path === `${oxen}/elsa/scale` ? answered(200, 'theirs', {}) : undefined)
  await world.get(`${oxen}/elsa/scale`)
  world.cloud.reachability.set('unreachable')
  const { json } = await world.get(`${oxen}/elsa/scale`)
  assert.deepEqual([json.kind, json.spec, json.status], ['Scale', { replicas: 4 }, { replicas: 1 }])
  world.catalog.applyDefinition('oxen.pasture.test', undefined)
  await settle()
  assert.equal((await world.get(`${oxen}/elsa/scale`)).status, 503)
})
