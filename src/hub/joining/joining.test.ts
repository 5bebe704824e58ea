import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { test } from 'node:test'
import { fakeClock } from '../../base/fakeclock.test-support.ts'
import { createLog, silentLog } from '../../base/log.ts'
import { Warnings } from '../../base/warnings.ts'
import { signingRequest } from '../../pki/signingrequest.ts'
import { forGood } from '../policy/revocation.ts'
import type { PlainRequest } from '../sockets/plain.ts'
import { JoinedCluster } from './cluster.test-support.ts'
import { Joining } from './joining.ts'
import type { JoiningLimits } from './limits.ts'

const [good] = new JoinedCluster().tokens as unknown as [string]
const newKey = () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
const node = 'edge-1'
const own = { commonName: `system:node:${node}`, organization: 'system:nodes' }

function open(limits: Partial<JoiningLimits> = {}) {
  const cluster = new JoinedCluster()
  const clock = fakeClock()
  const linked = new Set<string>()
  const revoked = new Map<string, { sinceMs: number; by: string }>()
  const policies = { isKnown: true, why: '', revokedSince: (name: string) => revoked.get(name) }
  const lines: string[] = []
  const log = createLog({ level: 'warn', write: (line) => void lines.push(line) })
  const joining = new Joining({
    ...{ upstream: cluster.upstream, clock, log: silentLog, limits, isLinked: (name) => linked.has(name) },
    ...{ authorities: () => ['HUB'], clusterAuthorities: () => ['CLUSTER'], policies },
    warnings: new Warnings({ clock, log, kinds: [] }),
  })
  const ask = async (method: string, path: string, more: Partial<PlainRequest> & { content?: object } = {}) => {
    const { content, ...rest } = more
    const body = content === undefined ? Buffer.alloc(0) : Buffer.from(JSON.stringify(content))
    const nobody = { node: undefined, endedNode: undefined }
    const asked = { authorization: `Bearer ${good}`, from: '192.0.2.1', ...nobody, body, ...rest }
    const answer = await joining.answer({ method, path: `/join/v1/${path}`, ...asked })
    return { ...answer, sentence: String((answer.content as { sentence?: unknown }).sentence) }
  }
  const request = (more: object = {}, rest: Partial<PlainRequest> = {}) =>
    ask('POST', 'requests', {
      content: { node, request: signingRequest({ subject: own }, newKey()), ...more },
      ...rest,
    })
  return { cluster, clock, joining, linked, revoked, policies, ask, request, lines }
}

test('[A8] tokens that do not count are in the log, once a minute of each address and without what was shown', async () => {
  const { ask, lines, clock } = open()
  for (let at = 0; at < 200; at++) {
    await ask('GET', 'authorities', { authorization: 'Bearer aaaaaa.aaaaaaaaaaaaaaaa', from: `192.0.2.${at % 2}` })
    clock.advance(1_000)
  }
  assert.ok(lines.length >= 2 && lines.length <= 10, lines.join(''))
  assert.match(lines[0] ?? '', /warn join\.refused from=192\.0\.2\.0 why="the token does not count"/)
  assert.doesNotMatch(lines.join(''), /aaaaaa/)
})

test('authorities, a request and what became of it, all in the name of the token', async () => {
  const { cluster, ask, request } = open()
  assert.deepEqual((await ask('GET', 'authorities')).content, { cluster: ['CLUSTER'], hub: ['HUB'] })
  const made = await request()
  assert.equal(made.status, 201)
  const { name } = made.content as { name: string }
  assert.match(name, /^ake-join-[0-9a-f]{40}$/)
  const { status, content } = await ask('GET', `requests/${name}`)
  assert.equal(status, 200)
  assert.equal((content as { state: string }).state, 'issued')
  assert.deepEqual(
    cluster.asked.map((line) => line.replace(name, 'NAME')),
    [
      'abcdef POST /apis/authentication.k8s.io/v1/selfsubjectreviews',
      'edge GET /api/v1/nodes/edge-1',
      'abcdef POST /apis/certificates.k8s.io/v1/certificatesigningrequests',
      'abcdef GET /apis/certificates.k8s.io/v1/certificatesigningrequests/NAME',
    ],
  )
})

