/** The caller that a client certificate names, as kube-apiserver reads it once its chain is verified. */
import type { Caller } from '../../kube/caller.ts'

export type VerifiedCertificate = {
  /** Its common name. */
  readonly name: string
  readonly organizations: readonly string[]
  /** Those in its subject; undefined where they cannot be read. */
  readonly uids?: readonly string[] | undefined
  /** SHA-256, in hexadecimal digits. */
  readonly fingerprint?: string | undefined
}

/** Undefined: it names none. kube-apiserver takes a certificate for none if it has several uids, or an empty one. */
export function certificateCaller({ name, organizations, uids, fingerprint }: VerifiedCertificate): Caller | undefined {
  const [uid, ...others] = uids ?? ['', '']
  if (name === '' || others.length > 0 || (uid === '' && uids?.length === 1)) return undefined
  const extra =
    fingerprint === undefined
      ? {}
      : { extra: { 'authentication.kubernetes.io/credential-id': [`X509SHA256=${fingerprint}`] } }
  return { name, uid: uid ?? '', groups: [...organizations, 'system:authenticated'], ...extra }
}
