/**
 * The keys with which a cluster signs tokens, from its JWKS, and whether one of them signed a token. The key says what it
 * can verify, never the token: an RSA key is no secret of an HMAC, and no algorithm is not one.
 */
import { constants, createPublicKey, type KeyObject, verify } from 'node:crypto'
import { type Json, type JsonObject, parseJson } from '../../kube/json/json.ts'
import type { SignedToken } from './signedtoken.ts'

/** A cluster has one, two while it rotates; a token without a key's name costs a try of each. */
const keysMax = 16
/** What Go refuses to verify with is no key. */
const rsaBitsMin = 1024

type Key = { readonly id: string; readonly key: KeyObject; readonly algorithms: readonly string[] }

const rsa = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512']
/** By the curve's name in a JWK. */
const curves: Readonly<Record<string, { readonly algorithm: string; readonly signatureBytes: number }>> = {
  'P-256': { algorithm: 'ES256', signatureBytes: 64 },
  'P-384': { algorithm: 'ES384', signatureBytes: 96 },
  'P-521': { algorithm: 'ES512', signatureBytes: 132 },
}
const signatureBytes = new Map(Object.values(curves).map((curve) => [curve.algorithm, curve.signatureBytes]))

export class PublicKeys {
  readonly #keys: readonly Key[]

  private constructor(keys: readonly Key[]) {
    this.#keys = keys
  }

  /** Of a JWKS document; undefined where it holds no key that can verify anything. */
  static read(document: Buffer | string): PublicKeys | undefined {
    const found = listed(document).slice(0, keysMax).flatMap(keyOf)
    return found.length === 0 ? undefined : new PublicKeys(found)
  }

  /** `unknown`: it names a key that is not among these. */
  verify(token: SignedToken): 'verified' | 'forged' | 'unknown' {
    const { keyId, algorithm } = token
    const named = keyId === '' ? this.#keys : this.#keys.filter(({ id }) => id === keyId)
    if (named.length === 0) return 'unknown'
    const isSigned = named.some(({ key, algorithms }) => algorithms.includes(algorithm) && isSignedBy(key, token))
    return isSigned ? 'verified' : 'forged'
  }
}

function listed(document: Buffer | string): readonly Json[] {
  try {
    const set = parseJson(document)
    const keys = set instanceof Map ? set.get('keys') : undefined
    return Array.isArray(keys) ? keys : []
  } catch {
    return []
  }
}

function keyOf(value: Json): Key[] {
  if (!(value instanceof Map) || (value.get('use') ?? 'sig') !== 'sig') return []
  const id = value.get('kid') ?? ''
  const crv = text(value, 'crv')
  const jwk = text(value, 'kty') === 'RSA' ? only(value, ['kty', 'n', 'e']) : only(value, ['kty', 'crv', 'x', 'y'])
  const algorithms = jwk.kty === 'RSA' ? rsa : jwk.kty === 'EC' ? [curves[crv]?.algorithm ?? ''] : []
  if (typeof id !== 'string' || algorithms.length === 0 || algorithms[0] === '') return []
  try {
    const key = createPublicKey({ key: jwk, format: 'jwk' })
    if (jwk.kty === 'RSA' && (key.asymmetricKeyDetails?.modulusLength ?? 0) < rsaBitsMin) return []
    return [{ id, key, algorithms }]
  } catch {
    return []
  }
}

function only(value: JsonObject, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, text(value, name)]))
}

function text(value: JsonObject, name: string): string {
  const found = value.get(name)
  return typeof found === 'string' ? found : ''
}

function isSignedBy(key: KeyObject, { algorithm, signed, signature }: SignedToken): boolean {
  const hash = `sha${algorithm.slice(2)}`
  const length = signatureBytes.get(algorithm)
  if (length !== undefined && signature.length !== length) return false
  const { RSA_PKCS1_PADDING, RSA_PKCS1_PSS_PADDING, RSA_PSS_SALTLEN_AUTO } = constants
  try {
    if (length !== undefined) return verify(hash, signed, { key, dsaEncoding: 'ieee-p1363' }, signature)
    if (algorithm.startsWith('RS')) return verify(hash, signed, { key, padding: RSA_PKCS1_PADDING }, signature)
    const pss = { key, padding: RSA_PKCS1_PSS_PADDING, saltLength: RSA_PSS_SALTLEN_AUTO }
    return verify(hash, signed, pss, signature)
  } catch {
    return false
  }
}
