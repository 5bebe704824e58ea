/**
 * What roles say beside decisions. An allowance that follows from them, and did when it was reviewed, stays fresh for minutes instead of
 * seconds. Without the API server roles decide what it was never asked, but not against what it was seen to judge otherwise.
 */
import type { Caller } from '../kube/caller.ts'
import type { Reachability } from '../upstream/upstream.ts'
import type { Changes } from './changes.ts'
import type { Agreement, Evaluation } from './evaluation.ts'
import type { Decision, Holding, ReviewedDecision } from './holding.ts'
import type { KnownCaller } from './knowncaller.ts'
import type { Question } from './question.ts'
import type { Opinion } from './rbac/rbac.ts'

const freshMs = 10_000 // how long a right that was taken away may go on counting while the API server can be asked
const askAgainMs = 5_000 // from then on it is asked beside the requests of a busy caller, so that none has to wait
const followsMs = 240_000 // the same of what follows from roles: an authorizer that roles say nothing of may change its mind
const followsAgainMs = 180_000

type Parts = {
  readonly changes: Pick<Changes, 'since'>
  readonly evaluation: Evaluation
  readonly reachability: Pick<Reachability, 'state'>
  readonly holding: Holding
}

export class RoleOpinions {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /**
   * The age from which it is asked again beside requests; undefined: it is not fresh. Why something is denied is told of the
   * question itself: a denial that only follows from a part is not worth saving the review.
   */
  freshFor(held: Decision, known: KnownCaller, question: Question, now: number): number | undefined {
    const { allowed, checkedAt, implied, agreement } = held
    const { changes, evaluation } = this.#parts
    const ageMs = now - checkedAt
    if (implied || ageMs >= followsMs) return undefined
    // What is denied another authorizer may allow from now on: that is asked as often as before.
    const isFollowing = allowed && agreement === 'same'
    // A right that is seen to go from the roles is asked for again, however lately it was reviewed.
    if (isFollowing && !this.follows(held, known, question)) return undefined
    const isNew = ageMs < freshMs && checkedAt >= changes.since(question.namespace)
    if (isNew && ageMs < askAgainMs) return askAgainMs
    if (isFollowing && evaluation.isCurrent(now, known.caller)) return followsAgainMs
    return isNew ? askAgainMs : undefined
  }

  /** Whether roles still say what was reviewed. */
  follows(held: Decision, { caller }: KnownCaller, question: Question): boolean {
    const { evaluation } = this.#parts
    if (held.revision === evaluation.revision && held.followed === question.key) return true
    if (evaluation.judge(caller, question)?.allowed !== held.allowed) return false
    held.revision = evaluation.revision
    held.followed = question.key
    return true
  }

  /** What roles say where they are to be believed without a review: not against what was reviewed and did not follow from them. */
  opinion(held: Decision | undefined, caller: Caller, question: Question): Opinion | undefined {
    if (held !== undefined && held.agreement !== 'same') return undefined
    const { evaluation, reachability, holding } = this.#parts
    const opinion = evaluation.judge(caller, question)
    if (opinion === undefined) return undefined
    // A line that is only in doubt is soon back: what was never asked is then denied by the API server itself.
    if (!opinion.allowed && held === undefined && reachability.state === 'suspect') return undefined
    // Another authorizer was seen to judge the other way, or the rules may have become others since, unheard: only a right that is
    // gone from them since it was reviewed is gone all the same.
    const isDoubtful = opinion.isPast === true || holding.isOverruled(!opinion.allowed)
    return isDoubtful && (held === undefined || opinion.allowed) ? undefined : opinion
  }

  /** Whether a review said what roles say; undefined: they say nothing, or nothing new. */
  agreement(
    { id, caller }: KnownCaller,
    question: Question,
    { allowed, reason, askedAt }: Pick<ReviewedDecision, 'allowed' | 'reason' | 'askedAt'>,
  ): Agreement | undefined {
    const { evaluation, changes, holding } = this.#parts
    const agreement = evaluation.compare(caller, question, { allowed, askedAt })
    // A 403 without a reason may be of what comes after authorization.
    if (agreement === 'other' && !allowed && reason === undefined) return 'unknown'
    const held = holding.get(id, question.key)
    const wasOther = held?.agreement === 'other'
    // An authorizer that judges otherwise may agree now and then: what differed is not evaluated again before roles change.
    if (agreement === 'same' && wasOther && changes.since(question.namespace) <= held.checkedAt) return 'other'
    if (agreement === 'other') {
      holding.overrule(allowed)
      if (!wasOther) evaluation.differs(caller, question, allowed)
    }
    return agreement
  }
}
