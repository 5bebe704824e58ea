/** The line that the proofs of the edge cut: each of its modes does to a connection what it says, and leaves nothing behind. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { type Link, startLink } from '../conformance/link.ts'
import { until, untilStill } from '../src/base/until.test-support.ts'

/** Long enough for loopback to have delivered what it delivers at all. */
const silenceMs = 60

type End = { readonly socket: Socket; readonly heard: () => string; readonly how: () => string | undefined }

/** Everything a socket hears, and how it ended: `end`, an error code, or not yet. */
function listenTo(socket: Socket): End {
  let heard = ''
  let how: string | undefined
  socket.on('data', (bytes) => {
    heard += bytes
  })
  socket.on('end', () => {
    how ??= 'end'
  })
  socket.on('error', (error: NodeJS.ErrnoException) => {
    how ??= error.code
  })
  return { socket, heard: () => heard, how: () => how }
}

async function setUp(context: TestContext): Promise<{ link: Link; dial: () => Promise<End>; accepted: End[] }> {
  const accepted: End[] = []
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    accepted.push(listenTo(socket))
    socket.on('data', (bytes) => socket.write(`>${bytes}`))
    socket.on('end', () => socket.end())
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const link = await startLink({ target: { host: '127.0.0.1', port: (server.address() as { port: number }).port } })
  const dialled: Socket[] = []
  context.after(async () => {
    for (const socket of dialled) socket.destroy()
    for (const { socket } of accepted) socket.destroy()
    await link.close()
    await once(server.close(), 'close')
  })
  const dial = async () => {
    const socket = connect(link.port, '127.0.0.1')
    dialled.push(socket)
    const end = listenTo(socket)
    await once(socket, 'connect')
    return end
  }
  return { link, dial, accepted }
}

async function speak(end: End, word: string): Promise<void> {
  end.socket.write(word)
  await until(() => end.heard().endsWith(`>${word}`))
}

test('a line that is up carries and counts both directions', async (context) => {
  const { link, dial } = await setUp(context)
  const one = await dial()
  await speak(one, 'hello')
  assert.deepEqual(link.stats(), { connections: 1, open: 1, bytesUp: 5, bytesDown: 6 })
  link.resetStats()
  await speak(one, 'you')
  assert.deepEqual(link.stats(), { connections: 0, open: 1, bytesUp: 3, bytesDown: 4 })
  one.socket.end()
  await until(() => one.how() === 'end' && link.stats().open === 0)
})

test('more than the buffers hold arrives whole, at the pace of the reader', async (context) => {
  const { link, dial } = await setUp(context)
  const one = await dial()
  one.socket.pause()
  const bytes = 20 << 20
  one.socket.write('x'.repeat(bytes))
  await until(() => link.stats().bytesDown > 0)
  const before = await untilStill(() => link.stats().bytesDown)
  assert.ok(before < bytes, 'a reader that does not read stops the sender')
  one.socket.resume()
  await until(() => one.heard().replaceAll('>', '').length === bytes)
  assert.equal(link.stats().bytesUp, bytes)
})

for (const [end, how] of [
  ['fin', 'end'],
  ['destroy', 'end'],
] as const) {
  test(`refuse (${end}): nobody listens, the open ones end; up again on the same port`, async (context) => {
    const { link, dial } = await setUp(context)
    const one = await dial()
    await speak(one, 'hello')
    await link.set({ kind: 'refuse', end })
    await until(() => one.how() !== undefined && link.stats().open === 0)
    assert.equal(one.how(), how)
    await assert.rejects(dial(), { code: 'ECONNREFUSED' })
    await link.set('up')
    await speak(await dial(), 'again')
  })
}

test('reset: open and new connections get RST', async (context) => {
  const { link, dial, accepted } = await setUp(context)
  const one = await dial()
  await speak(one, 'hello')
  await link.set('reset')
  // The RST may come before the connection is reported as made.
  const refused = await dial().then(
    async (two) => {
      await until(() => two.how() !== undefined)
      return two.how()
    },
    (error: NodeJS.ErrnoException) => error.code,
  )
  await until(() => one.how() !== undefined && accepted[0]?.how() !== undefined)
  assert.deepEqual([one.how(), refused, accepted[0]?.how()], ['ECONNRESET', 'ECONNRESET', 'ECONNRESET'])
  assert.equal(accepted.length, 1)
  await link.set('up')
  await speak(await dial(), 'again')
})

