import { Duplex } from 'node:stream'
import { upstreamContract, type World } from './contract.test-support.ts'
import { openDirect } from './contractworld.test-support.ts'
import { type Dial, dialTcp, type Wire } from './dial.ts'
import { authorityCert } from './fakeserver.test-support.ts'
import { type ProxyKind, TestProxy } from './proxy.test-support.ts'
import { type ForwardProxy, proxyFor } from './proxychoice.ts'
import { dialThrough } from './proxydial.ts'

for (const http2 of [true, false]) {
  const over = http2 ? 'direct over HTTP/2' : 'direct over HTTP/1.1'
  upstreamContract(over, () => openDirect(http2))
  upstreamContract(`${over} through a tunnel`, () => openDirect(http2, tunnelled))
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
  const world = await openDirect(http2, dialThrough(dialTcp(), chosen, { ca: authorityCert, insecure: false }))
  const end = async () => {
    await world.end()
    await proxy.end()
  }
  return { ...world, end }
}
