/** A line over real sockets that takes what is sent and delivers nothing, as after a change of a NAT: how soon a caller that waits hears of it. */
import assert from 'node:assert/strict'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { after, test } from 'node:test'
import { systemClock } from '../../base/clock.ts'
import { fakeClock } from '../../base/fakeclock.test-support.ts'
import { silentLog } from '../../base/log.ts'
import { until } from '../../base/until.test-support.ts'
import { credentialOf } from '../../hub/sockets/hub.test-support.ts'
import { HubListener } from '../../hub/sockets/listener.ts'
import { hubPair } from '../../hub/state/certificates.ts'
import { makeState } from '../../hub/state/state.ts'
import { dialTcp } from '../dial.ts'
import { Unreachable } from '../upstream.ts'
import { dialHub } from './hubdial.ts'
import { LinkedRequests } from './linked.ts'
import { LiveLink } from './livelink.ts'
import { ModelHub } from './modelhub.test-support.ts'
import { HubTicketPouch } from './tickets.ts'

const ending = new AbortController()
const ends: (() => Promise<unknown>)[] = []
after(async () => {
  ending.abort()
  for (const end of ends) await end()
})

/** Between an edge and a hub on loopback; both sides' systems take everything. */
async function relay(port: number): Promise<{ port: number; swallow: () => void; swallowed: () => number }> {
  const sockets = new Set<Socket>()
  let isSwallowing = false
  let swallowed = 0
  const pass = (from: Socket, to: Socket) => {
    sockets.add(from)
    from.on('error', () => {})
    from.on('data', (bytes) => {
      if (isSwallowing) swallowed += bytes.length
      else to.write(bytes)
    })
    from.on('close', () => void (isSwallowing || to.destroy()))
  }
  const server = createServer((near) => {
    const far = connect(port, '127.0.0.1')
    pass(near, far)
    pass(far, near)
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  ends.push(() => {
    for (const socket of sockets) socket.destroy()
    return new Promise((resolve) => server.close(resolve))
  })
  return {
    port: (server.address() as AddressInfo).port,
    swallow: () => {
      isSwallowing = true
    },
    swallowed: () => swallowed,
  }
}

/** A link whose clocks the test moves; what has to come over its socket meanwhile comes as fast as loopback. */
async function open(answer: () => Promise<void>) {
  const [clock, state] = [fakeClock(), makeState(Date.now())]
  let asked = 0
  const hub = new ModelHub({
    ...{ clock, interest: 'v1/pods' },
    handle: async () => {
      asked++
      await answer()
      return { status: 200, headers: [], body: Buffer.from('ok') }
    },
  })
  const listener = new HubListener({
    ...{ clock: systemClock, log: silentLog, state, serving: hubPair(state, ['127.0.0.1'], Date.now()) },
    addresses: [{ host: '127.0.0.1', port: 0 }],
    accepted: (link) => void hub.accept(link),
  })
  const [at] = await listener.listen()
  ends.push(() => listener.close('the test is over'))
  const line = await relay(at?.port ?? 0)
  const wire = await dialHub({
    ...{ address: new URL(`wss://127.0.0.1:${line.port}`), credential: credentialOf(state), dial: dialTcp() },
    ...{ tickets: new HubTicketPouch(), now: Date.now, clock: systemClock, signal: ending.signal },
  })
  const link = new LiveLink({
    ...{ wire, edge: 'edge-1', release: '1', cluster: '', epoch: 0, keepaliveMs: 30_000, clock, log: silentLog },
    accept: () => {},
    ...{ welcomed: () => {}, signed: () => {}, asked: () => {}, termsTold: () => {} },
  })
  await until(() => link.isOpen)
  const requests = new LinkedRequests({
    ...{ streams: () => link.streams, heardAt: () => link.heardAt, node: 'node', userAgent: 'ake', clock },
  })
  const put = (passedOn = true) =>
    requests.ask({
      passedOn,
      ...{ method: 'PUT', path: '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1' },
      ...({ identity: { kind: 'certificate', name: 'node' }, body: Buffer.from('{}'), headMsMax: 75_000 } as const),
    })
  return { clock, hub, link, line, put, asked: () => asked }
}

test('[L3] a write over an idle link that is half open fails after 5 s, and not when the link is next asked for a sign of life', async () => {
  const { clock, link, line, put } = await open(async () => {})
  assert.equal((await put()).status, 200)
  clock.advance(3_000)
  line.swallow()
  const failed = assert.rejects(put(), (error) => error instanceof Unreachable && error.sent)
  await until(() => line.swallowed() > 0)
  clock.advance(4_900)
  assert.equal(link.isOpen, true)
  clock.advance(100)
  assert.equal(link.isOpen, false)
  await failed
  assert.equal((await link.ended).reason, 'silent')
})

test('[L3] what an edge asks for itself, and no caller waits for, makes a link that is silent for some seconds no dead one', async () => {
  const { clock, link, line, put } = await open(async () => {})
  line.swallow()
  const failed = assert.rejects(put(false), Unreachable)
  await until(() => line.swallowed() > 0)
  clock.advance(29_900)
  assert.equal(link.isOpen, true)
  clock.advance(5_100)
  assert.equal(link.isOpen, false)
  await failed
  await link.ended
})

test('[L3] an API server that takes its time is no sign of a dead link: its hub answers meanwhile', async () => {
  const slow = Promise.withResolvers<void>()
  const { clock, hub, link, put, asked } = await open(() => slow.promise)
  const answer = put()
  await until(() => asked() === 1)
  const pings = () => hub.ends[0]?.frames.filter(({ kind }) => kind === 'ping').length ?? 0
  for (let at = 1; at <= 20; at++) {
    // A sign of life is asked for once in two seconds, and comes.
    const heardAt = link.heardAt
    clock.advance(2_000)
    await until(() => pings() === at && link.heardAt > heardAt)
  }
  assert.equal(link.isOpen, true)
  slow.resolve()
  assert.equal((await answer).status, 200)
  clock.advance(10_000)
  assert.equal(pings(), 20, 'nothing waits any more')
  link.leave('the test is over')
  await link.ended
})
