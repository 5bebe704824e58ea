/** What goes up for whom, and what does not, over a link between a real session of an edge and the hub. */
import assert from 'node:assert/strict'
import { type Duplex, duplexPair, PassThrough } from 'node:stream'
import { test } from 'node:test'
import { createLog } from '../../base/log.ts'
import { encodeRequestHead, requestPurpose } from '../../tunnel/request/request.ts'
import { requestHeaders, upgradeHeaders } from '../../upstream/headers.ts'
import { LinkedRequests } from '../../upstream/linked/linked.ts'
import { type Identity, Unreachable, type UpstreamRequest, type UpstreamResponse } from '../../upstream/upstream.ts'
import { HubWorld, type TestEdge } from '../peers/hub.test-support.ts'
import { EdgeForwarding } from './forwarding.ts'
import type { ForwardingLimits } from './limits.ts'
import { passable } from './passable.ts'
import { comparedBytesMax } from './same.ts'

type Wishes = { readonly trustsEdges?: boolean; readonly limits?: Partial<ForwardingLimits> }

/** An API server that answers with what it was asked. */
class EchoingCloud {
  readonly asked: UpstreamRequest[] = []
  /** What an upgrade leads to, where it is not an echo. */
  far: Duplex | undefined
  /** Holds answers back. */
  isStuck = false
  answer: (asked: UpstreamRequest) => Promise<UpstreamResponse> = async (asked) => {
    const body: Buffer[] = []
    if (asked.body !== undefined) for await (const piece of asked.body as AsyncIterable<Buffer>) body.push(piece)
    const isStuck = () => this.isStuck
    const stream = (async function* () {
      yield Buffer.concat(body)
      while (isStuck()) await new Promise(setImmediate)
    })()
    return { status: 200, headers: { 'x-echo': asked.path }, body: stream, heardAt: () => 0 }
  }

  ask(asked: UpstreamRequest): Promise<UpstreamResponse> {
    this.asked.push(asked)
    return this.answer(asked)
  }

  connect(asked: UpstreamRequest) {
    this.asked.push(asked)
    const socket = this.far ?? new PassThrough()
    const rawHeaders = ['Connection', 'Upgrade', 'Upgrade', 'SPDY/3.1']
    return Promise.resolve({ status: 101, rawHeaders, socket, head: Buffer.from('first ') })
  }

  /** As the upstream would send it. */
  get lastSent() {
    const last = this.asked.at(-1)
    return requestHeaders({ headers: last?.headers, token: undefined, bytes: 0 })
  }
}

async function opened(wishes: Wishes = {}) {
  const cloud = new EchoingCloud()
  const lines: string[] = []
  const log = createLog({ level: 'debug', write: (line) => void lines.push(line) })
  let forwarding: EdgeForwarding | undefined
  const world = await HubWorld.open({
    accept: (edge) => (incoming) => {
      forwarding ??= new EdgeForwarding({ upstream: cloud, trustsEdges: false, clock, log, ...wishes })
      accepting.getOrInsertComputed(edge, () => (forwarding as EdgeForwarding).acceptFor(edge))(incoming)
    },
  })
  const accepting = new Map<object, ReturnType<EdgeForwarding['acceptFor']>>()
  const { clock } = world.mirror.server
  const edge = world.edge('n1', 'v1/pods')
  edge.connect()
  await world.until(() => edge.copy().version > 0)
  return { world, cloud, edge, requests: requestsOf(edge, world), lines }
}

function requestsOf(edge: TestEdge, world: HubWorld): LinkedRequests {
  const { clock } = world.mirror.server
  const node = `system:node:${edge.name}`
  return new LinkedRequests({ streams: () => edge.streams, heardAt: () => 0, node, userAgent: 'ake/test', clock })
}

async function textOf({ body }: UpstreamResponse): Promise<string> {
  const pieces: Buffer[] = []
  for await (const piece of body) pieces.push(piece)
  return Buffer.concat(pieces).toString()
}

const asNode: Identity = { kind: 'certificate', name: 'system:node:n1' }
const get = { method: 'GET', path: '/api/v1/pods?limit=1' } as const

