/** Why an edge may have an interest, as those who drive its link ask for it. */
import type { SessionRefusal } from '../../link/session/hub.ts'
import type { Interest } from '../../mirror/interest.ts'

export interface EdgeRights {
  /** Undefined: this edge may have it. Asked when it is wanted, and from time to time while it is had. */
  judge(edge: string, wanted: Interest): Promise<SessionRefusal | undefined>
}
