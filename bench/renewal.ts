/**
 * What do a kubelet's renewed lease, and its GET of a pod that has not changed, cost on the line, through the hub and beside an ordinary
 * HTTPS/2 request? Both over TLS 1.3 on loopback, all bytes of both directions counted between the ends (TLS and WebSocket included, TCP and IP not), on a connection that
 * stays: a lease that is new in its time and version, an answer that is new in what an API server makes new each time.
 */
import { randomUUID } from 'node:crypto'
import { connect, createSecureServer, type OutgoingHttpHeaders, type ServerHttp2Stream } from 'node:http2'
import { type AddressInfo, connect as connectTcp, createServer } from 'node:net'
import { systemClock } from '../src/base/clock.ts'
import { silentLog } from '../src/base/log.ts'
import { HubListener } from '../src/hub/sockets/listener.ts'
import { edgePair, hubPair } from '../src/hub/state/certificates.ts'
import { type HubState, makeState } from '../src/hub/state/state.ts'
import { decodeFrame, encodeFrame } from '../src/link/frames/frames.ts'
import type { LinkSocket } from '../src/link/socket/linksocket.ts'
import { credentialText, parseCredential } from '../src/pki/credentialfile.ts'
import type { CarriedFrame } from '../src/tunnel/frames.ts'
import { standardTunnelLimits } from '../src/tunnel/limits.ts'
import { headerLines } from '../src/tunnel/request/request.ts'
import { RequestServer, type TunnelledRequest } from '../src/tunnel/request/serve.ts'
import { type IncomingStream, TunnelStreams } from '../src/tunnel/streams.ts'
import { dialTcp } from '../src/upstream/dial.ts'
import { dialHub } from '../src/upstream/linked/hubdial.ts'
import { LinkedRequests } from '../src/upstream/linked/linked.ts'
import { HubTicketPouch } from '../src/upstream/linked/tickets.ts'
import type { Figure, Question } from './bench.ts'
import { makePods } from './fixture.ts'

const renewals = 200
const host = '127.0.0.1'
const path = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-1?timeout=10s'
const agent = 'kubelet/v1.36.3 (linux/amd64) kubernetes/0123456'
const [uid, owner, flow, level] = [1, 2, 3, 4].map(() => randomUUID())

/** As a kubelet sends it, or as an API server answers. */
function lease(at: number, isAnswer: boolean): Buffer {
  const time = new Date(Date.UTC(2026, 10, 17) + at * 10_003).toISOString()
  const spec = { holderIdentity: 'node-1', leaseDurationSeconds: 40, renewTime: time.replace('Z', `${at % 900}Z`) }
  const metadata = {
    ...{
      name: 'node-1',
      namespace: 'kube-node-lease',
      uid,
      resourceVersion: String(1_200_000 + at * 37 + (isAnswer ? 31 : 0)),
    },
    creationTimestamp: '2026-11-01T00:00:00Z',
    ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'node-1', uid: owner }],
    managedFields: [
      { manager: 'kubelet', operation: 'Update', apiVersion: 'coordination.k8s.io/v1', time: time.slice(0, 19) },
    ],
  }
  return Buffer.from(JSON.stringify({ kind: 'Lease', apiVersion: 'coordination.k8s.io/v1', metadata, spec }))
}

const asked = (body?: Buffer) => ({
  ...{ accept: 'application/json', 'user-agent': agent },
  ...(body && { 'content-type': 'application/json', 'content-length': String(body.length) }),
})

const answered = (at: number, body: Buffer) => ({
  ...{ 'content-type': 'application/json', 'audit-id': randomUUID(), 'cache-control': 'no-cache, private' },
  ...{ 'x-kubernetes-pf-flowschema-uid': flow, 'x-kubernetes-pf-prioritylevel-uid': level },
  ...{ 'content-length': String(body.length), date: new Date(Date.UTC(2026, 10, 17) + at * 10_003).toUTCString() },
})

/** One of the two ways; `bytes` is how many have passed so far. */
type Way = { renew(at: number): Promise<void>; get(at: number): Promise<void>; bytes(): number; end(): Promise<void> }

export const renewal: Question = {
  name: 'renewal',
  async ask({ say }) {
    const state = makeState(Date.now())
    const ways = { ake: await linked(state), 'HTTP/2': await http2(state) }
    const each = async (name: string, ask: (way: Way, at: number) => Promise<void>, atMost: number) => {
      const measured = { ake: await spent(ways.ake, ask), 'HTTP/2': await spent(ways['HTTP/2'], ask) }
      const [ours, theirs] = [measured.ake, measured['HTTP/2']]
      say(`  ${name}: ${ours.toFixed(0)} bytes, by HTTPS/2 ${theirs.toFixed(0)}: ${(theirs / ours).toFixed(1)} times`)
      return { name: `${name} on the line, both directions`, unit: 'bytes', measured, atMost } satisfies Figure
    }
    const figures = [
      await each('a renewed lease', (way, at) => way.renew(at), 300),
      // Each another one: what was asked before is of little help.
      await each('a GET of a pod that is held', (way, at) => way.get(at), 300),
    ]
    for (const way of Object.values(ways)) await way.end()
    return figures
  },
}

/** The average, without the first ones, which bring what the others leave out. */
async function spent(way: Way, ask: (way: Way, at: number) => Promise<void>): Promise<number> {
  for (let at = 0; at < 5; at++) await ask(way, at)
  const before = way.bytes()
  for (let at = 5; at < 5 + renewals; at++) await ask(way, at)
  return (way.bytes() - before) / renewals
}

