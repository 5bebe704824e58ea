/**
 * Tokens of service accounts as the cloud issued them through us, kept so that a pod can be started again while the cloud is
 * away: the kubelet asks for a token before it starts a pod, and a refusal keeps the pod down. Only the caller to whom a
 * token was issued gets it again, for the same account, bound object and audiences, and never with a longer life.
 */

import type { Caller } from '../kube/caller.ts'
import type { TokenRequestFacts } from '../kube/tokenrequest.ts'
import { accountCaller } from './authenticate/accounttoken.ts'
import type { Callers } from './callers.ts'
import { idOf } from './identity.ts'
import { type Claims, readClaims } from './jwt.ts'
import type { WriteBehind } from './writebehind.ts'

/** The part of a request that says for what a token is. */
export type TokenWish = Pick<TokenRequestFacts, 'audiences' | 'expirationSeconds' | 'boundTo'>

export type TokenAsked = {
  readonly namespace: string
  readonly account: string
  readonly caller: Caller
  readonly request: TokenWish
}

export type TokenAnswer = { readonly facts: TokenRequestFacts; readonly warning?: string }

type KeptToken = {
  readonly namespace: string
  readonly account: string
  readonly boundTo: TokenRequestFacts['boundTo']
  /** Of the service account. */
  readonly uid: string
  readonly audiences: readonly string[]
  readonly token: string
  /** The token's own end, which may be long after the one in the answer: the API server lets old clients be late. */
  readonly endsMs: number
  usedAt: number
}

export const tokenKind = 'token'

const tokensMax = 2048 // a node has some hundred pods with one to three tokens each; about 1.5 KB apiece
const defaultSeconds = 3600 // what the API server takes where none are asked for

type Parts = {
  readonly callers: Pick<Callers, 'learn' | 'learnAudiences'>
  readonly behind: WriteBehind
  readonly stored: readonly { readonly key: string; readonly value: Buffer }[]
}

export class TokenKeeper {
  readonly #callers: Pick<Callers, 'learn' | 'learnAudiences'>
  readonly #behind: WriteBehind
  readonly #kept = new Map<string, KeptToken>()
  /** Accounts and bound objects of the kept ones, and maybe of some that went; made anew after the next is kept. */
  #subjects: ReadonlySet<string> | undefined
  /** What the API server puts into a token when no audience is asked for: its own. */
  readonly #ownAudiences = new Set<string>()

  constructor({ callers, behind, stored }: Parts) {
    this.#callers = callers
    this.#behind = behind
    const revived = stored.map(({ key, value }) => [key, parseKept(value)] as const)
    for (const [key, kept] of revived.sort(([, a], [, b]) => (a?.usedAt ?? 0) - (b?.usedAt ?? 0))) {
      if (kept === undefined) behind.put(tokenKind, key, undefined)
      else this.#kept.set(key, kept)
    }
  }

