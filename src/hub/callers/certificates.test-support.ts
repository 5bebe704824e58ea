/** Certificates as a cluster signs them, shown as an edge shows them. */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { type CertificateRequest, issueCertificate } from '../../pki/certificate.ts'
import { CarriedCertificate, chainText } from '../../tunnel/credentials.ts'

const day = 86_400_000
export const nowMs = Date.UTC(2026, 5, 1)

export class TestAuthority {
  readonly #pair
  readonly #name: string
  readonly certificate: X509Certificate

  constructor(name: string, by?: TestAuthority, { notAfter = nowMs + 365 * day }: { readonly notAfter?: number } = {}) {
    this.#name = name
    const subject = { commonName: name }
    const issuer = by && { name: { commonName: by.#name }, key: createPrivateKey(by.#pair.key) }
    const request = { subject, notBefore: nowMs - day, notAfter, use: 'authority' } as const
    this.#pair = issueCertificate(request, issuer)
    this.certificate = new X509Certificate(this.#pair.cert)
  }

  issue(
    commonName: string,
    organization?: string,
    more: { readonly notAfter?: number; readonly notBefore?: number; readonly use?: 'client' | 'server' } = {},
  ): X509Certificate {
    const subject = { commonName, ...(organization === undefined ? {} : { organization }) }
    const { use = 'client', notAfter = nowMs + day, notBefore = nowMs - day } = more
    const request = { subject, notBefore, notAfter, use, hosts: ['localhost'] } as CertificateRequest
    const issuer = { name: { commonName: this.#name }, key: createPrivateKey(this.#pair.key) }
    return new X509Certificate(issueCertificate(request, issuer).cert)
  }
}

export function shownBy(...chain: readonly X509Certificate[]): CarriedCertificate {
  return new CarriedCertificate(chainText(chain.map(({ raw }) => raw)))
}
