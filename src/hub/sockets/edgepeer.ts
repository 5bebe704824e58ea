/**
 * Which edge is at the other end of a connection, by its certificate. It is judged here for each link, since a resumed session
 * brings the certificate of its first handshake and OpenSSL does not look at that again.
 */
import { X509Certificate } from 'node:crypto'
import type { TLSSocket } from 'node:tls'
import { type CertificateFault, faultOf, isAboutTime } from '../../pki/verdict.ts'

export type EdgePeer = {
  /** Of its node. */
  readonly name: string
  readonly certificate: EdgeCertificate
  /** Its TLS session was resumed. */
  readonly resumed: boolean
  /** Where it comes from, for people. */
  readonly from: string
}

export type EdgeCertificate = {
  readonly serial: string
  /** SHA-256 in hexadecimal digits with colons. */
  readonly fingerprint: string
  /** Of two of one edge the newer ends later. */
  readonly endsAtMs: number
}

/** Why a certificate does not count, in a sentence that the edge's operator is shown. */
export type EdgeRefusal = { readonly sentence: string }

const faults: Readonly<Record<CertificateFault, string>> = {
  authority: 'the certificate is not signed by the authority of this hub: issue one with "ake hub issue"',
  expired: 'the certificate has expired: issue a new one with "ake hub issue"',
  early: 'the certificate is not valid yet: check the clock of the hub',
  use: 'the certificate is not one of a client: issue one with "ake hub issue"',
}

export function edgePeerOf(socket: TLSSocket, authority: X509Certificate, now: number): EdgePeer | EdgeRefusal {
  const raw = socket.getPeerCertificate()?.raw
  if (raw === undefined) return { sentence: 'no certificate was shown: give the edge the file of "ake hub issue"' }
  // What OpenSSL says of time is by the clock of the machine, and of a resumed session old.
  const code = socket.authorized ? undefined : String(socket.authorizationError)
  if (code !== undefined && !isAboutTime(code)) return { sentence: faults.authority }
  const certificate = new X509Certificate(raw)
  const fault = faultOf({ certificate, authority, use: 'client', now })
  if (fault !== undefined) return { sentence: faults[fault] }
  const name = nodeOf(certificate)
  if (name === undefined) return { sentence: 'the certificate names no node: issue one with "ake hub issue"' }
  const { serialNumber: serial, fingerprint256: fingerprint, validToDate } = certificate
  const known = { serial, fingerprint, endsAtMs: validToDate.getTime() }
  return { name, certificate: known, resumed: socket.isSessionReused(), from: socket.remoteAddress ?? '' }
}

/** As kube-apiserver knows a kubelet: system:node:NAME of the group system:nodes. */
function nodeOf(certificate: X509Certificate): string | undefined {
  const { CN, O } = certificate.toLegacyObject().subject
  const [names, groups] = [[CN].flat(), [O].flat()]
  const [, name] = /^system:node:([a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?)$/.exec(names[0] ?? '') ?? []
  return names.length === 1 && groups.includes('system:nodes') ? name : undefined
}
