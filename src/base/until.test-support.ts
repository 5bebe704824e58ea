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
const looksOfStillness = 20

/**
 * Looks until it finds the same so many times in a row. By looks and not by time: where a test had no processor for a while,
 * neither had what it looks at.
 */
export async function untilStill<Found>(look: () => Found, what = String(look), waiting: Waiting = {}): Promise<Found> {
  let last = look()
  let seen = 0
  await until(
    () => {
      const found = look()
      seen = found === last ? seen + 1 : 0
      last = found
      return seen >= looksOfStillness
    },
    what,
    { everyMs: everyMsMin, ...waiting },
  )
  return last
}

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
