/** The same over real sockets: TLS, WebSocket, and the certificate as the only proof of a name. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { systemClock } from '../../base/clock.ts'
import { silentLog } from '../../base/log.ts'
import { until } from '../../base/until.test-support.ts'
import { decodeFrame, type LinkFrame } from '../../link/frames/frames.ts'
import type { LinkEnd, LinkSocket } from '../../link/socket/linksocket.ts'
import { credentialText, parseCredential } from '../../pki/credentialfile.ts'
import { dialTcp } from '../../upstream/dial.ts'
import { dialHub, type HubPeer } from '../../upstream/linked/hubdial.ts'
import { HubTicketPouch } from '../../upstream/linked/tickets.ts'
import { HubListener } from '../sockets/listener.ts'
import { edgePair, hubPair } from '../state/certificates.ts'
import { makeState } from '../state/state.ts'
import { HubWorld, type TestEdge } from './hub.test-support.ts'

const state = makeState(Date.now())
const ending = new AbortController()
const listeners: HubListener[] = []
after(async () => {
  ending.abort()
  await Promise.all(listeners.map((listener) => listener.close('the tests are over')))
})

async function listening(world: HubWorld): Promise<URL> {
  const listener = new HubListener({
    ...{ clock: systemClock, log: silentLog, state, serving: hubPair(state, ['127.0.0.1'], Date.now()) },
    addresses: [{ host: '127.0.0.1', port: 0 }],
    accepted: (link) => world.peers.accept(link),
  })
  listeners.push(listener)
  const [at] = await listener.listen()
  return new URL(`wss://127.0.0.1:${at?.port}`)
}

/** What the edge sends goes into the socket, and what comes out of it is told to the edge. */
async function connect(edge: TestEdge, address: URL): Promise<{ link: LinkSocket<HubPeer>; ended: Promise<LinkEnd> }> {
  const pair = edgePair(state, edge.name, Date.now())
  const credential = parseCredential(credentialText({ ca: state.ca.cert, pair, title: '' }), 'test')
  const link = await dialHub({
    ...{ address, credential, dial: dialTcp(), tickets: new HubTicketPouch(), now: Date.now },
    ...{ clock: systemClock, signal: ending.signal },
  })
  const line = edge.over((bytes) => void link.send(bytes))
  const ended = new Promise<LinkEnd>((closed) => {
    const frame = (bytes: Buffer) => edge.receive(decodeFrame(Buffer.from(bytes)) as LinkFrame, line)
    link.begin({ frame, ready: () => undefined, closed })
  })
  return { link, ended }
}

/** The hub's own clock goes on with each look. */
function passing(world: HubWorld, holds: () => boolean): Promise<true> {
  return until(async () => {
    if (!holds()) await world.pass(50)
    return holds()
  }, String(holds))
}

test('[L1] an edge holds what it wants over a real link, and is told of every change', async () => {
  await using world = await HubWorld.open()
  const { server } = world.mirror
  server.clock.jump(Date.now() - server.clock.now())
  for (let at = 0; at < 50; at++) server.put('pods', `a/p${at}`, { node: `n${at % 2}`, value: 'v'.repeat(3_000) })
  const address = await listening(world)
  const edge = world.edge('n1', 'v1/pods?&spec.nodeName=n1', 'v1/pods@a')
  const { link, ended } = await connect(edge, address)
  await passing(world, () => edge.copies.every(({ version }) => version > 0))
  assert.deepEqual(
    edge.copies.map(({ names }) => names.length),
    [25, 50],
  )
  server.put('pods', 'a/p1', { node: 'n1', value: 'new' })
  await passing(world, () => edge.copies.every((copy) => copy.value('a/p1') === 'new'))
  link.cut('the test ends')
  await ended
  await passing(world, () => world.peers.size === 0)
})

test('[L8] who says another name than its certificate is told so, and its link ends', async () => {
  await using world = await HubWorld.open()
  const { server } = world.mirror
  server.clock.jump(Date.now() - server.clock.now())
  const address = await listening(world)
  const edge = world.edge('n1', 'v1/pods')
  edge.hello = 'n2'
  const { ended } = await connect(edge, address)
  const end = await ended
  assert.equal(edge.ended?.reason, 'identity')
  assert.equal(end.by, 'peer')
  assert.match(end.why, /certificate is that of node "n1"/)
})
