/** What every upstream must do, run against each of them. A new one adds one line to a test that gives it a server. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { untilStill } from '../base/until.test-support.ts'
import { standardLimits } from './limits.ts'
import { type Identity, Unreachable, type Upstream, type UpstreamRequest } from './upstream.ts'
import { readWhole } from './whole.ts'

/**
 * An upstream before a server that knows these paths: `/echo` answers with the request as JSON `{method, path, headers,
 * body, name}` where `name` is the client certificate's; `/warned` sends two `Warning`s and a 429; `/endless` sends
 * until its reader stops, counting in `sent`; `/broken` sends some bytes, then the connection breaks; `/silent` never
 * answers; an upgrade to `echo` gives every byte back.
 */
export type World = {
  readonly upstream: Upstream
  readonly sent: () => number
  /** As whom the edge asks for itself, where that is not its administrator. */
  readonly own?: string
  /** From now on no server is there. */
  readonly leave: () => Promise<void>
  readonly end: () => Promise<void>
}

const edge: Identity = { kind: 'edge' }
const large = 1 << 20
const { dialMsMax } = standardLimits

export function upstreamContract(name: string, open: () => Promise<World>): void {
  const check = (title: string, body: (world: World) => Promise<void>) =>
    void test(`${name}: ${title}`, async () => {
      const world = await open()
      try {
        await body(world)
      } finally {
        await world.end()
      }
    })
  const echoed = async (upstream: Upstream, asked: Partial<UpstreamRequest>) => {
    const answer = await upstream.ask({ method: 'GET', path: '/echo', identity: edge, ...asked })
    return JSON.parse((await readWhole(answer, large)).toString()) as {
      method: string
      path: string
      headers: Record<string, string>
      body: string
      name: string
    }
  }
  const refusal = async (asking: Promise<unknown>): Promise<Unreachable> => {
    const error = await asking.then(
      () => assert.fail('it was answered'),
      (reason: unknown) => reason,
    )
    assert.ok(error instanceof Unreachable, String(error))
    return error
  }

  check('method, path and body arrive as they were sent, also in pieces', async ({ upstream }) => {
    const whole = await echoed(upstream, { method: 'PUT', path: '/echo?a=%2F&b', body: Buffer.from('whole') })
    assert.deepEqual([whole.method, whole.path, whole.body], ['PUT', '/echo?a=%2F&b', 'whole'])
    assert.equal(whole.headers['content-length'], '5')
    async function* pieces() {
      yield Buffer.from('pie')
      yield Buffer.from('ces')
    }
    for (const method of ['POST', 'DELETE']) {
      assert.equal((await echoed(upstream, { method, body: pieces() })).body, 'pieces')
    }
    assert.equal((await echoed(upstream, { method: 'POST', headers: { 'content-length': '7' } })).body, '')
  })

  check('what belongs to one hop, vouches for a caller or is a credential stays here', async ({ upstream }) => {
    const { headers } = await echoed(upstream, {
      identity: { kind: 'anonymous' },
      headers: {
        accept: 'application/json',
        'user-agent': 'kubelet',
        'impersonate-user': 'jane',
        authorization: 'Bearer stolen',
        connection: 'x-hop, keep-alive',
        'x-hop': '1',
        'keep-alive': 'timeout=5',
        te: 'trailers',
        cookie: 'a=b',
        'proxy-authorization': 'Basic x',
        'x-forwarded-for': '10.0.0.1',
        'x-remote-user': 'admin',
        'x-remote-group': 'system:masters',
      },
    })
    for (const name of ['authorization', 'x-hop', 'keep-alive', 'te', 'cookie', 'proxy-authorization']) {
      assert.equal(headers[name], undefined, name)
    }
    for (const name of Object.keys(headers)) assert.doesNotMatch(name, /^x-(forwarded|remote)-/)
    assert.equal(headers.accept, 'application/json')
    assert.equal(headers['user-agent'], 'kubelet')
    assert.equal(headers['impersonate-user'], 'jane')
  })

  check(
    'a client’s request bears the client’s User-Agent or none, the edge’s own says whose it is',
    async ({ upstream }) => {
      const agent = async (asked: Partial<UpstreamRequest>) => (await echoed(upstream, asked)).headers['user-agent']
      assert.match((await agent({})) ?? '', /^ake\/\S+ \(edge\)$/)
      assert.match((await agent({ identity: { kind: 'token', token: 'abc' } })) ?? '', /^ake\//)
      assert.equal(await agent({ passedOn: true }), undefined)
      assert.equal(await agent({ passedOn: true, headers: { 'user-agent': 'kubectl' } }), 'kubectl')
    },
  )

  check('[I1] each identity goes up with its own credential and no other', async ({ upstream, own = 'edge' }) => {
    const seen = async (identity: Identity, passedOn = true) => {
      const { name: certificate, headers } = await echoed(upstream, { identity, passedOn })
      return [certificate, headers.authorization]
    }
    assert.deepEqual(await seen(edge), ['edge', undefined])
    assert.deepEqual(await seen({ kind: 'token', token: 'abc' }), ['', 'Bearer abc'])
    assert.deepEqual(await seen({ kind: 'anonymous' }), ['', undefined])
    assert.deepEqual(await seen({ kind: 'certificate', name: 'kubelet' }), ['kubelet', undefined])
    assert.deepEqual(await seen(edge), ['edge', undefined])
    assert.deepEqual(await seen(edge, false), [own, undefined])
    const unknown = await refusal(echoed(upstream, { identity: { kind: 'certificate', name: 'unknown' } }))
    assert.equal(unknown.sent, false)
  })

  check('status and headers of the answer are the server’s, repeated ones apart', async ({ upstream }) => {
    const answer = await upstream.ask({ method: 'GET', path: '/warned', identity: edge })
    assert.equal(answer.status, 429)
    assert.deepEqual(answer.headers.warning, ['299 - "one, two"', '299 - "three"'])
    assert.equal(answer.headers['retry-after'], '1')
    assert.equal(answer.headers['audit-id'], 'a-1')
    assert.equal(answer.headers.connection, undefined)
    assert.equal(answer.headers['transfer-encoding'], undefined)
    assert.equal((await readWhole(answer, large)).toString(), 'later')
    const head = await upstream.ask({ method: 'HEAD', path: '/echo', identity: edge })
    assert.equal((await readWhole(head, large)).length, 0)
  })

  check(
    '[A8] a body is sent no faster than it is read, and a reader who leaves ends it',
    async ({ upstream, sent }) => {
      const { body } = await upstream.ask({ method: 'GET', path: '/endless', identity: edge })
      let bytes = 0
      for (let reads = 0; reads < 5; reads++) bytes += (await body.next()).value?.length ?? 0
      assert.ok(bytes > 0)
      const before = await untilStill(sent)
      assert.ok(before < 32 * large, `${before} bytes went out for ${bytes} that were read`)
      assert.equal((await echoed(upstream, {})).method, 'GET', 'others do not wait for it')
      await body.return?.()
      assert.equal((await body.next()).done, true)
    },
  )

  check('an answer that breaks off rejects, and is never taken for a whole one', async ({ upstream }) => {
    // Its head may be lost with the connection, too: then nothing of it was an answer.
    const whole = async () => readWhole(await upstream.ask({ method: 'GET', path: '/broken', identity: edge }), large)
    assert.equal((await refusal(whole())).sent, true)
  })

  check('a wait ends with its limit, or with its caller', async ({ upstream }) => {
    const silent = { method: 'GET', path: '/silent', identity: edge }
    assert.match((await refusal(upstream.ask({ ...silent, headMsMax: 30 }))).message, /30 ms/)
    const leaving = new AbortController()
    const asking = refusal(upstream.ask({ ...silent, signal: leaving.signal }))
    setTimeout(() => leaving.abort(), 20)
    await asking
    await refusal(upstream.ask({ ...silent, signal: AbortSignal.abort() }))
    const reading = new AbortController()
    const { body } = await upstream.ask({ method: 'GET', path: '/endless', identity: edge, signal: reading.signal })
    await body.next()
    reading.abort()
    await refusal(readWhole({ headers: {}, body }, 1 << 30))
  })

  check('the connection says when it was last heard', async ({ upstream }) => {
    const before = performance.now()
    const answer = await upstream.ask({ method: 'GET', path: '/echo', identity: edge })
    await readWhole(answer, large)
    assert.ok(answer.heardAt() >= before && answer.heardAt() <= performance.now())
  })

  check('an upgrade carries bytes both ways; a refusal of one has its status and body', async ({ upstream }) => {
    const headers = { connection: 'Upgrade', upgrade: 'echo', 'x-stream-protocol-version': ['v5', 'v4'] }
    const asked = { method: 'POST', path: '/exec', identity: edge, headers, passedOn: true }
    const { status, socket, rawHeaders, head } = await upstream.connect(asked)
    assert.equal(status, 101)
    assert.ok(rawHeaders.join().includes('edge'), 'the server knows who asked')
    assert.equal(head.length, 0)
    socket.write('ping')
    assert.equal(String(await new Promise((resolve) => socket.once('data', resolve))), 'ping')
    socket.destroy()
    const refused = await upstream.connect({ ...asked, path: '/forbidden' })
    assert.equal(refused.status, 403)
    let text = ''
    for await (const chunk of refused.socket) text += chunk
    assert.equal(text, 'no')
  })

  check('nobody there: rejects at once, and nothing was sent', async ({ upstream, leave }) => {
    await leave()
    const started = performance.now()
    assert.equal((await refusal(echoed(upstream, { method: 'POST' }))).sent, false)
    assert.equal((await refusal(upstream.connect({ method: 'GET', path: '/exec', identity: edge }))).sent, false)
    assert.ok(performance.now() - started < dialMsMax / 2, 'at once, and not when a dial gives up')
  })

  check('no error and no reason holds a credential', async ({ upstream, leave }) => {
    await leave()
    const error = await refusal(echoed(upstream, { identity: { kind: 'token', token: 'very-secret' } }))
    assert.doesNotMatch(`${error.message} ${error.stack} ${upstream.reachability.why}`, /very-secret|PRIVATE KEY/)
  })
}
