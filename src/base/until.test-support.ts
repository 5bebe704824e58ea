/** Waiting for what real time brings: another thread, a socket, a process. */
import { setTimeout as pause } from 'node:timers/promises'

export type Waiting = {
  /** A guard against waiting for ever, and no statement about how fast anything is. */
  readonly withinMs?: number
  readonly everyMs?: number
  readonly signal?: AbortSignal
}

/** Looks until it finds something, or that something holds, and answers with what was found. */
export async function until<Found>(
  look: () => Found | Promise<Found>,
  what = String(look),
  { withinMs = 20_000, everyMs = 5, signal }: Waiting = {},
): Promise<Exclude<Found, false | undefined>> {
  const giveUpMs = performance.now() + withinMs
  for (;;) {
    const found = await look()
    if (found !== false && found !== undefined) return found as Exclude<Found, false | undefined>
    if (performance.now() > giveUpMs) throw new Error(`not within ${withinMs / 1_000} s: ${what}`)
    await pause(everyMs, undefined, signal === undefined ? {} : { signal })
  }
}