const pods = makePods(renewals + 5).map((pod) => ({
  path: `/api/v1/namespaces/${pod.namespace}/pods/${pod.name}`,
  uid: randomUUID(),
  bytes: Buffer.from(JSON.stringify(pod.object)),
}))

async function linked(state: HubState): Promise<Way> {
  let at = 0
  const server = new RequestServer({ callerRequestsMax: 10, handle: (request) => reply(request, at) })
  const listener = new HubListener({
    ...{ addresses: [{ host, port: 0 }], state, serving: hubPair(state, [host], Date.now()) },
    ...{ clock: systemClock, log: silentLog },
    accepted: (link) => void carry(link, 'hub', (incoming) => server.accept(incoming)),
  })
  const [address] = await listener.listen()
  const relay = await counting(address?.port ?? 0)
  const pair = edgePair(state, 'node-1', Date.now())
  const link = await dialHub({
    ...{ address: new URL(`wss://${host}:${relay.port}`), dial: dialTcp(), tickets: new HubTicketPouch() },
    credential: parseCredential(credentialText({ ca: state.ca.cert, pair, title: 'bench' }), 'bench'),
    ...{ now: Date.now, clock: systemClock, signal: new AbortController().signal },
  })
  const streams = carry(link, 'edge', ({ stream }) => stream.destroy())
  const requests = new LinkedRequests({
    ...{ streams: () => streams, heardAt: () => 0, node: 'system:node:node-1', userAgent: 'ake', clock: systemClock },
  })
  return {
    async renew(next) {
      at = next
      const body = lease(next, false)
      const answer = await requests.ask({
        ...{ method: 'PUT', path, headers: asked(body), body: pieces(body), passedOn: true },
        identity: { kind: 'certificate', name: 'system:node:node-1' },
      })
      let size = 0
      for await (const chunk of answer.body) size += chunk.length
      if (size !== lease(next, true).length) throw new Error('not all of it came')
    },
    async get(at) {
      const { path, uid } = pods[at] as (typeof pods)[number]
      const answer = await requests.ask({
        ...{ method: 'GET', path, headers: asked(), held: { uid, version: 1_200_000 + at }, passedOn: true },
        identity: { kind: 'certificate', name: 'system:node:node-1' },
      })
      for await (const _ of answer.body);
      if (answer.isSame !== true) throw new Error('it is not the same')
    },
    bytes: relay.bytes,
    async end() {
      link.close('done', '')
      await listener.close('the measurement is over')
      relay.close()
    },
  }
}

async function reply({ body, held }: TunnelledRequest, at: number) {
  if (held !== undefined) return { status: 200, headers: [], isSame: true, body: Buffer.alloc(0) }
  for await (const _ of body ?? []);
  const bytes = lease(at, true)
  return { status: 200, headers: headerLines(answered(at, bytes)), body: pieces(bytes) }
}

/** As it comes from a socket. */
async function* pieces(body: Buffer): AsyncGenerator<Buffer, void, void> {
  yield body.subarray(0, 200)
  yield body.subarray(200)
}

function carry<Peer>(link: LinkSocket<Peer>, side: 'edge' | 'hub', accept: (incoming: IncomingStream) => void) {
  const pump = () => {
    for (let frame = streams.next(true); frame !== undefined; frame = streams.next(true)) link.send(encodeFrame(frame))
  }
  const streams = new TunnelStreams({ side, limits: standardTunnelLimits, accept, ready: pump })
  link.begin({
    frame: (bytes) => streams.receive(decodeFrame(bytes) as CarriedFrame),
    ready: pump,
    closed: ({ why }) => streams.close(why),
  })
  return streams
}

async function http2(state: HubState): Promise<Way> {
  let at = 0
  const server = createSecureServer({ ...hubPair(state, [host], Date.now()), minVersion: 'TLSv1.3' })
  server.on('stream', (stream: ServerHttp2Stream, headers) => {
    const body = headers[':method'] === 'GET' ? (pods[at]?.bytes ?? Buffer.alloc(0)) : lease(at, true)
    stream.resume().once('end', () => {
      stream.respond({ ':status': 200, ...answered(at, body) })
      stream.end(body)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  const relay = await counting((server.address() as AddressInfo).port)
  const session = connect(`https://${host}:${relay.port}`, { ca: state.ca.cert })
  const ask = (next: number, headers: OutgoingHttpHeaders, body?: Buffer) =>
    new Promise<void>((resolve, reject) => {
      at = next
      const stream = session.request(headers)
      stream.resume().once('end', resolve).once('error', reject)
      stream.end(body)
    })
  return {
    renew: (next) => {
      const body = lease(next, false)
      return ask(next, { ':method': 'PUT', ':path': path, ...asked(body) }, body)
    },
    get: (next) => ask(next, { ':method': 'GET', ':path': pods[next]?.path, ...asked() }),
    bytes: relay.bytes,
    async end() {
      session.destroy()
      server.close()
      relay.close()
    },
  }
}

/** Passes on what comes, and counts it. */
async function counting(port: number): Promise<{ port: number; bytes(): number; close(): void }> {
  let bytes = 0
  const server = createServer((near) => {
    const far = connectTcp(port, host)
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      from
        .on('error', () => to.destroy())
        .on('data', (chunk: Buffer) => {
          bytes += chunk.length
        })
      from.pipe(to)
    }
  })
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  return { port: (server.address() as AddressInfo).port, bytes: () => bytes, close: () => void server.close() }
}