test('blackhole: open and new connections are silent, and stay so when the line is back', async (context) => {
  const { link, dial, accepted } = await setUp(context)
  const one = await dial()
  await speak(one, 'hello')
  await link.set('blackhole')
  const two = await dial()
  for (const end of [one, two]) end.socket.write('lost')
  accepted[0]?.socket.write('lost, too')
  await pause(silenceMs)
  await link.set('up')
  await pause(silenceMs)
  assert.deepEqual([one.heard(), two.heard(), one.how(), two.how()], ['>hello', '', undefined, undefined])
  assert.deepEqual([accepted.length, accepted[0]?.heard()], [1, 'hello'])
  accepted[0]?.socket.destroy()
  await speak(await dial(), 'again')
  assert.equal(one.how(), undefined, 'the end of the server is not told across a dead line')
  for (const end of [one, two]) end.socket.destroy()
  await until(() => link.stats().open === 1)
})

test('blackhole that resumes: what was said meanwhile arrives', async (context) => {
  const { link, dial } = await setUp(context)
  const one = await dial()
  await speak(one, 'hello')
  await link.set({ kind: 'blackhole', resume: true })
  const two = await dial()
  for (const end of [one, two]) end.socket.write('late')
  await pause(silenceMs)
  assert.deepEqual([one.heard(), two.heard()], ['>hello', ''])
  await link.set('up')
  await until(() => one.heard() === '>hello>late' && two.heard() === '>late')
})

for (const [lost, sent] of [
  ['down', 'hellomore'],
  ['up', 'hello'],
] as const) {
  test(`halfopen: only ${lost} is silent`, async (context) => {
    const { link, dial, accepted } = await setUp(context)
    const one = await dial()
    await speak(one, 'hello')
    await link.set({ kind: 'halfopen', lost, resume: true })
    one.socket.write('more')
    accepted[0]?.socket.write('!')
    await until(() => accepted[0]?.heard() === sent && one.heard() === (lost === 'up' ? '>hello!' : '>hello'))
    await pause(silenceMs)
    assert.equal(one.heard(), lost === 'up' ? '>hello!' : '>hello')
    assert.equal(accepted[0]?.heard(), sent)
    await link.set('up')
    await until(() => one.heard().includes('>more') && one.heard().includes('!'))
  })
}

test('slow: rate and delay per direction, shared by all connections', async (context) => {
  const { link, dial } = await setUp(context)
  const ends = [await dial(), await dial()]
  await Promise.all(ends.map((end) => speak(end, 'hello')))
  await link.set({ kind: 'slow', up: { bytesPerSecond: 100_000 }, down: { delayMs: 40 } })
  const begunMs = performance.now()
  await Promise.all(ends.map((end) => speak(end, 'x'.repeat(4_000))))
  const tookMs = performance.now() - begunMs
  assert.ok(tookMs >= 118, `2 × 4,000 bytes at 100,000/s and 40 ms took ${tookMs} ms`)
  await link.set('up')
  await speak(ends[0]!, 'fast')
})

test('slow: what was sent before the end arrives before the end', async (context) => {
  const { link, dial, accepted } = await setUp(context)
  const one = await dial()
  await speak(one, 'hello')
  await link.set({ kind: 'slow', down: { bytesPerSecond: 1_000_000, delayMs: 10 } })
  accepted[0]?.socket.end('x'.repeat(50_000))
  await until(() => one.how() !== undefined)
  assert.deepEqual([one.how(), one.heard().length], ['end', '>hello'.length + 50_000])
  await until(() => link.stats().open === 0)
})

test('a server that is away: the connection is taken, then reset', async (context) => {
  const { link, dial, accepted } = await setUp(context)
  const away = await startLink({ target: { host: '127.0.0.1', port: link.port } })
  context.after(() => away.close())
  await link.set('refuse')
  const socket = connect(away.port, '127.0.0.1')
  const end = listenTo(socket)
  await until(() => end.how() !== undefined)
  assert.deepEqual([end.how(), accepted.length], ['ECONNRESET', 0])
  await link.set('up')
  await speak(await dial(), 'again')
})
