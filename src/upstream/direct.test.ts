import { writeFileSync } from 'node:fs'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import { join } from 'node:path'
import { Duplex } from 'node:stream'
import { systemClock } from '../base/clock.ts'
import { silentLog } from '../base/log.ts'
import { upstreamContract, type World } from './contract.test-support.ts'
import { type Dial, dialTcp, type Wire } from './dial.ts'
import { DirectUpstream } from './direct.ts'
import { authorityCert, FakeServer, inline, issue, writeKubeconfig } from './fakeserver.test-support.ts'
import { type ProxyKind, TestProxy } from './proxy.test-support.ts'
import { type ForwardProxy, proxyFor } from './proxychoice.ts'
import { dialThrough } from './proxydial.ts'

for (const http2 of [true, false]) {
  const over = http2 ? 'direct over HTTP/2' : 'direct over HTTP/1.1'
  upstreamContract(over, () => open(http2, dialTcp()))
  upstreamContract(`${over} through a tunnel`, () => open(http2, tunnelled))
  for (const kind of ['http', 'https', 'socks5'] as const)
    upstreamContract(`${over} through an ${kind} proxy`, () => openThrough(http2, kind))
}

/** As a tunnel gives it: a stream of bytes that is no socket. */
const tunnelled: Dial = async (to, signal) => {
  const far = await dialTcp()(to, signal)
  let bytesRead = 0
  const near = Object.defineProperty(
    new Duplex({
      read: () => void far.resume(),
      write: (chunk, _encoding, done) => void far.write(chunk, done),
      final: (done) => void far.end(done),
      destroy: (error, done) => {
        far.destroy()
        done(error)
      },
    }),
    'bytesRead',
    { get: () => bytesRead },
  ) as Wire
  far.on('data', (chunk: Buffer) => {
    bytesRead += chunk.length
    if (!near.push(chunk)) far.pause()
  })
  far.on('end', () => near.push(null))
  far.on('error', (error) => near.destroy(error))
  return near
}

async function openThrough(http2: boolean, kind: ProxyKind): Promise<World> {
  const proxy = await TestProxy.start(kind, (asked) => Number(asked.split(':').at(-1)))
  const chosen = proxyFor(new URL('https://api'), { proxyUrl: proxy.url('user:pass@') }) as ForwardProxy
  const world = await open(http2, dialThrough(dialTcp(), chosen, { ca: authorityCert, insecure: false }))
  const end = async () => {
    await world.end()
    await proxy.end()
  }
  return { ...world, end }
}

const edgePair = issue({ use: 'client', name: 'edge' })
const kubeletPair = issue({ use: 'client', name: 'kubelet' })

async function open(http2: boolean, dial: Dial): Promise<World> {
  let sent = 0
  const fake = await FakeServer.start({
    http2,
    handle: (request, response) => answer(request, response, fake, (bytes) => (sent += bytes)),
    upgrade: (request, socket) => {
      socket.on('error', () => {})
      const name = (
        request.socket as unknown as { getPeerCertificate(): { subject: { CN: string } } }
      ).getPeerCertificate()
      if (request.url === '/forbidden') {
        socket.write('HTTP/1.1 403 Forbidden\r\ntransfer-encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n')
        return
      }
      const versions = request.rawHeaders.filter((_, at) => request.rawHeaders[at - 1] === 'x-stream-protocol-version')
      if (versions.join() !== 'v5,v4') return void socket.destroy()
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\nx-name: ${name.subject.CN}\r\n\r\n`,
      )
      socket.pipe(socket)
    },
  })
  const files = writeKubeconfig(fake.url, inline(edgePair))
  const at = (name: string) => join(files.folder, name)
  writeFileSync(at('kubelet.crt'), kubeletPair.cert)
  writeFileSync(at('kubelet.key'), kubeletPair.key)
  const upstream = await DirectUpstream.open({
    dial,
    servers: [],
    kubeconfig: files.path,
    certificates: [{ name: 'kubelet', cert: at('kubelet.crt'), key: at('kubelet.key') }],
    probeEveryMs: 5_000,
    userAgent: 'ake/test (edge)',
    clock: systemClock,
    log: silentLog,
  })
  const ending = new AbortController()
  const running = upstream.run(ending.signal)
  return {
    upstream,
    sent: () => sent,
    leave: async () => void (await fake.refuse()),
    end: async () => {
      ending.abort()
      await running
      await fake.end()
      files.remove()
    },
  }
}

function answer(
  request: Http2ServerRequest,
  response: Http2ServerResponse,
  fake: FakeServer,
  count: (bytes: number) => void,
): void {
  const path = request.url.split('?')[0]
  if (path === '/warned') {
    response.writeHead(429, { Warning: ['299 - "one, two"', '299 - "three"'], 'retry-after': '1', 'audit-id': 'a-1' })
    response.end('later')
  } else if (path === '/endless') {
    const chunk = Buffer.alloc(64 * 1024, 'x')
    const more = () => {
      while (!response.destroyed && response.writable) {
        count(chunk.length)
        if (!response.write(chunk)) break
      }
    }
    response.on('drain', more)
    more()
  } else if (path === '/broken') {
    response.writeHead(200, {})
    response.write('half of')
    setTimeout(() => fake.reset(), 20)
  } else if (path === '/echo') {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { name } = fake.requests.at(-1) ?? {}
      const { method, url, headers } = request
      response.end(JSON.stringify({ method, path: url, headers, body: Buffer.concat(chunks).toString(), name }))
    })
  }
}
