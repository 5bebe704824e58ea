/**
 * Whose token it is, at the authority that issued it: the signature is looked at once for each identity (the same for all that a
 * connection shows the token for), times and what the token is bound to each time. What it did not issue is no caller's.
 */
import type { Caller } from '../../kube/caller.ts'
import { quoted } from '../../kube/json/gotext.ts'
import type { Identity } from '../../upstream/upstream.ts'
import type { AccountClaims } from './accountclaims.ts'
import type { AccountIssuer } from './accountissuer.ts'
import { type BoundObjects, type Judging, judgeClaims, verifiedClaims } from './accounttoken.ts'
import { PublicKeys } from './publickeys.ts'
import { readToken } from './signedtoken.ts'

type TokenIdentity = Identity & { readonly kind: 'token' }

type Parts = {
  readonly issuer: Pick<AccountIssuer, 'issuer' | 'jwks'>
  readonly objects: BoundObjects
  readonly nowMs: () => number
}

/** What a TokenReview says. */
type Reviewed = { readonly caller: Caller; readonly audiences: readonly string[] } | { readonly error: string }

const invalid = 'invalid bearer token'

export class OwnTokens {
  readonly #parts: Parts
  readonly #keys: PublicKeys
  readonly #verified = new WeakMap<TokenIdentity, AccountClaims | 'refused'>()

  constructor(parts: Parts) {
    this.#parts = parts
    const keys = PublicKeys.read(parts.issuer.jwks)
    if (keys === undefined) throw new Error('its own keys are none that verify tokens')
    this.#keys = keys
  }

  /** Undefined: it is not accepted. */
  caller(identity: TokenIdentity): Caller | undefined {
    const judging = this.#judging((audiences) => audiences.includes(this.#parts.issuer.issuer))
    let claims = this.#verified.get(identity)
    if (claims === undefined) {
      const found = verifiedClaims(readToken(identity.token), judging)
      claims = 'kind' in found ? 'refused' : found
      this.#verified.set(identity, claims)
    }
    if (claims === 'refused') return undefined
    const verdict = judgeClaims(claims, identity.token, judging)
    return verdict.kind === 'caller' ? verdict.caller : undefined
  }

  /** For any of these audiences; none means the authority's own. In the order of kube-apiserver, which names the first fault. */
  review(token: string, wanted: readonly string[]): Reviewed {
    const { issuer } = this.#parts.issuer
    const judging = this.#judging(() => true)
    const read = readToken(token)
    const claims = verifiedClaims(read, judging)
    if (read !== undefined && read.claims.get('iss') === issuer && this.#keys.verify(read) === 'unknown') {
      return refused('invalid signature, no keys found')
    }
    if ('kind' in claims) return claims.kind === 'refused' ? refused(claims.why) : { error: invalid }
    const target = wanted.length === 0 ? [issuer] : wanted
    const own = claims.audiences.length === 0 ? [issuer] : claims.audiences
    const audiences = target.filter((one) => own.includes(one))
    if (audiences.length === 0) {
      return refused(`token audiences ${list(own)} is invalid for the target audiences ${list(target)}`)
    }
    const verdict = judgeClaims(claims, token, judging)
    if (verdict.kind === 'caller') return { caller: verdict.caller, audiences }
    return verdict.kind === 'refused' ? refused(verdict.why) : { error: invalid }
  }

  #judging(isAudience: Judging['isAudience']): Judging {
    const { issuer, objects, nowMs } = this.#parts
    return { issuer: issuer.issuer, keys: this.#keys, isAudience, objects, nowMs: nowMs() }
  }
}

function refused(why: string): Reviewed {
  return { error: `[${invalid}, ${why}]` }
}

function list(texts: readonly string[]): string {
  return `[${texts.map(quoted).join(' ')}]`
}
