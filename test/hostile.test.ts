/** What strangers try at a running `ake serve` and at an edge in front of it: none of it shows anything, and both go on. */
import assert from 'node:assert/strict'
import { createHmac, createPrivateKey, X509Certificate } from 'node:crypto'
import { connect as connectHttp2 } from 'node:http2'
import { after, before, test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { until } from '../src/base/until.test-support.ts'
import { issueCertificate } from '../src/pki/certificate.ts'
import { Site } from './edgeprocess.ts'
import type { Serving } from './process.ts'

const word = 'never-shown-to-strangers'
const secret = '/api/v1/namespaces/default/secrets/hidden'
const encoded = Buffer.from(word).toString('base64')
const triesMax = 3

/** What only callers are shown: the Secret, what the administrator alone may see, figures. */
const guarded = new RegExp([encoded, word, '"interests"', 'ake_build_info', '"SecretList"'].join('|'))

/** A request as it is written, over either version of HTTP: no client's idea of a URL changes it. */
type Attempt = {
  readonly path: string
  readonly headers?: readonly (readonly [name: string, value: string])[]
  readonly certificate?: { readonly cert: string; readonly key: string }
}

async function overHttp1(
  { port, credentials }: Serving,
  { path, headers = [], certificate }: Attempt,
): Promise<string> {
  const socket = connectTls({
    port,
    host: '127.0.0.1',
    ca: credentials.ca,
    ...certificate,
    ALPNProtocols: ['http/1.1'],
  })
  socket.on('error', () => {})
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  socket.write(`GET ${path} HTTP/1.1\r\nhost: edge\r\n${lines}connection: close\r\n\r\n`, 'latin1')
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  await new Promise((resolve) => socket.on('close', resolve))
  return Buffer.concat(chunks).toString('latin1')
}

/** Its status line and its body, as HTTP/1.1 would have them. */
async function overHttp2({ url, credentials }: Serving, { path, headers = [], certificate }: Attempt): Promise<string> {
  const session = connectHttp2(url, { ca: credentials.ca, ...certificate })
  session.on('error', () => {})
  try {
    // What HTTP/2 cannot say is not sent.
    const fields = headers.map(([name, value]) => [name.toLowerCase(), value])
    const stream = session.request({ ':path': path, ...Object.fromEntries(fields) })
    const chunks: Buffer[] = []
    let status = 0
    stream.on('error', () => {})
    stream.on('response', (head) => {
      status = Number(head[':status'])
    })
    stream.on('data', (chunk: Buffer) => chunks.push(chunk))
    await new Promise((resolve) => stream.on('close', resolve))
    return `HTTP/2 ${status} \r\n\r\n${Buffer.concat(chunks)}`
  } catch {
    return ''
  } finally {
    session.destroy()
  }
}

const statusOf = (answer: string) => Number(/^HTTP\/\S+ (\d+)/.exec(answer)?.[1] ?? 0)

type Tried = {
  readonly of?: (target: Serving) => readonly Attempt[]
  readonly isExpected?: (status: number) => boolean
}

/** Each by both versions of HTTP, at both. */
async function tryAll(attempts: readonly Attempt[], { of = () => attempts, isExpected = isRefused }: Tried = {}) {
  const all = [site.cloud, site.edge].flatMap((target) =>
    of(target).flatMap((attempt) => [overHttp1, overHttp2].map((send) => ({ target, attempt, send }))),
  )
  for (const { target, attempt, send } of all) {
    let answer = await send(target, attempt)
    // On a busy machine the edge may be in doubt for a moment.
    for (let again = 0; statusOf(answer) === 503 && again < triesMax; again++) {
      await site.untilCloudIs('reachable')
      answer = await send(target, attempt)
    }
    const who = `${target === site.edge ? 'edge' : 'serve'} ${send.name} ${JSON.stringify(attempt).slice(0, 200)}`
    assert.doesNotMatch(answer, guarded, who)
    assert.ok(isExpected(statusOf(answer)), `${who}: ${answer.slice(0, 700)}`)
  }
  // Whatever was tried, both are there, the edge has not lost sight of its API server, and administrators are answered.
  await site.untilCloudIs('reachable')
  assert.ok(await isShown())
  assert.equal((await site.client(site.cloud).ask('GET', secret)).status, 200)
}

const site = new Site()
site.isEdgeProcess = false
before(async () => {
  await site.startCloud()
  await site.startEdge('--mirror', 'secrets')
  const object = { metadata: { name: 'hidden' }, stringData: { word } }
  await site.client(site.cloud).json('POST', '/api/v1/namespaces/default/secrets', object)
  await until(isShown, 'the edge has the Secret')
})
after(() => site.end())

async function isShown(): Promise<boolean> {
  const { body } = await site.administrator().ask('GET', `${secret}?resourceVersion=0`)
  return body.includes(encoded)
}

const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

/** Tokens that claim to be the administrator's, or an account's, by every way but a key of the server. */
function forgedTokens({ credentials }: Serving): string[] {
  const authority = new X509Certificate(credentials.ca).publicKey
  const now = Math.floor(Date.now() / 1_000)
  const claims = part({
    ...{ iss: 'https://kubernetes.default.svc', aud: ['https://kubernetes.default.svc'] },
    ...{ sub: 'system:serviceaccount:kube-system:admin', iat: now, nbf: now, exp: now + 3_600 },
    'kubernetes.io': { namespace: 'kube-system', serviceaccount: { name: 'admin', uid: 'x' } },
  })
  const mac = (header: object, key: string | Buffer) => {
    const signed = `${part(header)}.${claims}`
    return `${signed}.${createHmac('sha256', key).update(signed).digest('base64url')}`
  }
  const pem = authority.export({ type: 'spki', format: 'pem' })
  return [
    `${part({ alg: 'none' })}.${claims}.`,
    `${part({ alg: 'None', typ: 'JWT' })}.${claims}.`,
    `${part({ alg: 'none' })}.${claims}`,
    mac({ alg: 'HS256' }, pem),
    mac({ alg: 'HS256' }, authority.export({ type: 'spki', format: 'der' })),
    mac({ alg: 'HS256', kid: '../../../../dev/null' }, ''),
    mac({ alg: 'HS256', kid: '/proc/sys/kernel/randomize_va_space' }, '2\n'),
    mac({ alg: 'RS256', jku: 'https://192.0.2.1/keys' }, 'x'),
    mac({ alg: 'RS256', jwk: { kty: 'oct', k: 'eA' } }, 'x'),
    mac({ alg: 'RS256', kid: "' OR 1=1 --" }, 'x'),
    `${part({ alg: 'RS256' })}.${claims}.${'A'.repeat(342)}`,
    'system:admin',
    '..',
    'a'.repeat(8_000),
    `${part({ alg: 'RS256' })}.${'A'.repeat(6_000)}.x`,
  ]
}

const isRefused = (status: number) => status === 401 || status === 403 || status === 429
/** Where a request cannot be read at all its connection may end without a word. */
const isRefusedOrUnread = (status: number) => isRefused(status) || status === 0 || (status >= 400 && status < 500)

test('[I1] no token opens anything that no key of the server signed', async () => {
  const bearing = (value: string): Attempt => ({ path: secret, headers: [['Authorization', value]] })
  await tryAll([], { of: (target) => forgedTokens(target).map((token) => bearing(`Bearer ${token}`)) })
  const others = ['Basic c3lzdGVtOmFkbWluOng=', 'Bearer', 'bearer a b', 'Digest username="system:admin"']
  const browser = `base64url.bearer.authorization.k8s.io.${part({ alg: 'none' })}`
  await tryAll([...others.map(bearing), { path: secret, headers: [['Sec-WebSocket-Protocol', browser]] }])
})

test('[I1] no header names a caller, nor does a certificate of another authority', async () => {
  const pretended = [
    ['X-Remote-User', 'system:admin'],
    ['X-Remote-Group', 'system:masters'],
    ['X-Forwarded-User', 'system:admin'],
    ['X-Forwarded-Client-Cert', `Cert="${encodeURIComponent(site.edge.credentials.cert)}"`],
    ['X-Original-Url', '/healthz'],
    ['X-Http-Method-Override', 'GET'],
  ] as const
  const impersonated = [
    ['Impersonate-User', 'system:admin'],
    ['Impersonate-Group', 'system:masters'],
  ] as const
  const certificate = strangeCertificate()
  await tryAll(
    [secret, '/ake/status', '/metrics'].flatMap((path) => [
      { path, headers: pretended },
      { path, headers: impersonated },
      { path, headers: [...pretended, ...impersonated], certificate },
    ]),
  )
})

test('[A8] no header or target of a stranger breaks the way to the API server for others', async () => {
  const single = [
    ['TE', 'gzip, trailers'],
    ['Keep-Alive', 'timeout=1'],
    ['Proxy-Connection', 'x'],
    ['HTTP2-Settings', 'AAMAAABkAAQAAP__'],
    ['Trailer', 'Authorization'],
    ['Expect', '200-maybe'],
    ['X-Odd', '\xe4\xff\t'],
    ['Accept', '*/*;q=\xff'],
    ['Content-Type', 'application/\xff'],
    ['Accept-Encoding', 'gzip;q=x, \xff'],
  ] as const
  const targets = ['https://edge', 'https://elsewhere:1', 'http://edge', 'http://user:x@edge'].map((at) => at + secret)
  const attempts: Attempt[] = [
    ...single.map((header) => ({ path: '/apis/nobody/v1/x', headers: [header] })),
    ...targets.map((path) => ({ path })),
    { path: 'https://edge' },
    { path: 'https://edge/nothing' },
    { path: '*' },
  ]
  // What only HTTP/1.1 can say has no answer over HTTP/2.
  await tryAll(attempts, { isExpected: isRefusedOrUnread })
})

test('[I1] no spelling of an open path leads to another one', async () => {
  const spelled = (to: string) => [
    `/healthz/..${to}`,
    `/healthz/%2e%2e${to}`,
    `/healthz/..%2f${to.slice(1)}`,
    `/healthz%2f..${to.replaceAll('/', '%2f')}`,
    `/version;${to}`,
    `/healthz;/..${to}`,
    `/version/../..${to}`,
    `/healthz\\..${to}`,
    `/healthz#${to}`,
    `https://edge/version/..${to}`,
    ...[`/${to}`, `//edge${to}`, `/.${to}`, `${to}/`, `${to}?/healthz`, `${to}#/healthz`],
  ]
  // Of a path of health it is said that it is well, or that there is none: only that nothing is shown counts.
  const isExpected = (status: number) => isRefusedOrUnread(status) || status === 200
  const attempts = [secret, '/ake/status', '/metrics'].flatMap(spelled).map((path) => ({ path }))
  await tryAll(attempts, { isExpected })
})

test('[A8] headers that are too many or too long are refused before anything is made of them', async () => {
  const long = 'x'.repeat(100_000)
  const many = Array.from({ length: 3_000 }, (_, at) => [`X-${at}`, 'y'] as const)
  const attempts: Attempt[] = [
    { path: secret, headers: [['Authorization', `Bearer ${long}`]] },
    { path: secret, headers: [['Impersonate-User', long]] },
    { path: secret, headers: many },
    { path: `${secret}?${long}` },
    { path: `/${long}` },
  ]
  await tryAll(attempts, { isExpected: isRefusedOrUnread })
})

/** Of an authority that bears the name of ours, with the administrator's names. */
function strangeCertificate(): { cert: string; key: string } {
  const dates = { notBefore: 0, notAfter: Date.now() + 86_400_000 }
  const name = { commonName: 'ake-ca' }
  const { key } = issueCertificate({ ...dates, use: 'authority', subject: name })
  const subject = { commonName: 'ake-admin', organization: 'system:masters' }
  return issueCertificate({ ...dates, use: 'client', subject }, { name, key: createPrivateKey(key) })
}
