/**
 * What an edge needs to reach its hub, in one file of PEM: its certificate and key, and the hub's authority. Told apart by what
 * they are and not by their order, so that a person may put one together.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { UsageError } from '../base/fault.ts'
import type { KeyPair } from './certificate.ts'

export type HubCredential = {
  /** PEM. */
  readonly ca: string
  readonly pair: KeyPair
  readonly certificate: X509Certificate
  readonly authority: X509Certificate
}

export function credentialText({ ca, pair, title }: { ca: string; pair: KeyPair; title: string }): string {
  return `# ${title}\n${pair.cert}${pair.key}${ca}`
}

/** `where` names the file; what is wrong is said without a word of what is in it. */
export function parseCredential(text: string, where: string): HubCredential {
  const wrong = (why: string) => new UsageError(`${where} ${why}: give the file that "ake hub issue" wrote`)
  const keys = text.match(/-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----[^-]+-----END (?:[A-Z]+ )?PRIVATE KEY-----/g) ?? []
  const certs = text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []
  const [key] = keys
  if (key === undefined || keys.length > 1) throw wrong('has not one private key')
  try {
    const privateKey = createPrivateKey(key)
    const all = certs.map((cert) => ({ cert: `${cert}\n`, parsed: new X509Certificate(cert) }))
    const own = all.find(({ parsed }) => parsed.checkPrivateKey(privateKey))
    const authority = all.find(({ parsed }) => parsed.ca && own?.parsed.checkIssued(parsed) === true)
    if (own !== undefined && authority !== undefined) {
      const pair = { cert: own.cert, key: `${key}\n` }
      return { ca: authority.cert, pair, certificate: own.parsed, authority: authority.parsed }
    }
  } catch {
    throw wrong('holds something that is no certificate or no key')
  }
  throw wrong('has not the certificate of its key with the authority that signed it')
}
