/**
 * Durable objects and the history of their changes, by interest.
 *
 * An interest is a named collection of objects that changes in one order. Its history is a log of entries, each with a
 * position (an ordinal, unique and rising) and a version (the resourceVersion: a label that never falls but may repeat).
 * `commit` is atomic: objects and history change together or not at all, and it resolves only when a crash of the process
 * can no longer take the change back (D1, D2). The bytes of an object version are kept once, whichever entries of its
 * interest refer to them, and whichever interests do where the caller says so (`SharedBody`), under a checksum that is
 * verified before they are handed out (D4).
 *
 * A mirror's interest begins with seeds, objects without history, and is complete once `synced` says up to which version.
 * Records are small things beside the interests (tokens, decisions, documents), by kind and key.
 *
 * History is bounded by bytes. The engine forgets the oldest entries of the interest that holds the most; what it forgot
 * raises that interest's floor, and only that one's: a quiet interest never expires. How old it may get is up to the
 * writer: a `floor` that is said forgets what lies below.
 */

/** One step in the history of one interest. */
export type Entry = {
  readonly position: number
  readonly version: number
  readonly key: string
  readonly kind: EntryKind
  /** The object after this step; undefined for a delete. For a gap: undefined. */
  readonly body: Buffer | undefined
  /** The object before this step, with the version it had; undefined when it was not there. */
  readonly previous: Buffer | undefined
  readonly previousVersion: number
}

/**
 * `gap` opens a difference found by a relist: `key` holds the version up to which it reaches (decision 3 of
 * docs/architecture.md). Standalone servers never write one.
 */
export type EntryKind = 'put' | 'delete' | 'gap'

/**
 * The bytes of one object version that several interests may hold. A caller that hands over the same one with each of
 * their changes, all of one version, has the bytes written once. `name` is what the store calls them, 0 while it does
 * not have them. The caller releases it when it is done with the last change: then they go with their last holder.
 */
export type SharedBody = { name: number }

/**
 * `seed` puts an object without a history entry and drops what it replaces; its position is ignored. What history there
 * is of the replaced object goes with it: a reader that needs that step finds `HistoryGone`.
 */
export type Change = {
  readonly interest: string
  readonly position: number
  readonly version: number
  readonly key: string
  readonly kind: EntryKind | 'seed'
  readonly body?: Buffer
  readonly shared?: SharedBody | undefined
}

/**
 * `forget` drops an interest with everything in it; one that is written to in the same batch starts new. `synced` is the
 * version up to which the interest is complete; `floor` raises its floor, which never falls: entries up to it are forgotten;
 * `sound` says that whatever was lost of it is known again.
 */
export type InterestChange =
  | { readonly interest: string; readonly forget: true }
  | { readonly interest: string; readonly synced: number; readonly floor?: number; readonly sound?: true }

/** An undefined value removes the record. */
export type RecordChange = { readonly kind: string; readonly key: string; readonly value: Buffer | undefined }

export type StoredRecord = { readonly key: string; readonly value: Buffer }

/** Atomic as a whole, applied in this order: every `forget`, the changes, `synced` and `floor`, the records. */
export type Batch = {
  readonly changes: readonly Change[]
  readonly interests?: readonly InterestChange[]
  readonly records?: readonly RecordChange[]
  /** Synced to the disk before commit resolves: for whatever was accepted from a client. Otherwise within seconds. */
  readonly synced: boolean
}

/** A body that several interests hold is the same buffer for each, and one that may be shared again has its `shared`. */
export type LoadedObject = {
  readonly key: string
  readonly version: number
  readonly body: Buffer
  readonly shared?: SharedBody
}

export type LoadedInterest<Made = LoadedObject> = {
  readonly name: string
  /** Every watch from a version below this one is too old. */
  readonly floor: number
  /** Complete up to this version; undefined while it holds nothing but seeds: its first sync was cut. */
  readonly synced: number | undefined
  readonly lastPosition: number
  /** Of the newest entry there is, or was; 0 if there never was one. */
  readonly lastVersion: number
  readonly gaps: readonly Gap[]
  /** Ordered by key, bytewise. */
  readonly objects: readonly Made[]
  /** Keys whose stored bytes fail their checksum. */
  readonly corrupt: readonly string[]
  /** Part of the log was lost that may have concerned it: what is here may be too much, too little or too old. */
  readonly isDoubted?: boolean
}

export type Gap = { readonly position: number; readonly from: number; readonly to: number }

