/** What goes where interests hold the same. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { held, limits, list, many, node } from './candidates.test-support.ts'
import { type EvictionCandidate, overweight, roomFor } from './eviction.ts'

describe('what goes for bytes that several hold', () => {
  const six = (bytes: number, more: Partial<EvictionCandidate> = {}) => {
    const shared = [{ bytes, holders: 6 }]
    return many(6, () => ({ shared, ...more }))
  }
  const goes = (all: readonly EvictionCandidate[], heldBytes: number) =>
    overweight(all, limits, heldBytes).map((one) => one.name)
  const allSix = ['i0', 'i1', 'i2', 'i3', 'i4', 'i5']

  test('they weigh together what one of them does: whose end frees nothing stays', () => {
    const theirs = [
      held('second', { callers: ['bob'], bytes: 200, askedAtMs: 8 }),
      held('first', { callers: ['bob'], bytes: 300, askedAtMs: 9 }),
    ]
    assert.deepEqual(goes([...six(300), held('own', { isOwn: true, bytes: 400 }), ...theirs], 1_200), ['second'])
    const own = held('own', { isOwn: true, shared: [{ bytes: 300, holders: 7 }] })
    assert.deepEqual(goes([own, ...six(0).map((one) => ({ ...one, shared: own.shared }))], 1_300), [], 'nothing helps')
  })

  test('all of them go where only that helps', () => {
    assert.deepEqual(goes([...six(700), held('own', { isOwn: true, bytes: 400 })], 1_100), allSix)
    assert.deepEqual(goes([...six(600), held('bobs', { callers: ['bob'], bytes: 600, askedAtMs: 9 })], 1_200), allSix)
    const idle = six(600, { unaskedMs: limits.idleMsMin })
    assert.deepEqual(goes([...idle, held('bobs', { callers: ['bob'], bytes: 600 })], 1_200), allSix)
  })

  test('they make room for a newcomer only where all of them go for it', () => {
    assert.equal(roomFor(six(900), list('carol'), limits, 900), 100)
    assert.equal(roomFor(six(900, { unaskedMs: limits.idleMsMin }), list('carol'), limits, 900), 1_000)
    assert.equal(roomFor(six(900), node, limits, 900), 1_000)
  })

  test('a newcomer that brings what others hold weighs what it brings besides', () => {
    const shared = [{ bytes: 500, holders: 2 }]
    const present = held('present', { callers: ['bob'], shared })
    const newcomer = (bytes: number) => held('new', { callers: ['carol'], shared, bytes })
    const old = held('old', { callers: ['dave'], bytes: 450, unaskedMs: limits.idleMsMin })
    const gone = (bytes: number) => {
      const come = newcomer(bytes)
      return overweight([present, old, come], limits, 950 + bytes, come).map((one) => one.name)
    }
    assert.deepEqual(gone(50), [])
    assert.deepEqual(gone(100), ['old'])
    assert.deepEqual(gone(550), ['new'], 'it would not fit')
  })
})
