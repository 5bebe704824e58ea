import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LoopDelay } from './loopdelay.ts'

/** A loop whose delay is what the test says, and the highest of it since the last reset. */
function opened() {
  let ms = 0
  let worst = 0
  const seen = {
    percentile: () => worst * 1e6,
    reset: () => {
      worst = 0
    },
  }
  const delay = new LoopDelay({ seen, nowMs: () => ms })
  return {
    stall: (forMs: number) => {
      worst = Math.max(worst, forMs)
    },
    told: (afterMs: number) => {
      ms += afterMs
      return delay.quantiles().map(([, seconds]) => seconds)
    },
    delay,
  }
}

test('a stall of the loop is told for a minute or two, to every reader, and then no more', () => {
  const { stall, told, delay } = opened()
  assert.deepEqual(
    delay.quantiles().map(([series]) => series),
    ['quantile="0.5"', 'quantile="0.99"', 'quantile="0.999"'],
  )
  stall(200)
  for (const afterMs of [1_000, 30_000, 29_000, 1_000, 58_000]) assert.deepEqual(told(afterMs), [0.2, 0.2, 0.2])
  stall(50)
  assert.deepEqual(told(1_000), [0.2, 0.2, 0.2], 'the last of the window after it')
  assert.deepEqual(told(1_000), [0.05, 0.05, 0.05])
  told(60_000)
  assert.deepEqual(told(1_000), [0, 0, 0])
})

test('one who reads every five minutes is told of all five', () => {
  const { stall, told } = opened()
  told(300_000)
  stall(200)
  assert.deepEqual(told(300_000), [0.2, 0.2, 0.2])
})
