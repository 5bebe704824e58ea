/**
 * The story of an outage in the log, in a few lines whatever is mirrored: that the API server is gone and what is held; that it
 * is back, after how long, and how much was refused; that the mirror has caught up, and by how many changes.
 */
import { type Clock, sleep } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Interests } from '../mirror/interests.ts'
import type { MirroredInterest } from '../mirror/mirrored.ts'
import type { Reachability } from '../upstream/upstream.ts'

/** How often it looks whether everything has caught up: twice without a change is. */
const lookEveryMs = 1_000
/** After this time what has not caught up is named: it has another reason than the outage. */
const catchUpMsMax = 5 * 60_000

const unsettled: ReadonlySet<string> = new Set(['waiting', 'syncing', 'failing'])

type Parts = {
  readonly reachability: Reachability
  readonly interests: () => Interests
  /** Requests that were refused because the API server is away, so far. */
  readonly refused: () => number
  /** Since when the API server is away, by the wall's clock: an edge that starts during an outage is not its beginning. */
  readonly sinceMs: () => number
  readonly clock: Clock
  readonly log: Log
}

/** What was there when the line was cut. */
type LineCut = { readonly atMs: number; readonly refused: number; readonly positions: ReadonlyMap<string, number> }

export class Outage {
  readonly #parts: Parts
  #cut: LineCut | undefined
  /** Ends the wait for the mirror to catch up: it was cut again. */
  #waiting = new AbortController()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  async run(signal: AbortSignal): Promise<void> {
    const { reachability } = this.#parts
    const stop = reachability.observe((state) => {
      if (state === 'unreachable') this.#began()
      else if (state === 'reachable') this.#ended(signal)
    })
    if (reachability.state === 'unreachable') this.#began()
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    stop()
    this.#waiting.abort()
  }

  #began(): void {
    if (this.#cut !== undefined) return
    this.#waiting.abort()
    const { clock, log, refused } = this.#parts
    const sinceMs = this.#parts.sinceMs()
    const agoMs = Math.max(0, clock.now() - sinceMs)
    const held = this.#held()
    const all = [...this.#parts.interests().all]
    this.#cut = { atMs: clock.steady() - agoMs, refused: refused(), positions: positionsOf(held) }
    log.warn('outage.began', {
      since: new Date(sinceMs).toISOString(),
      held: held.length,
      objects: held.reduce((sum, { cache }) => sum + (cache?.size ?? 0), 0),
      notHeld: all.length - held.length,
    })
  }

  #ended(signal: AbortSignal): void {
    const cut = this.#cut
    if (cut === undefined) return
    const { clock, log, refused } = this.#parts
    this.#cut = undefined
    log.info('outage.over', { seconds: seconds(clock.steady() - cut.atMs), refused: refused() - cut.refused })
    this.#waiting = new AbortController()
    void this.#catchUp(cut, AbortSignal.any([signal, this.#waiting.signal]))
  }

  /** Until every interest that the API server does not refuse is followed again, and nothing comes any more. */
  async #catchUp(cut: LineCut, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#parts
    const backMs = clock.steady()
    let reachedMs = backMs
    let before = -1
    for (;;) {
      const held = this.#held()
      const behind = held.filter(
        ({ state }) =>
          // A credential is renewed, a right may never be granted.
          unsettled.has(state.kind) || (state.kind === 'refused' && state.code === 401),
      )
      const changes = changesSince(cut, held)
      if (behind.length === 0 && changes === before) {
        log.info('outage.caughtUp', { changes, interests: held.length, seconds: seconds(reachedMs - backMs) })
        return
      }
      if (clock.steady() - backMs > catchUpMsMax) {
        log.warn('outage.behind', { interests: behind.length, first: behind[0]?.interest.name, changes })
        return
      }
      before = changes
      reachedMs = clock.steady()
      await sleep(clock, lookEveryMs, signal)
      if (signal.aborted) return
    }
  }

  /** What can be read meanwhile. */
  #held(): MirroredInterest[] {
    return [...this.#parts.interests().all].filter(({ cache }) => cache !== undefined)
  }
}

function positionsOf(held: readonly MirroredInterest[]): Map<string, number> {
  return new Map(held.map(({ interest, cache }) => [interest.name, cache?.lastPosition ?? 0]))
}

/** Of what was there; one change is counted once, however many interests it concerns through a wider one. */
function changesSince({ positions }: LineCut, held: readonly MirroredInterest[]): number {
  let changes = 0
  for (const { interest, cache, fed } of held) {
    const had = positions.get(interest.name)
    if (had !== undefined && !fed) changes += Math.max(0, (cache?.lastPosition ?? 0) - had)
  }
  return changes
}

function seconds(ms: number): number {
  return Math.round(ms / 100) / 10
}
