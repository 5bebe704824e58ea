/**
 * What a caller may do, as the API server said last. While it can be reached only what is fresh counts (I5): an allowance
 * that will soon be too old is asked again beside the requests of a busy caller, and a later caller waits for a new one,
 * as long as any read may. Where roles are mirrored an allowance stays fresh for minutes, as long as it follows from them and did
 * when it was reviewed. While the API server cannot be reached what its roles say counts, of callers and questions it was
 * never asked about too; where they are not known or it judged otherwise, its last decision, for as long as the credential
 * counts. A review that fails changes nothing that is known.
 */
import type { Clock } from '../base/clock.ts'
import type { Caller } from '../kube/caller.ts'
import { type StatusError, unauthorized } from '../kube/status.ts'
import { humanDuration } from '../kube/table/duration.ts'
import type { Identity, Reachability } from '../upstream/upstream.ts'
import type { Access, ForwardOutcome, Verdict } from './access.ts'
import { bounded, type PendingReview } from './bounded.ts'
import type { Callers } from './callers.ts'
import type { Changes } from './changes.ts'
import type { DecisionRecords } from './decisionrecords.ts'
import type { Evaluation } from './evaluation.ts'
import { type Decision, type DecisionLimits, Holding, type ReviewedDecision } from './holding.ts'
import { idOf } from './identity.ts'
import type { KnownCaller } from './knowncaller.ts'
import { Lately } from './lately.ts'
import { type Question, widerOf } from './question.ts'
import type { Opinion } from './rbac/rbac.ts'
import type { RulesReviewStatus } from './rbac/rulesreview.ts'
import { forbiddenStatus, noDecision, undecidedStatus } from './refusal.ts'
import type { Flight, ReviewAnswer, Reviewer } from './review.ts'
import { RoleOpinions } from './roleopinions.ts'
import type { TrustedTime } from './trustedtime.ts'
import { UncomparedDecisions } from './uncompared.ts'

const limits: DecisionLimits = {
  decisionsMax: 20_000, // some 8 MB with their keys; a node's clients ask hundreds
  perCallerMax: 8192, // one caller cannot push out the others
}

/** `settled` comes after what was answered has been taken in; `by` is the credential with which it is asked. */
type OpenReview = {
  readonly flight: Flight<ReviewAnswer>
  readonly settled: Promise<ReviewAnswer>
  readonly by: string
}

type Parts = {
  readonly callers: Callers
  readonly changes: Changes
  readonly evaluation: Evaluation
  readonly reviewer: Reviewer
  readonly reachability: Reachability
  readonly clock: Clock
  readonly latest: TrustedTime
  readonly records: DecisionRecords
  /** Hears of each caller that asks here, while the API server can be asked. */
  readonly seen?: ((identity: Identity, caller: Caller) => void) | undefined
  readonly limits?: DecisionLimits
}

export class Decisions implements Access {
  readonly #parts: Parts
  readonly #holding: Holding
  readonly #roles: RoleOpinions
  /** By caller and question. */
  readonly #asking = new Map<string, OpenReview>()
  readonly #failed: Lately
  readonly #uncompared = new UncomparedDecisions()

