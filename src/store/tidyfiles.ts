/**
 * The files of the log after a start: what was torn is cut off, what is not needed is removed, and only then; whatever
 * else is in the way is set aside.
 */
import { closeSync, existsSync, fdatasyncSync, ftruncateSync, openSync, statSync } from 'node:fs'
import { basename } from 'node:path'
import type { Aside } from './aside.ts'
import type { Base } from './base.ts'
import { identityOf } from './remake.ts'
import { headerBytes, type Position, readSegments, segmentPath } from './segment.ts'
import { removeFile } from './space.ts'

type Counts = ReadonlyMap<number, { readonly live: number }>

/** What was cut off, since it cannot have been acknowledged as synced. */
export type Cut = { readonly segment: number; readonly offset: number; readonly bytes: number }

/** What lies behind the end of the log; begun and never written to, a segment held nothing. */
export function findCuts(folder: string, end: Position): Cut[] {
  return readSegments(folder).flatMap((segment) => {
    const { size } = statSync(segmentPath(folder, segment))
    const offset = segment === end.segment ? end.offset : 0
    const isBehind = segment > end.segment ? size > headerBytes : segment === end.segment && size > offset
    return isBehind ? [{ segment, offset, bytes: size - offset }] : []
  })
}

export type Tidied = {
  /** Whether a file ends where the log does, and may be written on. */
  readonly isWhole: boolean
  /** The newest segment that is there, whether it counts or not. */
  readonly last: number
}

export function tidyFiles(parts: {
  readonly folder: string
  readonly end: Position
  readonly counts: Counts
  readonly aside: Aside
  readonly base: Base | undefined
  /** Whether the index was made from the log just now. */
  readonly isRemade: boolean
}): Tidied {
  const { folder, end, counts, aside, base, isRemade } = parts
  let last = end.segment
  for (const segment of readSegments(folder)) {
    const path = segmentPath(folder, segment)
    if (segment > end.segment) {
      // Begun, but never synced: nothing in the log goes on from it.
      const { size } = statSync(path)
      if (size <= headerBytes) removeFile(path)
      else if (!isTaken(aside, path, `torn-${basename(path)}`)) last = segment
    } else if (segment < end.segment && !counts.has(segment)) {
      // What a base does without is not needed, nor is what an index that is whole knows nothing of.
      if (segment > 0 ? segment < (base?.head.segment ?? 0) : base !== undefined || !isRemade) removeFile(path)
      else isTaken(aside, path)
    }
  }
  const path = segmentPath(folder, end.segment)
  if (end.segment === 0 || !existsSync(path)) return { isWhole: false, last }
  const { size } = statSync(path)
  if (size > end.offset) aside.keepEnd(path, end.offset)
  const isCut = size <= end.offset || cutBack(path, end.offset)
  // Whatever is written behind a place that a later segment claims to go on from would not count with the next start.
  return { isWhole: isCut && size >= end.offset && last === end.segment, last }
}

/** On a disk that takes nothing it stays where it is, and the next start tries again. */
function isTaken(aside: Aside, path: string, as = basename(path)): boolean {
  try {
    aside.take(path, as)
    return true
  } catch {
    return false
  }
}

/** False where that cannot be synced: a power cut would mix what is about to be written there with what was. */
function cutBack(path: string, length: number): boolean {
  const file = openSync(path, 'r+')
  try {
    ftruncateSync(file, length)
    fdatasyncSync(file)
    return true
  } catch {
    return false
  } finally {
    closeSync(file)
  }
}

/** Whether segments are gone of which no base says what they said: they were removed by an older ake. */
export function needsBase(parts: {
  readonly folder: string
  readonly end: Position
  readonly counts: Counts
  readonly base: Base | undefined
}): boolean {
  const { folder, end, counts, base } = parts
  if (base !== undefined) return false
  if ([...counts].some(([segment, { live }]) => segment < 0 && live > 0)) return true
  return end.segment > 1 && !existsSync(segmentPath(folder, 1))
}

/** The one the log has already, or any. */
export function newIdentity(folder: string): number {
  for (const segment of readSegments(folder).reverse()) {
    const found = segment > 0 ? identityOf(folder, segment) : 0
    if (found !== 0) return found
  }
  // Loaded only for a new log: see seal.ts.
  return process.getBuiltinModule('node:crypto').randomInt(1, 2 ** 32)
}
