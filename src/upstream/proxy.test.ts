/** The API server through a proxy: what it is asked for, and what becomes of one that does not do as it should. */
import assert from 'node:assert/strict'
import type { Duplex } from 'node:stream'
import { type TestContext, test } from 'node:test'
import { until } from '../base/until.test-support.ts'
import { runDirect } from './direct.test-support.ts'
import { FakeServer, inline, issue, otherAuthority, writeKubeconfig } from './fakeserver.test-support.ts'
import type { UpstreamLimits } from './limits.ts'
import { type ProxyKind, TestProxy } from './proxy.test-support.ts'
import { Unreachable } from './upstream.ts'

const pair = inline(issue({ use: 'client', name: 'edge' }))
/** A name that only the proxy can make anything of. */
const server = 'https://api.cloud.invalid:6443'
/** Whom the fake server shows itself as. */
const named = { 'tls-server-name': 'localhost' }
/** Long enough for a handshake on a busy machine, short enough for a test. */
const limits = { dialMsMax: 1_500, probeMsMax: 3_000, suspectEveryMs: 20 }

async function world(context: TestContext, kind: ProxyKind, settings: (url: string) => Settings) {
  const fake = await FakeServer.start()
  const proxy = await TestProxy.start(kind, () => fake.port)
  const { environment, cluster = {}, more = {} } = settings(proxy.url('user:p%40ss@'))
  const files = writeKubeconfig(server, pair, { ...named, ...cluster })
  const direct = await runDirect({
    kubeconfig: files.path,
    limits: { ...limits, ...more },
    ...(environment && { environment }),
  })
  context.after(async () => {
    await direct.end()
    await proxy.end()
    await fake.end()
    files.remove()
  })
  return { fake, proxy, files, ...direct }
}

type Settings = {
  environment?: Record<string, string>
  cluster?: Record<string, string>
  more?: Partial<UpstreamLimits>
}

for (const kind of ['http', 'https', 'socks5'] as const) {
  test(`an ${kind} proxy of the environment is asked for the server by name, with its credential`, async (context) => {
    const { proxy, read, lines } = await world(context, kind, (url) => ({ environment: { HTTPS_PROXY: url } }))
    assert.equal(await read('/version'), 'ok')
    assert.deepEqual(new Set(proxy.asked), new Set(['user:p@ss api.cloud.invalid:6443']))
    assert.ok(lines.some((line) => line.includes('upstream.proxy') && line.includes(proxy.url())))
    assert.ok(!lines.some((line) => line.includes('p@ss') || line.includes('p%40ss')), '[I4]')
  })
}

test("the kubeconfig's proxy-url wins over the environment, and another one is taken up when the file changes", async (context) => {
  const other = await TestProxy.start('http', () => 1)
  context.after(() => other.end())
  const { proxy, fake, read, files, upstream } = await world(context, 'http', (url) => ({
    cluster: { 'proxy-url': url },
    environment: { HTTPS_PROXY: other.url(), NO_PROXY: '*' },
  }))
  assert.equal(await read('/version'), 'ok')
  assert.equal(other.connections, 0)
  const next = await TestProxy.start('http', () => fake.port)
  context.after(() => next.end())
  files.write(server, pair, { ...named, 'proxy-url': next.url() })
  await until(() => next.asked.length > 0, 'the other proxy')
  await proxy.end()
  await until(() => upstream.reachability.state === 'reachable', 'reachable')
  assert.equal(await read('/again'), 'ok')
})

