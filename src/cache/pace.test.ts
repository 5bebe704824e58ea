import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeClock } from '../base/fakeclock.test-support.ts'
import { Pace } from './pace.ts'

/** `receivers` of which each hears of every event; what each was handed, by time. */
function stage(receivers: number) {
  const clock = fakeClock()
  const pace = new Pace(clock)
  const start = clock.steady()
  const got: string[] = []
  const held = Array.from({ length: receivers }, () => ({ queued: 0, release: () => {} }))
  for (const one of held) {
    one.release = () => {
      got.push(`${clock.steady() - start}:${one.queued}`)
      one.queued = 0
    }
  }
  const event = () => {
    pace.begin()
    for (const one of held) {
      one.queued++
      if (pace.holding) pace.hold(one)
      else {
        pace.delivered()
        one.release()
      }
    }
    pace.end()
  }
  const handedOut = () => {
    const counted = new Map<string, number>()
    for (const one of got.splice(0)) counted.set(one, (counted.get(one) ?? 0) + 1)
    return Object.fromEntries(counted)
  }
  return { clock, event, handedOut }
}

test('where few watch nothing waits, however much happens', () => {
  const { event, handedOut } = stage(10)
  for (let i = 0; i < 20; i++) event()
  assert.deepEqual(handedOut(), { '0:1': 200 })
})

test('many streams at a high rate are written to once a window, all of them at the same times', () => {
  const { clock, event, handedOut } = stage(1_000)
  event()
  assert.deepEqual(handedOut(), { '0:1': 1_000 })
  for (let i = 0; i < 5; i++) {
    clock.advance(10)
    event()
  }
  clock.advance(20)
  assert.deepEqual(handedOut(), { '20:1': 1_000, '40:2': 1_000, '60:2': 1_000 })
})

test('after a quiet while the next event goes out at once', () => {
  const { clock, event, handedOut } = stage(1_000)
  event()
  clock.advance(100)
  event()
  assert.deepEqual(handedOut(), { '0:1': 1_000, '100:1': 1_000 })
})
