/**
 * Time as a part that is passed in: whatever waits or dates takes a `Clock`, so that tests decide what time it is.
 */

export interface Clock {
  /** Milliseconds since 1970. */
  now(): number
  /** Milliseconds since some moment, untouched by whoever sets the clock: for how long ago something was. */
  steady(): number
  /** Calls `fn` once after `ms`, at once if that is negative; the returned function cancels it. Throws if `ms` is not finite. */
  setTimer(ms: number, fn: () => void): () => void
}

/** The longest wait one timer of Node holds, in ms: what is longer it makes a wait of 1 ms, and a loop of that. */
const timerMsMax = 2 ** 31 - 1

export const systemClock: Clock = {
  now: () => Date.now(),
  steady: () => performance.now(),
  setTimer(ms, fn) {
    const wait = (leftMs: number) => {
      timer = setTimeout(() => (leftMs > timerMsMax ? wait(leftMs - timerMsMax) : fn()), Math.min(leftMs, timerMsMax))
    }
    let timer: NodeJS.Timeout | undefined
    wait(finite(ms))
    return () => clearTimeout(timer)
  },
}

/** A wait without end, or that is no number, is a mistake of whoever worked it out: it is seen where it is made. */
function finite(ms: number): number {
  if (!Number.isFinite(ms)) throw new RangeError(`a timer cannot wait for ${ms} ms`)
  return ms
}

export interface FakeClock extends Clock {
  /** Moves time forward and runs every timer that falls due on the way, in the order of their times. */
  advance(ms: number): void
  /** Somebody sets the clock: only `now` changes. */
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
