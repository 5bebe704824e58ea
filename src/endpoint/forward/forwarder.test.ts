/** What is passed on: in whose name, untouched both ways, and what is said when it is unknown what became of it. */
import assert from 'node:assert/strict'
import { Duplex } from 'node:stream'
import { test } from 'node:test'
import { makeQuestion } from '../../access/question.ts'
import type { Connected } from '../../upstream/upstream.ts'
import { Unreachable } from '../../upstream/upstream.ts'
import { type Asking, admin, aliceToken, answered, EdgeWorld, objectText, whole } from '../edgeworld.test-support.ts'

const maps = '/api/v1/namespaces/a/configmaps'

const node = (expiresMs = Number.MAX_SAFE_INTEGER, name = 'system:node:n1') => ({
  certificate: { name, organizations: [], issuedBy: 'clients' as const, expiresMs },
})

test('[I1] a request goes up in the name of the caller that sent it, and of no other', async () => {
  await using world = await EdgeWorld.open()
  world.cloud.script = ({ method }) => (method === 'PATCH' ? answered(200, '{}') : undefined)
  const rows: [Asking, object][] = [
    [{ token: 'tok.en.text' }, { kind: 'token', token: 'tok.en.text' }],
    [{ headers: { authorization: 'bearer tok.en.text' } }, { kind: 'token', token: 'tok.en.text' }],
    [{ headers: { authorization: 'Basic abc' } }, { kind: 'anonymous' }],
    [{}, { kind: 'anonymous' }],
    [{ peer: admin }, { kind: 'edge' }],
    [{ peer: node() }, { kind: 'certificate', name: 'system:node:n1' }],
    [
      { peer: node(), token: 'tok' },
      { kind: 'certificate', name: 'system:node:n1' },
    ],
    [{ peer: node(undefined, 'system:node:n2') }, { kind: 'anonymous' }],
    [
      { peer: node(undefined, 'system:node:n2'), token: 'tok' },
      { kind: 'token', token: 'tok' },
    ],
  ]
  for (const [asking, identity] of rows) {
    await world.ask('PATCH', `${maps}/x`, { ...asking, body: '{}' })
    assert.deepEqual(world.cloud.passed('PATCH', `${maps}/x`).at(-1)?.identity, identity, JSON.stringify(asking))
  }
})

test('[I1] groups to be impersonated go up one by one, also with a token request and an upgrade', async () => {
  await using world = await EdgeWorld.open()
  world.cloud.script = ({ path }) => (path.startsWith('/api/v1/namespaces/a/') ? answered(200, '{}') : undefined)
  const headers = { 'impersonate-user': 'x', 'impersonate-group': 'g1, g2' }
  const rawHeaders = ['Impersonate-User', 'x', 'Impersonate-Group', 'g1', 'impersonate-group', 'g2']
  const asking = { peer: admin, headers, rawHeaders, body: '{}' }
  await world.ask('PATCH', `${maps}/x`, asking)
  await world.ask('GET', maps, { peer: admin, headers, rawHeaders })
  await world.ask('POST', '/api/v1/namespaces/a/serviceaccounts/default/token', asking)
  const { body: _, ...exec } = asking
  const nothing = {
    hasBody: false,
    body: async () => Buffer.alloc(0),
    stream: async function* () {},
  }
  await world.endpoint.upgrade({ method: 'POST', url: '/api/v1/namespaces/a/pods/p/exec', ...nothing, ...exec })
  const passed = [...world.cloud.asked, ...world.cloud.connects].filter(
    ({ headers: sent }) => sent?.['impersonate-user'],
  )
  assert.deepEqual(
    passed.map((one) => one.headers?.['impersonate-group']),
    Array(4).fill(['g1', 'g2']),
  )
})