test('what goes up is for the one signer, with its usages and nothing of what the joiner wrote but the request itself', async () => {
  const { cluster, request } = open()
  await request({
    spec: { signerName: 'kubernetes.io/kube-apiserver-client' },
    metadata: { name: 'mine' },
    usages: ['any'],
  })
  const [made] = cluster.requests.values()
  const { metadata, spec } = made ?? { metadata: {}, spec: {} }
  assert.match(JSON.stringify(metadata), /^\{"name":"ake-join-[0-9a-f]{40}"\}$/)
  assert.deepEqual(Object.keys(spec).toSorted(), ['request', 'signerName', 'usages'])
  assert.deepEqual(
    { ...spec, request: '' },
    {
      ...{ signerName: 'kubernetes.io/kube-apiserver-client-kubelet', usages: ['digital signature', 'client auth'] },
      request: '',
    },
  )
})

test('a request for another node, group, name or for more is refused before it goes up', async () => {
  const { cluster, request } = open({ refusedBurst: 1_000 })
  const of = (subject: { commonName: string; organization?: string }, hosts?: readonly string[]) => ({
    request: signingRequest({ subject, ...(hosts && { hosts }) }, newKey()),
  })
  const cases: object[] = [
    of({ commonName: 'system:node:edge-2', organization: 'system:nodes' }),
    of({ commonName: `system:node:${node}`, organization: 'system:masters' }),
    of({ commonName: `system:node:${node}` }),
    of({ commonName: 'admin', organization: 'system:nodes' }),
    of(own, ['edge-1']),
    { node: 'Edge_1' },
    { node: '../secrets' },
    { node: ['edge-1'] },
    { request: 'none' },
    { request: 7 },
    { replace: 'yes' },
  ]
  for (const given of cases) assert.equal((await request(given)).status, 400, JSON.stringify(given).slice(0, 80))
  assert.deepEqual(cluster.asked, [])
  for (const body of ['', '[', '[]', 'null', '7']) {
    const { status } = await request({}, { body: Buffer.from(body) })
    assert.equal(status, 400, body)
  }
})

test('an unknown token learns nothing: whatever is asked, the same answer, and only what is written as one goes up', async () => {
  const { cluster, ask, request, linked } = open({ refusedBurst: 1_000, addressBurst: 1_000 })
  linked.add(node)
  const answers = new Set<string>()
  for (const authorization of [
    undefined,
    '',
    'Bearer x',
    'Basic abcdef.0123456789abcdef',
    'Bearer abcdef.0123456789abcdeg',
  ]) {
    for (const one of [
      await ask('GET', 'authorities', { authorization }),
      await request({}, { authorization }),
      await ask('GET', `requests/ake-join-${'0'.repeat(40)}`, { authorization }),
    ])
      answers.add(JSON.stringify(one))
  }
  assert.equal(answers.size, 1)
  assert.match([...answers][0] ?? '', /"status":401.*it has expired, was deleted or is not written in full/)
  assert.equal(cluster.asked.length, 3)
})

test('a name that is linked or has a Node, ready or not, is taken, unless its certificate is shown or its machine is said to be gone', async () => {
  const { cluster, request, linked } = open()
  linked.add(node)
  const taken = await request()
  assert.equal(taken.status, 409)
  assert.match(taken.sentence, /"edge-1" is linked to a hub now: choose another name with --name, or add --replace/)
  assert.equal((await request({}, { node: 'edge-2' })).status, 409)
  assert.equal((await request({}, { node })).status, 201)
  assert.equal((await request({ replace: true })).status, 201)
  linked.delete(node)
  cluster.nodes.set(node, 'True')
  assert.match((await request()).sentence, /"edge-1" is in the cluster, and ready: choose another name/)
  cluster.nodes.set(node, 'Unknown')
  assert.match((await request()).sentence, /"edge-1" is in the cluster, though not ready now: choose another name/)
  assert.equal((await request({}, { endedNode: 'edge-2' })).status, 409)
  assert.equal((await request({}, { endedNode: node })).status, 201, 'it shows a certificate of its own that has ended')
  assert.equal((await request({}, { node })).status, 201)
  assert.equal((await request({ replace: true })).status, 201)
})

