/** Waiting for what real time brings: another thread, a socket, a process. */
import { setTimeout as pause } from 'node:timers/promises'

export type Waiting = {
  /** A guard against waiting for ever, and no statement about how fast anything is. */
  readonly withinMs?: number
  /** Where it is not given, a tenth of what has been waited for: a long wait does not take the processor from what it waits for. */
  readonly everyMs?: number
  readonly signal?: AbortSignal
}

const everyMsMin = 5
const everyMsMax = 50

/** Looks until it finds something, or that something holds, and answers with what was found. */
export async function until<Found>(
  look: () => Found | Promise<Found>,
  what = String(look),
  { withinMs = 20_000, everyMs, signal }: Waiting = {},
): Promise<Exclude<Found, false | undefined>> {
  const startedMs = performance.now()
  for (;;) {
    const found = await look()
    if (found !== false && found !== undefined) return found as Exclude<Found, false | undefined>
    const waitedMs = performance.now() - startedMs
    if (waitedMs > withinMs) throw new Error(`not within ${withinMs / 1_000} s: ${what}`)
    const pauseMs = everyMs ?? Math.min(everyMsMax, Math.max(everyMsMin, waitedMs / 10))
    await pause(pauseMs, undefined, signal === undefined ? {} : { signal })
  }
}
