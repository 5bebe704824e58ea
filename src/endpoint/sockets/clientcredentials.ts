/**
 * Whether a client's certificate is that of a caller whose credential is configured for the way up. A common name alone
 * proves little: another authority of the same bundle may give it out, or the same one with other groups. So the subject
 * (common name, organizations and uid) has to be the configured certificate's, and the key that signed both has to be one.
 * Any other certificate names a caller of its own, in whose name nothing goes up; but not one that another authority signed for
 * the name of a configured caller. While its files hold nothing that can be used the last certificate that they held counts, and before there
 * was one none is known to be that caller's. Where a hub stands for the edge's own node there is no certificate to compare with: it is the caller whom the
 * authorities of callers vouch for under that node's subject, as at the API server itself.
 */
import { X509Certificate } from 'node:crypto'
import { namesOf, subjectUids } from '../../kube/certificatesubject.ts'
import type { CallerCertificate } from '../../upstream/upstream.ts'
import type { Peer } from '../endpoint.ts'
import type { CertificateStanding } from '../identify.ts'

type Presented = NonNullable<Peer['certificate']>

type Parts = {
  readonly find: (name: string) => CallerCertificate
  /** Hears, once for each connection, why nothing goes up for callers of that name; undefined: it does. */
  readonly told: (name: string, standing: CertificateStanding, why: string | undefined) => void
}

export class ClientCredentials {
  readonly #parts: Parts
  /** By the certificate of a connection: what was found, and against which configured one. */
  readonly #judged = new WeakMap<
    Presented,
    { readonly against: CallerCertificate; readonly standing: CertificateStanding }
  >()
  /** What each configured name had when it was last asked for and could be used. */
  readonly #usable = new Map<string, CallerCertificate>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  standingOf(presented: Presented): CertificateStanding {
    const { name } = presented
    const configured = this.#configured(name)
    const before = this.#judged.get(presented)
    if (before !== undefined && before.against === configured) return before.standing
    // The files were renewed, perhaps by another authority: a caller that was taken for it on this connection still is.
    const why = strangeness(configured, presented, before?.standing === 'credential')
    const isOthers = configured !== undefined && !isSignedAlike(configured, presented)
    const standing = why === undefined ? 'credential' : isOthers ? 'stranger' : 'named'
    this.#judged.set(presented, { against: configured, standing })
    this.#parts.told(name, standing, why)
    return standing
  }

  /** A caller that is found to be that of the last usable one hears of the way up why nothing goes there. */
  #configured(name: string): CallerCertificate {
    const found = this.#parts.find(name)
    if (found === 'unusable') return this.#usable.get(name) ?? found
    if (found === undefined) this.#usable.delete(name)
    else this.#usable.set(name, found)
    return found
  }
}

/** Why the certificate is not that of the configured caller, and what to do about it. */
function strangeness(configured: CallerCertificate, presented: Presented, isTaken: boolean): string | undefined {
  const { name } = presented
  const flag = `--client-credential ${name}`
  if (configured === undefined) return `no credential is configured for it: give ${flag}=CERT,KEY`
  if (configured === 'unusable') return `the files of ${flag} hold nothing that can be used: mend them`
  if (!(configured instanceof X509Certificate)) return strangenessOfNode(configured.organizations, presented)
  const own = namesOf(configured.toLegacyObject().subject)
  if (own.name !== name || asSet(own.organizations) !== asSet(presented.organizations)) {
    const [theirs, ours] = [presented.organizations, own.organizations].map((texts) => texts.join(', ') || 'none')
    return `its organizations (${theirs}) are not those of ${flag} (${ours}): give the certificate that its callers show`
  }
  const uid = subjectUids(configured.raw)
  if (uid === undefined || presented.uids === undefined || asSet(uid) !== asSet(presented.uids)) {
    return `its uid is not that of ${flag}: give the certificate that its callers show`
  }
  if (isTaken || isSignedAlike(configured, presented)) return undefined
  return `another authority signed it than that of ${flag}: give a certificate of the authority that its callers' is of`
}

function strangenessOfNode(
  organizations: readonly string[],
  { organizations: shown, uids }: Presented,
): string | undefined {
  const isSubject = asSet(shown) === asSet(organizations) && uids !== undefined && uids.length === 0
  if (isSubject) return undefined
  return `its subject is not that of a node: the hub stands for who has the organization ${organizations.join(', ')} and no other`
}

function asSet(texts: readonly string[]): string {
  return JSON.stringify([...new Set(texts)].sort())
}

function isSignedAlike(configured: CallerCertificate, { signer }: Presented): boolean {
  if (!(configured instanceof X509Certificate)) return true
  return signer !== undefined && configured.verify(signer)
}