test('[I1, L20] a token goes up unchanged, with what its caller wrote', async () => {
  const { world, cloud, requests } = await opened()
  await using _ = world
  const headers = { accept: 'application/json', 'impersonate-user': 'jane' }
  const body = Buffer.from('{"a":1}')
  const identity = { kind: 'token', token: 'abc.def' } as const
  const reply = await requests.ask({ method: 'POST', path: '/api/v1/pods', headers, body, identity })
  assert.equal(await textOf(reply), '{"a":1}')
  assert.equal(reply.headers['x-echo'], '/api/v1/pods')
  const [asked] = cloud.asked
  assert.deepEqual(asked?.identity, identity)
  assert.equal(asked?.headers?.['impersonate-user'], 'jane')
  assert.equal(asked?.passedOn, true)
})

test('[I1] the public keys of tokens are had with the credential of the hub, and nothing else is', async () => {
  const { world, cloud, edge, requests } = await opened()
  await using _ = world
  for (const path of ['/openid/v1/jwks', '/.well-known/openid-configuration']) {
    assert.equal((await requests.ask({ method: 'GET', path, identity: asNode })).status, 200)
    assert.deepEqual({ ...cloud.lastSent }, { 'user-agent': 'ake/test' })
  }
  const asked = [
    ...[
      '/openid/v1/jwks/',
      '/openid/v1/jwks?x',
      '/openid/v1/../v1/jwks',
      '/openid/v1/jwks/../../../api/v1/secrets',
    ].map((path) => ({ method: 'GET', path })),
    { method: 'POST', path: '/openid/v1/jwks' },
  ]
  for (const one of asked) {
    await requests.ask({ ...one, identity: asNode })
    assert.equal(cloud.lastSent['impersonate-user'], 'system:node:n1', one.path)
  }
  const before = cloud.asked.length
  assert.equal(await raw(edge, [{ name: 'impersonate-user', value: 'admin' }]), 403)
  assert.equal(cloud.asked.length, before)
})

test('[I1] the node of the link is impersonated, by the name in its certificate and no other', async () => {
  const { world, cloud, edge, requests } = await opened()
  await using _ = world
  assert.equal((await requests.ask({ ...get, identity: asNode })).status, 200)
  assert.deepEqual(cloud.asked[0]?.identity, { kind: 'edge' })
  const expected = { 'impersonate-user': 'system:node:n1', 'impersonate-group': 'system:nodes' }
  assert.deepEqual({ ...cloud.lastSent }, { ...expected, 'user-agent': 'ake/test' })

  // What a hostile edge may write: nothing of it goes up, or it changes nothing about whose request it is.
  const hostile: readonly (readonly [string, string])[] = [
    ...([
      ['impersonate-user', 'admin'],
      ['Impersonate-User', 'admin'],
      ['IMPERSONATE-GROUP', 'system:masters'],
    ] as const),
    ...([
      ['impersonate-extra-x', 'y'],
      ['impersonate-uid', '1'],
      ['impersonate-user ', 'admin'],
    ] as const),
    ...([
      ['x-a', 'b\r\nimpersonate-user: admin'],
      ['', 'x'],
      [':path', '/x'],
      ['__proto__', 'x'],
    ] as const),
  ]
  for (const [name, value] of hostile) {
    const before = cloud.asked.length
    const status = await raw(edge, [{ name, value }])
    assert.ok(status === 403 || status === 400, `${name}: ${status}`)
    assert.equal(cloud.asked.length, before, name)
  }
  for (const [name, value] of [
    ['connection', 'impersonate-user, impersonate-group'],
    ['Connection', 'impersonate-user'],
    ['Authorization', 'Bearer x'],
  ] as const) {
    assert.equal(await raw(edge, [{ name, value }]), 200, name)
    assert.equal(cloud.asked.at(-1)?.headers?.connection, undefined)
    assert.deepEqual({ ...cloud.lastSent }, expected)
    const upgraded = upgradeHeaders({ headers: cloud.asked.at(-1)?.headers, token: undefined, bytes: 0 })
    assert.deepEqual({ ...upgraded }, expected)
  }
  for (const [method, path] of [
    ['CONNECT', '/'],
    ['get', '/'],
    ['GET', 'http://other/'],
    ['GET', '/ HTTP/1.1\r\nx: y'],
    ['GET', ''],
  ] as const)
    assert.equal(await raw(edge, [], { method, path }), 400, `${method} ${path}`)
})

