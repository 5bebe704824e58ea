import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLog } from '../base/log.ts'
import { Misconfigured } from './misconfigured.ts'

function heard() {
  const lines: string[] = []
  const misconfigured = new Misconfigured({ log: createLog({ level: 'info', write: (line) => lines.push(line) }) })
  return { misconfigured, lines }
}

test('what is wrong is logged once per cause, and told until it is put right', () => {
  const { misconfigured, lines } = heard()
  for (let time = 0; time < 3; time++) misconfigured.tell('a', 'this: do that')
  misconfigured.tell('b', 'other: do this')
  assert.equal(lines.length, 2)
  assert.match(lines[0] ?? '', /edge\.misconfigured.*this: do that/)
  assert.deepEqual(misconfigured.all, ['this: do that', 'other: do this'])
  misconfigured.tell('a', undefined)
  assert.deepEqual(misconfigured.all, ['other: do this'])
  misconfigured.tell('a', 'this: do that')
  assert.equal(lines.length, 3, 'it has become wrong again')
})

test('a crowd of causes fills neither the log nor the status', () => {
  const { misconfigured, lines } = heard()
  for (let cause = 0; cause < 1000; cause++) misconfigured.tell(`certificate ${cause}`, `${cause}: do that`)
  assert.equal(misconfigured.all.length, 64)
  assert.equal(lines.length, 64)
  misconfigured.tell('certificate 1', 'changed: do that')
  assert.equal(lines.length, 65)
})
