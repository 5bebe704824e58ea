import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, test } from 'node:test'
import { UsageError } from '../base/fault.ts'
import { isNear, readConfig } from './config.ts'

const serve = (args: string[], env: Record<string, string> = {}) => readConfig('serve', { args, env })
const refuses = (args: string[], sentence: RegExp, env: Record<string, string> = {}) =>
  assert.rejects(serve(args, env), (error) => {
    assert.ok(error instanceof UsageError)
    assert.match(error.message, sentence)
    assert.doesNotMatch(error.message, /\n/)
    return true
  })

const folder = mkdtempSync(join(tmpdir(), 'ake-config-'))
after(() => rmSync(folder, { recursive: true, force: true }))

function yaml(content: string): string {
  const file = join(mkdtempSync(join(folder, 'file-')), 'ake.yaml')
  writeFileSync(file, content)
  return file
}

test('defaults, each in its type', async () => {
  assert.deepEqual(await serve([]), {
    listen: [{ host: '127.0.0.1', port: 10005 }],
    data: resolve('ake-data'),
    history: 128 * 1024 * 1024,
    historyAge: 86_400_000,
    encryptionKey: undefined,
    authorization: 'open',
    compress: 'remote',
    logLevel: 'info',
  })
  assert.deepEqual(await readConfig('demo', { args: [], env: {} }), {
    listen: [{ host: '127.0.0.1', port: 0 }],
    logLevel: 'info',
  })
})

test('a flag wins over a variable, that over the file, that over the default', async () => {
  const file = yaml('listen: 127.0.0.1:1\nhistory: 1Mi\ndata: /file\n# comment\n')
  const config = await serve(['--config', file, '--listen=[::1]:3'], { AKE_LISTEN: '127.0.0.1:2', AKE_HISTORY: '2Gi' })
  assert.deepEqual(config, {
    listen: [{ host: '::1', port: 3 }],
    history: 2 * 1024 ** 3,
    historyAge: 86_400_000,
    encryptionKey: undefined,
    authorization: 'open',
    compress: 'remote',
    data: '/file',
    logLevel: 'info',
  })
})

test('the file may be named by a variable, a number may be bytes, and an empty variable is none', async () => {
  const file = yaml('history: 65536\nlog-level: debug\n')
  const config = await serve([], { AKE_CONFIG: file, AKE_LISTEN: '' })
  assert.equal(config.history, 65536)
  assert.equal(config.logLevel, 'debug')
  assert.equal(config.listen[0]?.port, 10005)
})

test('a switch in the file is on, or off', async () => {
  const hub = (text: string) => readConfig('hub', { args: ['--state', './hub', '--config', yaml(text)], env: {} })
  assert.equal((await hub('trust-edges: true\n')).trustEdges, true)
  assert.equal((await hub('trust-edges: false\n')).trustEdges, false)
  await assert.rejects(hub('trust-edges: 1\n'), /trust-edges in .* cannot be "1"/)
})

test('a file with nothing but comments sets nothing', async () => {
  assert.equal((await serve(['--config', yaml('# later\n\n')])).logLevel, 'info')
})

const edge = (args: string[], env: Record<string, string> = {}) =>
  readConfig('edge', { args: ['--kubeconfig', '/kc', ...args], env })

test('an edge needs its kubeconfig and nothing else', async () => {
  assert.deepEqual(await edge([]), {
    kubeconfig: '/kc',
    server: [],
    hub: [],
    credential: undefined,
    listen: [{ host: '127.0.0.1', port: 10005 }],
    data: resolve('ake-data'),
    history: 128 * 1024 * 1024,
    historyAge: 86_400_000,
    encryptionKey: undefined,
    compress: 'remote',
    kubeletServingCertificate: undefined,
    logLevel: 'info',
    mirror: [],
    node: undefined,
    inCluster: 'service',
    inClusterFor: [],
    clientCa: undefined,
    clientCredential: [],
    tokenOfflineAge: 30 * 86_400_000,
    apiAudience: [],
    probeEvery: 5_000,
    otherClusterAfter: 60_000,
    firstListMax: 50_000,
    firstListBytes: 256 * 1024 * 1024,
    mirrorBytes: 192 * 1024 * 1024,
  })
})

test('how pods find the edge is one of three ways, and callers are named as the API server does', async () => {
  for (const way of ['service', 'ca', 'off']) assert.equal((await edge(['--in-cluster', way])).inCluster, way)
  await assert.rejects(
    edge(['--in-cluster', 'on']),
    /--in-cluster cannot be "on": give WAY, for example service, ca or off/,
  )
  const users = ['system:serviceaccount:kube-system:cilium', 'flannel']
  assert.deepEqual((await edge(users.flatMap((user) => ['--in-cluster-for', user]))).inClusterFor, users)
  await assert.rejects(edge(['--in-cluster-for', 'a b']), /--in-cluster-for cannot be "a b": give USER/)
})

test('a node is named as Kubernetes names it', async () => {
  for (const name of ['edge-1', 'n1.example.com']) assert.equal((await edge(['--node', name])).node, name)
  for (const name of ['Edge', 'a b', '-a', 'a'.repeat(254), 'n1,spec.nodeName=n2'])
    await assert.rejects(edge(['--node', name]), /--node cannot be ".+": give NAME, for example edge-1/)
})

