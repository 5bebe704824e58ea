/**
 * A disk under a recovery, and what a power cut leaves of it: of each file what was synced surely, of the rest as much as
 * chance wants; a name that was made, moved or removed only counts once its folder was synced.
 */
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { mock } from 'node:test'
import type { SeededRandom } from '../base/seeded.test-support.ts'
import type { Disk } from './disk.ts'
import { faultyDisk, filesIn, Synced, someOf } from './world.test-support.ts'

/** A change of names. What was done later to the same ones is taken back before it. */
type Renaming = { readonly paths: readonly string[]; undo(): void }
type Call = (...parts: unknown[]) => unknown
/** Both files of the index, where they are there. */
type Pair = readonly (Buffer | undefined)[]

const sectorBytes = 512
const fullSync = 2

export class CutDisk {
  readonly folder: string
  readonly synced = new Synced()
  #renamings: Renaming[] = []
  #index: Pair
  readonly #last: number
  /** Changes of the disk so far. */
  calls = 0

  /** Before the change with this number the power goes, and stays away. What lies there now is on the disk. */
  constructor(folder: string, last: number) {
    this.folder = folder
    this.#last = last
    for (const path of this.#files()) this.synced.files.set(path, fs.readFileSync(path))
    this.#index = this.#readIndex()
  }

  get isCut(): boolean {
    return this.calls >= this.#last
  }

  #files(): string[] {
    const entries = fs.readdirSync(this.folder, { withFileTypes: true, recursive: true })
    return entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name))
  }

  #readIndex(): Pair {
    return this.#indexPaths().map((path) => (fs.existsSync(path) ? fs.readFileSync(path) : undefined))
  }

  #indexPaths(): string[] {
    return ['ake.db', 'ake.db-wal'].map((name) => join(this.folder, name))
  }

  #count(): void {
    if (++this.calls >= this.#last) throw new Error('the power went')
  }

  #replace(name: string, replacement: (real: Call, parts: unknown[]) => unknown): void {
    const methods = fs as unknown as Record<string, Call>
    const real = methods[name] as Call
    mock.method(methods, name, (...parts: unknown[]) => replacement(real, parts))
  }

  /** From now on until `Synced.deaf` everything synchronous is heard of: all that a recovery does. */
  listen(): void {
    for (const name of ['ftruncateSync', 'writeSync', 'truncateSync']) {
      this.#replace(name, (real, parts) => {
        this.#count()
        return real(...parts)
      })
    }
    for (const [name, which] of Object.entries({ writeFileSync: 0, copyFileSync: 1, openSync: 0, mkdirSync: 0 })) {
      this.#replace(name, (real, parts) => this.#make(name, parts[which] as string, () => real(...parts), parts[1]))
    }
    this.#replace('renameSync', (real, [from, to]) => this.#rename(real, from as string, to as string))
    this.#replace('rmSync', (real, [path, options]) => {
      if (!fs.existsSync(path as string)) return real(path, options)
      this.#count()
      this.#remove(path as string)
    })
    for (const name of ['fdatasyncSync', 'fsyncSync']) this.#replace(name, (_, [file]) => this.#sync(file as number))
    this.#listenToIndex()
    syncBuiltinESMExports()
  }

  /** For the log that is written behind the recovery. */
  get logDisk(): Disk {
    const disk = faultyDisk({}, this.synced)
    return {
      ...disk,
      create: (path) => {
        if (!fs.existsSync(path)) this.#noteMade(path)
        return disk.create(path)
      },
      syncFolder: async (path) => this.#settle(path),
    }
  }

  #noteMade(path: string): void {
    this.#renamings.push({ paths: [path], undo: () => fs.rmSync(path, { force: true, recursive: true }) })
  }

  #listenToIndex(): void {
    const { exec } = DatabaseSync.prototype
    const count = () => this.#count()
    const synced = () => this.#indexSynced()
    mock.method(DatabaseSync.prototype, 'exec', function (this: DatabaseSync, sql: string) {
      const commits = sql.includes('COMMIT')
      if (commits) count()
      exec.call(this, sql)
      // SQLite syncs such a commit, and the names of its files with it; any other only some time later.
      if (commits && this.prepare('PRAGMA synchronous').get()?.synchronous === fullSync) synced()
    })
  }

  #indexSynced(): void {
    this.#index = this.#readIndex()
    this.#settle(this.folder)
  }

  #make(how: string, path: string, make: () => unknown, flags: unknown): unknown {
    if (how === 'openSync' && !/^[wa]/.test(String(flags))) return make()
    const isThere = fs.existsSync(path)
    if (how === 'mkdirSync' && isThere) return make()
    this.#count()
    const made = make()
    const isKnown = this.#renamings.some(({ paths }) => paths[0] === path)
    if (!isThere && !isKnown) this.#noteMade(path)
    return made
  }

  #rename(real: Call, from: string, to: string): void {
    this.#count()
    const { files } = this.synced
    const [known, before] = [files.get(from), files.get(to)]
    const replaced = fs.existsSync(to) ? (before ?? fs.readFileSync(to)) : undefined
    real(from, to)
    files.delete(from)
    files.delete(to)
    if (known !== undefined) files.set(to, known)
    const undo = () => {
      if (!fs.existsSync(to)) return
      fs.renameSync(to, from)
      if (replaced !== undefined) fs.writeFileSync(to, replaced)
    }
    this.#renamings.push({ paths: [to, from], undo })
  }

  #remove(path: string): void {
    const content = this.synced.files.get(path) ?? fs.readFileSync(path)
    fs.unlinkSync(path)
    this.synced.files.delete(path)
    this.#renamings.push({ paths: [path], undo: () => fs.writeFileSync(path, content) })
  }

  #sync(file: number): void {
    if (this.isCut) throw new Error('the power went')
    this.synced.noteFile(file)
    if (fs.fstatSync(file).isDirectory()) this.#settle(fs.readlinkSync(`/proc/self/fd/${file}`))
  }

  /** A folder was synced: its names are what they are. */
  #settle(folder: string): void {
    this.#renamings = this.#renamings.filter(({ paths }) => paths.every((path) => dirname(path) !== folder))
  }

  /** Leaves of the folder what the cut leaves; nothing is heard of any more. */
  cut(random: SeededRandom): void {
    const index = this.#readIndex()
    const indexPaths = this.#indexPaths()
    for (const path of this.#files()) {
      if (indexPaths.includes(path)) continue
      fs.writeFileSync(path, mixed(this.synced.files.get(path) ?? Buffer.alloc(0), fs.readFileSync(path), random))
    }
    const stays = new Set<string>()
    for (const { paths, undo } of this.#renamings.toReversed()) {
      if (!paths.some((path) => stays.has(path)) && random(2) === 0) undo()
      // What is in a folder came after it.
      else for (const path of paths) stays.add(path).add(dirname(path))
    }
    // Both files of one moment: as they were synced last, as they are, or with a part of what was written last.
    const how = random(3)
    const pair = how === 0 ? this.#index : index
    for (const [at, path] of indexPaths.entries()) {
      const bytes = pair[at]
      if (bytes === undefined || pair[0] === undefined) fs.rmSync(path, { force: true })
      else fs.writeFileSync(path, bytes)
    }
    const [, wal] = indexPaths as [string, string]
    const [, syncedWal] = this.#index
    if (how === 2 && fs.existsSync(wal)) {
      const { size } = fs.statSync(wal)
      const least = Math.min(size, syncedWal?.length ?? 0)
      fs.truncateSync(wal, least + random(size - least + 1))
    }
  }
}

/** What was not synced may be there from any sector on, or up to any. */
function mixed(kept: Buffer, now: Buffer, random: SeededRandom): Buffer {
  if (kept.equals(now)) return now
  if (now.length > kept.length && now.subarray(0, kept.length).equals(kept)) return someOf(kept, now, random)
  if (random(3) === 0) return now
  const written = Math.min(now.length, sectorBytes * random(1 + Math.ceil(now.length / sectorBytes)))
  const found = Buffer.alloc(Math.max(kept.length, written))
  kept.copy(found)
  now.copy(found, 0, 0, written)
  return found
}

/** Every file of a log with its bytes, and of those that were set aside. */
export function bytesIn(log: string): { files: Map<string, Buffer>; aside: Buffer[] } {
  const aside = join(log, 'aside')
  return {
    files: new Map(filesIn(log).map((path) => [basename(path), fs.readFileSync(path)])),
    aside: fs.existsSync(aside) ? filesIn(aside).map((path) => fs.readFileSync(path)) : [],
  }
}
