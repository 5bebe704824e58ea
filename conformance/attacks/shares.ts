/** Callers who take what is everybody's: connections, bodies, lists; and what the others get meanwhile. */
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2'
import { setTimeout as pause } from 'node:timers/promises'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { until } from '../../src/base/until.test-support.ts'
import type { Findings } from '../findings.ts'
import { type Attacked, space, type World } from './world.ts'

/** As many as one process may hold altogether. */
const idleConnections = 4_200
const dialledAtOnce = 100
/** Bytes of bodies that are never sent to their end: large ones first, then whatever still fits between. */
const halfBodies = [...Array(24).fill(2_900_000), ...Array(60).fill(50_000), ...Array(200).fill(2_000)] as number[]
const slowLists = 200
/** A caller that has a share is answered well within this, on a machine that is busy with the attack itself. */
const answerMsMax = 5_000

export async function attackShares(world: World, edge: Attacked, findings: Findings): Promise<void> {
  await findings.part('idle connections', () => idle(edge, findings))
  await findings.part('half a body each', () => half(world, edge, findings))
  await findings.part('lists that nobody reads', () => slow(world, edge, findings))
}

async function idle(edge: Attacked, findings: Findings): Promise<void> {
  const { hostname: host, port } = new URL(edge.ake.url)
  const sockets: TLSSocket[] = []
  try {
    for (let made = 0; made < idleConnections; made += dialledAtOnce) {
      const some = Array.from({ length: dialledAtOnce }, () => {
        const socket = connectTls({ host, port: Number(port), ca: edge.ake.ca, ALPNProtocols: ['h2'] })
        socket.on('error', () => {})
        sockets.push(socket)
        return new Promise<void>((done) => socket.once('secureConnect', done).once('close', () => done()))
      })
      await Promise.race([Promise.all(some), pause(10_000)])
    }
    const administrator = edge.administrator()
    const begunMs = performance.now()
    const { status } = await administrator.ask('/readyz')
    findings.equal(status, 200, `the administrator is answered beside ${idleConnections} idle connections`)
    const tookMs = performance.now() - begunMs
    findings.check(tookMs < answerMsMax, 'and soon', `${Math.round(tookMs)} ms`)
    administrator.close()
  } finally {
    for (const socket of sockets) socket.destroy()
  }
}

async function half(world: World, edge: Attacked, findings: Findings): Promise<void> {
  const rules = [{ apiGroups: [''], resources: ['serviceaccounts/token'], verbs: ['create'] }]
  const kubelet = edge.seat({ token: await world.account('like-a-kubelet', rules) })
  const path = `/api/v1/namespaces/${space}/serviceaccounts/edge/token`
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} }
  const session = connectHttp2(edge.ake.url, { ca: edge.ake.ca })
  session.on('error', () => {})
  try {
    for (const bytes of halfBodies) openHalf(session, { ':path': path, ':method': 'POST' }, bytes)
    await pause(2_000)
    const begunMs = performance.now()
    const { status } = await kubelet.ask(path, { method: 'POST', body })
    findings.equal(status, 201, `a token is issued beside ${halfBodies.length} half-sent requests of a stranger`)
    const tookMs = performance.now() - begunMs
    findings.check(tookMs < answerMsMax, 'and soon', `${Math.round(tookMs)} ms`)
  } finally {
    session.destroy()
    kubelet.close()
  }
}

function openHalf(session: ClientHttp2Session, head: Record<string, string>, bytes: number): void {
  const stream = session.request({ ...head, 'content-type': 'application/json', 'content-length': '3000000' })
  stream.on('error', () => {})
  stream.write(Buffer.alloc(bytes, ' '))
}

async function slow(world: World, edge: Attacked, findings: Findings): Promise<void> {
  const rules = [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list', 'watch'] }]
  const [greedy, modest] = [await world.account('greedy', rules), await world.account('modest', rules)]
  const path = `/api/v1/namespaces/${space}/configmaps`
  const seat = edge.seat({ token: modest })
  const filler = 'x'.repeat(500_000)
  for (let at = 0; at < 4; at++) await world.make(path, { metadata: { name: `large-${at}` }, data: { filler } })
  await until(async () => (await seat.ask(path)).status === 200, 'it may list', { everyMs: 50 })
  const session = connectHttp2(edge.ake.url, { ca: edge.ake.ca, settings: { initialWindowSize: 0 } })
  session.on('error', () => {})
  try {
    for (let at = 0; at < slowLists; at++) {
      const headers = { ':path': `${path}?resourceVersion=0`, authorization: `Bearer ${greedy}` }
      session.request(headers, { endStream: true }).on('error', () => {})
    }
    await pause(1_000)
    const begunMs = performance.now()
    const { status } = await seat.ask(path)
    findings.equal(status, 200, `a list is answered beside ${slowLists} that another caller does not read`)
    const tookMs = performance.now() - begunMs
    findings.check(tookMs < answerMsMax, 'and soon', `${Math.round(tookMs)} ms`)
  } finally {
    session.destroy()
    seat.close()
  }
}
