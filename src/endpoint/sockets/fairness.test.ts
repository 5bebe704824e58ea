/** What strangers may take of a server, however many of them there are, and what is left for callers. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { silentLog } from '../../base/log.ts'
import { until } from '../../base/until.test-support.ts'
import { unauthorized } from '../../kube/status.ts'
import { refusal, statusResponse } from '../answer/respond.ts'
import type { Request, Response } from '../endpoint.ts'
import type { Whose } from '../shares.ts'
import { admin, open, own, type Running, readAll, withServer } from './server.test-support.ts'

const text = (content: string): Response => ({ status: 200, headers: {}, body: Buffer.from(content) })

/** Tokens that start with `known` are accepted; every other is asked for, in vain. */
class Tokens implements Whose {
  readonly asked: string[] = []
  gate: Promise<void> = Promise.resolve()

  held({ headers }: Request): string | undefined {
    return headers.authorization?.startsWith('known') ? headers.authorization : undefined
  }

  async ask({ headers }: Request): Promise<string | undefined> {
    this.asked.push(headers.authorization ?? '')
    await this.gate
    return headers.authorization?.startsWith('new') ? headers.authorization : undefined
  }
}

async function echo(request: Request): Promise<Response> {
  if (!request.hasBody) return text('ok')
  return await request.body().then(
    (body) => text(String(body.length)),
    (error) => refusal(error, request, silentLog),
  )
}

function session({ url }: Running, options = {}): ClientHttp2Session {
  const made = connect(url, { ca: own.cert, ...options })
  made.on('error', () => {})
  return made
}

function post(client: ClientHttp2Session, authorization: string): ClientHttp2Stream {
  const stream = client.request({ ':method': 'POST', ':path': '/', authorization })
  stream.on('error', () => {})
  return stream
}

async function statusOf(stream: ClientHttp2Stream): Promise<number> {
  const [headers] = await once(stream, 'response')
  stream.resume()
  return headers[':status'] as number
}

test('[I2] no body is read before its caller is known: meanwhile it stays with its sender', () => {
  const whose = new Tokens()
  const { promise, resolve: answer } = Promise.withResolvers<void>()
  whose.gate = promise
  let handled = 0
  const handle = (request: Request) => {
    handled++
    return echo(request)
  }
  return withServer({ handle, whose }, async (server) => {
    const client = session(server)
    const stream = post(client, 'new caller')
    const status = statusOf(stream)
    let sent = 0
    stream.write(Buffer.alloc(300_000), () => {
      sent++
    })
    await until(() => whose.asked.length > 0)
    await pause(50)
    assert.deepEqual([handled, sent, server.traffic.bytesIn], [0, 0, 0])
    answer()
    stream.end()
    assert.equal(await status, 200)
    // It is known from now on, and so is its connection.
    assert.equal(await statusOf(post(client, 'new caller').end()), 200)
    assert.deepEqual(whose.asked, ['new caller'])
    client.destroy()
  })
})

test('[A8] half-sent bodies of nobody take nobody’s memory', () =>
  withServer({ handle: echo, whose: new Tokens(), limits: { bodiesBytesMax: 900_000 } }, async (server) => {
    const refused: number[] = []
    const crowd = Array.from({ length: 4 }, () => session(server))
    for (let n = 0; n < 40; n++) {
      const stream = post(crowd[n % 4] as ClientHttp2Session, `invented ${n}`)
      stream.once('response', (headers) => refused.push(headers[':status'] as number))
      stream.write(Buffer.alloc(50_000))
    }
    await until(() => refused.length >= 38)
    assert.deepEqual(new Set(refused), new Set([429]))
    const caller = session(server)
    const stream = post(caller, 'known caller')
    stream.end(Buffer.alloc(300_000))
    assert.equal(await statusOf(stream), 200)
    for (const one of [...crowd, caller]) one.destroy()
  }))

