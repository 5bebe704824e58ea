/**
 * Who stands behind a credential. The API server says so at first sight; what it said is kept by a salted digest of the
 * credential (never the credential itself, I4), on disk too, until the credential expires. A refusal is forgotten within
 * seconds; an acceptance is forgotten as soon as the API server refuses the same credential, and while it can be asked, each
 * credential counts by its own review, which is never older than half a minute.
 */
import { hash } from 'node:crypto'
import type { Clock } from '../base/clock.ts'
import type { Caller } from '../kube/caller.ts'
import type { Identity, Reachability } from '../upstream/upstream.ts'
import { evictOldest } from './evict.ts'
import { strangers } from './fairqueue.ts'
import { idOf, parseCaller, printCaller } from './identity.ts'
import { readClaims } from './jwt.ts'
import { Lately } from './lately.ts'
import type { Flight, Reviewer, Subject } from './review.ts'
import type { TrustedTime } from './trustedtime.ts'
import type { WriteBehind } from './writebehind.ts'

/** A caller that is known, with the key of its decisions. */
export type KnownCaller = {
  /** Equal for every credential of the same caller. */
  readonly id: string
  readonly caller: Caller
  /** Until when the credential counts without asking. */
  readonly untilMs: number
  /** When the API server was asked, of the last time that it said yes, by the steady clock; -Infinity for what was loaded. */
  readonly confirmedAt: number
  usedAt: number
}

const callersMax = 4096 // credentials in use on a node within their lifetimes, rotated ones included
const refusedMax = 4096 // invented tokens must not push out each other's short memory faster than they come
const refusedMs = 10_000 // long enough to spare the API server, short enough for a credential that just became valid
const validMs = 30_000 // how long a credential that was revoked may go on reading while the API server can be asked
const askAgainMs = 15_000 // from then on it is asked beside the requests of a busy caller, so that none has to wait
const confirmedMs = 10_000 // how long the API server's yes outweighs an expiry that only our clock sees
const opaqueMsMax = 30 * 86_400_000 // a token without an expiry: a month without the cloud, then it must be seen again

export const callerKind = 'caller'

const administrator: KnownCaller = fixed({ name: 'ake-admin', uid: '', groups: ['system:masters'] })
const anonymous: KnownCaller = fixed({ name: 'system:anonymous', uid: '', groups: ['system:unauthenticated'] })

/** `known` is undefined where the API server did not accept the credential or could not be asked. */
type Review = { readonly flight: Flight<Subject>; readonly known: Promise<KnownCaller | undefined> }

