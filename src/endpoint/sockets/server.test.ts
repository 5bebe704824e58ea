/** What the edge hands on: uploads as they come, answers as they come, and what happens when either breaks off. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { Agent, request as ask } from 'node:https'
import { mock, test } from 'node:test'
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { turns } from '../../base/turns.ts'
import { until } from '../../base/until.test-support.ts'
import type { Request, Response } from '../endpoint.ts'
import { admin, open, own, type Running, readAll, withServer } from './server.test-support.ts'

const chunk = Buffer.alloc(64 * 1024, 'x')
const total = 200 * chunk.length // 12.5 MiB: far beyond what is read whole

function http2(server: Running) {
  const session = connectHttp2(server.url, { ca: own.cert, ...admin })
  session.on('error', () => {})
  return session
}

function http1(server: Running, path: string, method = 'GET') {
  const agent = new Agent({ ca: own.cert, ...admin })
  const request = ask(`${server.url}${path}`, { agent, method })
  request.once('close', () => agent.destroy())
  return request
}

const text = (content: string): Response => ({ status: 200, headers: {}, body: Buffer.from(content) })

for (const version of [1, 2] as const) {
  test(`[A8] HTTP/${version}: an upload is handed on as it comes, no faster than it is taken`, () => {
    let go: (() => void) | undefined
    const gate = new Promise<void>((resolve) => {
      go = resolve
    })
    const handle = async (request: Request): Promise<Response> => {
      if (!request.hasBody) return text('none')
      let size = 0
      for await (const piece of request.stream()) {
        size += piece.length
        if (size === piece.length) await gate
      }
      return text(String(size))
    }
    return withServer({ handle, limits: { bodyBytesMax: 1_000, bodiesBytesMax: 1_000 } }, async (server) => {
      const session = version === 2 ? http2(server) : undefined
      const stream = session?.request({ ':method': 'POST', ':path': '/' }) ?? http1(server, '/', 'POST')
      const answered = session === undefined ? once(stream, 'response').then(([response]) => response) : stream
      let sent = 0
      const sending = (async () => {
        for (; sent < total; sent += chunk.length) if (!stream.write(chunk)) await once(stream, 'drain')
        stream.end()
      })()
      await until(() => server.traffic.bytesIn > 0)
      await pause(80)
      assert.ok(server.traffic.bytesIn <= 2 * chunk.length, `${server.traffic.bytesIn} bytes were taken`)
      assert.ok(sent < total, `${sent} bytes of ${total} were sent while nobody took them`)
      go?.()
      await sending
      assert.equal((await readAll((await answered) as never)).toString(), String(total))
      assert.equal(server.traffic.bytesIn, total)
      session?.close()
    })
  })

  test(`HTTP/${version}: a request that waits for an answer elsewhere hears that its client has left`, () => {
    const { promise: heard, resolve: hear } = Promise.withResolvers<boolean>()
    const { promise: asked, resolve: note } = Promise.withResolvers<AbortSignal>()
    const handle = async ({ gone }: Request): Promise<Response> => {
      const signal = gone?.() as AbortSignal
      signal.addEventListener('abort', () => hear(true))
      note(signal)
      await heard
      return text('too late')
    }
    return withServer({ handle }, async (server) => {
      const session = version === 2 ? http2(server) : undefined
      const stream = session?.request({ ':path': '/' }) ?? http1(server, '/')
      stream.on('error', () => {})
      stream.end()
      assert.equal((await asked).aborted, false)
      stream.destroy()
      assert.equal(await heard, true)
      session?.close()
    })
  })

  test(`HTTP/${version}: without a body there is nothing to hand on`, () => {
    const seen: boolean[] = []
    const handle = async (request: Request): Promise<Response> => {
      seen.push(request.hasBody)
      return text(String((await Array.fromAsync(request.stream())).length))
    }
    return withServer({ handle }, async (server) => {
      const session = version === 2 ? http2(server) : undefined
      for (const method of ['GET', 'POST']) {
        const head = { ':method': method, ':path': '/', 'content-length': '0' }
        const stream = session?.request(head) ?? http1(server, '/', method)
        stream.end()
        const body = session === undefined ? (await once(stream, 'response'))[0] : stream
        assert.equal((await readAll(body as never)).toString(), '0')
      }
      assert.deepEqual(seen, [false, false])
      session?.close()
    })
  })
}

test('an upload that stops coming is answered 408 after a while, whatever its reader makes of it', (context) => {
  const { timers } = context.mock
  let told = ''
  let pieces = 0
  const handle = async (request: Request): Promise<Response> => {
    try {
      for await (const _ of request.stream()) pieces++
    } catch (error) {
      told = (error as Error).message
    }
    return text('over')
  }
  return withServer({ handle, limits: { bodyMsMax: 80, lingerMsMax: 50 } }, async (server) => {
    const client = await open(server)
    client.on('error', () => {})
    timers.enable({ apis: ['setTimeout'] })
    client.write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nx')
    // It is the wait for the next piece that counts, not the whole.
    for (let got = 1; got <= 4; got++) {
      while (pieces < got) await nextTurn()
      timers.tick(60)
      client.write('x')
    }
    while (pieces < 5) await nextTurn()
    assert.equal(told, '')
    timers.tick(80)
    let answer: Buffer | undefined
    void readAll(client).then((all) => {
      answer = all
    })
    // The connection is left open for a moment after its answer.
    for (; answer === undefined; timers.tick(10)) await nextTurn()
    timers.reset()
    assert.match(answer.toString(), /^HTTP\/1\.1 408 /)
    client.destroy()
    assert.match(told, /the body of the request took too long/)
  })
})

test('a stranger has one time for the whole of its upload', () => {
  const handle = async (request: Request): Promise<Response> => {
    for await (const _ of request.stream());
    return text('over')
  }
  return withServer({ handle, limits: { bodyMsMax: 200 } }, async (server) => {
    const client = await open(server, {})
    client.on('error', () => {})
    client.write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\nx')
    const drip = setInterval(() => client.write('x'), 20)
    const [said] = await once(client, 'data').finally(() => clearInterval(drip))
    assert.match(String(said), /^HTTP\/1\.1 408 /)
    client.destroy()
  })
})

test('an upload that is refused before its end gets its answer', () =>
  withServer({ handle: async () => text('no'), limits: { lingerMsMax: 50 } }, async (server) => {
    const client = await open(server)
    client.on('error', () => {})
    client.write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\nx')
    assert.match((await readAll(client)).toString('latin1'), /^HTTP\/1\.1 200 /)
    client.destroy()
  }))

async function* breaking(): AsyncGenerator<Buffer, void, void> {
  yield Buffer.from('half')
  await pause(10)
  throw new Error('the API server went away')
}

const broken = async ({ url }: Request): Promise<Response> => ({
  status: 200,
  headers: { 'content-type': 'application/json' },
  body: breaking(),
  passedThrough: true,
  cutCleanly: url === '/watch',
})

test('HTTP/2: a body that breaks off resets its stream, and ends it in order where that is asked for', () =>
  withServer({ handle: broken }, async (server) => {
    const session = http2(server)
    for (const [path, code] of [
      ['/object', 2],
      ['/watch', 0],
    ] as const) {
      const stream = session.request({ ':path': path })
      stream.on('error', () => {})
      const got = await readAll(stream).then(String, () => 'broke')
      if (!stream.closed) await once(stream, 'close')
      assert.equal(stream.rstCode, code, path)
      assert.equal(got, code === 0 ? 'half' : 'broke')
    }
    session.close()
  }))

/** As bytes: no client of ours cancels what it has not begun. */
function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head.writeUInt16BE((type << 8) | flags, 3)
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

