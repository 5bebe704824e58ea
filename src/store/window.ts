/** A file that is read from front to back, a part of it at hand. One that is not there is empty; what cannot be read is zero. */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'

/** Read at once: some seventy events. Larger frames get a buffer of their own for as long as they are looked at. */
export const windowBytes = 256 * 1024
/** Where a disk cannot read, no more than this is given up with it: flash and disks fail by the page. */
const unreadableBytes = 4 * 1024

export class FileWindow {
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
      const got = this.#read(filled, position + filled)
      if (got === 0) break
      filled += got
    }
    this.#bytes = this.#bytes.subarray(0, filled)
    return this.#bytes.subarray(0, length)
  }

  #read(at: number, position: number): number {
    const file = this.#file as number
    try {
      return readSync(file, this.#bytes, at, this.#bytes.length - at, position)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EIO') throw error
    }
    const page = Math.min(unreadableBytes - (position % unreadableBytes), this.#bytes.length - at)
    try {
      return readSync(file, this.#bytes, at, page, position)
    } catch {
      this.#bytes.fill(0, at, at + page)
      return page
    }
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file)
  }
}