const says = (text: string) => (socket: Duplex) => void socket.write(text)
const hostile: [name: string, instead: (socket: Duplex) => void, why: RegExp][] = [
  [
    'wants another credential',
    says('HTTP/1.1 407 No\r\nproxy-authenticate: Basic\r\n\r\n'),
    /refuses the credential in its URL \(407\)/,
  ],
  [
    'forbids it',
    says('HTTP/1.1 403 Forbidden\r\n\r\n<html>'),
    /does not allow connections to api\.cloud\.invalid:6443 \(403\)/,
  ],
  ['finds nobody', says('HTTP/1.0 502 Bad Gateway\r\n\r\n'), /cannot reach api\.cloud\.invalid:6443 \(502\)/],
  ['is no proxy', says('SSH-2.0-OpenSSH_9.9\r\n'), /does not speak HTTP/],
  ['knows only that it is HTTP', says('HTTP/1.1 nothing\r\n\r\n'), /does not speak HTTP/],
  ['speaks in the place of the server', says('HTTP/1.1 200 OK\r\n\r\nhello'), /says more than it was asked/],
  ['never ends its headers', (socket) => endless(socket), /more than 16 KiB of headers/],
  ['says nothing', () => {}, /no connection within 1500 ms/],
  ['says half of it', says('HTTP/1.1 200 OK\r\n'), /no connection within 1500 ms/],
  ['closes in the middle', (socket) => void socket.end('HTTP/1.1 20'), /closed the connection before it answered/],
  ['closes at once', (socket) => void socket.destroy(), /closed the connection before it answered|connection reset/],
  [
    'closes what it has opened',
    (socket) => void socket.end('HTTP/1.1 200 OK\r\n\r\n'),
    /connection (closed|reset).*through the proxy/,
  ],
]

function endless(socket: Duplex): void {
  socket.write('HTTP/1.1 200 OK\r\n')
  const more = () => {
    while (socket.writable && socket.write(`x-more: ${'x'.repeat(1_000)}\r\n`));
  }
  socket.on('drain', more)
  more()
}

for (const [name, instead, why] of hostile) {
  test(`[L4] a proxy that ${name}: unreachable with that reason, tried again with pauses, and forgiven`, async (context) => {
    const { proxy, fake, get, upstream, lines } = await world(context, 'http', (url) => ({
      environment: { HTTPS_PROXY: url },
    }))
    await until(() => upstream.reachability.state === 'reachable', 'reachable')
    proxy.instead = instead
    fake.reset()
    await until(() => upstream.reachability.state === 'unreachable', 'unreachable')
    await until(() => why.test(upstream.reachability.why), `${why}, not ${upstream.reachability.why}`)
    assert.match(upstream.addresses()[0]?.why ?? '', new RegExp(`the proxy ${proxy.url()}`))
    // Requests in the meantime do not dial each for itself.
    const before = proxy.connections
    const asked = await Promise.allSettled(Array.from({ length: 50 }, () => get('/x')))
    for (const one of asked) assert.ok(one.status === 'rejected' && one.reason instanceof Unreachable)
    assert.ok(proxy.connections - before < 20, `${proxy.connections - before} connections for 50 requests`)
    assert.ok(!lines.some((line) => line.includes('p@ss')), '[I4]')
    proxy.instead = undefined
    await until(() => upstream.reachability.state === 'reachable', 'reachable again')
  })
}

test('a probe that is over before its dial says through which proxy it went', async (context) => {
  const { proxy, upstream, fake } = await world(context, 'http', (url) => ({
    environment: { HTTPS_PROXY: url },
    more: { probeMsMax: 50, dialMsMax: 5_000 },
  }))
  proxy.instead = () => {}
  fake.reset()
  await until(() => upstream.reachability.state === 'unreachable', 'unreachable')
  await until(() => upstream.reachability.why.includes(`no answer within 50 ms (through the proxy ${proxy.url()})`))
})

test('[I4] a proxy whose certificate no authority vouches for hears neither credential nor name', async (context) => {
  const { proxy, upstream } = await world(context, 'https', (url) => ({
    cluster: { 'proxy-url': url, 'certificate-authority-data': Buffer.from(otherAuthority.cert).toString('base64') },
  }))
  await until(() => upstream.reachability.state === 'unreachable', 'unreachable')
  assert.match(upstream.reachability.why, /the proxy https:\/\/127\.0\.0\.1:\d+: its certificate is not signed by/)
  assert.deepEqual(proxy.asked, [])
})
