/**
 * Says when a credential nears its end, and that it has ended: the edge's own, its callers' and what it shows its clients. A
 * week, a day and an hour before, once each, but not before it should have been renewed; one that is renewed meanwhile is another.
 */
import { type Clock, sleep } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import { gauge, seriesOf } from '../base/metrics.ts'
import { humanDuration } from '../kube/table/duration.ts'
import type { CredentialLife } from '../upstream/credential.ts'
import { nearEndAtMs } from './nearend.ts'

const hourMs = 3_600_000
/** How long before the end it is said, the last time when it has come. */
const stagesMs = [7 * 24 * hourMs, 24 * hourMs, hourMs, 0]
/** Often enough for an hour's warning, and for a clock that is set. */
const lookEveryMs = 60_000

type Parts = { readonly credentials: () => readonly CredentialLife[]; readonly clock: Clock; readonly log: Log }

export class Expiry {
  readonly #parts: Parts
  /** How many stages were told of each, by what it is and when it ends; those of old ones are forgotten. */
  #told = new Map<string, number>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.look()
      await sleep(this.#parts.clock, lookEveryMs, signal)
    }
  }

  look(): void {
    const { credentials, clock, log } = this.#parts
    const nowMs = clock.now()
    const told = new Map<string, number>()
    for (const { use, name, beganAtMs, endsAtMs } of credentials()) {
      const nearAtMs = nearEndAtMs({ beganAtMs, endsAtMs })
      if (endsAtMs === undefined || nearAtMs === undefined) continue
      const key = `${use} ${name} ${endsAtMs}`
      const before = this.#told.get(key) ?? 0
      const reached = nowMs < nearAtMs ? 0 : stagesMs.filter((stageMs) => endsAtMs - nowMs <= stageMs).length
      told.set(key, Math.max(before, reached))
      if (reached <= before) continue
      const fields = { of: use, name, at: new Date(endsAtMs).toISOString() }
      if (endsAtMs <= nowMs) log.error('credential.expired', fields)
      else log.warn('credential.expires', { ...fields, within: humanDuration(endsAtMs - nowMs) })
    }
    this.#told = told
  }
}

/** For /metrics. */
export function expiryFigures(credentials: readonly CredentialLife[], nowMs: number): string[] {
  const all = credentials.map((life) => ({ ...life, series: seriesOf({ use: life.use, name: life.name ?? '' }) }))
  const ends = all.flatMap(({ series, endsAtMs }) =>
    endsAtMs === undefined ? [] : [[series, endsAtMs / 1000] as const],
  )
  const near = all.flatMap(({ series, ...life }) => {
    const nearAtMs = nearEndAtMs(life)
    return nearAtMs === undefined ? [] : [[series, nearAtMs / 1000] as const]
  })
  const valid = all.map(({ series, endsAtMs = Number.POSITIVE_INFINITY, missing }) => {
    return [series, missing === undefined && endsAtMs > nowMs ? 1 : 0] as const
  })
  return [
    gauge('ake_credential_expiry_timestamp_seconds', 'When a credential ends.', ends),
    gauge('ake_credential_renew_by_timestamp_seconds', 'When it should have been renewed at the latest.', near),
    gauge('ake_credential_valid', 'Whether it can be used now.', valid),
  ]
}
