/** The server's sockets alone, over made-up answers and short limits: stalled readers, slow senders, too many of anything. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import type { ClientHttp2Stream } from 'node:http2'
import { Agent, request } from 'node:https'
import { connect as connectTcp, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { silentLog } from '../src/base/log.ts'
import { until } from '../src/base/until.test-support.ts'
import { refusal } from '../src/endpoint/answer/respond.ts'
import type { Request, Response } from '../src/endpoint/endpoint.ts'
import { Server } from '../src/endpoint/sockets/server.ts'
import { openPki } from '../src/pki/pki.ts'
import { answerOf, Client, type Credentials } from './process.ts'

const folder = mkdtempSync(join(tmpdir(), 'ake-sockets-'))
after(() => rmSync(folder, { recursive: true, force: true }))
const pki = await openPki({ folder, hosts: ['127.0.0.1'], now: Date.now() })
const credentials: Credentials = { ca: pki.ca, ...pki.admin }

type Limits = NonNullable<ConstructorParameters<typeof Server>[0]['limits']>
type Running = {
  url: string
  port: number
  credentials: Credentials
  traffic: { connections: number; bytesOut: number; bytesIn: number; refused: number; stalled: number }
}

async function withServer(
  limits: Limits,
  handle: (request: Request) => Promise<Response>,
  body: (server: Running) => Promise<void>,
): Promise<void> {
  const traffic = { connections: 0, bytesOut: 0, bytesIn: 0, refused: 0, stalled: 0 }
  const addresses = [{ host: '127.0.0.1', port: 0 }]
  const tls = { ...pki.serving, clientCa: pki.ca }
  const server = new Server({
    handle,
    addresses,
    tls,
    traffic,
    log: silentLog,
    limits: { closingMsMax: 50, ...limits },
  })
  const port = (await server.listen())[0]?.port ?? 0
  try {
    await body({ url: `https://127.0.0.1:${port}`, port, credentials, traffic })
  } finally {
    await server.close()
  }
}

const pieces = Array.from({ length: 5_000 }, (_, i) => Buffer.alloc(4_000, String(i)))
const listBytes = pieces.reduce((sum, piece) => sum + piece.length, 0)
const listHash = createHash('sha256').update(Buffer.concat(pieces)).digest('hex')
const plain = (text: string): Response => ({ status: 200, headers: {}, body: Buffer.from(text) })

async function answer(request: Request): Promise<Response> {
  if (request.url === '/pieces') return { status: 200, headers: {}, body: [Buffer.from('a'), Buffer.from('b')] }
  if (request.url === '/list') return { status: 200, headers: {}, body: pieces }
  if (request.url === '/object') return { status: 200, headers: {}, body: Buffer.concat(pieces.slice(0, 500)) }
  if (request.url === '/zipped') return { status: 200, headers: { 'content-encoding': 'gzip' }, body: endless() }
  if (request.url === '/stream') return { status: 200, headers: {}, body: endless() }
  if (request.method === 'POST') {
    return request.body().then(
      (body) => plain(String(body.length)),
      (error) => refusal(error, request, silentLog),
    )
  }
  return plain('ok')
}

let streaming = 0
async function* endless(): AsyncIterable<Buffer> {
  streaming++
  try {
    for (;;) yield pieces[0] as Buffer
  } finally {
    streaming--
  }
}

function rawTls(server: Running, ALPNProtocols: string[]): TLSSocket {
  return connectTls({ ...credentials, host: '127.0.0.1', port: server.port, ALPNProtocols })
}

/** Milliseconds until the other side ends the connection, and what it said. */
async function untilClosed(socket: Socket): Promise<{ ms: number; said: string }> {
  const startedMs = Date.now()
  let said = ''
  socket.on('data', (chunk) => {
    said += chunk
  })
  socket.on('error', () => {})
  if (!socket.destroyed) await once(socket, 'close')
  return { ms: Date.now() - startedMs, said }
}

for (const path of ['/list', '/object', '/stream']) {
  test(`[A8] HTTP/2: a reader that stops in the middle of ${path} holds little, is cut in time, and alone`, () =>
    withServer({ stalledMsMax: 250 }, answer, async (server) => {
      const client = new Client(server)
      const stuck = client.open('GET', path)
      stuck.on('error', () => {})
      const cut = new Promise((resolve) => stuck.once('close', resolve))
      stuck.pause()
      await once(stuck, 'response')
      await pause(50)
      assert.ok(server.traffic.bytesOut <= 3_000_000, `${server.traffic.bytesOut} bytes are on their way`)
      assert.equal((await client.ask('GET', '/')).body.toString(), 'ok')
      await until(() => server.traffic.stalled > 0)
      stuck.resume()
      await cut
      assert.notEqual(stuck.rstCode, 0)
      assert.equal((await client.ask('GET', '/')).status, 200)
      assert.equal(streaming, 0)
      client.close()
    }))
}