test('[A8] requests of nobody that wait for their answers are few; a caller’s and the administrator’s go on', () => {
  const { promise: gate, resolve: go } = Promise.withResolvers<void>()
  const handle = async ({ headers }: Request): Promise<Response> => {
    if (headers.authorization?.startsWith('invented')) await gate
    return text('ok')
  }
  return withServer({ handle, whose: new Tokens(), limits: { requestsMax: 90 } }, async (server) => {
    const crowd = session(server)
    const answers: number[] = []
    for (let n = 0; n < 50; n++) {
      const stream = crowd.request({ authorization: `invented ${n}` })
      stream.once('response', (headers) => answers.push(headers[':status'] as number))
      stream.resume()
    }
    await until(() => answers.length >= 40)
    assert.deepEqual(new Set(answers), new Set([429]))
    const caller = session(server)
    assert.equal(await statusOf(caller.request({ authorization: 'known caller' })), 200)
    const machine = session(server, admin)
    assert.equal(await statusOf(machine.request({})), 200)
    go()
    await until(() => answers.length >= 50)
    assert.equal(answers.filter((status) => status === 200).length, 10)
    for (const one of [crowd, caller, machine]) one.destroy()
  })
})

test('[A8] watches and requests with long selectors are as many as their memory allows; short ones go on', () => {
  const long = `/?labelSelector=${'!a,'.repeat(20_000)}`
  const { promise: gate, resolve: go } = Promise.withResolvers<void>()
  const handle = async ({ headers }: Request): Promise<Response> => {
    if (headers['x-waits'] !== undefined) {
      await gate
      return text('ok')
    }
    const body = (async function* () {
      yield Buffer.from('begun')
      await gate
    })()
    return { status: 200, headers: {}, body, isWatch: true }
  }
  // Room for thirteen at most, of which one caller gets half, as of anything.
  return withServer(
    { handle, whose: new Tokens(), limits: { watchesMax: 4_000, requestsMax: 2_000 } },
    async (server) => {
      const caller = session(server)
      const ask = (path: string, headers = {}) => {
        const stream = caller.request({ ':path': path, authorization: 'known caller', ...headers })
        stream.on('error', () => {})
        return statusOf(stream)
      }
      const watches: number[] = []
      for (let n = 0; n < 12; n++) watches.push(await ask(long))
      assert.deepEqual(watches.slice(0, 6), Array(6).fill(200))
      assert.deepEqual(watches.slice(7), Array(5).fill(429))
      assert.equal(await ask('/'), 200, 'of short ones there is room for more')
      const waiting = Array.from({ length: 12 }, () => ask(long, { 'x-waits': '1' }))
      const settled: number[] = []
      for (const one of waiting) void one.then((status) => settled.push(status))
      await until(() => settled.length >= 5)
      assert.deepEqual(new Set(settled), new Set([429]))
      go()
      await Promise.all(waiting)
      assert.ok(settled.includes(200))
      caller.destroy()
    },
  )
})

test('[A8] a connection on which a token was accepted outlives any number that ask for nothing, or in vain', () => {
  const handle = async ({ headers }: Request): Promise<Response> =>
    headers.authorization?.startsWith('known') ? text('ok') : { ...text('none'), status: 404 }
  return withServer({ handle, whose: new Tokens(), limits: { connectionsMax: 10 } }, async (server) => {
    const caller = session(server)
    assert.equal(await statusOf(caller.request({ authorization: 'known caller' })), 200)
    const crowd: ClientHttp2Session[] = []
    for (let n = 0; n < 30; n++) {
      const one = session(server)
      crowd.push(one)
      if (n % 2 === 0) assert.equal(await statusOf(one.request({ authorization: `invented ${n}` })), 404)
      else await once(one, 'remoteSettings')
    }
    assert.equal(await statusOf(caller.request({ authorization: 'known caller' })), 200)
    assert.ok(server.traffic.connections <= 10)
    for (const one of [...crowd, caller]) one.destroy()
  })
})

test('[A8] upgrades of nobody leave those of callers their places', () => {
  const upgrade = async ({ headers }: Request): Promise<Response> => {
    if (headers.authorization === 'invented') await new Promise(() => {})
    return text('no upgrade')
  }
  const limits = { upgradesMax: 18, lingerMsMax: 50 }
  return withServer({ handle: echo, upgrade, whose: new Tokens(), limits }, async (server) => {
    const ask = async (authorization: string) => {
      const socket = await open(server, {})
      socket.on('error', () => {})
      socket.write(
        `GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: SPDY/3.1\r\nauthorization: ${authorization}\r\n\r\n`,
      )
      return socket
    }
    const crowd = [await ask('invented'), await ask('invented')]
    const third = await ask('invented')
    assert.match((await readAll(third)).toString(), /^HTTP\/1\.1 429 /)
    const known = await ask('known caller')
    assert.match((await readAll(known)).toString(), /^HTTP\/1\.1 200 /)
    for (const socket of [...crowd, third, known]) socket.destroy()
  })
})

