/**
 * How long the event loop kept callbacks waiting, over the last minute or two: over the life of a process neither a bad hour nor
 * its end would be seen.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks'

/** Fine enough to see a stall that delays PING answers, coarse enough to cost nothing. */
const resolutionMs = 20
/** A reader that comes more rarely gets all since it came last. */
const windowMs = 60_000

/** As they are written: 99.9 / 100 is not 0.999. */
const quantiles = [
  ['quantile="0.5"', 50],
  ['quantile="0.99"', 99],
  ['quantile="0.999"', 99.9],
] as const

type Parts = {
  readonly seen?: { percentile(of: number): number; reset(): void }
  readonly nowMs?: () => number
}

export class LoopDelay {
  readonly #seen: NonNullable<Parts['seen']>
  readonly #nowMs: () => number
  #beganMs: number
  #before: readonly number[] = quantiles.map(() => 0)

  constructor({ seen = started(), nowMs = () => performance.now() }: Parts = {}) {
    this.#seen = seen
    this.#nowMs = nowMs
    this.#beganMs = nowMs()
  }

  /** In seconds: the longer of this window and the one before, so that a reader sees what another one read just now. */
  quantiles(): readonly (readonly [series: string, seconds: number])[] {
    const now = quantiles.map(([, of]) => this.#seen.percentile(of) / 1e9)
    const told = quantiles.map(
      ([series], at) => [series, Math.max(now[at] as number, this.#before[at] as number)] as const,
    )
    const nowMs = this.#nowMs()
    if (nowMs - this.#beganMs >= windowMs) {
      this.#before = now
      this.#beganMs = nowMs
      this.#seen.reset()
    }
    return told
  }
}

function started(): NonNullable<Parts['seen']> {
  const seen = monitorEventLoopDelay({ resolution: resolutionMs })
  seen.enable()
  return seen
}
