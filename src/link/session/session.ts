/**
 * The session of a link: two state machines without sockets, timers or promises. `hub.ts` is the hub's side of one edge,
 * `edge.ts` the edge's. Both are driven alike: `receive(frame, now)` and `tick(now)` return what is to be done in order,
 * every other call only tells the machine something of its own world and is followed by a `tick`.
 *
 * The edge says hello, is welcomed, and subscribes to interests, each with the version its copy is synced to. The hub keeps
 * nothing of an edge that is away: each interest begins by replay of what came behind that version, by a comparison of
 * digests where history does not reach back, with everything where the edge has nothing, or by waiting where the hub is behind (L7).
 * What is found or sent so is staged at the edge and becomes its copy in one step, of one version. From then on changes come as
 * events, each against what the edge holds (L5), and are acknowledged by position once they are committed. Every beginning ends with the root
 * of the hub's digest: a copy that has another one begins anew, with a comparison. That is also the answer to everything
 * else that does not fit (a delta of other bytes, a slow loop that found a difference), so that there is one way to heal.
 *
 * What an edge does not take is conflated at the hub by key (`conflation.ts`), within a limit, beyond which the interest is compared
 * again once the edge takes something. Large things travel as blocks in pieces, paced so that events hardly wait (`pace.ts`).
 */
import { crc32 } from 'node:zlib'
import type { DigestEntry, DigestTree } from '../digest/digest.ts'
import type { LinkFrame } from '../frames/frames.ts'

/** What policies say of an edge, as far as that has to know. An age of 0: nothing. */
export type LinkTerms = {
  /** What its administrator asks is passed on. */
  readonly trusts: boolean
  /** For how long it takes tokens without the cloud. */
  readonly tokenAgeMs: number
  /** For how long it answers from its copy without the cloud. */
  readonly serveAgeMs: number
}

/** An object at one version. Never changed: one version of an object is one value wherever a hub meets it. */
export type LinkObject = {
  readonly key: string
  readonly uid: string
  readonly version: number
  readonly bytes: Buffer
}

/** As the digests of both sides hold it: equal roots mean equal bytes. */
export function digestEntry({ key, uid, version, bytes }: LinkObject): DigestEntry {
  return { key, uid, version, content: crc32(bytes) }
}

/** A change as an interest sees it. Versions never fall within one. */
export type LinkEvent = {
  readonly key: string
  readonly version: number
  /** After the change; undefined when it is gone, or has left the interest. */
  readonly item: LinkObject | undefined
  /** What the interest had of it before. */
  readonly previous: LinkObject | undefined
  /** A list told the hub of it and not a watch: the version is not when it happened, and the object may be of an older one. */
  readonly isRelabelled?: boolean
}

/**
 * What the hub has of one interest. It is exactly as far as the events that the session was told: what changes it
 * tells the session in the same turn.
 */
export interface InterestView {
  /** A number for what is followed once for many interests. */
  readonly source: number
  readonly version: number
  /** Behind this version, or any later one, its history is known. */
  readonly floor: number
  /** Of `digestEntry` of each object. */
  readonly digest: DigestTree
  /** In the order of their keys. */
  behind(key: string): Iterable<LinkObject>
  get(key: string): LinkObject | undefined
  /** Every change behind a version that is not below the floor. */
  since(version: number): Iterable<LinkEvent>
  /** Another object that one of this key is probably like. */
  near(key: string): LinkObject | undefined
}

type FrameOf<Kind extends LinkFrame['kind']> = Extract<LinkFrame, { readonly kind: Kind }>
export type RefusalReason = FrameOf<'refused'>['reason']
export type InterestStart = FrameOf<'accepted'>['interests'][number]['start']
export type InterestWish = FrameOf<'subscribe'>['interests'][number]['wish']

/** Why a link ended: what was refused by either side, or `silent`: the other side gave no sign of life; `drained`: its time was over. */
export type EndReason = RefusalReason | 'silent' | 'drained'

