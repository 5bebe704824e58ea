/**
 * Tokens of service accounts, verified here as often as they are shown: the signature once for each set of keys, times and
 * what they are bound to each time. What the API server says of a token is compared with what is said here, of each that it is
 * asked about and of a sample that it would not have to be: one that it judges otherwise ends this, until its keys change.
 */
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { Counter } from '../../base/metrics.ts'
import type { Caller } from '../../kube/caller.ts'
import type { Reachability } from '../../upstream/upstream.ts'
import { type AccountClaims, legacyIssuer } from './accountclaims.ts'
import { type BoundObjects, type Judging, judgeClaims, type TokenVerdict, verifiedClaims } from './accounttoken.ts'
import { readToken } from './signedtoken.ts'
import type { TokenKeys } from './tokenkeys.ts'

const verifiedMax = 4096 // tokens in use on a node within their lives, as many as callers
const undecidedMax = 1024
const undecidedMs = 1_000 // the requests and questions of a moment do not verify one signature over and over
const sampleEvery = 16 // of the tokens that are new: pods get one an hour
const audiencesMax = 32 // sets that none of the others answers for: an API server has one or two audiences
const settledMs = 5_000 // a deletion is known here soon after it is to the API server; later than that it is a difference

type Parts = {
  readonly keys: TokenKeys
  readonly objects: BoundObjects
  /** Each is one that the API server takes, by the operator's word. */
  readonly audiences: readonly string[]
  /** How many are remembered, where it is not a node that they come from. */
  readonly verifiedMax?: number | undefined
  readonly reachability: Reachability
  readonly clock: Clock
  readonly log: Log
  /** The time by which tokens expire. */
  readonly nowMs: () => number
}

const idle: TokenVerdict = { kind: 'undecided', why: 'no keys are known', key: false }
const kept: TokenVerdict = { kind: 'undecided', why: 'it is kept in a Secret', key: false }
const stale: TokenVerdict = { kind: 'undecided', why: 'its keys have to be asked for', key: true }

export class AccountTokens {
  readonly #parts: Parts
  /** By digest of the token: its claims, and the keys that verified it. */
  readonly #verified = new Map<string, { readonly claims: AccountClaims; readonly keys: unknown }>()
  readonly #undecided = new Map<string, { readonly verdict: TokenVerdict; readonly at: number }>()
  readonly #counter = new Counter()
  readonly #deaf: () => void
  #doubtedAt = Number.NEGATIVE_INFINITY
  #shown = 0
  /** Gives up the look at one that was denied. */
  #forgo = () => {}

  constructor(parts: Parts) {
    this.#parts = parts
    // With the cloud and without it other things can be told.
    this.#deaf = parts.reachability.observe(() => this.doubt())
  }

  /** What was verified before this moment of the steady clock is verified again. */
  get doubtedAt(): number {
    return this.#doubtedAt
  }

  /** Something that tokens are bound to is gone or another, or the keys are. */
  doubt(): void {
    this.#doubtedAt = this.#parts.clock.steady()
    this.#undecided.clear()
  }

