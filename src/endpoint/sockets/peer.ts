/**
 * Who is at the other end of a connection, by its certificate. Our own authority's certificates name the machine's own
 * callers; others may be accepted beside it, and the two are told apart by the signature itself: an authority may bear any
 * name, and the chain a peer sends is the peer's choice.
 */
import { type KeyObject, X509Certificate } from 'node:crypto'
import type { TLSSocket } from 'node:tls'
import { namesOf, subjectUids } from '../../kube/certificatesubject.ts'
import type { Peer } from '../endpoint.ts'

export type Connection = { readonly peer: Peer }

/** A peer without a certificate that counts. */
export const stranger: Connection = { peer: {} }

/** Whose key signed a certificate, the key of the authority above that, and the certificates in between. */
type Issued = { readonly signer: KeyObject; readonly authority: KeyObject; readonly between: readonly Buffer[] }

/** Callers of intermediate authorities on one node: beyond it the one that came least recently shakes hands anew to be known. */
const issuedMax = 1024

export class ClientAuthorities {
  /** Every certificate as a PEM text of its own. */
  readonly pems: readonly string[]
  readonly #all: readonly X509Certificate[]
  readonly #own: X509Certificate
  /** By fingerprint: a resumed TLS session has its certificate and not the chain that was shown with it. */
  readonly #issued: Map<string, Issued>

  /**
   * Our own authority's certificate, and a PEM text with those of others, whose certificates are callers too; what is known of
   * intermediate ones goes on from those whose place these take.
   */
  constructor(own: string, callers?: string, before?: ClientAuthorities) {
    this.#issued = before === undefined ? new Map() : before.#issued
    this.#all = [own, ...(callers === undefined ? [] : [callers])].flatMap(certificatesIn)
    this.#own = this.#all[0] as X509Certificate
    this.pems = this.#all.map(String)
  }

  /** An unknown authority's certificate, or one out of date, proves nothing. */
  connectionOf(socket: TLSSocket): Connection {
    const shown = socket.getPeerX509Certificate()
    if (shown === undefined) return { peer: {} }
    const { subject, valid_to } = socket.getPeerCertificate()
    const issued = socket.authorized ? this.#issuedOf(socket) : undefined
    if (subject === undefined || issued === undefined) return { peer: { unverified: true } }
    const { signer, between } = issued
    const issuedBy = signer.equals(this.#own.publicKey) ? 'own' : 'clients'
    const uids = subjectUids(shown.raw)
    const fingerprint = shown.fingerprint256.replaceAll(':', '').toLowerCase()
    const expiresMs = Date.parse(valid_to)
    const chain = [shown.raw, ...between]
    return { peer: { certificate: { ...namesOf(subject), uids, fingerprint, issuedBy, expiresMs, signer, chain } } }
  }

  /** Whether any of these stands behind the connection's certificate, by signatures alone. */
  vouchesFor(socket: TLSSocket): boolean {
    return this.#issuedOf(socket) !== undefined
  }

  /** The authority that issued the certificate; undefined for one whose authority went while it shook hands. */
  #issuedOf(socket: TLSSocket): Issued | undefined {
    const shown = socket.getPeerX509Certificate()
    if (shown === undefined) return undefined
    const issued =
      this.#issuedBy(shown) ?? (socket.isSessionReused() ? this.#issued.get(shown.fingerprint256) : undefined)
    if (issued === undefined || !this.#all.some(({ publicKey }) => publicKey.equals(issued.authority))) return undefined
    if (!issued.signer.equals(issued.authority)) this.#remember(shown.fingerprint256, issued)
    return issued
  }

  /** By the chain that came with it. */
  #issuedBy(shown: X509Certificate): Issued | undefined {
    let certificate = shown
    let signer: KeyObject | undefined
    const between: Buffer[] = []
    for (;;) {
      const signed = certificate
      const authority = this.#all.find((one) => signed.verify(one.publicKey))?.publicKey
      if (authority !== undefined) return { signer: signer ?? authority, authority, between }
      const issuer = certificate.issuerCertificate
      if (issuer === undefined || !signed.verify(issuer.publicKey)) return undefined
      signer ??= issuer.publicKey
      between.push(issuer.raw)
      certificate = issuer
    }
  }

  #remember(fingerprint: string, issued: Issued): void {
    this.#issued.delete(fingerprint)
    this.#issued.set(fingerprint, issued)
    if (this.#issued.size > issuedMax) this.#issued.delete(this.#issued.keys().next().value as string)
  }
}

function certificatesIn(pem: string): X509Certificate[] {
  const found = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g)
  if (found === null) throw new Error('it holds no certificate in PEM form')
  return found.map((one) => new X509Certificate(one))
}
