/**
 * Reads the log in order. After a crash nobody knows where it ends: at the first frame that is not whole, and what lies
 * behind it was never synced. Otherwise its end is told, and up to there every frame has to be sound.
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { crc32 } from 'node:zlib'
import { type Frame, frameLengths, type Piece, parseFrame, prefixBytes } from './frame.ts'
import { headerBytes, type Position, parseHeader, segmentPath } from './segment.ts'

/** Read at once: some seventy events. Larger frames get a buffer of their own for as long as they are looked at. */
const windowBytes = 256 * 1024

export type TailFrame = Frame & { readonly at: Position; readonly next: Position }

/** The frames from one position to another; without `to` up to the end of what is whole. */
export function* readLog(parts: { folder: string; from: Position; to?: Position }): Iterable<TailFrame> {
  const { folder, to } = parts
  let at = parts.from
  for (;;) {
    const isLast = at.segment === to?.segment
    const next = isLast ? undefined : readHeader(folder, at.segment + 1)
    const file = new Window(segmentPath(folder, at.segment))
    try {
      const end = isLast ? to.offset : Math.min(next?.previousEnd ?? file.size, to === undefined ? file.size : Infinity)
      while (at.offset < end) {
        const frame = readFrame(file, at, { end, isTold: to !== undefined })
        if (frame === undefined && to === undefined) return
        if (frame === undefined) throw new Error(`the log is damaged in segment ${at.segment} at ${at.offset}`)
        yield frame
        at = frame.next
      }
      if (isLast) return
      if (next === undefined || next.sequence !== at.sequence || next.previousEnd !== at.offset) {
        if (to === undefined) return
        throw new Error(`the log breaks off after segment ${at.segment}`)
      }
    } finally {
      file.close()
    }
    at = { segment: at.segment + 1, offset: headerBytes, sequence: at.sequence }
  }
}

function readHeader(folder: string, segment: number): ReturnType<typeof parseHeader> {
  const file = new Window(segmentPath(folder, segment), headerBytes)
  try {
    const header = parseHeader(file.at(0, Math.min(headerBytes, file.size)))
    return header?.segment === segment ? header : undefined
  } finally {
    file.close()
  }
}

function readFrame(
  file: Window,
  at: Position,
  { end, isTold }: { end: number; isTold: boolean },
): TailFrame | undefined {
  if (at.offset + prefixBytes > end) return undefined
  const lengths = frameLengths(file.at(at.offset, prefixBytes))
  if (lengths === undefined || at.offset + lengths.head + lengths.bodies > end) return undefined
  const frame = parseFrame(file.at(at.offset, lengths.head), at.sequence)
  if (frame === undefined) return undefined
  // What was just written by this process is believed: a crash is what tears frames.
  if (!isTold && !frame.pieces.every((piece) => isSound(file, at.offset, piece))) return undefined
  const next = { ...at, offset: at.offset + lengths.head + lengths.bodies, sequence: at.sequence + 1 }
  return { ...frame, at, next }
}

function isSound(file: Window, frameAt: number, { start, length, checksum }: Piece): boolean {
  let found = 0
  for (let done = 0; done < length; ) {
    const part = Math.min(length - done, windowBytes)
    found = crc32(file.at(frameAt + start + done, part), found)
    done += part
  }
  return found === checksum
}

/** A file that is read from front to back. One that is not there is empty. */
class Window {
  readonly #file: number | undefined
  readonly #own: Buffer
  #bytes: Buffer = Buffer.alloc(0)
  #start = 0
  readonly size: number

  constructor(path: string, ownBytes = windowBytes) {
    this.#own = Buffer.allocUnsafeSlow(ownBytes)
    try {
      this.#file = openSync(path, 'r')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    }
    this.size = this.#file === undefined ? 0 : fstatSync(this.#file).size
  }

  /** These bytes, until the next call; fewer only if the file ends. */
  at(position: number, length: number): Buffer {
    const from = position - this.#start
    if (from >= 0 && from + length <= this.#bytes.length) return this.#bytes.subarray(from, from + length)
    const wanted = Math.max(0, Math.min(this.size - position, Math.max(length, this.#own.length)))
    this.#bytes = wanted > this.#own.length ? Buffer.allocUnsafeSlow(wanted) : this.#own.subarray(0, wanted)
    this.#start = position
    let filled = 0
    while (this.#file !== undefined && filled < this.#bytes.length) {
      const got = readSync(this.#file, this.#bytes, filled, this.#bytes.length - filled, position + filled)
      if (got === 0) break
      filled += got
    }
    this.#bytes = this.#bytes.subarray(0, filled)
    return this.#bytes.subarray(0, length)
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file)
  }
}