/** In the node's name, past what an edge of ours would write; answers the status. */
async function raw(
  edge: TestEdge,
  headers: { name: string; value: string }[],
  more: { method?: string; path?: string } = {},
) {
  const stream = edge.streams?.open({ purpose: requestPurpose })
  assert.ok(stream !== undefined)
  const asked = { method: 'GET', path: '/api', actor: 'node', hasBody: 0, headers, version: 0, uid: '' } as const
  stream.end(encodeRequestHead({ ...asked, ...more }))
  const pieces: Buffer[] = []
  for await (const piece of stream) pieces.push(piece as Buffer)
  const answer = Buffer.concat(pieces)
  // Behind the length of the head, which is less than 128 bytes or takes two.
  const at = (answer[0] as number) < 0x80 ? 1 : 2
  return (answer[at] as number) - 0x80 + (answer[at + 1] as number) * 0x80
}

test('[I1, I3] the administrator does not go up, with a sentence; who shows nothing goes up as nobody', async () => {
  const { world, cloud, requests, lines } = await opened()
  await using _ = world
  const reply = await requests.ask({ ...get, identity: { kind: 'edge' }, passedOn: true })
  assert.equal(reply.status, 403)
  assert.match(await textOf(reply), /does not trust edges/)
  assert.deepEqual(cloud.asked, [])
  await requests.ask({ ...get, identity: { kind: 'anonymous' }, passedOn: true })
  assert.deepEqual(
    cloud.asked.map(({ identity }) => identity),
    [{ kind: 'anonymous' }],
  )
  assert.equal(
    Object.keys(cloud.lastSent ?? {}).some((name) => name.startsWith('impersonate-')),
    false,
  )
  assert.deepEqual(lines, [])
})

test('a hub that trusts its edges passes their administrator on as itself, and says so', async () => {
  const { world, cloud, requests, lines } = await opened({ trustsEdges: true })
  await using _ = world
  assert.equal((await requests.ask({ ...get, identity: { kind: 'edge' }, passedOn: true })).status, 200)
  assert.deepEqual(cloud.asked[0]?.identity, { kind: 'edge' })
  assert.deepEqual({ ...cloud.lastSent }, {})
  assert.ok(lines.some((line) => line.includes('warn hub.trusts')))
})

test('an upgrade leads to bytes both ways', async () => {
  const { world, cloud, requests } = await opened()
  await using _ = world
  const headers = { connection: 'Upgrade', upgrade: 'SPDY/3.1' }
  const { status, socket } = await requests.connect({ ...get, headers, identity: asNode })
  assert.equal(status, 101)
  const came: string[] = []
  socket.on('data', (bytes: Buffer) => void came.push(bytes.toString()))
  socket.on('error', () => undefined)
  socket.write('second')
  for (let at = 0; at < 20 && came.join('') !== 'first second'; at++) await world.pass(100)
  assert.equal(came.join(''), 'first second')
  assert.equal(cloud.asked[0]?.headers?.upgrade, 'SPDY/3.1')
})

test('[L16] an upgraded connection that the API server closes at once ends with its last bytes; one that breaks off is broken', async () => {
  for (const isOrderly of [true, false]) {
    const { world, cloud, requests } = await opened()
    await using _ = world
    const [ours, theirs] = duplexPair()
    cloud.far = ours
    const headers = { connection: 'Upgrade', upgrade: 'websocket' }
    const { socket } = await requests.connect({ ...get, headers, identity: asNode })
    let came = ''
    let end = ''
    socket.on('data', (bytes: Buffer) => {
      came += bytes.toString()
    })
    socket.on('end', () => {
      end = 'ended'
    })
    socket.on('error', () => {
      end = 'broken'
    })
    theirs.write('x'.repeat(100_000))
    if (isOrderly) {
      theirs.end('the last')
      ours.once('end', () => ours.destroy())
    } else ours.destroy(new Error('reset'))
    for (let at = 0; at < 50 && end === ''; at++) await world.pass(100)
    assert.equal(end, isOrderly ? 'ended' : 'broken')
    if (isOrderly) assert.equal(came.length, 'first '.length + 100_008)
    socket.destroy()
  }
})

test('[L20] whether the API server may have seen a request is told as it is', async () => {
  const { world, cloud, requests } = await opened()
  await using _ = world
  for (const sent of [true, false]) {
    cloud.answer = () => Promise.reject(new Unreachable('no way', sent))
    await assert.rejects(requests.ask({ ...get, identity: asNode }), (error: Unreachable) => error.sent === sent)
  }
})