  /** `digest` is the token's, and no other's. */
  judge(token: string, digest: string): TokenVerdict {
    const { keys, reachability, clock } = this.#parts
    if (keys.keys === undefined || keys.record === undefined || keys.record.differs) return idle
    if (reachability.state === 'reachable' && !keys.isFresh()) return stale
    const now = clock.steady()
    const lately = this.#undecided.get(digest)
    if (lately !== undefined && now - lately.at < undecidedMs) return lately.verdict
    const verdict = this.#judge(token, digest)
    if (verdict.kind !== 'caller') {
      if (this.#undecided.size >= undecidedMax) this.#undecided.clear()
      this.#undecided.set(digest, { verdict, at: now })
    }
    this.#counter.add(`verdict="${verdict.kind}"`)
    return verdict
  }

  /** Whether this one, which is new, is to be put to the API server all the same. */
  isSample(): boolean {
    return this.#shown++ % sampleEvery === 0
  }

  /** Resolves when the keys were asked for. */
  refresh(): Promise<void> {
    return this.#parts.keys.refresh()
  }

  /** The API server took it, as that caller. */
  accepted(token: string, digest: string, caller: Caller): void {
    const claims = this.#claims(token, digest)
    if (claims === undefined) return
    this.learnAudiences(claims.audiences)
    const verdict = this.judge(token, digest)
    if (verdict.kind === 'caller' && spelled(verdict.caller) !== spelled(caller)) this.#differ('another caller')
  }

  /** The API server did not take it. What it knows already may not be known here yet. */
  denied(token: string, digest: string): void {
    if (this.judge(token, digest).kind !== 'caller') return
    this.#forgo()
    this.#forgo = this.#parts.clock.setTimer(settledMs, () => void this.#look(token, digest))
  }

  /** The API server takes a token for any of these. */
  learnAudiences(audiences: readonly string[]): void {
    const { keys } = this.#parts
    const known = keys.record?.audiences ?? []
    if (audiences.length === 0 || known.length >= audiencesMax || this.#isAudience(audiences)) return
    const wanted = new Set(audiences)
    keys.note({ audiences: [...known.filter((set) => !isWithin([...wanted], set)), [...wanted]] })
    this.#undecided.clear()
  }

  figures(): string[] {
    return [this.#counter.render('ake_tokens_verified_total', 'Tokens of service accounts judged here, by verdict.')]
  }

  async run(signal: AbortSignal): Promise<void> {
    await this.#parts.keys.run(signal)
    this.#forgo()
    this.#deaf()
  }

  #judge(token: string, digest: string): TokenVerdict {
    const claims = this.#verified.get(digest)
    const judging = this.#judging()
    const found = claims?.keys === judging.keys ? claims.claims : verifiedClaims(readToken(token), judging)
    if ('kind' in found) return found
    if (found !== claims?.claims) this.#remember(digest, found, judging)
    // The API server writes down when such a one was last used, which it has to see for that.
    if (found.issuer === legacyIssuer && this.#parts.reachability.state === 'reachable') return kept
    return judgeClaims(found, token, judging)
  }

  #claims(token: string, digest: string): AccountClaims | undefined {
    if (this.#parts.keys.keys === undefined) return undefined
    const known = this.#verified.get(digest)
    const judging = this.#judging()
    if (known?.keys === judging.keys) return known.claims
    const found = verifiedClaims(readToken(token), judging)
    return 'kind' in found ? undefined : found
  }

  #remember(digest: string, claims: AccountClaims, { keys }: Judging): void {
    this.#verified.delete(digest)
    this.#verified.set(digest, { claims, keys })
    if (this.#verified.size > (this.#parts.verifiedMax ?? verifiedMax))
      this.#verified.delete(this.#verified.keys().next().value as string)
  }

  #judging(): Judging {
    const { keys, objects, nowMs } = this.#parts
    if (keys.keys === undefined || keys.record === undefined) throw new Error('no keys are known')
    const isAudience = (audiences: readonly string[]) => this.#isAudience(audiences)
    return { issuer: keys.record.issuer, keys: keys.keys, isAudience, objects, nowMs: nowMs() }
  }

  /** One that the API server took is in each set that has all of another such set. */
  #isAudience(audiences: readonly string[]): boolean {
    if (this.#parts.audiences.some((one) => audiences.includes(one))) return true
    return (this.#parts.keys.record?.audiences ?? []).some((taken) => isWithin(taken, audiences))
  }

  /** Again, by the keys of now. */
  async #look(token: string, digest: string): Promise<void> {
    const { keys, reachability } = this.#parts
    await keys.refresh()
    // Without the cloud a copy may be as old as it is.
    if (reachability.state !== 'reachable') return
    if (this.judge(token, digest).kind === 'caller') this.#differ('no caller')
  }

  #differ(what: string): void {
    const { keys, log } = this.#parts
    log.warn('access.tokens.differ', { issuer: keys.record?.issuer ?? '', apiServer: what })
    this.#counter.add('verdict="differs"')
    keys.note({ differs: true })
    this.doubt()
  }
}

function isWithin(some: readonly string[], all: readonly string[]): boolean {
  return some.every((one) => all.includes(one))
}

function spelled({ name, uid, groups, extra = {} }: Caller): string {
  return JSON.stringify([name, uid, [...groups].sort(), Object.entries(extra).sort(([a], [b]) => (a < b ? -1 : 1))])
}