type Parts = {
  readonly reviewer: Reviewer
  readonly reachability: Reachability
  readonly clock: Clock
  readonly latest: TrustedTime
  readonly behind: WriteBehind
  readonly salt: string
  readonly stored: readonly { readonly key: string; readonly value: Buffer }[]
  /** Changes when the credential configured for that common name does. */
  readonly credentialVersion: (name: string) => string
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
  /** Of tokens, as long as another part holds on to them. */
  readonly #digests = new WeakMap<Identity, string>()

  constructor(parts: Parts) {
    this.#parts = parts
    this.#failed = new Lately(parts.clock)
    for (const { key, value } of parts.stored) {
      const known = revived(value, parts.clock.steady(), parts.latest.nowMs())
      if (known !== undefined) this.#known.set(key, known)
      else parts.behind.put(callerKind, key, undefined)
    }
    this.#evict()
  }

  /** Without asking; `refused`: the API server does not accept the credential, or cannot be asked and it has expired. */
  held(identity: Identity): KnownCaller | 'refused' | undefined {
    if (identity.kind === 'edge') return administrator
    if (identity.kind === 'anonymous') return anonymous
    const digest = this.#digest(identity)
    const now = this.#parts.clock.steady()
    const known = this.#known.get(digest)
    if (known === undefined) {
      const refused = this.#refused.get(digest)
      return refused !== undefined && now - refused.usedAt < refusedMs ? 'refused' : undefined
    }
    const online = this.#parts.reachability.state === 'reachable'
    known.usedAt = now
    if (this.#parts.latest.nowMs() >= known.untilMs) {
      if (!online) return 'refused'
      if (now - known.confirmedAt >= confirmedMs) return undefined
    }
    return known
  }

  /** Whether the credential counts without asking, while the API server can be asked. */
  isFresh({ confirmedAt }: KnownCaller, now: number): boolean {
    return now - confirmedAt < validMs
  }

  /** One that will soon have to be asked about is asked about now, and no request waits. */
  keepFresh(identity: Identity, { confirmedAt }: KnownCaller, now: number): void {
    if (now - confirmedAt >= askAgainMs) this.review(identity)
  }

  /** As whom its reviews take their turns. */
  turnOf(identity: Identity): string {
    if (identity.kind === 'certificate') return `certificate ${identity.name}`
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
    if (this.#failed.has(digest)) return failedLately
    const flight = this.#parts.reviewer.fetchSubject(identity, this.turnOf(identity))
    const known = flight.done.then((subject) => {
      this.#flights.delete(digest)
      if (subject.kind === 'unauthorized') this.#refuse(digest)
      if (subject.kind === 'failed') this.#failed.add(digest)
      if (subject.kind !== 'caller') return undefined
      // A client was told 401 after this was asked: that is the newer word.
      if ((this.#refused.get(digest)?.usedAt ?? Number.NEGATIVE_INFINITY) >= flight.sentAt) return undefined
      return this.#keep(digest, subject.caller, lifetime(identity, this.#parts.latest), flight.sentAt)
    })
    const running = { flight, known }
    this.#flights.set(digest, running)
    return running
  }

  /** A token that the API server issued through us: who will show it is foretold, and asked when it is shown. */
  learn(token: string, caller: Caller, expiresMs: number): void {
    this.#keep(this.#digest({ kind: 'token', token }), caller, expiresMs, Number.NEGATIVE_INFINITY)
  }

  /** The API server answered 401 to this credential. */
  refuse(identity: Identity): void {
    if (identity.kind === 'token' || identity.kind === 'certificate') this.#refuse(this.#digest(identity))
  }

  #refuse(digest: string): void {
    if (this.#known.delete(digest)) this.#parts.behind.remove(callerKind, digest)
    this.#refused.set(digest, { usedAt: this.#parts.clock.steady() })
    evictOldest(this.#refused, refusedMax)
  }

  #keep(digest: string, caller: Caller, untilMs: number, confirmedAt: number): KnownCaller {
    const now = this.#parts.clock.steady()
    const id = idOf(caller)
    const known: KnownCaller = { id, caller, untilMs, confirmedAt, usedAt: now }
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
    evictOldest(this.#known, callersMax, (digest) => this.#parts.behind.put(callerKind, digest, undefined))
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
    const name = identity.kind === 'certificate' ? identity.name : ''
    return hash('sha256', `${salt}${identity.kind}\n${name}\n${credentialVersion(name)}`, 'base64url')
  }
}

/** A review that is not worth asking for so soon after it failed. */
const failedLately: Review = {
  flight: { done: Promise.resolve({ kind: 'failed', lost: false }), sent: false, sentAt: 0 },
  known: Promise.resolve(undefined),
}

function fixed(caller: Caller): KnownCaller {
  const always = Number.POSITIVE_INFINITY
  return { id: idOf(caller), caller, untilMs: always, confirmedAt: always, usedAt: 0 }
}

/** What the API server accepted may tell its own end; otherwise it counts for a while. */
function lifetime(identity: Identity, latest: TrustedTime): number {
  const claims = identity.kind === 'token' ? readClaims(identity.token) : undefined
  if (claims?.issuedMs !== undefined) latest.atLeast(claims.issuedMs)
  return claims?.expiresMs ?? latest.nowMs() + opaqueMsMax
}

/** Left to be reviewed before its first use while the API server can be asked. */
function revived(value: Buffer, steadyNow: number, nowMs: number): KnownCaller | undefined {
  const record = parseCaller(value)
  if (record === undefined) return undefined
  const { caller, untilMs, keptMs } = record
  const usedAt = steadyNow - Math.max(1, nowMs - keptMs)
  return { id: idOf(caller), caller, untilMs, confirmedAt: Number.NEGATIVE_INFINITY, usedAt }
}
