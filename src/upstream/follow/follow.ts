/**
 * Where the truth about one interest comes from, as one call: `follow` yields what brings a copy to the present, then what
 * keeps it there, until the signal, an end or an error with a name. How it finds that out is its own affair: `direct.ts`
 * lists in pages and watches, `../linked/followlinked.ts` follows over the link to a hub. `contract.test-support.ts` is what each
 * has to pass.
 */
import type { CloudState } from '../../cache/cloudstate.ts'
import type { Difference } from '../../cache/intake.ts'
import type { Item } from '../../cache/item.ts'
import type { FieldPlan } from '../../kube/object.ts'
import type { Scope } from '../../kube/scope.ts'

/** What is followed: the objects that one list of the API server has. */
export type Collection = {
  readonly scope: Scope
  readonly custom: boolean
  readonly kind: string
  /** The fields that are read from its objects; others may become selectable while it is followed. */
  readonly plan: () => FieldPlan
  /** How many bytes of it there is room for, where it is first read. */
  readonly room?: () => number
  /** An object that is held for others already, in this version: what is the same is not kept twice, not even until it is told. */
  readonly known?: (key: string, version: number, plan: FieldPlan) => Item | undefined
}

/** What the copy has of the cloud already; `version` is how far it has come, whatever clients are shown. */
export type HeldState = Pick<
  CloudState,
  'version' | 'size' | 'bytes' | 'plan' | 'peek' | 'all' | 'corrupt' | 'isCorrupt' | 'isDamaged'
>

export type From = {
  readonly held: HeldState | undefined
  /**
   * `resume` behind the version that is held; `repair` what is damaged, of a copy whose watches have heard all of it;
   * `compare` everything and tell the difference; `anew`: what is held does not count.
   */
  readonly start: 'resume' | 'repair' | 'compare' | 'anew'
  /** The copy was not connected all the time: whether the cluster is still the one it knows is asked first. */
  readonly check: boolean
  /** The version a snapshot should be of, where the API server still has it. */
  readonly exactly?: number | undefined
}

export type CloudChange =
  | { readonly type: 'put'; readonly item: Item }
  | { readonly type: 'remove'; readonly key: string; readonly version: number }
  /** Everything up to this version was told. */
  | { readonly type: 'progress'; readonly version: number }

type Whole = {
  readonly version: number
  /** How the API server calls the list. */
  readonly listKind: string
  /** When it was asked for, by the steady clock: it is as new as that. */
  readonly askedAtMs: number
}

export type Followed =
  /** The cluster is the one the copy is of. */
  | { readonly kind: 'verified' }
  /** It was put back to an earlier state, behind the copy or already beyond it: that past no longer exists. Nothing follows. */
  | { readonly kind: 'lost' }
  /** Some of the objects of a first reading, or of one anew; `complete` follows the last of them. */
  | { readonly kind: 'snapshot'; readonly items: readonly Item[] }
  | ({ readonly kind: 'complete' } & Whole)
  /** `repaired` are damaged objects that every watch has heard of as they are. */
  | ({ readonly kind: 'difference'; readonly repaired: readonly Item[] } & Difference & Whole)
  /** From here on changes are told as they happen; `heardAt` is when the other end last gave a sign of life. */
  | { readonly kind: 'live'; readonly heardAt: () => number }
  | { readonly kind: 'changes'; readonly changes: readonly CloudChange[]; readonly plan: FieldPlan }
  /** It ends in its own time: whatever answers next is the same cluster. Any other end says nothing of the kind. */
  | { readonly kind: 'over' }

/** An object as far as it can be told from others without its contents. */
export type ObjectIdentity = { readonly key: string; readonly uid: string; readonly version: number }

/** A part of what the collection holds at a version: everything behind the last part's last key, up to its own. */
export type Identities = {
  readonly version: number
  /** In the order of their keys. */
  readonly entries: readonly ObjectIdentity[]
  /** Asks for the next part; '' behind the last. */
  readonly next: string
  /** What it cost on the line. */
  readonly bytes: number
}

/** Taking the next step means that the last one is taken over. Rejects with one of the errors below or `Unreachable`. */
export type Follow = (from: From, signal: AbortSignal) => AsyncIterable<Followed>

export type Follower = {
  readonly follow: Follow
  /** For a comparison at leisure: the part that the one before named, or the object of a key. Rejects as `follow` does. */
  readonly identities: (
    of: { readonly part: string } | { readonly key: string },
    signal: AbortSignal,
  ) => Promise<Identities>
}

export type OpenFollow = (collection: Collection) => Follower

/** The API server said no: who, what, or where is wrong. Changes no data by itself. */
export class Refused extends Error {
  readonly code: number

  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}

/** The code of a refusal that is about keeping, and not about reading: a policy's word through a hub. What is held of it goes at once. */
export const neverKept = 451

/** The version or token asked for is too old. */
export class Expired extends Error {
  /** With this the rest of a list can still be had, at the present version. */
  readonly continueToken: string

  constructor(message: string, continueToken: string) {
    super(message)
    this.continueToken = continueToken
  }
}

/** It cannot answer now. */
export class Busy extends Error {
  readonly retryMs: number

  constructor(message: string, retryMs: number) {
    super(message)
    this.retryMs = retryMs
  }
}

/** More objects or bytes than this edge is told to mirror, or an object that is larger than any can be. */
export class TooLarge extends Error {
  /** Known from the first page of its list, which cost next to nothing. */
  readonly foreseen: boolean

  constructor(message: string, foreseen = false) {
    super(message)
    this.foreseen = foreseen
  }
}
