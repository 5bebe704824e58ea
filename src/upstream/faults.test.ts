import assert from 'node:assert/strict'
import { constants } from 'node:http2'
import { type TestContext, test } from 'node:test'
import { until } from '../base/until.test-support.ts'
import { runDirect } from './direct.test-support.ts'
import { begin, type FakeParts, FakeServer, inline, issue, writeKubeconfig } from './fakeserver.test-support.ts'
import type { UpstreamLimits } from './limits.ts'
import { Unreachable } from './upstream.ts'

const pair = inline(issue({ use: 'client', name: 'edge' }))
/** What ends by one of the quick limits is over by now on the slowest machine; by the standing ones (5 s and more) it is not. */
const withinItsLimitMs = 4_000
/** Longer than a machine with too much to do keeps a live server from its answer. */
const answerMsMax = 400
const quick = { pingEveryMs: 20, pingMsMax: answerMsMax, probeMsMax: answerMsMax, suspectEveryMs: 20 }

async function world(
  context: TestContext,
  parts: FakeParts = {},
  limits: Partial<UpstreamLimits> = {},
  probeEveryMs = 50,
) {
  const fake = await FakeServer.start(parts)
  const files = writeKubeconfig(fake.url, pair)
  const direct = await runDirect({ kubeconfig: files.path, limits, probeEveryMs })
  context.after(async () => {
    await direct.end()
    await fake.end()
    files.remove()
  })
  return { fake, ...direct }
}

const failing = async (asking: Promise<unknown>): Promise<Unreachable> => {
  const error = await asking.then(
    () => assert.fail('it was answered'),
    (reason: unknown) => reason,
  )
  assert.ok(error instanceof Unreachable, String(error))
  return error
}

test('[L3] a connection that lost its peer in silence is dead within its limit, for every stream on it', async (context) => {
  const { fake, get, upstream } = await world(context, {}, quick)
  fake.handle = (_request, response) => begin(response)
  const watches = await Promise.all(['/one', '/two'].map((path) => get(path)))
  for (const { body } of watches) await body.next()
  await until(() => upstream.reachability.state === 'reachable', 'reachable')
  fake.freeze()
  const started = performance.now()
  for (const { body, heardAt } of watches) {
    assert.match((await failing(body.next())).message, /no sign of life|connection closed/)
    // Nothing was heard since: the silence has lasted for most of what it may.
    assert.ok(performance.now() - heardAt() > quick.pingMsMax / 2)
  }
  assert.ok(performance.now() - started < withinItsLimitMs)
  await until(() => upstream.reachability.state === 'unreachable', 'unreachable')
  fake.thaw()
  await until(() => upstream.reachability.state === 'reachable', 'reachable again')
})

test('a quiet connection whose peer answers PINGs lives on, and says so', async (context) => {
  const { fake, get } = await world(context, {}, quick, 60_000)
  fake.handle = (_request, response) => begin(response)
  const { body, heardAt } = await get('/watch')
  await body.next()
  const first = heardAt()
  await until(() => heardAt() > first + 100, 'a sign of life')
  const next = body.next()
  assert.equal(
    await Promise.race([next.then(() => 'ended'), new Promise((resolve) => setImmediate(resolve, 'open'))]),
    'open',
  )
  await body.return?.()
})

test('a black hole holds a read for its limit only; a probe then needs a new connection', async (context) => {
  const { fake, read, upstream } = await world(context, {}, { ...quick, pingMsMax: 10_000 })
  await until(() => upstream.reachability.state === 'reachable', 'reachable')
  fake.freeze()
  const started = performance.now()
  assert.match((await failing(read('/x', { headMsMax: 30 }))).message, /30 ms/)
  assert.ok(performance.now() - started < withinItsLimitMs)
  upstream.reachability.suspect('a read took too long')
  assert.equal(upstream.reachability.state, 'suspect')
  fake.thaw()
  await until(() => upstream.reachability.state === 'reachable', 'reachable over a new connection')
  assert.equal(await read('/y', { headMsMax: withinItsLimitMs }), 'ok')
})

test('a request that waits for a connection when the black hole is known hears it then, not when the dial gives up', async (context) => {
  const fake = await FakeServer.start()
  const files = writeKubeconfig(fake.url, pair)
  fake.freeze()
  const { upstream, read, end } = await runDirect({ kubeconfig: files.path, limits: quick })
  context.after(async () => {
    await end()
    await fake.end()
    files.remove()
  })
  const started = performance.now()
  const error = await failing(read('/x', { identity: { kind: 'anonymous' }, method: 'POST', body: Buffer.from('b') }))
  assert.deepEqual([error.sent, upstream.reachability.state], [false, 'unreachable'])
  assert.match(error.message, /no answer within 400 ms/)
  assert.ok(performance.now() - started < withinItsLimitMs)
  fake.thaw()
  await until(() => upstream.reachability.state === 'reachable', 'reachable')
})

