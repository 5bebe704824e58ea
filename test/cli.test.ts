/** The command line as a process: what an operator sees, on which stream, with which exit code. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

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
  for (const command of ['serve', 'edge', 'status', 'demo', 'version', 'help'])
    assert.match(overview.stdout, new RegExp(`^ {2}${command} `, 'm'))
  const serve = ake(['serve', '--help'])
  assert.equal(serve.status, 0)
  assert.match(serve.stdout, /usage: ake serve \[options\]\n\n {2}--listen HOST:PORT /)
  assert.equal(ake(['help', 'serve']).stdout, serve.stdout)
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
    [['status', '--data', '/nonexistent'], /\/nonexistent has no admin\.kubeconfig.*--data/],
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

test('a cache folder that cannot be written is no trouble', () => {
  const { status, stderr } = ake(['version'], { XDG_CACHE_HOME: '/proc/nowhere' })
  assert.equal(status, 0)
  assert.equal(stderr, '')
})