test('body, query and media type travel untouched, and the answer comes back with its own headers', async () => {
  await using world = await EdgeWorld.open()
  const reply = Buffer.from([0x6b, 0x38, 0x73, 0, 0xff, 0xfe])
  const headers = {
    'content-type': 'application/vnd.kubernetes.protobuf',
    'audit-id': 'theirs',
    'retry-after': '7',
    warning: ['299 - "one"', '299 - "two"'],
  }
  let sent: Buffer = Buffer.alloc(0)
  world.cloud.script = async ({ path, body }) => {
    if (!path.startsWith('/apis/metrics')) return undefined
    sent = await whole(body as AsyncIterable<Buffer>)
    return answered(429, reply, headers)
  }
  const body = Buffer.from([1, 2, 3, 0, 255])
  const url = '/apis/metrics.k8s.io/v1beta1/x?force=true&fieldManager=a%20b'
  const asked = { 'content-type': 'application/apply-patch+yaml', 'x-other': 'kept', accept: 'a/b' }
  const answer = await world.ask('PATCH', url, { token: aliceToken, headers: asked, body })
  assert.deepEqual([answer.status, Buffer.from(answer.text, 'latin1')], [429, reply])
  assert.deepEqual(answer.headers, headers)
  assert.deepEqual(sent, body)
  const passed = world.cloud.passed('PATCH', url)[0]
  for (const [name, value] of Object.entries(asked)) assert.equal(passed?.headers?.[name], value)
})

test('an answer that was passed on is as the API server gave it: none of our warnings is added', async () => {
  await using world = await EdgeWorld.open()
  world.cloud.script = ({ path }) => (path.includes('endpoints') ? answered(403, 'no', {}) : undefined)
  const { headers, status } = await world.get('/api/v1/namespaces/a/endpoints/x')
  assert.deepEqual([status, headers], [403, {}])
})

test('a reply too large to look at comes whole all the same', async () => {
  await using world = await EdgeWorld.open()
  world.cloud.server.put('configmaps', 'a/c1')
  await world.synced('configmaps', 'a')
  const pieces = Array.from({ length: 10 }, (_, index) => Buffer.alloc(1 << 20, index + 65))
  world.cloud.script = ({ method }) => (method === 'PUT' ? answered(200, pieces) : undefined)
  const { body } = await world.response('PUT', `${maps}/c1`, { token: aliceToken, body: '{}' })
  assert.ok((await whole(body)).equals(Buffer.concat(pieces)))
})

test('a write whose outcome nobody knows is 504, one that was never sent 503; neither says that it was done', async () => {
  await using world = await EdgeWorld.open()
  world.cloud.server.put('configmaps', 'a/c1')
  await world.synced('configmaps', 'a')
  for (const sent of [true, false]) {
    world.cloud.script = ({ method }) => {
      if (method !== 'PUT') return undefined
      throw new Unreachable('the line broke', sent)
    }
    const { status, json, headers } = await world.ask('PUT', `${maps}/c1`, { token: aliceToken, body: '{}' })
    assert.deepEqual([status, json.reason], sent ? [504, 'Timeout'] : [503, 'ServiceUnavailable'])
    assert.equal(headers['retry-after'], undefined)
    assert.match(json.message, sent ? /may have done/ : /nothing was written/)
  }
  // Its head came, and then the line broke.
  const broken = async function* (): AsyncGenerator<Buffer> {
    yield Buffer.from('{"kind":')
    throw new Unreachable('the line broke', true)
  }
  world.cloud.script = ({ method }) => (method === 'PUT' ? { ...answered(200, ''), body: broken() } : undefined)
  assert.equal((await world.ask('PUT', `${maps}/c1`, { token: aliceToken, body: '{}' })).status, 504)
})

test('[A8] a passed-on body is pulled as its reader reads, and let go when he does not', async () => {
  await using world = await EdgeWorld.open()
  let pulled = 0
  let ended = false
  const endless = async function* () {
    try {
      for (;;) {
        pulled++
        yield Buffer.alloc(1024)
      }
    } finally {
      ended = true
    }
  }
  world.cloud.script = ({ path }) => (path.includes('/log') ? { ...answered(200, ''), body: endless() } : undefined)
  const { body } = await world.response('GET', '/api/v1/namespaces/a/pods/p/log?follow=1', { token: aliceToken })
  const reading = (body as AsyncIterable<Buffer>)[Symbol.asyncIterator]()
  await reading.next()
  await reading.next()
  await world.pass(100)
  assert.equal(pulled, 2)
  await reading.return?.()
  assert.equal(ended, true)
})

