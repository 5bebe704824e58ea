/**
 * What a hub says of the documents of its cluster: a sign of each, which is another one when the document is. An edge that holds what
 * has the same sign asks for nothing: so it knows in a few bytes for all of them, after a cut and all day, what it would have to ask for one by one.
 * Callers are not answered by it: what they ask for is asked for (A6).
 */
import { createHash } from 'node:crypto'

/** In the order in which their signs travel: a release adds at the end. `keys`: issuer and keys of tokens. */
export const toldDocuments = ['/api', '/apis', '/openapi/v3', '/openapi/v2', '/version', 'keys'] as const

type ToldDocument = (typeof toldDocuments)[number]

export function isTold(place: string): place is ToldDocument {
  return (toldDocuments as readonly string[]).includes(place)
}

export interface ToldSigns {
  /** Undefined where nothing is said of it: there is no link, or an older hub. */
  of(document: ToldDocument): Buffer | undefined
  /** Hears that something was said; answers how to stop hearing. */
  observe(listener: () => void): () => void
}

/** Two documents of one place have the same by a chance of 2^-64. */
const signBytes = 8

export function signOf(...texts: readonly (string | Buffer)[]): Buffer {
  const digest = createHash('sha256')
  for (const text of texts) digest.update(`${Buffer.byteLength(text)} `).update(text)
  return digest.digest().subarray(0, signBytes)
}