test('[A8] edges and callers have limits of their own, told as 429 with the time to wait', async () => {
  const limits = { edgePerSecond: 10, edgeBurst: 20, callerPerSecond: 2, callerBurst: 4, edgeRequestsMax: 3 }
  const { world, cloud, requests } = await opened({ limits })
  await using _ = world
  const statusOf = async (token: string) => {
    const reply = await requests.ask({ ...get, identity: { kind: 'token', token } })
    await textOf(reply)
    return `${reply.status} ${reply.headers['retry-after'] ?? ''}`.trim()
  }
  for (let at = 0; at < 4; at++) assert.equal(await statusOf('a'), '200')
  assert.equal(await statusOf('a'), '429 1')
  for (let at = 0; at < 4; at++) assert.equal(await statusOf('b'), '200')
  await world.pass(500)
  assert.equal(await statusOf('a'), '200')
  assert.equal(await statusOf('a'), '429 1')
  for (let at = 0; at < 20; at++) await statusOf(`other-${at}`)
  assert.equal(await statusOf('c'), '429 1')

  await world.pass(60_000)
  cloud.isStuck = true
  const open = await Promise.all(
    ['d', 'e', 'f'].map((token) => requests.ask({ ...get, identity: { kind: 'token', token } })),
  )
  assert.equal(await statusOf('g'), '429 1')
  cloud.isStuck = false
  for (const reply of open) await textOf(reply)
  await world.settle()
  assert.equal(await statusOf('g'), '200')
})

test('[I4] of a token nothing is logged', async () => {
  const { world, requests, lines } = await opened()
  await using _ = world
  await requests.ask({ ...get, identity: { kind: 'token', token: 'very-secret' } })
  assert.ok(![...lines, ...world.lines].some((line) => line.includes('very-secret')))
})

test('headers that repeat in other letters are one header', () => {
  const found = passable({ method: 'GET', path: '/', headers: { Accept: 'a', accept: ['b', 'c'] } })
  assert.deepEqual(found, { headers: { accept: ['a', 'b', 'c'] } })
})

test('[A6] a GET of what its edge holds is answered with `same`, after the API server was asked; anything else whole', async () => {
  const { cloud, requests } = await opened()
  const metadata = { name: 'p', namespace: 'a', uid: 'u1', resourceVersion: '7' }
  const json = (more: object = {}) => ({ kind: 'Pod', apiVersion: 'v1', metadata, ...more })
  const large = json({ padding: 'x'.repeat(2 * comparedBytesMax) })
  const table = { kind: 'Table', rows: [{ cells: [], object: { kind: 'PartialObjectMetadata', metadata } }] }
  const held = { uid: 'u1', version: 7 }
  type Row = [
    what: string,
    isSame: boolean,
    body: object,
    more?: { held?: typeof held; status?: number; method?: string; headers?: object },
  ]
  const rows: Row[] = [
    ['the same', true, json()],
    ['the same as a Table', true, table],
    ['another version', false, json(), { held: { ...held, version: 8 } }],
    ['another object of its name', false, json(), { held: { ...held, uid: 'u2' } }],
    ['what is not there', false, { kind: 'Status', code: 404 }, { status: 404 }],
    ['a refusal that names it', false, json(), { status: 403 }],
    ['no GET', false, json(), { method: 'PUT' }],
    ['packed', false, json(), { headers: { 'content-encoding': 'gzip' } }],
    ['a list', false, { kind: 'PodList', metadata, items: [json()] }],
    ['one that is large', false, large],
  ]
  for (const [what, isSame, body, more = {}] of rows) {
    const bytes = Buffer.from(JSON.stringify(body))
    const half = bytes.length >> 1
    cloud.answer = async () => ({
      ...{ status: more.status ?? 200, heardAt: () => 0 },
      headers: { 'content-type': 'application/json', ...more.headers },
      body: (async function* () {
        yield bytes.subarray(0, half)
        yield bytes.subarray(half)
      })(),
    })
    const before = cloud.asked.length
    const method = more.method ?? 'GET'
    const answer = await requests.ask({
      method,
      path: '/api/v1/p',
      identity: { kind: 'token', token: 't' },
      held: more.held ?? held,
    })
    assert.equal(cloud.asked.length, before + 1, what)
    assert.equal(cloud.asked.at(-1)?.held, undefined)
    assert.deepEqual([answer.isSame, answer.status], [isSame, more.status ?? 200], what)
    const pieces: Buffer[] = []
    for await (const piece of answer.body) pieces.push(piece)
    assert.deepEqual(Buffer.concat(pieces), isSame ? Buffer.alloc(0) : bytes, what)
  }
})
