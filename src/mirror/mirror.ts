/**
 * A durable copy of what clients on this machine read from the cloud, kept in step with it. An *interest* says what is
 * wanted, a *reflector* keeps it in step, or a *feed* where a wider interest covers it; `interests.ts` has all of them, each a
 * `mirrored.ts`, within a *budget*. The *catalog* knows what exists, from discovery that is itself mirrored (`documents/`).
 * Which read the copy answers is decided by the face (`endpoint/request/mirror`).
 *
 * Ignorance is never served as absence: until the first sync of an interest is committed nothing is answered from it, and
 * what was never synced is refused while the cloud is away, not shown as empty. A refusal met by a reflector changes no data.
 */
import type { SelectableFields } from '../kube/fields.ts'
import type { FieldPlan } from '../kube/object.ts'
import type { Resource } from '../kube/resource.ts'

/** A resource as discovery has it, as far as mirroring goes. */
export type Mirrored = {
  readonly resource: Resource
  readonly fields: SelectableFields
  /** The fields that are read from its objects at ingest. */
  readonly plan: FieldPlan
  /** False for what is passed through by default: events, reviews, other servers' APIs. */
  readonly mirrorable: boolean
}

/** Limits that keep one edge's copy the size of an edge. */
export const mirrorLimits = {
  /** Each costs a stream upstream and some tens of KB here; a kubelet with 110 pods and their secrets needs a few hundred. */
  interestsMax: 1_000,
  /** A caller that may list something can ask for it with any number of selectors. The node's own callers are not counted. */
  interestsPerCallerMax: 300,
  /** What was not asked for during this time may be evicted for something new of equal worth. */
  idleMsMin: 600_000,
  /** Objects weigh some 1.7 times their bytes in memory: a third of a device of 1 GB. */
  bytesMax: 192 * 1024 * 1024,
  /** Its name, selectors included, is written down and shown: what is longer is one client's set of names, not a wish. */
  nameCharactersMax: 2_048,
  /** How long a read that began an interest is held: longer than a first sync on any link worth the name. */
  holdMsMax: 10_000,
  /** How long a read waits for the hub's word on its caller: a judgement takes some milliseconds, and a review of the API server. */
  proofMsMax: 2_000,
  /** How long reads are held for a first sync that does not come about, or for a copy in doubt, before they are passed on. */
  firstSyncMsMax: 20_000,
  /** A list without a version, or a name that does not exist, is a client's loop if it is asked for again within this time. */
  repeatedWithinMs: 600_000,
  /** What no caller has asked for during this time, counted while running and reachable, is let go. */
  unaskedMsMax: 24 * 3_600_000,
  /** What is empty because its object, or its namespace, is no more goes this long after a caller last asked. */
  emptyUnaskedMsMax: 5 * 60_000,
  /** A list is as fresh as its watch: a connection that gave a sign of life within this time is alive. */
  freshMs: 5_000,
  /** What a hub calls fresh when it is asked: by 6 s of its own (`link/session`), and up to 2 for its answer. */
  askedFreshMs: 8_000,
  /** How long a refusal has to last before the edge believes it, and how long its data stay after that. */
  refusalMsMin: 5 * 60_000,
  withdrawnMsMin: 10 * 60_000,
} as const