test('a passed-on watch that breaks off ends in order, so that its client watches again instead of listing', async () => {
  await using world = await EdgeWorld.open()
  const url = '/apis/events.k8s.io/v1/namespaces/a/events?watch=1'
  world.cloud.script = ({ path }) => (path === url ? answered(200, '{}') : undefined)
  const response = await world.response('GET', url, { token: aliceToken })
  assert.deepEqual([response.passedThrough, response.cutCleanly], [true, true])
})

test('an upgrade is asked for in its caller’s name, refused while the cloud is away', async () => {
  await using world = await EdgeWorld.open()
  const socket = new Duplex({ read() {}, write: (_, __, done) => done() })
  const connected: Connected = { status: 101, rawHeaders: ['upgrade', 'SPDY/3.1'], socket, head: Buffer.alloc(0) }
  world.cloud.connectAs = () => connected
  const request = (headers: Record<string, string>) =>
    world.endpoint.upgrade({
      method: 'POST',
      url: '/api/v1/namespaces/a/pods/p/exec?command=sh',
      headers,
      hasBody: false,
      body: async () => Buffer.alloc(0),
      stream: async function* () {},
      peer: {},
    })
  assert.equal(await request({ authorization: 'Bearer tok', upgrade: 'SPDY/3.1' }), connected)
  const [asked] = world.cloud.connects
  assert.deepEqual([asked?.identity, asked?.headers?.upgrade], [{ kind: 'token', token: 'tok' }, 'SPDY/3.1'])
  world.cloud.connectAs = () => {
    throw new Unreachable('refused', false)
  }
  for (const state of ['reachable', 'unreachable'] as const) {
    world.cloud.reachability.set(state)
    const answer = await request({})
    assert.equal(answer.status, 503, state)
    assert.ok(!('socket' in answer))
  }
})

test('[I1] what the API server allowed counts from then on, what it refused too', async () => {
  await using world = await EdgeWorld.open()
  world.cloud.server.put('configmaps', 'a/c1', { value: 'one' })
  await world.synced('configmaps', 'a')
  const { judge } = world.cloud
  judge.allows = ({ name }) => name !== 'mallory'
  judge.users.set('mallory-token', { name: 'mallory', uid: 'm', groups: [] })
  world.cloud.script = ({ identity, path }) =>
    identity.kind === 'token' && identity.token === 'mallory-token' && path.startsWith(maps)
      ? answered(403, objectText('configmaps', '{"metadata":{}}'))
      : undefined
  const get = (token: string) => world.ask('GET', `${maps}/c1?resourceVersion=0`, { token })
  assert.equal((await get('mallory-token')).status, 403)
  await get(aliceToken)
  world.cloud.reachability.set('unreachable')
  assert.equal((await get('mallory-token')).status, 403)
  assert.equal((await get(aliceToken)).status, 200)
})

test('[I2] `OPTIONS *` tells nothing of rights: it is answered before the API server has looked at them', async () => {
  await using world = await EdgeWorld.open()
  world.cloud.judge.allows = () => false
  world.cloud.script = ({ method, path }) => (method === 'OPTIONS' && path === '*' ? answered(200, '', {}) : undefined)
  await world.access.access.caller({ kind: 'token', token: aliceToken })
  assert.equal((await world.ask('OPTIONS', '*', { token: aliceToken })).status, 200)
  world.cloud.reachability.set('unreachable')
  const question = makeQuestion({ verb: 'options', path: '*' })
  assert.equal(await world.access.access.decide({ kind: 'token', token: aliceToken }, question), 'unknown')
})

test("the administrator is told that the edge's credential is refused, and not to log in", async () => {
  await using world = await EdgeWorld.open()
  world.cloud.script = ({ path }) => (path.startsWith(maps) ? answered(401, '{"code":401}') : undefined)
  for (const [method, more] of [
    ['GET', {}],
    ['DELETE', {}],
    ['PATCH', { body: '{}' }],
  ] as const) {
    const { status, json } = await world.ask(method, `${maps}/c1`, { peer: admin, ...more })
    assert.equal(status, 503, method)
    assert.match(json.message, /refuses the edge's own credential \(401\).*: renew it in the edge's kubeconfig/, method)
    // Of others it is the API server's to say.
    assert.equal((await world.ask(method, `${maps}/c1`, { token: aliceToken, ...more })).status, 401, method)
  }
})

