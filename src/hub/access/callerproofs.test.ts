/** What callers behind edges prove to a hub, over links in memory: the hub's own peers, sources and mirror, and a cloud that answers reviews. */
import assert from 'node:assert/strict'
import type { X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import { FakeCloud, FakeRecords } from '../../access/access.test-support.ts'
import { accountCaller } from '../../access/authenticate/accounttoken.ts'
import { issuer, jwksOf, makeSigner, podClaims, signToken } from '../../access/authenticate/tokens.test-support.ts'
import { openHubCallers } from '../../app/hub/callers.ts'
import { fakeClock } from '../../base/fakeclock.test-support.ts'
import { createLog } from '../../base/log.ts'
import type { Caller } from '../../kube/caller.ts'
import { unauthorized } from '../../kube/status.ts'
import { ByteWriter } from '../../link/frames/bytes.ts'
import { credentialBytesMax, standardTunnelLimits } from '../../tunnel/limits.ts'
import { TunnelPair } from '../../tunnel/pair.test-support.ts'
import { proofDenied, proofPurpose } from '../../tunnel/proof/proof.ts'
import type { IncomingStream } from '../../tunnel/streams.ts'
import { showProof } from '../../upstream/linked/showproof.ts'
import { nowMs, shownBy, TestAuthority } from '../callers/certificates.test-support.ts'
import { HubWorld, type TestEdge } from '../peers/hub.test-support.ts'
import { CallerProofs } from './callerproofs.ts'
import { NodeRights } from './noderights.ts'
import { SetPolicies } from './policies.test-support.ts'
import { proofLimits } from './prooflimits.ts'
import { ProvenRights } from './provenrights.ts'

const signer = makeSigner()
const slices = 'discovery.k8s.io/v1/endpointslices'
const account = (name: string, pod = ''): Caller => ({
  ...{ name: `system:serviceaccount:kube-system:${name}`, uid: `uid-${name}`, groups: ['system:serviceaccounts'] },
  ...(pod === '' ? {} : { extra: { 'authentication.kubernetes.io/pod-name': [pod] } }),
})

/** By account: `verb resource@namespace`, each of which it may do; `*` for all of them. */
type Granted = Record<string, readonly string[]>

const reads = (what: string): string[] => ['list', 'watch'].map((verb) => `${verb} ${what}`)

async function opened(granted: Granted = { proxy: reads('endpointslices@') }, more: object = {}) {
  const cloud = new FakeCloud()
  const rights: Granted = { ...granted }
  cloud.users.set('', { name: 'hub', uid: '', groups: [] })
  cloud.allows = ({ name }, { resourceAttributes: { verb, resource, namespace } = {} }) =>
    rights[name.split(':').at(-1) ?? '']?.includes(`${verb} ${resource}@${namespace}`) === true
  cloud.documents.set('/.well-known/openid-configuration', JSON.stringify({ issuer, jwks_uri: 'https://elsewhere' }))
  cloud.documents.set('/openid/v1/jwks', jwksOf(signer))
  const lines: string[] = []
  const log = createLog({ level: 'debug', write: (line) => void lines.push(line) })
  const refuse = ({ stream }: IncomingStream) => stream.giveUp('unknown', 'not taken here')
  const world = await HubWorld.open({
    rights: () => ({
      judge: (edge, wanted) => proven.judge(edge, wanted),
      left: (edge) => proven.left(edge),
    }),
    accept: (edge) => callers.proofs.acceptFor(edge, refuse),
  })
  const { mirror, sources } = world
  const { clock } = mirror.server
  const records = new FakeRecords()
  const callers = await openHubCallers({
    ...{ upstream: cloud, interests: mirror.interests, sources, records, clock, log, audiences: [issuer] },
    warnings: { warn: () => undefined },
    catalog: { find: () => undefined, observe: () => () => undefined },
    ...more,
  })
  const nodes = new NodeRights({ sources, clock })
  const proven = new ProvenRights({ nodes, callers: callers.proofs, trustsEdges: false, policies: new SetPolicies() })
  nodes.start()
  const ending = new AbortController()
  const running = callers.run(ending.signal)
  const [first] = Object.keys(granted)
  if (first !== undefined) cloud.users.set('token-1', account(first, 'pod-1'))

  return {
    ...{ world, server: mirror.server, cloud, rights, callers, lines, records },
    async linked(name: string, ...interests: string[]): Promise<TestEdge> {
      const edge = world.edge(name, ...interests)
      edge.connect()
      await world.until(() => edge.copies.every(({ version, refusal }) => version > 0 || refusal !== undefined))
      return edge
    },
    prove: (edge: TestEdge, interest: string, token = 'token-1') =>
      showProof({ streams: edge.streams, interest, shown: { token }, clock }),
    async again(edge: TestEdge, interest = edge.copy().name) {
      const copy = edge.copy(interest)
      copy.refusal = undefined
      const began = copy.starts.length
      edge.resubscribe(copy)
      await world.until(() => copy.starts.length > began || copy.refusal !== undefined)
      await world.settle()
      return copy
    },
    /** As when the line breaks and comes back. */
    async reconnected(edge: TestEdge): Promise<void> {
      edge.line?.lose()
      for (const copy of edge.copies) copy.refusal = undefined
      edge.connect()
      await world.until(() => edge.copies.every(({ refusal }) => refusal !== undefined))
    },
    async [Symbol.asyncDispose]() {
      nodes.stop()
      ending.abort()
      await world[Symbol.asyncDispose]()
      await running
    },
  }
}

test('[L24, I1] a pod’s token opens what its account may list and watch, to the edge that shows it and to no other', async () => {
  await using hub = await opened()
  const { server, cloud } = hub
  server.put('endpointslices', 'a/web')
  const [one, other] = [await hub.linked('n1', slices), await hub.linked('n2', slices)]
  for (const edge of [one, other]) {
    assert.equal(edge.copy().refusal?.reason, 'forbidden')
    assert.match(edge.copy().refusal?.sentence ?? '', /needs the credential of a caller who may, and none was shown/)
  }
  const answer = await hub.prove(one, slices)
  assert.deepEqual(answer, { verdict: 'allowed', forMs: proofLimits.lifeMs, sentence: '', denied: 0 })
  assert.deepEqual((await hub.again(one)).names, ['a/web'])
  assert.equal((await hub.again(other)).refusal?.reason, 'forbidden')
  assert.deepEqual(other.copy().names, [])
  cloud.users.set('token-2', account('proxy', 'pod-2'))
  assert.equal((await hub.prove(other, slices, 'token-2')).verdict, 'allowed')
  assert.deepEqual((await hub.again(other)).names, ['a/web'])
})

test('[L24, L26, L27] a certificate proves what its caller may where a policy lets its edge speak for it, as long as all of that is so', async () => {
  const cluster = new TestAuthority('kubernetes')
  const policy = { edge: 'n1', now: nowMs }
  const speaking = {
    authorities: () => [cluster.certificate],
    speaksFor: (edge: string) => ({ yes: edge === policy.edge, by: 'the policy' }),
    isConstrained: () => true,
    allowsLegacy: false,
  }
  await using hub = await opened({ jane: reads('endpointslices@') }, { speaking })
  hub.server.put('endpointslices', 'a/web')
  const { clock } = hub.world.mirror.server
  clock.jump(nowMs - clock.now())
  const [one, other] = [await hub.linked('n1', slices), await hub.linked('n2', slices)]
  const prove = ({ streams }: TestEdge, certificate: X509Certificate) =>
    showProof({ streams, interest: slices, shown: { certificate: shownBy(certificate).text }, clock })
  const jane = cluster.issue('jane', 'dev', { notAfter: nowMs + 3_600_000 })
  const refused = await prove(other, jane)
  assert.deepEqual([refused.verdict, refused.denied], ['refused', proofDenied.unspoken])
  assert.match(refused.sentence, /does not let node "n2" speak for it/)
  for (const [certificate, denied] of [
    [new TestAuthority('kubernetes').issue('jane', 'dev'), proofDenied.not],
    [cluster.issue('jane', 'system:masters'), proofDenied.unspoken],
    [cluster.issue('bob', 'dev'), proofDenied.byRights],
  ] as const) {
    const answer = await prove(one, certificate)
    assert.deepEqual([answer.verdict, answer.denied], ['refused', denied])
  }
  assert.equal((await prove(one, jane)).verdict, 'allowed')
  assert.deepEqual((await hub.again(one)).names, ['a/web'])
  policy.edge = 'n3'
  await hub.world.pass(90_000)
  assert.match(one.copy().refusal?.sentence ?? '', /the last one may no more: its hub does not let node "n1"/)
})

test('[L24] what the node of the link may have needs no proof', async () => {
  await using hub = await opened()
  hub.server.put('pods', 'a/p', { node: 'n1' })
  const edge = await hub.linked('n1', 'v1/pods?&spec.nodeName=n1', 'v1/services')
  assert.deepEqual(edge.copy().names, ['a/p'])
  assert.ok(edge.copies.every(({ refusal }) => refusal === undefined))
  assert.ok(!hub.cloud.asked.some((line) => line.includes(' of ') || line.startsWith('subject')))
})

test('[L24, I1] a caller without the right is refused in the words of the API server, and proves nothing', async () => {
  await using hub = await opened({ reader: ['list endpointslices@', ...reads('configmaps@a')] })
  hub.server.put('configmaps', 'a/c')
  const edge = await hub.linked('n1', slices, 'v1/configmaps@a', 'v1/configmaps@b', 'v1/configmaps')
  const answer = await hub.prove(edge, slices)
  assert.equal(answer.verdict, 'refused')
  assert.ok(answer.forMs > 0)
  assert.match(answer.sentence, /endpointslices.discovery.k8s.io is forbidden: User ".*:reader" cannot watch resource/)
  assert.equal((await hub.again(edge)).refusal?.reason, 'forbidden')

  // What it may read of one namespace opens neither another nor all of them.
  assert.equal((await hub.prove(edge, 'v1/configmaps@a')).verdict, 'allowed')
  for (const interest of ['v1/configmaps@b', 'v1/configmaps'])
    assert.equal((await hub.prove(edge, interest)).verdict, 'refused', interest)
  assert.deepEqual((await hub.again(edge, 'v1/configmaps@a')).names, ['a/c'])
  for (const interest of ['v1/configmaps@b', 'v1/configmaps'])
    assert.equal((await hub.again(edge, interest)).refusal?.reason, 'forbidden', interest)

  const stranger = await hub.prove(edge, slices, 'invented')
  assert.equal(stranger.verdict, 'refused')
  assert.match(stranger.sentence, /does not accept this credential/)
})

test('[L24] a right that is withdrawn ends what it fed within a look, unless another caller has it', async () => {
  await using hub = await opened({ proxy: reads('endpointslices@'), dns: reads('endpointslices@') })
  const { server, cloud, rights, world } = hub
  server.put('endpointslices', 'a/web')
  const edge = await hub.linked('n1', slices)
  cloud.users.set('token-dns', account('dns'))
  assert.equal((await hub.prove(edge, slices, 'token-dns')).verdict, 'allowed')
  assert.equal((await hub.prove(edge, slices)).verdict, 'allowed')
  await hub.again(edge)
  rights.proxy = []
  await world.pass(61_000)
  server.put('endpointslices', 'a/next')
  await world.settle()
  assert.deepEqual(edge.copy().names, ['a/next', 'a/web'])
  rights.dns = []
  await world.pass(61_000)
  server.put('endpointslices', 'a/unheard')
  await world.settle()
  assert.equal(edge.copy().refusal?.reason, 'forbidden')
  assert.match(
    edge.copy().refusal?.sentence ?? '',
    /the last one may no more: endpointslices.* is forbidden: User ".*:dns"/,
  )
  assert.deepEqual(edge.copy().names, ['a/next', 'a/web'])
  // What was taken from it is not remembered as its own.
  rights.dns = reads('endpointslices@')
  await world.pass(61_000)
  assert.equal((await hub.again(edge)).refusal?.reason, 'forbidden')
})

test('[L24] a proof ends with its link, with its token, and when it is not shown again', async () => {
  await using hub = await opened()
  const { cloud, world } = hub
  const edge = await hub.linked('n1', slices)
  const fed = async () => {
    assert.equal((await hub.prove(edge, slices)).verdict, 'allowed')
    assert.equal((await hub.again(edge)).refusal, undefined)
  }
  await fed()
  const held = () => /ake_hub_proofs (\d+)/.exec(hub.callers.proofs.figures().join('\n'))?.[1]
  assert.equal(held(), '1')
  await hub.reconnected(edge)
  assert.equal(edge.copy().refusal?.reason, 'forbidden')
  assert.equal(held(), '0')
  // One that is judged when its link has gone is of no link.
  cloud.mode = 'hang'
  await world.pass(60_000)
  const late = hub.prove(edge, slices)
  await world.settle()
  edge.line?.lose()
  edge.streams?.close('the line is lost')
  cloud.mode = 'answer'
  cloud.release()
  assert.equal((await late).verdict, 'unknown')
  await world.settle()
  assert.equal(held(), '0')
  await hub.reconnected(edge)

  await fed()
  cloud.users.delete('token-1')
  await world.pass(121_000)
  assert.match(edge.copy().refusal?.sentence ?? '', /does not accept this credential/)
  cloud.users.set('token-1', account('proxy', 'pod-1'))
  await world.pass(20_000)

  await fed()
  await world.pass(proofLimits.lifeMs - 60_000)
  assert.equal((await hub.prove(edge, slices)).verdict, 'allowed')
  await world.pass(proofLimits.lifeMs - 60_000)
  assert.equal(edge.copy().refusal, undefined)
  await world.pass(180_000)
  assert.equal(edge.copy().refusal?.reason, 'forbidden')
})

test('[L24, I2] what cannot be judged is unknown and opens nothing; what was proved goes on meanwhile', async () => {
  await using hub = await opened()
  const { cloud, world } = hub
  const [one, other] = [await hub.linked('n1', slices), await hub.linked('n2', slices)]
  assert.equal((await hub.prove(one, slices)).verdict, 'allowed')
  await hub.again(one)
  await world.pass(60_000)
  cloud.state = 'unreachable'
  const answer = await hub.prove(other, slices)
  assert.equal(answer.verdict, 'unknown')
  assert.ok(answer.forMs > 0)
  assert.equal((await hub.again(other)).refusal?.reason, 'forbidden')
  await world.pass(180_000)
  assert.equal(one.copy().refusal, undefined)
  cloud.state = 'reachable'
  await world.pass(61_000)
  assert.equal((await hub.again(other)).refusal?.reason, 'forbidden')
  assert.equal(one.copy().refusal, undefined)
})

test('[L24] pods of one account on many nodes cost the API server one decision, and their tokens hardly a review', async () => {
  await using hub = await opened()
  const { server, cloud, world } = hub
  server.put('serviceaccounts', 'kube-system/proxy')
  const uidOf = (resource: string, key: string) => server.get(resource, key)?.uid ?? ''
  const edges: TestEdge[] = []
  for (let at = 0; at < 20; at++) {
    server.put('nodes', `node-${at}`)
    server.put('pods', `kube-system/proxy-${at}`, { node: `node-${at}` })
    edges.push(await hub.linked(`node-${at}`, slices))
  }
  await world.pass(30_000)
  // Their watches give a sign of life.
  for (const [resource, key] of [
    ['serviceaccounts', 'kube-system/other'],
    ['pods', 'kube-system/other'],
    ['nodes', 'other'],
  ] as const)
    server.put(resource, key)
  await world.settle()
  cloud.asked.length = 0
  for (const [at, edge] of edges.entries()) {
    const bound = {
      node: { name: `node-${at}`, uid: uidOf('nodes', `node-${at}`) },
      pod: { name: `proxy-${at}`, uid: uidOf('pods', `kube-system/proxy-${at}`) },
    }
    const [namespace, jti] = ['kube-system', `t-${at}`]
    const serviceaccount = { name: 'proxy', uid: uidOf('serviceaccounts', 'kube-system/proxy') }
    const token = signToken(
      signer,
      podClaims(server.clock.now(), {
        ...{ jti, sub: 'system:serviceaccount:kube-system:proxy' },
        'kubernetes.io': { namespace, serviceaccount, ...bound },
      }),
    )
    cloud.users.set(token, accountCaller({ namespace, account: serviceaccount, ...bound, id: jti }))
    const { verdict, sentence } = await hub.prove(edge, slices, token)
    assert.equal(verdict, 'allowed', sentence)
  }
  const count = (word: string) => cloud.asked.filter((line) => line.startsWith(word)).length
  assert.equal(count('access'), 2)
  // Of sixteen that are new the first is put to the API server.
  assert.ok(count('subject') <= 2, cloud.asked.join())
})

test('[L8, L24] a hostile edge proves nothing with endless proofs, garbage, or a token that is none, and delays nobody', async () => {
  await using hub = await opened()
  const { cloud, world, server } = hub
  const [hostile, other] = [await hub.linked('n1', slices), await hub.linked('n2', slices)]
  for (const garbage of [
    '',
    'pods',
    'v1/pods@',
    'v1/configmaps?b=a,a=b&',
    '\u0000/../v1/secrets',
    'v1/pods?&&'.repeat(300),
  ])
    assert.match((await hub.prove(hostile, garbage)).sentence, /no interest is called so/, garbage)
  const bare = hostile.streams?.open({ purpose: proofPurpose })
  bare?.end(Buffer.from([]))
  await world.settle()
  assert.equal(bare?.destroyed, true)

  cloud.asked.length = 0
  const { waitingMax, burst } = proofLimits
  const invent = (round: number) =>
    Promise.all(
      Array.from({ length: standardTunnelLimits.streamsMax }, (_, at) =>
        hub.prove(hostile, slices, `no-${round}-${at}`),
      ),
    )
  const answers = (await Promise.all([invent(1)])).concat([await invent(2), await invent(3), await invent(4)]).flat()
  assert.ok(answers.every(({ verdict }) => verdict !== 'allowed'))
  assert.ok(answers.some(({ sentence }) => /too many proofs of this edge wait/.test(sentence)))
  assert.ok(cloud.asked.length <= burst, String(cloud.asked.length))
  assert.ok(cloud.atOnceMost <= waitingMax)
  await hub.prove(hostile, slices)
  for (let at = 0; at < burst; at++) await hub.prove(hostile, slices)
  assert.match((await hub.prove(hostile, slices)).sentence, /too often/)

  server.put('endpointslices', 'a/web')
  assert.equal((await hub.prove(other, slices)).verdict, 'allowed')
  assert.deepEqual((await hub.again(other)).names, ['a/web'])

  const huge = new ByteWriter(2 * credentialBytesMax)
  huge.number(0)
  huge.bytes(Buffer.alloc(credentialBytesMax + 1, 'a'))
  hostile.send({ kind: 'tunnel', type: 0x81, payload: huge.whole() })
  await world.settle()
  assert.equal(hostile.line?.isOver, true)
  assert.equal(other.line?.isOver, false)
})

test('[L8, L24] what is judged for all edges together is bounded, and a proof that never ends does not count', async () => {
  const clock = fakeClock()
  const { promise: asking, resolve } = Promise.withResolvers<'unknown'>()
  const proofs = new CallerProofs({
    ...{ clock, limits: { waitingTotalMax: 2 }, recheckCaller: () => asking },
    access: { recheck: () => Promise.resolve('denied'), refusal: () => unauthorized() },
  })
  const linked = (name: string) => {
    const refuse = ({ stream }: IncomingStream) => stream.giveUp('unknown', 'not taken here')
    return new TunnelPair({ hubAccepts: proofs.acceptFor({ name }, refuse) }).edge
  }
  const hostile = linked('hostile')
  for (let at = 0; at < 8; at++) hostile.open({ purpose: proofPurpose, token: 'x' })?.write(Buffer.from([5]))
  const shown = ['a', 'b', 'c'].map((name) => {
    const answered = showProof({ streams: linked(name), interest: slices, shown: { token: name }, clock })
    return answered.then(({ sentence }) => sentence)
  })
  assert.match(await Promise.race(shown), /too many proofs wait/)
  resolve('unknown')
  const sentences = await Promise.all(shown)
  assert.equal(sentences.filter((sentence) => sentence.includes('cannot tell now')).length, 2)
})

test('[I4] nothing of a token is logged or written', async () => {
  await using hub = await opened()
  const edge = await hub.linked('n1', slices)
  await hub.prove(edge, slices)
  await hub.prove(edge, slices, 'very-secret')
  await hub.world.pass(61_000)
  const all = [...hub.lines, ...hub.world.lines, ...hub.records.seen, ...hub.callers.figures()].join('\n')
  assert.ok(!/token-1|very-secret/.test(all))
  assert.match(hub.callers.proofs.figures().join('\n'), /ake_hub_proofs_total\{verdict="refused"\} 1/)
})
