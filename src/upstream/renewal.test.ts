import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { closeSync, constants, openSync, renameSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { sleep, systemClock } from '../base/clock.ts'
import { until } from '../base/until.test-support.ts'
import { runDirect } from './direct.test-support.ts'
import { begin, FakeServer, inline, issue, otherAuthority, writeKubeconfig } from './fakeserver.test-support.ts'
import type { UpstreamLimits } from './limits.ts'
import { Unreachable } from './upstream.ts'
import { readWhole } from './whole.ts'

const client = (name: string) => issue({ use: 'client', name })

async function world(context: TestContext, user: (folder: string) => Record<string, string>, more: object = {}) {
  const fake = await FakeServer.start()
  const files = writeKubeconfig(fake.url, {})
  files.write(fake.url, user(files.folder))
  const direct = await runDirect({ kubeconfig: files.path, ...more })
  context.after(async () => {
    await direct.end()
    await fake.end()
    files.remove()
  })
  return { fake, files, ...direct }
}

test('a renewed certificate: new requests use it at once, old streams end, nobody calls that a loss', async (context) => {
  const { fake, files, get, read, upstream, lines } = await world(context, () => inline(client('old')))
  await until(() => upstream.reachability.state === 'reachable', 'reachable')
  fake.handle = (request, response) => {
    if (request.url === '/watch') begin(response)
    else response.end('ok')
  }
  let renewals = 0
  upstream.onRenewed(() => renewals++)
  const known = () => upstream.credentials().map(({ use, name }) => `${use} ${name}`)
  assert.deepEqual(known(), ['edge old'])
  const { body } = await get('/watch')
  await body.next()
  files.write(fake.url, inline(client('new')))
  await assert.rejects(body.next(), Unreachable)
  await read('/x')
  assert.equal(fake.requests.findLast(({ path }) => path === '/x')?.name, 'new')
  assert.equal(upstream.reachability.state, 'reachable')
  assert.doesNotMatch(lines.join(''), /upstream\.suspect|PRIVATE/)
  assert.deepEqual([renewals, known()], [1, ['edge new']])
})

test('a probe that was under way with the old credential says nothing of the new one, which is asked about at once', async (context) => {
  const seldom = { probeEveryMs: 60_000, limits: { drainMsMax: 5_000 } }
  const { fake, files, upstream, lines } = await world(context, () => inline(client('old')), seldom)
  await until(() => upstream.reachability.state === 'reachable', 'reachable')
  let refuse: (() => void) | undefined
  fake.ready = (_request, response) => {
    if (fake.requests.at(-1)?.name === 'new') return void response.end('ok')
    refuse = () => void response.writeHead(401).end()
  }
  const whys: string[] = []
  upstream.reachability.observe(() => whys.push(upstream.reachability.why))
  const probed = upstream.reachability.probe()
  await until(() => refuse !== undefined, 'a probe')
  files.write(fake.url, inline(client('new')))
  await until(() => lines.some((line) => line.includes('upstream.renewed')), 'the new one')
  refuse?.()
  assert.equal(await probed, true)
  await until(() => fake.requests.at(-1)?.name === 'new', 'another probe')
  await until(() => upstream.addresses()[0]?.why === 'the API server answers', 'its answer')
  const { state, why, refusesEdge } = upstream.reachability
  assert.deepEqual([state, why, refusesEdge, whys], ['reachable', 'the API server answers', false, []])
})

test('half of a renewed pair changes nothing; the other half completes it', async (context) => {
  const [old, next] = [client('old'), client('next')]
  const { fake, files, read, lines } = await world(context, (folder) => {
    writeFileSync(join(folder, 'c'), old.cert)
    writeFileSync(join(folder, 'k'), old.key)
    return { 'client-certificate': 'c', 'client-key': 'k' }
  })
  const name = () => fake.requests.findLast(({ path }) => path === '/x')?.name
  writeFileSync(join(files.folder, 'c'), next.cert)
  await until(() => lines.some((line) => line.includes('does not belong to its key')), 'a complaint')
  await read('/x')
  assert.equal(name(), 'old')
  writeFileSync(join(files.folder, 'k'), next.key)
  await until(() => lines.some((line) => line.includes('upstream.renewed')), 'the new one')
  await read('/x')
  assert.equal(name(), 'next')
})

test('a token file behind a swapped link is followed', async (context) => {
  const { fake, files, read, lines } = await world(context, (folder) => {
    writeFileSync(join(folder, 'one'), 'first\n')
    symlinkSync(join(folder, 'one'), join(folder, 'token'))
    return { tokenFile: 'token' }
  })
  const sent = async () => {
    await read('/x')
    return fake.requests.findLast(({ path }) => path === '/x')?.headers.authorization
  }
  assert.equal(await sent(), 'Bearer first')
  writeFileSync(join(files.folder, 'two'), 'other\n')
  symlinkSync(join(files.folder, 'two'), join(files.folder, 'next'))
  renameSync(join(files.folder, 'next'), join(files.folder, 'token'))
  const before = fake.connections
  await until(() => fake.connections > before, 'a new connection')
  assert.equal(await sent(), 'Bearer other')
  unlinkSync(join(files.folder, 'two'))
  await until(() => lines.some((line) => line.includes('upstream.credential')), 'a complaint')
  assert.equal(await sent(), 'Bearer other', 'a file that is gone takes nothing away')
})

/** Its files are looked at once a minute, so that only a refusal makes the upstream look sooner. */
async function withTokenFile(context: TestContext, more: Partial<UpstreamLimits> = {}) {
  const made = await world(
    context,
    (folder) => {
      writeFileSync(join(folder, 'token'), 'first\n')
      return { tokenFile: 'token' }
    },
    { probeEveryMs: 60_000, limits: { followEveryMs: 60_000, drainMsMax: 60, ...more } },
  )
  const { fake, files, upstream } = made
  await until(() => upstream.reachability.state === 'reachable', 'reachable')
  const bodies: string[] = []
  fake.handle = (request, response) => {
    if (request.headers.authorization === 'Bearer first') return void response.writeHead(401).end('Unauthorized')
    const pieces: Buffer[] = []
    request.on('data', (piece: Buffer) => void pieces.push(piece))
    request.on('end', () => {
      bodies.push(Buffer.concat(pieces).toString())
      response.end('ok')
    })
  }
  return { ...made, bodies, replace: () => writeFileSync(join(files.folder, 'token'), 'other\n') }
}

test('a token that was replaced before its time: what the API server refuses goes up once more with the new one', async (context) => {
  const { upstream, replace, bodies, fake } = await withTokenFile(context)
  async function* pieces() {
    yield Buffer.from('in ')
    yield Buffer.from('pieces')
  }
  replace()
  const ask = async (body: Buffer | AsyncIterable<Buffer> | undefined) => {
    const method = body === undefined ? 'GET' : 'POST'
    const asked = { method, path: '/x', identity: { kind: 'edge' }, ...(body && { body }) } as const
    const answer = await upstream.ask(asked)
    return [answer.status, (await readWhole(answer, 100)).toString()]
  }
  // All at once: the files are read for all of them.
  const told = await Promise.all([ask(pieces()), ask(Buffer.from('whole')), ask(undefined)])
  assert.deepEqual(told, Array(3).fill([200, 'ok']))
  assert.deepEqual(bodies.toSorted(), ['', 'in pieces', 'whole'])
  // A caller's own token is its own to renew.
  const caller = await upstream.ask({ method: 'GET', path: '/y', identity: { kind: 'token', token: 'first' } })
  assert.equal(caller.status, 401)
  assert.equal(fake.paths().filter((path) => path === 'GET /y').length, 1)
})

test('a body that was not kept is not sent again with a new token: the refusal is told, and what comes next goes through', async (context) => {
  const { upstream, replace, bodies } = await withTokenFile(context, { keptBodyBytesMax: 10 })
  replace()
  async function* large() {
    yield Buffer.alloc(11)
  }
  const ask = () => upstream.ask({ method: 'POST', path: '/x', identity: { kind: 'edge' }, body: large() })
  assert.deepEqual([(await ask()).status, (await ask()).status, bodies.length], [401, 200, 1])
})

test('a refusal with the credential that the files still bring is told as it came, and many read the files no more often than one', async (context) => {
  const { read, replace, fake, lines, get } = await withTokenFile(context, { rereadEveryMs: 60_000 })
  for (let round = 0; round < 3; round++) {
    const { status, body } = await get('/x')
    assert.equal(status, 401)
    await body.return?.()
  }
  assert.equal(fake.paths().filter((path) => path === 'GET /x').length, 3)
  replace()
  assert.equal(await read('/x'), 'Unauthorized', 'read again too soon')
  assert.doesNotMatch(lines.join(''), /upstream\.renewed/)
})

/** A read of it waits until it is answered. */
function hangingToken({ folder }: { readonly folder: string }) {
  const [token, hanging, gone] = ['token', 'hanging', 'gone'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ]
  execFileSync('mkfifo', [hanging])
  renameSync(hanging, token)
  return {
    answer: (found: string) => writeFile(token, `${found}\n`),
    isRead: () => {
      try {
        closeSync(openSync(token, constants.O_WRONLY | constants.O_NONBLOCK))
        return true
      } catch {
        return false
      }
    },
    /** A read that waited for ever would keep the process. */
    [Symbol.dispose]: () => {
      renameSync(token, gone)
      closeSync(openSync(gone, constants.O_RDWR))
    },
  }
}

test('a refusal does not wait for files that hang, and no more looks than one wait behind them', async (context) => {
  const { files, get, read, lines } = await withTokenFile(context, { rereadEveryMs: 20 })
  using token = hangingToken(files)
  for (let round = 0; round < 5; round++) {
    const { status, body } = await get('/x')
    assert.equal(status, 401)
    await body.return?.()
    await sleep(systemClock, 20)
  }
  const renewals = () => lines.filter((line) => line.includes('upstream.renewed')).length
  await token.answer('late')
  await until(() => renewals() === 1, 'the one that hung')
  await token.answer('other')
  await until(() => renewals() === 2, 'the next')
  await sleep(systemClock, 50)
  assert.equal(token.isRead(), false, 'a third one')
  assert.equal(await read('/x'), 'ok')
})

test('a refused upgrade that breaks while the files are read harms no other', async (context) => {
  const { fake, files, upstream } = await withTokenFile(context, { rereadEveryMs: 200 })
  using token = hangingToken(files)
  fake.handle = (request, response) => {
    response.writeHead(401, { 'content-length': '100' }).write('Unauth')
    setTimeout(() => request.socket.destroy(), 50)
  }
  const headers = { connection: 'Upgrade', upgrade: 'SPDY/3.1' }
  const { status, socket } = await upstream.connect({ method: 'GET', path: '/u', headers, identity: { kind: 'edge' } })
  assert.deepEqual([status, socket.destroyed], [401, true])
  await token.answer('other')
})

test('an upgrade that meets a replaced token goes up once more too', async (context) => {
  const { upstream, replace, fake } = await withTokenFile(context)
  replace()
  const headers = { connection: 'Upgrade', upgrade: 'SPDY/3.1' }
  const { status, socket } = await upstream.connect({ method: 'GET', path: '/u', headers, identity: { kind: 'edge' } })
  socket.destroy()
  assert.equal(status, 200)
  assert.deepEqual(
    fake.requests.filter(({ path }) => path === '/u').map((asked) => asked.headers.authorization),
    ['Bearer first', 'Bearer other'],
  )
})

test('an expired certificate, or none, stops nothing, and is said', async (context) => {
  const expired = issue({ use: 'client', name: 'late', notAfter: Date.UTC(2021, 0, 1) })
  const { upstream, lines, read } = await world(context, () => inline(expired))
  assert.match(upstream.reachability.why, /client certificate expired on 2021-01-01/)
  assert.match(lines.join(''), /upstream.credential/)
  assert.equal(await read('/x'), 'ok')
  const missing = await world(context, () => ({ 'client-certificate': 'gone.crt', 'client-key': 'gone.key' }))
  assert.match(missing.upstream.reachability.why, /cannot be read/)
})

test('what is wrong with the credentials of callers is said once for each, told as long as it is so, and what to do', async (context) => {
  const fake = await FakeServer.start()
  const files = writeKubeconfig(fake.url, inline(client('edge')))
  const at = (name: string) => join(files.folder, name)
  const other = client('other')
  writeFileSync(at('c'), other.cert)
  writeFileSync(at('k'), other.key)
  const certificates = [
    { name: 'a', cert: at('c'), key: at('k') },
    { name: 'b', cert: at('gone'), key: at('k') },
  ]
  const { upstream, lines, end } = await runDirect({ kubeconfig: files.path, certificates })
  context.after(async () => {
    await end()
    await fake.end()
    files.remove()
  })
  const said = () => lines.filter((line) => line.includes('upstream.credential'))
  assert.equal(said().length, 2)
  const [first = '', second = ''] = upstream.complaints
  assert.match(first, /^--client-credential a: .* bears the common name "other", not "a": give that of a, or write/)
  assert.match(second, /^--client-credential b: .*gone cannot be read \(no such file or directory\): check its path/)
  const right = client('a')
  writeFileSync(at('k'), right.key)
  writeFileSync(at('c'), right.cert)
  await until(() => upstream.complaints.length === 1, 'one is put right')
  assert.deepEqual(upstream.complaints, [second])
  assert.equal(said().filter((line) => line.includes('--client-credential b')).length, 1)
})

test('a server of another authority, or one that speaks no TLS, is unreachable for that reason', async (context) => {
  const { fake, upstream, files, read } = await world(context, () => ({ token: 'very-secret' }))
  await until(() => upstream.reachability.state === 'reachable', 'reachable')
  const stranger = writeKubeconfig(
    fake.url,
    { token: 'very-secret' },
    {
      'certificate-authority-data': Buffer.from(otherAuthority.cert).toString('base64'),
    },
  )
  const other = await runDirect({ kubeconfig: stranger.path })
  try {
    await until(() => other.upstream.reachability.state === 'unreachable', 'unreachable')
    assert.match(other.upstream.reachability.why, /not signed by the authority/)
    const error = await other.read('/x').then(
      () => undefined,
      (reason: unknown) => reason,
    )
    assert.ok(error instanceof Unreachable && !error.sent)
    assert.doesNotMatch(`${error.stack}${other.lines.join('')}`, /very-secret/)
  } finally {
    await other.end()
    stranger.remove()
  }
  assert.equal(await read('/x'), 'ok')
  assert.ok(files.path)
})

test('several servers: the next one when the first is gone, and back when it has returned for a while', async (context) => {
  const [a, b] = [await FakeServer.start(), await FakeServer.start()]
  const files = writeKubeconfig(a.url, inline(client('edge')))
  const { upstream, read, end } = await runDirect({ kubeconfig: files.path, servers: [a.url, b.url], probeEveryMs: 15 })
  context.after(async () => {
    await end()
    await Promise.all([a.end(), b.end()])
    files.remove()
  })
  const current = () => upstream.addresses().find((address) => address.current)?.url
  await until(() => upstream.reachability.state === 'reachable', 'reachable')
  assert.equal(current(), `${a.url}/`)
  const port = a.port
  const home = current()
  await a.refuse()
  await until(() => current() !== home, 'the second')
  await until(() => upstream.reachability.state === 'reachable', 'reachable')
  assert.equal(await read('/x'), 'ok')
  assert.deepEqual(b.paths(), ['GET /x'])
  await a.accept(port)
  await until(() => current() === home, 'the first again')
  assert.equal(await read('/y'), 'ok')
  assert.deepEqual(a.paths(), ['GET /y'])
})
