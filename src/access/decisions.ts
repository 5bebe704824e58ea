/**
 * What a caller may do, as the API server said last. A decision that is held answers at once; only the first for a question
 * waits for the cloud, as long as any read may. An old one is asked again beside the request. Whatever keeps the API server
 * from answering changes nothing: the last decision holds for as long as the credential counts.
 */
import type { Clock } from '../base/clock.ts'
import { type StatusError, unauthorized } from '../kube/status.ts'
import type { Identity, Reachability } from '../upstream/upstream.ts'
import type { Access, Caller, Outcome, Verdict } from './access.ts'
import type { Behind } from './behind.ts'
import { type Callers, idOf, type Known } from './callers.ts'
import { Holding, type Limits } from './holding.ts'
import type { Latest } from './latest.ts'
import type { Question } from './question.ts'
import { forbiddenStatus, noDecision } from './refusal.ts'
import type { Answer, Flight, Reviewer } from './review.ts'
import { within } from './within.ts'

export const decisionKind = 'decision'

const freshMs = 10_000 // how long a decision is not asked again
const failedMs = 1000 // a review that failed is not tried again by every request in between
const failedMax = 4096 // questions whose review failed lately
const limits: Limits = {
  decisionsMax: 20_000, // some 8 MB with their keys; a node's clients ask hundreds
  perCallerMax: 8192, // one caller cannot push out the others
}

/** `settled` comes after what was answered has been taken in. */
type Asking = { readonly flight: Flight<Answer>; readonly settled: Promise<Answer> }

type Parts = {
  readonly callers: Callers
  readonly reviewer: Reviewer
  readonly reachability: Reachability
  readonly clock: Clock
  readonly latest: Latest
  readonly behind: Behind
  readonly stored: readonly { readonly key: string; readonly value: Buffer }[]
  readonly limits?: Limits
}

export class Decisions implements Access {
  readonly #parts: Parts
  readonly #holding: Holding
  /** By caller and question. */
  readonly #asking = new Map<string, Asking>()
  readonly #failed = new Map<string, number>()