  /** The API server issued a token through us. */
  remember(asked: TokenAsked, reply: TokenRequestFacts, nowMs: number): void {
    const { namespace, account, request } = asked
    const { token, uid, audiences, expiresSeconds } = reply
    const claims = readClaims(token)
    const endsMs = claims?.expiresMs ?? (expiresSeconds ?? 0) * 1000
    if (token === '') return
    // Under another uid it is another account, and the tokens of the one before are worth nothing.
    const own = claims?.account?.uid
    if (own !== undefined) this.#dropAll((one) => isOf(one, asked) && (uidOf(one) ?? own) !== own)
    const kept = { namespace, account, boundTo: request.boundTo, uid, audiences, token, endsMs, usedAt: nowMs }
    const key = keyOf(asked)
    // The last one issued is last in order, and the first in order goes first.
    this.#kept.delete(key)
    this.#kept.set(key, kept)
    this.#subjects = undefined
    this.#behind.put(tokenKind, key, Buffer.from(JSON.stringify(kept)))
    void this.#behind.flush()
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= tokensMax) break
      this.#drop(oldest)
    }
    this.#introduce(asked, reply, claims)
  }

  /** While the cloud is away; undefined: none was ever issued for this. */
  answer(asked: TokenAsked, nowMs: number): TokenAnswer | undefined {
    const kept = this.#kept.get(keyOf(asked))
    if (kept === undefined) return undefined
    const { expirationSeconds = defaultSeconds, boundTo } = asked.request
    const { uid, audiences, token, endsMs } = kept
    const createdSeconds = Math.floor(nowMs / 1000)
    const expiresSeconds = Math.min(Math.floor(endsMs / 1000), createdSeconds + expirationSeconds)
    const facts = { uid, createdSeconds, audiences, expirationSeconds, boundTo, token, expiresSeconds }
    if (endsMs > nowMs) return { facts }
    const since = new Date(endsMs).toISOString()
    return {
      facts,
      warning: `this token expired at ${since}; the API server, which cannot be reached, has to renew it`,
    }
  }

  /** Of every object that a kept token is bound to, by its uid, when the last of them ends. */
  ends(): Map<string, number> {
    const found = new Map<string, number>()
    for (const { boundTo, endsMs } of this.#kept.values())
      if (boundTo !== undefined) found.set(boundTo.uid, Math.max(endsMs, found.get(boundTo.uid) ?? 0))
    return found
  }

  /** The API server has refused this wish since: what it gave for it before is not given again. */
  refuse(asked: TokenAsked): void {
    this.#dropAll((_, key) => key === keyOf(asked))
  }

  /** The account is no more, or another one by now: all its tokens go, whatever for. `uid`: of the one that is gone. */
  dropAccount(namespace: string, account: string, uid = ''): void {
    this.#dropAll((kept) => {
      return isOf(kept, { namespace, account }) && (uid === '' || (uidOf(kept) ?? uid) === uid)
    })
  }

  /** The deletion of a bound object was confirmed. */
  dropBound(kind: string, namespace: string, name: string, uid: string): void {
    this.#dropAll(({ namespace: at, boundTo: bound }) => {
      if (at !== namespace || bound === undefined) return false
      return bound.kind === kind && bound.name === name && bound.uid === uid
    })
  }

  /** Whether a token is kept that such a deletion could end: asked at every change of a pod, so it is known by name. */
  mayDrop(kind: string, namespace: string, name: string): boolean {
    if (this.#kept.size === 0) return false
    this.#subjects ??= new Set([...this.#kept.values()].flatMap(subjectsOf))
    return this.#subjects.has(`${kind} ${namespace}/${name}`)
  }

  #dropAll(isMeant: (kept: KeptToken, key: string) => boolean): void {
    for (const [key, kept] of this.#kept) if (isMeant(kept, key)) this.#drop(key)
  }

  #drop(key: string): void {
    this.#kept.delete(key)
    this.#behind.remove(tokenKind, key)
  }

  /**
   * A client that shows this token is known without asking, if it is one for the API server. A token for another audience is
   * shown to others, and must open nothing here.
   */
  #introduce({ namespace, account, request }: TokenAsked, reply: TokenRequestFacts, claims: Claims | undefined): void {
    const found = claims?.account
    if (claims?.expiresMs === undefined || found?.namespace !== namespace || found.name !== account) return
    if (request.audiences.length === 0) {
      for (const audience of claims.audiences) this.#ownAudiences.add(audience)
      this.#callers.learnAudiences(claims.audiences)
    }
    if (!claims.audiences.some((audience) => this.#ownAudiences.has(audience))) return
    // Its own name for the token is left out.
    const { pod, node } = found
    this.#callers.learn(reply.token, accountCaller({ namespace, account: found, pod, node, id: '' }), claims.expiresMs)
  }
}

function subjectsOf({ namespace, account, boundTo }: KeptToken): string[] {
  const own = `ServiceAccount ${namespace}/${account}`
  return boundTo === undefined ? [own] : [own, `${boundTo.kind} ${namespace}/${boundTo.name}`]
}

/** Of the account, as its token tells. */
function uidOf({ token }: KeptToken): string | undefined {
  return readClaims(token)?.account?.uid
}

function isOf(kept: KeptToken, { namespace, account }: Pick<TokenAsked, 'namespace' | 'account'>): boolean {
  return kept.namespace === namespace && kept.account === account
}

function keyOf({ namespace, account, caller, request: { audiences, boundTo } }: TokenAsked): string {
  const object = boundTo === undefined ? [] : [boundTo.kind, boundTo.name, boundTo.uid]
  return JSON.stringify([namespace, account, idOf(caller), object, [...new Set(audiences)].sort()])
}

function parseKept(value: Buffer): KeptToken | undefined {
  try {
    const kept = JSON.parse(value.toString('utf8')) as KeptToken
    const sound = typeof kept.token === 'string' && typeof kept.endsMs === 'number' && Array.isArray(kept.audiences)
    return sound ? { ...kept, boundTo: kept.boundTo ?? undefined } : undefined
  } catch {
    return undefined
  }
}
