/** The command line as a process: what an operator sees, on which stream, with which exit code. */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseCredential } from '../src/pki/credentialfile.ts'
import { writeKubeconfig } from '../src/pki/kubeconfig.ts'
import { openPki } from '../src/pki/pki.ts'

const main = fileURLToPath(new URL('../src/main.ts', import.meta.url))

function ake(args: string[], env: Record<string, string> = {}) {
  const { AKE_LISTEN: _, AKE_KUBECONFIG: __, ...clean } = process.env
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, ...args], {
    encoding: 'utf8',
    env: { ...clean, ...env },
  })
  return { status, stdout, stderr }
}

test('help goes to stdout', () => {
  const overview = ake(['help'])
  assert.equal(overview.status, 0)
  assert.equal(overview.stderr, '')
  for (const command of ['serve', 'edge', 'status', 'hub', 'demo', 'version', 'help'])
    assert.match(overview.stdout, new RegExp(`^ {2}${command} `, 'm'))
  const serve = ake(['serve', '--help'])
  assert.equal(serve.status, 0)
  assert.match(serve.stdout, /usage: ake serve \[options\]\n\n {2}--listen HOST:PORT /)
  assert.equal(ake(['help', 'serve']).stdout, serve.stdout)
})

test('the help of status explains every word that it uses, within a terminal of 100 columns', () => {
  const { stdout } = ake(['status', '--help'])
  const states = ['synced', 'syncing', 'waiting', 'fed', 'refused', 'withdrawn', 'failing', 'tooLarge']
  const block = ['Upstream', 'Servers', 'Identity', 'Callers', 'Serving', 'Cluster', 'Store', 'Mirrored', 'Reboot']
  const words = [...block, ...states, 'HEARD', 'ASKED', 'standing', 'Next']
  for (const word of words) assert.match(stdout, new RegExp(`\\b${word}\\b`))
  const [, explained = ''] = stdout.split('\n\nIt asks')
  for (const line of explained.split('\n')) assert.ok(line.length <= 100, line)
})

test('version names ake, the API level and node', () => {
  const { status, stdout } = ake(['version'])
  assert.equal(status, 0)
  assert.match(stdout, /^ake \d+\.\d+\.\d+\nkubernetes API v1\.36\.\d+\nnode 26\..*\n$/)
})

