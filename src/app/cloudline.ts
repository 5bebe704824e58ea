/**
 * The way from an edge to its cloud, straight to the API server (`directline.ts`) or through a hub (`linkedline.ts`): what carries its requests,
 * and how interests are followed over it. Everything above is the same for both, so that a folder can go from one to the other.
 */
import type { KnownRules } from '../access/knownrules.ts'
import type { Log } from '../base/log.ts'
import type { AskedInterests } from '../endpoint/request/mirror/front.ts'
import type { CloudCatalog } from '../mirror/documents/catalog.ts'
import type { Interest } from '../mirror/interest.ts'
import type { ConfirmRefusal } from '../mirror/leaving.ts'
import type { Store } from '../store/store.ts'
import type { OpenFollow } from '../upstream/follow/follow.ts'
import type { ListingLimits } from '../upstream/follow/listing.ts'
import type { LinkedRules } from '../upstream/linked/linkedrules.ts'
import type { EdgeUpstream } from '../upstream/upstream.ts'
import type { OfflineTerms } from './edgeterms.ts'
import type { EdgeSubject } from './granting.ts'

/** What a line is told of the copy that is kept over it: anew when another cluster is believed in. */
export type LinedCopy = {
  readonly store: Store
  readonly limits: ListingLimits
  readonly log: Log
  /** An interest that was refused can be had now: it is to be asked for again. */
  readonly proven: (interest: string) => void
  /** Policies say something else of this edge: whatever is refused is to be asked for again. */
  readonly policed: () => void
}

type LinedFollow = {
  readonly follow: OpenFollow
  /** What callers prove by asking, where interests are not followed in the edge's own name. */
  readonly proofs?: AskedInterests & { run(signal: AbortSignal): Promise<void> }
  /** What policies say of how long the edge goes on without the cloud. */
  readonly terms?: OfflineTerms
}

/** Who asks at this edge, and about whom its kubelet asks. */
export type SeenCallers = Pick<LinkedRules, 'seen' | 'reviewed' | 'run'>

export interface CloudLine {
  readonly upstream: EdgeUpstream
  /** The node that the line itself stands for, in whose name its kubelet goes up. */
  readonly node: string | undefined
  /** Over which time interests come back after an outage, where it is not what is usual. */
  readonly spreadMs?: number
  /** Who the edge is to the API server, where that need not be asked. */
  readonly subject?: EdgeSubject
  /** What comparing at leisure may take of it in a day, where it is not what is usual. */
  readonly comparedBytesPerDay?: number
  follow(copy: LinedCopy): Promise<LinedFollow>
  /** The copy is of another cluster from here on: who was not asked for being of that is asked now. */
  reconsider?(): void
  /** Time as far as it can be trusted, once that is known. */
  trustTime(nowMs: () => number): void
  /** Whether the edge itself may have an interest. */
  mayRead(interest: Interest): Promise<'allowed' | 'denied' | 'unknown'>
  /** What callers may do, as a hub tells it: for where roles are not mirrored. */
  callers?(rules: Pick<KnownRules, 'told' | 'stands'>): SeenCallers
  /** Whether a refusal of an interest is meant so: what it holds is withdrawn then. */
  confirms(catalog: CloudCatalog): ConfirmRefusal
}
