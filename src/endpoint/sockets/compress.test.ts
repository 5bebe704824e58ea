import assert from 'node:assert/strict'
import { connect as connectHttp2 } from 'node:http2'
import { test } from 'node:test'
import { isWorthGzip } from '../answer/spelled.ts'
import type { Request, Response } from '../endpoint.ts'
import { admin, open, own, type Running, readAll, readUntil, withServer } from './server.test-support.ts'

const handle = async (request: Request): Promise<Response> => {
  const body = `compressed: ${isWorthGzip(1_000_000, request)}, accepted: ${request.headers['accept-encoding']}.`
  return { status: 200, headers: {}, body: Buffer.from(body) }
}

async function overBoth(server: Running): Promise<string[]> {
  const session = connectHttp2(server.url, { ca: own.cert })
  const second = await readAll(session.request({ ':path': '/', 'accept-encoding': 'gzip' }))
  session.close()
  const socket = await open(server, admin)
  socket.write('GET / HTTP/1.1\r\nhost: x\r\naccept-encoding: gzip\r\n\r\n')
  const first = await readUntil(socket, 'gzip.')
  socket.destroy()
  return [second.toString(), first.slice(first.indexOf('compressed'), first.indexOf('gzip.') + 'gzip.'.length)]
}

test('over loopback nothing is compressed, and what is passed on still says what its client accepts', () =>
  withServer({ handle }, async (server) => {
    for (const said of await overBoth(server)) assert.equal(said, 'compressed: false, accepted: gzip.')
  }))

test('over loopback too where all clients shall have it', () =>
  withServer({ handle, compress: 'all' }, async (server) => {
    for (const said of await overBoth(server)) assert.equal(said, 'compressed: true, accepted: gzip.')
  }))
