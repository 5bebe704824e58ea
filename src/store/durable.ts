/**
 * The durable engine: a log, which is the truth, and an index of it in a SQLite file that a thread of its own keeps. A
 * commit is one write to the log and waits for nothing else; a reader that asks about the past first has the index brought up
 * to what was committed.
 */
import { join } from 'node:path'
import type { Worker, WorkerOptions } from 'node:worker_threads'
import { type Clock, systemClock } from '../base/clock.ts'
import { type Loss, lossText } from './aside.ts'
import { CommitLog } from './commitlog.ts'
import type { Disk } from './disk.ts'
import { Floors } from './floors.ts'
import { Questions } from './questions.ts'
import { ReleasedNames } from './releasednames.ts'
import type { DamagedHolder } from './scrub.ts'
import { Scrubbing } from './scrubbing.ts'
import { Seal } from './seal.ts'
import { logFolder, segmentBytesUsual } from './segment.ts'
import {
  type Batch,
  type Cursor,
  type HeldBytes,
  type HistoryLimit,
  type HistoryPage,
  type Loaded,
  type LoadedObject,
  type Make,
  noFigures,
  type SharedBody,
  type Store,
  type StoredRecord,
  StoreRefused,
  StoreUnusable,
} from './store.ts'
import { IndexThread, startWorker } from './thread.ts'
import type { Cut } from './tidyfiles.ts'
import type { FromWorker, Reach } from './wire.ts'

/** What was committed without a sync reaches the disk within this time: a power cut takes back no more. */
const unsyncedMsMax = 3_000
/**
 * The index follows at the same pace, or when so much has come, which is applied again after a crash; or so large a part
 * of what history may hold: it is the index that forgets.
 */
const unappliedBytesMax = 4 * 1024 * 1024
const unappliedPerHistory = 1 / 16

type DurableParts = {
  readonly folder: string
  readonly historyBytesMax: number
  readonly segmentBytes?: number
  /** Bodies are sealed with the first; what the others sealed can be read, and is sealed anew. */
  readonly keys?: readonly Uint8Array[]
  readonly clock?: Clock
  readonly disk?: Disk
  readonly startThread?: (options: WorkerOptions) => Worker
  /** Hears of what is wrong with the files: a part of the log that is lost, an index that had to be made again. */
  readonly onDamage?: (damage: Damage) => void
}

export type Damage =
  | ({ readonly kind: 'lost' } & Loss)
  | ({ readonly kind: 'cut' } & Cut)
  | DamagedHolder
  | { readonly kind: 'mended'; readonly holder: DamagedHolder }
  | { readonly kind: 'remade'; readonly why: string }

export function openDurable(parts: DurableParts): Store {
  return new DurableStore(parts)
}

class DurableStore implements Store {
  readonly #clock: Clock
  readonly #log: CommitLog
  readonly #thread: IndexThread
  readonly #floors = new Floors()
  readonly #questions = new Questions()
  /** Whether the end of the log is known. */
  #isOpen = false
  /** Whether the index has been of use: if not, there is no point in trying again. */
  #isUsable = false
  readonly #unappliedBytesMax: number
  #toldBytes = 0
  readonly #released: ReleasedNames
  #isFollowing = false
  #cancelRound: (() => void) | undefined
  #closing: Promise<void> | undefined
  /** Nothing more will be written. */
  #isClosed = false
  #closed: (() => void) | undefined
  /** Why nothing can be asked any more. */
  #broken: Error | undefined
  readonly #onDamage: (damage: Damage) => void
  readonly #scrubbing: Scrubbing
  readonly figures = noFigures()

