/**
 * Which edge is at the other end of a connection, by its certificate. It is judged here for each link, since a resumed session
 * brings the certificate of its first handshake and OpenSSL does not look at that again.
 */
import { X509Certificate } from 'node:crypto'
import type { TLSSocket } from 'node:tls'
import { issuedAtOf, vouchedAtOf } from '../../pki/certificate.ts'
import { type CertificateFault, faultOf, isAboutTime, isFor, signerOf } from '../../pki/verdict.ts'
import { leafDays } from '../state/certificates.ts'

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
  readonly endsAtMs: number
  /** Signed by an authority of this hub, or by one of the cluster's. */
  readonly signer: 'hub' | 'cluster'
  /** The SHA-256 of that authority, as of the certificate. */
  readonly authority: string
  /** Of two of one edge the newer was issued later. */
  readonly issuedAtMs: number
  /** When an operator, or the cluster, vouched for the bearer: renewal at the hub leaves that as it was. A revocation goes by it. */
  readonly vouchedAtMs: number
}

/** Whose certificates count as those of edges. */
export type EdgeTrust = {
  readonly hub: readonly X509Certificate[]
  readonly cluster: readonly X509Certificate[]
}

/** Why a certificate does not count, in a sentence that the edge's operator is shown. */
export type EdgeRefusal = {
  readonly sentence: string
  /** Of its node, where the certificate was signed for it and does not count any more, or not for this. */
  readonly name?: string
  /** No authority that is known here has signed it. */
  readonly isForeign?: boolean
  /** Whose it was, where nothing is wrong with it but that it has ended. */
  readonly ended?: EdgePeer
}

const foreign: EdgeRefusal = {
  sentence:
    'the certificate is not signed by an authority of this hub or its cluster: issue one with "ake hub issue", or join again',
  isForeign: true,
}

/** How the operator gets another, by who signed the one that is there. */
export const anotherBy: Readonly<Record<EdgeCertificate['signer'], string>> = {
  hub: 'issue a new one with "ake hub issue"',
  cluster: 'join again with "ake join"',
}

export function edgePeerOf(socket: TLSSocket, trust: EdgeTrust, now: number): EdgePeer | EdgeRefusal {
  const raw = socket.getPeerCertificate()?.raw
  if (raw === undefined)
    return { sentence: 'no certificate was shown: join with "ake join", or give the edge the file of "ake hub issue"' }
  const resumed = socket.isSessionReused()
  // What OpenSSL says of time is by the clock of the machine; of a resumed session all that it says is by the authorities of then.
  const code = socket.authorized || resumed ? undefined : String(socket.authorizationError)
  if (code !== undefined && !isAboutTime(code)) return foreign
  const shown = new X509Certificate(raw)
  const living = [...trust.hub, ...trust.cluster].filter(({ validToDate }) => validToDate.getTime() >= now)
  const fault = faultOf({ certificate: shown, authorities: living, use: 'client', now })
  if (fault === 'authority') return foreign
  const certificate = knownOf(shown, trust)
  const name = nodeOf(shown)
  const another = anotherBy[certificate.signer]
  if (name === undefined) return { sentence: `the certificate names no node: ${another}` }
  const peer = { name, certificate, resumed, from: socket.remoteAddress ?? '' }
  if (fault === undefined) return peer
  const sentence = sentenceOf(fault, another)
  return { sentence, name, ...(fault === 'expired' && isFor(shown, 'client') && { ended: peer }) }
}

function sentenceOf(fault: Exclude<CertificateFault, 'authority'>, another: string): string {
  if (fault === 'early') return 'the certificate is not valid yet: check the clock of the hub'
  return fault === 'expired'
    ? `the certificate has expired: ${another}`
    : `the certificate is not one of a client: ${another}`
}

function knownOf(certificate: X509Certificate, trust: EdgeTrust): EdgeCertificate {
  const { serialNumber: serial, fingerprint256: fingerprint, validToDate, validFromDate } = certificate
  const endsAtMs = validToDate.getTime()
  const own = signerOf(certificate, trust.hub)
  if (own === undefined) {
    const authority = signerOf(certificate, trust.cluster)?.fingerprint256 ?? ''
    const issuedAtMs = validFromDate.getTime()
    return { serial, fingerprint, endsAtMs, signer: 'cluster', authority, issuedAtMs, vouchedAtMs: issuedAtMs }
  }
  // Those of earlier releases do not say when: they ended two years after it at the latest.
  const issuedAtMs = issuedAtOf(serial) ?? endsAtMs - leafDays * dayMs
  const vouchedAtMs = vouchedAtOf(serial) ?? issuedAtMs
  return { serial, fingerprint, endsAtMs, signer: 'hub', authority: own.fingerprint256, issuedAtMs, vouchedAtMs }
}

const dayMs = 24 * 3600 * 1000

/** As kube-apiserver knows a kubelet: system:node:NAME of the group system:nodes. */
function nodeOf(certificate: X509Certificate): string | undefined {
  const { CN, O } = certificate.toLegacyObject().subject
  const [names, groups] = [[CN].flat(), [O].flat()]
  const [, name] = /^system:node:([a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?)$/.exec(names[0] ?? '') ?? []
  return names.length === 1 && groups.includes('system:nodes') ? name : undefined
}
