/**
 * Who is at the other end of a connection, by its certificate. Our own authority's certificates name the machine's own
 * callers; others may be accepted beside it, and the two are told apart by the signature itself: an authority may bear any
 * name, and the chain a peer sends is the peer's choice.
 */
import { type KeyObject, X509Certificate } from 'node:crypto'
import type { TLSSocket } from 'node:tls'
import type { Peer } from '../endpoint.ts'
import { subjectUids } from './subjectuids.ts'

export type Connection = { readonly peer: Peer }

/** A peer without a certificate that counts. */
export const stranger: Connection = { peer: {} }

export class ClientAuthorities {
  /** Every certificate as a PEM text of its own. */
  readonly pems: readonly string[]
  readonly #all: readonly X509Certificate[]
  readonly #own: X509Certificate

  /** Our own authority's certificate, and a PEM text with those of others, whose certificates are callers too. */
  constructor(own: string, callers?: string) {
    this.#all = [own, ...(callers === undefined ? [] : [callers])].flatMap(certificatesIn)
    this.#own = this.#all[0] as X509Certificate
    this.pems = this.#all.map(String)
  }

  /** An unknown authority's certificate, or one out of date, is none. */
  connectionOf(socket: TLSSocket): Connection {
    if (!socket.authorized) return { peer: {} }
    const { subject, valid_to } = socket.getPeerCertificate()
    const signer = this.#signerOf(socket)
    if (subject === undefined || signer === undefined) return { peer: {} }
    const issuedBy = signer.equals(this.#own.publicKey) ? 'own' : 'clients'
    const shown = socket.getPeerX509Certificate()
    const uids = shown && subjectUids(shown.raw)
    const fingerprint = shown?.fingerprint256.replaceAll(':', '').toLowerCase()
    const expiresMs = Date.parse(valid_to)
    return { peer: { certificate: { ...namesOf(subject), uids, fingerprint, issuedBy, expiresMs, signer } } }
  }

  /** Whether any of these stands behind the connection's certificate, by signatures alone. */
  vouchesFor(socket: TLSSocket): boolean {
    return this.#signerOf(socket) !== undefined
  }

  /** Whose key signed the certificate itself; undefined for one whose authority went while it shook hands. */
  #signerOf(socket: TLSSocket): KeyObject | undefined {
    let certificate = socket.getPeerX509Certificate()
    let first: KeyObject | undefined
    while (certificate !== undefined) {
      const signed = certificate
      const authority = this.#all.find((one) => signed.verify(one.publicKey))
      if (authority !== undefined) return first ?? authority.publicKey
      const issuer = certificate.issuerCertificate
      if (issuer === undefined || !signed.verify(issuer.publicKey)) return undefined
      first ??= issuer.publicKey
      certificate = issuer
    }
    return undefined
  }
}

/** As kube-apiserver reads a subject: of several common names the last, every organization. */
export function namesOf({ CN = '', O = [] }: { CN?: string | string[]; O?: string | string[] }): {
  name: string
  organizations: string[]
} {
  return { name: [CN].flat().at(-1) ?? '', organizations: [O].flat() }
}

function certificatesIn(pem: string): X509Certificate[] {
  const found = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g)
  if (found === null) throw new Error('it holds no certificate in PEM form')
  return found.map((one) => new X509Certificate(one))
}