  constructor(parts: DurableParts) {
    const { folder, historyBytesMax, segmentBytes = segmentBytesUsual, keys = [], clock = systemClock } = parts
    this.#clock = clock
    this.#onDamage = parts.onDamage ?? (() => {})
    this.#unappliedBytesMax = Math.min(unappliedBytesMax, historyBytesMax * unappliedPerHistory)
    this.#released = new ReleasedNames({
      clock,
      many: () => this.#roundLater(),
      late: () => void this.#follow(),
    })
    const segments = { folder: logFolder(folder), segmentBytes }
    this.#log = new CommitLog({
      ...segments,
      ...(parts.disk && { disk: parts.disk }),
      ...(keys.length > 0 && { seal: new Seal(keys) }),
      written: (...frame) => this.#written(...frame),
      settled: (outcome) => this.#settled(outcome),
    })
    this.#thread = new IndexThread({
      clock,
      startThread: parts.startThread ?? startWorker,
      partsOf: () => ({ path: join(folder, 'ake.db'), ...segments, historyBytesMax, keys, isFirst: !this.#isOpen }),
      receive: (message) => this.#receive(message),
      ended: (why) => this.#ended(why),
      gaveUp: (why) => this.#gaveUp(why),
    })
    this.#scrubbing = new Scrubbing({
      clock,
      send: (message) => void this.#thread.send(message),
      onDamage: this.#onDamage,
      onMended: (holder) => this.#onDamage({ kind: 'mended', holder }),
    })
  }

  commit(batch: Batch): Promise<void> {
    return this.#broken === undefined ? this.#log.append(batch) : Promise.reject(this.#broken)
  }

  #written(batch: Batch, sequence: number, bodyBytes: number): void {
    this.#floors.commit(batch, sequence)
    this.#questions.commit(batch, sequence)
    this.figures.commits++
    this.figures.bytesWritten += bodyBytes
  }

  #settled(outcome: object | Error): void {
    if (outcome instanceof Error) {
      this.figures.failures++
      return
    }
    this.figures.groups++
    this.#roundLater()
    if (this.#log.bytes - this.#toldBytes >= this.#unappliedBytesMax) void this.#follow()
  }

  release(shared: SharedBody): void {
    const { name } = shared
    if (name === 0) return
    shared.name = 0
    this.#released.add(name, this.#log.end?.sequence ?? 0)
  }

  #roundLater(): void {
    if (this.#isClosed) return
    this.#cancelRound ??= this.#clock.setTimer(unsyncedMsMax, () => void this.#round())
  }

  async #round(): Promise<void> {
    this.#cancelRound = undefined
    await this.#follow()
  }

  /**
   * Syncs what is not synced, and lets the index follow up to there: what it takes from behind may have to be written
   * elsewhere, and as long as it has any of that it removes nothing.
   */
  async #follow(): Promise<void> {
    if (this.#isFollowing) return
    this.#isFollowing = true
    if (this.#log.unsynced) {
      await this.#log.sync().catch(() => {
        this.figures.failures++
        this.#roundLater()
      })
    }
    this.#isFollowing = false
    if (this.#closing === undefined && this.#broken === undefined) this.#tell()
  }

  #tell(): void {
    const { synced, proven, bytes } = this.#log
    if (this.#log.end === undefined) return
    this.#toldBytes = synced.bytes
    const released = this.#released.isDue(bytes) ? this.#released.take(synced.sequence, bytes) : []
    if (!this.#thread.send({ kind: 'reach', reach: { ...synced, proven }, released }))
      this.#log.noteIndex({ fails: true })
    // What was written meanwhile follows with the next round.
    if (this.#log.unsynced) this.#roundLater()
  }

  /** How far the log is written: what an answer has to know. */
  #reach(): Reach | undefined {
    const { end, bytes, proven } = this.#log
    return end === undefined ? undefined : { ...end, bytes, proven }
  }

  load<Made = LoadedObject>(make: Make<Made> = asItIs): Promise<Loaded<Made>> {
    return this.#questions.load(make, () => this.#send({ kind: 'load', reach: this.#reach() }))
  }

  history(interest: string, after: Cursor, limit: HistoryLimit): Promise<HistoryPage> {
    const reach = this.#questions.isNews('interest', interest) ? this.#reach() : undefined
    return this.#questions.ask((id) => this.#send({ kind: 'history', id, interest, after, limit, reach }), interest)
  }

  records(kind: string): Promise<readonly StoredRecord[]> {
    const reach = this.#questions.isNews('record', kind) ? this.#reach() : undefined
    return this.#questions.ask((id) => this.#send({ kind: 'records', id, of: kind, reach }))
  }

  async record(kind: string, key: string): Promise<Buffer | undefined> {
    const reach = this.#questions.isNews('record', kind) ? this.#reach() : undefined
    const found = await this.#questions.ask<readonly StoredRecord[]>((id) =>
      this.#send({ kind: 'records', id, of: kind, key, reach }),
    )
    return found[0]?.value
  }

  #send(message: Parameters<IndexThread['send']>[0]): void {
    if (this.#broken !== undefined) throw this.#broken
    if (this.#closing !== undefined) throw closedError()
    if (!this.#thread.send(message)) throw new StoreRefused('the thread of the store ended too often', false)
  }

  #noteLosses(losses: readonly Loss[]): void {
    for (const { frames } of losses) this.figures.lostFrames += Math.max(1, frames)
    this.figures.losses = [...this.figures.losses, ...losses.map(lossText)]
  }

  /** Told once, however often it is asked for. */
  #noteRecord(of: string, key: string): void {
    if (this.figures.damagedRecords.some((one) => one.kind === of && one.key === key)) return
    this.figures.damagedRecords = [...this.figures.damagedRecords, { kind: of, key }]
    this.#onDamage({ kind: 'record', of, key })
  }

  mendFrom(held: HeldBytes): void {
    this.#scrubbing.mendFrom(held)
  }

  floor(interest: string): number {
    return this.#floors.of(interest)
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    // Commits that came before the log was found wait for that.
    while (!this.#isOpen && this.#broken === undefined) await this.#questions.opened
    await this.#log.close(closedError())
    this.#isClosed = true
    this.#cancelRound?.()
    this.#released.stop()
    this.#scrubbing.stop()
    if (this.#broken !== undefined) return
    await new Promise<void>((resolve) => {
      this.#closed = resolve
      const reach = this.#reach()
      const released = this.#released.take(reach?.sequence ?? 0, this.#log.bytes)
      if (!this.#thread.isLive || !this.#thread.send({ kind: 'close', reach, released })) this.#break(closedError())
    })
  }

  #receive(message: FromWorker): void {
    switch (message.kind) {
      case 'opened':
        this.#isOpen = true
        this.#noteLosses(message.losses)
        this.#log.start(message)
        this.#scrubbing.start()
        this.#questions.open()
        return
      case 'news':
        for (const loss of message.losses) this.#onDamage({ kind: 'lost', ...loss })
        for (const cut of message.cuts) this.#onDamage({ kind: 'cut', ...cut })
        this.#noteLosses(message.losses.filter((loss) => !this.figures.losses.includes(lossText(loss))))
        if (message.remade !== undefined) this.#onDamage({ kind: 'remade', why: message.remade })
        return
      case 'applied':
        this.#isUsable = true
        this.figures.historyBytes = message.historyBytes
        if (message.behind !== undefined) this.#noteBehind()
        else this.#log.noteIndex({ bytes: message.reach.bytes, fails: false })
        this.#questions.applied(message.reach.sequence)
        this.#floors.applied(message.reach.sequence)
        this.#floors.told(message.floors)
        return
      case 'stuck':
        this.#questions.unsettle()
        this.#noteBehind()
        return
      case 'loaded':
        this.#isUsable = true
        this.figures.historyBytes = message.historyBytes
        this.#questions.receive(message)
        return
      case 'interest':
        this.#floors.told([[message.name, message.floor]])
        this.#questions.receive(message)
        return
      case 'records':
        for (const key of message.corrupt) this.#noteRecord(message.of, key)
        this.#questions.receive(message)
        return
      case 'sealing':
        // The log may end in a segment that is not sealed as it should be: it goes on in another, so that this one can go.
        if (message.left > (this.figures.sealing?.left ?? 0))
          void this.commit({ changes: [], synced: true }).catch(() => {})
        this.figures.sealing = { left: message.left, of: Math.max(message.of, this.figures.sealing?.of ?? 0) }
        return
      case 'scrubbed':
      case 'mended':
        this.#scrubbing.receive(message)
        this.figures.scrub = this.#scrubbing.figures
        return
      case 'unusable':
        // One that has been of use may be so again: the thread ends now, and the next one tries.
        if (!this.#isUsable) this.#break(new StoreUnusable(message.message, message))
        else this.#thread.blame(new Error(message.message))
        return
      case 'closed':
        this.#break(closedError())
        return
      default:
        this.#questions.receive(message)
    }
  }

  /** The index is tried again with the next round, and commits go on as long as the log takes them. */
  #noteBehind(): void {
    this.figures.failures++
    this.#log.noteIndex({ fails: true })
    this.#roundLater()
  }

  #ended(why: Error): void {
    if (this.#closed !== undefined) {
      this.#break(closedError())
      return
    }
    this.#log.noteIndex({ fails: true })
    const refusal = new StoreRefused(`the thread of the store ended: ${why.message}`, false)
    this.#questions.unsettle()
    this.#questions.reject(refusal)
    // What it was told last it may not have done.
    if (this.#isOpen) this.#roundLater()
  }

  /** Without an end of the log nothing can ever be written. */
  #gaveUp(why: Error): void {
    if (!this.#isOpen) this.#break(new StoreUnusable(`the thread of the store ends: ${why.message}`))
  }

  #break(error: Error): void {
    this.#broken ??= error
    this.#scrubbing.stop()
    this.#thread.stop()
    this.#log.fail(this.#broken)
    this.#questions.reject(this.#broken)
    this.#questions.open()
    this.#closed?.()
  }
}

function closedError(): Error {
  return new Error('the store is closed')
}

function asItIs<Made>(_: string, object: LoadedObject): Made {
  return object as Made
}
