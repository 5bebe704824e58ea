import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { mock, test } from 'node:test'
import { sleep, systemClock } from './clock.ts'
import { fakeClock } from './fakeclock.test-support.ts'

test('advance runs due timers in the order of their times, each at its own time', () => {
  const clock = fakeClock(1000)
  const seen: string[] = []
  const note = (name: string) => () => void seen.push(`${name}@${clock.now()}`)
  clock.setTimer(30, note('c'))
  clock.setTimer(10, note('a'))
  clock.setTimer(10, note('b'))
  clock.setTimer(31, note('later'))
  clock.advance(30)
  assert.deepEqual(seen, ['a@1010', 'b@1010', 'c@1030'])
  assert.equal(clock.now(), 1030)
  assert.equal(clock.pending(), 1)
})

test('a timer set by a timer runs in the same advance if it falls due', () => {
  const clock = fakeClock(0)
  const seen: number[] = []
  const tick = () => {
    seen.push(clock.now())
    clock.setTimer(10, tick)
  }
  clock.setTimer(10, tick)
  clock.advance(35)
  assert.deepEqual(seen, [10, 20, 30])
})

test('a cancelled timer never runs', () => {
  const clock = fakeClock()
  const cancel = clock.setTimer(5, () => assert.fail('cancelled'))
  cancel()
  cancel()
  clock.advance(10)
  assert.equal(clock.pending(), 0)
})

test('a clock that is set moves neither timers nor how long ago something was', () => {
  const clock = fakeClock(1000)
  let fired = false
  clock.setTimer(10, () => {
    fired = true
  })
  const before = clock.steady()
  clock.jump(-500)
  assert.equal(clock.now(), 500)
  clock.advance(10)
  assert.equal(clock.steady() - before, 10)
  assert.equal(clock.now(), 510)
  assert.ok(fired)
})

test('the system clock fires and cancels', async () => {
  const cancel = systemClock.setTimer(1, () => assert.fail('cancelled'))
  cancel()
  await new Promise<void>((resolve) => void systemClock.setTimer(2, resolve))
  assert.ok(Math.abs(systemClock.now() - Date.now()) < 1000)
})

test('[L4] a timer that is not finite is refused, by the clock of tests too', () => {
  for (const clock of [systemClock, fakeClock()]) {
    for (const ms of [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NaN]) {
      assert.throws(() => clock.setTimer(ms, () => assert.fail('it fired')), RangeError)
    }
  }
})

test('[L4] a timer longer than Node can hold waits all the same, and is cancelled all the same', () => {
  mock.timers.enable({ apis: ['setTimeout'] })
  try {
    const halfMs = 2 ** 31 - 1
    let fired = 0
    systemClock.setTimer(2 * halfMs + 5, () => fired++)
    const cancel = systemClock.setTimer(2 * halfMs + 5, () => assert.fail('cancelled'))
    mock.timers.tick(halfMs)
    mock.timers.tick(halfMs)
    assert.equal(fired, 0)
    cancel()
    mock.timers.tick(5)
    assert.equal(fired, 1)
  } finally {
    mock.timers.reset()
  }
})

test('[L4] Node never sees a delay it would turn into one of a millisecond', (t) => {
  const delays: (number | undefined)[] = []
  const setTimeoutOf = globalThis.setTimeout
  t.mock.method(globalThis, 'setTimeout', (fn: () => void, ms?: number) => {
    delays.push(ms)
    return setTimeoutOf(fn, 0)
  })
  systemClock.setTimer(1e12, () => {})()
  assert.deepEqual(delays, [2 ** 31 - 1])
})

test('a sleep ends with its time or with its signal, and leaves neither a timer nor a listener', async () => {
  const clock = fakeClock()
  const ending = new AbortController()
  const { signal } = ending
  const listening = () => getEventListeners(signal, 'abort').length
  const slept = sleep(clock, 10, signal)
  assert.deepEqual([clock.pending(), listening()], [1, 1])
  clock.advance(10)
  await slept
  assert.deepEqual([clock.pending(), listening()], [0, 0])
  const cut = sleep(clock, 10, signal)
  ending.abort()
  await cut
  assert.deepEqual([clock.pending(), listening()], [0, 0])
  await sleep(clock, 10, signal)
  assert.equal(clock.pending(), 0)
})
