/**
 * The two who judge a token: the real API server by TokenReview, and the edge's verifier with the API server's keys and
 * objects. A token is put to the API server once: it remembers for ten seconds what it accepted.
 */
import {
  type BoundKind,
  type BoundObject,
  judgeToken,
  type TokenVerdict,
} from '../../src/access/authenticate/accounttoken.ts'
import { PublicKeys } from '../../src/access/authenticate/publickeys.ts'
import { readToken } from '../../src/access/authenticate/signedtoken.ts'
import { parseJson } from '../../src/kube/json/json.ts'
import type { Findings } from '../findings.ts'
import { ask, type Oracle } from '../oracle.ts'

const resources: Readonly<Record<BoundKind, string>> = {
  ServiceAccount: 'serviceaccounts',
  Secret: 'secrets',
  Pod: 'pods',
  Node: 'nodes',
}

type Reviewed = {
  readonly authenticated?: boolean
  readonly user?: { username: string; uid?: string; groups?: string[]; extra?: Record<string, string[]> }
  readonly error?: string
}

export class Judges {
  readonly #oracle: Oracle
  #issuer = ''
  #keys: PublicKeys | undefined

  constructor(oracle: Oracle) {
    this.#oracle = oracle
  }

  /** Reads the issuer and the keys, as an edge does. */
  async learn(): Promise<void> {
    const [found, jwks] = await Promise.all([
      ask(this.#oracle, '/.well-known/openid-configuration'),
      ask(this.#oracle, '/openid/v1/jwks'),
    ])
    this.#issuer = (JSON.parse(found.body) as { issuer: string }).issuer
    this.#keys = PublicKeys.read(jwks.body)
  }

  async review(token: string): Promise<Reviewed> {
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token } }
    const answer = await ask(this.#oracle, '/apis/authentication.k8s.io/v1/tokenreviews', { method: 'POST', body })
    if (answer.status !== 201) throw new Error(`TokenReview: ${answer.status} ${answer.body}`)
    return (JSON.parse(answer.body) as { status: Reviewed }).status
  }

  /** What the verifier wants to know of objects is asked of the API server, until it wants nothing more. */
  async judge(text: string): Promise<TokenVerdict> {
    const keys = this.#keys
    if (keys === undefined) throw new Error('the API server publishes no keys')
    const token = readToken(text)
    const known = new Map<string, BoundObject | 'absent'>()
    for (;;) {
      const wanted: (readonly [string, string])[] = []
      const verdict = judgeToken(token, {
        ...{ issuer: this.#issuer, keys, nowMs: Date.now() },
        isAudience: (audiences) => audiences.includes(this.#issuer),
        objects: {
          find: (kind, namespace, name) => {
            const within = namespace === '' ? '' : `namespaces/${encodeURIComponent(namespace)}/`
            const path = `/api/v1/${within}${resources[kind]}/${encodeURIComponent(name)}`
            const found = known.get(path)
            if (found === undefined) wanted.push([path, kind])
            return found ?? 'unknown'
          },
        },
      })
      if (wanted.length === 0) return verdict
      for (const [path] of wanted) known.set(path, await this.#find(path))
    }
  }

  /** Both say the same, of the same caller; answers the verifier's verdict. `mayDiffer`: the API server may accept what is undecided here. */
  async compare(
    findings: Findings,
    what: string,
    token: string,
    { mayDiffer = false }: { mayDiffer?: boolean | undefined } = {},
  ): Promise<TokenVerdict['kind'] | 'differs'> {
    const [reviewed, verdict] = [await this.review(token), await this.judge(token)]
    const isAccepted = reviewed.authenticated === true
    const ours = verdict.kind === 'caller' ? verdict.caller : undefined
    const shown = { reviewed, verdict }
    if (mayDiffer && verdict.kind === 'undecided') return verdict.kind
    if (!findings.check(isAccepted === (ours !== undefined), `${what}: accepted or not`, shown)) return 'differs'
    if (ours === undefined) return verdict.kind
    const { username = '', uid = '', groups = [], extra } = reviewed.user ?? {}
    const theirs = { name: username, uid, groups, extra: sorted(extra) }
    return findings.equal({ ...ours, extra: sorted(ours.extra) }, theirs, `${what}: the same caller`)
      ? 'caller'
      : 'differs'
  }

  async #find(path: string): Promise<BoundObject | 'absent'> {
    const { status, body } = await ask(this.#oracle, path)
    if (status !== 200) return 'absent'
    const { uid, deletionTimestamp } = (JSON.parse(body) as { metadata: Record<string, string> }).metadata
    const deletionMs = deletionTimestamp === undefined ? undefined : Date.parse(deletionTimestamp)
    return { uid: uid ?? '', deletionMs, read: () => parseJson(body) }
  }
}

function sorted(extra: Readonly<Record<string, readonly string[]>> = {}): object {
  return Object.fromEntries(Object.entries(extra).sort(([a], [b]) => (a < b ? -1 : 1)))
}
