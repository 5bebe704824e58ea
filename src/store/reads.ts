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

  /** The log first: an index that knew more than the log after a power cut would point at nothing. */
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
