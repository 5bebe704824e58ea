import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { test } from 'node:test'
import { createLog, type LogLevel } from './log.ts'

function recorded(level: LogLevel) {
  const lines: string[] = []
  const log = createLog({ level, write: (line) => void lines.push(line), now: () => Date.UTC(2026, 1, 3, 4, 5, 6, 7) })
  return { log, lines }
}

test('a line is time, level, event and fields', () => {
  const { log, lines } = recorded('info')
  log.info('list', { resource: 'pods', count: 3, cached: true, namespace: undefined })
  assert.deepEqual(lines, ['2026-02-03T04:05:06.007Z info list resource=pods count=3 cached=true\n'])
})

test('levels below the chosen one are left out', () => {
  const { log, lines } = recorded('warn')
  log.debug('a')
  log.info('b')
  log.warn('c')
  log.error('d')
  assert.deepEqual(
    lines.map((line) => line.split(' ')[2]),
    ['c\n', 'd\n'],
  )
})

test('values that could be mistaken are quoted, and none can forge a line', () => {
  const { log, lines } = recorded('info')
  log.info('x', { empty: '', spaced: 'a b', equals: 'a=b', forged: 'a\n2026 error fake', wide: 'a\u2028b\u0085c' })
  assert.equal(
    lines[0]?.slice(lines[0].indexOf('empty')),
    String.raw`empty="" spaced="a b" equals="a=b" forged="a\n2026 error fake" wide="a\u2028b\u0085c"`.concat('\n'),
  )
})

test('credentials are redacted by field name, the storage key is not', () => {
  const { log, lines } = recorded('info')
  const secrets = {
    token: 's1',
    Authorization: 's2',
    password: 's3',
    clientKey: 's4',
    tls_key: 's5',
    refreshToken: 's6',
  }
  log.with(secrets).info('x', { key: 'pods/default/web', keys: 4, monkey: 'visible' })
  assert.doesNotMatch(lines[0] ?? '', /s[1-6]/)
  assert.match(lines[0] ?? '', / key=pods\/default\/web keys=4 monkey=visible\n$/)
})

test('with() adds fields and a later value wins', () => {
  const { log, lines } = recorded('info')
  log.with({ conn: 1, verb: 'get' }).with({ verb: 'list' }).info('x', { conn: 2 })
  assert.match(lines[0] ?? '', /x conn=2 verb=list\n$/)
})

test('a writer that fails takes nobody down, and long values are cut', () => {
  const broken = createLog({
    level: 'info',
    write: () => {
      throw new Error('EPIPE')
    },
  })
  assert.doesNotThrow(() => broken.error('x'))
  const { log, lines } = recorded('info')
  log.info('x', { header: 'a'.repeat(100_000) })
  assert.ok((lines[0]?.length ?? 0) < 2200)
})

test('a full disk behind stderr does not take the server down', () => {
  const full = openSync('/dev/full', 'w')
  const source = `
    import { createLog } from ${JSON.stringify(new URL('log.ts', import.meta.url).href)}
    createLog({ level: 'info' }).error('store.refused')
    setTimeout(() => console.log('alive'), 10)`
  const { status, stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', source], {
    stdio: ['ignore', 'pipe', full],
    encoding: 'utf8',
  })
  closeSync(full)
  assert.deepEqual([status, stdout], [0, 'alive\n'])
})
