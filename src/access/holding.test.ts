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

test('only allowances have records: a denial removes one, a denial of what was never allowed writes nothing', () => {
  const holding = new Holding({ decisionsMax: 100, perCallerMax: 80 }, () => {})
  assert.equal(holding.apply('c', 'k', told(false, 1)), 'none')
  assert.equal(holding.apply('c', 'k', told(true, 2)), 'record')
  assert.equal(holding.apply('c', 'k', told(true, 3)), 'none')
  assert.equal(holding.apply('c', 'k', told(false, 4)), 'remove')
  assert.equal(holding.apply('c', 'k', told(false, 5)), 'none')
  assert.equal(holding.apply('c', 'k', { ...told(true, 6), askedAt: 4 }), 'none')
  assert.equal(holding.get('c', 'k')?.allowed, false)
})