test('[A8] HTTP/1.1: a reader that stops is cut in time', () =>
  withServer({ stalledMsMax: 250 }, answer, async (server) => {
    const socket = rawTls(server, ['http/1.1'])
    await once(socket, 'secureConnect')
    socket.pause()
    socket.write('GET /list HTTP/1.1\r\nhost: x\r\n\r\n')
    await until(() => server.traffic.stalled > 0)
    assert.ok(server.traffic.bytesOut < listBytes / 2, `${server.traffic.bytesOut} bytes were taken`)
    socket.on('error', () => {})
    socket.resume()
    await once(socket, 'close')
    assert.equal(server.traffic.connections, 0)
  }))

test('[A5] many readers at once, quick and slow, each get every byte of a list', () =>
  withServer({}, answer, async (server) => {
    const read = async (stream: AsyncIterable<Buffer>, slow: boolean) => {
      const hash = createHash('sha256')
      let chunks = 0
      for await (const chunk of stream) {
        hash.update(chunk)
        if (slow && ++chunks % 50 === 0) await pause(5)
      }
      assert.equal(hash.digest('hex'), listHash)
    }
    const client = new Client(server)
    const agent = new Agent(credentials)
    const http1 = async (slow: boolean) => {
      const [response] = await once(request(`${server.url}/list`, { agent }).end(), 'response')
      await read(response as AsyncIterable<Buffer>, slow)
    }
    const http2 = (slow: boolean) => read(client.open('GET', '/list') as AsyncIterable<Buffer>, slow)
    await Promise.all([http2(true), http2(false), http2(false), http1(true), http1(false)])
    client.close()
    agent.destroy()
  }))

test('a compressed list counts as a list, until its reader goes', () =>
  withServer({ listsMax: 1 }, answer, async (server) => {
    const client = new Client(server)
    const zipped = client.open('GET', '/zipped')
    zipped.pause()
    await once(zipped, 'response')
    assert.equal((await client.ask('GET', '/list')).status, 429)
    assert.equal((await client.ask('GET', '/zipped')).status, 429)
    zipped.destroy()
    await until(async () => (await client.ask('GET', '/list')).status === 200, 'there is room again')
    client.close()
  }))

test('[A8] a caller that has half of the places for lists is refused the next with 429; others and single objects are not', () =>
  withServer({ listsMax: 8 }, answer, async (server) => {
    const client = new Client(server)
    const stuck: ClientHttp2Stream[] = []
    for (let i = 0; i < 4; i++) {
      const stream = client.open('GET', '/list')
      stream.pause()
      assert.equal((await once(stream, 'response'))[0][':status'], 200)
      stuck.push(stream)
    }
    const refused = await client.ask('GET', '/list')
    assert.equal(refused.status, 429)
    assert.equal(refused.headers['retry-after'], '1')
    assert.equal((await client.ask('GET', '/list')).status, 429)
    const single = await client.ask('GET', '/pieces')
    assert.equal(`${single.status} ${single.body}`, '200 ab', 'one object is no list')
    const other = new Client(server)
    assert.equal((await other.ask('GET', '/list')).body.length, listBytes)
    other.close()
    stuck[0]?.close()
    await until(async () => (await client.ask('GET', '/list')).body.length === listBytes)
    client.close()
  }))

test('headers that trickle in, a handshake that never comes and a silent HTTP/2 peer are cut in time', () =>
  // Long enough that a busy machine has read a first line of headers by then: before it there is no request to answer.
  withServer({ handshakeMsMax: 1_000, pingEveryMs: 100, pingMsMax: 100 }, answer, async (server) => {
    const trickle = rawTls(server, ['http/1.1'])
    await once(trickle, 'secureConnect')
    trickle.write('GET / HTTP/1.1\r\nhost: x\r\n')
    const drip = setInterval(() => trickle.write('a: b\r\n'), 20)
    const silent = connectTcp(server.port, '127.0.0.1')
    await once(silent, 'connect')
    const mute = rawTls(server, ['h2'])
    await once(mute, 'secureConnect')
    const idle = rawTls(server, ['http/1.1'])
    await once(idle, 'secureConnect')
    const closed = [untilClosed(trickle), untilClosed(mute), untilClosed(idle), untilClosed(silent)] as const
    const [trickled] = await Promise.all(closed)
    clearInterval(drip)
    assert.match(trickled.said, /^HTTP\/1\.1 408 /)
    await until(() => server.traffic.connections === 0)
  }))

test('a body that trickles in is answered 408, and ends its own stream only', () =>
  withServer({ bodyMsMax: 200, handshakeMsMax: 200, lingerMsMax: 50 }, answer, async (server) => {
    const client = new Client(server)
    const slow = client.open('POST', '/')
    slow.write('x')
    const late = await answerOf(slow)
    assert.equal(late.status, 408)
    assert.equal(JSON.parse(late.body.toString()).reason, 'Timeout')
    assert.equal((await client.ask('POST', '/', Buffer.from('four'))).body.toString(), '4')
    client.close()
    const socket = rawTls(server, ['http/1.1'])
    await once(socket, 'secureConnect')
    socket.write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nx')
    assert.match((await untilClosed(socket)).said, /^HTTP\/1\.1 408 /)
  }))

