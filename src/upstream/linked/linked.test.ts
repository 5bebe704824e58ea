/** The contract of every upstream through both ends of a link and on to a fake server; then what only a link can do wrong. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { systemClock } from '../../base/clock.ts'
import { until } from '../../base/until.test-support.ts'
import { StatusError } from '../../kube/status.ts'
import { standardTunnelLimits, type TunnelLimits } from '../../tunnel/limits.ts'
import { type PairParts, TunnelPair } from '../../tunnel/pair.test-support.ts'
import { RequestFailed, RequestServer, type TunnelledReply, type TunnelledRequest } from '../../tunnel/request/serve.ts'
import { upstreamContract, type World } from '../contract.test-support.ts'
import { openDirect } from '../contractworld.test-support.ts'
import { type Identity, Unreachable } from '../upstream.ts'
import { readWhole } from '../whole.ts'
import { LinkedRequests } from './linked.ts'
import { type Handle, passOn } from './passon.test-support.ts'

function linked(handle: Handle, parts: PairParts & { callerRequestsMax?: number } = {}) {
  const server = new RequestServer({ handle, callerRequestsMax: parts.callerRequestsMax ?? 100 })
  const pair = new TunnelPair({ ...parts, hubAccepts: (incoming) => server.accept(incoming) })
  const requests = new LinkedRequests({
    ...{ streams: () => pair.edge, heardAt: () => performance.now(), node: 'kubelet', userAgent: 'ake/test (edge)' },
    clock: systemClock,
  })
  return { pair, requests }
}

async function openLinked(parts: PairParts): Promise<World> {
  const world = await openDirect(true)
  const { requests, pair } = linked(passOn(world.upstream), parts)
  const { upstream } = world
  return {
    ...world,
    own: 'kubelet',
    upstream: {
      reachability: upstream.reachability,
      ask: (asked) => requests.ask(asked),
      connect: (asked) => requests.connect(asked),
      addresses: () => upstream.addresses(),
      run: (signal) => upstream.run(signal),
    },
    end: async () => {
      pair.cut()
      await world.end()
    },
  }
}

upstreamContract('linked', () => openLinked({}))
upstreamContract('linked with a delay', () => openLinked({ delayMs: 5, bulkBytesMax: 20_000 }))
const small: Partial<TunnelLimits> = { windowBytes: 100, windowBytesMax: 200, grownBytesMax: 150 }
upstreamContract('linked with a hub that keeps no contexts', () => openLinked({ limits: { contextBytes: 0 } }))
upstreamContract('linked with small windows', () => openLinked({ limits: small }))

const get = { method: 'GET', path: '/api/v1/pods', identity: { kind: 'edge' } } as const

async function refusal(asking: Promise<unknown>): Promise<Unreachable> {
  const error = await asking.then(
    () => assert.fail('it was answered'),
    (reason: unknown) => reason,
  )
  assert.ok(error instanceof Unreachable, String(error))
  return error
}

const ok: TunnelledReply = { status: 200, headers: [], body: Buffer.from('ok') }

test('[L20] a small request is one frame, and so is its small answer', async () => {
  const { requests, pair } = linked(() => Promise.resolve(ok))
  const token: Identity = { kind: 'token', token: 'x'.repeat(1_000) }
  for (const [round, frames, bytes] of [
    // Once with begin and the token.
    [1, 3, 1_250],
    [2, 1, 250],
  ] as const) {
    const before = { edge: { ...pair.sent.edge }, hub: { ...pair.sent.hub } }
    const headers = { accept: 'application/json', 'user-agent': 'kubelet/v1.36.0', 'content-type': 'application/json' }
    const put = { method: 'PUT', path: '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-1' }
    const answer = await requests.ask({ ...put, headers, identity: token, body: Buffer.from('{}') })
    assert.equal((await readWhole(answer, 100)).toString(), 'ok')
    await pause(1)
    assert.equal(pair.sent.edge.frames - before.edge.frames, frames, `round ${round}`)
    assert.ok(pair.sent.edge.bytes - before.edge.bytes < bytes, `${pair.sent.edge.bytes - before.edge.bytes} bytes`)
    if (round === 2) assert.equal(pair.sent.hub.frames - before.hub.frames, 1)
  }
  assert.deepEqual(pair.edge.figures(), { streams: 0, grown: 0 })
  assert.deepEqual(pair.hub.figures(), { streams: 0, grown: 0 })
})

test('[L25] a lease that is renewed again costs what is new in it, also where bodies come in pieces', async () => {
  const echo: Handle = async ({ body }) => {
    const chunks: Buffer[] = []
    for await (const chunk of body ?? []) chunks.push(chunk)
    const answer = async function* () {
      yield* chunks
    }
    return { status: 200, headers: [{ name: 'audit-id', value: crypto.randomUUID() }], body: answer() }
  }
  const identities: Identity[] = [
    { kind: 'token', token: 'x'.repeat(1_000) },
    { kind: 'token', token: 'y'.repeat(1_000) },
    { kind: 'certificate', name: 'kubelet' },
  ]
  const lease = (at: number) =>
    `{"kind":"Lease","metadata":{"name":"node-1","namespace":"kube-node-lease","uid":"5a1a0a4c-5f0e-4f7c"},"at":${at}}`
  for (const [contextBytes, bytes] of [
    [standardTunnelLimits.contextBytes, [90, 130]],
    [0, [400, 400]],
  ] as const) {
    const { requests, pair } = linked(echo, { limits: { contextBytes } })
    for (let round = 0; round < 6; round++) {
      for (const identity of identities) {
        const before = { edge: pair.sent.edge.bytes, hub: pair.sent.hub.bytes }
        const headers = { accept: 'application/json', 'content-type': 'application/json', 'content-length': '115' }
        const put = { method: 'PUT', path: '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-1' }
        const body = (async function* () {
          for (const piece of lease(10_000 + round).match(/.{1,50}/g) ?? []) {
            yield Buffer.from(piece)
            await pause(0)
          }
        })()
        const answer = await requests.ask({ ...put, headers, identity, body, passedOn: true })
        assert.equal((await readWhole(answer, 1_000)).toString(), lease(10_000 + round))
        await pause(1)
        const spent = [pair.sent.edge.bytes - before.edge, pair.sent.hub.bytes - before.hub]
        if (round > 0)
          assert.ok(
            spent.every((one, at) => one < (bytes[at] ?? 0)),
            `${spent} bytes in round ${round}`,
          )
        if (contextBytes === 0) assert.ok((spent[0] ?? 0) > 250)
      }
    }
  }
})

test('[L20, I1] the hub hears in whose name: the token unchanged, the link’s own node, the administrator, or nobody', async () => {
  const seen: unknown[] = []
  const { requests } = linked(async ({ identity, headers }) => {
    seen.push([identity, headers.authorization])
    return ok
  })
  const identities: Identity[] = [
    { kind: 'token', token: 'abc' },
    { kind: 'certificate', name: 'kubelet' },
    { kind: 'edge' },
    { kind: 'anonymous' },
  ]
  const headers = { authorization: 'Bearer stolen' }
  for (const identity of identities) await requests.ask({ ...get, headers, identity, passedOn: true })
  // What the edge asks for itself it asks as its node: its administrator is another caller.
  await requests.ask({ ...get, headers, identity: { kind: 'edge' } })
  assert.deepEqual(seen, [
    [{ kind: 'token', token: 'abc' }, undefined],
    [{ kind: 'node' }, undefined],
    [{ kind: 'administrator' }, undefined],
    [{ kind: 'anonymous' }, undefined],
    [{ kind: 'node' }, undefined],
  ])
  const caller = { name: 'jane', uid: '', groups: [] }
  for (const identity of [
    { kind: 'certificate', name: 'jane' },
    { kind: 'named', caller },
    { kind: 'local', caller },
    { kind: 'token', token: 'a\r\nb: c' },
  ] as Identity[])
    assert.equal((await refusal(requests.ask({ ...get, identity }))).sent, false)
  assert.equal(seen.length, 5)
})

test('[L20] sent is honest: before the link took it, refused unprocessed, passed on, and after a cut', async () => {
  let called = 0
  const endless = new Promise<never>(() => {})
  const { requests, pair } = linked(({ path }) => {
    called++
    if (path === '/unsent') return Promise.reject(new RequestFailed('no API server', false))
    if (path === '/sent') return Promise.reject(new RequestFailed('it broke', true))
    if (path === '/thrown') return Promise.reject(new Error('secret'))
    return endless
  })
  const cases: [path: string, sent: boolean, why: RegExp][] = [
    ['/unsent', false, /no API server/],
    ['/sent', true, /it broke/],
    ['/thrown', true, /^it broke off$/],
  ]
  for (const [path, sent, why] of cases) {
    const error = await refusal(requests.ask({ ...get, path }))
    assert.equal(error.sent, sent, path)
    assert.match(error.message, why)
  }
  assert.equal(called, 3)
  // Given up in the turn it was asked in: nothing of it has left.
  const leaving = new AbortController()
  const early = refusal(requests.ask({ ...get, signal: leaving.signal }))
  leaving.abort()
  assert.equal((await early).sent, false)
  const cutEarly = refusal(requests.connect(get))
  const asking = refusal(requests.ask(get))
  await until(() => called === 4 + 1)
  pair.cut('the line is gone')
  for (const error of [await asking, await cutEarly]) {
    assert.equal(error.sent, true)
    assert.equal(error.message, 'the line is gone')
  }
  const none = await refusal(requests.ask(get))
  assert.deepEqual([none.sent, none.message], [false, 'the line is gone'])
  const unsent = linked(() => endless)
  const never = refusal(unsent.requests.ask(get))
  unsent.pair.cut('cut')
  assert.equal((await never).sent, false)
})

test('[L20] an asker that leaves is heard of at the hub, before the answer and while it comes', async () => {
  const signals: AbortSignal[] = []
  let left = 0
  const { requests, pair } = linked(async ({ signal, path }) => {
    signals.push(signal)
    if (path === '/silent') await new Promise((resolve) => signal.addEventListener('abort', resolve))
    async function* endless() {
      try {
        for (;;) {
          yield Buffer.alloc(5_000)
          await pause(1)
        }
      } finally {
        left++
      }
    }
    return { ...ok, body: endless() }
  })
  const leaving = new AbortController()
  const asking = refusal(requests.ask({ ...get, path: '/silent', signal: leaving.signal }))
  await until(() => signals.length === 1)
  leaving.abort()
  assert.equal((await asking).sent, true)
  await until(() => signals[0]?.aborted === true)
  const { body } = await requests.ask(get)
  await body.next()
  await body.return?.()
  await until(() => signals[1]?.aborted === true && left > 0)
  assert.match((await refusal(requests.ask({ ...get, path: '/silent', headMsMax: 20 }))).message, /20 ms/)
  await until(() => pair.hub.figures().streams === 0 && pair.edge.figures().streams === 0)
})

test('[L20] a head larger than a frame and a window goes through, one that is too large nowhere', async () => {
  const { requests } = linked(async ({ path, headers }) => ({
    status: 200,
    headers: [{ name: 'x-size', value: 'y'.repeat(60_000) }],
    body: Buffer.from(`${path.length} ${headers['x-long']?.length}`),
  }))
  const answer = await requests.ask({
    ...get,
    path: `/${'p'.repeat(50_000)}`,
    headers: { 'x-long': 'x'.repeat(10_000) },
  })
  assert.equal(answer.headers['x-size']?.length, 60_000)
  assert.equal((await readWhole(answer, 100)).toString(), '50001 10000')
  assert.equal((await refusal(requests.ask({ ...get, path: `/${'p'.repeat(100_000)}` }))).sent, false)
})

test('[L20] headers that are repeated stay apart both ways, and a name is never more than a name', async () => {
  let seen: TunnelledRequest | undefined
  const { requests } = linked(async (request) => {
    seen = request
    const headers = [
      { name: 'warning', value: 'one, two' },
      { name: 'warning', value: 'three' },
      { name: '__proto__', value: 'x' },
    ]
    return { ...ok, headers }
  })
  const answer = await requests.ask({ ...get, headers: { 'impersonate-group': ['a', 'b', 'c'], accept: 'x' } })
  assert.deepEqual(seen?.headers['impersonate-group'], ['a', 'b', 'c'])
  assert.equal(seen?.headers.accept, 'x')
  assert.deepEqual(answer.headers.warning, ['one, two', 'three'])
})

test('[L20, A8] a caller has its share at the hub, and beyond the streams of the link 429 is said here', async () => {
  const replies: (() => void)[] = []
  const { requests } = linked(() => new Promise((resolve) => replies.push(() => resolve(ok))), {
    callerRequestsMax: 2,
    limits: { streamsMax: 4 },
  })
  const ask = (token: string) => requests.ask({ ...get, identity: { kind: 'token', token } })
  const waiting = [ask('a'), ask('a')]
  await until(() => replies.length === 2)
  const refused = await ask('a')
  assert.equal(refused.status, 429)
  assert.equal(refused.headers['retry-after'], '1')
  assert.equal(JSON.parse((await readWhole(refused, 1_000)).toString()).reason, 'TooManyRequests')
  waiting.push(ask('b'), ask('b'))
  await until(() => replies.length === 4)
  await assert.rejects(ask('c'), (error) => error instanceof StatusError && error.code === 429)
  for (const reply of replies.splice(0)) reply()
  for (const answer of await Promise.all(waiting)) await readWhole(answer, 100)
  await pause(5)
  const again = ask('a')
  await until(() => replies.length === 1)
  replies[0]?.()
  assert.equal((await again).status, 200)
})

test('[L20] an answer before the end of the body ends both, and a body that breaks off is no whole one', async () => {
  const { requests, pair } = linked(async ({ path, body }) => {
    if (path === '/read') for await (const _ of body ?? []);
    return { ...ok, status: 413 }
  })
  let [sent, isOver] = [0, false]
  async function* endless() {
    try {
      for (;;) {
        yield Buffer.alloc(20_000)
        sent += 20_000
        await pause(1)
      }
    } finally {
      isOver = true
    }
  }
  const early = await requests.ask({ ...get, method: 'POST', body: endless() })
  assert.equal(early.status, 413)
  assert.equal((await readWhole(early, 100)).toString(), 'ok')
  await until(() => isOver)
  assert.ok(sent < 2_000_000, `${sent}`)
  async function* broken() {
    yield Buffer.from('half')
    throw new Error('the client left')
  }
  const error = await refusal(requests.ask({ ...get, path: '/read', method: 'POST', body: broken() }))
  assert.match(error.message, /body of the request broke off/)
  await until(() => pair.hub.figures().streams === 0 && pair.edge.figures().streams === 0)
})

test('[L20] what is no request is refused as unknown, and a head that makes no sense as unsent', async () => {
  const { pair } = linked(() => Promise.resolve(ok))
  const reasonOf = async (purpose: string, bytes: Buffer) => {
    const stream = pair.edge.open({ purpose })
    stream?.end(bytes)
    stream?.resume()
    await until(() => stream?.closed === true)
    return (stream?.errored as { reason?: string } | null)?.reason
  }
  assert.equal(await reasonOf('coffee', Buffer.alloc(0)), 'unknown')
  assert.equal(await reasonOf('request', Buffer.from([5, 1, 2])), 'unsent')
  assert.equal(await reasonOf('request', Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff])), 'unsent')
  assert.equal(await reasonOf('request', Buffer.from([3, 0xff, 0xff, 0xff])), 'unsent')
  // A token is named and none goes with it.
  assert.equal(await reasonOf('request', Buffer.from([8, 1, 0x47, 1, 0x2f, 1, 0, 0, 0])), 'unsent')
})
