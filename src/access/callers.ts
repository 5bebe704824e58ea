/**
 * Who stands behind a credential. The API server says so at first sight; what it said is kept by a salted digest of the
 * credential (never the credential itself, I4), on disk too, until the credential expires. A refusal is forgotten within
 * seconds; an acceptance is forgotten as soon as the API server refuses the same credential, and while it can be asked, each
 * credential counts by its own review, which is never older than half a minute. The token of a service account that can be
 * verified here (`authenticate/accounttokens.ts`) needs no review, and is known without the cloud at first sight.
 */
import { hash } from 'node:crypto'
import type { Clock } from '../base/clock.ts'
import type { Caller } from '../kube/caller.ts'
import type { Identity, Reachability } from '../upstream/upstream.ts'
import type { AccountTokens } from './authenticate/accounttokens.ts'
import { evictOldest } from './evict.ts'
import { strangers } from './fairqueue.ts'
import { idOf, printCaller } from './identity.ts'
import { certainCaller, type KnownCaller, lifetimeOf, revivedCaller } from './knowncaller.ts'
import { Lately } from './lately.ts'
import type { Flight, Reviewer, Subject } from './review.ts'
import type { TrustedTime } from './trustedtime.ts'
import type { WriteBehind } from './writebehind.ts'

const callersMax = 4096 // credentials in use on a node within their lifetimes, rotated ones included
const refusedMax = 4096 // invented tokens must not push out each other's short memory faster than they come
const refusedMs = 10_000 // long enough to spare the API server, short enough for a credential that just became valid
const validMs = 30_000 // how long a credential that was revoked may go on reading while the API server can be asked
const judgeAgainMs = 10_000 // before it would be asked about: what is verified here is not
const askAgainMs = 15_000 // from then on it is asked beside the requests of a busy caller, so that none has to wait
const confirmedMs = 10_000 // how long the API server's yes outweighs an expiry that only our clock sees

export const callerKind = 'caller'

const administrator: KnownCaller = certainCaller({ name: 'ake-admin', uid: '', groups: ['system:masters'] })
const anonymous: KnownCaller = certainCaller({ name: 'system:anonymous', uid: '', groups: ['system:unauthenticated'] })

/** `known` is undefined where the API server did not accept the credential or could not be asked. */
type Review = { readonly flight: Flight<Subject>; readonly known: Promise<KnownCaller | undefined> }

type Parts = {
  readonly reviewer: Reviewer
  readonly reachability: Reachability
  readonly clock: Clock
  readonly latest: TrustedTime
  readonly behind: WriteBehind
  /** What can be verified here; none where that is nothing. */
  readonly tokens?: AccountTokens | undefined
  /** How long a token without an expiry counts without the cloud: then it must be seen again. */
  readonly opaqueMsMax: () => number
  /** Whether tokens count while the cloud is away; without it, always. */
  readonly takesTokens?: (() => boolean) | undefined
  readonly salt: string
  readonly stored: readonly { readonly key: string; readonly value: Buffer }[]
  /** Changes when the credential configured for that common name does. */
  readonly credentialVersion: (name: string) => string
  /** How many are remembered, where it is not a node that they come from. */
  readonly callersMax?: number | undefined
  /** A credential stands for another caller than it did: what was asked with it meanwhile may have been said of either. */
  readonly changed: (id: string) => void
}

export class Callers {
  readonly #parts: Parts
  /** By digest of the credential. */
  readonly #known = new Map<string, KnownCaller>()
  readonly #refused = new Map<string, { readonly usedAt: number }>()
  readonly #flights = new Map<string, Review>()
  readonly #failed: Lately
  /** The caller that a certificate or an impersonation names. */
  readonly #certain = new WeakMap<Identity, KnownCaller>()
  /** Of tokens, as long as another part holds on to them. */
  readonly #digests = new WeakMap<Identity, string>()

