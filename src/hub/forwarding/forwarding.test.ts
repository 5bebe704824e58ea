/** What goes up for whom, and what does not, over a link between a real session of an edge and the hub. */
import assert from 'node:assert/strict'
import { type Duplex, duplexPair, PassThrough } from 'node:stream'
import { test } from 'node:test'
import { forbiddenStatus } from '../../access/refusal.ts'
import { fakeClock } from '../../base/fakeclock.test-support.ts'
import { createLog } from '../../base/log.ts'
import { Warnings } from '../../base/warnings.ts'
import type { Caller } from '../../kube/caller.ts'
import { encodeRequestHead, requestPurpose, type TunnelledActor } from '../../tunnel/request/request.ts'
import { requestHeaders, upgradeHeaders } from '../../upstream/headers.ts'
import { LinkedRequests } from '../../upstream/linked/linked.ts'
import {
  type Identity,
  Unreachable,
  Unspoken,
  type UpstreamRequest,
  type UpstreamResponse,
} from '../../upstream/upstream.ts'
import { SetPolicies } from '../access/policies.test-support.ts'
import { nowMs, shownBy, TestAuthority } from '../callers/certificates.test-support.ts'
import { CallerCertificates } from '../callers/certificates.ts'
import type { AskedAccess } from '../callers/impersonating.ts'
import { ReviewedSubjects } from '../callers/reviewedsubjects.ts'
import { SpokenCallers } from '../callers/spoken.ts'
import { HubWorld, type TestEdge } from '../peers/hub.test-support.ts'
import { EdgeForwarding } from './forwarding.ts'
import type { ForwardingLimits } from './limits.ts'
import { passable } from './passable.ts'
import { comparedBytesMax } from './same.ts'

type Wishes = {
  readonly trustsEdges?: boolean
  readonly limits?: Partial<ForwardingLimits>
  readonly policies?: SetPolicies
  readonly spoken?: ConstructorParameters<typeof EdgeForwarding>[0]['spoken']
  readonly reviewed?: Pick<ReviewedSubjects, 'overhear'>
  readonly isAggregated?: (group: string) => boolean
  readonly known?: ConstructorParameters<typeof EdgeForwarding>[0]['known']
}

/** An API server that answers with what it was asked. */
class EchoingCloud {
  readonly asked: UpstreamRequest[] = []
  /** What an upgrade leads to, where it is not an echo. */
  far: Duplex | undefined
  status = 200
  readonly reachability = { refusesEdge: false }
  /** Holds answers back. */
  isStuck = false
  answer: (asked: UpstreamRequest) => Promise<UpstreamResponse> = async (asked) => {
    const body: Buffer[] = []
    if (asked.body !== undefined) for await (const piece of asked.body as AsyncIterable<Buffer>) body.push(piece)
    const isStuck = () => this.isStuck
    const stream = (async function* () {
      yield Buffer.concat(body)
      while (isStuck()) await new Promise(setImmediate)
    })()
    return { status: this.status, headers: { 'x-echo': asked.path }, body: stream, heardAt: () => 0 }
  }

  ask(asked: UpstreamRequest): Promise<UpstreamResponse> {
    this.asked.push(asked)
    return this.answer(asked)
  }

  connect(asked: UpstreamRequest) {
    this.asked.push(asked)
    const socket = this.far ?? new PassThrough()
    const rawHeaders = ['Connection', 'Upgrade', 'Upgrade', 'SPDY/3.1']
    const status = this.status === 200 ? 101 : this.status
    return Promise.resolve({ status, rawHeaders, socket, head: Buffer.from('first ') })
  }

  /** As the upstream would send it. */
  get lastSent() {
    const last = this.asked.at(-1)
    return requestHeaders({ headers: last?.headers, token: undefined, bytes: 0 })
  }
}

async function opened(wishes: Wishes = {}) {
  const cloud = new EchoingCloud()
  const lines: string[] = []
  const log = createLog({ level: 'debug', write: (line) => void lines.push(line) })
  const warnings = new Warnings({ clock: fakeClock(), log, kinds: [] })
  let forwarding: EdgeForwarding | undefined
  const world = await HubWorld.open({
    accept: (edge) => (incoming) => {
      forwarding ??= new EdgeForwarding({ upstream: cloud, trustsEdges: false, clock, log, warnings, ...wishes })
      accepting.getOrInsertComputed(edge, () => (forwarding as EdgeForwarding).acceptFor(edge))(incoming)
    },
  })
  const accepting = new Map<object, ReturnType<EdgeForwarding['acceptFor']>>()
  const { clock } = world.mirror.server
  const edge = await linked(world, 'n1')
  return { world, cloud, edge, requests: requestsOf(edge, world), lines }
}

async function linked(world: HubWorld, name: string): Promise<TestEdge> {
  const edge = world.edge(name, 'v1/pods')
  edge.connect()
  await world.until(() => edge.copy().version > 0)
  return edge
}