test('refused and reset are known at once, and so is the return', async (context) => {
  const { fake, get, read, upstream } = await world(context, {}, quick, 5_000)
  await until(() => upstream.reachability.state === 'reachable', 'reachable')
  fake.handle = (_request, response) => begin(response)
  const { body } = await get('/watch')
  await body.next()
  const port = await fake.refuse()
  assert.equal((await failing(body.next())).sent, true)
  await until(() => upstream.reachability.state === 'unreachable', 'unreachable')
  assert.match(upstream.reachability.why, /connection (refused|reset|closed)/)
  const error = await failing(read('/x'))
  assert.equal(error.sent, false)
  await fake.accept(port)
  fake.handle = (_request, response) => void response.end('back')
  // After failed dials the next one waits for a moment.
  assert.equal(await until(() => read('/x').catch(() => undefined), 'an answer'), 'back')
})

test('a request that was refused unprocessed is sent again, whatever it is; a body that is not kept is not', async (context) => {
  const { fake, read } = await world(context, {}, { keptBodyBytesMax: 10 })
  let refusals = 1
  fake.handle = (request, response) => {
    if (refusals-- > 0) request.stream.close(constants.NGHTTP2_REFUSED_STREAM)
    else response.end('second')
  }
  const post = (path: string, body: Buffer | AsyncIterable<Buffer>) => read(path, { method: 'POST', body })
  assert.equal(await post('/x', Buffer.from('b')), 'second')
  assert.deepEqual(fake.paths(), ['POST /x', 'POST /x'])
  refusals = 2
  const error = await failing(post('/y', Buffer.from('b')))
  assert.equal(error.sent, false, 'once only, and known not to be processed')
  async function* pieces(size: number) {
    yield Buffer.alloc(size)
  }
  refusals = 1
  assert.equal(await post('/small', pieces(10)), 'second')
  refusals = 1
  assert.equal((await failing(post('/large', pieces(11)))).sent, false)
})

test('a write whose connection broke is never repeated, a read on a used connection is', async (context) => {
  const { fake, read } = await world(context, {}, {}, 60_000)
  await read('/warm')
  let breaks = 1
  fake.handle = (request, response) => {
    if (breaks-- > 0) request.stream.session?.destroy()
    else response.end('second')
  }
  assert.equal(await read('/read'), 'second')
  async function* pieces() {
    yield Buffer.from('b')
  }
  for (const body of [Buffer.from('b'), pieces()]) {
    breaks = 1
    assert.equal((await failing(read('/write', { method: 'POST', body }))).sent, true)
    await read('/warm')
  }
  assert.deepEqual(fake.paths().slice(1), [
    'GET /read',
    'GET /read',
    'POST /write',
    'GET /warm',
    'POST /write',
    'GET /warm',
  ])
})

/** Until it has done so often, a connection takes one request and goes away by GOAWAY with last stream 0: unprocessed. */
function goingAway(fake: FakeServer, often: number): () => number {
  let left = often
  fake.intercept = (socket) => {
    if (left-- <= 0) return false
    socket.write(Buffer.from('000000040000000000', 'hex')) // SETTINGS
    socket.on('error', () => {})
    socket.on('data', (chunk: Buffer) => {
      if (chunk.includes(Buffer.from([1, 4, 0, 0, 0, 1])) || chunk.includes(Buffer.from([1, 5, 0, 0, 0, 1])))
        socket.write(Buffer.from('0000080700000000000000000000000000', 'hex'))
    })
    return true
  }
  return () => left
}

test('a server that goes away by GOAWAY gets what it had not begun on a new connection', async (context) => {
  const { fake, read } = await world(context, {}, {}, 60_000)
  await until(() => fake.requests.length > 0, 'the first probe')
  // As often as an API server does that answers others of the same credential 401 meanwhile.
  const left = goingAway(fake, 4)
  const identity = { kind: 'anonymous' }
  assert.equal(await read('/x', { identity, method: 'POST', body: Buffer.from('b'), headMsMax: 1_000 }), 'ok')
  assert.equal(left(), -1)
})

test('a body that comes in pieces goes along whole, however often its request has to be sent again', async (context) => {
  const { fake, read } = await world(context, {}, {}, 60_000)
  await until(() => fake.requests.length > 0, 'the first probe')
  fake.handle = (request, response) => void request.pipe(response)
  const left = goingAway(fake, 4)
  let asked = 0
  async function* pieces() {
    for (const piece of ['one ', 'two ', 'three']) {
      asked++
      // The last one comes when the connections that had the first are gone.
      if (piece === 'three') await until(() => left() < 0, 'a connection that stays')
      yield Buffer.from(piece)
    }
  }
  const body = pieces()
  const identity = { kind: 'anonymous' }
  assert.equal(await read('/x', { identity, method: 'POST', body, headMsMax: withinItsLimitMs }), 'one two three')
  assert.equal(asked, 3, 'its source is read once')
  assert.deepEqual(await body.next(), { done: true, value: undefined })
})

