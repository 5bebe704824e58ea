/**
 * The log and its index without threads, and what a disk would hold of them if the power went now: of each file what was
 * synced, and of the rest as much as chance wants.
 */

import assert from 'node:assert/strict'
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { mock } from 'node:test'
import type { SeededRandom } from '../base/seeded.test-support.ts'
import { CommitLog } from './commitlog.ts'
import { type Disk, systemDisk } from './disk.ts'
import { Index } from './index.ts'
import { openMemory } from './memory.ts'
import { Seal } from './seal.ts'
import { logFolder } from './segment.ts'
import { packObjects, packPage, packRecords } from './slab.ts'
import { afterAll, type Batch, HistoryGone, type SharedBody, type Store } from './store.ts'

const all = { entries: 100_000, bytes: 1 << 30 }

/** Where this is set every store of the room's tests is sealed (`test/sealedstore.test.ts`). */
const isSealedHere = process.env.AKE_TEST_SEALED !== undefined
/** What stores are opened with here. */
export const oneKey = Buffer.alloc(32, 'one')
export const otherKey = Buffer.alloc(32, 'other')
export const testKeys: readonly Buffer[] = isSealedHere ? [oneKey] : []

export type Limits = { historyBytesMax: number; segmentBytes: number }

/** What is known to be on the disk. Real syncs are left out: the power stays on. */
export class Synced {
  readonly files = new Map<string, Buffer>()
  readonly names = new Set<string>()

  note(path: string): void {
    // Of the database both files together: they are of one moment.
    const paths = path.endsWith('-wal') ? [path, path.slice(0, -4)] : [path]
    for (const one of paths) this.files.set(one, fs.readFileSync(one))
  }

  noteFile(file: number): void {
    const path = fs.readlinkSync(`/proc/self/fd/${file}`)
    if (fs.fstatSync(file).isDirectory()) for (const name of fs.readdirSync(path)) this.names.add(join(path, name))
    else this.note(path)
  }

  /** From now on synchronous syncs are heard of. */
  listen(): void {
    for (const name of ['fdatasyncSync', 'fsyncSync'] as const) {
      mock.method(fs, name, (file: number) => this.noteFile(file))
    }
    const { renameSync } = fs
    mock.method(fs, 'renameSync', (from: string, to: string) => {
      renameSync(from, to)
      const known = this.files.get(from)
      this.files.delete(from)
      if (known === undefined) this.files.delete(to)
      else this.files.set(to, known)
    })
    syncBuiltinESMExports()
  }

  static deaf(): void {
    mock.restoreAll()
    syncBuiltinESMExports()
  }
}

/** Faults that a disk may have; each is asked before it is done. */
export type Faults = { write?: () => boolean; truncate?: () => boolean; sync?: () => boolean }

const failure = () => Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })

export function faultyDisk(faults: Faults, synced?: Synced): Disk {
  return {
    ...systemDisk,
    async write(file, buffers, position) {
      if (faults.write?.() !== true) return systemDisk.write(file, buffers, position)
      const whole = Buffer.concat(buffers)
      await systemDisk.write(file, [whole.subarray(0, whole.length >> 1), Buffer.of(1)], position)
      throw failure()
    },
    async truncate(file, length) {
      if (faults.truncate?.() === true) throw failure()
      return systemDisk.truncate(file, length)
    },
    async sync(file) {
      if (faults.sync?.() === true) throw failure()
      if (synced === undefined) await systemDisk.sync(file)
      else synced.noteFile(file)
    },
    async syncFolder(path) {
      if (synced === undefined) return systemDisk.syncFolder(path)
      for (const name of fs.readdirSync(path)) synced.names.add(join(path, name))
    },
  }
}

export class World {
  readonly folder: string
  readonly index: Index
  readonly log: CommitLog
  /** Every batch that the log holds, in order. */
  readonly frames: Batch[]
  /** So many of them were synced before they were acknowledged. */
  syncedFrames = 0

  constructor(parts: { folder: string; limits: Limits; disk?: Disk; frames?: Batch[]; keys?: readonly Buffer[] }) {
    this.folder = parts.folder
    const folder = logFolder(parts.folder)
    const { keys = testKeys } = parts
    this.index = new Index({ ...parts.limits, folder, path: join(parts.folder, 'ake.db'), seal: new Seal(keys) })
    const found = this.index.recover()
    this.frames = (parts.frames ?? []).slice(0, found.end.sequence - 1)
    this.log = new CommitLog({
      folder,
      segmentBytes: parts.limits.segmentBytes,
      ...(parts.disk && { disk: parts.disk }),
      ...(keys.length > 0 && { seal: new Seal(keys) }),
      written: (batch) => void this.frames.push(batch),
      settled: () => {},
    })
    this.log.start(found)
  }

  async commit(batch: Batch): Promise<boolean> {
    try {
      await this.log.append(batch)
    } catch {
      return false
    }
    if (batch.synced) this.syncedFrames = this.frames.length
    return true
  }

  follow(): void {
    const { end, proven } = this.log
    if (end !== undefined) this.index.apply(end, { proven })
  }

  /** As the store does it: once the index has every frame that could refer to them. */
  release(...shared: SharedBody[]): void {
    this.follow()
    this.index.release(shared.map(({ name }) => name).filter((name) => name > 0))
    for (const one of shared) one.name = 0
  }

