/** What the index has read of the log and not synced yet. */
import { closeSync, fdatasyncSync, openSync } from 'node:fs'
import { segmentPath, syncFolder } from './segment.ts'

export class Reads {
  readonly #folder: string
  readonly #segments = new Set<number>()
  #newest = 0

  constructor(folder: string) {
    this.#folder = folder
  }

  add(segment: number): void {
    this.#segments.add(segment)
  }

  /**
   * The log first: an index that knew more than the log after a power cut would point at nothing.
   *
   * Where a sync fails the next commit of the index tries it again, with a file opened anew, and of that the kernel may say
   * yes though it has dropped what it could not write: then the index is ahead of the log. That is let be, since it costs
   * nothing that was acknowledged, and nothing unnamed:
   * - What this process acknowledges as synced the log has synced itself, with the file that it wrote and keeps open: that one
   *   hears of the same failure, and all that is in doubt goes into another segment (`commitlog.ts`). An index that has read it
   *   at the old place finds the log rewritten and is made again (`chain.ts`), also at a start after a power cut.
   * - What an earlier process acknowledged as synced was on the disk by then. What else it left in the kernel's memory may be
   *   gone after a power cut, and is then named: a log that is short of its index is a hole (`mark.ts`), and where it has its
   *   length the bodies fail their checksums. An index that is made again finds a hole there too: the frames behind it say that
   *   what is before them was synced. The log says so once its own sync has succeeded, which of these segments it cannot know;
   *   what it says too much only makes recovery name as lost what it could have cut as torn.
   */
  sync(): void {
    for (const segment of this.#segments) {
      const file = openSync(segmentPath(this.#folder, segment), 'r')
      try {
        fdatasyncSync(file)
      } finally {
        closeSync(file)
      }
      if (segment > this.#newest) syncFolder(this.#folder)
      this.#newest = Math.max(this.#newest, segment)
    }
    this.#segments.clear()
  }
}
