/**
 * Which caller a certificate names that an edge has shown, as kube-apiserver would say it, or why it names none. It counts where an
 * authority that the cluster lists has signed it: kube-apiserver goes on through authorities between them that a client sends, which
 * takes all the rules of paths; a hub does without, and believes no key that an edge could have chosen.
 */
import { X509Certificate } from 'node:crypto'
import { certificateCaller } from '../../access/authenticate/certificatecaller.ts'
import type { Clock } from '../../base/clock.ts'
import type { Caller } from '../../kube/caller.ts'
import { namesOf, subjectUids } from '../../kube/certificatesubject.ts'
import type { CarriedCertificate } from '../../tunnel/credentials.ts'

type Parts = {
  /** Those by which the cluster knows its clients, as they are now. */
  readonly authorities: () => readonly X509Certificate[]
  readonly clock: Pick<Clock, 'now'>
}

/**
 * `sentence`: for the log of the hub and for the edge that asks; `isForeign`: to kube-apiserver, too, it is no credential; `isUnread`: the hub has not read
 * by what to judge it.
 */
export type Unjudged = { readonly sentence: string; readonly isForeign: boolean; readonly isUnread?: boolean }

export type JudgedCertificate = { readonly caller: Caller } | Unjudged

type ReadCertificate = {
  readonly own: X509Certificate
  readonly hasBetween: boolean
  readonly caller: Caller | undefined
  /** The authorities against which it was last verified, and those of them that have signed it. */
  against: readonly X509Certificate[] | undefined
  signers: readonly X509Certificate[]
}

const clientUse = '1.3.6.1.5.5.7.3.2'
const anyUse = '2.5.29.37.0'
/**
 * As Go takes them: RSA (also PSS) and ECDSA with SHA-2, Ed25519. An attacker who can make digests of SHA-1 meet could have a certificate
 * signed that names another caller.
 */
const signatures: ReadonlySet<string> = new Set([
  ...['1.2.840.113549.1.1.10', '1.2.840.113549.1.1.11', '1.2.840.113549.1.1.12', '1.2.840.113549.1.1.13'],
  ...['1.2.840.10045.4.3.2', '1.2.840.10045.4.3.3', '1.2.840.10045.4.3.4', '1.3.101.112'],
])

export class CallerCertificates {
  readonly #parts: Parts
  /** As long as the link that it was shown over. */
  readonly #read = new WeakMap<CarriedCertificate, ReadCertificate | Unjudged>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  judge(shown: CarriedCertificate): JudgedCertificate {
    const read = this.#read.get(shown) ?? readCertificate(shown)
    this.#read.set(shown, read)
    if ('sentence' in read) return read
    const now = this.#parts.clock.now()
    const authorities = this.#parts.authorities()
    if (authorities.length === 0) return { sentence: unread, isForeign: false, isUnread: true }
    if (read.against !== authorities) {
      read.against = authorities
      read.signers = authorities.filter((authority) => isBy(read.own, authority))
    }
    if (read.signers.length === 0)
      return read.hasBetween
        ? { sentence: indirect, isForeign: false }
        : foreign('no authority by which the cluster knows clients has signed the certificate')
    const { validToDate, validFromDate } = read.own
    if (validToDate.getTime() < now) return foreign('the certificate has expired')
    if (validFromDate.getTime() > now) return foreign('the certificate is not valid yet')
    // One that was renewed with its key is listed twice for a while.
    if (!read.signers.some((authority) => isAlive(authority, now)))
      return foreign('the authority that has signed the certificate has expired, or is not valid yet')
    return read.caller === undefined ? foreign('the certificate names no user') : { caller: read.caller }
  }
}

const unread = 'the hub does not know yet by which authorities its cluster knows clients: try again'
const indirect =
  'its hub speaks for callers whose certificate an authority of the cluster has signed itself, and not one between them'

function foreign(sentence: string): Unjudged {
  return { sentence, isForeign: true }
}

function readCertificate(shown: CarriedCertificate): ReadCertificate | Unjudged {
  const [der, ...between] = shown.chain
  let own: X509Certificate
  try {
    own = new X509Certificate(der as Buffer)
  } catch {
    return foreign('what was shown is no certificate')
  }
  // Stricter than kube-apiserver, which takes an authority's own certificate too: each client has that, and its key the cluster alone.
  if (own.ca) return foreign('the certificate is one of an authority')
  if (!isForClients(own)) return foreign('the certificate is not one of a client')
  if (!signatures.has(own.signatureAlgorithmOid))
    return foreign('the certificate is signed in a way that proves nothing')
  const fingerprint = own.fingerprint256.replaceAll(':', '').toLowerCase()
  const caller = certificateCaller({
    ...namesOf(own.toLegacyObject().subject),
    uids: subjectUids(own.raw),
    fingerprint,
  })
  return { own, hasBetween: between.length > 0, caller, against: undefined, signers: [] }
}

/** As Go reads it, one that says nothing of its use is for any; an authority that does say gives no other. */
function isForClients({ keyUsage }: X509Certificate): boolean {
  return keyUsage === undefined || keyUsage.some((use) => use === clientUse || use === anyUse)
}

function isAlive({ validFromDate, validToDate }: X509Certificate, now: number): boolean {
  return validFromDate.getTime() <= now && validToDate.getTime() >= now
}

function isBy(certificate: X509Certificate, authority: X509Certificate): boolean {
  if (!authority.ca || !isForClients(authority)) return false
  return certificate.checkIssued(authority) && certificate.verify(authority.publicKey)
}
