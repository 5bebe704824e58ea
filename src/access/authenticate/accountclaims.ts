/** What the token of a service account claims, read as kube-apiserver reads it; a claim of a wrong type spoils them all. */
import { type Json, type JsonObject, Spelled } from '../../kube/json/json.ts'

export type NamedObject = { readonly name: string; readonly uid: string }

export type AccountClaims = {
  readonly issuer: string
  readonly subject: string
  readonly audiences: readonly string[]
  /** The token's own name. */
  readonly id: string
  readonly expiresMs: number | undefined
  readonly notBeforeMs: number | undefined
  readonly issuedMs: number | undefined
  readonly namespace: string
  readonly account: NamedObject
  readonly secret: NamedObject | undefined
  readonly pod: NamedObject | undefined
  readonly node: NamedObject | undefined
}

/** Of tokens kept in Secrets, which have no end. */
export const legacyIssuer = 'kubernetes/serviceaccount'
const legacy = 'kubernetes.io/serviceaccount/'
/** Beyond it a moment is another one in kube-apiserver's arithmetic. */
const secondsMax = 9e18

class Malformed extends Error {}

export function accountClaims(claims: JsonObject): AccountClaims | undefined {
  try {
    const issuer = textIn(claims, 'iss')
    return {
      issuer,
      subject: textIn(claims, 'sub'),
      audiences: audiencesIn(claims),
      id: textIn(claims, 'jti'),
      expiresMs: momentIn(claims, 'exp'),
      notBeforeMs: momentIn(claims, 'nbf'),
      issuedMs: momentIn(claims, 'iat'),
      ...(issuer === legacyIssuer ? legacyAccount(claims) : boundAccount(claims)),
    }
  } catch (error) {
    if (error instanceof Malformed) return undefined
    throw error
  }
}

type Bound = Pick<AccountClaims, 'namespace' | 'account' | 'secret' | 'pod' | 'node'>

function boundAccount(claims: JsonObject): Bound {
  const own = objectIn(claims, 'kubernetes.io') ?? new Map()
  momentIn(own, 'warnafter') // it only makes kube-apiserver count
  return {
    namespace: textIn(own, 'namespace'),
    account: namedIn(own, 'serviceaccount') ?? { name: '', uid: '' },
    secret: namedIn(own, 'secret'),
    pod: namedIn(own, 'pod'),
    node: namedIn(own, 'node'),
  }
}

function legacyAccount(claims: JsonObject): Bound {
  return {
    namespace: textIn(claims, `${legacy}namespace`),
    account: {
      name: textIn(claims, `${legacy}service-account.name`),
      uid: textIn(claims, `${legacy}service-account.uid`),
    },
    secret: { name: textIn(claims, `${legacy}secret.name`), uid: '' },
    pod: undefined,
    node: undefined,
  }
}

function namedIn(object: JsonObject, key: string): NamedObject | undefined {
  const found = objectIn(object, key)
  return found && { name: textIn(found, 'name'), uid: textIn(found, 'uid') }
}

/** As in Go null is as good as nothing. */
function objectIn(object: JsonObject, key: string): JsonObject | undefined {
  const value = object.get(key) ?? undefined
  if (value !== undefined && !(value instanceof Map)) throw new Malformed()
  return value
}

function textIn(object: JsonObject, key: string): string {
  const value = object.get(key) ?? ''
  if (typeof value !== 'string') throw new Malformed()
  return value
}

function audiencesIn(claims: JsonObject): readonly string[] {
  const value: Json | undefined = claims.get('aud')
  if (value === undefined) return []
  const list = typeof value === 'string' ? [value] : value
  if (!Array.isArray(list)) throw new Malformed()
  return list.map((one) => {
    if (typeof one !== 'string') throw new Malformed()
    return one
  })
}

/** Whole seconds since 1970: a fraction is cut off. */
function momentIn(claims: JsonObject, key: string): number | undefined {
  const value = claims.get(key) ?? undefined
  if (value === undefined) return undefined
  const seconds = typeof value === 'number' ? value : value instanceof Spelled ? Number(value.source) : Number.NaN
  if (!(Math.abs(seconds) <= secondsMax)) throw new Malformed()
  return Math.trunc(seconds) * 1000
}
