/** Headers from a client's socket to the API server's and back, over both versions of HTTP on either side. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { test } from 'node:test'
import { runDirect } from '../../upstream/direct.test-support.ts'
import { FakeServer, inline, issue, writeKubeconfig } from '../../upstream/fakeserver.test-support.ts'
import type { Upstream } from '../../upstream/upstream.ts'
import type { Request, Response } from '../endpoint.ts'
import { admin, open, own, type Running, readUntil, withServer } from '../sockets/server.test-support.ts'
import type { Upgraded } from '../sockets/upgrade.ts'
import { sentHeaders } from './sentheaders.ts'

const groups = Array.from({ length: 300 }, (_, at) => ['Impersonate-Group', `g${at}`] as const)
/** Names in UTF-8, as Go sends them, are bytes to every proxy in between. */
const umlaut = Buffer.from('jürgen').toString('latin1')
const lines: readonly (readonly [string, string])[] = [
  ['Impersonate-User', umlaut],
  ...groups,
  ['Impersonate-Group', 'with, comma'],
  ['Impersonate-Extra-Scopes', 'view'],
  ['Impersonate-Extra-Scopes', 'edit'],
  ['Accept', 'application/json'],
  ['Accept', 'application/yaml'],
  ['User-Agent', 'first'],
  ['User-Agent', 'second'],
  ['X-Stream-Protocol-Version', 'v5'],
  ['X-Stream-Protocol-Version', 'v4'],
]
const sent = lines.map(([name, value]) => `${name.toLowerCase()}: ${value}`).sort()

/** The lines of a request at the API server that the client has written. */
function arrived(raw: readonly string[]): string[] {
  const found = raw.flatMap((name, at) => (at % 2 === 0 ? [`${name.toLowerCase()}: ${raw[at + 1]}`] : []))
  return found.filter((line) => /^(impersonate-|accept:|user-agent|x-stream)/.test(line)).sort()
}

async function askHttp1(running: Running, method: string, upgrade: boolean): Promise<string> {
  const socket = await open(running)
  const switching = upgrade ? 'connection: Upgrade\r\nupgrade: SPDY/3.1\r\n' : 'connection: close\r\n'
  const readYourWrites = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  socket.write(`${method} /x HTTP/1.1\r\nhost: x\r\n${switching}${readYourWrites}\r\n`, 'latin1')
  const answer = await readUntil(socket, '\r\n\r\n')
  socket.destroy()
  return answer
}

const lenient = { ca: own.cert, ...admin, strictSingleValueFields: false }

async function askHttp2({ url }: Running): Promise<string> {
  const session = connectHttp2(url, lenient)
  const raw = [':method', 'GET', ':path', '/x', ...lines.flatMap(([name, value]) => [name.toLowerCase(), value])]
  const stream = session.request(raw as never)
  const [, , answer] = (await once(stream, 'response')) as [unknown, unknown, string[]]
  stream.resume()
  session.destroy()
  return answer.flatMap((name, at) => (at % 2 === 0 ? [`${name}: ${answer[at + 1]}`] : [])).join('\r\n')
}

for (const http2 of [true, false]) {
  test(`[I1] headers go up as they came and come back so, repeated ones repeated, over HTTP/${http2 ? 2 : 1} to the API server`, async () => {
    const upgrades: string[][] = []
    const answering = { Warning: ['299 - "a, b"', '299 - "c"'], 'Set-Cookie': ['a=1', 'b=2'] }
    const fake = await FakeServer.start({
      http2,
      handle: (_request, response) => {
        for (const [name, values] of Object.entries(answering)) response.setHeader(name, values)
        response.end('ok')
      },
      upgrade: (request, socket) => {
        upgrades.push([...request.rawHeaders])
        socket.end('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: SPDY/3.1\r\n\r\n')
      },
    })
    const files = writeKubeconfig(fake.url, inline(issue({ use: 'client', name: 'edge' })))
    const direct = await runDirect({ kubeconfig: files.path })
    const { handle, upgrade } = forwarder(direct.upstream)
    try {
      await withServer({ handle, upgrade }, async (running) => {
        const answers = [await askHttp1(running, 'GET', false), await askHttp2(running)]
        const asked = fake.requests.filter(({ path }) => path === '/x')
        assert.equal(asked.length, 2)
        for (const { raw } of asked) assert.deepEqual(arrived(raw), sent)
        for (const answer of answers) {
          for (const line of ['warning: 299 - "a, b"', 'warning: 299 - "c"', 'set-cookie: b=2']) {
            assert.ok(answer.toLowerCase().includes(line), `${line} in ${answer}`)
          }
        }
        await askHttp1(running, 'POST', true)
        assert.deepEqual(upgrades.map(arrived), [sent])
      })
    } finally {
      await direct.end()
      await fake.end()
      files.remove()
    }
  })
}

test('an answer that repeats what there should be one of still goes out, over both versions', () =>
  withServer(
    { handle: async () => ({ status: 200, headers: { etag: ['"x"', '"y"'] }, body: Buffer.from('ok') }) },
    async (running) => {
      for (const answer of [await askHttp1(running, 'GET', false), await askHttp2(running)]) {
        assert.match(answer, /etag: "x"\r\netag: "y"/i)
      }
    },
  ))

test('what was taken out of a request on its way stays out, and what does not repeat is not copied', () => {
  const headers = { accept: 'a', 'x-one': '1, 2' }
  assert.equal(sentHeaders({ headers, rawHeaders: ['Accept', 'a', 'X-One', '1, 2'] }), headers)
  assert.equal(sentHeaders({ headers }), headers)
  const rawHeaders = [
    'Accept',
    'a',
    'Sec-WebSocket-Protocol',
    'p',
    'Sec-WebSocket-Protocol',
    'q',
    'X-One',
    '1',
    'x-one',
    '2',
  ]
  assert.deepEqual(sentHeaders({ headers, rawHeaders }), { accept: 'a', 'x-one': ['1', '2'] })
})

/** As the edge passes things on: with the client's own headers, over the connection of the edge. */
function forwarder(upstream: Upstream) {
  const asked = (request: Request) => ({
    method: request.method,
    path: request.url,
    headers: sentHeaders(request),
    identity: { kind: 'edge' as const },
  })
  return {
    handle: async (request: Request): Promise<Response> => ({ ...(await upstream.ask(asked(request))) }),
    upgrade: async (request: Request): Promise<Upgraded> => upstream.connect(asked(request)),
  }
}
