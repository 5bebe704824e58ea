import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { joinEdge } from '../app/join.ts'
import { type Clock, systemClock } from '../base/clock.ts'
import { silentLog } from '../base/log.ts'
import { JoinedCluster } from '../hub/joining/cluster.test-support.ts'
import { Joining } from '../hub/joining/joining.ts'
import { startHub } from '../hub/sockets/hub.test-support.ts'
import type { PlainAnswer, PlainRequest } from '../hub/sockets/plain.ts'
import { authoritiesOf } from '../hub/state/authorities.ts'
import { makeState } from '../hub/state/state.ts'
import { parseCredential } from '../pki/credentialfile.ts'

const token = 'abcdef.0123456789abcdef'
const folders: string[] = []
after(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

const yearMs = 365 * 24 * 3600_000
/** Waits take no time to speak of. */
const hasty: Clock = { ...systemClock, setTimer: (ms, fn) => systemClock.setTimer(ms >= 10_000 ? ms : ms / 40, fn) }

async function world() {
  const cluster = new JoinedCluster()
  const state = makeState(Date.now())
  const linked = new Set<string>()
  const revoked = new Map<string, { sinceMs: number; by: string }>()
  let between: (asked: PlainRequest, answer: () => Promise<PlainAnswer>) => Promise<PlainAnswer> = (_, answer) =>
    answer()
  const joining = new Joining({
    ...{ upstream: cluster.upstream, clock: systemClock, log: silentLog, isLinked: (name) => linked.has(name) },
    warnings: { warn: () => undefined },
    policies: { isKnown: true, why: '', revokedSince: (name) => revoked.get(name) },
    authorities: () => authoritiesOf(state).map(({ pem }) => pem),
    clusterAuthorities: () => [cluster.ca.cert],
  })
  let hubNow = () => Date.now()
  const hubClock = { ...systemClock, now: () => hubNow() }
  const setHubClock = (now: () => number) => {
    hubNow = now
  }
  const plain = (asked: PlainRequest) => between(asked, () => joining.answer(asked))
  const clusterAuthorities = [new X509Certificate(cluster.ca.cert)]
  const hub = await startHub({ state, plain, clusterAuthorities, clock: hubClock })
  const dir = mkdtempSync(join(tmpdir(), 'ake-join-'))
  folders.push(dir)
  const data = join(dir, 'data')
  const told: string[] = []
  const run = async (more: object = {}, clock: Clock = hasty) => {
    const config = {
      ...{ hub: [`wss://127.0.0.1:${hub.port}`], token: { token }, caHash: [authoritiesOf(state)[0]?.hash ?? ''] },
      ...{ name: 'edge-1', data, kubeletKubeconfig: undefined, edgeConfig: undefined, replace: false, dryRun: false },
      ...{ listen: [{ host: '127.0.0.1', port: 10005 }], wait: 1_500, ...more },
    }
    return await joinEdge(config, { told: (line) => void told.push(line), stdin: stdinOf(token), clock })
  }
  const meddle = (with_: typeof between) => {
    between = with_
  }
  return { cluster, state, linked, revoked, setHubClock, hub, data, dir, told, run, meddle }
}

async function* stdinOf(text: string): AsyncGenerator<string> {
  await Promise.resolve()
  yield `${text}\n`
}

test('a join writes what an edge and its kubelet need, for their owner alone, and says so', async () => {
  const { cluster, state, data, run, hub } = await world()
  const printed = await run()
  const credential = parseCredential(readFileSync(join(data, 'credential.pem'), 'utf8'), 'FILE')
  assert.equal(credential.certificate.subject, 'O=system:nodes\nCN=system:node:edge-1')
  assert.equal(credential.ca, state.ca.cert)
  assert.ok(credential.certificate.checkIssued(new X509Certificate(cluster.ca.cert)))
  assert.equal(readFileSync(join(data, 'cluster-ca.crt'), 'utf8'), cluster.ca.cert)
  const files = ['cluster-ca.crt', 'credential.pem', 'edge.yaml', 'kubelet.kubeconfig', 'pki']
  assert.deepEqual(readdirSync(data).toSorted(), files)
  for (const file of files.slice(0, 4)) assert.equal(statSync(join(data, file)).mode & 0o777, 0o600, file)
  const kubelet = readFileSync(join(data, 'kubelet.kubeconfig'), 'utf8')
  assert.match(kubelet, /server: "https:\/\/127\.0\.0\.1:10005"/)
  for (const [name, path] of [
    ['client-certificate', 'credential.pem'],
    ['client-key', 'credential.pem'],
    ['certificate-authority', join('pki', 'ca.crt')],
  ] as const)
    assert.ok(kubelet.includes(`${name}: ${JSON.stringify(join(data, path))}`), name)
  const options = readFileSync(join(data, 'edge.yaml'), 'utf8')
  assert.match(
    options,
    new RegExp(`^hub: \\["wss://127.0.0.1:${hub.port}"\\]\ncredential: .*\nclient-ca: .*\ndata: .*\n$`),
  )
  for (const words of ['joined as node edge-1', 'wrote ', `next: ake edge --config ${join(data, 'edge.yaml')}`])
    assert.ok(printed.includes(words), words)
  assert.ok(!printed.includes(token) && !printed.includes('PRIVATE KEY'))
})

test('folders of what is written elsewhere are made, and one that cannot be is named before anything is requested', async () => {
  const { cluster, dir, run } = await world()
  const [edgeConfig, kubeletKubeconfig] = [join(dir, 'etc', 'ake', 'edge.yaml'), join(dir, 'etc', 'kubelet', 'config')]
  writeFileSync(join(dir, 'file'), '')
  await assert.rejects(
    run({ edgeConfig: join(dir, 'file', 'edge.yaml') }),
    /cannot create the folder .*file \(.*\): choose another with --edge-config/,
  )
  assert.equal(cluster.requests.size, 0)
  await run({ edgeConfig, kubeletKubeconfig })
  for (const path of [edgeConfig, kubeletKubeconfig]) assert.equal(statSync(path).mode & 0o777, 0o600, path)
  assert.equal(statSync(join(dir, 'etc', 'ake')).mode & 0o777, 0o700)
})

test('--dry-run only shows: nothing is requested or written', async () => {
  const { cluster, data, run } = await world()
  const printed = await run({ dryRun: true })
  assert.match(printed, /would join as node edge-1/)
  assert.match(printed, /client-certificate/)
  assert.match(printed, /nothing was requested or written/)
  assert.equal(cluster.requests.size, 0)
  assert.throws(() => readdirSync(data))
})

test('joining again renews, by the certificate that is there, and keeps options that the operator has changed', async () => {
  const { cluster, linked, data, run } = await world()
  await run()
  const [path, options] = [join(data, 'credential.pem'), join(data, 'edge.yaml')]
  const before = readFileSync(path, 'utf8')
  linked.add('edge-1')
  writeFileSync(options, 'hub: ["wss://other"]\n')
  const printed = await run({ name: undefined })
  assert.match(printed, /^joined again as node edge-1/)
  assert.match(printed, /left .*edge\.yaml as it is: let it have/)
  assert.notEqual(readFileSync(path, 'utf8'), before)
  assert.equal(readFileSync(options, 'utf8'), 'hub: ["wss://other"]\n')
  assert.equal(cluster.requests.size, 2)
  await assert.rejects(run({ name: 'edge-2' }), /is of the edge edge-1: leave out --name, or give another folder/)
})

test('the token may lie in a file or come on standard input', async () => {
  const { dir, run } = await world()
  const file = join(dir, 'token')
  writeFileSync(file, `${token}\n`)
  await run({ token: { file } })
  await run({ token: { stdin: true } })
  writeFileSync(file, 'something else')
  await assert.rejects(run({ token: { file } }), /token holds no token: give what "ake hub token" printed/)
})

test('a token that does not count, and a second try with one that does', async () => {
  const { cluster, data, run } = await world()
  cluster.tokens.clear()
  await assert.rejects(
    run(),
    /the token does not count: it has expired, was deleted or is not written in full; make another with "ake hub token"$/,
  )
  assert.throws(() => readdirSync(data), 'nothing is left behind')
  cluster.tokens.add(token)
  await run()
})

test('[I4] a hub that is not the pinned one is told nothing, the token included', async () => {
  const { run, meddle } = await world()
  const heard: string[] = []
  meddle((asked, answer) => {
    heard.push(asked.path)
    return answer()
  })
  const wrong = `sha256:${'0'.repeat(64)}`
  await assert.rejects(
    run({ caHash: [wrong] }),
    /is not the hub of --ca-hash \(it shows sha256:[0-9a-f]{64}\): somebody is in between/,
  )
  assert.deepEqual(heard, [])
  const { state } = await world()
  await assert.rejects(run({ caHash: [authoritiesOf(state)[0]?.hash ?? ''] }), /is not the hub of --ca-hash/)
})

test('of several pinned authorities any counts', async () => {
  const { state, run } = await world()
  await run({ caHash: [`sha256:${'0'.repeat(64)}`, authoritiesOf(state)[0]?.hash ?? ''] })
})

test('a hub by a name that its certificate does not bear', async () => {
  const { hub, run } = await world()
  await assert.rejects(
    run({ hub: [`wss://127.0.0.2:${hub.port}`] }),
    /certificate does not bear 127\.0\.0\.2: start the hub with --host 127\.0\.0\.2|cannot be reached/,
  )
})

test('a clock that is a year back, or ahead, is named with the hub’s, and nothing is requested', async () => {
  const { cluster, data, run } = await world()
  for (const offMs of [-yearMs, yearMs, -10 * 60_000]) {
    const clock = { ...hasty, now: () => Date.now() + offMs }
    await assert.rejects(
      run({}, clock),
      /the clock of this machine says \d{4}-.* and that of the hub \d{4}-.*: set it \(timedatectl set-ntp true, or date\), and run the same command again$/,
    )
  }
  assert.equal(cluster.requests.size, 0)
  assert.throws(() => readdirSync(data))
  await run({}, { ...hasty, now: () => Date.now() - 60_000 })
})

test('a name that is taken, and --replace', async () => {
  const { cluster, run } = await world()
  cluster.nodes.set('edge-1', 'True')
  await assert.rejects(
    run(),
    /a node of the name "edge-1" is in the cluster, and ready: choose another name with --name, or add --replace/,
  )
  await run({ replace: true })
})

test('a machine whose certificate has ended joins again by it, its Node being there', async () => {
  const { cluster, run, setHubClock } = await world()
  await run()
  cluster.nodes.set('edge-1', 'Unknown')
  setHubClock(() => Date.now() + 2 * yearMs)
  assert.match(await run().catch(String), /^joined again as node edge-1/)
})

test('a certificate that was revoked before it was fetched is not written, and the next run requests another', async () => {
  const { cluster, revoked, data, run } = await world()
  cluster.judge = (request) => {
    cluster.sign(request)
    revoked.set('edge-1', { sinceMs: Date.now() - 299_000, by: 'policy/x' })
  }
  await assert.rejects(run(), /what is issued to "edge-1" before .* is revoked \(policy\/x\)/)
  assert.deepEqual(existing(data), [])
  revoked.clear()
  cluster.judge = (request) => cluster.sign(request)
  await run()
  assert.equal(cluster.requests.size, 2)
})

test('nobody approves: the request is named, and the next run goes on with it', async () => {
  const { cluster, data, run, told } = await world()
  cluster.judge = () => undefined
  await assert.rejects(
    run(),
    /nobody has approved the request (ake-join-[0-9a-f]{40}): .*"kubectl certificate approve ake-join-/,
  )
  assert.deepEqual(readdirSync(data), ['joining.key'])
  assert.equal(statSync(join(data, 'joining.key')).mode & 0o777, 0o600)
  const [request] = cluster.requests.values()
  if (request !== undefined) request.status = { conditions: [{ type: 'Approved' }] }
  await assert.rejects(run(), /is approved, but nobody has signed it: see whether kube-controller-manager runs/)
  if (request !== undefined) cluster.sign(request)
  await run()
  assert.equal(cluster.requests.size, 1)
  assert.ok(!readdirSync(data).includes('joining.key'))
  assert.ok(told.length < 10, 'not a line for each look')
})

test('a request that was denied is made anew by the next run', async () => {
  const { cluster, run } = await world()
  cluster.judge = (request) => {
    request.status = { conditions: [{ type: 'Denied', message: 'not this one' }] }
  }
  await assert.rejects(run(), /the cluster has denied the request ake-join-.* \(not this one\)/)
  cluster.judge = (request) => cluster.sign(request)
  await run()
  assert.equal(cluster.requests.size, 2)
})

test('a hub that is lost half-way: what it takes to go on is there, whichever answer is lost', async () => {
  const { cluster, data, run, meddle } = await world()
  for (const lost of ['authorities', 'requests', 'requests/']) {
    meddle((asked, answer) => {
      const isLost = asked.path.startsWith(`/join/v1/${lost}`)
      return isLost ? Promise.reject(new Error('cut')) : answer()
    })
    await assert.rejects(
      run(),
      /the hub at 127\.0\.0\.1:\d+ (broke off|cannot be reached) \(.*run the same command again/,
      lost,
    )
    assert.ok(!existing(data).includes('credential.pem'))
  }
  meddle((_, answer) => answer())
  await run()
  assert.equal(cluster.requests.size, 1, 'the request of the first try is the one that counts')
})

test('a hub that is away for a moment is asked again', async () => {
  const { run, meddle, told } = await world()
  let cuts = 0
  meddle((asked, answer) => {
    if (asked.method === 'GET' && cuts++ % 2 === 0) return Promise.reject(new Error('cut'))
    return answer()
  })
  await run({ wait: 10_000 })
  assert.match(told.join('\n'), /trying again/)
})

test('of several hubs the next is asked where one is away, is not the pinned one, or is lost half-way', async () => {
  const { cluster, hub, data, run, meddle } = await world()
  await using other = await startHub({ state: makeState(Date.now()) })
  const [away, foreign, good] = ['wss://127.0.0.1:1', `wss://127.0.0.1:${other.port}`, `wss://127.0.0.1:${hub.port}`]
  await assert.rejects(
    run({ hub: [away, foreign], wait: 0 }),
    /the hub at 127\.0\.0\.1:1 cannot be reached .*; what answers at 127\.0\.0\.1:\d+ is not the hub of --ca-hash/,
  )
  assert.deepEqual(existing(data), [])
  await run({ hub: [away, foreign, good], wait: 0 })
  assert.equal(cluster.requests.size, 1)
  let busy = 0
  meddle((asked, answer) =>
    asked.method === 'POST' && busy++ === 0
      ? Promise.resolve({ status: 503, content: { sentence: 'later' } })
      : answer(),
  )
  await run({ hub: [good, good], wait: 0 })
  assert.equal(busy, 2)
  await assert.rejects(run({ hub: [good, away], name: 'edge-1', token: { token: 'aaaaaa.aaaaaaaaaaaaaaaa' } }), {
    message:
      'the token does not count: it has expired, was deleted or is not written in full; make another with "ake hub token"',
  })
})

test('a certificate for somebody else, of another authority, or of the future is not taken', async () => {
  const { cluster, data, run } = await world()
  const foreign = new JoinedCluster()
  const late = new JoinedCluster()
  Object.assign(late, { ca: cluster.ca, fromMs: () => Date.now() + 3600_000 })
  type Judge = typeof cluster.judge
  const cases: [Judge, RegExp][] = [
    [(request) => foreign.sign(request), /no authority by which the cluster knows clients/],
    [
      (request) => Object.assign(request.status, { certificate: Buffer.from('x').toString('base64') }),
      /no certificate/,
    ],
    [(request) => late.sign(request), /it is not valid yet/],
  ]
  for (const [judge, sentence] of cases) {
    cluster.judge = judge
    await assert.rejects(run(), sentence)
    assert.ok(!existing(data).includes('credential.pem'))
  }
})

test('what an attacker at the hub says is not believed: a sentence is printable and short', async () => {
  const { run, meddle } = await world()
  meddle(() => Promise.resolve({ status: 403, content: { sentence: `\u001b[2J${'x'.repeat(9_000)}` } }))
  await assert.rejects(run(), (error: Error) => error.message.length < 1_100 && !error.message.includes('\u001b'))
})

function existing(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}