type CommonEffect =
  | { readonly effect: 'send'; readonly frame: LinkFrame }
  /** The last one of a session. `retryAfterMs`: what the other side asks for. */
  | {
      readonly effect: 'close'
      readonly reason: EndReason
      readonly retryAfterMs: number
      readonly sentence: string
    }
  | { readonly effect: 'log'; readonly what: string; readonly sentence: string }
  | { readonly effect: 'tunnel'; readonly frame: FrameOf<'tunnel'> }

export type HubEffect =
  | CommonEffect
  /** An edge wants this: answered by `opened` or `refuse`. */
  | { readonly effect: 'open'; readonly interest: number; readonly name: string }
  /** The edge says to be further than the hub, and has waited: how far the API server is, read from now on, is told by `measured`. */
  | { readonly effect: 'ahead'; readonly interest: number }
  /** It does not want it any more. */
  | { readonly effect: 'release'; readonly interest: number }

/** Where a snapshot goes on that was broken off. */
export type PartialSnapshot = { readonly version: number; readonly after: string }

export type StagedChange =
  | { readonly type: 'put'; readonly key: string; readonly version: number; readonly bytes: Buffer }
  | { readonly type: 'remove'; readonly key: string; readonly version: number }

export type ReceivedChange = StagedChange & { readonly interest: number }

export type EdgeEffect =
  | CommonEffect
  /** The hub is there; of which cluster and epoch, and the secret of its digests. */
  | {
      readonly effect: 'welcomed'
      readonly hub: string
      readonly cluster: string
      readonly epoch: number
      readonly digestKey: Buffer
      /** What an administrator asks is passed on. */
      readonly trustsEdges: boolean
    }
  /** What was put aside for the interest does not count any more, except where it `resumes`. */
  | { readonly effect: 'begins'; readonly interest: number; readonly start: InterestStart; readonly resumes: boolean }
  /** To be committed in this order, then told as `committed`. */
  | { readonly effect: 'commit'; readonly position: number; readonly changes: readonly ReceivedChange[] }
  /** Everything of the interest up to this version was told. */
  | { readonly effect: 'synced'; readonly interest: number; readonly version: number }
  /** The tree of the copy is wanted, as it is when everything before this is committed: answered by `walk` with this number. */
  | { readonly effect: 'compare'; readonly interest: number; readonly comparison: number }
  /** To be put aside, not shown. Bytes are views of a block: what is kept is copied. */
  | {
      readonly effect: 'stage'
      readonly interest: number
      readonly changes: readonly StagedChange[]
      /** Where it goes on after a cut; undefined where it begins again. */
      readonly resume: PartialSnapshot | undefined
    }
  /**
   * What was put aside becomes the copy if that has this root then: a snapshot replaces everything, a difference removes
   * `gone` and then changes what was put aside, in its order. Otherwise it is dropped, with every change of the interest that comes until `begins`, and it restarts.
   */
  | {
      readonly effect: 'whole'
      readonly interest: number
      readonly of: 'snapshot' | 'difference'
      readonly version: number
      readonly root: number
      readonly gone: readonly string[]
    }
  /** The copy should have this root after everything before this, and is synced to this version; if it has not, the interest restarts. */
  | { readonly effect: 'check'; readonly interest: number; readonly version: number; readonly root: number }
  /** A change did not fit what is held: nothing of the interest is told until it restarts. */
  | { readonly effect: 'astray'; readonly interest: number; readonly sentence: string }
  /** The cluster was put back: every version up to this one is gone, of one interest or (0) of all. The copy begins again. */
  | { readonly effect: 'lost'; readonly interest: number; readonly epoch: number; readonly version: number }
  | {
      readonly effect: 'refused'
      readonly interest: number
      readonly reason: RefusalReason
      readonly retryAfterMs: number
      readonly sentence: string
    }
  /** What policies say of this edge, anew whenever that changes. */
  | ({ readonly effect: 'terms' } & LinkTerms)
  /** The hub asks to be left within this time. */
  | { readonly effect: 'move'; readonly withinMs: number; readonly sentence: string }
  /** By what the documents of the cluster can be told from others. */
  | { readonly effect: 'documents'; readonly signs: readonly Buffer[] }