test('a name that was revoked for good gets no certificate, whatever is shown or said; any other does', async () => {
  const { cluster, revoked, request, lines } = open()
  revoked.set(node, { sinceMs: Date.parse(forGood), by: 'policy/revoked-edges spec.revoked[0]' })
  for (const answer of [await request(), await request({ replace: true }), await request({}, { node })]) {
    assert.equal(answer.status, 409)
    assert.match(
      answer.sentence,
      /^the name "edge-1" was revoked for good \(policy\/revoked-edges spec\.revoked\[0\]\): .*--name, .*"ake hub revoke edge-1 --undo"\)$/,
    )
  }
  assert.equal(cluster.requests.size, 0)
  assert.match(lines.join(''), /join\.refused from=192\.0\.2\.1 node=edge-1 why="the name/)
  revoked.delete(node)
  assert.equal((await request()).status, 201)
})

test('where the certificate would be dated back to before a revocation, it is refused until it would not', async () => {
  const { cluster, clock, revoked, request } = open()
  clock.advance(3_600_000)
  const sinceMs = clock.now()
  revoked.set(node, { sinceMs, by: 'policy/x' })
  const from = new Date(sinceMs + 300_000).toISOString()
  for (const waitMs of [0, 299_999]) {
    clock.advance(waitMs)
    const { status, sentence } = await request({ replace: true })
    assert.equal(status, 409)
    assert.ok(sentence.endsWith(`run the same command again after ${from}`), sentence)
  }
  assert.equal(cluster.requests.size, 0)
  clock.advance(1)
  assert.equal((await request({ replace: true })).status, 201)
})

test('what was signed before the revocation, and is fetched after it, is not handed out as one that counts', async () => {
  const { cluster, clock, revoked, ask, request } = open()
  clock.advance(3_600_000)
  cluster.fromMs = () => clock.now() - 300_000
  const { name } = (await request()).content as { name: string }
  revoked.set(node, { sinceMs: clock.now() - 1_000, by: 'policy/x' })
  const state = async () => (await ask('GET', `requests/${name}`)).content as { state: string; why: string }
  assert.equal((await state()).state, 'revoked')
  assert.match((await state()).why, /before .* is revoked \(policy\/x\), .*run the same command again after/)
  clock.advance(300_000)
  assert.match((await state()).why, /so is this certificate: run the same command again, which requests another one$/)
  revoked.set(node, { sinceMs: clock.now() - 7_200_000, by: 'policy/x' })
  assert.equal((await state()).state, 'issued')
})

test('before it is known who was revoked nobody joins, and is told to try again', async () => {
  const { cluster, policies, request } = open()
  Object.assign(policies, { isKnown: false, why: 'no answer' })
  const { status, sentence, retryAfterMs = 0 } = await request()
  assert.deepEqual([status, retryAfterMs > 0], [503, true])
  assert.match(sentence, /cannot tell yet which certificates were revoked: no answer/)
  assert.equal(cluster.requests.size, 0)
})

test('a second try with the same key finds the first request', async () => {
  const { cluster, request } = open()
  const pem = signingRequest({ subject: own }, newKey())
  const [first, second] = [await request({ request: pem }), await request({ request: pem })]
  assert.deepEqual([first.status, second.status], [201, 201])
  assert.deepEqual(first.content, second.content)
  assert.equal(cluster.requests.size, 1)
})