test('[A8] a request says out of whose share it lives, by either protocol; of a token as soon as its caller is known', async () => {
  const told: string[] = []
  const handle = async ({ holder }: Request): Promise<Response> => {
    const { standing = '', name = '' } = holder?.() ?? {}
    told.push(`${standing} ${name}`)
    return text('ok')
  }
  await withServer({ handle, whose: new Tokens() }, async (server) => {
    const client = session(server)
    for (const authorization of ['invented', 'known one', 'known two']) {
      assert.equal(await statusOf(client.request({ authorization })), 200)
    }
    const machine = session(server, admin)
    assert.equal(await statusOf(machine.request({})), 200)
    const old = await open(server, { ALPNProtocols: ['http/1.1'] })
    old.write('GET / HTTP/1.1\r\nhost: a\r\nauthorization: known three\r\nconnection: close\r\n\r\n')
    await readAll(old)
    for (const one of [client, machine, old]) one.destroy()
  })
  assert.deepEqual(told.slice(0, 3), ['stranger ', 'known known one', 'known known two'])
  assert.match(told[3] ?? '', /^own certificate ake-admin system:masters \d+$/)
  assert.deepEqual(told.slice(4), ['known known three'])
})

test('[A8] a connection that sends nothing but PINGs or SETTINGS is cut', () =>
  withServer({ handle: echo, limits: { noiseMax: 50 } }, async (server) => {
    for (const noise of ['ping', 'settings'] as const) {
      const client = session(server)
      await once(client, 'remoteSettings')
      const closed = once(client, 'close')
      let sent = 0
      for (; sent < 60 && !client.destroyed; sent++) {
        if (noise === 'ping') client.ping(() => {})
        else client.settings({ maxConcurrentStreams: 100 + sent })
        await pause(1)
      }
      await closed
      assert.ok(sent > 40, `${sent} were enough`)
      await until(() => server.traffic.connections === 0)
    }
  }))

test('[A8] a client that is refused as no caller has few streams at once, and its HTTP/2 connection ends, as at kube-apiserver', () => {
  const { promise: gate, resolve: go } = Promise.withResolvers<void>()
  const handle = async ({ headers }: Request): Promise<Response> => {
    await gate
    return headers.authorization === undefined ? statusResponse(unauthorized().status) : text('ok')
  }
  return withServer({ handle, whose: new Tokens(), limits: { strangerStreamsMax: 5 } }, async (server) => {
    const nobody = session(server)
    const streams = Array.from({ length: 8 }, () => nobody.request({}))
    const refused = streams.slice(5).map((stream) => {
      stream.on('error', () => {})
      return new Promise((resolve) => stream.once('close', () => resolve(stream.rstCode)))
    })
    assert.deepEqual(await Promise.all(refused), [7, 7, 7])
    const caller = session(server)
    const known = Array.from({ length: 8 }, () => statusOf(caller.request({ authorization: 'known caller' })))
    const closed = once(nobody, 'close')
    const told = streams.slice(0, 5).map(statusOf)
    go()
    assert.deepEqual(await Promise.all(told), [401, 401, 401, 401, 401])
    await closed
    assert.deepEqual(new Set(await Promise.all(known)), new Set([200]))
    assert.equal(caller.closed, false)
    caller.destroy()
  })
})

test('an HTTP/2 connection that a stranger leaves lying ends after a while', () =>
  withServer({ handle: echo, limits: { pingEveryMs: 20, idleMsMax: 60 } }, async (server) => {
    const machine = session(server, admin)
    await once(machine, 'remoteSettings')
    const client = session(server)
    await once(client, 'close')
    assert.equal(machine.closed, false)
    machine.destroy()
  }))
