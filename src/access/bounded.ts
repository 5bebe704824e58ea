/**
 * A wait for the API server that ends within the limit of a read. Where the answer is late a probe has told meanwhile whether
 * the line is lost or only this one answer slow: a slow authenticator of one caller is no reason to doubt the line of all.
 */
import type { Clock } from '../base/clock.ts'
import { doubtWithin } from '../upstream/doubt.ts'
import type { Reachability } from '../upstream/upstream.ts'
import type { Flight } from './review.ts'
import { within } from './within.ts'

export type PendingReview = {
  /** The review that is waited for. */
  flight: Flight<unknown> | undefined
  /** Something broke off: resolves when a probe has told what that means. */
  probe(): Promise<void>
}

type Parts = { readonly clock: Clock; readonly reachability: Reachability }

/** `known` says what is known when the time is over. */
export function bounded<T>(
  { clock, reachability }: Parts,
  ask: (waiting: PendingReview) => Promise<T>,
  known: () => T,
): Promise<T> {
  const { limitMs } = reachability
  const isSent = () => waiting.flight?.sent === true
  const doubt = doubtWithin({ clock, reachability }, limitMs, isSent)
  const waiting: PendingReview = { flight: undefined, probe: doubt.probe }
  const late = () => {
    // One that still waits for its turn says nothing about the line.
    if (isSent() && !doubt.alive) {
      reachability.suspect(`a review was not answered within ${Math.round(limitMs)} ms`)
    }
    return known()
  }
  return within(clock, limitMs, ask(waiting).finally(doubt.over), late)
}
