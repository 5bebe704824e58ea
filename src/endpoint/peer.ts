/**
 * Who is at the other end of a connection, by its certificate. Our own authority's certificates name the machine's own
 * callers; others may be accepted beside it, and the two are told apart by the signature itself: an authority may bear any
 * name, and the chain a peer sends is the peer's choice.
 */
import { X509Certificate } from 'node:crypto'
import type { TLSSocket } from 'node:tls'
import type { Caller } from '../write/write.ts'
import type { Peer } from './endpoint.ts'

export type Connection = { readonly caller: Caller | undefined; readonly peer: Peer }

/** Nobody in particular. */
export const stranger: Connection = { caller: undefined, peer: {} }

export class ClientAuthorities {
  /** Every certificate as a PEM text of its own. */
  readonly pems: readonly string[]
  readonly #all: readonly X509Certificate[]

  /** Our own authority's certificate, and a PEM text with those of others, whose certificates are callers too. */
  constructor(own: string, callers?: string) {
    this.#all = [own, ...(callers === undefined ? [] : [callers])].flatMap(certificatesIn)
    this.pems = this.#all.map(String)
  }

  /** An unknown authority's certificate, or one out of date, is none. */
  connectionOf(socket: TLSSocket): Connection {
    if (!socket.authorized) return { ...stranger, peer: {} }
    const { subject, valid_to } = socket.getPeerCertificate()
    const issuedBy = this.#issuerOf(socket)
    if (subject === undefined || issuedBy === undefined) return { ...stranger, peer: {} }
    const name = String(subject.CN ?? '')
    const organizations = subject.O === undefined ? [] : [subject.O].flat()
    const groups = [...organizations, 'system:authenticated']
    return {
      caller: issuedBy === 'own' ? { name, uid: '', groups } : undefined,
      peer: { certificate: { name, organizations, issuedBy, expiresMs: Date.parse(valid_to) } },
    }
  }

  /** Whether any of these stands behind the connection's certificate, by signatures alone. */
  vouchesFor(socket: TLSSocket): boolean {
    let certificate = socket.getPeerX509Certificate()
    while (certificate !== undefined) {
      const signed = certificate
      if (this.#all.some((one) => signed.verify(one.publicKey))) return true
      const issuer = certificate.issuerCertificate
      certificate = issuer !== undefined && signed.verify(issuer.publicKey) ? issuer : undefined
    }
    return false
  }

  /** Undefined for one whose authority went while it shook hands. */
  #issuerOf(socket: TLSSocket): 'own' | 'clients' | undefined {
    const [own] = this.#all
    if (own !== undefined && socket.getPeerX509Certificate()?.verify(own.publicKey) === true) return 'own'
    return this.vouchesFor(socket) ? 'clients' : undefined
  }
}

function certificatesIn(pem: string): X509Certificate[] {
  const found = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g)
  if (found === null) throw new Error('it holds no certificate in PEM form')
  return found.map((one) => new X509Certificate(one))
}