test('what the operator got wrong is one sentence on stderr, exit 2', () => {
  const cases: [string[], RegExp][] = [
    [[], /no command given/],
    [['serv'], /unknown command "serv": did you mean "serve"\?/],
    [['toString'], /unknown command "toString"/],
    [['help', 'me'], /unknown command "me"/],
    [['version', 'now'], /takes no "now"/],
    [['serve', '--lisen', 'x'], /unknown option --lisen .*did you mean "listen"/],
    [['edge'], /"ake edge" needs --kubeconfig: give the kubeconfig/],
    [
      ['edge', '--kubeconfig', '/nonexistent'],
      /^ake: the kubeconfig \/nonexistent cannot be read \(no such file or directory\): check --kubeconfig\n$/,
    ],
    [['status', '--data', '/nonexistent'], /\/nonexistent has no admin\.kubeconfig.*--data/],
    [['hub'], /"ake hub" needs --state: give the hub's state/],
    [['hub', '--state', '/nonexistent'], /the API server is not known: give --kubeconfig, or run in a pod/],
    [['join', '--hub', 'wss://h', '--ca-hash', `sha256:${'0'.repeat(64)}`], /"ake join" needs --token/],
    [['join', '--hub', 'wss://h', '--token', '-'], /"ake join" needs --ca-hash.*anybody could be the hub/],
    [
      ['join', '--hub', 'wss://h', '--token', 'sesame'],
      /^(?!.*sesame).*the token is not written as one of "ake hub token"/,
    ],
    [['hub', 'run', '--state', 'x'], /or "ake hub issue NAME/],
    [['hub', 'issue', '--state', 'x'], /or "ake hub issue NAME/],
    [['hub', 'restored', '--out', 'x'], /unknown option --out of "ake hub restored"/],
    [['hub', 'issue', 'edge-1', '--out', 'x'], /"ake hub issue" needs --state: give the hub's state/],
    [
      ['hub', 'issue', 'edge-1', '--state', 'secret:ake', '--out', 'x'],
      /--state cannot be "secret:ake": give DIR\|secret/,
    ],
    [
      ['hub', 'issue', 'edge-1', '--state', 'secret:ake/hub', '--out', 'x'],
      /the API server is not known: give --kubeconfig/,
    ],
    [['hub', 'issue', 'Edge_1', '--state', '/nonexistent', '--out', 'x'], /"Edge_1" cannot be the name of a node/],
    [['demo', 'cutt'], /"ake demo" runs a demo and turns its switch: write "ake demo", "ake demo cut" or/],
    [['demo', 'cut', '/tmp', 'now'], /"ake demo cut" takes no "now"/],
    [['demo', 'mend', '--now'], /"ake demo mend" takes no "--now"/],
    [['serve', '--config', '/nonexistent.yaml'], /cannot read the configuration file \/nonexistent.yaml/],
  ]
  for (const [args, sentence] of cases) {
    const { status, stdout, stderr } = ake(args)
    assert.equal(status, 2, args.join(' '))
    assert.equal(stdout, '')
    assert.match(stderr, sentence)
    assert.match(stderr, /^ake: [^\n]+\n$/)
  }
})

test('hub issue: a credential that is its owner’s, of one authority, and never in the place of a file unasked', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ake-cli-'))
  try {
    const [state, out] = [join(folder, 'hub'), join(folder, 'edge-1.pem')]
    const issue = (...more: string[]) => ake(['hub', 'issue', 'edge-1', '--state', state, '--out', out, ...more])
    const first = issue()
    assert.deepEqual([first.status, first.stderr], [0, ''])
    assert.match(first.stdout, /^made a new hub's state in .*hub\.json: no edge and no other hub knows it yet\nwrote /)
    assert.match(
      first.stdout,
      /wrote .*edge-1\.pem: credential of the edge edge-1 at its hub, until 20\d\d-\d\d-\d\d\n$/,
    )
    assert.doesNotMatch(first.stdout, /PRIVATE/)
    assert.equal(statSync(out).mode & 0o777, 0o600)
    const text = readFileSync(out, 'utf8')
    const again = issue()
    assert.equal(again.status, 2)
    assert.match(
      again.stderr,
      /^ake: .*edge-1\.pem is there already: give another file with --out, or --force[^\n]*\n$/,
    )
    assert.equal(readFileSync(out, 'utf8'), text)
    const forced = issue('--force')
    assert.equal(forced.status, 0)
    assert.match(forced.stdout, /^wrote /)
    const [before, after] = [text, readFileSync(out, 'utf8')].map((one) => parseCredential(one, out))
    assert.equal(after?.ca, before?.ca)
    assert.notEqual(after?.pair.key, before?.pair.key)
    assert.equal(after?.certificate.subject, 'O=system:nodes\nCN=system:node:edge-1')
    assert.deepEqual(readdirSync(folder).sort(), ['edge-1.pem', 'hub'])
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('imports between files of ours are found by their paths: Node’s own search is asked for the first two alone', () => {
  // What is registered first is asked last.
  const counting = `import { registerHooks } from 'node:module'
    registerHooks({
      resolve(specifier, context, next) {
        if (specifier.startsWith('.')) console.error(specifier)
        return next(specifier, context)
      },
    })`
  const { status, stderr } = ake(['version'], {
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(counting)}`,
  })
  assert.equal(status, 0)
  assert.deepEqual(stderr.trim().split('\n'), ['./base/resolution.ts', './bare.ts', '../../package.json'])
})

test('files without their types and comments are kept for the next start, whole, and nothing is said of it', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ake-kept-'))
  try {
    const starts = [1, 2].map(() => ake(['version'], { NODE_COMPILE_CACHE: folder }))
    for (const { status, stdout, stderr } of starts)
      assert.deepEqual([status, stdout, stderr], [0, starts[0]?.stdout, ''])
    const kept = readdirSync(join(folder, 'bare'))
    assert.ok(kept.length > 0)
    for (const name of kept) assert.match(name, /^v[\d.]+(-\d+){3}$/)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('a cache folder that cannot be written is no trouble', () => {
  const { status, stderr } = ake(['version'], { XDG_CACHE_HOME: '/proc/nowhere' })
  assert.equal(status, 0)
  assert.equal(stderr, '')
})

/** More than a pipe or a socket between two processes holds. */
const longWhy = 'why '.repeat(500_000)

/** `ake status` of an edge that has much to tell, its output unread; gone when `body` has ended. */
async function withLongStatus(body: (child: ReturnType<typeof spawn>) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'ake-cli-'))
  const pki = await openPki({ folder: join(folder, 'pki'), hosts: ['127.0.0.1'], now: Date.now() })
  const edge = createServer(pki.serving, (_, response) => response.end(JSON.stringify({ why: longWhy })))
  edge.listen(0, '127.0.0.1')
  await once(edge, 'listening')
  await writeKubeconfig(
    join(folder, 'admin.kubeconfig'),
    `https://127.0.0.1:${(edge.address() as AddressInfo).port}`,
    pki,
  )
  const child = spawn(process.execPath, [main, 'status', '--data', folder, '--output', 'json'])
  try {
    await once(edge, 'request')
    await body(child)
  } finally {
    child.kill('SIGKILL')
    edge.closeAllConnections()
    edge.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

test('what a command prints is whole, however slowly it is read', () =>
  withLongStatus(async (child) => {
    const ended = once(child, 'exit')
    // Time to leave early, for a command that does.
    await Promise.race([ended, pause(1_000)])
    const text = await Array.fromAsync(child.stdout?.setEncoding('utf8') as AsyncIterable<string>)
    assert.equal(JSON.parse(text.join('')).why, longWhy)
    assert.equal((await ended)[0], 0)
  }))

test('a reader that leaves early ends a command quietly', () =>
  withLongStatus(async (child) => {
    const errors = Array.fromAsync(child.stderr?.setEncoding('utf8') as AsyncIterable<string>)
    const ended = once(child, 'exit')
    child.stdout?.once('data', () => child.stdout?.destroy())
    assert.deepEqual(await ended, [0, null])
    assert.deepEqual(await errors, [])
  }))
