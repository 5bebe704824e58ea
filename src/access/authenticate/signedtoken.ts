/**
 * A JSON Web Token in its compact form, taken apart and not yet believed. Only the form in which API servers issue tokens is
 * read: what is spelled otherwise (padding, a key twice, `crit`, a key or a chain of its own) may be a token to the API
 * server, which is asked about it, and is none here. Never throws, whatever it is given.
 */
import { isUtf8 } from 'node:buffer'
import { type JsonObject, parseJson } from '../../kube/json/json.ts'

/** Kubernetes issues 1 to 2 KB; a header line of Node's server has less than this. */
export const tokenCharsMax = 16_384

export type SignedToken = {
  readonly text: string
  readonly algorithm: string
  /** Empty: it names no key. */
  readonly keyId: string
  readonly claims: JsonObject
  readonly signed: Buffer
  readonly signature: Buffer
}

export function readToken(text: string): SignedToken | undefined {
  if (text.length > tokenCharsMax) return undefined
  const first = text.indexOf('.')
  const second = text.indexOf('.', first + 1)
  if (first <= 0 || second < 0 || text.indexOf('.', second + 1) >= 0) return undefined
  const header = objectIn(decoded(text.slice(0, first)))
  const claims = objectIn(decoded(text.slice(first + 1, second)))
  const signature = decoded(text.slice(second + 1))
  if (header === undefined || claims === undefined || signature === undefined) return undefined
  const { alg, kid = '', typ = 'JWT', ...others } = Object.fromEntries(header)
  if (Object.keys(others).length > 0) return undefined
  if (typeof alg !== 'string' || typeof kid !== 'string' || typeof typ !== 'string') return undefined
  if (typ.toUpperCase() !== 'JWT') return undefined
  return { text, algorithm: alg, keyId: kid, claims, signed: Buffer.from(text.slice(0, second), 'latin1'), signature }
}

/** One text for one sequence of bytes: without padding, foreign characters or bits left over. */
function decoded(segment: string): Buffer | undefined {
  const bytes = Buffer.from(segment, 'base64url')
  return bytes.toString('base64url') === segment ? bytes : undefined
}

function objectIn(bytes: Buffer | undefined): JsonObject | undefined {
  if (bytes === undefined || !isUtf8(bytes)) return undefined
  let isTwice = false
  const duplicates = () => {
    isTwice = true
  }
  try {
    const value = parseJson(bytes, { duplicates })
    return value instanceof Map && !isTwice ? value : undefined
  } catch {
    return undefined
  }
}
