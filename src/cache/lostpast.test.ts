import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeClock } from '../base/fakeclock.test-support.ts'
import { LostPast } from './lostpast.ts'
import { Progress } from './progress.ts'

/** A copy that was put back to version 50, having been at 100. */
function setBack() {
  const clock = fakeClock()
  const progress = new Progress(50)
  const past = new LostPast({ progress, lost: () => 100, clock })
  return { clock, progress, gone: (...versions: number[]) => versions.filter((version) => past.isGone(version)) }
}

test('[A3] a version of a lost past is told 410, also when the new past has grown beyond it', () => {
  const { progress, gone } = setBack()
  assert.deepEqual(gone(50, 51, 80, 100, 120), [51, 80, 100, 120])
  progress.advance(90)
  assert.deepEqual(gone(51, 80, 90, 100, 120), [51, 80, 100, 120], 'grown beyond 80')
  progress.advance(150)
  assert.deepEqual(gone(51, 80, 90, 100, 101, 120, 150, 160), [51, 80, 90, 100], 'grown beyond all of it')
})

test('[A2] a client of the new past goes on at a version it was given lately', () => {
  const { clock, progress, gone } = setBack()
  progress.advance(60)
  progress.advance(70)
  clock.advance(60_000)
  assert.deepEqual(gone(50, 55, 60, 70), [55])
  clock.advance(60_000)
  assert.deepEqual(gone(50, 55, 60, 70), [50, 55, 60], 'the version the copy is at is always the present’s')
})

test('a copy that was never put back, or began beyond what was lost, waits for what lies ahead', () => {
  for (const [version, lost] of [
    [50, 0],
    [150, 100],
  ] as const) {
    const past = new LostPast({ progress: new Progress(version), lost: () => lost, clock: fakeClock() })
    assert.equal(past.isGone(version + 10), false)
    assert.equal(past.isGone(version), false)
  }
})

test('[A2] a restart while the new past grows forgets what was given out, and lets clients go on for as long as they may take', () => {
  const clock = fakeClock()
  const past = new LostPast({ progress: new Progress(70), lost: () => 100, clock, isLoaded: true })
  assert.equal(past.isGone(60), false)
  assert.equal(past.isGone(80), true)
  clock.advance(120_000)
  assert.equal(past.isGone(60), true)
  assert.equal(past.isGone(70), false)
})
