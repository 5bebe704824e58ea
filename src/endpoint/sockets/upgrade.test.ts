import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { Duplex, duplexPair, PassThrough } from 'node:stream'
import { after, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { until } from '../../base/until.test-support.ts'
import { failure } from '../../kube/status.ts'
import { statusResponse } from '../answer/respond.ts'
import type { Request } from '../endpoint.ts'
import { standardLimits } from './limits.ts'
import { open, type Running, readAll, readUntil, withServer } from './server.test-support.ts'
import { type Upgraded, Upgrades } from './upgrade.ts'

const ask = 'POST /exec HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: SPDY/3.1\r\ncontent-length: 0\r\n\r\n'
const switched = { status: 101, rawHeaders: ['Upgrade', 'SPDY/3.1', 'connection', 'Upgrade', 'X-Kept', 'As It Is'] }
const handle = async () => ({ status: 200, headers: { 'content-length': '8' }, body: Buffer.from('ordinary') })

const traffic = { connections: 0, bytesOut: 0, bytesIn: 0, refused: 0, stalled: 0 }

/** What the API server's side of an upgraded connection does; a real socket each, so that ends and buffers are real. */
let far: (socket: Socket) => void = () => {}
const farSide = createServer({ allowHalfOpen: true }, (socket) => far(socket)).listen(0, '127.0.0.1')
await once(farSide, 'listening')
after(() => farSide.close())

async function upgrade(): Promise<Upgraded> {
  const { port } = farSide.address() as { port: number }
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  await once(socket, 'connect')
  return { ...switched, socket, head: Buffer.from('early;') }
}

test('an upgraded connection carries bytes both ways, and the end of one way is not the end of the other', () =>
  withServer({ handle, upgrade }, async (server) => {
    far = (socket) => {
      socket.on('data', (chunk) => socket.write(`<${chunk}>`))
      // Only after the client has ended is the rest said.
      socket.on('end', () => setTimeout(() => socket.end('the rest'), 20))
    }
    const client = await open(server)
    client.write(`${ask}behind`)
    const head = await readUntil(client, '<behind>')
    assert.equal(
      head,
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: SPDY/3.1\r\nconnection: Upgrade\r\nX-Kept: As It Is\r\n\r\nearly;<behind>',
    )
    client.write('more')
    await readUntil(client, '<more>')
    client.end('last')
    assert.equal((await readAll(client)).toString(), '<last>the rest')
    assert.ok(server.traffic.bytesIn >= 'morelast'.length && server.traffic.bytesOut >= '<more><last>the rest'.length)
  }))

test('the other side may end first: the client is heard to its end', () =>
  withServer({ handle, upgrade }, async (server) => {
    let heard: Promise<Buffer> | undefined
    far = (socket) => {
      heard = readAll(socket)
      socket.end('done')
    }
    const client = await open(server)
    client.write(ask)
    assert.match((await readAll(client)).toString(), /early;done$/)
    client.end('still here')
    assert.equal((await until(() => heard)).toString(), 'still here')
  }))

test('a reader of an upgraded connection that does not read holds its sender, not our memory, and is not cut', () =>
  withServer({ handle, upgrade, limits: { stalledMsMax: 50 } }, async (server) => {
    const total = 10 * 1024 * 1024
    far = (socket) => void socket.end(Buffer.alloc(total, 'x'))
    const client = await open(server)
    client.write(ask)
    await readUntil(client, 'early;')
    await pause(150)
    const taken = server.traffic.bytesOut
    // What the system keeps for a connection is its own, some megabytes on either side: less than the whole is enough.
    assert.ok(taken < total, `${taken} bytes were taken of ${total}`)
    let read = 0
    for await (const chunk of client) {
      read += (chunk as Buffer).length
      if (read % 1_000_000 < 20_000) await pause(1)
    }
    assert.ok(read >= total - 16_384 * 4, `${read} bytes arrived`)
    assert.equal(server.traffic.bytesOut, total)
  }))

test('what was said before the end still arrives at a slow reader, in time, though the one who said it is gone', async () => {
  for (const [takesMs, stalledMsMax, arrives] of [
    [20, 5_000, true],
    [300, 50, false],
  ] as const) {
    let got = ''
    const client = new Duplex({
      read() {},
      write(chunk, _, done) {
        setTimeout(() => {
          got += chunk
          done()
        }, takesMs)
      },
    })
    client.push(null)
    const [far, other] = duplexPair()
    const upgrades = new Upgrades({ limits: { ...standardLimits, stalledMsMax }, traffic })
    const socket = Object.assign(client, { setTimeout() {} }) as unknown as Socket
    const joined = upgrades.join(socket, Buffer.alloc(0), {
      status: 101,
      rawHeaders: [],
      socket: other,
      head: Buffer.alloc(0),
    })
    far.resume().end('last words')
    await once(other, 'close')
    await joined
    assert.equal(got.endsWith('last words'), arrives, got)
  }
})

test('whichever side breaks ends the other', () =>
  withServer({ handle, upgrade }, async (server) => {
    let farEnd: Socket | undefined
    far = (socket) => {
      farEnd = socket
      socket.on('error', () => {})
      socket.resume()
    }
    const first = await open(server)
    first.on('error', () => {})
    first.write(ask)
    await readUntil(first, 'early;')
    farEnd?.resetAndDestroy()
    assert.equal((await readAll(first)).length, 0)
    first.destroy()
    await until(() => server.traffic.connections === 0)
    const second = await open(server)
    second.write(ask)
    await readUntil(second, 'early;')
    // The client is gone: that only shows to an end that still sends.
    const drip = setInterval(() => farEnd?.write('anybody?'), 5)
    second.destroy()
    await until(() => farEnd?.destroyed, 'the far end hears of it').finally(() => clearInterval(drip))
    await until(() => server.traffic.connections === 0)
  }))

test('upgrades beyond the limit are refused, and there is room again afterwards', () =>
  withServer({ handle, upgrade, limits: { upgradesMax: 1, lingerMsMax: 50 } }, async (server) => {
    far = (socket) => socket.pipe(socket)
    const first = await open(server)
    first.write(ask)
    await readUntil(first, 'early;')
    const second = await open(server)
    second.write(ask)
    assert.match((await readAll(second)).toString(), /^HTTP\/1\.1 429 .*retry-after: 1\r\n.*too many connections/s)
    first.end()
    await readAll(first)
    await until(() => server.traffic.connections === 0, 'both have ended')
    const third = await open(server)
    third.write(ask)
    assert.match(await readUntil(third, 'early;'), /^HTTP\/1\.1 101 /)
    third.destroy()
  }))

test('a refused upgrade is an ordinary answer, ours or the API server’s, and the connection ends', async () => {
  const forbidden = failure(403, 'Forbidden', 'no exec for you')
  const asked: Request[] = []
  const refuse = async (request: Request) => {
    asked.push(request)
    if (request.url === '/exec') return statusResponse(forbidden.status)
    const rawHeaders = ['Content-Type', 'text/plain', 'Transfer-Encoding', 'chunked', 'Warning', 'a', 'warning', 'b']
    return { status: 400, rawHeaders, socket: new PassThrough().end('by then'), head: Buffer.from('wrong ') }
  }
  await withServer({ handle, upgrade: refuse, limits: { lingerMsMax: 50 } }, async (server) => {
    const client = await open(server)
    client.write(ask)
    const answer = (await readAll(client)).toString()
    assert.match(answer, /^HTTP\/1\.1 403 Forbidden\r\n.*connection: close\r\n\r\n.*no exec for you/s)
    assert.equal(asked[0]?.method, 'POST')
    assert.equal(asked[0]?.hasBody, false)
    assert.equal(asked[0]?.peer.certificate?.name, 'ake-admin')
    assert.equal((await asked[0]?.body())?.length, 0)
    const other = await open(server)
    other.write(ask.replace('/exec', '/attach'))
    assert.equal(
      (await readAll(other)).toString(),
      'HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\nwarning: a\r\nwarning: b\r\nconnection: close\r\n\r\nwrong by then',
    )
  })
})

test('an upgrade whose asking fails ends its connection alone', () =>
  withServer({ handle, upgrade: () => Promise.reject(new Error('on purpose')) }, async (server) => {
    const client = await open(server)
    client.on('error', () => {})
    client.write(ask)
    assert.equal((await readAll(client)).length, 0)
    client.destroy()
    const next = await open(server)
    next.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
    assert.match(await readUntil(next, 'ordinary'), /^HTTP\/1\.1 200 /)
    next.destroy()
  }))

test('plain HTTP/2, or anything where nobody takes upgrades, is served as the ordinary request it also is', async () => {
  const h2c =
    'GET / HTTP/1.1\r\nhost: x\r\nconnection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: \r\n\r\n'
  for (const [given, text] of [
    [{ handle, upgrade }, h2c],
    [{ handle }, ask],
  ] as const) {
    await withServer(given, async (server) => {
      const client = await open(server)
      client.write(text)
      assert.match(await readUntil(client, 'ordinary'), /^HTTP\/1\.1 200 /)
      client.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
      await readUntil(client, 'ordinary')
      client.destroy()
    })
  }
})

test('at the end of the server, upgraded connections are cut after a while', async () => {
  far = (socket) => {
    socket.on('error', () => {})
    socket.resume()
  }
  let closed: Promise<Buffer> | undefined
  let running: Running | undefined
  await withServer({ handle, upgrade }, async (server) => {
    running = server
    const client = await open(server)
    client.on('error', () => {})
    client.write(ask)
    await readUntil(client, 'early;')
    closed = readAll(client).finally(() => client.destroy())
    assert.equal(server.traffic.connections, 1)
  })
  assert.equal((await closed)?.length, 0)
  await until(() => running?.traffic.connections === 0)
})
