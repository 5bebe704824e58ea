/** What is known of a caller: whom its credential stands for, since when, and until when that counts. */
import type { Caller } from '../kube/caller.ts'
import type { Identity } from '../upstream/upstream.ts'
import { idOf, parseCaller } from './identity.ts'
import { readClaims } from './jwt.ts'
import type { TrustedTime } from './trustedtime.ts'

/** A caller that is known, with the key of its decisions. */
export type KnownCaller = {
  /** Equal for every credential of the same caller. */
  readonly id: string
  readonly caller: Caller
  /** Until when the credential counts without asking. */
  readonly untilMs: number
  /** When it was asked or verified, of the last time that the answer was yes, by the steady clock; -Infinity for what was loaded. */
  confirmedAt: number
  /** When it was last tried to be verified here. */
  judgedAt: number
  /** The last yes was not the API server's. */
  isVerified: boolean
  usedAt: number
}

/** A caller whom no review has to confirm. */
export function certainCaller(caller: Caller): KnownCaller {
  const always = Number.POSITIVE_INFINITY
  return {
    id: idOf(caller),
    caller,
    untilMs: always,
    confirmedAt: always,
    judgedAt: always,
    isVerified: false,
    usedAt: 0,
  }
}

/** What the API server accepted may tell its own end; otherwise it counts for a while. */
export function lifetimeOf(
  identity: Identity,
  { latest, opaqueMsMax }: { readonly latest: TrustedTime; readonly opaqueMsMax: () => number },
): number {
  const claims = identity.kind === 'token' ? readClaims(identity.token) : undefined
  if (claims?.issuedMs !== undefined) latest.atLeast(claims.issuedMs)
  return claims?.expiresMs ?? latest.nowMs() + opaqueMsMax()
}

/** Left to be reviewed before its first use while the API server can be asked. */
export function revivedCaller(value: Buffer, steadyNow: number, nowMs: number): KnownCaller | undefined {
  const record = parseCaller(value)
  if (record === undefined) return undefined
  const { caller, untilMs, keptMs } = record
  const usedAt = steadyNow - Math.max(1, nowMs - keptMs)
  const never = Number.NEGATIVE_INFINITY
  return { id: idOf(caller), caller, untilMs, confirmedAt: never, judgedAt: never, isVerified: false, usedAt }
}