test('what became of a request: pending, denied, and one that is not there; other requests cannot be looked at', async () => {
  const { cluster, ask, request } = open()
  cluster.judge = () => undefined
  const { name } = (await request()).content as { name: string }
  assert.deepEqual((await ask('GET', `requests/${name}`)).content, { state: 'pending', approved: false })
  const found = cluster.requests.get(name)
  if (found !== undefined) found.status = { conditions: [{ type: 'Denied', message: 'not today' }] }
  assert.deepEqual((await ask('GET', `requests/${name}`)).content, { state: 'denied', why: 'not today' })
  assert.equal((await ask('GET', `requests/ake-join-${'0'.repeat(40)}`)).status, 404)
  const before = cluster.asked.length
  for (const path of ['requests/csr-of-somebody', `requests/${name}/approval`, 'requests/..', 'secrets', ''])
    assert.equal((await ask('GET', path)).status, 404, path)
  assert.equal(cluster.asked.length, before)
})

test('an API server that is away is said to be, without a word of the token', async () => {
  const { cluster, ask } = open()
  cluster.isAway = true
  const { status, sentence } = await ask('GET', 'authorities')
  assert.equal(status, 503)
  assert.equal(sentence, 'the hub cannot reach the API server now: try again')
})

test('who invents tokens is slowed down, each address by itself, and keeps out nobody whose token counts', async () => {
  const { clock, ask } = open({ strangersBurst: 20, strangersPerSecond: 1 })
  assert.equal((await ask('GET', 'authorities', { from: '192.0.2.9' })).status, 200)
  const guess = (from: string) => ask('GET', 'authorities', { from, authorization: 'Bearer aaaaaa.aaaaaaaaaaaaaaaa' })
  const said: number[] = []
  for (let tries = 0; tries < 14; tries++) said.push((await guess('192.0.2.1')).status)
  assert.deepEqual(said, [...Array<number>(11).fill(401), 429, 429, 429])
  const { retryAfterMs = 0 } = await guess('192.0.2.1')
  assert.ok(retryAfterMs > 0 && retryAfterMs <= 5_000, String(retryAfterMs))
  assert.equal((await guess('192.0.2.2')).status, 401, 'another address')
  for (let tries = 0; tries < 40; tries++) await guess(`198.51.100.${tries}`)
  assert.equal((await guess('203.0.113.1')).status, 429, 'all strangers together')
  assert.equal((await ask('GET', 'authorities', { from: '192.0.2.9' })).status, 200, 'one who is known')
  clock.advance(10_000)
  assert.equal((await guess('192.0.2.1')).status, 401, 'a while later')
})

test('what no joiner asks for takes nothing of what strangers share, and slows down who asks for it', async () => {
  const { ask } = open({ strangersBurst: 5, strangersPerSecond: 0.1 })
  const said: number[] = []
  for (let tries = 0; tries < 20; tries++)
    said.push(
      (await ask('GET', 'nothing', { from: '192.0.2.1', authorization: `Bearer ${'a'.repeat(6)}.${'b'.repeat(16)}` }))
        .status,
    )
  assert.deepEqual([...new Set(said)], [404, 429])
  assert.equal((await ask('GET', 'authorities', { from: '192.0.2.9' })).status, 200, 'the first request of another one')
})

test('an address that asks all the time is told to wait; so many may be under way', async () => {
  const { ask, cluster } = open({ addressBurst: 5, underWayMax: 2 })
  const held = Promise.withResolvers<void>()
  const answer = cluster.upstream.ask
  cluster.upstream.ask = async (asked) => {
    await held.promise
    return await answer(asked)
  }
  const three = [1, 2, 3].map((at) => ask('GET', 'authorities', { from: `192.0.2.${at}` }))
  assert.equal((await three[2])?.status, 429)
  held.resolve()
  assert.deepEqual(
    (await Promise.all(three.slice(0, 2))).map(({ status }) => status),
    [200, 200],
  )
  for (let tries = 0; tries < 5; tries++) assert.equal((await ask('GET', 'authorities', { from: 'a' })).status, 200)
  assert.equal((await ask('GET', 'authorities', { from: 'a' })).status, 429)
})

test("a node's certificate is told the authorities without a token, and nothing else", async () => {
  const { ask, request, cluster } = open()
  const shown = { authorization: undefined, node }
  assert.equal((await ask('GET', 'authorities', shown)).status, 200)
  assert.equal((await request({}, shown)).status, 401)
  assert.deepEqual(cluster.asked, [])
})
