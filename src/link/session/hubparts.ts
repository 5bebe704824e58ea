/** What the hub's side of a link is made of. */
import type { SessionRefusal } from './hubgreeting.ts'
import type { SessionLimits } from './limits.ts'
import type { SharedChanges } from './sharedchanges.ts'

export type HubSessionParts = {
  readonly hub: string
  readonly release: string
  /** The cluster's uid, its epoch, and the version up to which the epochs before it are lost. */
  readonly cluster: string
  readonly epoch: number
  readonly lost: number
  readonly digestKey: Buffer
  /** Edges are told whether it passes on what their administrators ask; unless it is said it does not. */
  readonly trustsEdges?: boolean
  /** By which edges see whether the documents that they hold are those of the cluster (`mirror/documents/signs`). */
  readonly signs?: () => readonly Buffer[]
  /** One for all links of a hub. */
  readonly changes: SharedChanges
  /** Whether the edge may come: undefined lets it in. */
  readonly admit: (edge: string) => SessionRefusal | undefined
  readonly now: number
  /** How long ago it was last certain that what is told of a source is what there is. */
  readonly ageMs?: (source: number) => number
  /**
   * Whether streams have something to be sent. A driver that tells so asks for `streamRoom` before it sends of them, and says what it sent
   * (`streamed`): they are bulk then, if the edge can acknowledge them.
   */
  readonly areStreamsWaiting?: () => boolean
  readonly limits?: SessionLimits
}
