/**
 * Callers behind edges whom nothing but a certificate names. A token proves its caller to the API server itself; of a certificate the
 * key stays with its caller, so an edge that has verified one shows it to its hub, once for each link (`tunnel/credentials`). The hub derives the caller
 * from it, user, groups and uid: no edge can name a caller of whom it has no certificate that the cluster signed and that counts now.
 * But certificates are no secrets. So the hub acts for their callers only where a policy lets that edge speak for them, and
 * for members of system:masters never.
 *
 * `certificates.ts` tells which caller a certificate names, `spoken.ts` whether this edge may speak for it, `expressed.ts` in which headers
 * the API server is told, `impersonating.ts` what becomes of a caller who asks to be taken for another.
 */
import type { Caller } from '../../kube/caller.ts'

/** What all policies say of an edge that names a caller; `by` is the rule that decides, or why none does. */
export type SpeakingVerdict = { readonly yes: boolean; readonly by: string }

export type SpeaksFor = (edge: string, caller: Caller) => SpeakingVerdict

/** Members may do everything, whatever roles say, and no policy gives that to an edge. */
export const mastersGroup = 'system:masters'

const binding = 'authentication.kubernetes.io/'

/**
 * Without what binds a caller to one credential, pod or node, which no authorizer of Kubernetes looks at: the same for every pod of one
 * account. What other authenticators said of a caller may be why it is allowed or not.
 */
export function unbound({ name, uid, groups, extra = {} }: Caller): Caller {
  const others = Object.entries(extra).filter(([key]) => !key.startsWith(binding))
  const caller = { name, uid, groups }
  return others.length === 0 ? caller : { ...caller, extra: Object.fromEntries(others) }
}
