/** Replicas over real sockets: who is one, and what becomes of a name at two. */
import assert from 'node:assert/strict'
import { createPrivateKey, generateKeyPairSync, X509Certificate } from 'node:crypto'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { WebSocket, WebSocketServer } from 'ws'
import { systemClock } from '../../base/clock.ts'
import { createLog } from '../../base/log.ts'
import { until } from '../../base/until.test-support.ts'
import { certify, issueCertificate } from '../../pki/certificate.ts'
import type { EdgePeer } from '../sockets/edgepeer.ts'
import { startHub } from '../sockets/hub.test-support.ts'
import { replicaPath } from '../sockets/replicapeer.ts'
import { withNext, withSwitched } from '../state/authorities.ts'
import { edgePair, replicaName, replicaPair } from '../state/certificates.ts'
import { makeState } from '../state/state.ts'
import { decodeMessage } from './messages.ts'
import { type ReplicaAddress, ReplicaSockets } from './replicasockets.ts'

const state = makeState(Date.now())
/** As if so much more time had passed for all replicas. */
const passed = { ms: 0 }
const clock = { ...systemClock, steady: () => systemClock.steady() + passed.ms }

function peer(name: string, issuedAtMs: number): EdgePeer {
  const times = { endsAtMs: 0, issuedAtMs, vouchedAtMs: issuedAtMs }
  const certificate = { serial: '', fingerprint: '', signer: 'hub', authority: '', ...times } as const
  return { name, certificate, resumed: false, from: '10.0.0.1' }
}

async function open(hub: string, addresses: ReplicaAddress[], own = state) {
  const replaced: string[] = []
  const lines: string[] = []
  const held = { state: own }
  const log = createLog({ level: 'debug', write: (line) => void lines.push(line) })
  const replicas = new ReplicaSockets({
    ...{ hub, addresses: () => addresses, state: () => held.state, clock, log },
    replaced: (edge, { sentence, isHandOver }) => {
      replaced.push(`${edge.name}: ${sentence}${isHandOver ? ', handed over' : ''}`)
      replicas.gone(edge)
    },
  })
  const server = await startHub({ state: own, replica: (line) => replicas.accept(line) })
  const ending = new AbortController()
  const running = replicas.run(ending.signal)
  addresses.push({ host: '127.0.0.1', port: server.port })
  const close = async () => {
    ending.abort()
    await running
    await server.close()
  }
  return { replicas, replaced, lines, server, held, close, [Symbol.asyncDispose]: close }
}

test('a name at two replicas is at one: the newer certificate stays, then the newer link; each knows whom the others hold', async () => {
  const addresses: ReplicaAddress[] = []
  await using a = await open('a', addresses)
  await using b = await open('b', addresses)
  a.replicas.came(peer('old', 1))
  a.replicas.came(peer('new', 2))
  a.replicas.came(peer('moved', 1))
  await until(() => a.replicas.others.length === 1 && b.replicas.others.length === 1)
  b.replicas.came(peer('old', 2))
  b.replicas.came(peer('new', 1))
  await until(() => a.replaced.length === 1 && b.replaced.length === 1)
  // Which link is newer is known as far as a question takes on its way.
  passed.ms += 5_000
  b.replicas.came(peer('moved', 1))
  b.replicas.came(peer('alone', 1))
  await until(() => a.replaced.length === 2 && b.replaced.length === 1)
  // What the link with the older certificate was asked may be answered, whichever of both decides.
  assert.deepEqual(a.replaced.sort(), [
    'moved: a newer link with the same certificate of "moved" has come, at b from 10.0.0.1',
    'old: a newer link with a newer certificate of "old" has come, at b from 10.0.0.1, handed over',
  ])
  assert.deepEqual(b.replaced, [
    'new: a newer link with a newer certificate of "new" has come, at a from 10.0.0.1, handed over',
  ])
  await until(() => a.replicas.others[0]?.names.length === 3)
  assert.deepEqual(a.replicas.others[0]?.names.map(({ name }) => name).sort(), ['alone', 'moved', 'old'])
  assert.equal(a.replicas.others[0]?.hub, 'b')
  const elsewhere = ['alone', 'moved', 'new', 'nobody'].filter((name) => a.replicas.holdsElsewhere(name))
  assert.deepEqual(elsewhere, ['alone', 'moved'], 'what it holds itself is not among them')
  // What was held is told anew over the next line, also after the authority was switched.
  const switched = withSwitched(withNext(state, Date.now()), Date.now())
  for (const { server, held } of [a, b]) {
    held.state = switched
    server.adopt(switched)
  }
})

