/** Why an edge may have an interest, as what drives its link asks for it. */
import type { SessionRefusal } from '../../link/session/hubgreeting.ts'
import type { Interest } from '../../mirror/interest.ts'
import type { EdgeRules } from '../../policy/policy.ts'

/** What policies say of an edge, by its node. */
export type PeerPolicies = {
  /** They were read, or are known not to exist. */
  readonly isKnown: boolean
  /** The same object as long as they say the same. */
  rulesOf(node: string): Pick<EdgeRules, 'trusts' | 'offline'>
}

/** One link of an edge, by its node: the same object as long as it lives, and another one for the next link. */
export type JudgedEdge = { readonly name: string }

export interface EdgeRights {
  /** Undefined: this edge may have it. Asked when it is wanted, and from time to time while it is had. */
  judge(edge: JudgedEdge, wanted: Interest): Promise<SessionRefusal | undefined>
  /** The link has ended, and whatever was shown over it. */
  left(edge: JudgedEdge): void
}
