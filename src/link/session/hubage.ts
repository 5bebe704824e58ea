/** How fresh what an edge is told is, as the answer to its ping says it: one interest that does not come says nothing of the others. */
import { entriesMax } from '../frames/frames.ts'
import type { HubInterest } from './hubinterest.ts'
import type { SessionLimits } from './limits.ts'

/** As good as unknown: weeks. */
const ageMsMax = 2 ** 31

export function ageOf(
  interests: Iterable<HubInterest>,
  ageMsOf: (source: number) => number,
  { staleMs }: SessionLimits,
): { readonly ageMs: number; readonly stale: readonly number[] } {
  const stale: number[] = []
  let ageMs = 0
  for (const { number, phase, isBusy, view } of interests) {
    if (phase !== 'live' || view === undefined) continue
    const age = isBusy ? Number.POSITIVE_INFINITY : Math.ceil(ageMsOf(view.source))
    if (age > staleMs) stale.push(number)
    else ageMs = Math.max(ageMs, age)
  }
  return stale.length > entriesMax ? { ageMs: ageMsMax, stale: [] } : { ageMs, stale }
}