  async close(): Promise<void> {
    await this.log.close(new Error('closed'))
    this.index.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}

/** A folder as a killed process leaves it. */
export function copyKilled(folder: string, to: string): void {
  fs.cpSync(folder, to, { recursive: true })
}

/** A folder as a power cut leaves it. */
export function copyCut(
  folder: string,
  to: string,
  { synced, random }: { synced: Synced; random: SeededRandom },
): void {
  fs.mkdirSync(join(to, 'log'), { recursive: true })
  // Recovery does not count on the index: it is of some earlier moment, of this one, or not there.
  const index = random(4)
  for (const name of index === 0 ? [] : ['ake.db', 'ake.db-wal']) {
    const path = join(folder, name)
    const known = synced.files.get(path)
    if (index > 1 && known !== undefined) fs.writeFileSync(join(to, name), known)
    else if (fs.existsSync(path)) fs.copyFileSync(path, join(to, name))
  }
  const mark = synced.files.get(join(folder, 'ake.end'))
  if (mark !== undefined) fs.writeFileSync(join(to, 'ake.end'), mark)
  const inLog = logFolder(folder)
  const present = filesIn(inLog)
  const paths = new Set([...present, ...[...synced.files.keys()].filter((path) => dirname(path) === inLog)])
  for (const path of paths) {
    const kept = synced.files.get(path)
    const isPresent = present.includes(path)
    if (!isPresent && random(2) === 0) continue
    if (isPresent && !synced.names.has(path) && random(2) === 0) continue
    const now = isPresent ? fs.readFileSync(path) : (kept as Buffer)
    fs.writeFileSync(join(to, 'log', basename(path)), someOf(kept ?? Buffer.alloc(0), now, random))
  }
}

export function filesIn(folder: string): string[] {
  const entries = fs.readdirSync(folder, { withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).map(({ name }) => join(folder, name))
}

export function someOf(kept: Buffer, now: Buffer, random: SeededRandom): Buffer {
  // Cut back after a refusal: if the power went in that very moment, whether it is stored would be unknown.
  if (now.length <= kept.length) return now
  const rest = now.length - kept.length
  const found = Buffer.from(now)
  // What was not synced may be missing from anywhere, by the sector.
  const hole = random(3)
  const sector = kept.length + random(rest)
  const start = sector - (sector % 512)
  if (hole === 0) found.fill(0, Math.max(kept.length, start), now.length)
  if (hole === 1) found.fill(0, kept.length, Math.min(start + 512, now.length))
  return random(3) === 0 ? found : found.subarray(0, kept.length + random(rest + 1))
}

/** What a store that cannot forget has after these batches. */
export async function modelOf(frames: readonly Batch[], historyBytesMax: number): Promise<Store> {
  const memory = openMemory({ historyBytesMax })
  for (const batch of frames) await memory.commit(batch)
  return memory
}

/** What both have to agree on: every object and record, and every step of history that both still have. */
export async function compare(index: Index, memory: Store, recordKinds: readonly string[] = []): Promise<void> {
  const expected = (await memory.load()).interests
  const found = index.interests()
  assert.deepEqual(found.map(({ name }) => name).sort(), expected.map(({ name }) => name).sort())
  for (const { name, floor, synced } of found) {
    const model = expected.find((one) => one.name === name)
    assert.deepEqual(
      objectsOf(index, name),
      model?.objects.map(({ key, version, body }) => `${key} ${version} ${text(body)}`),
    )
    assert.equal(synced, model?.synced)
    const after = { version: Math.max(floor, memory.floor(name)), position: afterAll }
    const steps = await memory.history(name, after, all).then(({ entries }) => entries.map(step), gone)
    assert.deepEqual(historyOf(index, name, after), steps)
  }
  for (const kind of recordKinds) {
    const { rows, bytes } = packRecords(index.bodies, { kind, records: index.records(kind) })
    assert.deepEqual(
      rows.map(({ key, start, end }) => `${key} ${text(bytes.subarray(start, end))}`),
      (await memory.records(kind)).map(({ key, value }) => `${key} ${text(value)}`),
    )
  }
}

export function objectsOf(index: Index, name: string): string[] {
  const corrupt: string[] = []
  const found: string[] = []
  for (const { rows, bytes } of packObjects(index.bodies, index.objects(name), {
    corrupt: (key) => corrupt.push(key),
  })) {
    for (const { key, version, start, end } of rows) found.push(`${key} ${version} ${text(bytes.subarray(start, end))}`)
  }
  assert.deepEqual(corrupt, [])
  return found
}

function historyOf(index: Index, name: string, after: { version: number; position: number }): unknown {
  try {
    const { rows, bytes } = packPage(index.bodies, name, index.history(name, after, all))
    return rows.map(({ version, start, end, previousStart, previousEnd }) => {
      const part = (from: number, to: number) => (from < 0 ? undefined : bytes.subarray(from, to))
      return step({ version, body: part(start, end), previous: part(previousStart, previousEnd) })
    })
  } catch (error) {
    return gone(error)
  }
}

function step(entry: { version: number; body: Uint8Array | undefined; previous: Uint8Array | undefined }): string {
  return `${entry.version} ${text(entry.previous)} ${text(entry.body)}`
}

function text(bytes: Uint8Array | undefined): string {
  return bytes === undefined ? '-' : `${bytes.length} ${Buffer.from(bytes.subarray(0, 12))}`
}

function gone(error: unknown): string {
  assert.ok(error instanceof HistoryGone, String(error))
  return 'gone'
}
