/**
 * What a caller may do, as the API server said last. While it can be reached only what is fresh counts (I5): an allowance
 * that will soon be too old is asked again beside the requests of a busy caller, and a later caller waits for a new one,
 * as long as any read may. While it cannot be reached the last decision holds, for as long as the credential counts. A review
 * that fails changes nothing that is known.
 */
import type { Clock } from '../base/clock.ts'
import type { Caller } from '../kube/caller.ts'
import { type StatusError, unauthorized } from '../kube/status.ts'
import type { Identity, Reachability } from '../upstream/upstream.ts'
import type { Access, ForwardOutcome, Verdict } from './access.ts'
import { bounded, type PendingReview } from './bounded.ts'
import type { Callers, KnownCaller } from './callers.ts'
import type { Changes } from './changes.ts'
import { type Decision, type DecisionLimits, Holding, type ReviewedDecision } from './holding.ts'
import { idOf } from './identity.ts'
import { Lately } from './lately.ts'
import { type Question, widerOf } from './question.ts'
import { forbiddenStatus, noDecision } from './refusal.ts'
import type { Flight, ReviewAnswer, Reviewer } from './review.ts'
import type { TrustedTime } from './trustedtime.ts'
import type { WriteBehind } from './writebehind.ts'

export const decisionKind = 'decision'

const freshMs = 10_000 // how long a right that was taken away may go on counting while the API server can be asked
const askAgainMs = 5_000 // from then on it is asked beside the requests of a busy caller, so that none has to wait
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
  readonly reviewer: Reviewer
  readonly reachability: Reachability
  readonly clock: Clock
  readonly latest: TrustedTime
  readonly behind: WriteBehind
  readonly stored: readonly { readonly key: string; readonly value: Buffer }[]
  readonly limits?: DecisionLimits
}

export class Decisions implements Access {
  readonly #parts: Parts
  readonly #holding: Holding
  /** By caller and question. */
  readonly #asking = new Map<string, OpenReview>()
  readonly #failed: Lately

  constructor(parts: Parts) {
    this.#parts = parts
    const { behind, clock, latest, stored } = parts
    this.#failed = new Lately(clock)
    this.#holding = new Holding(parts.limits ?? limits, (id, key) =>
      behind.put(decisionKind, place(id, key), undefined),
    )
    const [now, nowMs] = [clock.steady(), latest.nowMs()]
    for (const { key, value } of stored) {
      const recordedMs = readRecord(value)
      const end = key.indexOf(' ')
      if (recordedMs === undefined || end < 0) behind.put(decisionKind, key, undefined)
      else this.#holding.load(key.slice(0, end), key.slice(end + 1), recordedMs, now - Math.max(1, nowMs - recordedMs))
    }
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
    if (known !== undefined && callers.isFresh(known, now)) {
      const held = this.#holding.find(known.id, question)
      if (held !== undefined && this.#isFresh(held, question, now)) {
        held.usedAt = now
        callers.keepFresh(identity, known, now)
        if (!held.allowed) return 'denied'
        if (now - held.checkedAt >= askAgainMs) this.#ask(identity, known, question)
        return 'allowed'
      }
    }
    return bounded(
      this.#parts,
      (waiting) => this.#asked(identity, question, waiting),
      () => this.#settled(callers.held(identity), question),
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
    const isCertain = known !== undefined && callers.isFresh(known, clock.steady())
    if (known !== undefined && (isCertain || !allowed || !this.#isOnline)) this.#apply(known.id, question, told)
    // Who stands behind a credential that was not asked about for long may have changed, and the answer was for who it is now.
    if (isCertain || !this.#isOnline) return
    void callers.review(identity).known.then((found) => {
      if (found !== undefined && (allowed || found.id !== known?.id)) this.#apply(found.id, question, told)
    })
  }

  refusal(identity: Identity, question: Question, verdict: Verdict): StatusError {
    const known = this.#parts.callers.held(identity)
    if (verdict === 'unauthorized' || typeof known !== 'object') return unauthorized()
    if (verdict === 'unknown' && !this.#isOnline) return forbiddenStatus(known.caller, question, noDecision)
    return forbiddenStatus(known.caller, question, this.#holding.get(known.id, question.key)?.reason)
  }

  forget(caller: Caller): void {
    this.drop(idOf(caller))
  }

  /** Forgets what is held of a caller. */
  drop(id: string): void {
    for (const key of this.#holding.forget(id)) this.#parts.behind.remove(decisionKind, place(id, key))
  }

  get #isOnline(): boolean {
    return this.#parts.reachability.state === 'reachable'
  }

  /** Why something is denied is told of the question itself: a denial that only follows is not worth saving the review. */
  #isFresh({ checkedAt, implied }: Decision, { namespace }: Question, now: number): boolean {
    return now - checkedAt < freshMs && checkedAt >= this.#parts.changes.since(namespace) && !implied
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
    return this.#settled(callers.held(identity), question)
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
    if (held === undefined) return 'unknown'
    if (this.#isOnline && !(callers.isFresh(known, now) && this.#isFresh(held, question, now))) return 'unknown'
    held.usedAt = now
    return held.allowed ? 'allowed' : 'denied'
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
        if (isSame || !answer.allowed) this.#apply(known.id, question, { ...answer, askedAt: flight.sentAt })
      } else if (answer.kind === 'unauthorized') callers.refuse(identity)
      else this.#failed.add(at)
      return answer
    })
    const asking: OpenReview = { flight, settled, by: callers.keyOf(identity) }
    this.#asking.set(at, asking)
    return asking
  }

  #apply(id: string, question: Question, told: Pick<ReviewedDecision, 'allowed' | 'reason' | 'askedAt'>): void {
    this.#take(id, question.key, told)
    if (told.allowed) return
    for (const { key } of widerOf(question)) this.#take(id, key, { ...told, reason: '', implied: true })
  }

  #take(id: string, key: string, told: Omit<ReviewedDecision, 'now' | 'nowMs'>): void {
    const { clock, latest, behind } = this.#parts
    const nowMs = latest.nowMs()
    const effect = this.#holding.apply(id, key, { ...told, now: clock.steady(), nowMs })
    const at = place(id, key)
    this.#failed.delete(at)
    if (effect === 'record') behind.put(decisionKind, at, Buffer.from(JSON.stringify({ at: Math.floor(nowMs) })))
    else if (effect === 'remove') behind.remove(decisionKind, at)
  }
}

function place(id: string, key: string): string {
  return `${id} ${key}`
}

function readRecord(value: Buffer): number | undefined {
  try {
    const { at } = JSON.parse(value.toString('utf8')) as { at?: unknown }
    return typeof at === 'number' ? at : undefined
  } catch {
    return undefined
  }
}
