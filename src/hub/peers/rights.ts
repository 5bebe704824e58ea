/** Why an edge may have an interest, as those who drive its link ask for it. */
import type { SessionRefusal } from '../../link/session/hub.ts'
import type { Interest } from '../../mirror/interest.ts'

/** One link of an edge, by its node: the same object as long as it lives, and another one for the next link. */
export type JudgedEdge = { readonly name: string }

export interface EdgeRights {
  /** Undefined: this edge may have it. Asked when it is wanted, and from time to time while it is had. */
  judge(edge: JudgedEdge, wanted: Interest): Promise<SessionRefusal | undefined>
  /** The link has ended, and whatever was shown over it. */
  left(edge: JudgedEdge): void
}
