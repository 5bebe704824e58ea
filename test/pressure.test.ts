/** `ake serve` under bad and greedy clients: its memory stays bounded and everybody else is served. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect as connectHttp2, constants } from 'node:http2'
import { Agent, request } from 'node:https'
import { after, before, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { until } from '../src/base/until.test-support.ts'
import { answerOf, Client, configMap, configMaps, memoryMb, type Serving, Watch, withFolder } from './process.ts'

const bodyBytesMax = 3 * 1024 * 1024
/** Generous for two busy cores: what is meant is "not after the slow one". */
const promptMs = 3_000

let serving: Serving
let client: Client
let release: () => void = () => {}
let finished: Promise<void>

before(async () => {
  await new Promise<void>((ready, fail) => {
    finished = withFolder(async (_, serve) => {
      serving = await serve()
      client = new Client(serving)
      ready()
      await new Promise<void>((resolve) => {
        release = resolve
      })
      // Whatever was done to it: it is the same process, and it ends in order.
      assert.equal((await serving.end('SIGTERM')).code, 0)
    })
    finished.catch(fail)
  })
})
after(async () => {
  client.close()
  release()
  await finished
})

async function served(): Promise<void> {
  const startedMs = Date.now()
  const { status } = await client.ask('GET', '/api/v1/namespaces/default')
  assert.equal(status, 200)
  assert.ok(Date.now() - startedMs < promptMs, `an ordinary GET took ${Date.now() - startedMs} ms`)
}

async function gauge(name: string): Promise<number> {
  const text = (await client.ask('GET', '/metrics')).body.toString()
  const line = text.split('\n').find((one) => one.startsWith(`${name} `) || one.startsWith(`${name}{`))
  assert.ok(line !== undefined, `no ${name} in /metrics`)
  return Number(line.split(' ').at(-1))
}

test('[A8] watchers that stop reading delay nobody and cost no memory while 50 MB pass; later they miss nothing', async () => {
  const events = 100
  const value = 'v'.repeat(500_000)
  const path = `${configMaps}?watch=1&resourceVersion=0&fieldSelector=metadata.name%3Dbig`
  await client.json('POST', configMaps, configMap('big', { step: '0', value }))
  const stopped = Array.from({ length: 2 }, () => new Watch(new Client(serving), path))
  // Together: each is heard of once, and the second may open while the first is waited for.
  await Promise.all(
    stopped.map(async (watch) => {
      await watch.opened()
      watch.stream.pause()
    }),
  )
  const seenAt = new Map<string, number>()
  const quick = new Watch(client, path, ({ object }) => seenAt.set(object.data?.step ?? '', Date.now()))
  await quick.until((all) => all.length > 0)
  const before = memoryMb(serving.pid)
  let highest = before
  for (let step = 1; step <= events; step++) {
    const { status } = await client.ask('PUT', `${configMaps}/big`, configMap('big', { step: String(step), value }))
    assert.equal(status, 200)
    const acknowledgedMs = Date.now()
    await quick.until(() => seenAt.has(String(step)))
    const lateMs = (seenAt.get(String(step)) as number) - acknowledgedMs
    assert.ok(lateMs < promptMs, `the quick watcher was ${lateMs} ms late`)
    highest = Math.max(highest, memoryMb(serving.pid))
  }
  assert.ok(highest - before < 120, `memory grew from ${before} to ${highest} MB`)
  for (const watch of stopped) {
    watch.stream.resume()
    await watch.until((all) => all.length > events)
    const steps = watch.frames.map(({ object }) => Number(object.data?.step))
    assert.deepEqual(
      steps,
      Array.from({ length: events + 1 }, (_, i) => i),
    )
    watch.stream.session?.destroy()
  }
  quick.stream.close()
  await client.json('DELETE', `${configMaps}/big`)
})

test('[A8] a client that cancels 3,000 watches on one connection is not cut, and leaves nothing behind', async () => {
  using fickle = new Client(serving)
  const idle = await gauge('ake_watchers')
  for (let round = 0; round < 15; round++) {
    const streams = Array.from({ length: 200 }, () => fickle.open('GET', `${configMaps}?watch=1`))
    // Half of them are cancelled before the server could answer.
    await Promise.all(streams.slice(100).map((stream) => once(stream, 'response')))
    const closed = streams.map((stream) => once(stream, 'close'))
    for (const stream of streams) stream.close(constants.NGHTTP2_CANCEL)
    await Promise.all(closed)
  }
  assert.equal((await fickle.ask('GET', '/api/v1/namespaces/default')).status, 200)
  await until(async () => (await gauge('ake_watchers')) === idle, 'none is left')
})

