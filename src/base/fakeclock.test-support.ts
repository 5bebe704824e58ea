/** A clock that a test moves. */
import { type Clock, finite } from './clock.ts'

export interface FakeClock extends Clock {
  /** Moves time forward and runs every timer that falls due on the way, in the order of their times. */
  advance(ms: number): void
  /** An operator sets the clock: only `now` changes. */
  jump(ms: number): void
  /** How many timers wait: a test can see that nothing was left behind. */
  pending(): number
}

export function fakeClock(startMs = Date.UTC(2026, 0, 1)): FakeClock {
  let now = startMs
  let skew = 0
  const timers = new Set<{ at: number; fn: () => void }>()
  const earliest = (until: number) => {
    let found: { at: number; fn: () => void } | undefined
    // Strictly less: timers of the same instant run in the order they were set.
    for (const timer of timers) if (timer.at <= until && (found === undefined || timer.at < found.at)) found = timer
    return found
  }
  return {
    now: () => now + skew,
    steady: () => now,
    setTimer(ms, fn) {
      const timer = { at: now + Math.max(0, finite(ms)), fn }
      timers.add(timer)
      return () => void timers.delete(timer)
    },
    advance(ms) {
      const until = now + ms
      for (let timer = earliest(until); timer !== undefined; timer = earliest(until)) {
        timers.delete(timer)
        now = Math.max(now, timer.at)
        timer.fn()
      }
      now = until
    },
    jump(ms) {
      skew += ms
    },
    pending: () => timers.size,
  }
}
