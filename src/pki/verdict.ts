/**
 * Whether a certificate counts, by one authority that signed it directly, at a time that is passed in. OpenSSL judges by the
 * clock of the machine and only in a full handshake: a box without a clock needs the first otherwise, a resumed session the
 * second.
 */
import type { X509Certificate } from 'node:crypto'

const usages = { server: '1.3.6.1.5.5.7.3.1', client: '1.3.6.1.5.5.7.3.2' }

export type CertificateFault = 'authority' | 'expired' | 'early' | 'use'

type Judged = {
  readonly certificate: X509Certificate
  readonly authority: X509Certificate
  readonly use: 'server' | 'client'
  readonly now: number
}

/** Undefined: it counts. */
export function faultOf({ certificate, authority, use, now }: Judged): CertificateFault | undefined {
  if (!certificate.checkIssued(authority) || !certificate.verify(authority.publicKey)) return 'authority'
  if (certificate.validToDate.getTime() < now) return 'expired'
  if (certificate.validFromDate.getTime() > now) return 'early'
  return certificate.ca || certificate.keyUsage?.includes(usages[use]) !== true ? 'use' : undefined
}

/** Errors of OpenSSL's own judgement that only say what time it took it to be. */
export function isAboutTime(code: string | undefined): boolean {
  return code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID'
}
