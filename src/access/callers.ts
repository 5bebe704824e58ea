/**
 * Who stands behind a credential. The API server says so at first sight; what it said is kept by a salted digest of the
 * credential (never the credential itself, I4), on disk too, until the credential expires. A refusal is forgotten within
 * seconds; an acceptance is forgotten as soon as the API server refuses the same credential.
 */
import { hash } from 'node:crypto'
import type { Clock } from '../base/clock.ts'
import type { Identity, Reachability } from '../upstream/upstream.ts'
import type { Caller } from './access.ts'
import type { Behind } from './behind.ts'
import { evictOldest } from './evict.ts'
import { readClaims } from './jwt.ts'
import type { Latest } from './latest.ts'
import type { Flight, Reviewer, Subject } from './review.ts'

/** A caller that is known, with the key of its decisions. */
export type Known = {
  /** Of user, uid and groups: equal for every credential of the same caller. */
  readonly id: string
  readonly caller: Caller
  /** Until when the credential counts without asking. */
  readonly untilMs: number
  /** When the API server was last asked, by the steady clock. */
  checkedAt: number
  /** When it last said yes; -Infinity for what was loaded. */
  readonly confirmedAt: number
  usedAt: number
}

const callersMax = 4096 // credentials in use on a node within their lifetimes, rotated ones included
const refusedMax = 4096 // invented tokens must not push out each other's short memory faster than they come
const refusedMs = 10_000 // long enough to spare the API server, short enough for a credential that just became valid
const reviewAgainMs = 600_000 // groups of a user change rarely; what it may do is asked every 10 s anyway
const confirmedMs = 10_000 // how long the API server's yes outweighs an expiry that only our clock sees
const opaqueMsMax = 30 * 86_400_000 // a token without an expiry: a month without the cloud, then it must be seen again

export const callerKind = 'caller'

const administrator: Known = fixed({ name: 'ake-admin', uid: '', groups: ['system:masters'] })
const anonymous: Known = fixed({ name: 'system:anonymous', uid: '', groups: ['system:unauthenticated'] })

/** `known` is undefined where the API server did not accept the credential or could not be asked. */
type Review = { readonly flight: Flight<Subject>; readonly known: Promise<Known | undefined> }

type Parts = {
  readonly reviewer: Reviewer
  readonly reachability: Reachability
  readonly clock: Clock
  readonly latest: Latest
  readonly behind: Behind
  readonly salt: string
  readonly stored: readonly { readonly key: string; readonly value: Buffer }[]
  /** Changes when the credential configured for that common name does. */
  readonly credentialVersion: (name: string) => string
}

export class Callers {
  readonly #parts: Parts
  /** By digest of the credential. */
  readonly #known = new Map<string, Known>()
  readonly #refused = new Map<string, { readonly usedAt: number }>()
  readonly #flights = new Map<string, Review>()
  /** Of tokens, as long as somebody else holds on to them. */
  readonly #digests = new WeakMap<Identity, string>()

  constructor(parts: Parts) {
    this.#parts = parts
    for (const { key, value } of parts.stored) {
      const known = revived(value, parts.clock.steady(), parts.latest.nowMs())
      if (known !== undefined) this.#known.set(key, known)
      else parts.behind.put(callerKind, key, undefined)
    }
    this.#evict()
  }

  /** Without asking; `refused`: the API server does not accept the credential, or it has expired and nobody can be asked. */
  held(identity: Identity): Known | 'refused' | undefined {
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
    if (online && now - known.checkedAt >= reviewAgainMs) this.review(identity)
    return known
  }

  /** Asks the API server; one review per credential at a time. */
  review(identity: Identity): Review {
    const digest = this.#digest(identity)
    const already = this.#flights.get(digest)
    if (already !== undefined) return already
    const { reviewer, clock } = this.#parts
    const before = this.#known.get(digest)
    if (before !== undefined) before.checkedAt = clock.steady()
    const flight = reviewer.fetchSubject(identity)
    const known = flight.done.then((subject) => {
      this.#flights.delete(digest)
      if (subject.kind === 'unauthorized') this.#refuse(digest)
      if (subject.kind !== 'caller') return undefined
      // Somebody was told 401 after this was asked: that is the newer word.
      if ((this.#refused.get(digest)?.usedAt ?? Number.NEGATIVE_INFINITY) >= flight.sentAt) return undefined
      return this.#keep(digest, subject.caller, lifetime(identity, this.#parts.latest))
    })
    const running = { flight, known }
    this.#flights.set(digest, running)
    return running
  }

  /** A token that the API server issued through us. */
  learn(token: string, caller: Caller, expiresMs: number): void {
    const digest = this.#digest({ kind: 'token', token })
    this.#refused.delete(digest)
    this.#keep(digest, caller, expiresMs)
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

  #keep(digest: string, caller: Caller, untilMs: number): Known {
    const now = this.#parts.clock.steady()
    const id = idOf(caller)
    const known: Known = { id, caller, untilMs, checkedAt: now, confirmedAt: now, usedAt: now }
    const before = this.#known.get(digest)
    this.#refused.delete(digest)
    this.#known.set(digest, known)
    // A review that only confirms is not worth a write, except that it prolongs a token without an expiry.
    if (before?.id !== id || Math.abs(before.untilMs - untilMs) > 86_400_000) this.#record(digest, known)
    this.#evict()
    return known
  }

  #record(digest: string, { caller, untilMs }: Known): void {
    const keptMs = this.#parts.latest.nowMs()
    this.#parts.behind.put(callerKind, digest, Buffer.from(JSON.stringify({ ...caller, untilMs, keptMs })))
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

/** User, uid and sorted groups; a digest, because it is part of the key of every decision. */
export function idOf({ name, uid, groups }: Caller): string {
  return hash('sha256', JSON.stringify([name, uid, ...new Set([...groups].sort())]), 'base64url').slice(0, 22)
}

function fixed(caller: Caller): Known {
  const always = { untilMs: Number.POSITIVE_INFINITY, checkedAt: 0, confirmedAt: 0, usedAt: 0 }
  return { id: idOf(caller), caller, ...always }
}

/** What the API server accepted may tell its own end; otherwise it counts for a while. */
function lifetime(identity: Identity, latest: Latest): number {
  const claims = identity.kind === 'token' ? readClaims(identity.token) : undefined
  if (claims?.issuedMs !== undefined) latest.atLeast(claims.issuedMs)
  return claims?.expiresMs ?? latest.nowMs() + opaqueMsMax
}

/** What cannot be read is as if it had not been there. */
function revived(value: Buffer, steadyNow: number, nowMs: number): Known | undefined {
  try {
    const { untilMs, keptMs, ...caller } = JSON.parse(value.toString('utf8')) as Caller & Record<string, unknown>
    if (typeof untilMs !== 'number' || typeof keptMs !== 'number') return undefined
    // Left to be reviewed at its first use, without anybody waiting for it.
    const never = Number.NEGATIVE_INFINITY
    const usedAt = steadyNow - Math.max(1, nowMs - keptMs)
    return { id: idOf(caller), caller, untilMs, checkedAt: never, confirmedAt: never, usedAt }
  } catch {
    return undefined
  }
}
