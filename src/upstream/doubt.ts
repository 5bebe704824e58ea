/**
 * Tells what is slow by itself from a line that is lost. A reader that waits with a limit for one answer asks for a probe at
 * half of it: a probe takes a quarter of what reads may wait at most, so it has answered before the limit is over if the line
 * is good.
 */
import type { Clock } from '../base/clock.ts'
import type { Reachability } from './upstream.ts'

export type Doubt = {
  /** Whether a probe was answered meanwhile. */
  readonly alive: boolean
  /** Asks for one now. */
  probe(): Promise<void>
  /** The answer is there. */
  over(): void
}

type Parts = { readonly clock: Clock; readonly reachability: Reachability }

/** `isAsked`: whether anything is under way at all. */
export function doubtWithin({ clock, reachability }: Parts, limitMs: number, isAsked = () => true): Doubt {
  let alive = false
  const probe = async () => {
    alive = await reachability.probe()
  }
  const over = clock.setTimer(limitMs / 2, () => {
    if (isAsked()) void probe()
  })
  return {
    get alive() {
      return alive
    },
    probe,
    over,
  }
}
