import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect as connectTcp, createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { WebSocket } from 'ws'
import { until, untilStill } from '../../base/until.test-support.ts'
import { frameBytesMax } from '../../link/frames/frames.ts'
import { connect, credentialOf, type HubParts, startHub } from './hub.test-support.ts'

type Hub = Awaited<ReturnType<typeof startHub>>

/** Another link is there throughout, and is unharmed at the end. */
async function besides(parts: HubParts, body: (hub: Hub) => Promise<void>) {
  const hub = await startHub(parts)
  try {
    const good = await connect(hub.state, { address: hub.address() })
    good.link.send(Buffer.from('before'))
    await body(hub)
    good.link.send(Buffer.from('after'))
    await until(() => hub.links[0]!.frames.length === 2)
    assert.equal(good.end, undefined)
  } finally {
    await hub.close()
  }
}

/** One that knows the edge's credential and not how to behave. */
async function hostile({ state, port, links }: Hub) {
  const { pair, ca } = credentialOf(state, 'edge-2')
  const socket = new WebSocket(`wss://127.0.0.1:${port}/link`, { ...pair, ca, perMessageDeflate: false })
  const before = links.length
  await once(socket, 'open')
  await until(() => links.length > before)
  const closed = once(socket, 'close').then(([code, reason]) => `${code} ${String(reason)}`)
  return { socket, there: links.at(-1)!, closed, raw: (socket as unknown as { _socket: TLSSocket })._socket }
}

const tlsTo = ({ state, port }: Hub) => {
  const { pair, ca } = credentialOf(state)
  return connectTls({ port, host: '127.0.0.1', ca, ...pair, ALPNProtocols: ['http/1.1'] }).on('error', () => {})
}

/** What a client of TLS says first. */
async function clientHello(): Promise<Buffer> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connectTls(server.address() as AddressInfo).on('error', () => {})
  const [socket] = (await once(server, 'connection')) as [Socket]
  const [bytes] = (await once(socket, 'data')) as [Buffer]
  client.destroy()
  server.close()
  return bytes
}

/** A frame of WebSocket from a client, with a mask of zeros. */
function spelled(first: number, length: number, payload = Buffer.alloc(Math.max(0, length)), masked = true): Buffer {
  const head = Buffer.alloc(10)
  head[0] = first
  head[1] = (masked ? 0x80 : 0) | 127
  head.writeBigUInt64BE(BigInt(length), 2)
  return Buffer.concat([head, Buffer.alloc(masked ? 4 : 0), payload])
}

/** Sends whenever there is room, until there is no more of it; answers how many frames. */
async function fill(there: Hub['links'][number]): Promise<number> {
  const frame = Buffer.alloc(frameBytesMax, 1)
  for (let sent = 1; ; sent++) {
    const { readies } = there
    if (there.link.send(frame)) await pause(0)
    else if ((await untilStill(() => there.readies)) === readies) return sent
  }
}

const [final, more] = [0x82, 0x02]

test('[L21] what a link never sends closes it with a reason, and no other link notices', () =>
  besides({}, async (hub) => {
    const cases: [string, (one: Awaited<ReturnType<typeof hostile>>) => void, RegExp, RegExp][] = [
      ['text', ({ socket }) => socket.send('text'), /^1003 a link has binary frames only$/, /binary frames only/],
      ['ping', ({ socket }) => socket.ping(), /^1002 a link has no control frames$/, /no control frames/],
      ['pong', ({ socket }) => socket.pong(), /^1002 /, /no control frames/],
      ['huge', ({ socket }) => socket.send(Buffer.alloc(frameBytesMax + 1)), /^1009 /, /larger than 65536 bytes/],
      ['claimed', ({ raw }) => raw.write(spelled(final, 2 ** 40, Buffer.alloc(9))), /^1009 /, /larger than/],
      [
        'pieces',
        ({ raw }) => {
          raw.write(spelled(more, 1))
          for (let at = 0; at < 100; at++) raw.write(spelled(0, 1))
        },
        /^100[29] |^1008 /,
        /pieces/,
      ],
      [
        'pieces that add up',
        ({ raw }) => {
          raw.write(spelled(more, 40_000))
          raw.write(spelled(0, 40_000))
        },
        /^1009 /,
        /larger than/,
      ],
      [
        'unmasked',
        ({ raw }) => raw.write(spelled(final, 5, Buffer.alloc(5), false)),
        /^1002 /,
        /does not speak WebSocket/,
      ],
      ['compressed', ({ raw }) => raw.write(spelled(0xc2, 5)), /^1002 /, /does not speak WebSocket/],
      ['unknown', ({ raw }) => raw.write(spelled(0x83, 5)), /^1002 /, /does not speak WebSocket/],
      ['noise', ({ raw }) => raw.write(Buffer.alloc(500, 0x5a)), /^1002 /, /does not speak WebSocket/],
    ]
    for (const [name, send, said, why] of cases) {
      const one = await hostile(hub)
      send(one)
      assert.match(await one.closed, said, name)
      const end = await one.there.ended
      assert.match(end.why, why, name)
      assert.deepEqual(one.there.frames, [], name)
    }
    await until(() => hub.listener.links === 1)
  }))

