/**
 * Time as a part that is passed in: whatever waits or dates takes a `Clock`, so that tests decide what time it is.
 */

export interface Clock {
  /** Milliseconds since 1970. */
  now(): number
  /** Milliseconds since some moment, untouched when an operator sets the clock: for how long ago something was. */
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
    if (finite(ms) > timerMsMax) return setLongTimer(ms, fn)
    // Each open watch has one: it is held by as little as possible.
    const timer = setTimeout(fn, ms)
    return () => clearTimeout(timer)
  },
}

function setLongTimer(ms: number, fn: () => void): () => void {
  const wait = (leftMs: number) => {
    timer = setTimeout(() => (leftMs > timerMsMax ? wait(leftMs - timerMsMax) : fn()), Math.min(leftMs, timerMsMax))
  }
  let timer: NodeJS.Timeout | undefined
  wait(ms)
  return () => clearTimeout(timer)
}

/** A wait without end, or that is no number, is a mistake of the caller that worked it out: it is seen where it is made. */
export function finite(ms: number): number {
  if (!Number.isFinite(ms)) throw new RangeError(`a timer cannot wait for ${ms} ms`)
  return ms
}

/**
 * Resolves after the time or at the signal, whichever is first. Beside the interface and not in it: the clock of a test
 * needs no more than timers.
 */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) return resolve()
    const end = () => {
      cancel()
      signal?.removeEventListener('abort', end)
      resolve()
    }
    const cancel = clock.setTimer(ms, end)
    signal?.addEventListener('abort', end)
  })
}