function requestsOf(edge: TestEdge, world: HubWorld): LinkedRequests {
  const { clock } = world.mirror.server
  const node = `system:node:${edge.name}`
  return new LinkedRequests({ streams: () => edge.streams, heardAt: () => 0, node, userAgent: 'ake/test', clock })
}

async function textOf({ body }: UpstreamResponse): Promise<string> {
  const pieces: Buffer[] = []
  for await (const piece of body) pieces.push(piece)
  return Buffer.concat(pieces).toString()
}

const asNode: Identity = { kind: 'certificate', name: 'system:node:n1' }
const get = { method: 'GET', path: '/api/v1/pods?limit=1' } as const

test('[I1, L29] the subject of a review is one that its node may hear of once the API server has reviewed it, and by no review that it refused', async () => {
  const subjects = new ReviewedSubjects()
  const links: object[] = []
  const reviewed: Wishes['reviewed'] = {
    overhear: (link, asked) => {
      links.push(link)
      return subjects.overhear(link, asked)
    },
  }
  const { cloud, requests, world } = await opened({ reviewed })
  await using _ = world
  const admin = { name: 'admin', groups: ['system:masters'] }
  const path = '/apis/authorization.k8s.io/v1/subjectaccessreviews'
  const body = Buffer.from(JSON.stringify({ spec: { user: admin.name, groups: admin.groups } }))
  const ask = async (status: number, identity: Identity) => {
    cloud.status = status
    const headers = { 'content-type': 'application/json' }
    const answer = await requests.ask({ method: 'POST', path, headers, body, identity })
    assert.deepEqual([answer.status, await textOf(answer)], [status, body.toString()])
    return links.some((link) => subjects.has(link, admin))
  }
  assert.equal(await ask(403, asNode), false)
  assert.equal(await ask(503, asNode), false)
  // What another caller asks about says nothing of what the node may hear.
  assert.equal(await ask(201, { kind: 'token', token: 'of-a-pod' }), false)
  assert.equal(await ask(201, asNode), true)
})