  constructor(parts: Parts) {
    this.#parts = parts
    const { changes, evaluation, reachability, records, clock, latest } = parts
    this.#failed = new Lately(clock)
    this.#holding = new Holding(parts.limits ?? limits, (id, key, allowed) => records.evict(id, key, allowed))
    this.#roles = new RoleOpinions({ changes, evaluation, reachability, holding: this.#holding })
    records.load(this.#holding, clock.steady(), latest.nowMs())
  }

  held(identity: Identity): Caller | undefined {
    const known = this.#parts.callers.held(identity)
    return typeof known === 'object' ? known.caller : undefined
  }

  isRefused(identity: Identity): boolean {
    return this.#parts.callers.held(identity) === 'refused'
  }

  async caller(identity: Identity): Promise<Caller | undefined> {
    const { callers, clock } = this.#parts
    const known = callers.held(identity)
    const isCertain = typeof known === 'object' && callers.isFresh(known, clock.steady())
    if (known === 'refused' || isCertain || !this.#isOnline) return this.held(identity)
    const asked = async (waiting: PendingReview) => {
      const review = callers.review(identity)
      waiting.flight = review.flight
      return await review.known
    }
    const found = await bounded(this.#parts, asked, () => undefined)
    return found?.caller ?? this.held(identity)
  }

  decide(identity: Identity, question: Question): Verdict | Promise<Verdict> {
    if (identity.kind === 'edge') return 'allowed'
    const { callers, clock } = this.#parts
    const known = callers.held(identity)
    if (!this.#isOnline || known === 'refused') return this.#settled(known, question)
    const now = clock.steady()
    if (known !== undefined) this.#parts.seen?.(identity, known.caller)
    if (known !== undefined && callers.isFresh(known, now)) {
      const held = this.#holding.find(known.id, question)
      const again = held === undefined ? undefined : this.#roles.freshFor(held, known, question, now)
      if (held !== undefined && again !== undefined) {
        held.usedAt = now
        callers.keepFresh(identity, known, now)
        if (!held.allowed) return 'denied'
        if (now - held.checkedAt >= again) this.#ask(identity, known, question)
        return 'allowed'
      }
    }
    return bounded(
      this.#parts,
      (waiting) => this.#asked(identity, question, waiting),
      () => this.#concluded(identity, question),
    )
  }

  async recheck(identity: Identity, question: Question): Promise<Verdict> {
    const { callers, clock, reachability } = this.#parts
    if (identity.kind === 'edge') return 'allowed'
    if (!this.#isOnline) return 'unknown'
    const known = callers.held(identity)
    const isCertain = known !== 'refused' && known !== undefined && callers.isFresh(known, clock.steady())
    const settled = isCertain ? this.#settled(known, question) : 'unknown'
    if (settled !== 'unknown') return settled
    const probe = async () => void (await reachability.probe())
    const verdict = await this.#asked(identity, question, { flight: undefined, probe })
    // What only counts while the API server cannot be asked is no news.
    return this.#isOnline ? verdict : 'unknown'
  }

  opinion(caller: Caller, question: Question): Opinion | undefined {
    const held = this.#holding.find(idOf(caller), question)
    return this.#roles.opinion(held, caller, question) ?? held
  }

  rules(caller: Caller, namespace: string): RulesReviewStatus | undefined {
    const isWhole = !this.#holding.isOverruled(true) && !this.#holding.isOverruled(false)
    return isWhole ? this.#parts.evaluation.rules(caller, namespace) : undefined
  }

  /** Only what the API server did in the caller's name counts: a 429 or a 5xx comes before it has looked at rights. */
  learn(identity: Identity, question: Question, { status, askedAt }: ForwardOutcome): void {
    if (identity.kind === 'edge') return
    const { callers, clock } = this.#parts
    if (status === 401) callers.refuse(identity)
    const allowed = (status >= 200 && status < 300) || status === 101 || status === 304
    if (!allowed && status !== 403) return
    const told = { allowed, reason: undefined, askedAt }
    const known = callers.held(identity)
    if (known === 'refused') return
    if (known !== undefined && allowed) callers.confirm(identity, known, askedAt)
    const isCertain = known !== undefined && callers.isFresh(known, clock.steady())
    if (known !== undefined && (isCertain || !allowed || !this.#isOnline)) this.#apply(known, question, told)
    // The caller behind a credential that was not asked about for long may be another by now, and the answer was for that one.
    if (isCertain || !this.#isOnline) return
    void callers.review(identity).known.then((found) => {
      if (found !== undefined && (allowed || found.id !== known?.id)) this.#apply(found, question, told)
    })
  }

  refusal(identity: Identity, question: Question, verdict: Verdict): StatusError {
    const known = this.#parts.callers.held(identity)
    if (verdict === 'unauthorized' || typeof known !== 'object') return unauthorized()
    if (verdict === 'unknown' && !this.#isOnline) {
      // A client without a credential is no caller that anything was ever decided of: to it the API server says 403.
      if (identity.kind === 'anonymous') return forbiddenStatus(known.caller, question, noDecision)
      return undecidedStatus(known.caller, question)
    }
    const held = this.#holding.get(known.id, question.key)
    const isJudged = verdict === 'denied' && !this.#isOnline
    const opinion = isJudged
      ? this.#roles.opinion(this.#holding.find(known.id, question), known.caller, question)
      : undefined
    if (opinion?.allowed === false) return forbiddenStatus(known.caller, question, opinion.reason)
    const reason = held !== undefined && verdict === 'denied' ? this.#whyDenied(held) : held?.reason
    return forbiddenStatus(known.caller, question, reason)
  }

  forget(caller: Caller): void {
    this.drop(idOf(caller))
  }

  /** Forgets what is held of a caller. */
  drop(id: string): void {
    for (const [key, { allowed }] of this.#holding.forget(id)) this.#parts.records.drop(id, key, allowed)
  }

  /** Rules of a caller are known now, or current again: what was reviewed just before is compared with them. */
  compareAgain(): void {
    this.#uncompared.compare(this.#parts.clock.steady(), ({ known, question, allowed, askedAt }) => {
      const held = this.#holding.get(known.id, question.key)
      if (held?.agreement !== 'unknown' || held.allowed !== allowed) return true
      const agreement = this.#parts.evaluation.compare(known.caller, question, { allowed, askedAt })
      // What differs is left: it may have changed in between.
      if (agreement === 'same') this.#take(known.id, question.key, { allowed, reason: undefined, askedAt, agreement })
      return agreement !== undefined
    })
  }

  /** Of one that was said before the last start: how long ago, since by then it may no longer be so. */
  #whyDenied({ reason, checkedAt, recordedMs }: Decision): string {
    if (checkedAt !== Number.NEGATIVE_INFINITY) return reason
    const age = humanDuration(this.#parts.latest.nowMs() - recordedMs)
    return `${reason}${reason === '' ? '' : '; '}so the API server said ${age} ago, which cannot be asked now`
  }

  get #isOnline(): boolean {
    return this.#parts.reachability.state === 'reachable'
  }

  /** Asks who it is and what it may do, both at once where the caller is known already. */
  async #asked(identity: Identity, question: Question, waiting: PendingReview): Promise<Verdict> {
    const { callers, clock } = this.#parts
    let known = callers.held(identity)
    if (known === 'refused') return 'unauthorized'
    let asking = known === undefined ? undefined : this.#ask(identity, known, question)
    if (known === undefined || !callers.isFresh(known, clock.steady())) {
      const before = known?.id
      const review = callers.review(identity)
      waiting.flight = review.flight
      const found = await review.known
      if (found === undefined) {
        await this.#lookAt(await review.flight.done, waiting)
        return this.#settled(callers.held(identity), question)
      }
      known = found
      this.#parts.seen?.(identity, found.caller)
      if (found.id !== before) asking = this.#ask(identity, found, question)
    }
    return await this.#answered(identity, question, known, asking, waiting)
  }

  async #answered(
    identity: Identity,
    question: Question,
    known: KnownCaller,
    asking: OpenReview | undefined,
    waiting: PendingReview,
  ): Promise<Verdict> {
    const { callers } = this.#parts
    waiting.flight = asking?.flight
    const answer = await asking?.settled
    if (answer?.kind === 'unauthorized') {
      // Another credential of the same caller asked, and only that one is no longer accepted.
      if (asking?.by === callers.keyOf(identity)) return 'unauthorized'
      return await this.#answered(identity, question, known, this.#ask(identity, known, question), waiting)
    }
    if (answer !== undefined) await this.#lookAt(answer, waiting)
    return this.#concluded(identity, question)
  }

  /** After a review. Of a caller about whom the edge may not ask, roles decide as long as they are as new as a review. */
  #concluded(identity: Identity, question: Question): Verdict {
    const { callers, evaluation, clock } = this.#parts
    const known = callers.held(identity)
    const verdict = this.#settled(known, question)
    const isOthers = verdict === 'unknown' && identity.kind === 'named' && typeof known === 'object'
    if (!isOthers || !this.#isOnline || !evaluation.isCurrent(clock.steady(), known.caller)) return verdict
    const opinion = this.#roles.opinion(this.#holding.find(known.id, question), known.caller, question)
    return opinion === undefined ? 'unknown' : opinion.allowed ? 'allowed' : 'denied'
  }

  /** Whether no answer came because the line is lost is told by a probe, not by this one review. */
  async #lookAt(answer: { readonly kind: string; readonly lost?: boolean }, waiting: PendingReview): Promise<void> {
    if (answer.lost === true) await waiting.probe()
  }

  /** What is known now, without asking: while the API server can be asked only what is fresh. */
  #settled(known: KnownCaller | 'refused' | undefined, question: Question): Verdict {
    const { callers, clock } = this.#parts
    if (known === 'refused') return 'unauthorized'
    if (known === undefined) return 'unknown'
    const now = clock.steady()
    const held = this.#holding.find(known.id, question)
    if (held !== undefined) held.usedAt = now
    if (!this.#isOnline) return this.#heldOrFollowing(held, known, question)
    const isFresh = held !== undefined && callers.isFresh(known, now)
    if (!isFresh || this.#roles.freshFor(held, known, question, now) === undefined) return 'unknown'
    return held.allowed ? 'allowed' : 'denied'
  }

  /** Without the API server. */
  #heldOrFollowing(held: Decision | undefined, known: KnownCaller, question: Question): Verdict {
    if (held?.agreement === 'same' && this.#roles.follows(held, known, question))
      return held.allowed ? 'allowed' : 'denied'
    const allowed = (this.#roles.opinion(held, known.caller, question) ?? held)?.allowed
    return allowed === undefined ? 'unknown' : allowed ? 'allowed' : 'denied'
  }

  /** One review per caller and question at a time. */
  #ask(identity: Identity, known: KnownCaller, question: Question): OpenReview | undefined {
    const { callers, changes, reviewer } = this.#parts
    const at = place(known.id, question.key)
    const already = this.#asking.get(at)
    // What was sent before roles changed will be told too late to count.
    const isOld = already?.flight.sent === true && already.flight.sentAt < changes.since(question.namespace)
    if (already !== undefined && !isOld) return already
    if (this.#failed.has(at)) return undefined
    const flight = reviewer.fetchAnswer(identity, question, callers.turnOf(identity))
    const settled = flight.done.then((answer) => {
      if (this.#asking.get(at) === asking) this.#asking.delete(at)
      if (answer.kind === 'decision') {
        const now = callers.held(identity)
        // It was said of the caller the credential stands for: that has to be the same caller still.
        const isSame = typeof now === 'object' && now.id === known.id
        if (isSame || !answer.allowed) this.#apply(known, question, { ...answer, askedAt: flight.sentAt })
      } else if (answer.kind === 'unauthorized') callers.refuse(identity)
      else this.#failed.add(at)
      return answer
    })
    const asking: OpenReview = { flight, settled, by: callers.keyOf(identity) }
    this.#asking.set(at, asking)
    return asking
  }

  #apply(known: KnownCaller, question: Question, said: Pick<ReviewedDecision, 'allowed' | 'reason' | 'askedAt'>): void {
    const { id } = known
    const told = { ...said, agreement: this.#roles.agreement(known, question, said) }
    this.#take(id, question.key, told)
    if (told.agreement === undefined) this.#uncompared.add(place(id, question.key), { known, question, ...said })
    if (told.allowed) return
    for (const { key } of widerOf(question)) this.#take(id, key, { ...told, reason: '', implied: true })
  }

  #take(id: string, key: string, told: Omit<ReviewedDecision, 'now' | 'nowMs'>): void {
    const { clock, latest, records } = this.#parts
    const effect = this.#holding.apply(id, key, { ...told, now: clock.steady(), nowMs: latest.nowMs() })
    this.#failed.delete(place(id, key))
    const held = effect === 'none' ? undefined : this.#holding.get(id, key)
    if (held !== undefined && effect !== 'none') records.write(effect, id, key, held)
  }
}

function place(id: string, key: string): string {
  return `${id} ${key}`
}