test('[A8] HTTP/2: requests that are cancelled in the bytes behind them are not begun, but for the first', async () => {
  let begun = 0
  const handle = async (): Promise<Response> => {
    begun++
    return text('done')
  }
  await withServer({ handle, limits: { promptStreamsMax: 10 } }, async (server) => {
    const { port } = new URL(server.url)
    const socket = connectTls({ host: '127.0.0.1', port: Number(port), ca: own.cert, ...admin, ALPNProtocols: ['h2'] })
    socket.on('error', () => {})
    const field = (name: string, value: string) =>
      Buffer.concat([Buffer.from([0, name.length]), Buffer.from(name), Buffer.from([value.length]), Buffer.from(value)])
    const fields = { ':method': 'GET', ':scheme': 'https', ':authority': 'x', ':path': '/' }
    const head = Buffer.concat(Object.entries(fields).map(([name, value]) => field(name, value)))
    const pairs = Array.from({ length: 200 }, (_, at) => [
      frame(1, 5, 1 + 2 * at, head),
      frame(3, 0, 1 + 2 * at, Buffer.from([0, 0, 0, 8])),
    ])
    const last = frame(1, 5, 401, head)
    const opening = Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), frame(4, 0, 0, Buffer.alloc(0))])
    await once(socket, 'secureConnect')
    socket.write(Buffer.concat([opening, ...pairs.flat(), last]))
    const answers = new Promise<void>((resolve) => {
      let got = ''
      socket.on('data', (bytes: Buffer) => {
        got += bytes.toString('latin1')
        if (got.includes('done')) resolve()
      })
    })
    await answers
    socket.destroy()
    assert.ok(begun >= 1 && begun <= 12, `${begun} of 201 were begun`)
  })
})

