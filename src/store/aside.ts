/**
 * What recovery takes out of the way without knowing that it is not needed goes into `log/aside`, under a name that says
 * where it was. What was lost of the log is noted there too, and counts as lost until an operator removes the note.
 */
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { writeSynced } from './base.ts'
import { headerBytes, ownerOnly, sealOf, segmentPath, syncFolder } from './segment.ts'
import type { Hole } from './tail.ts'

/** All of it together: enough for an operator to look at, little enough for a small flash. The oldest goes first. */
const asideBytesMax = 64 * 1024 * 1024
const asideFilesMax = 64
const ownerOnlyFolder = 0o700

/** A part of the log that is lost: where it was, and how many frames; 0 where that is unknown. */
export type Loss = { readonly segment: number; readonly offset: number; readonly frames: number }

export function lossText({ segment, offset, frames }: Loss): string {
  if (frames === 0) return `the end of the log from ${offset} of segment ${segment} on is lost`
  return `${frames} frames of log segment ${segment} at ${offset} are lost`
}

export class Aside {
  readonly folder: string
  readonly #log: string
  /** Losses that have no note yet. */
  #unsettled: Loss[] = []
  /** Whether all notes are known to be on the disk. */
  #isSettled = true

  constructor(logFolder: string) {
    this.#log = logFolder
    this.folder = join(logFolder, 'aside')
  }

  /** Takes a file out of the way; throws on a disk that takes nothing. */
  take(path: string, as = basename(path)): void {
    if (!existsSync(path)) return
    this.#make()
    renameSync(path, join(this.folder, this.#free(as)))
    this.#bound()
  }

  /**
   * Keeps what is about to be cut off, behind what says that it is sealed, and on the disk before that is. A disk that takes
   * nothing does not keep the program from starting.
   */
  keepEnd(path: string, from: number): void {
    try {
      this.#make()
      const kept = join(this.folder, this.#free(`cut-${basename(path)}-${from}`))
      const bytes = readFileSync(path)
      const header = bytes.subarray(0, sealOf(path) === 0 ? 0 : headerBytes)
      writeSynced(kept, Buffer.concat([header, bytes.subarray(from)]))
      this.#syncNames()
      this.#bound()
    } catch {
      // What was cut is told all the same.
    }
  }

  #free(name: string): string {
    let free = name
    for (let i = 1; existsSync(join(this.folder, free)); i++) free = `${name}.${i}`
    return free
  }

  /** What was lost, which has to be noted with the segment as it is before the index steps over it (`settle`). */
  note({ at, next, isEnd = false }: Hole): Loss {
    const frames = isEnd ? 0 : next.sequence - at.sequence
    const loss = { segment: at.segment, offset: at.offset, frames }
    // Found again it may say more of what follows: it is the same loss, since nothing is ever written there again.
    if (!this.losses().some((one) => isSamePlace(one, loss))) this.#unsettled.push(loss)
    this.#isSettled = false
    return loss
  }

  /**
   * Throws where a loss cannot be noted, not even without the segment: then no index may be committed that has stepped over
   * it. The next start would not find it again, and nothing would say any more that something is lost.
   */
  settle(): void {
    if (this.#isSettled) return
    this.#make()
    for (const loss of this.#unsettled) this.#write(loss)
    this.#syncNames()
    this.#unsettled = []
    this.#isSettled = true
    this.#bound()
  }

  #write({ segment, offset, frames }: Loss): void {
    const note = join(this.folder, `${segment}-${offset}-${frames}.lost`)
    if (existsSync(note)) return
    try {
      copyFileSync(segmentPath(this.#log, segment), note)
    } catch {
      // There is none, or no room for it: that something is lost takes none but its name.
      writeFileSync(note, '', { mode: ownerOnly })
    }
  }

  /** What is noted as lost, or is about to be. */
  losses(): Loss[] {
    const found = [...this.#unsettled]
    for (const name of this.#names()) {
      const [, segment, offset, frames] = /^(\d+)-(\d+)-(\d+)\.lost$/.exec(name) ?? []
      const loss = { segment: Number(segment), offset: Number(offset), frames: Number(frames) }
      if (segment !== undefined && !found.some((one) => isSamePlace(one, loss))) found.push(loss)
    }
    return found
  }

  /** Where bodies are sealed nothing is kept here that is not. An index has none, unless it is of a time before that. */
  dropPlain({ withIndex }: { withIndex: boolean }): void {
    for (const name of this.#names()) {
      const path = join(this.folder, name)
      try {
        if (sealOf(path) === 0 && (withIndex || !name.startsWith('ake.db'))) drop(path)
      } catch {
        // A disk that takes nothing: the next start tries again.
      }
    }
  }

  #names(): string[] {
    return existsSync(this.folder) ? readdirSync(this.folder) : []
  }

  #make(): void {
    mkdirSync(this.folder, { recursive: true, mode: ownerOnlyFolder })
  }

  /** The folder may have been made by a process that was killed before it came so far. */
  #syncNames(): void {
    syncFolder(this.folder)
    syncFolder(this.#log)
  }

  /** What an operator keeps here besides files, or does not let go, stays: whatever waits for this has more to do. */
  #bound(): void {
    const files = this.#names().flatMap((name) => {
      const found = statSync(join(this.folder, name), { throwIfNoEntry: false })
      if (found?.isFile() !== true) return []
      return [{ path: join(this.folder, name), size: found.size, mtimeMs: found.mtimeMs }]
    })
    files.sort((one, another) => another.mtimeMs - one.mtimeMs)
    let bytes = 0
    for (const [index, { path, size }] of files.entries()) {
      bytes += size
      if (index === 0 || (bytes <= asideBytesMax && index < asideFilesMax)) continue
      try {
        drop(path)
      } catch {
        // The next one that comes tries again.
      }
    }
  }
}

function isSamePlace(one: Loss, another: Loss): boolean {
  return one.segment === another.segment && one.offset === another.offset
}

/** A note itself stays: only what it holds goes. */
function drop(path: string): void {
  if (path.endsWith('.lost')) writeFileSync(path, '')
  else rmSync(path, { force: true })
}
