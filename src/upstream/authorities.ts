/** Whose signature is believed, as texts that can be written down and compared: a renewed certificate of a key is the same. */
import { createHash, X509Certificate } from 'node:crypto'
import type { Trust } from './secure.ts'

const pem = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g

export function authoritiesOf({ ca, insecure }: Trust): string[] {
  if (insecure) return ['any']
  if (ca === undefined) return ['system']
  return (ca.match(pem) ?? [ca]).map((one) => digestOf(one))
}

function digestOf(certificate: string): string {
  const hash = createHash('sha256')
  try {
    return hash.update(new X509Certificate(certificate).publicKey.export({ type: 'spki', format: 'der' })).digest('hex')
  } catch {
    return hash.update(certificate).digest('hex')
  }
}