  constructor(parts: Parts) {
    this.#parts = parts
    this.#failed = new Lately(parts.clock)
    for (const { key, value } of parts.stored) {
      const known = revivedCaller(value, parts.clock.steady(), parts.latest.nowMs())
      if (known !== undefined) this.#known.set(key, known)
      else parts.behind.put(callerKind, key, undefined)
    }
    this.#evict()
  }

  /** Without asking; `refused`: the API server does not accept the credential, or cannot be asked and it has expired. */
  held(identity: Identity): KnownCaller | 'refused' | undefined {
    if (identity.kind === 'edge') return administrator
    if (identity.kind === 'anonymous') return anonymous
    if (identity.kind === 'named') return this.#certainly(identity, identity.caller)
    if (identity.kind === 'local') return this.#isOnline ? 'refused' : this.#certainly(identity, identity.caller)
    const isLate = identity.kind === 'token' && !this.#isOnline && this.#parts.takesTokens?.() === false
    if (isLate) return 'refused'
    const digest = this.#digest(identity)
    const now = this.#parts.clock.steady()
    const known = this.#known.get(digest)
    if (known === undefined) {
      const refused = this.#refused.get(digest)
      if (refused !== undefined && now - refused.usedAt < refusedMs) return 'refused'
      if (identity.kind === 'certificate') return refused === undefined ? this.#byCertificate(identity) : undefined
      return this.#verified(identity, digest)
    }
    const online = this.#isOnline
    known.usedAt = now
    if (this.#isDoubted(known, now) && !this.#verify(known, identity, digest)) return 'refused'
    if (this.#parts.latest.nowMs() >= known.untilMs) {
      if (!online) return 'refused'
      if (now - known.confirmedAt >= confirmedMs) return undefined
    }
    return known
  }

  /** Who it is for certain, asked for as long as that takes; `unknown`: the API server cannot be asked, or does not say. */
  async certain(identity: Identity): Promise<KnownCaller | 'refused' | 'unknown'> {
    if (!this.#isOnline) return 'unknown'
    const known = this.held(identity)
    if (known === 'refused') return known
    if (known !== undefined && this.isFresh(known, this.#parts.clock.steady())) return known
    const found = await this.review(identity).known
    return found ?? (this.held(identity) === 'refused' ? 'refused' : 'unknown')
  }

  /** Whether the credential counts without asking, while the API server can be asked. */
  isFresh({ confirmedAt }: KnownCaller, now: number): boolean {
    return now - confirmedAt < validMs
  }

  /**
   * The API server did what was asked with this credential. Who a certificate's caller is stands in the certificate, so that is as
   * good as a review; only a review prolongs how long it counts offline, and comes while half of that is left.
   */
  confirm(identity: Identity, known: KnownCaller, askedAt: number): void {
    const { latest, opaqueMsMax } = this.#parts
    if (identity.kind !== 'certificate' || known.untilMs - latest.nowMs() < opaqueMsMax() / 2) return
    known.confirmedAt = Math.max(known.confirmedAt, askedAt)
  }

  /** One that will soon have to be asked about is asked about now, and no request waits. */
  keepFresh(identity: Identity, { confirmedAt }: KnownCaller, now: number): void {
    if (now - confirmedAt >= askAgainMs) this.review(identity)
  }

  /** The caller as which its reviews take their turns. */
  turnOf(identity: Identity): string {
    if (identity.kind === 'certificate') return `certificate ${identity.name}`
    if (identity.kind === 'named' || identity.kind === 'local') return this.#certainly(identity, identity.caller).id
    return (identity.kind === 'token' && this.#known.get(this.#digest(identity))?.id) || strangers
  }

  /** The same text for the same credential. */
  keyOf(identity: Identity): string {
    return this.#digest(identity)
  }

  /** Asks the API server; one review per credential at a time. */
  review(identity: Identity): Review {
    const digest = this.#digest(identity)
    const already = this.#flights.get(digest)
    if (already !== undefined) return already
    // A caller without a credential for the way up cannot ask who it is.
    if (identity.kind === 'named' || identity.kind === 'local' || this.#failed.has(digest)) return failedLately
    const { reviewer, tokens } = this.#parts
    const token = identity.kind === 'token' ? identity.token : ''
    const judged = tokens === undefined || token === '' ? undefined : tokens.judge(token, digest)
    const needsKeys = judged?.kind === 'undecided' && judged.key
    const flight = needsKeys
      ? this.#fetchKeys(identity, digest, token)
      : reviewer.fetchSubject(identity, this.turnOf(identity))
    const known = flight.done.then((subject) => {
      this.#flights.delete(digest)
      if (subject.kind === 'unauthorized') this.#refuse(digest)
      if (subject.kind === 'failed') this.#failed.add(digest)
      if (token !== '' && subject.kind === 'unauthorized') tokens?.denied(token, digest)
      if (token !== '' && subject.kind === 'caller') tokens?.accepted(token, digest, subject.caller)
      if (subject.kind !== 'caller') return undefined
      // A client was told 401 after this was asked: that is the newer word.
      if ((this.#refused.get(digest)?.usedAt ?? Number.NEGATIVE_INFINITY) >= flight.sentAt) return undefined
      return this.#keep(digest, subject.caller, lifetimeOf(identity, this.#parts), flight.sentAt)
    })
    const running = { flight, known }
    this.#flights.set(digest, running)
    return running
  }

  /** A token that the API server issued through us: its caller is foretold, and asked for when the token is shown. */
  learn(token: string, caller: Caller, expiresMs: number): void {
    this.#keep(this.#digest({ kind: 'token', token }), caller, expiresMs, Number.NEGATIVE_INFINITY)
  }

  /** What the API server puts into a token that is for itself: it takes each of these. */
  learnAudiences(audiences: readonly string[]): void {
    for (const audience of audiences) this.#parts.tokens?.learnAudiences([audience])
  }

  /** The API server answered 401 to this credential. */
  refuse(identity: Identity): void {
    if (identity.kind !== 'token' && identity.kind !== 'certificate') return
    this.#refuse(this.#digest(identity))
    if (identity.kind === 'token') this.#parts.tokens?.denied(identity.token, this.#digest(identity))
  }

  #certainly(identity: Identity, caller: Caller): KnownCaller {
    const known = this.#certain.get(identity) ?? certainCaller(caller)
    this.#certain.set(identity, known)
    return known
  }

  /** One that has never asked: without the API server its certificate says who it is, unless that has refused it. */
  #byCertificate(identity: Extract<Identity, { kind: 'certificate' }>): KnownCaller | undefined {
    const { caller } = identity
    return caller === undefined || this.#isOnline ? undefined : this.#certainly(identity, caller)
  }

  get #isOnline(): boolean {
    return this.#parts.reachability.state === 'reachable'
  }

  /** Whether it is to be verified again. */
  #isDoubted({ judgedAt }: KnownCaller, now: number): boolean {
    const { tokens } = this.#parts
    return tokens !== undefined && (now - judgedAt >= judgeAgainMs || judgedAt <= tokens.doubtedAt)
  }

  /** One that was never seen, as far as it can be verified here. */
  #verified(identity: Identity, digest: string): KnownCaller | 'refused' | undefined {
    const { tokens, latest, clock, opaqueMsMax } = this.#parts
    if (tokens === undefined || identity.kind !== 'token') return undefined
    const verdict = tokens.judge(identity.token, digest)
    const online = this.#isOnline
    if (verdict.kind !== 'caller') return verdict.kind === 'refused' && !online ? 'refused' : undefined
    const nowMs = latest.nowMs()
    const untilMs = verdict.expiresMs ?? nowMs + opaqueMsMax()
    if (!online && nowMs >= untilMs) return 'refused'
    const now = clock.steady()
    // What the copy of a cut line tells is no news once the line is back.
    const known = this.#keep(digest, verdict.caller, untilMs, online ? now : Number.NEGATIVE_INFINITY)
    known.judgedAt = now
    known.isVerified = true
    if (online && tokens.isSample()) void this.review(identity)
    return known
  }

  /** False: what it was bound to is no more. While the API server can be asked, that is for it to say. */
  #verify(known: KnownCaller, identity: Identity, digest: string): boolean {
    const { tokens, clock } = this.#parts
    known.judgedAt = clock.steady()
    if (tokens === undefined || identity.kind !== 'token') return true
    const verdict = tokens.judge(identity.token, digest)
    if (verdict.kind === 'caller') {
      if (idOf(verdict.caller) !== known.id) return true
      if (this.#isOnline) known.confirmedAt = known.judgedAt
      known.isVerified = true
      return true
    }
    const isGone = verdict.kind === 'refused' && verdict.gone
    if (isGone && !this.#isOnline) {
      this.#refuse(digest)
      return false
    }
    if (isGone || known.isVerified) known.confirmedAt = Number.NEGATIVE_INFINITY
    return true
  }

  /** The keys are asked for once in the place of every token; only one that they do not tell of is asked about. */
  #fetchKeys(identity: Identity, digest: string, token: string): Flight<Subject> {
    const { tokens, reviewer, clock } = this.#parts
    const told = async (): Promise<Subject> => {
      await tokens?.refresh()
      const verdict = tokens?.judge(token, digest)
      if (verdict?.kind === 'caller') return verdict
      return await reviewer.fetchSubject(identity, this.turnOf(identity)).done
    }
    return { done: told(), sent: true, sentAt: clock.steady() }
  }

  #refuse(digest: string): void {
    if (this.#known.delete(digest)) this.#parts.behind.remove(callerKind, digest)
    this.#refused.set(digest, { usedAt: this.#parts.clock.steady() })
    evictOldest(this.#refused, refusedMax)
  }

  #keep(digest: string, caller: Caller, untilMs: number, confirmedAt: number): KnownCaller {
    const now = this.#parts.clock.steady()
    const id = idOf(caller)
    const known: KnownCaller = {
      ...{ id, caller, untilMs, confirmedAt, usedAt: now },
      ...{ judgedAt: confirmedAt, isVerified: false },
    }
    const before = this.#known.get(digest)
    this.#refused.delete(digest)
    this.#known.set(digest, known)
    if (before !== undefined && before.id !== id) this.#parts.changed(before.id)
    // A review that only confirms is not worth a write, except that it prolongs a token without an expiry.
    if (before?.id !== id || Math.abs(before.untilMs - untilMs) > 86_400_000) this.#record(digest, known)
    this.#evict()
    return known
  }

  #record(digest: string, { caller, untilMs }: KnownCaller): void {
    const keptMs = this.#parts.latest.nowMs()
    this.#parts.behind.put(callerKind, digest, printCaller({ caller, untilMs, keptMs }))
  }

  #evict(): void {
    evictOldest(this.#known, this.#parts.callersMax ?? callersMax, (digest) =>
      this.#parts.behind.put(callerKind, digest, undefined),
    )
  }

  #digest(identity: Identity): string {
    const { salt, credentialVersion } = this.#parts
    if (identity.kind === 'token') {
      const known = this.#digests.get(identity)
      if (known !== undefined) return known
      const digest = hash('sha256', `${salt}token\n${identity.token}`, 'base64url')
      this.#digests.set(identity, digest)
      return digest
    }
    if (identity.kind === 'named' || identity.kind === 'local') return `${identity.kind} ${this.turnOf(identity)}`
    const name = identity.kind === 'certificate' ? identity.name : ''
    return hash('sha256', `${salt}${identity.kind}\n${name}\n${credentialVersion(name)}`, 'base64url')
  }
}

/** A review that is not worth asking for so soon after it failed. */
const failedLately: Review = {
  flight: { done: Promise.resolve({ kind: 'failed', lost: false }), sent: false, sentAt: 0 },
  known: Promise.resolve(undefined),
}