test('who is no replica is refused: an edge, another authority, no certificate; what else answers there learns nothing', async () => {
  const addresses: ReplicaAddress[] = []
  await using a = await open('a', addresses)
  a.replicas.came(peer('n1', 1))
  const dial = (pair: { cert: string; key: string } | object) =>
    new Promise<string>((resolve) => {
      const socket = new WebSocket(`wss://127.0.0.1:${a.server.port}${replicaPath}`, {
        rejectUnauthorized: false,
        ...pair,
      })
      socket.once('open', () => resolve('open'))
      socket.once('error', (error) => resolve(error.message))
    })
  const other = makeState(Date.now())
  const dates = { notBefore: 0, notAfter: Date.now() + 1e9 }
  const named = { commonName: 'system:node:n1', organization: replicaName.organization }
  const issuer = { name: { commonName: 'ake-hub-ca' }, key: createPrivateKey(state.ca.key) }
  for (const pair of [
    {},
    edgePair(state, 'n1', Date.now()),
    replicaPair(other, Date.now()),
    issueCertificate({ ...dates, use: 'client', subject: named }, issuer),
    issueCertificate({ ...dates, use: 'client', subject: replicaName }),
  ])
    assert.match(await dial(pair), /401|socket hang up|ECONNRESET/)
  assert.equal(await dial(replicaPair(state, Date.now())), 'open')
  await a.close()

  // A stolen edge listens where a replica was, with its client certificate; another with one of its own making.
  const heard: string[] = []
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  const self = { commonName: 'ake-hub' }
  const forged = certify(
    privateKey,
    { ...dates, use: 'server', subject: self, hosts: ['127.0.0.1'] },
    { name: self, key: privateKey },
  )
  for (const pair of [edgePair(state, 'n1', Date.now()), { cert: forged, key }]) {
    using ends = new DisposableStack()
    const server = createServer(pair)
    ends.defer(() => {
      server.closeAllConnections()
      server.close()
    })
    new WebSocketServer({ server }).on('connection', (line) => line.on('message', (data) => heard.push(String(data))))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    await using b = await open('b', [{ host: '127.0.0.1', port }])
    b.replicas.came(peer('n1', 1))
    await until(() => b.lines.some((line) => line.includes('replica.unreached')))
  }
  assert.deepEqual(heard, [])
  assert.equal(new X509Certificate(replicaPair(state, Date.now()).cert).subject, 'O=ake:hubs\nCN=ake-hub-replica')
})

test('what no replica says is none of it', () => {
  const wrong = [
    '',
    '[]',
    '{}',
    '{"say":"held","names":{}}',
    '{"say":"held","names":[{"name":"x"}]}',
    '{"say":"gone","name":1,"link":1}',
  ]
  const more = [
    '{"say":"probed","question":-1,"link":1,"ageMs":1}',
    '{"say":"end","name":"n","link":1.5,"sentence":""}',
    'null',
  ]
  const long = [`{"say":"hello","id":"${'x'.repeat(300)}","hub":""}`]
  for (const text of [...wrong, ...more, ...long]) assert.equal(decodeMessage(text), undefined, text)
  assert.deepEqual(decodeMessage('{"say":"probe","name":"n","question":1,"more":1}'), {
    say: 'probe',
    name: 'n',
    question: 1,
  })
})
