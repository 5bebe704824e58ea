/** Where it listens, and under which certificate, which may change while it runs. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { test } from 'node:test'
import { connect } from 'node:tls'
import { silentLog } from '../../base/log.ts'
import type { Response } from '../endpoint.ts'
import { admin, issuedBy, open, own, readUntil, serving, withServer } from './server.test-support.ts'
import { Server } from './server.ts'

const handle = async (): Promise<Response> => ({ status: 200, headers: {}, body: Buffer.from('{}') })
const ask = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n'
const here = { host: '127.0.0.1', port: 0 }

test('it serves on several addresses at once', () =>
  withServer({ handle, addresses: [here, { host: '127.0.0.2', port: 0 }] }, async (server) => {
    const [first, second] = server.ports
    const one = await open(server)
    const two = connect({
      ...{ host: '127.0.0.2', port: second as number, ALPNProtocols: ['http/1.1'] },
      ...{ ca: own.cert, ...admin, checkServerIdentity: () => undefined },
    })
    await once(two, 'secureConnect')
    assert.deepEqual([one.remotePort, two.remotePort], [first, second])
    for (const socket of [one, two]) {
      socket.write(ask)
      await readUntil(socket, '{}')
    }
    assert.equal(server.traffic.connections, 2)
    two.destroy()
    one.write(ask)
    await readUntil(one, '{}')
    one.destroy()
  }))

test('where one address cannot be had it listens on none', async () => {
  await using taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  const { port } = taken.address() as { port: number }
  await using free = createServer().listen(0, '127.0.0.1')
  await once(free, 'listening')
  const other = { host: '127.0.0.1', port: (free.address() as { port: number }).port }
  await new Promise((resolve) => free.close(resolve))
  const traffic = { connections: 0, bytesOut: 0, bytesIn: 0, refused: 0, stalled: 0 }
  const tls = { ...serving, clientCa: own.cert }
  const server = new Server({ handle, addresses: [other, { ...here, port }], tls, traffic, log: silentLog })
  await assert.rejects(server.listen(), { code: 'EADDRINUSE', port })
  await using again = createServer().listen(other.port, other.host)
  await once(again, 'listening')
})

test('another serving certificate counts for new connections, and no open one is dropped', () =>
  withServer({ handle }, async (server) => {
    const before = await open(server)
    const request = { use: 'server', hosts: ['127.0.0.1', '10.43.0.1'], subject: { commonName: 'ake' } } as const
    server.server.setServing(issuedBy(own, 'ake-ca', request))
    before.write(ask)
    await readUntil(before, '{}')
    // What is set later keeps it: each of both is a part of the same context.
    server.server.setCallersCa(undefined)
    const after = await open(server)
    const named = [before, after].map((socket) => socket.getPeerX509Certificate()?.checkIP('10.43.0.1') !== undefined)
    assert.deepEqual(named, [false, true])
    for (const socket of [before, after]) socket.destroy()
  }))
