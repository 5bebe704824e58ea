/**
 * The append side of the log, on the main thread. One write is under way at a time; what waits meanwhile goes together in
 * the next one, and one sync covers all of it. A write that fails takes back its whole group and nothing else: the next
 * group is tried again.
 */
import { type Disk, systemDisk } from './disk.ts'
import { draftFrame, numberFrame, takeBackNames } from './frame.ts'
import type { Seal } from './seal.ts'
import { encodeHeader, headerBytes, logStart, type Position, segmentPath } from './segment.ts'
import { type Batch, StoreRefused } from './store.ts'
import { type WaitingBatch, WaitingBatches } from './waitingbatches.ts'

/** How far the index may fall behind: so much has to be applied again after a crash, and no segment of it can go. */
const lagBytesMax = 64 * 1024 * 1024
/** What is not synced yet is held, in case a sync fails: mostly what the cache holds too. Segments are synced as they fill. */
const unsyncedBytesMax = 64 * 1024 * 1024
/** Space that has to be there before a disk that was full counts as healed: a last free page would only be a tease. */
const roomBytesMin = 1024 * 1024

type Segment = { readonly number: number; readonly file: number }

/** A group as it was written, up to this end. */
type Unsynced = { readonly buffers: readonly Buffer[]; readonly bytes: number; readonly end: Position }

/** Where a log ends: `isWhole` says whether its file does too, `isSynced` whether it is known to be on the disk. */
export type LogEnd = {
  readonly end: Position
  readonly isWhole: boolean
  /** The newest segment that is there: no other is made under its number or below. */
  readonly last: number
  readonly isSynced: boolean
  readonly identity: number
}

export type LogParts = {
  readonly folder: string
  readonly segmentBytes: number
  readonly disk?: Disk
  readonly seal?: Seal
  /** A batch is in the log: called in order, before its commit resolves. */
  readonly written: (batch: Batch, sequence: number, bodyBytes: number) => void
  /** A group is in the log, or was refused. */
  readonly settled: (outcome: { batches: number; bytes: number } | Error) => void
}

export class CommitLog {
  readonly #parts: LogParts
  readonly #disk: Disk
  readonly #waiting = new WaitingBatches()
  #running: Promise<void> | undefined
  /** Undefined until it is known where the log ends. */
  #end: Position | undefined
  /** The one written to; undefined where the next write has to begin another. */
  #segment: Segment | undefined
  #mayReopen = false
  /** Full, but perhaps not on the disk yet. */
  readonly #full: Segment[] = []
  /** Not known of a file that a killed process has left. */
  #folderSynced = false
  /** Everything before here is on the disk, as far as can be known, and what lies between there and the end. */
  #synced = logStart
  #unsynced: Unsynced[] = []
  #unsyncedBytes = 0
  #syncedBytes = 0
  /** Everything before this sequence is known to be on the disk. */
  #proven = 0
  /** A sync failed: what is not synced may be gone, though nothing will say so again. It has to be written anew. */
  #doubt: unknown
  /** The highest number of any segment. */
  #last = 0
  #identity = 0
  #syncing: Promise<void> = Promise.resolve()
  #closed: Error | undefined
  /** All that was written since the process began, and how much of it the index has. */
  bytes = 0
  #indexed = 0
  #indexFails = false
  #indexMoved: (() => void) | undefined

  constructor(parts: LogParts) {
    this.#parts = parts
    this.#disk = parts.disk ?? systemDisk
  }

  /** After everything that counts. */
  get end(): Position | undefined {
    return this.#end
  }

  /** Everything before this sequence is on the disk, and will never be written again elsewhere. */
  get proven(): number {
    return this.#proven
  }

