/** Whether a certificate that the cluster signed is the one that was asked for: of this key, for this node, by the right authority, now. */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { pemsIn } from './certificate.ts'
import { nodeNamedBy } from './credentialfile.ts'
import { isFor, signerOf } from './verdict.ts'

type AskedCertificate = {
  /** PEM, as the signer gave it: what stands behind the first is not taken over. */
  readonly text: string
  /** PEM. */
  readonly key: string
  readonly node: string
  readonly use: 'client' | 'server'
  /** One of them has to have signed it; without them any may. */
  readonly authorities?: readonly X509Certificate[]
  readonly now: number
}

/** A clock and that of the signer may differ by as much: signers backdate what they sign by some minutes. */
const clockMsMax = 5 * 60_000

/** The certificate (PEM), or why it is not what was asked for. */
export function issuedCertificate(expected: AskedCertificate): { readonly cert: string } | { readonly why: string } {
  const { text, key, node, use, authorities, now } = expected
  const [cert] = pemsIn(text)
  const certificate = cert === undefined ? undefined : parsed(cert)
  if (cert === undefined || certificate === undefined) return { why: 'it is no certificate' }
  if (!certificate.checkPrivateKey(createPrivateKey(key))) return { why: 'it is of another key' }
  if (nodeNamedBy(certificate) !== node) return { why: 'it names somebody else' }
  if (certificate.validFromDate.getTime() > now + clockMsMax) return { why: 'it is not valid yet' }
  if (certificate.validToDate.getTime() <= now) return { why: 'it has expired' }
  if (!isFor(certificate, use)) return { why: `it is not one of a ${use}` }
  if (authorities !== undefined && signerOf(certificate, authorities) === undefined)
    return { why: 'no authority by which the cluster knows clients has signed it' }
  return { cert }
}

function parsed(cert: string): X509Certificate | undefined {
  try {
    return new X509Certificate(cert)
  } catch {
    return undefined
  }
}
