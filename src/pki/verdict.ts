/**
 * Whether a certificate counts, by an authority that signed it directly, at a time that is passed in. OpenSSL judges by the
 * clock of the machine and only in a full handshake: a box without a clock needs the first otherwise, a resumed session the
 * second.
 */
import type { X509Certificate } from 'node:crypto'

const usages = { server: '1.3.6.1.5.5.7.3.1', client: '1.3.6.1.5.5.7.3.2' }

export type CertificateFault = 'authority' | 'expired' | 'early' | 'use'

type Judged = {
  readonly certificate: X509Certificate
  /** Any of them. */
  readonly authorities: readonly X509Certificate[]
  readonly use: 'server' | 'client'
  readonly now: number
}

/** Undefined: it counts. */
export function faultOf({ certificate, authorities, use, now }: Judged): CertificateFault | undefined {
  if (signerOf(certificate, authorities) === undefined) return 'authority'
  if (certificate.validToDate.getTime() < now) return 'expired'
  if (certificate.validFromDate.getTime() > now) return 'early'
  return isFor(certificate, use) ? undefined : 'use'
}

/** Whether its bearer may be one of that kind. */
export function isFor(certificate: X509Certificate, use: 'server' | 'client'): boolean {
  return !certificate.ca && certificate.keyUsage?.includes(usages[use]) === true
}

/** Which of them signed it. */
export function signerOf(
  certificate: X509Certificate,
  authorities: readonly X509Certificate[],
): X509Certificate | undefined {
  return authorities.find((one) => certificate.checkIssued(one) && certificate.verify(one.publicKey))
}

/** Errors of OpenSSL's own judgement that only say what time it took it to be. */
export function isAboutTime(code: string | undefined): boolean {
  return code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID'
}
