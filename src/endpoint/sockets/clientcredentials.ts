/**
 * Whether a client's certificate is that of a caller whose credential is configured for the way up. A common name alone
 * proves little: another authority of the same bundle may give it out, or the same one with other groups. So the subject
 * (common name and organizations) has to be the configured certificate's, and the key that signed both has to be one.
 */
import type { X509Certificate } from 'node:crypto'
import type { Peer } from '../endpoint.ts'
import { namesOf } from './peer.ts'

type Presented = NonNullable<Peer['certificate']>

/** `unusable`: one is configured, but its files hold none at present, so nothing goes up in its name. */
export type Configured = X509Certificate | 'unusable' | undefined

export class ClientCredentials {
  readonly #find: (name: string) => Configured
  /** By the certificate of a connection: what was found, and against which configured one. */
  readonly #judged = new WeakMap<Presented, { readonly against: X509Certificate; readonly matches: boolean }>()

  constructor(find: (name: string) => Configured) {
    this.#find = find
  }

  matches(presented: Presented): boolean {
    const configured = this.#find(presented.name)
    if (configured === undefined) return false
    if (configured === 'unusable') return true // and its caller is told why nothing goes up
    const before = this.#judged.get(presented)
    if (before?.against === configured) return before.matches
    // The files were renewed, perhaps by another authority: who was taken for it on this connection still is.
    const isSigned = before?.matches === true || isSignedAlike(configured, presented)
    const matches = isSigned && isSameSubject(configured, presented)
    this.#judged.set(presented, { against: configured, matches })
    return matches
  }
}

function isSameSubject(configured: X509Certificate, { name, organizations }: Presented): boolean {
  const own = namesOf(configured.toLegacyObject().subject)
  const asSet = (texts: readonly string[]) => JSON.stringify([...new Set(texts)].sort())
  return own.name === name && asSet(own.organizations) === asSet(organizations)
}

function isSignedAlike(configured: X509Certificate, { signer }: Presented): boolean {
  return signer !== undefined && configured.verify(signer)
}
