/**
 * The credentials of callers who asked for one interest lately, in memory, a few of them. Which of them the hub takes is not known
 * before they are shown: those it has refused are shown last, and make room first.
 */
import { CarriedToken, isBearable } from '../../tunnel/credentials.ts'
import type { ProofAnswer } from '../../tunnel/proof/proof.ts'

/** Of one interest: the pods of one account share a token, and rotate it within the hour. */
const tokensMax = 4
/** A caller that has gone asks no more; one that watches asks again at least once an hour, when its watch ends. */
const keptMs = 75 * 60_000

/** A caller who asks was found to be allowed here: a hub that refused it may know by now. No more often than this, however often it asks. */
const askedAgainMs = 5_000

type AskingToken = {
  readonly token: CarriedToken
  askedAt: number
  isRefused: boolean
  shownAt: number
  /** Before that it is not shown again. */
  dueAt: number
}

export class AskingTokens {
  /** That of the caller who asked last is first. */
  #tokens: AskingToken[] = []

  get size(): number {
    return this.#tokens.length
  }

  /** Its caller asked. */
  keep(text: string, now: number): void {
    const [first] = this.#tokens
    if (first?.token.tell() === text) {
      asksAgain(first, now)
      return
    }
    const known = this.#tokens.find(({ token }) => token.tell() === text)
    if (known === undefined && !isBearable(text)) return
    const latest = known ?? {
      token: new CarriedToken(text),
      ...{ askedAt: now, isRefused: false, shownAt: now, dueAt: now },
    }
    asksAgain(latest, now)
    this.#tokens = [latest, ...this.#tokens.filter((one) => one !== known)]
    if (this.#tokens.length <= tokensMax) return
    const leaving = this.#tokens.findLast(({ isRefused }) => isRefused) ?? this.#tokens.at(-1)
    this.#tokens = this.#tokens.filter((one) => one !== leaving)
  }

  /** Those of callers who have not asked for long are forgotten. */
  forget(now: number): void {
    this.#tokens = this.#tokens.filter(({ askedAt }) => now - askedAt < keptMs)
  }

  /** What may be shown now, in the order in which it is worth to. */
  due(now: number): readonly string[] {
    const due = this.#tokens.filter(({ dueAt }) => dueAt <= now)
    const [refused, others] = [due.filter((one) => one.isRefused), due.filter((one) => !one.isRefused)]
    return [...others, ...refused].map(({ token }) => token.tell())
  }

  /** What the hub said to it. */
  answered(text: string, { verdict, forMs }: ProofAnswer, now: number): void {
    const shown = this.#tokens.find(({ token }) => token.tell() === text)
    if (shown === undefined) return
    shown.shownAt = now
    if (verdict !== 'unknown') shown.isRefused = verdict === 'refused'
    shown.dueAt = verdict === 'allowed' ? now : now + forMs
  }

  /** Another hub, or a link that has just begun: what was said over the last one says nothing here. */
  anew(now: number): void {
    for (const one of this.#tokens) one.dueAt = Math.min(one.dueAt, now)
  }
}

function asksAgain(one: AskingToken, now: number): void {
  one.askedAt = now
  if (one.isRefused) one.dueAt = Math.min(one.dueAt, one.shownAt + askedAgainMs)
}
