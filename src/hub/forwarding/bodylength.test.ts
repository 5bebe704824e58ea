/** Bodies that are not as long as they say, from a link up to a server of HTTP/1.1 and one of HTTP/2: nothing of them is another request. */
import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createSecureServer, type Http2ServerRequest } from 'node:http2'
import { createServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { test } from 'node:test'
import { systemClock } from '../../base/clock.ts'
import { createLog } from '../../base/log.ts'
import { until } from '../../base/until.test-support.ts'
import { Warnings } from '../../base/warnings.ts'
import { TunnelPair } from '../../tunnel/pair.test-support.ts'
import { encodeRequestHead, requestPurpose } from '../../tunnel/request/request.ts'
import { runDirect } from '../../upstream/direct.test-support.ts'
import { inline, issue, writeKubeconfig } from '../../upstream/fakeserver.test-support.ts'
import { EdgeForwarding } from './forwarding.ts'
import { passable } from './passable.ts'

const smuggled = 'GET /api/v1/secrets HTTP/1.1\r\nHost: x\r\n\r\n'

type Seen = { readonly path: string; readonly as: string }

/** An API server of one kind; Node's own, since they read requests as strictly or loosely as servers do. */
async function serving(http2: boolean) {
  const seen: Seen[] = []
  const held = { go: () => {} }
  const heard = { pieces: 0 }
  const handle = (request: IncomingMessage | Http2ServerRequest, response: ServerResponse) => {
    const { method, url: path = '', headers } = request
    if (path !== '/readyz') seen.push({ path, as: String(headers['impersonate-user'] ?? 'the hub itself') })
    let body = ''
    request.on('data', (piece) => {
      body += String(piece)
      heard.pieces++
    })
    request.on('error', () => {})
    response.on('error', () => {})
    const answer = () => response.end(`${method} ${path} ${body}`)
    // One that does not end until it is let go.
    if (path !== '/slow') request.on('end', answer)
    else {
      response.write('begun ')
      held.go = answer
    }
  }
  const tls = issue({ use: 'server', name: 'fake' })
  const server = http2 ? createSecureServer(tls, handle as never) : createServer(tls, handle)
  server.on('sessionError', () => {})
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => sockets.add(socket))
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  const end = async () => {
    const closed = new Promise((resolve) => server.close(resolve))
    for (const socket of sockets) socket.destroy()
    await closed
  }
  return { seen, held, heard, url, end }
}

async function opened(http2: boolean) {
  const server = await serving(http2)
  const { seen, heard } = server
  const files = writeKubeconfig(server.url, inline(issue({ use: 'client', name: 'hub' })))
  const direct = await runDirect({ kubeconfig: files.path })
  const log = createLog({ level: 'error', write: () => undefined })
  const { upstream } = direct
  const forwarding = new EdgeForwarding({
    ...{ upstream, trustsEdges: false, clock: systemClock, log },
    warnings: new Warnings({ clock: systemClock, log, kinds: [] }),
  })
  const pair = new TunnelPair({ hubAccepts: forwarding.acceptFor({ name: 'n1' }) })
  /** What comes back, or 'broken'. */
  const ask = async (path: string, declared: string | undefined, ...body: readonly string[]) => {
    const stream = pair.edge.open({ purpose: requestPurpose })
    if (stream === undefined) throw new Error('no stream')
    const headers = declared === undefined ? [] : [{ name: 'content-length', value: declared }]
    const method = body.length > 0 ? 'POST' : 'GET'
    const head = { method, path, actor: 'node', headers, version: 0, uid: '' } as const
    stream.write(encodeRequestHead({ ...head, hasBody: body.length > 0 ? 1 : 0 }))
    let text = ''
    let isOver = false
    const reading = (async () => {
      for await (const piece of stream) text += String(piece)
      return text
    })()
      .catch(() => 'broken')
      .finally(() => {
        isOver = true
      })
    for (const piece of body) {
      const before = heard.pieces
      stream.write(piece)
      // Each reaches the server before the next one, or ends the request.
      await until(() => heard.pieces > before || isOver)
    }
    stream.end()
    return await reading
  }
  return {
    ...{ seen, ask, release: () => server.held.go() },
    async [Symbol.asyncDispose]() {
      pair.cut()
      await direct.end()
      await server.end()
      files.remove()
    },
  }
}

for (const http2 of [false, true]) {
  const over = http2 ? 'HTTP/2' : 'HTTP/1.1'

  test(`[I1] what follows the declared end of a body is no request of the hub, over ${over}`, async () => {
    await using it = await opened(http2)
    const { seen, ask } = it
    assert.match(await ask('/warm', undefined), /GET \/warm/)
    const slow = ask('/slow', undefined)
    const one = await ask('/one', '3', `abc${smuggled}`)
    // The first piece may be answered before the second comes.
    await ask('/two', '3', 'abc', smuggled)
    assert.match(await ask('/after', undefined), /GET \/after/)
    assert.match(await ask('/after', undefined), /GET \/after/)
    const strange = seen.filter(({ path, as }) => path === '/api/v1/secrets' || as !== 'system:node:n1')
    assert.deepEqual(strange, [])
    assert.equal(one, 'broken')
    assert.equal(await ask('/short', '30', 'abc'), 'broken')
    it.release()
    assert.match(await slow, /begun .*GET \/slow/, 'other requests of the same connection go on')
  })

  test(`bodies of the length that is declared, or of none, go up whole over ${over}`, async () => {
    await using it = await opened(http2)
    const { ask } = it
    assert.match(await ask('/exact', '6', 'abc', 'def'), /POST \/exact abcdef$/)
    assert.match(await ask('/open', undefined, 'abc', 'def'), /POST \/open abcdef$/)
  })
}

test('[I1] headers that would say where a body ends, other than by one number, are refused', () => {
  const refused = [
    ...[{ 'content-length': ['3', '3'] }, { 'content-length': '3', 'Content-Length': '4' }],
    ...['', '-1', '+3', '3, 3', '0x3', '3 ', '1e3', '9'.repeat(16)].map((length) => ({ 'content-length': length })),
    ...[{ 'transfer-encoding': 'chunked' }, { 'Transfer-Encoding': 'identity' }, { expect: '100-continue' }],
  ]
  for (const headers of refused)
    assert.equal(typeof passable({ method: 'POST', path: '/', headers }), 'string', JSON.stringify(headers))
  assert.equal(typeof passable({ method: 'POST', path: '/', headers: { 'content-length': '3' } }), 'object')
})
