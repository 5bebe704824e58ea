/**
 * A watch as an API server streams it, cut into its frames: one line of JSON each, `{"type":"ADDED","object":{…}}`. Its object
 * stays the bytes that came: `scanObject` checks them, all of them and to the letter, while it looks for what is needed.
 */
import { eachMember, isKey, ScanFault, skipValue } from './json/scan.ts'
import { closeBrace, openBrace, skipSpace } from './json/wellformed.ts'

const frameTypes = ['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK', 'ERROR'] as const

export type WatchFrame = {
  readonly type: (typeof frameTypes)[number]
  /**
   * Not checked yet: what a frame goes on with after it may be part of it, and is found out with it. A view into a chunk that
   * was pushed: a reader that keeps it copies it, or the whole chunk stays in memory.
   */
  readonly object: Buffer
}

/** The stream is no watch, or was cut inside a frame: nothing that follows can be trusted. */
export class FrameFault extends Error {}

/** etcd takes 1.5 MB for an object as it comes; the rest is room for clusters that allow more, and for JSON's escapes. */
export const frameBytesMax = 16 * 1024 * 1024

const newline = 0x0a

export class FrameReader {
  /** The frame that has begun, with room to grow: chunks are not kept, however small they come. */
  #begun = Buffer.alloc(0)
  #pending = 0

  /** Bytes of a frame whose end has not come yet. */
  get pending(): number {
    return this.#pending
  }

  /**
   * The frames that this chunk completes. A fault loses those before it in the same chunk: they come again with the watch
   * that takes this one's place. The reader is of no more use then.
   */
  push(chunk: Buffer): readonly WatchFrame[] {
    const frames: WatchFrame[] = []
    let start = 0
    for (;;) {
      const end = chunk.indexOf(newline, start)
      const part = chunk.subarray(start, end < 0 ? chunk.length : end)
      if (this.#pending + part.length > frameBytesMax) throw new FrameFault(`a frame of over ${frameBytesMax} bytes`)
      if (end < 0) {
        this.#add(part)
        return frames
      }
      frames.push(readFrame(this.#complete(part)))
      start = end + 1
    }
  }

  /** The stream has ended. */
  end(): void {
    if (this.#pending > 0) throw new FrameFault(`the watch ended inside a frame, after ${this.#pending} of its bytes`)
  }

  #add(part: Buffer): void {
    const length = this.#pending + part.length
    if (length > this.#begun.length) {
      const grown = Buffer.allocUnsafe(Math.max(length, 2 * this.#begun.length))
      this.#begun.copy(grown, 0, 0, this.#pending)
      this.#begun = grown
    }
    part.copy(this.#begun, this.#pending)
    this.#pending = length
  }

  #complete(last: Buffer): Buffer {
    if (this.#pending === 0) return last
    this.#add(last)
    const line = this.#begun.subarray(0, this.#pending)
    this.#begun = Buffer.alloc(0)
    this.#pending = 0
    return line
  }
}

const typeKey = Buffer.from('type')
const objectKey = Buffer.from('object')

/** How every API server begins a frame. */
const openings = frameTypes.map((type) => ({ type, opening: Buffer.from(`{"type":"${type}","object":{`) }))

function readFrame(line: Buffer): WatchFrame {
  for (const { type, opening } of openings) {
    if (line[9] !== opening[9] || !isKey(line, 0, opening.length, opening)) continue
    if (line.at(-1) !== closeBrace) break
    return { type, object: line.subarray(opening.length - 1, line.length - 1) }
  }
  return readUncommonFrame(line)
}

function readUncommonFrame(line: Buffer): WatchFrame {
  let type: string | undefined
  let object: Buffer | undefined
  try {
    const frameEnd = eachMember(line, 0, (from, to, at) => {
      const end = skipValue(line, at)
      if (isKey(line, from, to, typeKey) && type === undefined) type = line.toString('latin1', at + 1, end - 1)
      else if (isKey(line, from, to, objectKey) && object === undefined) object = line.subarray(at, end)
      else throw new FrameFault('a frame with members that no watch event has')
      return end
    })
    if (skipSpace(line, frameEnd) !== line.length) throw new FrameFault('something follows a frame')
  } catch (error) {
    throw error instanceof ScanFault ? new FrameFault(error.message) : error
  }
  const known = frameTypes.find((one) => one === type)
  if (known === undefined || object?.[0] !== openBrace)
    throw new FrameFault('a frame without a known type or an object')
  return { type: known, object }
}
