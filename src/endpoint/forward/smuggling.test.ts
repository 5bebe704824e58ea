/** Requests that two readers could take for different ones, from a client's socket to the API server's. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { test } from 'node:test'
import { originForm } from '../../kube/request.ts'
import { runDirect } from '../../upstream/direct.test-support.ts'
import { FakeServer, inline, issue, writeKubeconfig } from '../../upstream/fakeserver.test-support.ts'
import type { Request, Response } from '../endpoint.ts'
import { bearerIdentity } from '../identify.ts'
import { open, own, type Running, readAll, withServer } from '../sockets/server.test-support.ts'
import { sentHeaders } from './sentheaders.ts'

type Arrived = readonly { readonly path: string; readonly raw: readonly string[] }[]

/** An edge that passes everything on in its client's name; answers what came to the API server meanwhile. */
async function through(http2: boolean, send: (running: Running) => Promise<void>): Promise<Arrived> {
  const fake = await FakeServer.start({ http2, handle: (_request, response) => void response.end('ok') })
  const files = writeKubeconfig(fake.url, inline(issue({ use: 'client', name: 'edge' })))
  const direct = await runDirect({ kubeconfig: files.path })
  const handle = async (request: Request): Promise<Response> => {
    const { method, url: path, peer, headers } = request
    const identity = bearerIdentity(peer, headers)
    return { ...(await direct.upstream.ask({ method, path, headers: sentHeaders(request), identity, passedOn: true })) }
  }
  const before = fake.requests.length
  try {
    await withServer({ handle }, send)
    return fake.requests.slice(before).filter(({ path }) => path.startsWith('/x'))
  } finally {
    await direct.end()
    await fake.end()
    files.remove()
  }
}

async function askHttp1(running: Running, lines: string, path = '/x'): Promise<string> {
  const socket = await open(running, {})
  socket.on('error', () => {})
  socket.end(`GET ${path} HTTP/1.1\r\nhost: x\r\n${lines}connection: close\r\n\r\n`, 'latin1')
  const answer = await readAll(socket)
  socket.destroy()
  return answer.toString('latin1')
}

/** Answers the status; 0 where there was none. */
async function askHttp2({ url }: Running, fields: readonly string[], path = '/x'): Promise<number> {
  const session = connectHttp2(url, { ca: own.cert, strictSingleValueFields: false } as object)
  session.on('error', () => {})
  try {
    const stream = session.request([':method', 'GET', ':path', path, ...fields] as never)
    stream.on('error', () => {})
    const [headers] = (await Promise.race([once(stream, 'response'), once(stream, 'close')])) as [
      { ':status'?: number } | undefined,
    ]
    stream.resume()
    return headers?.[':status'] ?? 0
  } catch {
    return 0
  } finally {
    session.destroy()
  }
}

function valuesOf({ raw }: Arrived[number], name: string): string[] {
  return raw.flatMap((one, at) => (at % 2 === 0 && one.toLowerCase() === name ? [raw[at + 1] ?? ''] : []))
}

for (const http2 of [true, false]) {
  const to = `over HTTP/${http2 ? 2 : 1} to the API server`

  test(`[I1] of two credentials the first is judged and goes up, alone, ${to}`, async () => {
    const found = await through(http2, async (running) => {
      await askHttp1(running, 'Authorization: Bearer one\r\nAuthorization: Bearer two\r\n')
      await askHttp2(running, ['authorization', 'Bearer one', 'authorization', 'Bearer two'])
    })
    assert.ok(found.length >= 1)
    for (const request of found) assert.deepEqual(valuesOf(request, 'authorization'), ['Bearer one'])
  })

  test(`[I1] no client vouches for a caller, nor has impersonation left out on the way, ${to}`, async () => {
    const vouching = ['X-Remote-User', 'X-Remote-Group', 'X-Remote-Extra-Scopes', 'X-Forwarded-User', 'Forwarded']
    const found = await through(http2, async (running) => {
      const lines = vouching.map((name) => `${name}: root\r\n`).join('')
      await askHttp1(running, `${lines}Authorization: Bearer one\r\n`)
      await askHttp1(
        running,
        'Impersonate-User: jane\r\nConnection: Impersonate-User, impersonate-group\r\nImpersonate-Group: g\r\n',
      )
      await askHttp2(running, [...vouching.flatMap((name) => [name.toLowerCase(), 'root']), 'impersonate-user', 'jane'])
    })
    assert.equal(found.length, 3)
    for (const request of found) {
      for (const name of vouching) assert.deepEqual(valuesOf(request, name.toLowerCase()), [])
    }
    assert.deepEqual(
      found.map((request) => valuesOf(request, 'impersonate-user')),
      [[], ['jane'], ['jane']],
    )
    assert.deepEqual(valuesOf(found[1] as Arrived[number], 'impersonate-group'), ['g'])
  })
}

