/**
 * What an edge needs to reach its hub, in one file of PEM: its certificate and key, and the hub's authorities, of which none need have
 * signed that certificate, since the cluster's may have. Told apart by what they are and not by their order, so that a person may put one together.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { UsageError } from '../base/fault.ts'
import { type KeyPair, pemsIn } from './certificate.ts'

/** Of the file beside it, with the authorities by which the cluster knows clients. */
export const clusterCaName = 'cluster-ca.crt'

export type HubCredential = {
  /** PEM, one behind the other. */
  readonly ca: string
  readonly pair: KeyPair
  readonly certificate: X509Certificate
  /** Those by which the hub is believed: several while it goes from one to the next. */
  readonly authorities: readonly X509Certificate[]
}

/** The certificate stands first, as programs want it that take the file for that of a client. */
export function credentialText({ ca, pair, title }: { ca: string; pair: KeyPair; title: string }): string {
  return `# ${title}\n${pair.cert}${pair.key}${ca}`
}

/** One certificate, as `system:node:NAME` says it; undefined: it names no node, or several. */
export function nodeNamedBy(certificate: X509Certificate): string | undefined {
  const names = [certificate.toLegacyObject().subject.CN].flat()
  return names.length === 1 ? nodeForm.exec(names[0] ?? '')?.[1] : undefined
}

/** As kube-apiserver names a node by its certificate. */
const nodeForm = /^system:node:(.+)$/

/** `where` names the file; what is wrong is said without a word of what is in it. */
export function parseCredential(text: string, where: string): HubCredential {
  const wrong = (why: string) =>
    new UsageError(`${where} ${why}: give the file that "ake join" or "ake hub issue" wrote`)
  const keys = text.match(/-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----[^-]+-----END (?:[A-Z]+ )?PRIVATE KEY-----/g) ?? []
  const [key] = keys
  if (key === undefined || keys.length > 1) throw wrong('has not one private key')
  try {
    const privateKey = createPrivateKey(key)
    const all = pemsIn(text).map((cert) => ({ cert, parsed: new X509Certificate(cert) }))
    const own = all.find(({ parsed }) => parsed.checkPrivateKey(privateKey))
    const trusted = all.filter((one) => one !== own && one.parsed.ca)
    if (own !== undefined && trusted.length > 0) {
      const pair = { cert: own.cert, key: `${key}\n` }
      const ca = trusted.map(({ cert }) => cert).join('')
      return { ca, pair, certificate: own.parsed, authorities: trusted.map(({ parsed }) => parsed) }
    }
  } catch {
    throw wrong('holds something that is no certificate or no key')
  }
  throw wrong("has not the certificate of its key with the hub's authority")
}
