/** Streams as Duplexes over a link in memory: pace, half closes, resets, cuts. */
import assert from 'node:assert/strict'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { pipeline } from 'node:stream'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { until } from '../base/until.test-support.ts'
import { LinkFault } from '../link/frames/bytes.ts'
import type { StreamBroken, TunnelDuplex } from './duplex.ts'
import { encodeTunnelFrame } from './frames.ts'
import { type PairParts, TunnelPair } from './pair.test-support.ts'
import type { IncomingStream } from './streams.ts'

/** A pair whose hub hands over what is opened there. */
function open(parts: PairParts = {}) {
  const come: IncomingStream[] = []
  const pair = new TunnelPair({ hubAccepts: (incoming) => void come.push(incoming), ...parts })
  const both = async (purpose = 'test') => {
    const before = come.length
    const near = pair.edge.open({ purpose }) as TunnelDuplex
    const { stream: far } = await until(() => come[before])
    return { near, far }
  }
  return { pair, come, both }
}

async function textOf(stream: TunnelDuplex): Promise<string> {
  let text = ''
  for await (const chunk of stream.iterator({ destroyOnReturn: false })) text += chunk
  return text
}

test('[L16] bytes go both ways, and each direction ends by itself, whichever ends first', async () => {
  for (const isNearFirst of [true, false]) {
    const { both, pair } = open({ delayMs: 1 })
    const { near, far } = await both()
    const [first, second] = isNearFirst ? [near, far] : [far, near]
    first.end('question')
    assert.equal(await textOf(second), 'question')
    for (const piece of ['an', 'swer']) {
      second.write(piece)
      await pause(5)
    }
    second.end()
    assert.equal(await textOf(first), 'answer')
    await until(() => near.closed && far.closed)
    assert.deepEqual([near.errored, far.errored], [null, null])
    assert.equal(pair.edge.figures().streams + pair.hub.figures().streams, 0)
  }
})

test('[L16] the hub opens streams to the edge as the edge does to the hub', async () => {
  const { pair } = open({ edgeAccepts: ({ stream }) => stream.pipe(stream) })
  const stream = pair.hub.open({ purpose: 'logs' }) as TunnelDuplex
  stream.end('echo')
  assert.equal(await textOf(stream), 'echo')
})

test('[L17, A8] a writer waits for its reader, and others do not wait with it', async () => {
  const { both, pair } = open({ delayMs: 1 })
  const stuck = await both()
  let written = 0
  const fill = () => {
    while (stuck.near.write(Buffer.alloc(4_096))) written += 4_096
  }
  stuck.near.on('drain', fill)
  fill()
  await pause(50)
  // A window there, a frame's worth before the link, and what Node holds before and behind.
  assert.ok(written < 16_384 * 6, `${written} bytes were taken for a reader that sleeps`)
  const large = Buffer.alloc(3_000_000, 'x')
  const { near, far } = await both()
  near.end(large)
  assert.equal((await textOf(far)).length, large.length)
  const before = written
  stuck.far.resume()
  await until(() => written > before + 1_000_000)
  stuck.near.destroy()
  await until(() => stuck.far.destroyed)
  assert.equal(pair.hub.figures().grown, 0)
})

test('[L16] a reset reaches the other side with its reason and sentence, also when one direction has ended', async () => {
  for (const ended of ['neither', 'near', 'far'] as const) {
    const { both, pair } = open()
    const { near, far } = await both()
    if (ended !== 'neither') (ended === 'near' ? near : far).end('bytes')
    far.on('data', () => {})
    await pause(2)
    near.giveUp('broken', 'it is of no use')
    await until(() => far.closed)
    const { reason, message } = far.errored as StreamBroken
    assert.deepEqual([reason, message], ['broken', 'it is of no use'])
    await until(() => pair.edge.figures().streams + pair.hub.figures().streams === 0)
  }
})

test('[L16, I4] an error of a stream’s owner stays on its side', async () => {
  const { both } = open()
  const { near, far } = await both()
  near.destroy(new Error('very-secret'))
  await until(() => far.closed)
  const { reason, message } = far.errored as StreamBroken
  assert.equal(reason, 'cancelled')
  assert.doesNotMatch(message, /secret/)
})

test('[L16] with the link every stream breaks off at once, on both sides, and none can be opened', async () => {
  const { both, pair } = open()
  const streams = [await both(), await both()]
  const waiting = pair.edge.open({ purpose: 'test' }) as TunnelDuplex
  pair.cut('the line is gone')
  for (const stream of [...streams.flatMap(({ near, far }) => [near, far]), waiting]) {
    await until(() => stream.closed)
    assert.equal((stream.errored as StreamBroken).reason, 'link')
    assert.equal(stream.errored?.message, 'the line is gone')
  }
  assert.equal(waiting.isSent, false)
  assert.equal(streams[0]?.near.isSent, true)
  assert.equal(pair.edge.open({ purpose: 'test' }), undefined)
  assert.equal(pair.edge.closed, 'the line is gone')
  pair.edge.receive(encodeTunnelFrame({ kind: 'credit', stream: 99, bytes: 1 }))
})

test('[L11] a fault of the other side is thrown to the link, which closes', () => {
  const { pair } = open()
  assert.throws(() => pair.edge.receive(encodeTunnelFrame({ kind: 'credit', stream: 99, bytes: 1 })), LinkFault)
})

test('[L16] any TCP connection goes through a stream as it is, with its half closes', async () => {
  const sockets: Socket[] = []
  using ends = new DisposableStack()
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.push(socket)
    // It answers when it has heard the end.
    let bytes = 0
    socket.on('data', (chunk: Buffer) => (bytes += chunk.length))
    socket.on('end', () => socket.end(`${bytes} bytes`))
    socket.on('error', () => {})
  })
  ends.defer(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  using pair = new TunnelPair({
    delayMs: 1,
    edgeAccepts: ({ stream }) => {
      const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
      pipeline(stream, socket, stream, () => {})
    },
  })
  const stream = pair.hub.open({ purpose: 'tcp' }) as TunnelDuplex
  stream.end(Buffer.alloc(1_000_000))
  assert.equal(await textOf(stream), '1000000 bytes')
  const cut = pair.hub.open({ purpose: 'tcp' }) as TunnelDuplex
  cut.write('begun')
  await until(() => sockets.length === 2 && sockets[1]?.bytesRead === 5)
  cut.destroy()
  await until(() => sockets[1]?.destroyed === true)
  const dead = pair.hub.open({ purpose: 'tcp' }) as TunnelDuplex
  dead.write('begun')
  await until(() => sockets.length === 3)
  sockets[2]?.resetAndDestroy()
  await until(() => dead.destroyed)
  await until(() => sockets.every(({ closed }) => closed))
})

test('[L18] what is written by many streams at once is sent in turn', async () => {
  const { both, pair } = open({ bulkBytesMax: 1 })
  using _ = pair
  const pairs = [await both(), await both(), await both()]
  const done: number[] = []
  for (const [at, { near, far }] of pairs.entries()) {
    near.end(Buffer.alloc(at === 0 ? 400_000 : 20_000))
    far.resume().once('end', () => done.push(at))
  }
  await until(() => done.length === 3)
  assert.deepEqual(done, [1, 2, 0], 'the long one is last, though it was first')
})
