/** Nothing is sent over a connection before it is known where it leads. */
import assert from 'node:assert/strict'
import type { Http2ServerResponse } from 'node:http2'
import { test } from 'node:test'
import { systemClock } from '../base/clock.ts'
import { until } from '../base/until.test-support.ts'
import { planFields } from '../kube/object.ts'
import { scopeOf } from '../mirror/world.test-support.ts'
import { dialTcp } from './dial.ts'
import { runDirect } from './direct.test-support.ts'
import { authorityCert, FakeServer, inline, issue, writeKubeconfig } from './fakeserver.test-support.ts'
import { followDirect } from './follow/direct.ts'
import { standardLimits } from './limits.ts'
import { Patience } from './patience.ts'
import { Pool } from './pool.ts'
import { type Arrival, type Gate, Unreachable, type Upstream } from './upstream.ts'
import { readWhole } from './whole.ts'

const pair = issue({ use: 'client', name: 'edge' })

/** Lets in where the right name is told. */
class NameGate implements Gate {
  readonly arrivals: Arrival[] = []
  looks = 0
  /** Whether a connection that was let in is asked again. */
  isWary = false

  async admit(arrival: Arrival): Promise<string | undefined> {
    this.arrivals.push(arrival)
    const { body } = await arrival.get('/name')
    return body.toString() === 'right' ? undefined : `it is ${body.toString()}`
  }

  async look(arrival: Arrival): Promise<string | undefined> {
    this.looks++
    return this.isWary ? await this.admit(arrival) : undefined
  }
}

async function world(http2: boolean) {
  const names = new Map<FakeServer, string>()
  const start = async (name: string) => {
    const server: FakeServer = await FakeServer.start({
      http2,
      handle: (request, response) =>
        void response.end(request.url === '/name' ? (names.get(server) ?? '') : 'answered'),
    })
    names.set(server, name)
    return server
  }
  const server = await start('right')
  const files = writeKubeconfig(server.url, inline(pair))
  const gate = new NameGate()
  const ends: (() => Promise<void>)[] = []
  const run = async (...servers: string[]) => {
    const direct = await runDirect({ kubeconfig: files.path, servers, gate })
    ends.push(direct.end)
    return direct
  }
  const others: FakeServer[] = []
  return {
    server,
    gate,
    run,
    files,
    names,
    another: async (name: string) => {
      const other = await start(name)
      others.push(other)
      return other
    },
    async [Symbol.asyncDispose]() {
      for (const end of ends) await end()
      for (const one of [server, ...others]) await one.end()
      files.remove()
    },
  }
}

const token = { kind: 'token', token: 't' } as const
const callers = [
  {},
  { identity: token },
  { identity: { kind: 'anonymous' } as const },
  { identity: token, byStranger: true },
]

for (const http2 of [true, false]) {
  const over = http2 ? 'HTTP/2' : 'HTTP/1.1'

  test(`[A10] over ${over} each new connection is asked where it leads, whichever caller it is for, before anything else`, async () => {
    await using at = await world(http2)
    const { upstream, read } = await at.run()
    for (const asking of callers) assert.equal(await read('/thing', asking), 'answered')
    assert.equal(at.server.requests[0]?.path, '/name')
    assert.ok(at.server.requests.filter(({ path }) => path === '/name').every(({ name }) => name === 'edge'))
    at.names.set(at.server, 'wrong')
    at.server.reset()
    const before = at.server.paths().length
    for (const asking of callers) {
      await assert.rejects(read('/thing', asking))
    }
    const sent = at.server.paths().slice(before)
    assert.deepEqual(
      sent.filter((path) => path !== 'GET /name'),
      [],
      'no request and no credential of a caller',
    )
    await until(() => upstream.reachability.state === 'unreachable', 'it counts as away')
    assert.match(upstream.reachability.why, /it is wrong/)
    at.names.set(at.server, 'right')
    await until(() => upstream.reachability.state === 'reachable', 'it is back')
    assert.equal(await read('/thing'), 'answered')
  })

  test(`[A10] over ${over} a connection that stays and leads elsewhere is cut with all the others`, async () => {
    await using at = await world(http2)
    const { upstream, read } = await at.run()
    assert.equal(await read('/thing', { identity: token }), 'answered')
    await until(() => at.gate.looks > 0, 'a look')
    at.gate.isWary = true
    at.names.set(at.server, 'wrong')
    await until(() => upstream.reachability.state === 'unreachable', 'it counts as away')
    const before = at.server.paths().length
    await assert.rejects(read('/thing', { identity: token }))
    assert.ok(!at.server.paths().slice(before).includes('GET /thing'))
  })

  test(`[A10] over ${over} a part that wants to be sure is told now, and what leads elsewhere is cut`, async () => {
    await using at = await world(http2)
    const { upstream, read } = await at.run()
    await until(() => upstream.reachability.state === 'reachable', 'it is there')
    await upstream.confirm()
    at.gate.isWary = true
    await upstream.confirm()
    at.names.set(at.server, 'wrong')
    await assert.rejects(upstream.confirm(), /it is wrong/)
    assert.notEqual(upstream.reachability.state, 'reachable')
    await assert.rejects(read('/thing'))
  })
}

