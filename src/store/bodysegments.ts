/**
 * Segments that hold nothing but bodies, one after the other: moved here from segments that were mostly dead, or taken
 * over from a file of an older schema. The worker alone writes them; the index counts a body only after it was synced.
 */
import { closeSync, existsSync, fdatasyncSync, ftruncateSync, openSync, writeSync } from 'node:fs'
import { sealHead } from './seal.ts'
import { ownerOnly, sealOf, segmentPath, syncFolder } from './segment.ts'

export type BodyLocation = { readonly segment: number; readonly start: number }

export class BodySegments {
  readonly #folder: string
  readonly #segmentBytes: number
  readonly #seal: number
  #file: number | undefined
  #segment: number
  #end: number
  readonly #full: number[] = []
  #folderSynced = true

  /** `last` is the newest such segment and how much of it counts, if there is one; `seal` the key all bodies are sealed with. */
  constructor(parts: {
    folder: string
    segmentBytes: number
    last: { segment: number; size: number } | undefined
    seal?: number
  }) {
    this.#folder = parts.folder
    this.#segmentBytes = parts.segmentBytes
    this.#seal = parts.seal ?? 0
    this.#segment = parts.last?.segment ?? 0
    this.#end = parts.last?.size ?? 0
  }

  /** The one that is written to, which must not be removed; 0 before there is one. */
  get segment(): number {
    return this.#segment
  }

  get end(): number {
    return this.#end
  }

  /** Writes a body behind the others. Where a write fails nothing counts: the next one goes to the same place. */
  add(bytes: Uint8Array): BodyLocation {
    if (this.#file === undefined) this.#openAgain()
    if (this.#file === undefined || this.#end >= this.#segmentBytes) this.#file = this.#begin()
    const place = { segment: this.#segment, start: this.#end }
    writeAll(this.#file, bytes, this.#end)
    this.#end += bytes.length
    return place
  }

  #begin(): number {
    const next = this.#segment - 1
    const file = openSync(segmentPath(this.#folder, next), 'w', ownerOnly)
    const head = sealHead(this.#seal)
    try {
      writeAll(file, head, 0)
    } catch (error) {
      closeSync(file)
      throw error
    }
    if (this.#file !== undefined) this.#full.push(this.#file)
    this.#segment = next
    this.#end = head.length
    this.#folderSynced = false
    return file
  }

  /** What lies behind the end was written before a crash, for an index that forgot it. One with another seal is full. */
  #openAgain(): void {
    const path = segmentPath(this.#folder, this.#segment)
    if (this.#segment === 0 || !existsSync(path) || sealOf(path) !== this.#seal) return
    this.#file = openSync(path, 'r+')
    ftruncateSync(this.#file, this.#end)
  }

  /** Puts back the end after a transaction that was taken back. */
  cutTo(end: { segment: number; size: number }): void {
    this.close()
    this.#segment = end.segment
    this.#end = end.size
  }

  sync(): void {
    for (let file = this.#full[0]; file !== undefined; file = this.#full[0]) {
      fdatasyncSync(file)
      closeSync(file)
      this.#full.shift()
    }
    if (this.#file !== undefined) fdatasyncSync(this.#file)
    if (!this.#folderSynced) syncFolder(this.#folder)
    this.#folderSynced = true
  }

  close(): void {
    for (const file of this.#full.splice(0)) closeSync(file)
    if (this.#file !== undefined) closeSync(this.#file)
    this.#file = undefined
  }
}

function writeAll(file: number, bytes: Uint8Array, position: number): void {
  for (let done = 0; done < bytes.length; ) {
    done += writeSync(file, bytes, done, bytes.length - done, position + done)
  }
}
