import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TLSSocket } from 'node:tls'
import { badRequest } from '../../../kube/status.ts'
import { statusResponse } from '../../answer/respond.ts'
import type { Request, Response } from '../../endpoint.ts'
import { open, own, type Running, readAll, readUntil, withServer } from '../server.test-support.ts'
import { closeFrame, frameOf, opcodes } from './frames.ts'

const path = '/api/v1/namespaces/default/pods?watch=1'
const opening = {
  host: 'x',
  connection: 'keep-alive, Upgrade',
  upgrade: 'WebSocket',
  'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
  'sec-websocket-version': '13',
  origin: 'https://page.example',
}
const greeting =
  'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n'

function asking(more: Record<string, string | undefined> = {}, url = path): string {
  const lines = Object.entries({ ...opening, ...more }).filter(([, value]) => value !== undefined)
  return `GET ${url} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`
}

/** A watch that says what the test gives it. */
class Watching implements AsyncIterableIterator<Buffer> {
  readonly left = Promise.withResolvers<void>()
  #waiting: ((result: IteratorResult<Buffer>) => void) | undefined
  #said: IteratorResult<Buffer>[] = []

  say(text: string | undefined): void {
    const result: IteratorResult<Buffer> =
      text === undefined ? { value: undefined, done: true } : { value: Buffer.from(text), done: false }
    if (this.#waiting !== undefined) this.#waiting(result)
    else this.#said.push(result)
    this.#waiting = undefined
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<IteratorResult<Buffer>> {
    const said = this.#said.shift()
    return said === undefined ? new Promise((resolve) => (this.#waiting = resolve)) : Promise.resolve(said)
  }

  async return(): Promise<IteratorResult<Buffer>> {
    this.left.resolve()
    this.say(undefined)
    return { value: undefined, done: true }
  }
}

type World = { server: Running; watching: Watching; asked: Request[] }

function withWatch(body: (world: World) => Promise<void>, limits = {}): Promise<void> {
  const watching = new Watching()
  const asked: Request[] = []
  const handle = async (request: Request): Promise<Response> => {
    asked.push(request)
    if (request.url.includes('bad')) return statusResponse(badRequest('a bad watch').status)
    return { status: 200, headers: { 'content-type': 'application/json' }, body: watching }
  }
  return withServer({ handle, limits: { lingerMsMax: 50, ...limits } }, (server) => body({ server, watching, asked }))
}

async function greeted(server: Running, text = asking()): Promise<TLSSocket> {
  const client = await open(server)
  client.write(text)
  assert.equal(await readUntil(client, '\r\n\r\n'), greeting)
  return client
}

function masked(opcode: number, payload: string): Buffer {
  const frame = frameOf(opcode, Buffer.from(payload))
  frame[1] = (frame[1] as number) | 0x80
  return Buffer.concat([frame.subarray(0, 2), Buffer.alloc(4), frame.subarray(2)])
}

test('events go out as messages, pings are answered between them, the end of the watch is a close', () =>
  withWatch(async ({ server, watching, asked }) => {
    const client = await greeted(server)
    watching.say('{"type":"ADDED"}\n')
    assert.equal(
      await readUntil(client, '}\n'),
      frameOf(opcodes.text, Buffer.from('{"type":"ADDED"}\n')).toString('latin1'),
    )
    client.write(masked(opcodes.text, 'what a client says means nothing'))
    client.write(masked(opcodes.ping, 'still there?'))
    assert.equal(await readUntil(client, '?'), frameOf(opcodes.pong, Buffer.from('still there?')).toString('latin1'))
    watching.say(undefined)
    assert.deepEqual(await readAll(client), closeFrame())
    assert.equal(asked[0]?.headers.upgrade, undefined)
    assert.equal(asked[0]?.headers['sec-websocket-key'], undefined)
    client.destroy()
  }))

test('a close of the client is answered, and its watch is left, as it is when the connection goes', () =>
  withWatch(async ({ server, watching }) => {
    const client = await greeted(server, `${asking()}`)
    client.write(masked(opcodes.close, '\x03\xe8'))
    assert.deepEqual(await readAll(client), closeFrame())
    await watching.left.promise
    client.destroy()
  }).then(() =>
    withWatch(async ({ server, watching }) => {
      const client = await greeted(server)
      client.destroy()
      await watching.left.promise
    }),
  ))

test('a watch that is not granted is an ordinary answer; a bad handshake a bare one, and the watch is left', () =>
  withWatch(async ({ server, watching }) => {
    const told = async (text: string) => {
      const client = await open(server)
      client.write(text)
      const answer = (await readAll(client)).toString()
      client.destroy()
      return answer
    }
    assert.match(
      await told(asking({}, `${path}&bad`)),
      /^HTTP\/1\.1 400 Bad Request\r\n.*connection: close.*a bad watch/s,
    )
    assert.equal(await told(asking({ origin: undefined })), 'HTTP/1.1 403 Forbidden\r\n\r\n')
    assert.equal(await told(asking({ origin: 'null' })), 'HTTP/1.1 403 Forbidden\r\n\r\n')
    assert.equal(
      await told(asking({ 'sec-websocket-key': undefined })),
      'HTTP/1.1 400 Bad Request\r\n\r\nmismatch challenge/response',
    )
    assert.equal(
      await told(asking({ 'sec-websocket-version': '8' })),
      'HTTP/1.1 400 Bad Request\r\nSec-WebSocket-Version: 13\r\n\r\nmissing or bad WebSocket Version',
    )
    assert.equal(await told(asking({ 'sec-websocket-protocol': 'a, b' })), 'HTTP/1.1 400 Bad Request\r\n\r\n')
    await watching.left.promise
  }))

test('[I4] a browser’s token stands where other clients have it, is never said back, and needs another protocol', () =>
  withWatch(async ({ server, asked }) => {
    const token = `base64url.bearer.authorization.k8s.io.${Buffer.from('secret').toString('base64url')}`
    const stranger = { ca: own.cert, cert: undefined, key: undefined } as never
    const client = await open(server, stranger)
    client.write(asking({ 'sec-websocket-protocol': `${token}, base64.binary.k8s.io` }))
    const head = await readUntil(client, '\r\n\r\n')
    assert.match(head, /101 .*\r\nSec-WebSocket-Protocol: base64\.binary\.k8s\.io\r\n\r\n$/s)
    assert.equal(asked[0]?.headers.authorization, 'Bearer secret')
    assert.equal(asked[0]?.headers['sec-websocket-protocol'], undefined)
    client.destroy()
    const other = await open(server, stranger)
    other.write(asking({ 'sec-websocket-protocol': token }))
    assert.match((await readAll(other)).toString(), /^HTTP\/1\.1 401 /)
    other.destroy()
  }))

test('what is no watch, or no upgrade to a WebSocket, is an ordinary request where nobody takes upgrades', () =>
  withWatch(async ({ server }) => {
    for (const text of [asking({}, '/api/v1/pods?bad'), asking({ upgrade: 'SPDY/3.1' }, `${path}&bad`)]) {
      const client = await open(server)
      client.write(text)
      await readUntil(client, 'a bad watch')
      client.write(text)
      await readUntil(client, 'a bad watch')
      client.destroy()
    }
  }))

test('a client that does not read is cut when it should have, and its pings are not read meanwhile', () =>
  withWatch(
    async ({ server, watching }) => {
      const client = await greeted(server)
      client.on('error', () => {})
      client.pause()
      const chatter = setInterval(
        () => client.write(Buffer.concat(Array(100).fill(masked(opcodes.ping, 'x'.repeat(100))))),
        1,
      )
      watching.say(`${'x'.repeat(12_000_000)}\n`)
      await watching.left.promise
      clearInterval(chatter)
      assert.equal(server.traffic.stalled, 1)
      client.destroy()
    },
    { stalledMsMax: 60 },
  ))
