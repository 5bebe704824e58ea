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

  constructor(logFolder: string) {
    this.#log = logFolder
    this.folder = join(logFolder, 'aside')
  }

  /** Takes a file out of the way. On a disk that takes nothing it stays where it is, if it may. */
  take(path: string, as = basename(path)): void {
    if (!existsSync(path)) return
    this.#make()
    renameSync(path, join(this.folder, this.#free(as)))
    this.#bound()
  }

  /**
   * Keeps what is about to be cut off, behind what says that it is sealed. A disk that takes nothing does not keep the
   * program from starting.
   */
  keepEnd(path: string, from: number): void {
    try {
      this.#make()
      const kept = join(this.folder, this.#free(`cut-${basename(path)}-${from}`))
      const bytes = readFileSync(path)
      const header = bytes.subarray(0, sealOf(path) === 0 ? 0 : headerBytes)
      writeFileSync(kept, Buffer.concat([header, bytes.subarray(from)]), { mode: ownerOnly })
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

  /** Notes what was lost, with the segment as it is. On a disk that is full only what is said of it is left. */
  note({ at, next, isEnd = false }: Hole): Loss {
    const frames = isEnd ? 0 : next.sequence - at.sequence
    const loss = { segment: at.segment, offset: at.offset, frames }
    try {
      this.#make()
      const note = join(this.folder, `${loss.segment}-${loss.offset}-${loss.frames}.lost`)
      if (!existsSync(note)) {
        const path = segmentPath(this.#log, at.segment)
        if (at.segment > 0 && existsSync(path)) copyFileSync(path, note)
        else writeFileSync(note, '', { mode: ownerOnly })
        syncFolder(this.folder)
      }
      this.#bound()
    } catch {
      // The next start finds it again, unless it finds the index beyond it: then the log line was all there was.
    }
    return loss
  }

  /** What is still noted as lost. */
  losses(): Loss[] {
    const found: Loss[] = []
    for (const name of this.#names()) {
      const [, segment, offset, frames] = /^(\d+)-(\d+)-(\d+)\.lost$/.exec(name) ?? []
      if (segment !== undefined)
        found.push({ segment: Number(segment), offset: Number(offset), frames: Number(frames) })
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

  #bound(): void {
    const files = this.#names().map((name) => {
      const { size, mtimeMs } = statSync(join(this.folder, name))
      return { path: join(this.folder, name), size, mtimeMs }
    })
    files.sort((one, another) => another.mtimeMs - one.mtimeMs)
    let bytes = 0
    for (const [index, { path, size }] of files.entries()) {
      bytes += size
      if (index > 0 && (bytes > asideBytesMax || index >= asideFilesMax)) drop(path)
    }
  }
}

/** A note itself stays: only what it holds goes. */
function drop(path: string): void {
  if (path.endsWith('.lost')) writeFileSync(path, '')
  else rmSync(path, { force: true })
}
