/** A cluster that signs tokens, for tests: its keys, its JWKS, and tokens that differ from good ones in one thing. */
import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'

export const issuer = 'https://kubernetes.default.svc'

export type Signer = {
  readonly id: string
  readonly algorithm: string
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
}

export function makeSigner(algorithm = 'ES256'): Signer {
  const namedCurve = { ES256: 'P-256', ES384: 'P-384', ES512: 'P-521' }[algorithm]
  const { privateKey, publicKey } =
    namedCurve === undefined
      ? generateKeyPairSync('rsa', { modulusLength: 2048 })
      : generateKeyPairSync('ec', { namedCurve })
  const id = createHash('sha256')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest('base64url')
  return { id, algorithm, privateKey, publicKey }
}

export function jwksOf(...signers: readonly Signer[]): string {
  const keys = signers.map(({ id, algorithm, publicKey }) => ({
    ...publicKey.export({ format: 'jwk' }),
    ...{ use: 'sig', kid: id, alg: algorithm },
  }))
  return JSON.stringify({ keys })
}

/** Also of texts that are no JSON of an object. */
export function signToken(signer: Signer, claims: object | string, header: object | string = {}): string {
  const { algorithm, id, privateKey } = signer
  const head = typeof header === 'string' ? header : JSON.stringify({ alg: algorithm, kid: id, ...header })
  const body = typeof claims === 'string' ? claims : JSON.stringify(claims)
  const signed = [head, body].map((part) => Buffer.from(part).toString('base64url')).join('.')
  const hash = `sha${algorithm.slice(2)}`
  const pss = algorithm.startsWith('PS') ? { padding: 6, saltLength: Number(algorithm.slice(2)) / 8 } : {}
  const signature = sign(hash, Buffer.from(signed), { key: privateKey, dsaEncoding: 'ieee-p1363', ...pss })
  return `${signed}.${signature.toString('base64url')}`
}

/** The claims of a pod's token as kube-apiserver 1.36 makes them, good for an hour. */
export function podClaims(nowMs: number, changed: object = {}): Record<string, unknown> {
  const now = Math.floor(nowMs / 1000)
  return {
    aud: [issuer],
    exp: now + 3600,
    iat: now,
    iss: issuer,
    jti: 'c4d7a1f0-0000-4000-8000-000000000001',
    'kubernetes.io': {
      namespace: 'shop',
      node: { name: 'n1', uid: 'node-uid' },
      pod: { name: 'till-1', uid: 'pod-uid' },
      serviceaccount: { name: 'till', uid: 'account-uid' },
      warnafter: now + 3607,
    },
    nbf: now,
    sub: 'system:serviceaccount:shop:till',
    ...changed,
  }
}