test("what the administrator asks of an API server that refuses the edge's credential is answered by that, also where it did not get there", async () => {
  await using world = await EdgeWorld.open()
  const { reachability } = world.cloud
  const pod = '/api/v1/namespaces/a/pods/p'
  const account = '/api/v1/namespaces/a/serviceaccounts/default/token'
  const refused = /refuses the edge's own credential \(401\).*: renew it in the edge's kubeconfig/
  const message = async (method: string, url: string, more: object = { peer: admin }) => {
    const { status, json } = await world.ask(method, url, { ...more, ...(method === 'GET' ? {} : { body: '{}' }) })
    assert.equal(status, 503, `${method} ${url}`)
    return json.message
  }
  const exec = async (): Promise<string> => {
    const nothing = { hasBody: false, body: async () => Buffer.alloc(0), stream: async function* () {} }
    const asked = { method: 'POST', url: `${pod}/exec`, headers: {}, ...nothing, peer: admin }
    const answer = await world.endpoint.upgrade(asked)
    return 'body' in answer ? (await whole(answer.body)).toString() : `upgraded ${answer.status}`
  }
  const socket = new Duplex({ read() {}, write: (_, __, done) => done() })
  world.cloud.connectAs = () => ({ status: 401, rawHeaders: [], socket, head: Buffer.alloc(0) })
  world.cloud.script = ({ path }) => (path.startsWith('/api/v1/namespaces/a/') ? answered(401, '{}') : undefined)
  assert.match(await message('POST', account), refused)
  assert.equal((await world.ask('GET', `${pod}/log`, { peer: admin })).status, 401, 'the node may have said so')
  assert.equal(await exec(), 'upgraded 401')
  assert.equal(socket.destroyed, false)
  reachability.refusesEdge = true
  assert.match(await message('GET', `${pod}/log`), refused)
  assert.match(await exec(), refused)
  assert.equal(socket.destroyed, true)
  let sent = false
  const broken = () => {
    throw new Unreachable('its connection went away', sent)
  }
  world.cloud.connectAs = broken
  world.cloud.script = ({ path }) => (path.startsWith('/api/v1/namespaces/a/') ? broken() : undefined)
  for (const state of ['reachable', 'suspect'] as const) {
    reachability.set(state)
    assert.match(await message('DELETE', pod), refused)
    assert.match(await message('GET', `${pod}/log`), refused)
    assert.match(await exec(), refused)
    assert.match(await message('DELETE', pod, { token: aliceToken }), /cannot be reached.*its connection went away/)
    sent = true
    assert.equal((await world.ask('DELETE', pod, { peer: admin, body: '{}' })).status, 504, 'it may have been renewed')
    sent = false
  }
  // Without a line that is what counts, whatever was said before.
  reachability.set('unreachable')
  assert.match(await message('DELETE', pod), /cannot be reached, and nothing was written/)
})

test('a client that leaves before the answer takes the request along, and that is no sign against the API server', async () => {
  await using world = await EdgeWorld.open()
  world.cloud.server.put('configmaps', 'a/c1', { value: 'one' })
  await world.synced('configmaps', 'a')
  await world.get(`${maps}/c1`)
  world.cloud.script = ({ method, path }) => (method === 'POST' || path === `${maps}/c1` ? 'hang' : undefined)
  for (const [method, url] of [
    ['POST', maps],
    ['GET', `${maps}/c1`],
  ] as const) {
    const leaving = new AbortController()
    const body = method === 'POST' ? { body: '{}' } : {}
    const later = world.later(method, url, { token: aliceToken, gone: leaving.signal, ...body })
    await world.pass(100)
    assert.equal(later.done, false, method)
    leaving.abort()
    assert.equal((await later.answer).status, 499, method)
    assert.equal(world.cloud.passed(method, url).at(-1)?.signal?.aborted, true)
    assert.equal(world.cloud.reachability.state, 'reachable', method)
  }
})
