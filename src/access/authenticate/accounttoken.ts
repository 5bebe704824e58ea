/**
 * Who stands behind a service account's token, judged by what kube-apiserver judges by: the signature, issuer, audience and
 * times, and whether the account and what the token is bound to still exist under the same uid. Whatever cannot be told here
 * is undecided, and never a caller.
 */
import type { Caller } from '../../kube/caller.ts'
import { type Json, text } from '../../kube/json/json.ts'
import { type AccountClaims, accountClaims, legacyIssuer, type NamedObject } from './accountclaims.ts'
import type { PublicKeys } from './publickeys.ts'
import type { SignedToken } from './signedtoken.ts'

/** kube-apiserver's: for clocks that differ, and for an object that is deleted while its token is on its way. */
const leewayMs = 60_000

export type BoundKind = 'ServiceAccount' | 'Secret' | 'Pod' | 'Node'

export type BoundObject = {
  readonly uid: string
  /** By when it is to be gone, if it is being deleted. */
  readonly deletionMs: number | undefined
  /** All of it. */
  read(): Json
}

/** What is known of the objects that tokens are bound to. */
export interface BoundObjects {
  /** `node`: the one that a pod is said to be on. */
  find(kind: BoundKind, namespace: string, name: string, node?: string): BoundObject | 'absent' | 'unknown'
}

export type TokenVerdict =
  | { readonly kind: 'caller'; readonly caller: Caller; readonly expiresMs: number | undefined }
  /** `gone`: what it was bound to is no more, which no other authenticator can make good. `why` is kube-apiserver's. */
  | { readonly kind: 'refused'; readonly why: string; readonly gone: boolean }
  /** `key`: it is signed with one that is not known here, or not known yet. */
  | { readonly kind: 'undecided'; readonly why: string; readonly key: boolean }

export type Judging = {
  /** Of the cluster. */
  readonly issuer: string
  readonly keys: PublicKeys
  /** Whether the API server takes a token for one of these, as far as that is known. */
  readonly isAudience: (audiences: readonly string[]) => boolean
  readonly objects: BoundObjects
  readonly nowMs: number
}

type Named = Pick<AccountClaims, 'namespace' | 'account' | 'pod' | 'node' | 'id'>
type Verified = AccountClaims | Exclude<TokenVerdict, { kind: 'caller' }>

/** What holds of a token as long as the keys do. */
export function verifiedClaims(token: SignedToken | undefined, judging: Judging): Verified {
  const { issuer, keys } = judging
  const named = token?.claims.get('iss')
  if (token === undefined) return undecided('it is no token as API servers issue them')
  if (issuer === legacyIssuer || (named !== issuer && named !== legacyIssuer)) return undecided('another issued it')
  // kube-apiserver looks for its tokens with a reader that takes a claim in any case for the issuer.
  if (token.claims.keys().some((key) => key !== 'iss' && key.toUpperCase() === 'ISS')) return undecided('two issued it')
  const signed = keys.verify(token)
  if (signed === 'unknown') return judgeUnsigned(token, judging)
  if (signed === 'forged') return refused('go-jose/go-jose: error in cryptographic primitive')
  return accountClaims(token.claims) ?? refused('its claims are malformed')
}

export function judgeToken(token: SignedToken | undefined, judging: Judging): TokenVerdict {
  const claims = verifiedClaims(token, judging)
  return 'kind' in claims ? claims : judgeClaims(claims, token?.text ?? '', judging)
}

/** Of a token whose key is not known: what it says it is bound to may be gone all the same. */
function judgeUnsigned(token: SignedToken, judging: Judging): Exclude<TokenVerdict, { kind: 'caller' }> {
  const claims = accountClaims(token.claims)
  const verdict = claims && judgeClaims(claims, token.text, judging)
  const isGone = verdict?.kind === 'refused' && verdict.gone
  return isGone ? verdict : { kind: 'undecided', why: 'its key is not known', key: true }
}

/** Of claims whose signature was verified. A refusal outweighs what cannot be told. */
export function judgeClaims(claims: AccountClaims, token: string, judging: Judging): TokenVerdict {
  const { audiences, expiresMs, issuer } = claims
  const isLegacy = issuer === legacyIssuer
  // What names no audience is for the API server itself.
  const isMeant = audiences.length === 0 || judging.isAudience(audiences)
  const found = isLegacy ? judgeLegacy(claims, token, judging) : judgeBound(claims, judging)
  if (found !== undefined && found.kind === 'refused') return found
  if (!isMeant) return undecided('whether the API server takes its audience is not known')
  // Of a token that is kept in a Secret neither its end nor its name counts.
  const counted = isLegacy ? { ...claims, id: '' } : claims
  return found ?? { kind: 'caller', caller: accountCaller(counted), expiresMs: isLegacy ? undefined : expiresMs }
}

