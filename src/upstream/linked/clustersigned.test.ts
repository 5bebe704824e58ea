import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { fakeClock } from '../../base/fakeclock.test-support.ts'
import { silentLog } from '../../base/log.ts'
import { JoinedCluster } from '../../hub/joining/cluster.test-support.ts'
import type { KeyPair } from '../../pki/certificate.ts'
import { ClusterSigned } from './clustersigned.ts'

const hourMs = 3_600_000
const yearMs = 365 * 24 * hourMs

function world(
  begun?: (cluster: JoinedCluster) => X509Certificate | 'foreign',
  authorities?: (cluster: JoinedCluster) => readonly X509Certificate[],
) {
  const cluster = new JoinedCluster()
  const clock = fakeClock()
  cluster.fromMs = () => clock.now()
  let current = begun?.(cluster)
  const kept: KeyPair[] = []
  const signed = new ClusterSigned({
    ...{ use: 'client', node: 'edge-1', clock, now: () => clock.now(), log: silentLog, random: () => 0 },
    ...{ isLinked: () => true, current: () => current },
    authorities: () => Promise.resolve(authorities?.(cluster)),
    // The cluster of tests knows the hub's own name and tokens; that the node asks is the edge's to say.
    ask: (asked) => {
      assert.deepEqual(asked.identity, { kind: 'certificate', name: 'system:node:edge-1' })
      return cluster.upstream.ask({ ...asked, identity: { kind: 'edge' } })
    },
    keep: (pair) => {
      kept.push(pair)
      current = new X509Certificate(pair.cert)
      return Promise.resolve()
    },
  })
  const ending = new AbortController()
  const running = signed.run(ending.signal)
  const pass = async (ms: number, steps = 200) => {
    for (let at = 0; at < steps; at++) {
      clock.advance(ms / steps)
      await turn()
      await turn()
    }
  }
  const end = async () => {
    ending.abort()
    await running
  }
  return { cluster, clock, kept, pass, [Symbol.asyncDispose]: end }
}

test('where there is none one is asked for, then another at seven tenths of its life, with another key', async () => {
  await using it = world()
  const { cluster, kept, pass } = it
  await pass(20_000)
  assert.equal(kept.length, 1)
  await pass(yearMs * 0.69)
  assert.equal(kept.length, 1)
  await pass(yearMs * 0.02)
  await pass(60_000)
  assert.equal(kept.length, 2)
  assert.notEqual(kept[0]?.key, kept[1]?.key)
  assert.equal(cluster.requests.size, 2)
  assert.ok([...cluster.requests.keys()].every((name) => /^ake-client-[0-9a-f]{40}$/.test(name)))
})

test('what no authority of the cluster has signed does not take the place of what is there', async () => {
  let known: readonly X509Certificate[] = []
  await using it = world(undefined, () => known)
  const { cluster, kept, pass } = it
  await pass(60_000)
  assert.ok(cluster.requests.size > 0)
  assert.equal(kept.length, 0)
  known = [new X509Certificate(cluster.ca.cert)]
  await pass(2 * hourMs)
  assert.equal(kept.length, 1)
})

test('what the hub renews is left alone', async () => {
  await using it = world(() => 'foreign')
  const { cluster, kept, pass } = it
  await pass(2 * yearMs)
  assert.deepEqual([kept.length, cluster.asked.length], [0, 0])
})

test('what is not signed in time is asked for again with the same key; what was denied with another', async () => {
  await using it = world()
  const { cluster, kept, pass } = it
  cluster.judge = () => undefined
  await pass(2 * 60_000)
  assert.equal(cluster.requests.size, 1)
  assert.ok(cluster.asked.length < 40, `${cluster.asked.length} requests in two minutes`)
  const [request] = cluster.requests.values()
  if (request !== undefined) request.status = { conditions: [{ type: 'Denied', message: 'no' }] }
  cluster.judge = (one) => cluster.sign(one)
  await pass(2 * 60_000)
  assert.equal(kept.length, 1)
  assert.equal(cluster.requests.size, 2)
})

test('a cloud that is away, and a certificate of another cluster’s making, leave what is there', async () => {
  await using it = world()
  const { cluster, kept, pass } = it
  cluster.isAway = true
  await pass(60_000)
  cluster.isAway = false
  cluster.judge = (request) => Object.assign(request.status, { certificate: Buffer.from('x').toString('base64') })
  await pass(60_000)
  assert.equal(kept.length, 0)
  cluster.judge = (request) => cluster.sign(request)
  await pass(60_000)
  assert.equal(kept.length, 1)
})
