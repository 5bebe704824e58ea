/**
 * The decisions that are held, by caller and question: pure, time comes in. Two rules keep them honest: a denial always
 * counts, and an allowance counts only if it was asked for after the last denial was told. What is allowed is allowed in each
 * of its parts, and what is denied is denied in each whole that contains it; what was said of a question itself counts more.
 * Room is shared by callers: one that asks very much pushes out its own.
 */
import type { Agreement } from './evaluation.ts'
import { evictOldest } from './evict.ts'
import { type Question, widerOf } from './question.ts'

export type Decision = {
  allowed: boolean
  /** This question was not asked: a part of it was denied. */
  implied: boolean
  /** Why not, as the authorizer put it. */
  reason: string
  /** When it was asked for, of the last time that it was confirmed, by the steady clock. */
  checkedAt: number
  deniedAt: number
  usedAt: number
  /** When its record was written, by the wall clock; 0: there is none. */
  recordedMs: number
  /** Whether it follows from roles, as far as they are known: `other` is for good, until they change. */
  agreement: Agreement
  /** The question, itself or a part, and the state of roles from which that was last seen to follow with the same answer. */
  followed: string
  revision: number
}

/**
 * What an answer of the API server does to the records on disk, of which there is one of either kind. A denial that only follows
 * has none: it follows again when it is asked. `replace`: its record takes the place of the other kind's, which `remove` only drops.
 */
export type RecordEffect = 'record' | 'replace' | 'remove' | 'none'

/** A decision that was written down. */
export type RecordedDecision = Pick<Decision, 'allowed' | 'reason' | 'recordedMs' | 'usedAt' | 'agreement'>

export type ReviewedDecision = {
  readonly allowed: boolean
  /** Undefined where a denial came without being asked why: then what was known before is not forgotten. */
  readonly reason: string | undefined
  /** When it was asked. */
  readonly askedAt: number
  /** Said of a part of the question, and a denial. */
  readonly implied?: boolean
  /** Undefined where roles said nothing: then what was known before holds, if it was about the same answer. */
  readonly agreement?: Agreement | undefined
  readonly now: number
  readonly nowMs: number
}

export type DecisionLimits = { readonly decisionsMax: number; readonly perCallerMax: number }

const never = Number.NEGATIVE_INFINITY
const notFollowed = { followed: '', revision: -1 }
const recordAgainMs = 86_400_000 // so that what is in use does not look oldest after a restart

export class Holding {
  readonly #limits: DecisionLimits
  readonly #byCaller = new Map<string, Map<string, Decision>>()
  /** Hears what was pushed out and had a record. */
  readonly #evicted: (id: string, key: string, allowed: boolean) => void
  #size = 0
  /** Answers that were seen to be given against what roles say. */
  readonly #overruled = new Set<boolean>()

  constructor(limits: DecisionLimits, evicted: (id: string, key: string, allowed: boolean) => void) {
    this.#limits = limits
    this.#evicted = evicted
  }

  get size(): number {
    return this.#size
  }

  /** The API server gave this answer though roles say otherwise: another authorizer judges so. */
  overrule(allowed: boolean): void {
    this.#overruled.add(allowed)
  }

  isOverruled(allowed: boolean): boolean {
    return this.#overruled.has(allowed)
  }

  get(id: string, key: string): Decision | undefined {
    return this.#byCaller.get(id)?.get(key)
  }

  /** What answers the question: what was said of itself, else what is known of a whole that contains it. */
  find(id: string, question: Question): Decision | undefined {
    const own = this.#byCaller.get(id)
    const exact = own?.get(question.key)
    if (own === undefined || (exact !== undefined && !exact.implied)) return exact
    return allowedWhole(own, question) ?? exact
  }

