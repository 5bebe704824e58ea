/** What the log asks of the disk, all of it done by Node's thread pool. A part, so that tests can have a disk that fails. */
import { close, fdatasync, fsync, ftruncate, open, statfs, statfsSync, unlink, writev } from 'node:fs'
import { promisify } from 'node:util'
import { ownerOnly } from './segment.ts'

/** Space that has to be there before what failed is tried again: a last free page would only be a tease. */
const roomBytesMin = 1024 * 1024

/** For a thread that may wait. */
export function hasRoom(folder: string): boolean {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize >= roomBytesMin
}

export interface Disk {
  /** A new file, or an empty one instead of what is there. */
  create(path: string): Promise<number>
  openAgain(path: string): Promise<number>
  /** Everything, or it rejects. */
  write(file: number, buffers: readonly Buffer[], position: number): Promise<void>
  /** Cuts the file back. */
  truncate(file: number, length: number): Promise<void>
  sync(file: number): Promise<void>
  syncFolder(path: string): Promise<void>
  close(file: number): Promise<void>
  remove(path: string): Promise<void>
  freeBytes(path: string): Promise<number>
}

const opening = promisify(open)
const syncing = promisify(fsync)
const closing = promisify(close)

export const systemDisk: Disk = {
  create: (path) => opening(path, 'w', ownerOnly),
  openAgain: (path) => opening(path, 'r+'),
  write: writeAll,
  truncate: promisify(ftruncate),
  sync: promisify(fdatasync),
  close: closing,
  remove: promisify(unlink),
  async syncFolder(path) {
    const folder = await opening(path, 'r')
    try {
      await syncing(folder)
    } finally {
      await closing(folder)
    }
  },
  async freeBytes(path) {
    const { bavail, bsize } = await promisify(statfs)(path)
    return bavail * bsize
  },
}

/** The kernel may take less than it is given, on a disk that is nearly full: why, the next try tells. */
async function writeAll(file: number, buffers: readonly Buffer[], position: number): Promise<void> {
  let rest = buffers
  let at = position
  for (;;) {
    const written = await writeSome(file, rest, at)
    at += written
    rest = without(rest, written)
    if (rest.length === 0) return
    if (written === 0) throw Object.assign(new Error('the disk takes nothing more'), { code: 'ENOSPC' })
  }
}

function writeSome(file: number, buffers: readonly Buffer[], position: number): Promise<number> {
  return new Promise((resolve, reject) => {
    writev(file, buffers, position, (error, written) => (error === null ? resolve(written) : reject(error)))
  })
}

function without(buffers: readonly Buffer[], written: number): Buffer[] {
  let left = written
  const rest: Buffer[] = []
  for (const buffer of buffers) {
    if (left >= buffer.length) left -= buffer.length
    else {
      rest.push(buffer.subarray(left))
      left = 0
    }
  }
  return rest
}
