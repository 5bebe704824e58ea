/** How long to wait before the next attempt: doubling up to a limit, with jitter so that a fleet does not come back in step. */

export type Backoff = {
  /** The next wait; each one is longer than the last until the limit. */
  next(): number
  /** It worked: the next wait is the first again. */
  reset(): void
}

type Parts = { readonly firstMs: number; readonly maxMs: number; readonly random?: () => number }

/** Each wait lies between a half and the whole of its step. */
export function backoff({ firstMs, maxMs, random = Math.random }: Parts): Backoff {
  let stepMs = firstMs
  return {
    next() {
      const waitMs = stepMs * (0.5 + random() / 2)
      stepMs = Math.min(maxMs, stepMs * 2)
      return waitMs
    },
    reset() {
      stepMs = firstMs
    },
  }
}
