import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { test } from 'node:test'
import { systemClock } from '../../base/clock.ts'
import { createLog } from '../../base/log.ts'
import { until } from '../../base/until.test-support.ts'
import { credentialOf, ended, Heard, startHub } from '../../hub/sockets/hub.test-support.ts'
import { dialTcp } from '../dial.ts'
import { TestProxy } from '../proxy.test-support.ts'
import { Hubs } from './hubs.ts'

type Hub = Awaited<ReturnType<typeof startHub>>

function hubsOf(hub: Hub, addresses: readonly URL[], more: Partial<ConstructorParameters<typeof Hubs>[0]> = {}) {
  const lines: string[] = []
  const hubs = new Hubs({
    ...{
      addresses,
      dial: dialTcp(),
      credential: { current: credentialOf(hub.state) },
      now: Date.now,
      clock: systemClock,
    },
    ...{ log: createLog({ level: 'info', write: (line) => void lines.push(line) }), wait: { firstMs: 5, maxMs: 20 } },
    ...more,
  })
  const ending = new AbortController()
  ended.signal.addEventListener('abort', () => ending.abort())
  return { hubs, lines, ending }
}

/** An address without a listener. */
async function nowhere(): Promise<URL> {
  const server = createServer()
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return new URL(`wss://127.0.0.1:${port}`)
}

test('of several addresses the next is tried at once; the one that was good is tried first again, and resumes', async () => {
  await using hub = await startHub()
  const { hubs, lines, ending } = hubsOf(hub, [await nowhere(), hub.address()])
  for (const resumed of [false, true]) {
    const link = await hubs.connect(ending.signal)
    assert.ok(link)
    assert.equal(link.peer.resumed, resumed)
    const heard = new Heard(link)
    link.send(Buffer.from('hello'))
    await until(() => hub.links.at(-1)?.frames.length === 1)
    hub.links.at(-1)!.link.close('away', 'moved')
    await heard.ended
    hubs.lived()
  }
  assert.equal(lines.length, 1)
  assert.match(lines[0]!, /hub\.unreached address=wss:\/\/127\.0\.0\.1:\d+\/ why="connection refused"/)
})

test('[L4] a hub that is away is tried again with waits that grow, until it is there or the signal', async () => {
  const hub = await startHub()
  const { port } = hub
  await hub.close()
  const waits: number[] = []
  const clock = {
    ...systemClock,
    setTimer: (ms: number, fn: () => void) => {
      if (ms < 1_000) waits.push(ms)
      return systemClock.setTimer(ms, fn)
    },
  }
  const { hubs, lines, ending } = hubsOf(hub, [hub.address()], { clock, wait: { firstMs: 10, maxMs: 80 } })
  const connecting = hubs.connect(ending.signal)
  await until(() => lines.length >= 5)
  await using again = await startHub({ state: hub.state, port })
  const link = await connecting
  assert.equal(link?.peer.resumed, false)
  for (const [at, step] of [10, 20, 40, 80].entries())
    assert.ok(waits[at]! >= step / 2 && waits[at]! <= step, `${waits[at]} of ${step}`)
  await again.close()
  const never = hubs.connect(ending.signal)
  ending.abort()
  assert.equal(await never, undefined)
})

test('a hub that asks to be left alone is, while another is asked; an edge that is told to move begins elsewhere', async () => {
  await using full = await startHub({ limits: { linksMax: 0 } })
  await using other = await startHub()
  const { hubs, lines, ending } = hubsOf(other, [full.address(), other.address()], {
    credential: { current: credentialOf(full.state) },
  })
  const waiting = hubs.connect(ending.signal)
  await until(() => full.listener.counts.refused === 1)
  // The second is of another authority and never taken; the first is not asked again within its time.
  await until(() => lines.filter((line) => line.includes(other.address().href)).length >= 3)
  assert.equal(full.listener.counts.refused, 1)
  ending.abort()
  await waiting
  await using two = await startHub({ state: other.state })
  const both = hubsOf(other, [other.address(), two.address()])
  await both.hubs.connect(both.ending.signal)
  both.hubs.moveOn()
  await both.hubs.connect(both.ending.signal)
  assert.deepEqual([other.links.length, two.links.length], [1, 1])
})

test('a hub that is to be left alone, and is not any more, is tried at once', async () => {
  const hub = await startHub()
  const { hubs, ending } = hubsOf(hub, [hub.address()], { wait: { firstMs: 60_000, maxMs: 60_000 } })
  await hubs.connect(ending.signal)
  hubs.leaveAlone(hub.address().href, 60_000)
  const connecting = hubs.connect(ending.signal)
  hubs.hurry(hub.address().href)
  assert.equal((await connecting)?.peer.address, hub.address().href)
  await hub.close()
})

test('[L4] who is hurried while a link is made waits after the end of that link as any other', async () => {
  await using hub = await startHub()
  const waits: number[] = []
  const setTimer = (ms: number, call: () => void) => {
    waits.push(ms)
    return systemClock.setTimer(ms, call)
  }
  const clock = Object.assign(Object.create(systemClock), { setTimer })
  const { hubs, ending } = hubsOf(hub, [hub.address()], { clock, wait: { firstMs: 77_000, maxMs: 77_000 } })
  const connecting = hubs.connect(ending.signal)
  hubs.hurry(hub.address().href)
  assert.ok(await connecting)
  waits.splice(0)
  const again = hubs.connect(ending.signal)
  assert.ok(
    waits.some((ms) => ms > 30_000),
    `${waits}`,
  )
  ending.abort()
  assert.equal(await again, undefined)
})

test('through a proxy with CONNECT, whose name is told where it fails; a variable that names none is refused', async () => {
  await using hub = await startHub({ hosts: ['hub.example'] })
  await using proxy = await TestProxy.start('http', () => hub.port)
  const environment = { HTTPS_PROXY: proxy.url('user:pass@') }
  const { hubs, lines, ending } = hubsOf(hub, [new URL('wss://hub.example')], { environment })
  const link = await hubs.connect(ending.signal)
  assert.equal(link?.peer.address, 'wss://hub.example/')
  assert.deepEqual(proxy.asked, ['user:pass hub.example:443'])
  const again = await hubs.connect(ending.signal)
  assert.equal(again?.peer.resumed, true)
  await proxy.end()
  const waiting = hubs.connect(ending.signal)
  await until(() => lines.length > 0)
  assert.match(lines[0]!, /why="the proxy http:\/\/127\.0\.0\.1:\d+: connection refused"/)
  ending.abort()
  await waiting
  assert.throws(
    () => hubsOf(hub, [new URL('wss://hub.example')], { environment: { HTTPS_PROXY: 'ftp://x' } }),
    /HTTPS_PROXY/,
  )
})

test('something else that listens there, and a hub that says nothing, end within the time of a dial', async () => {
  await using silent = createServer((socket) => void socket.on('error', () => {}).resume())
  await new Promise<void>((resolve) => void silent.listen(0, '127.0.0.1', resolve))
  const { port } = silent.address() as { port: number }
  await using hub = await startHub()
  const limits = { dialMsMax: 1_000 }
  const { hubs, lines, ending } = hubsOf(hub, [new URL(`wss://127.0.0.1:${port}`), hub.address()], { limits })
  assert.equal((await hubs.connect(ending.signal))?.peer.address, hub.address().href)
  assert.match(lines[0]!, /no connection within 1000 ms/)
})