test('HTTP/1.1: a body that breaks off cuts the connection, and ends it in order where that is asked for', () =>
  withServer({ handle: broken }, async (server) => {
    for (const [path, ends] of [
      ['/object', /half\r\n$/],
      ['/watch', /half\r\n0\r\n\r\n$/],
    ] as const) {
      const client = await open(server)
      client.on('error', () => {})
      client.write(`GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`)
      assert.match((await readAll(client)).toString(), ends)
      client.destroy()
    }
  }))

test('what is passed through is no list of ours, however it is encoded, and keeps its headers', () => {
  async function* endless(): AsyncGenerator<Buffer, void, void> {
    for (;;) yield chunk
  }
  const handle = async ({ url }: Request): Promise<Response> => {
    const headers = { 'content-encoding': 'gzip', 'audit-id': 'theirs', warning: ['299 - "a"', '299 - "b"'] }
    if (url === '/same')
      return { status: 304, headers: { etag: '"x"' }, body: (async function* () {})(), passedThrough: true }
    return { status: 200, headers, body: endless(), passedThrough: true }
  }
  return withServer({ handle, limits: { listsMax: 0 } }, async (server) => {
    const session = http2(server)
    const stream = session.request({ ':path': '/list' })
    const [headers] = await once(stream, 'response')
    assert.equal(headers[':status'], 200)
    assert.equal(headers['content-encoding'], 'gzip')
    assert.equal(headers['audit-id'], 'theirs')
    assert.equal(headers.warning, '299 - "a", 299 - "b"')
    stream.close()
    const same = session.request({ ':path': '/same' })
    const [head] = await once(same, 'response')
    assert.equal(head[':status'], 304)
    same.resume()
    if (!same.closed) await once(same, 'close')
    assert.equal(same.rstCode, 0)
    session.close()
  })
})

test('a stream that is quiet for longer than a stalled reader may be is not cut', (context) => {
  const { timers } = context.mock
  let say: (() => void) | undefined
  async function* quiet(): AsyncGenerator<Buffer, void, void> {
    yield Buffer.from('first')
    await new Promise<void>((resolve) => {
      say = resolve
    })
    yield Buffer.from(' second')
  }
  const handle = async (): Promise<Response> => ({ status: 200, headers: {}, body: quiet(), passedThrough: true })
  return withServer({ handle, limits: { stalledMsMax: 30 } }, async (server) => {
    const session = http2(server)
    const stream = session.request({ ':path': '/log' })
    timers.enable({ apis: ['setTimeout'] })
    const all = readAll(stream)
    while (say === undefined) await nextTurn()
    timers.tick(90)
    say()
    assert.equal((await all).toString(), 'first second')
    timers.reset()
    session.close()
  })
})

test('[A8] of requests with long URLs one is taken up in each round of the loop, and short ones wait for none', () => {
  let round = 0
  let over = false
  const tick = () => {
    round++
    if (!over) setImmediate(tick)
  }
  const rounds: Record<string, number[]> = { long: [], short: [] }
  const handle = async ({ url }: Request): Promise<Response> => {
    rounds[url.length > 10_000 ? 'long' : 'short']?.push(round)
    return text('done')
  }
  return withServer({ handle }, async (server) => {
    const session = http2(server)
    tick()
    const paths = Array.from({ length: 30 }, (_, i) => (i % 2 === 0 ? `/?x=${'!a,'.repeat(4_000)}` : '/'))
    const turned = mock.method(turns, 'takeFirst')
    try {
      await Promise.all(paths.map((path) => readAll(session.request({ ':path': path }))))
      assert.equal(turned.mock.callCount(), 15)
    } finally {
      over = true
      turned.mock.restore()
    }
    const { long = [], short = [] } = rounds
    assert.deepEqual([long.length, short.length], [15, 15])
    // A round as it is counted here begins somewhere between two of theirs.
    for (const one of long) assert.ok(long.filter((other) => other === one).length <= 2, long.join())
  })
})
