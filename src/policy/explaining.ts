/** What policies say of one edge, as lines for people: each answer with the rule that gives it. */
import { humanDuration } from '../kube/table/duration.ts'
import type { PolicedCollection, PolicedInterest, PolicyVerdict } from './policy.ts'
import type { ReadPolicy } from './reading.ts'
import { type AppliedPolicy, rulesBy } from './rules.ts'

export type PolicyQuestion =
  | { readonly about: 'caller'; readonly name: string; readonly groups: readonly string[] }
  | { readonly about: 'interest'; readonly of: PolicedInterest & PolicedCollection }
  | { readonly about: 'never'; readonly of: PolicedCollection }

export function answerTo(those: readonly AppliedPolicy[], question: PolicyQuestion): PolicyVerdict {
  const rules = rulesBy(those)
  if (question.about === 'caller') return rules.speaksFor({ ...question, uid: '' })
  const never = rules.isNeverMirrored(question.of)
  if (question.about === 'never') return never
  if (never.yes) return { yes: false, by: never.by }
  const trusting = trustOf(those)
  return trusting === undefined ? rules.holds(question.of) : { yes: true, by: trusting }
}

/** The rule by which the edge is trusted. */
function trustOf(those: readonly AppliedPolicy[]): string | undefined {
  const trusting = those.find(({ policy, isWhole }) => isWhole && policy.trusts)
  return trusting && `policy/${trusting.policy.name} spec.trust`
}

/** All of it, for an edge that nothing was asked about. */
export function summaryOf(those: readonly AppliedPolicy[]): string[] {
  const { rates, offline } = rulesBy(those)
  const trusting = trustOf(those)
  const lines: string[] = []
  if (trusting !== undefined) lines.push(`trusted: yes, by ${trusting}`)
  const limits = [
    ['rates.edgeRequestsPerSecond', rates.edgePerSecond, ({ rates }: ReadPolicy) => rates.edgePerSecond],
    ['rates.callerRequestsPerSecond', rates.callerPerSecond, ({ rates }: ReadPolicy) => rates.callerPerSecond],
    ['offline.tokenAge', offline.tokenAgeMs, ({ offline }: ReadPolicy) => offline.tokenAgeMs],
    ['offline.serveAge', offline.serveAgeMs, ({ offline }: ReadPolicy) => offline.serveAgeMs],
  ] as const
  for (const [place, lowest, of] of limits) {
    const by = those.find(({ policy }) => lowest !== undefined && of(policy) === lowest)
    if (by === undefined || lowest === undefined) continue
    const value = place.startsWith('offline') ? humanDuration(lowest) : String(lowest)
    lines.push(`${place}: ${value}, by policy/${by.policy.name}`)
  }
  for (const { policy, isWhole } of those) {
    const { name, interests, speakFor, neverMirrored } = policy
    const allowing = isWhole ? [...named('interests', interests), ...named('speakFor', speakFor)] : []
    const rules = [...allowing, ...named('neverMirrored', neverMirrored)]
    if (rules.length > 0) lines.push(`policy/${name}: ${rules.join(', ')}`)
  }
  return lines.length === 0 ? ['no policy says anything of it'] : lines
}

function named(what: string, rules: readonly unknown[]): string[] {
  return rules.length === 0 ? [] : [`${rules.length} ${what}`]
}
