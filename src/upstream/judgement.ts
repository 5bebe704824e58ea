/**
 * Whether the cloud can be reached, as a pure judgement from what was seen: probes decide, live traffic warns early. One
 * failure makes it suspect, so that no read waits; a second one, or a clear refusal, makes it unreachable; a good probe
 * brings it back, and a link that keeps failing has to show several in a row.
 */
import { answersWell, type ReachabilityState } from './upstream.ts'

export type Sign =
  /** A probe was answered by a live API server; `note` says what was odd about the answer. `refusesEdge`: it was 401. */
  | { readonly kind: 'probe answered'; readonly rttMs: number; readonly note?: string; readonly refusesEdge?: boolean }
  | {
      readonly kind: 'probe failed'
      readonly why: string
      /** Refused, reset, or told that it is not ready: no second opinion is needed. */
      readonly certain: boolean
      /** The connection gave other signs of life meanwhile: slow, not gone. */
      readonly alive: boolean
    }
  /** A request could not be sent, a connection broke or died, a read hit its limit, a load balancer answered. */
  | { readonly kind: 'traffic failed'; readonly why: string }

export type Judgement = {
  readonly state: ReachabilityState
  readonly why: string
  /** Since when, by the clock of the wall. */
  readonly sinceMs: number
  /** Probes that failed, and that were answered, in a row. */
  readonly failed: number
  readonly answered: number
  /** When it stopped being reachable, lately, by the steady clock. */
  readonly losses: readonly number[]
  readonly rttMs: number | undefined
  /** When a probe was last answered, by the steady clock; -Infinity: never. */
  readonly heardAt: number
  /** The probe that was answered last got 401. */
  readonly refusesEdge: boolean
}

export const judgementLimits = {
  /** More losses than this within the time below are flapping. */
  lossesMax: 3,
  lossesWithinMs: 60_000,
  /** What a link that flaps has to show, in a row. */
  steadyProbes: 3,
  /** How long a read may wait: less would take a busy API server for a lost one, more is noticed by people. */
  limitMsMin: 300,
  limitMsMax: 2_000,
}

const whyMax = 300 // a sentence for people; a server may answer anything

export function firstJudgement(nowMs: number): Judgement {
  const nothing = { failed: 0, answered: 0, losses: [], rttMs: undefined, heardAt: Number.NEGATIVE_INFINITY }
  return { state: 'suspect', why: 'not asked yet', sinceMs: nowMs, ...nothing, refusesEdge: false }
}

export function judge(
  before: Judgement,
  sign: Sign,
  at: { readonly steadyMs: number; readonly nowMs: number },
): Judgement {
  const recent = before.losses.filter((lossMs) => at.steadyMs - lossMs < judgementLimits.lossesWithinMs)
  const to = (state: ReachabilityState, why: string, more: Partial<Judgement> = {}): Judgement => {
    const lost = before.state === 'reachable' && state !== 'reachable'
    return {
      ...before,
      ...more,
      state,
      why: why.length > whyMax ? `${why.slice(0, whyMax)}…` : why,
      sinceMs: state === before.state ? before.sinceMs : at.nowMs,
      losses: lost ? [...recent, at.steadyMs] : recent,
    }
  }
  switch (sign.kind) {
    case 'probe answered': {
      const answered = before.answered + 1
      const rttMs = before.rttMs === undefined ? sign.rttMs : before.rttMs * 0.75 + sign.rttMs * 0.25
      const more = { answered, failed: 0, rttMs, heardAt: at.steadyMs, refusesEdge: sign.refusesEdge ?? false }
      const flapping = recent.length > judgementLimits.lossesMax && before.state !== 'reachable'
      if (flapping && answered < judgementLimits.steadyProbes) {
        const good = `${answered} of ${judgementLimits.steadyProbes} probes in a row`
        return to('suspect', `lost ${recent.length} times within a minute: waiting for ${good}`, more)
      }
      return to('reachable', sign.note ?? answersWell, more)
    }
    case 'probe failed': {
      if (sign.alive) return to(before.state === 'unreachable' ? 'unreachable' : 'suspect', sign.why, { answered: 0 })
      const failed = before.failed + 1
      const gone = sign.certain || failed > 1 || before.state === 'unreachable'
      return to(gone ? 'unreachable' : 'suspect', sign.why, { answered: 0, failed })
    }
    case 'traffic failed':
      // What is worse is known already; the reason of the first failure is the one to show.
      return before.state === 'reachable' ? to('suspect', sign.why, { answered: 0 }) : before
  }
}

/** How long a read may wait for the cloud. */
export function limitMsOf({ rttMs }: Judgement): number {
  const { limitMsMin, limitMsMax } = judgementLimits
  return Math.min(limitMsMax, Math.max(limitMsMin, 4 * (rttMs ?? 0)))
}