/** Connections of nobody in particular that do nothing, all shaken hands. */
async function idlers(server: Running, count: number, protocol = 'h2'): Promise<TLSSocket[]> {
  const sockets: TLSSocket[] = []
  while (sockets.length < count) {
    const socket = connectTls({ ca: pki.ca, host: '127.0.0.1', port: server.port, ALPNProtocols: [protocol] })
    socket.on('error', () => {})
    sockets.push(socket)
    await once(socket, 'secureConnect')
  }
  return sockets
}

test('[A8] more idle connections than there is room for shut nobody out who asks for something', () =>
  withServer({ connectionsMax: 20 }, answer, async (server) => {
    const before = new Client(server)
    assert.equal((await before.ask('GET', '/')).status, 200)
    const [oldest] = (await idlers(server, 10, 'http/1.1')) as [TLSSocket]
    const crowd = await idlers(server, 30)
    const half = Array.from({ length: 30 }, () => connectTcp(server.port, '127.0.0.1'))
    for (const socket of half) socket.on('error', () => {})
    const after = new Client(server)
    assert.equal((await after.ask('GET', '/')).status, 200)
    assert.equal((await before.ask('GET', '/')).status, 200, 'a connection that was used is not cut for idle ones')
    await untilClosed(oldest)
    assert.ok(server.traffic.connections <= 20, `${server.traffic.connections} are open`)
    for (const socket of [...crowd, ...half]) socket.destroy()
    before.close()
    after.close()
  }))

test('[A8] the connections of one caller leave room: its own idle ones go first', () =>
  withServer({ connectionsMax: 5 }, answer, async (server) => {
    const clients: Client[] = []
    while (clients.length < 8) {
      const client = new Client(server)
      clients.push(client)
      assert.equal((await client.ask('GET', '/')).status, 200)
    }
    await until(() => clients.filter(({ session }) => session.closed).length === 4)
    assert.equal((await (clients.at(-1) as Client).ask('GET', '/')).status, 200)
    for (const client of clients) client.close()
  }))

test('[A8] bodies of one caller beyond its share: 429 for it, others are taken, and room again afterwards', () =>
  withServer({ bodiesBytesMax: 200_000 }, answer, async (server) => {
    const client = new Client(server)
    const half = client.open('POST', '/')
    half.write(Buffer.alloc(90_000))
    await until(async () => (await client.ask('POST', '/', Buffer.alloc(50_000))).status === 429)
    const other = new Client(server)
    assert.equal((await other.ask('POST', '/', Buffer.alloc(50_000))).body.toString(), '50000')
    half.end()
    assert.equal((await answerOf(half)).body.toString(), '90000')
    assert.equal((await client.ask('POST', '/', Buffer.alloc(95_000))).body.toString(), '95000')
    client.close()
    other.close()
  }))

test('while it closes, a kept HTTP/1.1 connection is told to come back and ends', async () => {
  let open: (() => void) | undefined
  const held = new Promise<void>((resolve) => {
    open = resolve
  })
  using ends = new DisposableStack()
  const agent = ends.adopt(new Agent({ ...credentials, keepAlive: true, maxSockets: 1 }), (one) => one.destroy())
  const get = async (server: Running, path: string) => {
    const [response] = await once(request(`${server.url}${path}`, { agent }).end(), 'response')
    response.resume()
    return response as { statusCode: number; headers: Record<string, string> }
  }
  let first: Promise<{ headers: Record<string, string> }> | undefined
  let asked = 0
  const slow = async () => {
    asked++
    await held
    return plain('late')
  }
  await withServer({ closingMsMax: 3_000 }, slow, async (server) => {
    first = get(server, '/first')
    await until(() => asked > 0)
    setTimeout(() => open?.(), 50)
  })
  // The request under way got its answer, and the connection did not outlive it.
  assert.equal((await first)?.headers.connection, 'close')
})

test('a request that makes no sense ends alone: CONNECT without a path, a handler that throws', () =>
  withServer(
    {},
    async (request) => {
      if (request.url === '/throws') throw new Error('on purpose')
      return answer(request)
    },
    async (server) => {
      const client = new Client(server)
      const connect = client.session.request({ ':method': 'CONNECT', ':authority': 'x:1' })
      connect.on('error', () => {})
      connect.resume()
      connect.end()
      await once(connect, 'close')
      const throwing = client.session.request({ ':path': '/throws' })
      throwing.on('error', () => {})
      throwing.resume()
      await once(throwing, 'close')
      assert.equal((await client.ask('GET', '/')).status, 200)
      client.close()
    },
  ))
