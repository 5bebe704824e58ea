/**
 * What do streams of the link cost beside HTTP/2 inside it? The same requests and bodies, both ends in this process, over the
 * same pair of streams in memory, without TLS and WebSocket: our two ends (`upstream/linked`, `tunnel/request`) and Node's.
 */
import { connect, createServer, type ServerHttp2Stream } from 'node:http2'
import { type Duplex, duplexPair } from 'node:stream'
import { systemClock } from '../src/base/clock.ts'
import { decodeFrame, encodeFrame } from '../src/link/frames/frames.ts'
import type { CarriedFrame } from '../src/tunnel/frames.ts'
import { standardTunnelLimits } from '../src/tunnel/limits.ts'
import { headerLines } from '../src/tunnel/request/request.ts'
import {
  RequestFailed,
  RequestServer,
  type TunnelledReply,
  type TunnelledRequest,
} from '../src/tunnel/request/serve.ts'
import { type IncomingStream, TunnelStreams } from '../src/tunnel/streams.ts'
import { LinkedRequests } from '../src/upstream/linked/linked.ts'
import type { Figure, Question } from './bench.ts'

const rounds = 5
const requests = 2_000
/** At once, as a busy node's. */
const atOnce = 32
const token = 'x'.repeat(1_000)
const lease = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-1?timeout=10s'
const sentHeaders = {
  accept: 'application/vnd.kubernetes.protobuf,application/json',
  'content-type': 'application/vnd.kubernetes.protobuf',
  'user-agent': 'kubelet/v1.36.0 (linux/amd64) kubernetes/0123456',
}
const answerHeaders = {
  'content-type': 'application/vnd.kubernetes.protobuf',
  'audit-id': '5a1a0a4c-5f0e-4f7c-9a55-2f1d3c1b7a10',
  'cache-control': 'no-cache, private',
  'x-kubernetes-pf-flowschema-uid': '0e7b1a7e-7a3c-4b6a-8d38-0c6f5f0f9f11',
  'x-kubernetes-pf-prioritylevel-uid': '7d0b5a55-5d3a-4d6c-9d0a-1d8f8f4e2b12',
  date: 'Tue, 17 Nov 2026 11:00:00 GMT',
}
/** A lease in protobuf, about. */
const small = Buffer.alloc(320, 'l')
const piece = Buffer.alloc(64 * 1024, 'p')
const largeBytes = 64 * 1024 * 1024

/** One of the two ways: asks for a path, and resolves with the size of the answer once it is read. */
type Way = { ask(path: string, body: Buffer | undefined): Promise<number>; end(): void }

export const tunnel: Question = {
  name: 'tunnel',
  async ask() {
    const ways = { ake: linked(), 'HTTP/2': http2() }
    const renew = (way: Way) => many(() => way.ask(lease, small))
    const read = async (way: Way) => {
      if ((await way.ask('/large', undefined)) !== largeBytes) throw new Error('not all of it came')
    }
    const figures: Figure[] = [
      { name: 'tunnel, a renewal of a lease, both ends', unit: 'µs CPU', measured: await each(ways, renew, requests) },
      { name: 'tunnel, a large answer, both ends', unit: 'µs CPU a MB', measured: await each(ways, read, 64) },
    ]
    for (const way of Object.values(ways)) way.end()
    return figures
  },
}

async function many(ask: () => Promise<unknown>): Promise<void> {
  let left = requests
  const worker = async () => {
    while (left-- > 0) await ask()
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
}

/** The least of several rounds, in turn. */
async function each<Name extends string>(
  ways: Readonly<Record<Name, Way>>,
  run: (way: Way) => Promise<void>,
  per: number,
): Promise<Record<Name, number>> {
  const least = {} as Record<Name, number>
  for (let round = 0; round < rounds; round++) {
    for (const [name, way] of Object.entries(ways) as [Name, Way][]) {
      const began = process.cpuUsage()
      await run(way)
      const { user, system } = process.cpuUsage(began)
      least[name] = Math.min(least[name] ?? Number.POSITIVE_INFINITY, (user + system) / per)
    }
  }
  return least
}

function linked(): Way {
  const [near, far] = duplexPair()
  const carry = (socket: Duplex, side: 'edge' | 'hub', accept: (incoming: IncomingStream) => void) => {
    let isFull = false
    const pump = () => {
      for (let frame = streams.next(!isFull); frame !== undefined; frame = streams.next(!isFull)) {
        const message = encodeFrame(frame)
        if (!socket.write(message)) isFull = true
      }
    }
    const streams = new TunnelStreams({ side, limits: standardTunnelLimits, accept, ready: pump })
    // Each message arrives as it was written.
    socket.on('data', (message: Buffer) => streams.receive(decodeFrame(message) as CarriedFrame))
    socket.on('drain', () => {
      isFull = false
      pump()
    })
    return streams
  }
  const server = new RequestServer({ handle: reply, callerRequestsMax: atOnce })
  const hub = carry(far, 'hub', (incoming) => server.accept(incoming))
  const edge = carry(near, 'edge', ({ stream }) => stream.destroy())
  const asking = new LinkedRequests({
    ...{ streams: () => edge, heardAt: () => 0, node: 'system:node:node-1', userAgent: 'ake' },
    clock: systemClock,
  })
  return {
    async ask(path, body) {
      const method = body === undefined ? 'GET' : 'PUT'
      const answer = await asking.ask({
        ...{ method, path, headers: sentHeaders, identity: { kind: 'token', token }, passedOn: true },
        ...(body !== undefined && { body }),
      })
      let size = 0
      for await (const chunk of answer.body) size += chunk.length
      return size
    },
    end: () => {
      edge.close('over')
      hub.close('over')
    },
  }
}

async function reply({ path, body }: TunnelledRequest): Promise<TunnelledReply> {
  const headers = headerLines(answerHeaders)
  if (path === '/large') return { status: 200, headers, body: large() }
  if (path !== lease) throw new RequestFailed('there is no such path', false)
  for await (const _ of body ?? []);
  return { status: 200, headers, body: small }
}

async function* large(): AsyncGenerator<Buffer, void, void> {
  for (let sent = 0; sent < largeBytes; sent += piece.length) yield piece
}

function http2(): Way {
  const [near, far] = duplexPair()
  const server = createServer()
  server.on('stream', (stream: ServerHttp2Stream, { ':path': path }) => {
    stream.on('error', () => {})
    stream.respond({ ':status': 200, ...answerHeaders })
    if (path === '/large') void pour(stream)
    else stream.resume().once('end', () => stream.end(small))
  })
  server.emit('connection', far)
  // The windows that an upstream of ours has.
  const settings = { initialWindowSize: 256 * 1024 }
  const session = connect('http://hub', { createConnection: () => near, settings })
  return {
    ask: (path, body) =>
      new Promise((resolve, reject) => {
        const method = body === undefined ? 'GET' : 'PUT'
        const headers = { ...sentHeaders, authorization: `Bearer ${token}` }
        const stream = session.request({ ':method': method, ':path': path, ...headers }, { endStream: !body })
        let size = 0
        stream.on('data', (chunk: Buffer) => {
          size += chunk.length
        })
        stream.once('end', () => resolve(size)).once('error', reject)
        if (body !== undefined) stream.end(body)
      }),
    end: () => {
      session.destroy()
      server.close()
    },
  }
}

async function pour(stream: Duplex): Promise<void> {
  for await (const chunk of large())
    if (!stream.write(chunk)) await new Promise((resolve) => stream.once('drain', resolve))
  stream.end()
}
