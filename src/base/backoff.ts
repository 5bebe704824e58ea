/** How long to wait before the next attempt: doubling up to a limit, with jitter so that a fleet does not come back in step. */

export type Backoff = {
  /** The next wait; each one is longer than the last until the limit. */
  next(): number
  /** It worked: the next wait is the first again. */
  reset(): void
}

type Parts = { readonly firstMs: number; readonly maxMs: number; readonly random?: () => number }

/** The wait after so many failures in a row: between a half and the whole of its step. */
export function backoffMs(failures: number, { firstMs, maxMs, random = Math.random }: Parts): number {
  return Math.min(maxMs, firstMs * 2 ** (failures - 1)) * (0.5 + random() / 2)
}

export function backoff(parts: Parts): Backoff {
  let failures = 0
  return {
    next: () => backoffMs(++failures, parts),
    reset() {
      failures = 0
    },
  }
}
