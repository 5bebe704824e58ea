/** A direct upstream before a fake server that knows the paths of the contract. */
import { writeFileSync } from 'node:fs'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import { join } from 'node:path'
import { systemClock } from '../base/clock.ts'
import { silentLog } from '../base/log.ts'
import type { World } from './contract.test-support.ts'
import { type Dial, dialTcp } from './dial.ts'
import { DirectUpstream } from './direct.ts'
import { FakeServer, inline, issue, writeKubeconfig } from './fakeserver.test-support.ts'

const edgePair = issue({ use: 'client', name: 'edge' })
const kubeletPair = issue({ use: 'client', name: 'kubelet' })

export async function openDirect(http2: boolean, dial: Dial = dialTcp()): Promise<World> {
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
