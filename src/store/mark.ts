/**
 * How far the log has reached at least, in a small file beside the log and its index: written when a segment is full, at most
 * once a second, and when the store is closed. So the end of the log cannot be lost unseen, not even together with the index; nor can both
 * be lost as a whole and the folder pass for a new one.
 */
import { readFileSync, renameSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { crc32 } from 'node:zlib'
import { writeSynced } from './base.ts'
import { logStart, type Position, readSegments, segmentPath, syncFolder } from './segment.ts'
import type { Hole } from './tail.ts'

/**
 * What the index has not read is lost unseen with the end of the log: at most the 64 MiB that it may fall behind, what is
 * written in one group meanwhile, and as much again to be sure.
 */
const lostBytesMax = 128 * 1024 * 1024
/** Under writes that fill a segment every few milliseconds each mark would hold up the index for as long as a sync takes. */
const markEveryMs = 1_000

/** `version`: the newest that was given out by then. */
type Mark = Position & { readonly identity: number; readonly version: number }

/** Beside this file of the index. */
export function markPath(indexPath: string): string {
  return join(dirname(indexPath), 'ake.end')
}

/** Undefined where there is none, as in folders of an older ake, or it is damaged. */
export function readMark(path: string): Mark | undefined {
  try {
    const [checksum, spelled = ''] = readFileSync(path, 'utf8').trimEnd().split(' ')
    return crc32(spelled) === Number(checksum) ? (JSON.parse(spelled) as Mark) : undefined
  } catch {
    return undefined
  }
}

/** Whether something was ever written: what a first start has made before it was cut says nothing. */
export function isUsed(mark: Mark | undefined): boolean {
  return (mark?.sequence ?? 0) > logStart.sequence
}

type Reached = { readonly applied: Position; readonly identity: number; newestVersion(): number }

export class Ending {
  readonly #path: string
  readonly #folder: string
  #mark: Mark | undefined
  #markedAt = Number.NEGATIVE_INFINITY

  constructor(parts: { path: string; folder: string }) {
    this.#path = markPath(parts.path)
    this.#folder = parts.folder
    this.#mark = readMark(this.#path)
  }

  /** Everything up to there is on the disk. It is written down with each segment, not too often, and at the end. */
  reach(reached: Reached, isLast: boolean): void {
    const { applied, identity } = reached
    const { segment = -1, sequence = -1 } = this.#mark ?? {}
    if (isLast ? applied.sequence <= sequence : applied.segment === segment) return
    // The index is told of what was written last some seconds later, if not before: that one is not left out.
    if (!isLast && isUsed(this.#mark) && performance.now() - this.#markedAt < markEveryMs) return
    const mark = { ...applied, identity, version: reached.newestVersion() }
    if (!writeMark(this.#path, mark, isLast || this.#mark === undefined)) return
    this.#mark = mark
    this.#markedAt = performance.now()
  }

  /**
   * What the log lacks: it has to reach as far as its index or base has read, which is `end`, and as far as the mark
   * says. The log goes on in another segment than any there was; the one before that, which is never written, stands for
   * the loss.
   */
  lost(end: Position, identity: number): Hole | undefined {
    const marked = this.#mark?.identity === identity ? this.#mark : undefined
    const isShort = sizeOf(segmentPath(this.#folder, end.segment)) < end.offset
    if (!isShort && (marked?.sequence ?? 0) <= end.sequence) return undefined
    const segment = 1 + Math.max(end.segment, marked?.segment ?? 0, ...readSegments(this.#folder))
    const sequence = 1 + Math.max(end.sequence, marked?.sequence ?? 0)
    const next = { segment, offset: 0, sequence }
    return { at: end, next, bytes: lostBytesMax, version: marked?.version ?? 0, isEnd: true }
  }
}

/**
 * False where the disk takes nothing: the one before it still holds, it only says less. For the same reason only the
 * first and the last are `named` on the disk at once: while writes go on that would hold up the index with each segment.
 */
function writeMark(path: string, { segment, offset, sequence, identity, version }: Mark, named: boolean): boolean {
  const spelled = JSON.stringify({ segment, offset, sequence, identity, version })
  try {
    writeSynced(`${path}.new`, Buffer.from(`${crc32(spelled)} ${spelled}\n`))
    renameSync(`${path}.new`, path)
    if (named) syncFolder(dirname(path))
    return true
  } catch {
    return false
  }
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}
