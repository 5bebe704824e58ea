import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeClock } from './fakeclock.test-support.ts'
import { createLog } from './log.ts'
import { Warnings } from './warnings.ts'

function opened(limits = {}) {
  const lines: string[] = []
  const clock = fakeClock()
  const log = createLog({ level: 'debug', write: (line) => void lines.push(line.replace(/^\S+ /, '').trimEnd()) })
  const warnings = new Warnings({ clock, log, kinds: ['interest', 'request'], limits })
  const warn = (who: string, what: string) =>
    warnings.warn('edge.refused', { who, kind: 'interest', same: what }, { edge: who, what })
  return { lines, clock, warnings, warn, told: () => lines.filter((line) => line.startsWith('warn')) }
}

test('each thing is told once a minute, and the next line says how many were left out', () => {
  const { warn, told, lines, clock } = opened()
  for (let at = 0; at < 5; at++) warn('n1', 'v1/secrets')
  warn('n1', 'v1/pods')
  warn('n2', 'v1/secrets')
  assert.deepEqual(told(), [
    'warn edge.refused edge=n1 what=v1/secrets',
    'warn edge.refused edge=n1 what=v1/pods unsaid=4',
    'warn edge.refused edge=n2 what=v1/secrets',
  ])
  assert.equal(lines.length, 7)
  clock.advance(60_000)
  warn('n1', 'v1/secrets')
  assert.equal(told().length, 4)
})

test('a party that brings about one after the other fills its own share of the log, and no more', () => {
  const { warn, told, clock, warnings } = opened({ burst: 10 })
  for (let at = 0; at < 10_000; at++) warn('n1', `v1/secrets?${at}`)
  assert.equal(told().length, 10)
  warn('n2', 'v1/secrets')
  assert.equal(told().length, 11)
  clock.advance(60_000)
  warn('n1', 'v1/pods')
  warn('n1', 'v1/nodes')
  assert.match(told().at(-1) ?? '', /what=v1\/pods unsaid=9990$/)
  const [figures] = warnings.figures('ake_x_total', 'What.')
  assert.match(figures ?? '', /^ake_x_total\{kind="interest"\} 10003$/m)
  assert.match(figures ?? '', /^ake_x_total\{kind="request"\} 0$/m)
})

test('all parties together have a limit, and those that are forgotten first are those heard of longest ago', () => {
  const { warn, told, clock } = opened({ allBurst: 20, partiesMax: 4 })
  for (let at = 0; at < 100; at++) warn(`n${at}`, 'v1/secrets')
  assert.equal(told().length, 20)
  clock.advance(1_000)
  warn('n99', 'v1/secrets')
  assert.equal(told().length, 20)
  warn('n0', 'v1/secrets')
  assert.equal(told().length, 21)
})
