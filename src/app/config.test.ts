import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { isNear, readConfig, UsageError } from './config.ts'

const serve = (args: string[], env: Record<string, string> = {}) => readConfig('serve', { args, env })
const refuses = (args: string[], sentence: RegExp, env: Record<string, string> = {}) =>
  assert.rejects(serve(args, env), (error) => {
    assert.ok(error instanceof UsageError)
    assert.match(error.message, sentence)
    assert.doesNotMatch(error.message, /\n/)
    return true
  })

function yaml(content: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'ake-config-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'ake.yaml')
  writeFileSync(file, content)
  return file
}

test('defaults, each in its type', async () => {
  assert.deepEqual(await serve([]), {
    listen: { host: '127.0.0.1', port: 10005 },
    data: resolve('ake-data'),
    history: 128 * 1024 * 1024,
    logLevel: 'info',
  })
  assert.deepEqual(await readConfig('demo', { args: [], env: {} }), {
    listen: { host: '127.0.0.1', port: 0 },
    logLevel: 'warn',
  })
})

test('a flag wins over a variable, that over the file, that over the default', async () => {
  const file = yaml('listen: 127.0.0.1:1\nhistory: 1Mi\ndata: /file\n# comment\n')
  const config = await serve(['--config', file, '--listen=[::1]:3'], { AKE_LISTEN: '127.0.0.1:2', AKE_HISTORY: '2Gi' })
  assert.deepEqual(config, {
    listen: { host: '::1', port: 3 },
    history: 2 * 1024 ** 3,
    data: '/file',
    logLevel: 'info',
  })
})

test('the file may be named by a variable, a number may be bytes, and an empty variable is none', async () => {
  const file = yaml('history: 65536\nlog-level: debug\n')
  const config = await serve([], { AKE_CONFIG: file, AKE_LISTEN: '' })
  assert.equal(config.history, 65536)
  assert.equal(config.logLevel, 'debug')
  assert.equal(config.listen.port, 10005)
})

test('a file with nothing but comments sets nothing', async () => {
  assert.equal((await serve(['--config', yaml('# later\n\n')])).logLevel, 'info')
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