test('[I1] a 401 about the hub itself is no word on its callers, who hear what is wrong; any other goes on as it came', async () => {
  const isAggregated = (group: string) => group === 'metrics.k8s.io'
  const { cloud, requests, world, lines } = await opened({ trustsEdges: true, isAggregated })
  await using _ = world
  cloud.status = 401
  const ask = async (identity: Identity, path: string = get.path) => {
    const answer = await requests.ask({ ...get, path, identity, passedOn: true })
    return { status: answer.status, headers: answer.headers, text: await textOf(answer) }
  }
  const ofItself = [
    '/api/v1/pods',
    '/apis/apps/v1/namespaces/a/deployments/b/scale',
    '/version',
    '/apis',
    '/openapi/v3',
  ]
  for (const path of ofItself) {
    for (const identity of [asNode, { kind: 'edge' } as const]) {
      const { status, headers, text } = await ask(identity, path)
      assert.equal(status, 503)
      assert.match(text, /the API server refuses the hub's own credential \(401\)/)
      assert.ok(headers['audit-id'], 'an API server has answered: the edge need not look for one')
    }
  }
  assert.match(lines.join(''), /edge\.refused.*refuses the hub's own credential/)
  assert.equal((await ask({ kind: 'token', token: 'of-a-pod' })).status, 401)
  assert.equal((await ask(asNode, '/readyz?verbose')).status, 401, 'what an edge asks to hear whether it answers')
  // What is behind the API server may say it too: it counts as the hub's where the API server refuses that by all it knows.
  const ofOthers = ['/api/v1/namespaces/a/services/b/proxy/c', '/apis/metrics.k8s.io/v1beta1/nodes']
  for (const expected of [401, 503]) {
    for (const path of ofOthers) assert.equal((await ask(asNode, path)).status, expected)
    const exec = {
      method: 'GET',
      path: '/api/v1/namespaces/a/pods/b/exec',
      headers: { connection: 'Upgrade', upgrade: 'SPDY/3.1' },
      identity: asNode,
    }
    const { status, socket } = await requests.connect(exec)
    socket.destroy()
    assert.equal(status, expected)
    cloud.reachability.refusesEdge = true
  }
})

test('[I1, L20] a token goes up unchanged, with what its caller wrote', async () => {
  const { world, cloud, requests } = await opened()
  await using _ = world
  const headers = { accept: 'application/json', 'impersonate-user': 'jane' }
  const body = Buffer.from('{"a":1}')
  const identity = { kind: 'token', token: 'abc.def' } as const
  const reply = await requests.ask({ method: 'POST', path: '/api/v1/pods', headers, body, identity })
  assert.equal(await textOf(reply), '{"a":1}')
  assert.equal(reply.headers['x-echo'], '/api/v1/pods')
  const [asked] = cloud.asked
  assert.deepEqual(asked?.identity, identity)
  assert.equal(asked?.headers?.['impersonate-user'], 'jane')
  assert.equal(asked?.passedOn, true)
})

test('[I1] the public keys of tokens are had with the credential of the hub, and nothing else is', async () => {
  const { world, cloud, edge, requests } = await opened()
  await using _ = world
  for (const path of ['/openid/v1/jwks', '/.well-known/openid-configuration']) {
    assert.equal((await requests.ask({ method: 'GET', path, identity: asNode })).status, 200)
    assert.deepEqual({ ...cloud.lastSent }, { 'user-agent': 'ake/test' })
  }
  const asked = [
    ...[
      '/openid/v1/jwks/',
      '/openid/v1/jwks?x',
      '/openid/v1/../v1/jwks',
      '/openid/v1/jwks/../../../api/v1/secrets',
    ].map((path) => ({ method: 'GET', path })),
    { method: 'POST', path: '/openid/v1/jwks' },
  ]
  for (const one of asked) {
    await requests.ask({ ...one, identity: asNode })
    assert.equal(cloud.lastSent['impersonate-user'], 'system:node:n1', one.path)
  }
  const before = cloud.asked.length
  assert.equal(await raw(edge, [{ name: 'impersonate-user', value: 'admin' }]), 403)
  assert.equal(cloud.asked.length, before)
})

test('[I1] the node of the link is impersonated, by the name in its certificate and no other', async () => {
  const { world, cloud, edge, requests } = await opened()
  await using _ = world
  assert.equal((await requests.ask({ ...get, identity: asNode })).status, 200)
  assert.deepEqual(cloud.asked[0]?.identity, { kind: 'edge' })
  const expected = { 'impersonate-user': 'system:node:n1', 'impersonate-group': 'system:nodes' }
  assert.deepEqual({ ...cloud.lastSent }, { ...expected, 'user-agent': 'ake/test' })

  // What a hostile edge may write: nothing of it goes up, or it changes nothing about whose request it is.
  const hostile: readonly (readonly [string, string])[] = [
    ...([
      ['impersonate-user', 'admin'],
      ['Impersonate-User', 'admin'],
      ['IMPERSONATE-GROUP', 'system:masters'],
    ] as const),
    ...([
      ['impersonate-extra-x', 'y'],
      ['impersonate-uid', '1'],
      ['impersonate-user ', 'admin'],
    ] as const),
    ...([
      ['x-a', 'b\r\nimpersonate-user: admin'],
      ['', 'x'],
      [':path', '/x'],
      ['__proto__', 'x'],
    ] as const),
  ]
  for (const [name, value] of hostile) {
    const before = cloud.asked.length
    const status = await raw(edge, [{ name, value }])
    assert.ok(status === 403 || status === 400, `${name}: ${status}`)
    assert.equal(cloud.asked.length, before, name)
  }
  for (const [name, value] of [
    ['connection', 'impersonate-user, impersonate-group'],
    ['Connection', 'impersonate-user'],
    ['Authorization', 'Bearer x'],
  ] as const) {
    assert.equal(await raw(edge, [{ name, value }]), 200, name)
    assert.equal(cloud.asked.at(-1)?.headers?.connection, undefined)
    assert.deepEqual({ ...cloud.lastSent }, expected)
    const upgraded = upgradeHeaders({ headers: cloud.asked.at(-1)?.headers, token: undefined, bytes: 0 })
    assert.deepEqual({ ...upgraded }, expected)
  }
  for (const [method, path] of [
    ['CONNECT', '/'],
    ['get', '/'],
    ['GET', 'http://other/'],
    ['GET', '/ HTTP/1.1\r\nx: y'],
    ['GET', ''],
  ] as const)
    assert.equal(await raw(edge, [], { method, path }), 400, `${method} ${path}`)
})

/** In the node's name, past what an edge of ours would write; answers the status. */
async function raw(
  edge: TestEdge,
  headers: { name: string; value: string }[],
  more: { method?: string; path?: string; actor?: TunnelledActor } = {},
  credential: { token?: string; certificate?: string } = {},
) {
  const stream = edge.streams?.open({ purpose: requestPurpose, ...credential })
  assert.ok(stream !== undefined)
  const asked = { method: 'GET', path: '/api', actor: 'node', hasBody: 0, headers, version: 0, uid: '' } as const
  stream.end(encodeRequestHead({ ...asked, ...more }))
  const pieces: Buffer[] = []
  for await (const piece of stream) pieces.push(piece as Buffer)
  const answer = Buffer.concat(pieces)
  // Behind the length of the head, which is less than 128 bytes or takes two.
  const at = (answer[0] as number) < 0x80 ? 1 : 2
  return (answer[at] as number) - 0x80 + (answer[at + 1] as number) * 0x80
}

/** A policy that lets n1, and others, speak for jane of dev, at an API server that constrains impersonation. */
function speaking(
  cluster: TestAuthority,
  {
    edges = [],
    access = {
      recheck: async () => 'denied',
      refusal: (_, question) => forbiddenStatus(jane, question),
    },
  }: { readonly edges?: readonly string[]; readonly access?: AskedAccess } = {},
) {
  return new SpokenCallers({
    certificates: new CallerCertificates({ authorities: () => [cluster.certificate], clock: { now: () => nowMs } }),
    speaksFor: (edge, { name }) => ({ yes: [...edges, 'n1'].includes(edge) && name === 'jane', by: 'a policy' }),
    isConstrained: () => true,
    allowsLegacy: false,
    access,
    warnings: { warn: () => undefined },
  })
}

const jane: Caller = { name: 'jane', uid: '', groups: ['dev', 'system:authenticated'] }

test('[I1, L26, L27] a caller goes up by the certificate that was shown, whatever else its edge writes', async () => {
  const cluster = new TestAuthority('kubernetes')
  const { world, cloud, edge, requests } = await opened({ spoken: speaking(cluster) })
  await using _ = world
  const { text: chain } = shownBy(cluster.issue('jane', 'dev'))
  const identity: Identity = { kind: 'named', caller: { ...jane, name: 'admin' }, chain }
  assert.equal((await requests.ask({ ...get, identity, passedOn: true })).status, 200)
  assert.deepEqual(cloud.asked[0]?.identity, { kind: 'edge' })
  const sent = cloud.lastSent
  const { 'impersonate-extra-authentication.kubernetes.io%2fcredential-id': credentialId, ...named } = sent
  assert.match(String(credentialId), /^X509SHA256=/)
  assert.deepEqual(named, { 'impersonate-user': 'jane', 'impersonate-group': 'dev' })

  const as = (headers: { name: string; value: string }[], actor: TunnelledActor = 'certificate', shown = {}) =>
    raw(edge, headers, { actor }, { certificate: chain, ...shown })
  // Whatever it writes about whose request it is, it is asked about first, in any spelling.
  for (const name of ['Impersonate-User', 'IMPERSONATE-USER', 'impersonate-user']) {
    const before = cloud.asked.length
    assert.equal(await as([{ name, value: 'admin' }]), 403)
    assert.equal(cloud.asked.length, before)
  }
  assert.equal(await as([{ name: 'Connection', value: 'impersonate-user, impersonate-group' }]), 200)
  assert.deepEqual(cloud.lastSent['impersonate-user'], 'jane')
  assert.deepEqual(cloud.lastSent['impersonate-group'], 'dev')
  for (const [name, value] of [
    ['impersonate-user ', 'admin'],
    ['x-a', 'b\r\nimpersonate-user: admin'],
  ] as const)
    assert.equal(await as([{ name, value }]), 400, name)
  // A certificate is no token, a token no certificate, and neither is there where none was shown.
  const before = cloud.asked.length
  await assert.rejects(as([], 'token'))
  await assert.rejects(raw(edge, [], { actor: 'certificate' }))
  await assert.rejects(raw(edge, [], { actor: 'certificate' }, { token: 'abc' }))
  assert.equal(cloud.asked.length, before)
  await as([], 'node')
  assert.equal(cloud.lastSent['impersonate-user'], 'system:node:n1')
})

test('[L27] where the API server does not let the hub be a caller, that hears what the hub lacks, and any other refusal goes on as it came', async () => {
  const cluster = new TestAuthority('kubernetes')
  const granting: AskedAccess = { recheck: async () => 'allowed', refusal: () => assert.fail() }
  const { world, cloud, requests } = await opened({ spoken: speaking(cluster, { access: granting }) })
  await using _ = world
  const { text: chain } = shownBy(cluster.issue('jane', 'dev'))
  let said = ''
  cloud.answer = async () => {
    const body = (async function* () {
      for (let at = 0; at < said.length; at += 100) yield Buffer.from(said.slice(at, at + 100))
    })()
    return { status: 403, headers: { 'content-type': 'application/json' }, body, heardAt: () => 0 }
  }
  const ask = (headers = {}) =>
    requests.ask({ ...get, headers, identity: { kind: 'named', caller: jane, chain }, passedOn: true })
  const status = (message: string) => JSON.stringify({ kind: 'Status', status: 'Failure', message, code: 403 })
  const denied = (verb: string, resource: string) =>
    `x is forbidden: User "system:serviceaccount:ake-system:ake-hub" cannot ${verb} resource "${resource}" in API group ""`
  const lacks = 'the role of the hub (ake-hub-as-callers of deploy/hub.yaml) lacks'
  said = status(denied('impersonate:user-info', 'userextras/example.com/team'))
  const as = { 'impersonate-user': 'bob', 'impersonate-extra-example.com%2fteam': 'blue' }
  const told = await ask(as)
  assert.equal(told.status, 403)
  // As an API server heads its refusals.
  const { 'audit-id': id, 'cache-control': caching, 'x-content-type-options': options } = told.headers
  assert.deepEqual([String(id).length, caching, options], [36, 'no-cache, private', 'nosniff'])
  const { message } = JSON.parse(await textOf(told)) as { message: string }
  const what = `${lacks} impersonate:user-info on userextras/example.com/team`
  assert.equal(
    message,
    `the API server does not let its hub be that caller: ${what}: ask with a token, or ask the API server itself`,
  )
  // In its own name: its edge then serves what it holds. Also within protobuf, where nothing is escaped.
  const isUnspoken = (error: unknown) => error instanceof Unspoken && error.message.includes(lacks)
  await assert.rejects(ask(), isUnspoken)
  said = `k8s\0${denied('impersonate-on:user-info:list', 'pods')}`
  await assert.rejects(ask(), isUnspoken)
  for (const own of [status('x is forbidden: User "jane" cannot list resource "pods"'), 'none', 'y'.repeat(40_000)]) {
    said = own
    assert.equal(await textOf(await ask()), own)
  }
})

test('[I1, L27] for whom a hub does not speak its edge is told so, and nobody is asked', async () => {
  const cluster = new TestAuthority('kubernetes')
  const { world, cloud, requests } = await opened({ spoken: speaking(cluster) })
  await using _ = world
  const ask = (shown: ReturnType<typeof shownBy>) =>
    requests.ask({ ...get, identity: { kind: 'named', caller: jane, chain: shown.text }, passedOn: true })
  for (const [name, group, why] of [
    ['bob', 'dev', /does not let node "n1" speak for it \(a policy\)/],
    ['jane', 'system:masters', /speaks for no member of system:masters/],
  ] as const)
    await assert.rejects(
      ask(shownBy(cluster.issue(name, group))),
      (error) => error instanceof Unspoken && why.test(error.message),
    )
  const foreign = new TestAuthority('kubernetes')
  assert.equal((await ask(shownBy(foreign.issue('jane', 'dev')))).status, 401)
  assert.equal((await ask(shownBy(cluster.issue('jane', 'dev', { notAfter: nowMs - 1 })))).status, 401)
  assert.deepEqual(cloud.asked, [])
  const silent = await opened()
  await using _other = silent.world
  const { text: chain } = shownBy(cluster.issue('jane', 'dev'))
  const identity: Identity = { kind: 'named', caller: jane, chain }
  await assert.rejects(silent.requests.ask({ ...get, identity }), Unspoken)
})

test('[I1, I3] the administrator does not go up, with a sentence; who shows nothing goes up as nobody', async () => {
  const { world, cloud, requests, lines } = await opened()
  await using _ = world
  const reply = await requests.ask({ ...get, identity: { kind: 'edge' }, passedOn: true })
  assert.equal(reply.status, 403)
  assert.match(await textOf(reply), /does not trust edges/)
  assert.deepEqual(cloud.asked, [])
  await requests.ask({ ...get, identity: { kind: 'anonymous' }, passedOn: true })
  assert.deepEqual(
    cloud.asked.map(({ identity }) => identity),
    [{ kind: 'anonymous' }],
  )
  assert.equal(
    Object.keys(cloud.lastSent ?? {}).some((name) => name.startsWith('impersonate-')),
    false,
  )
  assert.equal(lines.length, 1)
  assert.match(lines[0] ?? '', /warn edge.refused edge=n1 request="GET \/api\/v1\/pods\?…" why=".*does not trust edges/)
})

test('what the hub, or the API server, refuses to a node is in the log once, without what a query may have in it', async () => {
  const { world, cloud, edge, requests, lines } = await opened()
  await using _ = world
  for (let at = 0; at < 50; at++) await raw(edge, [{ name: 'impersonate-user', value: `admin-${at}` }])
  assert.equal(lines.filter((line) => / warn edge\.refused edge=n1 .*no impersonation by node/.test(line)).length, 1)
  assert.doesNotMatch(lines.join(''), /admin-/)
  await raw(edge, [{ name: 'x-a', value: 'b\r\nx' }])
  assert.match(lines.at(-1) ?? '', / warn edge\.refused edge=n1 .*why="the header .*unsaid=49/)
  cloud.status = 403
  await requests.ask({ ...get, path: '/api/v1/secrets?watch=secretly', identity: asNode })
  assert.match(
    lines.at(-1) ?? '',
    / warn edge\.refused edge=n1 request="GET \/api\/v1\/secrets\?…" why="the API server/,
  )
  const before = lines.length
  await requests.ask({ ...get, identity: { kind: 'token', token: 't' }, passedOn: true })
  assert.equal(lines.length, before)
})

test('a hub that trusts its edges passes their administrator on as itself, and says so', async () => {
  const { world, cloud, requests, lines } = await opened({ trustsEdges: true })
  await using _ = world
  assert.equal((await requests.ask({ ...get, identity: { kind: 'edge' }, passedOn: true })).status, 200)
  assert.deepEqual(cloud.asked[0]?.identity, { kind: 'edge' })
  assert.deepEqual({ ...cloud.lastSent }, {})
  assert.ok(lines.some((line) => line.includes('warn hub.trusts')))
})

test('[I1] the administrator of a trusted edge is nobody else, however it asks for that', async () => {
  const { world, cloud, edge, requests } = await opened({ trustsEdges: true })
  await using _ = world
  const asJane = {
    ...get,
    identity: { kind: 'edge' },
    headers: { 'impersonate-user': 'jane' },
    passedOn: true,
  } as const
  const reply = await requests.ask(asJane)
  assert.equal(reply.status, 403)
  assert.match(await textOf(reply), /no impersonation by the administrator/)
  const spellings = ['Impersonate-User', 'impersonate-group', 'IMPERSONATE-EXTRA-scopes', 'impersonate-uid']
  for (const name of spellings)
    assert.equal(await raw(edge, [{ name, value: 'jane' }], { actor: 'administrator' }), 403, name)
  assert.deepEqual(cloud.asked, [])
})

test('[I1] a policy trusts single edges, as long as it is there', async () => {
  const policies = new SetPolicies({ p: { nodes: { names: ['n1'] }, trust: true } })
  const { world, cloud, requests } = await opened({ policies })
  await using _ = world
  const asAdministrator = async () =>
    (await requests.ask({ ...get, identity: { kind: 'edge' }, passedOn: true })).status
  assert.equal(await asAdministrator(), 200)
  assert.deepEqual(cloud.asked[0]?.identity, { kind: 'edge' })
  policies.set({ p: { nodes: { names: ['n2'] }, trust: true } })
  assert.equal(await asAdministrator(), 403)
  policies.set({ p: { trust: true } })
  policies.isKnown = false
  assert.equal(await asAdministrator(), 403)
})

test('[A8] rates of a policy count in the place of the options, from the next request on', async () => {
  const limits = { edgePerSecond: 100, edgeBurst: 200, callerPerSecond: 50, callerBurst: 100 }
  const policies = new SetPolicies()
  const { world, requests } = await opened({ limits, policies })
  await using _ = world
  const passed = (token: string, times: number) => passedOn(requests, { kind: 'token', token }, times)
  assert.equal(await passed('a', 30), 30)
  // Bursts stand to rates as they do without a policy.
  policies.set({ p: { rates: { callerRequestsPerSecond: 5 } } })
  assert.equal(await passed('b', 30), 10)
  policies.set({ p: { rates: { edgeRequestsPerSecond: 4 } } })
  assert.equal(await passed('c', 30), 8)
  await world.pass(1_000)
  assert.equal(await passed('c', 30), 4)
  policies.set({ p: { rates: { edgeRequestsPerSecond: 1_000, callerRequestsPerSecond: 1_000 } } })
  await world.pass(2_000)
  assert.equal(await passed('d', 300), 300)
})

test('an upgrade leads to bytes both ways', async () => {
  const { world, cloud, requests } = await opened()
  await using _ = world
  const headers = { connection: 'Upgrade', upgrade: 'SPDY/3.1' }
  const { status, socket } = await requests.connect({ ...get, headers, identity: asNode })
  assert.equal(status, 101)
  const came: string[] = []
  socket.on('data', (bytes: Buffer) => void came.push(bytes.toString()))
  socket.on('error', () => undefined)
  socket.write('second')
  for (let at = 0; at < 20 && came.join('') !== 'first second'; at++) await world.pass(100)
  assert.equal(came.join(''), 'first second')
  assert.equal(cloud.asked[0]?.headers?.upgrade, 'SPDY/3.1')
})

test('[L16] an upgraded connection that the API server closes at once ends with its last bytes; one that breaks off is broken', async () => {
  for (const isOrderly of [true, false]) {
    const { world, cloud, requests } = await opened()
    await using _ = world
    const [ours, theirs] = duplexPair()
    cloud.far = ours
    const headers = { connection: 'Upgrade', upgrade: 'websocket' }
    const { socket } = await requests.connect({ ...get, headers, identity: asNode })
    let came = ''
    let end = ''
    socket.on('data', (bytes: Buffer) => {
      came += bytes.toString()
    })
    socket.on('end', () => {
      end = 'ended'
    })
    socket.on('error', () => {
      end = 'broken'
    })
    theirs.write('x'.repeat(100_000))
    if (isOrderly) {
      theirs.end('the last')
      ours.once('end', () => ours.destroy())
    } else ours.destroy(new Error('reset'))
    for (let at = 0; at < 50 && end === ''; at++) await world.pass(100)
    assert.equal(end, isOrderly ? 'ended' : 'broken')
    if (isOrderly) assert.equal(came.length, 'first '.length + 100_008)
    socket.destroy()
  }
})

test('[L20] whether the API server may have seen a request is told as it is', async () => {
  const { world, cloud, requests } = await opened()
  await using _ = world
  for (const sent of [true, false]) {
    cloud.answer = () => Promise.reject(new Unreachable('no way', sent))
    await assert.rejects(requests.ask({ ...get, identity: asNode }), (error: Unreachable) => error.sent === sent)
  }
})

test('[A8] edges and callers have limits of their own, told as 429 with the time to wait', async () => {
  const limits = { edgePerSecond: 10, edgeBurst: 20, callerPerSecond: 2, callerBurst: 4, edgeRequestsMax: 3 }
  const { world, cloud, requests } = await opened({ limits })
  await using _ = world
  const statusOf = async (token: string) => {
    const reply = await requests.ask({ ...get, identity: { kind: 'token', token } })
    await textOf(reply)
    return `${reply.status} ${reply.headers['retry-after'] ?? ''}`.trim()
  }
  for (let at = 0; at < 4; at++) assert.equal(await statusOf('a'), '200')
  assert.equal(await statusOf('a'), '429 1')
  for (let at = 0; at < 4; at++) assert.equal(await statusOf('b'), '200')
  await world.pass(500)
  assert.equal(await statusOf('a'), '200')
  assert.equal(await statusOf('a'), '429 1')
  for (let at = 0; at < 20; at++) await statusOf(`other-${at}`)
  assert.equal(await statusOf('c'), '429 1')

  await world.pass(60_000)
  cloud.isStuck = true
  const open = await Promise.all(
    ['d', 'e', 'f'].map((token) => requests.ask({ ...get, identity: { kind: 'token', token } })),
  )
  assert.equal(await statusOf('g'), '429 1')
  cloud.isStuck = false
  for (const reply of open) await textOf(reply)
  await world.settle()
  assert.equal(await statusOf('g'), '200')
})

test('[A8] a link shows only so many new certificates, and those that it has shown go on', async () => {
  const cluster = new TestAuthority('kubernetes')
  const limits = { certificatesPerSecond: 1, certificatesBurst: 2 }
  const { world, edge } = await opened({ spoken: speaking(cluster), limits })
  await using _ = world
  const shown = Array.from({ length: 3 }, () => shownBy(cluster.issue('jane', 'dev')).text)
  const statusOf = (at: number) => raw(edge, [], { actor: 'certificate' }, { certificate: shown[at] as string })
  assert.deepEqual([await statusOf(0), await statusOf(1), await statusOf(2), await statusOf(0)], [200, 200, 429, 200])
  await world.pass(1_500)
  assert.equal(await statusOf(2), 200)
})

/** Asks so many times as that caller, and answers how often it was passed on. */
async function passedOn(requests: LinkedRequests, identity: Identity, times: number): Promise<number> {
  let answered = 0
  for (let at = 0; at < times; at++) {
    const reply = await requests.ask({ ...get, identity, passedOn: true })
    await textOf(reply)
    if (reply.status === 200) answered++
  }
  return answered
}

test('[A8] what one edge asks in the name of a user takes nothing from that user at other edges, nor does its policy', async () => {
  const cluster = new TestAuthority('kubernetes')
  const limits = { callerPerSecond: 5, callerBurst: 10, callerEdges: 3 }
  const policies = new SetPolicies({ slow: { nodes: { names: ['n2'] }, rates: { callerRequestsPerSecond: 1 } } })
  const { world, requests } = await opened({
    spoken: speaking(cluster, { edges: ['n2', 'n3', 'n4'] }),
    limits,
    policies,
  })
  await using _ = world
  const identity: Identity = { kind: 'named', caller: jane, chain: shownBy(cluster.issue('jane', 'dev')).text }
  const at = async (name: string) => requestsOf(await linked(world, name), world)
  const [second, third, fourth] = [await at('n2'), await at('n3'), await at('n4')]
  assert.equal(await passedOn(requests, identity, 30), 10)
  assert.equal(await passedOn(second, identity, 30), 2, 'a fifth of the burst with a fifth of the rate')
  assert.equal(await passedOn(third, identity, 30), 10, 'the low rate of another edge counts there alone')
  assert.equal(await passedOn(fourth, identity, 30), 8, 'all edges together have three times as much as one')
  await world.pass(1_000)
  assert.equal(await passedOn(requests, identity, 30), 5, 'what was refused at an edge took nothing from all')
})

test('[A8] who impersonates others counts as one caller, and takes nothing from those', async () => {
  const cluster = new TestAuthority('kubernetes')
  const spoken: Wishes['spoken'] = {
    request: async (_edge, _shown, { headers }) => {
      const caller = { ...jane, name: String(headers['impersonate-user'] ?? jane.name) }
      return { caller, shownBy: jane, headers: { 'impersonate-user': caller.name } }
    },
  }
  const { world, edge } = await opened({ spoken, limits: { callerPerSecond: 2, callerBurst: 4 } })
  await using _ = world
  const { text: certificate } = shownBy(cluster.issue('jane', 'dev'))
  const statuses: number[] = []
  for (const value of ['a', 'b', 'c', 'd', 'e'])
    statuses.push(await raw(edge, [{ name: 'impersonate-user', value }], { actor: 'certificate' }, { certificate }))
  assert.deepEqual(statuses, [200, 200, 200, 200, 429])
})

test('[A8] an edge that reconnects goes on with what it has left, of requests and of new certificates', async () => {
  const cluster = new TestAuthority('kubernetes')
  const limits = { edgePerSecond: 10, edgeBurst: 20, certificatesPerSecond: 1, certificatesBurst: 2 }
  const { world, edge, requests } = await opened({ spoken: speaking(cluster), limits })
  await using _ = world
  const shown = Array.from({ length: 3 }, () => shownBy(cluster.issue('jane', 'dev')).text)
  const statusOf = (at: number) => raw(edge, [], { actor: 'certificate' }, { certificate: shown[at] as string })
  assert.deepEqual([await statusOf(0), await statusOf(1)], [200, 200])
  assert.equal(await passedOn(requests, asNode, 10), 10)
  edge.line?.lose()
  edge.connect()
  await world.settle()
  assert.equal(await statusOf(2), 429, 'no certificate is new again')
  assert.equal(await passedOn(requests, asNode, 30), 7)
  await world.pass(60_000)
  assert.equal(await passedOn(requests, asNode, 30), 20)
})

test('[A8] tokens of one user are one caller where the hub knows that, and one each where it does not', async () => {
  const limits = { callerPerSecond: 2, callerBurst: 4 }
  const known = ({ token }: { readonly token: string }) =>
    token.startsWith('of-account') ? { name: 'system:serviceaccount:a:b', uid: '', groups: [] } : undefined
  const { world, requests } = await opened({ limits, known })
  await using _ = world
  const tokens = (...names: string[]) =>
    Promise.all(names.map((token) => passedOn(requests, { kind: 'token', token }, 4)))
  assert.deepEqual(
    (await tokens('of-account-1', 'of-account-2', 'of-account-3')).reduce((all, one) => all + one),
    4,
  )
  assert.deepEqual(await tokens('x', 'y'), [4, 4])
})

test('[I4] of a token nothing is logged', async () => {
  const { world, requests, lines } = await opened()
  await using _ = world
  await requests.ask({ ...get, identity: { kind: 'token', token: 'very-secret' } })
  assert.ok(![...lines, ...world.lines].some((line) => line.includes('very-secret')))
})

test('headers that repeat in other letters are one header', () => {
  const found = passable({ method: 'GET', path: '/', headers: { Accept: 'a', accept: ['b', 'c'] } })
  assert.deepEqual(found, { headers: { accept: ['a', 'b', 'c'] } })
})

test('[A6] a GET of what its edge holds is answered with `same`, after the API server was asked; anything else whole', async () => {
  const { cloud, requests } = await opened()
  const metadata = { name: 'p', namespace: 'a', uid: 'u1', resourceVersion: '7' }
  const json = (more: object = {}) => ({ kind: 'Pod', apiVersion: 'v1', metadata, ...more })
  const large = json({ padding: 'x'.repeat(2 * comparedBytesMax) })
  const table = { kind: 'Table', rows: [{ cells: [], object: { kind: 'PartialObjectMetadata', metadata } }] }
  const held = { uid: 'u1', version: 7 }
  type Row = [
    what: string,
    isSame: boolean,
    body: object,
    more?: { held?: typeof held; status?: number; method?: string; headers?: object },
  ]
  const rows: Row[] = [
    ['the same', true, json()],
    ['the same as a Table', true, table],
    ['another version', false, json(), { held: { ...held, version: 8 } }],
    ['another object of its name', false, json(), { held: { ...held, uid: 'u2' } }],
    ['what is not there', false, { kind: 'Status', code: 404 }, { status: 404 }],
    ['a refusal that names it', false, json(), { status: 403 }],
    ['no GET', false, json(), { method: 'PUT' }],
    ['packed', false, json(), { headers: { 'content-encoding': 'gzip' } }],
    ['a list', false, { kind: 'PodList', metadata, items: [json()] }],
    ['one that is large', false, large],
  ]
  for (const [what, isSame, body, more = {}] of rows) {
    const bytes = Buffer.from(JSON.stringify(body))
    const half = bytes.length >> 1
    cloud.answer = async () => ({
      ...{ status: more.status ?? 200, heardAt: () => 0 },
      headers: { 'content-type': 'application/json', ...more.headers },
      body: (async function* () {
        yield bytes.subarray(0, half)
        yield bytes.subarray(half)
      })(),
    })
    const before = cloud.asked.length
    const method = more.method ?? 'GET'
    const answer = await requests.ask({
      method,
      path: '/api/v1/p',
      identity: { kind: 'token', token: 't' },
      held: more.held ?? held,
    })
    assert.equal(cloud.asked.length, before + 1, what)
    assert.equal(cloud.asked.at(-1)?.held, undefined)
    assert.deepEqual([answer.isSame, answer.status], [isSame, more.status ?? 200], what)
    const pieces: Buffer[] = []
    for await (const piece of answer.body) pieces.push(piece)
    assert.deepEqual(Buffer.concat(pieces), isSame ? Buffer.alloc(0) : bytes, what)
  }
})