export type Loaded<Made = LoadedObject> = {
  /** The highest version in any history; above it where versions were lost. */
  readonly version: number
  readonly interests: readonly LoadedInterest<Made>[]
}

/** What the reader makes of each object while the engine reads the next ones. */
export type Make<Made> = (interest: string, object: LoadedObject) => Made

/** A place in a history: after every entry up to and including (version, position). */
export type Cursor = { readonly version: number; readonly position: number }

export type HistoryPage = {
  /** In order; `more` says whether the page was cut by its limit. */
  readonly entries: readonly Entry[]
  readonly more: boolean
}

export type HistoryLimit = { readonly entries: number; readonly bytes: number }

/** Bytes of the present round, rounds that were ended; bodies found damaged since the start, and written again. */
export type ScrubFigures = {
  readonly bytes: number
  readonly of: number
  readonly rounds: number
  readonly damaged: number
  readonly mended: number
}

export type StoreFigures = {
  commits: number
  groups: number
  /** Of bodies: what is shared counts once. */
  bytesWritten: number
  historyBytes: number
  failures: number
  /** Frames of the log that are lost, and a sentence for each place: until an operator has removed the note of it. */
  lostFrames: number
  /** Records that were asked for and whose bytes fail their checksum. */
  damagedRecords: readonly { readonly kind: string; readonly key: string }[]
  losses: readonly string[]
  /** Segments that are not sealed with the key that seals, of those there were at the start; undefined: there is no key. */
  sealing: { readonly left: number; readonly of: number } | undefined
  /** How far the slow rereading of what is stored has come, and what it found; undefined before its first step. */
  scrub: ScrubFigures | undefined
}

/** Of a store that has done nothing yet. */
export function noFigures(): StoreFigures {
  const counts = { commits: 0, groups: 0, bytesWritten: 0, historyBytes: 0, failures: 0, lostFrames: 0 }
  return { ...counts, losses: [], damagedRecords: [], sealing: undefined, scrub: undefined }
}

/** What a process holds of an object in memory, with the version it has there. */
export type HeldBytes = (
  interest: string,
  key: string,
) => { readonly bytes: Buffer; readonly version: number } | undefined

export interface Store {
  /** Everything needed to serve, read once when the store is opened: before anything is shared. */
  load(): Promise<Loaded>
  load<Made>(make: Make<Made>): Promise<Loaded<Made>>
  /** Rejects with `StoreRefused`. A batch with nothing in it changes nothing and tells whether the disk takes a write. */
  commit(batch: Batch): Promise<void>
  /** No further change will bring these bytes, and none is under way. */
  release(shared: SharedBody): void
  /** Entries strictly after the cursor. Rejects with `HistoryGone` when the cursor lies below the floor. */
  history(interest: string, after: Cursor, limit: HistoryLimit): Promise<HistoryPage>
  /**
   * The version below which an interest's history was forgotten; 0 when all of it is there. One that was said counts at
   * once; what forgetting raises, and `historyBytes`, may be known a few seconds late, or with the next `load`.
   */
  floor(interest: string): number
  /** Every sound record of a kind, ordered by key: one whose checksum fails is left out. */
  records(kind: string): Promise<readonly StoredRecord[]>
  record(kind: string, key: string): Promise<Buffer | undefined>
  /** Of whom the bytes are asked of an object whose stored ones are found damaged while the store is open. */
  mendFrom(held: HeldBytes): void
  readonly figures: Readonly<StoreFigures>
  /** Waits for what was handed over, then closes. */
  close(): Promise<void>
}

/** The history asked for is no longer there. */
export class HistoryGone extends Error {
  readonly floor: number

  constructor(interest: string, floor: number) {
    super(`history of ${interest} begins at ${floor}`)
    this.floor = floor
  }
}

/**
 * The disk refused a write: full, failing or gone. Nothing of the batch was stored; only if the process or the power goes
 * in the moment of the refusal is that unknown.
 */
export class StoreRefused extends Error {
  readonly full: boolean

  constructor(message: string, full: boolean) {
    super(message)
    this.full = full
  }
}

/**
 * The folder cannot be used at all. `damaged`: what is in it is beyond repair. Otherwise nothing is wrong with that: it
 * is of a newer schema, held by another process, or on a disk that does not do what it is asked.
 */
export class StoreUnusable extends Error {
  readonly damaged: boolean

  constructor(message: string, { damaged = false }: { damaged?: boolean } = {}) {
    super(message)
    this.damaged = damaged
  }
}

/** After every version and position: "everything labelled up to this version has been seen". */
export const afterAll = Number.MAX_SAFE_INTEGER