test('[L21] half a frame is waited for, and nothing but the half is held; one cut in the middle ends the link', () =>
  besides({}, async (hub) => {
    const one = await hostile(hub)
    const whole = spelled(final, 1_000, Buffer.alloc(1_000, 7))
    for (const byte of whole.subarray(0, -1)) one.raw.write(Buffer.of(byte))
    await pause(50)
    assert.equal(one.there.frames.length, 0)
    one.raw.write(whole.subarray(-1))
    await until(() => one.there.frames.length === 1)
    assert.deepEqual(one.there.frames[0], Buffer.alloc(1_000, 7))
    one.raw.write(whole.subarray(0, 500))
    await pause(20)
    one.raw.destroy()
    assert.deepEqual(await one.there.ended, { by: 'line', why: 'connection closed' })
    assert.equal(one.there.frames.length, 1)
  }))

test('[L21] an edge that never reads is cut after its time, and what waits for it is bounded meanwhile', () =>
  besides({ linkLimits: { stalledMsMax: 300 } }, async (hub) => {
    const { socket, there } = await hostile(hub)
    socket.pause()
    const sent = await fill(there)
    assert.ok(there.link.bufferedBytes < 256 * 1024, `${there.link.bufferedBytes} bytes wait`)
    assert.deepEqual(await there.ended, { by: 'us', why: 'it took nothing for 300 ms' })
    assert.ok(sent * frameBytesMax < 64 << 20)
    socket.terminate()
  }))

test('[L21] a slow reader is not cut: it takes something, and there is room again when it has', () =>
  besides({ linkLimits: { stalledMsMax: 1_000 } }, async (hub) => {
    const edge = await connect(hub.state, { address: hub.address() })
    const there = hub.links.at(-1)!
    edge.link.pause()
    await fill(there)
    const before = there.readies
    for (let round = 0; round < 14; round++) {
      await pause(100)
      edge.link.resume()
      await pause(2)
      edge.link.pause()
    }
    assert.equal(there.end, undefined)
    edge.link.resume()
    await until(() => there.readies > before)
    assert.equal(there.link.send(Buffer.of(1)), true)
  }))

test('a driver that sends on all the same loses the link, not the memory', () =>
  besides({ linkLimits: { heldBytesMax: 1 << 20 } }, async (hub) => {
    const { socket, there } = await hostile(hub)
    socket.pause()
    const frame = Buffer.alloc(frameBytesMax, 1)
    for (let sent = 0; sent < 2_000 && there.end === undefined; sent++) {
      there.link.send(frame)
      assert.ok(there.link.bufferedBytes < 2 << 20)
      if (sent % 50 === 0) await pause(0)
    }
    assert.deepEqual(await there.ended, { by: 'us', why: 'more than 1048576 bytes wait for it' })
    socket.terminate()
  }))

test('[L21] who says nothing goes: before TLS, in it, before a request, in one, and before the first frame', () =>
  besides({ limits: { arrivalMsMax: 300, firstFrameMsMax: 300 } }, async (hub) => {
    const tcp = () => connectTcp(hub.port, '127.0.0.1').on('error', () => {})
    const half = tcp()
    half.write(Buffer.of(22, 3, 1, 2, 0, 1))
    // Its handshake begins, and never goes on.
    const stuck = tcp()
    stuck.write(await clientHello())
    const secured = tlsTo(hub)
    const asking = tlsTo(hub)
    await Promise.all([secured, asking].map((socket) => once(socket, 'secureConnect')))
    asking.write('GET /link HTTP/1.1\r\nUpgrade: webso')
    const { closed } = await hostile(hub)
    const gone = [tcp(), half, stuck, secured, asking].map(
      (socket: Socket) => new Promise((resolve) => socket.resume().once('close', resolve)),
    )
    assert.equal(hub.listener.arriving.all >= 3, true)
    await Promise.all(gone)
    assert.equal(await closed, '1008 no frame within 300 ms')
    await until(() => hub.listener.arriving.all === 0)
  }))

test('no TLS, no request for a link, and what is asked for besides', () =>
  besides({}, async (hub) => {
    const plain = connectTcp(hub.port, '127.0.0.1').on('error', () => {})
    plain.end('GET / HTTP/1.1\r\nHost: hub\r\n\r\n')
    await new Promise((resolve) => plain.resume().once('close', resolve))
    const ask = async (request: string) => {
      const socket = tlsTo(hub)
      socket.write(request)
      let said = ''
      socket.setEncoding('utf8').on('data', (text: string) => {
        said += text
      })
      await new Promise((resolve) => socket.once('close', resolve))
      return said
    }
    assert.match(await ask('GET /healthz HTTP/1.1\r\nHost: hub\r\n\r\n'), /^HTTP\/1\.1 426 /)
    const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\nHost: hub\r\n'
    assert.match(await ask(`GET /other HTTP/1.1\r\n${upgrade}\r\n`), /^HTTP\/1\.1 404 /)
    assert.match(await ask(`GET /link HTTP/1.1\r\n${upgrade}\r\n`), /^HTTP\/1\.1 400 /)
    assert.equal(await ask(`GET /link HTTP/1.1\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`), '')
    await until(() => hub.listener.arriving.all === 0)
  }))

test('strangers who only open connections make way, the oldest first', () =>
  besides({ limits: { arrivalsMax: 10 } }, async (hub) => {
    const sockets = Array.from({ length: 30 }, () => connectTcp(hub.port, '127.0.0.1').on('error', () => {}))
    await Promise.all(sockets.map((socket) => once(socket, 'connect')))
    await until(() => hub.listener.arriving.all === 10)
    const edge = await connect(hub.state, { address: hub.address() })
    assert.equal(edge.link.peer.address, hub.address().href)
    for (const socket of sockets) socket.destroy()
    await until(() => hub.listener.arriving.all === 0)
  }))