test('[I1] a request that could be read as two is refused, and no second one of it goes up', async () => {
  const hidden = 'GET /xhidden HTTP/1.1\r\nhost: x\r\n\r\n'
  const bodies = [
    `Content-Length: ${hidden.length}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${hidden}`,
    `Content-Length: 0\r\nContent-Length: ${hidden.length}\r\n\r\n${hidden}`,
    `Content-Length: +${hidden.length}\r\n\r\n${hidden}`,
    `Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${hidden}`,
    `Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n${hidden}`,
    `Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n${hidden}`,
    `Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n${hidden}`,
    `X-A: b\r\n Impersonate-User: root\r\n\r\n${hidden}`,
    `X-A: b\nImpersonate-User: root\r\n\r\n${hidden}`,
    `X-A: b\rImpersonate-User: root\r\n\r\n${hidden}`,
    `Impersonate-User\0: root\r\n\r\n${hidden}`,
    `Impersonate-User: ro\0ot\r\n\r\n${hidden}`,
  ]
  const found = await through(true, async (running) => {
    for (const body of bodies) {
      const socket = await open(running, {})
      socket.on('error', () => {})
      socket.end(`POST /xseen HTTP/1.1\r\nhost: x\r\n${body}`, 'latin1')
      assert.match((await readAll(socket)).toString('latin1'), /^HTTP\/1.1 400 /, JSON.stringify(body))
      socket.destroy()
    }
  })
  for (const { path, raw } of found) assert.doesNotMatch(`${path} ${raw.join(' ')}`, /xhidden|impersonate/i)
})

test('[I1] what HTTP/2 can carry and HTTP/1.1 cannot adds no header and no request', async () => {
  const fields = [
    ['transfer-encoding', 'chunked'],
    ['connection', 'impersonate-user'],
    ['x-a', 'b\r\nimpersonate-user: root'],
    ['x-a\r\nimpersonate-user', 'root'],
    ['x-a', 'b\0'],
    ['Impersonate-User\0', 'root'],
  ]
  const paths = ['/x HTTP/1.1\r\nimpersonate-user: root\r\nx: ', '/x\r\n\r\nGET /xhidden', '/x\0', '/x y']
  for (const http2 of [true, false]) {
    const found = await through(http2, async (running) => {
      for (const field of fields) await askHttp2(running, field)
      for (const path of paths) await askHttp2(running, [], path)
    })
    assert.ok(found.length <= fields.length + paths.length)
    for (const { path, raw } of found) {
      assert.doesNotMatch(`${path} ${raw.join(' ')}`, /impersonate-user|xhidden|[\r\n\0]/i)
    }
  }
})

test('[I1] a target that names a host goes up as its path alone: HTTP/2 has no other form', async () => {
  const targets = [
    ['https://edge/x?a=b', '/x?a=b'],
    ['http://elsewhere/x/../y', '/x/../y'],
    ['https://h:1//x', '//x'],
    ['https://edge?/x', '/?/x'],
    ['https://edge', '/'],
  ] as const
  for (const [target, path] of targets) assert.equal(originForm(target), path)
  for (const path of ['/x', '/x?y=https://z/', '*', '']) assert.equal(originForm(path), path)
  const found = await through(true, async (running) => {
    const socket = await open(running, {})
    socket.write('GET https://elsewhere/x?a=b HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')
    assert.match((await readAll(socket)).toString('latin1'), /^HTTP\/1.1 200 /)
    socket.destroy()
  })
  assert.deepEqual(
    found.map(({ path }) => path),
    ['/x?a=b'],
  )
})