function judgeBound(claims: AccountClaims, judging: Judging): TokenVerdict | undefined {
  const { namespace, account, secret, pod, node, expiresMs, notBeforeMs, issuedMs } = claims
  const { nowMs } = judging
  if (notBeforeMs !== undefined && nowMs + leewayMs < notBeforeMs)
    return refused('service account token is not valid yet')
  if (expiresMs !== undefined && nowMs - leewayMs > expiresMs) return refused('service account token has expired')
  if (issuedMs !== undefined && nowMs + leewayMs < issuedMs) {
    return refused('service account token is issued in the future')
  }
  const lookups: (readonly [BoundKind, string, NamedObject, (string | undefined)?])[] = [
    ['ServiceAccount', namespace, account],
  ]
  if (secret !== undefined) lookups.push(['Secret', namespace, secret])
  if (pod !== undefined) lookups.push(['Pod', namespace, pod, node?.name])
  else if (node !== undefined) lookups.push(['Node', '', node])
  let unknown: TokenVerdict | undefined
  for (const [kind, at, { name, uid }, onNode] of lookups) {
    const object = name === '' ? 'absent' : judging.objects.find(kind, at, name, onNode)
    if (object === 'unknown') unknown ??= undecided(`its ${kind} is not known here`)
    else if (object === 'absent') return gone(invalidated(kind, at, name))
    else if (object.uid !== uid) return gone(otherUid(kind, object.uid, uid))
    else if (object.deletionMs !== undefined && object.deletionMs < nowMs - leewayMs) {
      return gone(kind === 'ServiceAccount' ? `service account ${at}/${name} has been deleted` : invalid)
    }
  }
  return unknown
}

const invalid = 'service account token has been invalidated'

function invalidated(kind: BoundKind, namespace: string, name: string): string {
  if (kind !== 'ServiceAccount') return invalid
  return namespace === '' ? 'serviceaccounts "" not found' : `serviceaccounts ${JSON.stringify(name)} not found`
}

function otherUid(kind: BoundKind, found: string, claimed: string): string {
  if (kind === 'ServiceAccount') return `service account UID (${found}) does not match claim (${claimed})`
  const what = kind.toLowerCase()
  return `${what} UID (${found}) does not match service account ${what} ref claim (${claimed})`
}

/** Of one that is kept in a Secret, it is the Secret that counts: what it holds, and its label. */
function judgeLegacy(claims: AccountClaims, token: string, { objects }: Judging): TokenVerdict | undefined {
  const { namespace, account, secret, subject } = claims
  const isWhole = [subject, namespace, account.name, account.uid, secret?.name].every((one) => one !== '')
  if (!isWhole) return refused('a claim is missing')
  if (subject !== `system:serviceaccount:${namespace}:${account.name}`) return refused('sub claim is invalid')
  const kept = objects.find('Secret', namespace, secret?.name ?? '')
  if (kept === 'absent') return gone('Token has been invalidated')
  if (kept !== 'unknown') {
    if (kept.deletionMs !== undefined) return gone('Token has been invalidated')
    const object = kept.read()
    if (Buffer.from(text(object, 'data', 'token'), 'base64').toString('latin1') !== token) {
      return gone("Token does not match server's copy")
    }
    if (text(object, 'metadata', 'labels', invalidSince) !== '') return gone('the token has been marked invalid')
  }
  const found = objects.find('ServiceAccount', namespace, account.name)
  if (found === 'absent') return gone(invalidated('ServiceAccount', namespace, account.name))
  if (found === 'unknown' || kept === 'unknown') return undecided('its ServiceAccount or Secret is not known here')
  if (found.deletionMs !== undefined) return gone(`ServiceAccount ${namespace}/${account.name} has been deleted`)
  if (found.uid === account.uid) return undefined
  return gone(`ServiceAccount UID (${found.uid}) does not match claim (${account.uid})`)
}

const invalidSince = 'kubernetes.io/legacy-token-invalid-since'
const attribute = 'authentication.kubernetes.io/'

/** As kube-apiserver sees a service account, by what its token says. */
export function accountCaller({ namespace, account, pod, node, id }: Named): Caller {
  const extra: Record<string, readonly string[]> = {}
  if (id !== '') extra[`${attribute}credential-id`] = [`JTI=${id}`]
  for (const [kind, object] of [['pod', pod] as const, ['node', node] as const]) {
    if (object === undefined || object.name === '') continue
    extra[`${attribute}${kind}-name`] = [object.name]
    if (object.uid !== '') extra[`${attribute}${kind}-uid`] = [object.uid]
  }
  const caller: Caller = {
    name: `system:serviceaccount:${namespace}:${account.name}`,
    uid: account.uid,
    groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
  }
  return Object.keys(extra).length === 0 ? caller : { ...caller, extra }
}

function refused(why: string): TokenVerdict & { kind: 'refused' } {
  return { kind: 'refused', why, gone: false }
}

function gone(why: string): TokenVerdict & { kind: 'refused' } {
  return { kind: 'refused', why, gone: true }
}

function undecided(why: string): TokenVerdict & { kind: 'undecided' } {
  return { kind: 'undecided', why, key: false }
}