test('header bombs are refused, and others served', async () => {
  const { ca, cert, key } = serving.credentials
  const before = memoryMb(serving.pid)
  for (let i = 0; i < 10; i++) {
    const socket = connectTls({ ca, cert, key, host: '127.0.0.1', port: serving.port, ALPNProtocols: ['http/1.1'] })
    socket.on('error', () => {})
    let said = ''
    socket.on('data', (chunk) => {
      said += chunk
    })
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.write(`GET /version HTTP/1.1\r\nhost: x\r\nbomb: ${'b'.repeat(100_000)}\r\n\r\n`)
    await closed
    assert.match(said, /^HTTP\/1\.1 431 /)
    await served()
  }
  for (let i = 0; i < 10; i++) {
    const session = connectHttp2(serving.url, { ca, cert, key, maxSendHeaderBlockLength: 1 << 20 })
    session.on('error', () => {})
    const bomb = Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`x-bomb-${n}`, `${n}`.repeat(1_000)]))
    // Half of them at once, before the server could say what it takes.
    if (i % 2 === 0) await once(session, 'localSettings')
    const stream = session.request({ ':path': '/version', ...bomb })
    const outcome = await answerOf(stream).then(
      ({ status }) => status,
      () => 'reset',
    )
    assert.ok(outcome === 431 || outcome === 'reset', `${outcome}`)
    session.destroy()
    await served()
  }
  const grown = memoryMb(serving.pid) - before
  assert.ok(grown < 60, `memory grew by ${grown} MB`)
})

test('a body of 3 MiB and one byte: 413 as a Status, on HTTP/1.1 and 2, whether its length was told or not', async () => {
  const body = Buffer.alloc(bodyBytesMax + 1, 0x20)
  const check = (status: number | undefined, text: string) => {
    assert.equal(status, 413)
    const { kind, reason, code } = JSON.parse(text)
    assert.deepEqual({ kind, reason, code }, { kind: 'Status', reason: 'RequestEntityTooLarge', code: 413 })
  }
  for (const told of [true, false]) {
    const length = told ? { 'content-length': String(body.length) } : {}
    const second = await client.ask('POST', configMaps, body, length as Record<string, string>)
    check(second.status, second.body.toString())
    const agent = new Agent({ ...serving.credentials, keepAlive: true })
    const headers = { 'content-type': 'application/json', ...length }
    const asking = request(`${serving.url}${configMaps}`, { method: 'POST', agent, headers })
    asking.end(body)
    const [response] = await once(asking, 'response')
    let text = ''
    for await (const chunk of response.setEncoding('utf8')) text += chunk
    check(response.statusCode, text)
    agent.destroy()
  }
  // The connection's own window was given back: the next large upload on it goes through.
  for (let i = 0; i < 20; i++) await client.ask('POST', configMaps, body)
  const { status } = await client.ask('POST', configMaps, Buffer.alloc(bodyBytesMax, 0x20))
  assert.equal(status, 400)
})

test('200 large uploads at once: each is answered, memory is bounded, others are served', async () => {
  const before = memoryMb(serving.pid)
  // Not JSON from its first byte on: what is measured is receiving, not parsing.
  const body = Buffer.alloc(1_000_000, 'x')
  using ends = new DisposableStack()
  const clients = Array.from({ length: 4 }, () => ends.use(new Client(serving)))
  const agent = ends.adopt(new Agent({ ...serving.credentials, maxSockets: 20 }), (one) => one.destroy())
  const http1 = async () => {
    const headers = { 'content-type': 'application/json', 'content-length': body.length }
    const asking = request(`${serving.url}${configMaps}`, { method: 'POST', agent, headers })
    asking.end(body)
    const [response] = await once(asking, 'response')
    response.resume()
    return response.statusCode as number
  }
  const http2 = async (index: number) => {
    const from = clients[index % clients.length] as Client
    return (await from.ask('POST', configMaps, body)).status
  }
  let highest = before
  const watching = setInterval(() => {
    highest = Math.max(highest, memoryMb(serving.pid))
  }, 20)
  ends.defer(() => clearInterval(watching))
  const answers = Promise.all(Array.from({ length: 200 }, (_, i) => (i % 4 === 0 ? http1() : http2(i))))
  for (let i = 0; i < 5; i++) {
    await served()
    await pause(50)
  }
  const counts = new Map<number, number>()
  for (const status of await answers) counts.set(status, (counts.get(status) ?? 0) + 1)
  assert.deepEqual(
    [...counts.keys()].filter((status) => status !== 400 && status !== 429),
    [],
  )
  assert.ok((counts.get(400) ?? 0) > 0, 'not one upload was taken')
  // 64 MB of bodies, once received and once joined, and what the sockets hold.
  assert.ok(highest - before < 350, `memory grew from ${before} to ${highest} MB`)
})

test('an upload given up in the middle is forgotten', async () => {
  using fickle = new Client(serving)
  for (let i = 0; i < 100; i++) {
    const stream = fickle.open('POST', configMaps)
    stream.on('error', () => {})
    stream.write(Buffer.alloc(10_000))
    await pause(0)
    stream.close(constants.NGHTTP2_CANCEL)
  }
  assert.equal((await fickle.ask('GET', '/api/v1/namespaces/default')).status, 200)
  fickle.close()
  await served()
})

test('a flood of requests from some clients leaves room for the others', async () => {
  using ends = new DisposableStack()
  const clients = Array.from({ length: 8 }, () => ends.use(new Client(serving)))
  let answered = 0
  const flood = clients.map(async (one) => {
    for (let round = 0; round < 4; round++) {
      const asked = Array.from({ length: 150 }, () => one.ask('GET', '/api/v1/namespaces'))
      for (const { status } of await Promise.all(asked)) answered += status === 200 ? 1 : 0
    }
  })
  for (let i = 0; i < 10; i++) await served()
  await Promise.all(flood)
  assert.equal(answered, 8 * 4 * 150)
})