for (const status of [401, 200]) {
  const again = status === 401 ? 'dialled once more' : 'not dialled again by the same request'
  test(`[A10] an API server that ends the connection with a ${status} to the gate is ${again}`, async () => {
    const server = await FakeServer.start({
      http2: true,
      handle: (request, response) => {
        if (request.url === '/name') {
          response.statusCode = status
          ;(response as Http2ServerResponse).stream.session?.close()
        }
        response.end('answered')
      },
    })
    const sending = (path: string) => {
      return { method: 'GET', path, headers: {}, body: undefined, patience: new Patience({ clock: systemClock }) }
    }
    let admitted = 0
    const pool = new Pool({
      dial: dialTcp(),
      url: new URL(server.url),
      trust: { ca: authorityCert, insecure: false },
      pair,
      clock: systemClock,
      limits: standardLimits,
      lost: () => {},
      // As the gate does: what it was told a moment ago it does not ask again, if that was a refusal.
      admit: async (ask) => {
        if (admitted++ === 0 || status !== 401) await readWhole(await ask(sending('/name')), 100)
        return undefined
      },
    })
    try {
      const answer = pool.ask(sending('/thing'))
      if (status === 401) assert.equal((await readWhole(await answer, 100)).toString(), 'answered')
      else await assert.rejects(answer, /closes them/)
      assert.equal(admitted, status === 401 ? 2 : 1)
    } finally {
      pool.destroy('over')
      await server.end()
    }
  })
}

test('[A10] what was cut is followed again only once it is known whom', async () => {
  const asked: string[] = []
  const upstream = {
    ask: async ({ path }: { path: string }) => {
      asked.push(path)
      throw new Unreachable('nobody', false)
    },
  } as unknown as Upstream
  const confirm = async () => {
    asked.push('which cluster')
    throw new Unreachable('another cluster', false)
  }
  const follow = followDirect({ upstream, limits: { objects: 1, bytes: 1 }, clock: systemClock, confirm })
  const scope = scopeOf({})
  const { follow: steps } = follow({ scope, custom: false, kind: 'Pod', plan: () => planFields([]) })
  const from = { held: undefined, start: 'anew', check: true } as const
  await assert.rejects(async () => {
    for await (const _ of steps(from, new AbortController().signal));
  }, /another cluster/)
  assert.deepEqual(asked, ['which cluster'])
})

test('[A10] of several addresses one that leads elsewhere is passed over', async () => {
  await using at = await world(true)
  const wrong = await at.another('wrong')
  const { upstream, read } = await at.run(wrong.url, at.server.url)
  await until(() => upstream.reachability.state === 'reachable', 'the second one')
  assert.equal(await read('/thing'), 'answered')
  const [first, second] = upstream.addresses()
  assert.deepEqual([first?.current, second?.current], [false, true])
  assert.match(first?.why ?? '', /it is wrong/)
  assert.deepEqual(
    at.gate.arrivals[0]?.addresses,
    [wrong.url, at.server.url].map((url) => `${url}/`),
  )
  assert.ok(!wrong.paths().includes('GET /thing'))
})

test('[A10] a kubeconfig that is re-pointed is asked anew where it leads', async () => {
  await using at = await world(true)
  const { upstream, read } = await at.run()
  assert.equal(await read('/thing'), 'answered')
  const other = await at.another('another')
  at.files.write(other.url, inline(pair))
  await until(() => /it is another/.test(upstream.reachability.why), 'refused')
  await assert.rejects(read('/thing'))
  at.files.write(at.server.url, inline(pair))
  await until(() => upstream.reachability.state === 'reachable', 'it is back')
  assert.equal(await read('/thing'), 'answered')
  assert.deepEqual(new Set(other.paths()), new Set(['GET /name']))
})