  /** Where what is on the disk ends, and how much that is since the process began. */
  get synced(): Position & { readonly bytes: number } {
    return { ...this.#synced, bytes: this.#syncedBytes }
  }

  /** Whether something was written that a power cut could take back. */
  get unsynced(): boolean {
    return this.#unsynced.length > 0 || this.#doubt !== undefined
  }

  /** The log ends here: from now on it is written, in the same file if that ends here too. */
  start({ end, isWhole, last, isSynced, identity }: LogEnd): void {
    this.#end = end
    this.#synced = end
    this.#last = last
    this.#proven = isSynced ? end.sequence : 0
    this.#identity = identity
    this.#mayReopen = isWhole
    this.#run()
  }

  append(batch: Batch): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#closed !== undefined) throw this.#closed
      const draft = draftFrame(batch, this.#parts.seal)
      this.#waiting.add({ batch, draft, resolve, reject })
      this.#run()
    })
  }

  /** How far the index has come, and whether it gets on. */
  noteIndex({ bytes = this.#indexed, fails }: { bytes?: number; fails: boolean }): void {
    this.#indexed = bytes
    this.#indexFails = fails
    this.#indexMoved?.()
  }

  #run(): void {
    if (this.#end === undefined || this.#waiting.size === 0) return
    this.#running ??= this.#writeAll().finally(() => {
      this.#running = undefined
      this.#run()
    })
  }

  async #writeAll(): Promise<void> {
    // One turn later: what is handed over in the same turn shares a write.
    await Promise.resolve()
    while (this.#waiting.size > 0) {
      await this.#untilIndexed()
      const group = this.#waiting.takeGroup()
      // Meanwhile all of them may have been refused.
      if (group.length === 0) return
      try {
        if (this.bytes - this.#indexed > lagBytesMax) throw new StoreRefused('the index cannot follow the log', true)
        await this.#write(group)
      } catch (error) {
        const refusal = refusalOf(error)
        for (const { draft } of group) takeBackNames(draft)
        this.#parts.settled(refusal)
        for (const { reject } of group) reject(refusal)
        continue
      }
      for (const { resolve } of group) resolve()
    }
  }

  /** An index that gets on is waited for: it is only slower. */
  async #untilIndexed(): Promise<void> {
    while (this.bytes - this.#indexed > lagBytesMax && !this.#indexFails) {
      await new Promise<void>((resolve) => {
        this.#indexMoved = resolve
      })
    }
  }

  async #write(group: readonly WaitingBatch[]): Promise<void> {
    if (group.every(({ batch }) => isEmpty(batch))) await this.#probe()
    if (this.#doubt !== undefined) await this.#writeAgain()
    if (this.#unsyncedBytes > unsyncedBytesMax) await this.sync()
    const end = this.#end as Position
    let { sequence } = end
    const buffers: Buffer[] = []
    for (const { draft } of group) {
      numberFrame(draft, sequence, sequence === end.sequence && this.#proven >= sequence)
      sequence++
      buffers.push(draft.head, ...draft.bodies)
    }
    const bytes = group.reduce((sum, { draft }) => sum + draft.bytes, 0)
    if (this.#mayReopen) await this.#reopen(end.segment)
    const segment = end.offset < this.#parts.segmentBytes ? this.#segment : undefined
    const at = segment === undefined ? await this.#begin(end, buffers) : await this.#extend(segment, end, buffers)
    const next = { segment: at.segment, offset: at.offset + bytes, sequence }
    if (group.some(({ batch }) => batch.synced)) await this.#syncUpTo(next, at, this.bytes + bytes)
    else {
      this.#unsynced.push({ buffers, bytes, end: next })
      this.#unsyncedBytes += bytes
    }
    this.#end = next
    this.bytes += bytes
    for (const [index, { batch, draft }] of group.entries()) {
      this.#parts.written(batch, end.sequence + index, draft.bytes - draft.head.length)
    }
    this.#parts.settled({ batches: group.length, bytes })
  }

  /** Rejects unless there is room for more than the write that follows. */
  async #probe(): Promise<void> {
    const free = await this.#disk.freeBytes(this.#parts.folder)
    if (free < roomBytesMin) throw Object.assign(new Error('the disk is full'), { code: 'ENOSPC' })
  }

  async #reopen(number: number): Promise<void> {
    this.#mayReopen = false
    const file = await this.#disk.openAgain(segmentPath(this.#parts.folder, number)).catch(() => undefined)
    if (file !== undefined) this.#segment = { number, file }
  }

  async #extend(segment: Segment, end: Position, buffers: Buffer[]): Promise<Position> {
    try {
      await this.#disk.write(segment.file, buffers, end.offset)
      return end
    } catch (error) {
      await this.#disk.truncate(segment.file, end.offset).catch(() => {})
      // Nothing is written over: a sync may have put some of what failed on the disk, and a power cut would mix the two.
      this.#giveUp()
      throw error
    }
  }

  /** A new segment, with its first frames. Until they are written the log ends in the one before. */
  async #begin(end: Position, buffers: readonly Buffer[]): Promise<Position> {
    const segment = await this.#create(end, buffers)
    if (this.#segment !== undefined) this.#full.push(this.#segment)
    this.#segment = segment
    // Not waited for: a full segment is of no concern to a writer that asked for no sync.
    if (this.#full.length > 0) void this.sync().catch(() => {})
    return { segment: segment.number, offset: headerBytes, sequence: end.sequence }
  }

  async #create(from: Position, buffers: readonly Buffer[]): Promise<Segment> {
    const number = this.#last + 1
    const path = segmentPath(this.#parts.folder, number)
    const file = await this.#disk.create(path)
    try {
      const { segment: previous, offset: previousEnd, sequence } = from
      const ours = { segment: number, identity: this.#identity, seal: this.#parts.seal?.id ?? 0 }
      await this.#disk.write(file, [encodeHeader({ ...ours, sequence, previous, previousEnd }), ...buffers], 0)
    } catch (error) {
      await this.#disk.truncate(file, 0).catch(() => {})
      await this.#disk.close(file).catch(() => {})
      await this.#disk.remove(path).catch(() => {})
      throw error
    }
    this.#last = number
    this.#folderSynced = false
    return { number, file }
  }

  /** Where the sync fails the group was not stored. */
  async #syncUpTo(next: Position, at: Position, bytes: number): Promise<void> {
    try {
      await this.sync()
    } catch (error) {
      if (this.#segment !== undefined) await this.#disk.truncate(this.#segment.file, at.offset).catch(() => {})
      throw error
    }
    this.#noteSynced(next, bytes)
  }

  #noteSynced(end: Position, bytes: number): void {
    if (end.sequence < this.#synced.sequence) return
    this.#synced = end
    this.#syncedBytes = bytes
    this.#proven = end.sequence
    while (this.#unsynced[0] !== undefined && this.#unsynced[0].end.sequence <= end.sequence) {
      this.#unsyncedBytes -= (this.#unsynced.shift() as Unsynced).bytes
    }
  }

  /**
   * After a sync that failed the kernel may have dropped what it could not write, and the next sync would not say so
   * again. So everything since the last one that succeeded goes into another segment, which continues the log from
   * there; nothing else is written before that is synced.
   */
  async #writeAgain(): Promise<void> {
    await this.#syncing
    const from = this.#synced
    for (const { file } of this.#full.splice(0)) await this.#disk.close(file).catch(() => {})
    const abandoned = this.#segment
    this.#segment = undefined
    if (abandoned !== undefined) await this.#disk.close(abandoned.file).catch(() => {})
    const buffers = this.#unsynced.flatMap((group) => group.buffers)
    const segment = await this.#create(from, buffers)
    try {
      await this.#disk.sync(segment.file)
      await this.#disk.syncFolder(this.#parts.folder)
    } catch (error) {
      await this.#disk.close(segment.file).catch(() => {})
      await this.#disk.remove(segmentPath(this.#parts.folder, segment.number)).catch(() => {})
      throw error
    }
    this.#folderSynced = true
    this.#segment = segment
    const { sequence } = this.#end as Position
    const end = { segment: segment.number, offset: headerBytes + this.#unsyncedBytes, sequence }
    this.#end = end
    this.#noteSynced(end, this.bytes)
    this.#doubt = undefined
  }

  /** What it holds still has to reach the disk before anything that follows can count as synced. */
  #giveUp(): void {
    if (this.#segment !== undefined) this.#full.push(this.#segment)
    this.#segment = undefined
  }

  /** Makes everything that was written safe against a power cut. */
  sync(): Promise<void> {
    // Only a write can write anew.
    if (this.#doubt !== undefined && this.#running === undefined) return this.append({ changes: [], synced: true })
    const synced = this.#syncing.then(() => this.#syncAll())
    this.#syncing = synced.catch(() => {})
    return synced
  }

  async #syncAll(): Promise<void> {
    if (this.#doubt !== undefined) throw this.#doubt
    const end = this.#end as Position
    const { bytes } = this
    try {
      if (!this.#folderSynced) {
        this.#folderSynced = true
        await this.#disk.syncFolder(this.#parts.folder)
      }
      // Last, without a pause before the current one: a segment that fills up meanwhile is among them.
      for (let full = this.#full[0]; full !== undefined; full = this.#full[0]) {
        await this.#disk.sync(full.file)
        this.#full.shift()
        await this.#disk.close(full.file).catch(() => {})
      }
      if (this.#segment !== undefined) await this.#disk.sync(this.#segment.file)
    } catch (error) {
      this.#doubt = error
      throw error
    }
    this.#noteSynced(end, bytes)
  }

  /** Nothing more can be written, for this reason. */
  fail(error: Error): void {
    this.#closed ??= error
    this.#waiting.rejectAll(error)
  }

  /** Waits for what was handed over. */
  async close(error: Error): Promise<void> {
    this.#closed ??= error
    if (this.#end === undefined) this.fail(error)
    while (this.#running !== undefined) await this.#running
    if (this.#doubt !== undefined) await this.#writeAgain().catch(() => {})
    else if (this.#unsynced.length > 0) await this.sync().catch(() => {})
    await this.#syncing
    for (const { file } of this.#full.splice(0)) await this.#disk.close(file).catch(() => {})
    const segment = this.#segment
    this.#segment = undefined
    if (segment !== undefined) await this.#disk.close(segment.file).catch(() => {})
  }
}

function isEmpty({ changes, interests = [], records = [] }: Batch): boolean {
  return changes.length + interests.length + records.length === 0
}

function refusalOf(error: unknown): StoreRefused {
  if (error instanceof StoreRefused) return error
  const { message, code } = error as NodeJS.ErrnoException
  return new StoreRefused(message, code === 'ENOSPC' || code === 'EDQUOT')
}