  constructor(parts: Parts) {
    this.#parts = parts
    const { behind, clock, latest, stored } = parts
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

  async caller(identity: Identity): Promise<Caller | undefined> {
    const { callers, reachability, clock } = this.#parts
    const known = callers.held(identity)
    if (known !== undefined || reachability.state !== 'reachable') return this.held(identity)
    const { flight, known: asked } = callers.review(identity)
    const found = await within(clock, reachability.limitMs, asked, () => this.#late(flight, undefined))
    return found?.caller
  }

  decide(identity: Identity, question: Question): Verdict | Promise<Verdict> {
    if (identity.kind === 'edge') return 'allowed'
    const { callers, clock, reachability } = this.#parts
    const known = callers.held(identity)
    if (known === 'refused') return 'unauthorized'
    const online = reachability.state === 'reachable'
    if (known === undefined) return online ? this.#first(identity, question) : 'unknown'
    const held = this.#holding.get(known.id, question.key)
    if (held === undefined) return online ? this.#first(identity, question) : 'unknown'
    const now = clock.steady()
    held.usedAt = now
    const old = now - held.checkedAt >= freshMs
    if (held.allowed) {
      if (old && online) this.#ask(identity, known, question)
      return 'allowed'
    }
    // Nothing is gained by denying quickly: a role may have been granted since.
    return old && online ? this.#first(identity, question) : 'denied'
  }

  /** Only what the API server did in the caller's name counts: a 429 or a 5xx comes before it has looked at rights. */
  learn(identity: Identity, question: Question, { status, askedAt }: Outcome): void {
    if (identity.kind === 'edge') return
    const { callers, reachability } = this.#parts
    if (status === 401) callers.refuse(identity)
    const allowed = (status >= 200 && status < 300) || status === 101 || status === 304
    if (!allowed && status !== 403) return
    const told = { allowed, reason: undefined, askedAt }
    const known = callers.held(identity)
    if (typeof known === 'object') this.#apply(known.id, question, told)
    else if (known === undefined && reachability.state === 'reachable') {
      void callers.review(identity).known.then((found) => found && this.#apply(found.id, question, told))
    }
  }

  refusal(identity: Identity, question: Question, verdict: Verdict): StatusError {
    const { callers, reachability } = this.#parts
    const known = callers.held(identity)
    if (verdict === 'unauthorized' || typeof known !== 'object') return unauthorized()
    if (verdict === 'unknown' && reachability.state !== 'reachable') {
      return forbiddenStatus(known.caller, question, noDecision)
    }
    return forbiddenStatus(known.caller, question, this.#holding.get(known.id, question.key)?.reason)
  }

  forget(caller: Caller): void {
    const id = idOf(caller)
    for (const key of this.#holding.forget(id)) this.#parts.behind.remove(decisionKind, place(id, key))
  }

  /** Nobody knows yet: who it is, then what it may do, both within one wait. */
  #first(identity: Identity, question: Question): Promise<Verdict> {
    const { callers, clock, reachability } = this.#parts
    let flight: Flight<unknown> | undefined
    const asked = async (): Promise<Verdict> => {
      let known = callers.held(identity)
      if (known === undefined) {
        const review = callers.review(identity)
        flight = review.flight
        known = (await review.known) ?? callers.held(identity)
      }
      if (typeof known !== 'object') return known === 'refused' ? 'unauthorized' : 'unknown'
      const asking = this.#ask(identity, known, question)
      flight = asking?.flight
      const answer = await asking?.settled
      return answer?.kind === 'unauthorized' ? 'unauthorized' : this.#settled(identity, question)
    }
    return within(clock, reachability.limitMs, asked(), () => this.#late(flight, this.#settled(identity, question)))
  }

  #late<T>(flight: Flight<unknown> | undefined, verdict: T): T {
    const { reachability } = this.#parts
    if (flight?.sent) reachability.suspect(`a review was not answered within ${Math.round(reachability.limitMs)} ms`)
    return verdict
  }

  /** What is known now, without asking. */
  #settled(identity: Identity, question: Question): Verdict {
    const known = this.#parts.callers.held(identity)
    if (typeof known !== 'object') return known === 'refused' ? 'unauthorized' : 'unknown'
    const held = this.#holding.get(known.id, question.key)
    return held === undefined ? 'unknown' : held.allowed ? 'allowed' : 'denied'
  }

  /** One review per caller and question at a time. */
  #ask(identity: Identity, known: Known, question: Question): Asking | undefined {
    const { callers, clock, reviewer } = this.#parts
    const at = place(known.id, question.key)
    const already = this.#asking.get(at)
    if (already !== undefined) return already
    if (clock.steady() - (this.#failed.get(at) ?? Number.NEGATIVE_INFINITY) < failedMs) return undefined
    const flight = reviewer.fetchAnswer(identity, question)
    const settled = flight.done.then((answer) => {
      this.#asking.delete(at)
      if (answer.kind === 'decision') this.#apply(known.id, question, { ...answer, askedAt: flight.sentAt })
      else if (answer.kind === 'unauthorized') callers.refuse(identity)
      else this.#fail(at)
      return answer
    })
    const asking = { flight, settled }
    this.#asking.set(at, asking)
    return asking
  }

  #fail(at: string): void {
    if (this.#failed.size >= failedMax) this.#failed.clear()
    this.#failed.set(at, this.#parts.clock.steady())
  }

  #apply(
    id: string,
    question: Question,
    told: { readonly allowed: boolean; readonly reason: string | undefined; readonly askedAt: number },
  ): void {
    const { clock, latest, behind } = this.#parts
    const nowMs = latest.nowMs()
    const effect = this.#holding.apply(id, question.key, { ...told, now: clock.steady(), nowMs })
    const at = place(id, question.key)
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
