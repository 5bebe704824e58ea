/** Claims and headers that differ from good ones, by hand and by a seed; every token is signed with the cluster's own key. */
import type { Random } from '../site.ts'

export type Claims = Record<string, unknown>
export type Spelled = { readonly claims: Claims | string; readonly header?: object | string }

export type Case = Spelled & {
  readonly what: string
  readonly expected: 'caller' | 'refused' | 'undecided'
  /** The API server reads what is not read here. */
  readonly mayDiffer?: boolean
}

export function casesOf(good: Claims, { issuer, keyId }: { issuer: string; keyId: string }): Case[] {
  const now = Math.floor(Date.now() / 1000)
  const own = good['kubernetes.io'] as Claims
  const claiming = (what: string, change: Claims, expected: Case['expected']): Case => ({
    ...{ what, expected },
    claims: { ...good, ...change },
  })
  const headed = (what: string, header: object | string, expected: Case['expected']): Case => ({
    ...{ what, header, expected },
    claims: good,
  })
  return [
    claiming('as it is', {}, 'caller'),
    claiming('without an end', { exp: undefined }, 'caller'),
    claiming('expired', { exp: now - 300 }, 'refused'),
    claiming('expired within the minute', { exp: now - 20 }, 'caller'),
    claiming('not yet valid', { nbf: now + 300 }, 'refused'),
    claiming('not yet valid within the minute', { nbf: now + 20 }, 'caller'),
    claiming('issued in the future', { iat: now + 300 }, 'refused'),
    claiming('a moment with a fraction', { exp: now + 100.75 }, 'caller'),
    claiming('a moment with an exponent', { exp: 4e9 }, 'caller'),
    claiming('a moment as a text', { exp: String(now + 100) }, 'refused'),
    claiming('another issuer', { iss: 'https://other.example' }, 'undecided'),
    claiming('no issuer', { iss: undefined }, 'undecided'),
    claiming('the issuer of tokens in Secrets, without their claims', { iss: 'kubernetes/serviceaccount' }, 'refused'),
    claiming('another audience', { aud: ['vault'] }, 'undecided'),
    claiming('an audience among others', { aud: ['vault', issuer] }, 'caller'),
    claiming('one audience as a text', { aud: issuer }, 'caller'),
    claiming('no audience', { aud: undefined }, 'caller'),
    claiming('an empty list of audiences', { aud: [] }, 'caller'),
    claiming('null for an audience', { aud: null }, 'refused'),
    claiming('a number among the audiences', { aud: [issuer, 1] }, 'refused'),
    claiming('another subject, which counts for nothing', { sub: 'system:serviceaccount:kube-system:admin' }, 'caller'),
    claiming('no subject', { sub: undefined }, 'caller'),
    claiming('a subject that is no text', { sub: 7 }, 'refused'),
    claiming('no name of its own', { jti: undefined }, 'caller'),
    claiming('no claims of Kubernetes', { 'kubernetes.io': undefined }, 'refused'),
    claiming('another namespace', { 'kubernetes.io': { ...own, namespace: 'kube-system' } }, 'refused'),
    claiming('another uid', { 'kubernetes.io': { ...own, serviceaccount: { name: 'till', uid: 'x' } } }, 'refused'),
    claiming('an empty pod', { 'kubernetes.io': { ...own, pod: {} } }, 'refused'),
    claiming('null for a pod', { 'kubernetes.io': { ...own, pod: null } }, 'caller'),
    claiming('a pod that never was', { 'kubernetes.io': { ...own, pod: { name: 'x', uid: 'y' } } }, 'refused'),
    claiming('stale', { 'kubernetes.io': { ...own, warnafter: now - 300 } }, 'caller'),
    claiming('an end in another case', { Exp: now - 300 }, 'caller'),
    claiming('an issuer in another case', { ISS: 'https://other.example' }, 'undecided'),
    headed('no name of a key', { kid: undefined }, 'caller'),
    headed('an empty name of a key', { kid: '' }, 'caller'),
    headed('an unknown name of a key', { kid: 'unknown' }, 'undecided'),
    headed('a type', { typ: 'JWT' }, 'caller'),
    { ...headed('another type', { typ: 'JOSE' }, 'undecided'), mayDiffer: true },
    headed('an algorithm of another hash', { alg: 'RS384' }, 'refused'),
    headed('an algorithm of another padding', { alg: 'PS256' }, 'refused'),
    headed('an algorithm of another key', { alg: 'ES256' }, 'refused'),
    headed('no algorithm', { alg: 'none' }, 'refused'),
    headed('an HMAC', { alg: 'HS256' }, 'refused'),
    headed('something critical', { crit: ['x'], x: 1 }, 'undecided'),
    headed('the critical b64', { crit: ['b64'], b64: false }, 'undecided'),
    headed('an algorithm twice', `{"alg":"none","alg":"RS256","kid":"${keyId}"}`, 'undecided'),
    { what: 'the issuer twice', expected: 'undecided', claims: `{"iss":"x",${JSON.stringify(good).slice(1)}` },
    {
      what: 'the namespace twice',
      expected: 'undecided',
      claims: JSON.stringify(good).replace('"namespace"', '"namespace":"kube-system","namespace"'),
    },
    { what: 'null for claims', expected: 'undecided', claims: 'null' },
  ]
}

const oddities: readonly unknown[] = [null, '', 'x', 0, -1, 1, 1e18, 1.5, true, [], ['x'], {}, { name: 'x' }]

/** One or two claims, wherever they stand, are left out or made odd. */
export function mutated(good: Claims, random: Random): Claims {
  const claims = structuredClone(good)
  for (let left = 1 + random.below(2); left > 0; left--) {
    let at: Claims = claims
    for (;;) {
      const key = random.of([...Object.keys(at), 'secret', 'node', 'nbf'])
      const inner = at[key]
      if (typeof inner === 'object' && inner !== null && !Array.isArray(inner) && random.below(3) > 0) {
        at = inner as Claims
        continue
      }
      if (random.below(3) === 0) delete at[key]
      else at[key] = structuredClone(random.of(oddities))
      break
    }
  }
  return claims
}