  /** From disk: old from the first moment on. */
  load(id: string, key: string, recorded: RecordedDecision): void {
    const loaded = { ...recorded, implied: false, checkedAt: never, deniedAt: never, ...notFollowed }
    if (loaded.agreement === 'other') this.overrule(loaded.allowed)
    const held = this.get(id, key)
    if (held === undefined) this.#insert(id, key, loaded)
    else Object.assign(held, loaded)
  }

  apply(
    id: string,
    key: string,
    { allowed, reason, askedAt, implied = false, agreement: told, now, nowMs }: ReviewedDecision,
  ): RecordEffect {
    const held = this.get(id, key)
    if (allowed && held !== undefined && askedAt <= held.deniedAt) return 'none'
    // What is denied already was perhaps said of itself, and what was allowed later is the newer word.
    if (implied && held !== undefined && (!held.allowed || held.checkedAt > askedAt)) return 'none'
    const isOther = held !== undefined && held.allowed !== allowed
    const other = isOther ? held.recordedMs : 0
    const recorded = isOther ? 0 : (held?.recordedMs ?? 0)
    const agreement = told ?? (held?.allowed === allowed ? held.agreement : 'unknown')
    const isNews = held !== undefined && held.agreement !== agreement
    const again = !implied && (isNews || nowMs - recorded >= recordAgainMs)
    const recordedMs = again ? nowMs : recorded
    const deniedAt = allowed ? (held?.deniedAt ?? never) : now
    const why = allowed ? '' : (reason ?? held?.reason ?? '')
    const checkedAt = Math.max(askedAt, held?.implied === false && held.allowed === allowed ? held.checkedAt : never)
    const times = { checkedAt, deniedAt, usedAt: now, recordedMs }
    const decision = { allowed, implied, reason: why, ...times, agreement, ...notFollowed }
    if (held === undefined) this.#insert(id, key, decision)
    else Object.assign(held, decision)
    if (other > 0) return again ? 'replace' : 'remove'
    return again ? 'record' : 'none'
  }

  /** Those that had a record. */
  forget(id: string): (readonly [key: string, decision: Decision])[] {
    const own = this.#byCaller.get(id)
    if (own === undefined) return []
    this.#byCaller.delete(id)
    this.#size -= own.size
    return [...own].filter(([, { recordedMs }]) => recordedMs > 0)
  }

  #insert(id: string, key: string, decision: Decision): void {
    let own = this.#byCaller.get(id)
    if (own === undefined) {
      own = new Map()
      this.#byCaller.set(id, own)
    }
    own.set(key, decision)
    this.#size++
    this.#evict(id, own, this.#limits.perCallerMax)
    if (this.#size > this.#limits.decisionsMax) this.#evictLargest()
  }

  #evictLargest(): void {
    let largest: [string, Map<string, Decision>] | undefined
    for (const entry of this.#byCaller) if (entry[1].size > (largest?.[1].size ?? 0)) largest = entry
    if (largest !== undefined) this.#evict(largest[0], largest[1], largest[1].size - 1)
  }

  #evict(id: string, own: Map<string, Decision>, entriesMax: number): void {
    const before = own.size
    evictOldest(own, entriesMax, (key, { recordedMs, allowed }) => {
      if (recordedMs > 0) this.#evicted(id, key, allowed)
    })
    this.#size -= before - own.size
    if (own.size === 0) this.#byCaller.delete(id)
  }
}

/** The newest allowance of a whole, unless a part of it that contains the question too was denied. */
function allowedWhole(own: ReadonlyMap<string, Decision>, question: Question): Decision | undefined {
  const denied: number[] = []
  const allowed: { readonly without: number; readonly decision: Decision }[] = []
  for (const { key, without } of widerOf(question)) {
    const decision = own.get(key)
    if (decision?.allowed === true) allowed.push({ without, decision })
    else if (decision?.implied === false) denied.push(without)
  }
  let newest: Decision | undefined
  for (const { without, decision } of allowed) {
    if (denied.some((part) => (part & without) === part)) continue
    if (newest === undefined || decision.checkedAt > newest.checkedAt) newest = decision
  }
  return newest
}