test('watches beyond what one connection takes get another; short requests never wait', async (context) => {
  const { fake, get, read } = await world(context, { streamsMax: 10 }, {}, 60_000)
  await until(() => fake.requests.length > 0, 'the first probe')
  fake.handle = (request, response) => {
    if (request.url === '/short') response.end('short')
    else begin(response)
  }
  const watches = await Promise.all(Array.from({ length: 25 }, (_, at) => get(`/watch/${at}`, { headMsMax: 2_000 })))
  assert.equal(await read('/short', { headMsMax: 1_000 }), 'short')
  assert.ok(fake.connections >= 3 && fake.connections <= 6, `${fake.connections} connections`)
  for (const { body } of watches) await body.return?.()
})

test('a load balancer’s 503 is passed on and makes it suspect; the API server’s own does not', async (context) => {
  const { fake, get, upstream } = await world(context, {}, {}, 60_000)
  await until(() => upstream.reachability.state === 'reachable', 'reachable')
  const seen: string[] = []
  upstream.reachability.observe((state) => seen.push(state))
  fake.handle = (request, response) => {
    response.writeHead(503, request.url === '/own' ? { 'audit-id': 'a' } : {})
    response.end('no')
  }
  assert.equal((await get('/own')).status, 503)
  assert.deepEqual(seen, [])
  assert.equal((await get('/balancer')).status, 503)
  await until(() => seen.length === 2, 'a probe')
  assert.deepEqual(seen, ['suspect', 'reachable'])
})

test('an API server that is too slow for probes but sends bytes is suspect, and keeps its connection', async (context) => {
  const { fake, get, upstream } = await world(context, {}, { ...quick, pingMsMax: 10_000 }, 20)
  await until(() => upstream.reachability.state === 'reachable', 'reachable')
  let timer: NodeJS.Timeout | undefined
  context.after(() => clearInterval(timer))
  fake.handle = (_request, response) => {
    timer = setInterval(() => response.write('event'), 10)
    response.writeHead(200, {})
  }
  const { body } = await get('/watch')
  fake.ready = () => {}
  await until(() => upstream.reachability.state === 'suspect', 'suspect')
  const before = { connections: fake.connections, probes: fake.requests.length }
  await until(() => fake.requests.length > before.probes + 2, 'more probes')
  assert.deepEqual([upstream.reachability.state, fake.connections], ['suspect', before.connections])
  fake.ready = (_request, response) => void response.end('ok')
  await until(() => upstream.reachability.state === 'reachable', 'reachable again')
  await body.return?.()
})

test('after a black hole nobody waits for what was dialled or open in it', async (context) => {
  const { fake, read, upstream } = await world(context, {}, { ...quick, pingMsMax: 10_000, dialMsMax: 10_000 })
  const token = (name: string) => ({ identity: { kind: 'token', token: name }, headMsMax: withinItsLimitMs })
  await until(() => upstream.reachability.state === 'reachable', 'reachable')
  assert.equal(await read('/before', token('a')), 'ok')
  fake.freeze()
  await until(() => upstream.reachability.state === 'unreachable', 'unreachable')
  // The connection from before is in doubt by now, so this dials into the hole.
  await failing(read('/during', { ...token('a'), headMsMax: 30 }))
  await new Promise((resolve) => setTimeout(resolve, quick.probeMsMax))
  fake.thaw()
  await until(() => upstream.reachability.state === 'reachable', 'reachable again')
  assert.equal(await read('/after', token('a')), 'ok')
})

test('[A8] what the API server does to the connections of strangers, callers and the reachability do not feel', async (context) => {
  const { fake, get, upstream } = await world(context, {}, {}, 60_000)
  await until(() => upstream.reachability.state === 'reachable', 'reachable')
  const caller = { identity: { kind: 'token', token: 'good' } }
  fake.handle = (request, response) => {
    if (request.headers.authorization === 'Bearer good') begin(response)
    else request.stream.session?.destroy()
  }
  const { body } = await get('/watch', caller)
  await body.next()
  for (const identity of [{ kind: 'token', token: 'invented' }, { kind: 'anonymous' }]) {
    await failing(get('/', { identity, byStranger: true }))
  }
  assert.equal(upstream.reachability.state, 'reachable')
  const next = await Promise.race([body.next(), new Promise((resolve) => setTimeout(resolve, 50, 'open'))])
  assert.equal(next, 'open')
})
