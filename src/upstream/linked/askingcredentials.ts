/**
 * The credentials of callers who asked for one interest lately, in memory, a few of them. Which of them the hub takes is not known
 * before they are shown: those it has refused are shown last, and make room first.
 */
import { CarriedToken, isBearable, isCarriedChain } from '../../tunnel/credentials.ts'
import { type ProofAnswer, proofDenied } from '../../tunnel/proof/proof.ts'

/** Of one interest: the pods of one account share a token, and rotate it within the hour. */
const credentialsMax = 4
/** A caller that has gone asks no more; one that watches asks again at least once an hour, when its watch ends. */
const keptMs = 75 * 60_000

/** A caller who asks was found to be allowed here: a hub that refused it may know by now. No more often than this, however often it asks. */
const askedAgainMs = 5_000

/** What a caller has shown: one of both. Printing what holds a token prints none. */
type AskingCredential = {
  readonly token: CarriedToken | undefined
  readonly certificate: string | undefined
  /** Of its caller, where the certificate says it. */
  readonly name: string
  askedAt: number
  isRefused: boolean
  /** That its caller may not, or is not spoken for, which is more than that its credential does not count. */
  denied: ProofAnswer['denied']
  shownAt: number
  /** Before that it is not shown again. */
  dueAt: number
}

/** As a stream is opened with it. */
export type ProvingShown = { readonly token: string } | { readonly certificate: string }

export class AskingCredentials {
  /** That of the caller who asked last is first. */
  #all: AskingCredential[] = []

  get size(): number {
    return this.#all.length
  }

  /** Its caller asked. */
  keep(shown: ProvingShown, now: number, name = ''): void {
    const known = this.#find(shown)
    if (known !== undefined && known === this.#all[0]) {
      asksAgain(known, now)
      return
    }
    if (known === undefined && !isCarried(shown)) return
    const latest: AskingCredential = known ?? {
      token: 'token' in shown ? new CarriedToken(shown.token) : undefined,
      certificate: 'certificate' in shown ? shown.certificate : undefined,
      ...{ name, askedAt: now, isRefused: false, denied: proofDenied.not, shownAt: now, dueAt: now },
    }
    asksAgain(latest, now)
    this.#all = [latest, ...this.#all.filter((one) => one !== known)]
    if (this.#all.length <= credentialsMax) return
    const leaving = this.#all.findLast(({ isRefused }) => isRefused) ?? this.#all.at(-1)
    this.#all = this.#all.filter((one) => one !== leaving)
  }

  /** Those of callers who have not asked for long are forgotten. */
  forget(now: number): void {
    this.#all = this.#all.filter(({ askedAt }) => now - askedAt < keptMs)
  }

  /** That of the caller who asked last first. */
  all(): readonly ProvingShown[] {
    return this.#all.map(shownBy)
  }

  /** What may be shown now, in the order in which it is worth to. */
  due(now: number): readonly ProvingShown[] {
    const due = this.#all.filter(({ dueAt }) => dueAt <= now)
    const [refused, others] = [due.filter((one) => one.isRefused), due.filter((one) => !one.isRefused)]
    return [...others, ...refused].map(shownBy)
  }

  /** What the hub said to it. */
  answered(which: ProvingShown, { verdict, forMs, denied }: ProofAnswer, now: number): void {
    const shown = this.#find(which)
    if (shown === undefined) return
    shown.shownAt = now
    if (verdict !== 'unknown') {
      shown.isRefused = verdict === 'refused'
      shown.denied = verdict === 'refused' ? denied : proofDenied.not
    }
    shown.dueAt = verdict === 'allowed' ? now : now + forMs
  }

  /** Every caller who asked lately and is spoken for may not have it, as the API server has said of each; and there is one. */
  get isDenied(): boolean {
    const isRefused = this.#all.every(({ denied }) => denied !== proofDenied.not)
    return isRefused && this.#all.some(({ denied }) => denied === proofDenied.byRights)
  }

  /** The callers who prove nothing here, for want of a hub that speaks for them. */
  get unspoken(): readonly string[] {
    return this.#all.filter(({ denied }) => denied === proofDenied.unspoken).map(({ name }) => name)
  }

  #find(shown: ProvingShown): AskingCredential | undefined {
    return 'token' in shown
      ? this.#all.find(({ token }) => token?.tell() === shown.token)
      : this.#all.find(({ certificate }) => certificate === shown.certificate)
  }

  /** Another hub, or a link that has just begun: what was said over the last one says nothing here. */
  anew(now: number): void {
    for (const one of this.#all) one.dueAt = Math.min(one.dueAt, now)
  }
}

function isCarried(shown: ProvingShown): boolean {
  return 'token' in shown ? isBearable(shown.token) : isCarriedChain(shown.certificate)
}

function shownBy({ token, certificate = '' }: AskingCredential): ProvingShown {
  return token === undefined ? { certificate } : { token: token.tell() }
}

function asksAgain(one: AskingCredential, now: number): void {
  one.askedAt = now
  if (one.isRefused) one.dueAt = Math.min(one.dueAt, one.shownAt + askedAgainMs)
}
