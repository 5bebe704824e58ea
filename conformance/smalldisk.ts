/**
 * A disk of a test's own: a small ext4 in a file, which fills up, and fails, for real. Making one takes root and loop devices.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, statfsSync, statSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'

const pieceBytes = 1 << 20

export class SmallDisk {
  /** Where it is mounted. */
  readonly at: string
  readonly #image: string

  private constructor(at: string, image: string) {
    this.at = at
    this.#image = image
  }

  /** With its file in `dir`; the answer is a sentence where none can be made. */
  static mount(dir: string, at: string, mb: number): SmallDisk | string {
    if (process.getuid?.() !== 0) return 'a filesystem of its own takes root'
    mkdirSync(at, { recursive: true })
    const image = join(dir, `${basename(at)}.img`)
    try {
      run('truncate', '-s', `${mb}M`, image)
      // As a distribution makes them for its devices; without what is kept free for root.
      run('mkfs.ext4', '-q', '-F', '-m', '0', '-e', 'remount-ro', image)
      run('mount', '-o', 'loop', image, at)
    } catch (error) {
      rmSync(image, { force: true })
      return `no small filesystem could be mounted (${(error as Error).message.split('\n')[0]})`
    }
    return new SmallDisk(at, image)
  }

  /** Takes so much of it, to be set free later. */
  reserve(bytes: number): void {
    writeFileSync(this.#ballast, Buffer.alloc(bytes, 1), { flag: 'a' })
  }

  /** Takes the very last block. What is many is not written, only taken. */
  fill(): void {
    const { bavail, bsize } = statfsSync(this.at)
    if (bavail * bsize > pieceBytes) {
      const taken = statSync(this.#ballast, { throwIfNoEntry: false })?.size ?? 0
      const more = bavail * bsize - pieceBytes
      run('fallocate', '--offset', String(taken), '--length', String(more), this.#ballast)
    }
    for (let bytes = pieceBytes; bytes >= 1; bytes = Math.floor(bytes / 2)) {
      try {
        for (;;) this.reserve(bytes)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
      }
    }
  }

  free(): void {
    rmSync(this.#ballast, { force: true })
  }

  get #ballast(): string {
    return join(this.at, 'ballast')
  }

  /** What the kernel does where it finds a fault in the filesystem: it is read-only from here on, under those who write. */
  fail(): void {
    const device = run('findmnt', '--noheadings', '--output', 'SOURCE', this.at).trim()
    writeFileSync(`/sys/fs/ext4/${basename(device)}/trigger_fs_error`, 'for a test')
  }

  remount(how: 'ro' | 'rw'): void {
    run('mount', '-o', `remount,${how}`, this.at)
  }

  /** What it holds is mounted again, at the same place; nothing may use it. */
  repair(): void {
    run('umount', this.at)
    try {
      run('fsck.ext4', '-p', '-f', this.#image)
    } catch (error) {
      // 1: it found something, and has repaired it.
      if ((error as { status?: number }).status !== 1) throw error
    }
    run('mount', '-o', 'loop', this.#image, this.at)
  }

  /** What it holds is in its file afterwards, where that is kept. */
  unmount({ isKept = false } = {}): void {
    run('umount', '--lazy', this.at)
    if (!isKept) rmSync(this.#image, { force: true })
  }
}

function run(command: string, ...args: string[]): string {
  return execFileSync(command, args, { encoding: 'utf8', stdio: 'pipe' })
}
