/** Reads bodies from the segments they lie in: many with one read where they lie in order, each behind its checksum. */
import { closeSync, openSync, readSync } from 'node:fs'
import { crc32 } from 'node:zlib'
import { Seal } from './seal.ts'
import { segmentPath } from './segment.ts'

/** Open at once: a load goes through all segments, history through the newest. */
const filesMax = 64
/** Between two bodies lies at most the head of a small frame: reading it too is cheaper than another read. */
const gapBytesMax = 1024
/** One read takes at most so much; larger bodies are read alone. */
const runBytesMax = 256 * 1024

export type BodyRow = {
  readonly segment: number
  readonly start: number
  readonly length: number
  readonly checksum: number
}

export class Bodies {
  readonly #folder: string
  /** The least recently opened first. */
  readonly #files = new Map<number, number>()
  #run = Buffer.alloc(0)

  /** Opens what is sealed of what is read here: bytes are what was written, sealed or not. */
  readonly seal: Seal

  constructor(folder: string, seal = new Seal()) {
    this.#folder = folder
    this.seal = seal
  }

  /** Reads all of them into one buffer, in order, without gaps; answers which are sound. */
  readInto(target: Buffer, rows: readonly BodyRow[]): boolean[] {
    const sound: boolean[] = []
    let at = 0
    for (let first = 0; first < rows.length; ) {
      const count = runLength(rows, first)
      const run = rows.slice(first, first + count)
      sound.push(...this.#readRun(target.subarray(at), run))
      for (const { length } of run) at += length
      first += count
    }
    return sound
  }

  /** The bytes, sound or not; undefined where they cannot be read. */
  readRaw(row: BodyRow): Buffer | undefined {
    const bytes = Buffer.allocUnsafeSlow(row.length)
    return this.#read(row.segment, row.start, bytes) ? bytes : undefined
  }

  #readRun(target: Buffer, run: readonly BodyRow[]): boolean[] {
    const { segment, start } = run[0] as BodyRow
    const last = run.at(-1) as BodyRow
    const span = last.start + last.length - start
    const length = run.reduce((sum, row) => sum + row.length, 0)
    if (span === length) {
      const found = this.#read(segment, start, target.subarray(0, length))
      let at = 0
      return run.map((row) => {
        const body = target.subarray(at, at + row.length)
        at += row.length
        return found && crc32(body) === row.checksum
      })
    }
    if (this.#run.length < span) this.#run = Buffer.allocUnsafeSlow(runBytesMax)
    const found = this.#read(segment, start, this.#run.subarray(0, span))
    // A run may reach beyond what can be read of it: then each is tried alone.
    if (!found) return run.flatMap((row, index) => this.#readRun(target.subarray(lengthBefore(run, index)), [row]))
    let at = 0
    return run.map((row) => {
      const body = this.#run.subarray(row.start - start, row.start - start + row.length)
      body.copy(target, at)
      at += row.length
      return crc32(body) === row.checksum
    })
  }

  #read(segment: number, position: number, into: Buffer): boolean {
    // An empty body keeps no segment alive: its file may be gone.
    if (into.length === 0) return true
    try {
      const file = this.#open(segment)
      for (let done = 0; done < into.length; ) {
        const got = readSync(file, into, done, into.length - done, position + done)
        if (got === 0) return false
        done += got
      }
      return true
    } catch {
      // Gone, or a disk that cannot read it: the body is as good as damaged.
      return false
    }
  }

  #open(segment: number): number {
    let file = this.#files.get(segment)
    if (file !== undefined) return file
    for (const oldest of this.#files.keys()) {
      if (this.#files.size < filesMax) break
      this.close(oldest)
    }
    file = openSync(segmentPath(this.#folder, segment), 'r')
    this.#files.set(segment, file)
    return file
  }

  close(segment: number): void {
    const file = this.#files.get(segment)
    this.#files.delete(segment)
    if (file !== undefined) closeSync(file)
  }

  closeAll(): void {
    for (const segment of [...this.#files.keys()]) this.close(segment)
  }
}

/** How many of them, from the first, are read at once. */
function runLength(rows: readonly BodyRow[], first: number): number {
  const { segment, start } = rows[first] as BodyRow
  let end = start + (rows[first] as BodyRow).length
  let count = 1
  for (let row = rows[first + 1]; row !== undefined; row = rows[first + count]) {
    const next = row.start + row.length
    if (row.segment !== segment || row.start < end || row.start - end > gapBytesMax || next - start > runBytesMax) break
    end = next
    count++
  }
  return count
}

function lengthBefore(run: readonly BodyRow[], index: number): number {
  return run.slice(0, index).reduce((sum, { length }) => sum + length, 0)
}