test('what may be repeated is a flag again, a variable with commas, a sequence or a text in the file', async () => {
  const flags = await edge(['--server', 'https://a:6443/', '--server=https://[::1]:6443/k8s/c1', '--mirror', 'pods'])
  assert.deepEqual(flags.server, ['https://a:6443', 'https://[::1]:6443/k8s/c1'])
  assert.deepEqual(flags.mirror, [{ resource: 'pods', namespace: '' }])
  const variables = await edge([], {
    AKE_SERVER: 'https://a, https://b:1',
    AKE_MIRROR: 'gateways.example.com,secrets@shop-7',
    AKE_CLIENT_CREDENTIAL: 'system:node:a=/a.crt,/a.key,b=/b.crt,/b.key',
  })
  assert.deepEqual(variables.server, ['https://a', 'https://b:1'])
  assert.deepEqual(variables.mirror, [
    { resource: 'gateways.example.com', namespace: '' },
    { resource: 'secrets', namespace: 'shop-7' },
  ])
  assert.deepEqual(variables.clientCredential, [
    { name: 'system:node:a', cert: '/a.crt', key: '/a.key' },
    { name: 'b', cert: '/b.crt', key: '/b.key' },
  ])
  const content = 'server: [https://a, https://b]\nmirror: pods@default\nfirst-list-max: 9\nprobe-every: 500ms\n'
  const file = await edge(['--config', yaml(content), '--server', 'https://flag'])
  assert.deepEqual(file.server, ['https://flag'])
  assert.deepEqual(file.mirror, [{ resource: 'pods', namespace: 'default' }])
  assert.deepEqual([file.firstListMax, file.probeEvery], [9, 500])
  assert.deepEqual((await edge(['--config', yaml(content)])).server, ['https://a', 'https://b'])
})

test('each kind of an edge refuses what it is not', async () => {
  const cases: [string, string][] = [
    ['--server', 'http://a'],
    ['--server', 'https://user:secret@a'],
    ['--server', 'https://a,https://b'],
    ['--server', 'a:6443'],
    ['--mirror', 'Pods'],
    ['--mirror', 'pods@'],
    ['--mirror', 'pods/log'],
    ['--client-credential', 'a=b'],
    ['--client-credential', '=b,c'],
    ['--probe-every', '5'],
    ['--probe-every', '0s'],
    ['--first-list-max', '0'],
    ['--first-list-max', '1.5'],
  ]
  for (const [name, value] of cases) {
    await assert.rejects(edge([name, value]), (error: Error) => {
      assert.ok(error instanceof UsageError)
      assert.match(error.message, /^--[a-z-]+ cannot be ".+": give [A-Z]+.*, for example /)
      return true
    })
  }
  await assert.rejects(edge(['--config', yaml('server: [1]\n')]), /server in .* cannot be "1"/)
  await assert.rejects(edge(['--config', yaml('kubeconfig: [a]\n')]), /kubeconfig in .* cannot be/)
})

test('what is wrong with a flag is said with what to do', async () => {
  await refuses(['--listn', 'x'], /unknown option --listn .*did you mean "listen"\?/)
  await refuses(['--zzz=1'], /unknown option --zzz .*see "ake help serve"/)
  await refuses(['--data'], /--data needs a value: write --data DIR/)
  await refuses(['--data', '--listen', 'a:1'], /--data needs a value/)
  await refuses(['--data='], /--data cannot be "": give DIR/)
  await refuses(['extra'], /"extra" is not an option/)
  await refuses(['--listen', 'localhost'], /--listen cannot be "localhost": give HOST:PORT, for example 127/)
  await refuses(['--listen', 'a:65536'], /--listen cannot be/)
  await refuses(['--history', '12MB'], /--history cannot be "12MB": give BYTES, for example 128Mi/)
  await refuses(['--history', '0'], /--history cannot be/)
  await refuses([], /AKE_LOG_LEVEL cannot be "loud"/, { AKE_LOG_LEVEL: 'loud' })
})

test('what is wrong with the file is said with its name', async () => {
  await refuses(
    ['--config', '/nonexistent/ake.yaml'],
    /cannot read .*\/nonexistent\/ake.yaml \(no such file or directory\)/,
  )
  await refuses(['--config', yaml('a: [')], /is not YAML/)
  await refuses(['--config', yaml('- a\n')], /must hold "option: value" lines/)
  await refuses(['--config', yaml('lisen: x\n')], /unknown option "lisen" in .*did you mean "listen"\?/)
  await refuses(['--config', yaml('listen: 10005\n')], /listen in .*ake.yaml cannot be "10005": give HOST:PORT/)
  await refuses(['--config', yaml('data: {a: 1}\n')], /data in .* cannot be/)
  await refuses(['--config', yaml('config: b.yaml\n')], /cannot name another/)
})

test('names are near with one slip, not with two', () => {
  for (const near of ['listn', 'lisstn', 'lsiten', 'listening', 'li'])
    assert.equal(isNear('listen', near), near !== 'lisstn')
  assert.equal(isNear('data', 'date'), true)
  assert.equal(isNear('data', 'config'), false)
})
