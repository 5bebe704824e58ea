import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Holding } from './holding.ts'

const told = (allowed: boolean, now: number) => ({ allowed, reason: '', askedAt: now, now, nowMs: 1e12 + now })

test('room is taken from the caller that holds most, its least used decisions first', () => {
  const evicted: string[] = []
  const holding = new Holding({ decisionsMax: 100, perCallerMax: 80 }, (id, key) => evicted.push(`${id}/${key}`))
  for (let i = 0; i < 10; i++) holding.apply('small', `k${i}`, told(true, i))
  for (let i = 0; i < 500; i++) {
    holding.apply('greedy', `k${i}`, told(true, 10 + i))
    const first = holding.get('greedy', 'k0')
    if (first !== undefined) first.usedAt = 10 + i
  }
  assert.ok(holding.size <= 100)
  for (let i = 0; i < 10; i++) assert.ok(holding.get('small', `k${i}`))
  assert.ok(holding.get('greedy', 'k0'))
  assert.ok(holding.get('greedy', 'k499'))
  assert.equal(holding.get('greedy', 'k1'), undefined)
  assert.ok(evicted.length > 400 && !evicted.some((place) => place.startsWith('small/')))
  for (let i = 0; i < 200; i++) holding.apply(`c${i}`, 'k', told(true, 1000 + i))
  assert.ok(holding.size <= 100)
})

test('what is written down follows what was said, each once a day: either kind takes the other’s place, what only follows has no record', () => {
  const holding = new Holding({ decisionsMax: 100, perCallerMax: 80 }, () => {})
  assert.equal(holding.apply('c', 'k', told(false, 1)), 'record')
  assert.equal(holding.apply('c', 'k', told(false, 2)), 'none')
  assert.equal(holding.apply('c', 'k', told(true, 3)), 'replace')
  assert.equal(holding.apply('c', 'k', told(true, 4)), 'none')
  assert.equal(holding.apply('c', 'k', told(false, 5)), 'replace')
  assert.equal(holding.apply('c', 'k', { ...told(true, 6), askedAt: 5 }), 'none')
  assert.equal(holding.get('c', 'k')?.allowed, false)
  assert.equal(holding.apply('c', 'k', told(false, 86_400_006)), 'record')
  const follows = { ...told(false, 7), implied: true }
  assert.equal(holding.apply('c', 'wide', follows), 'none')
  assert.equal(holding.apply('c', 'wide', told(true, 8)), 'record')
  assert.equal(holding.apply('c', 'wide', { ...follows, askedAt: 9, now: 9 }), 'remove')
  assert.equal(holding.apply('c', 'wide', told(false, 10)), 'record')
  assert.deepEqual(
    holding.forget('c').map(([key, { allowed }]) => `${key} ${allowed}`),
    ['k false', 'wide false'],
  )
})
