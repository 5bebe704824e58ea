/**
 * Tells a frame that a crash has torn from one that a disk has changed, where nothing behind it vouches for either.
 *
 * A kill leaves it short: the file ends before it does. A power cut leaves it short, or blank where its blocks were never
 * written: from its beginning, to its end, or a whole sector. One that has its full length, and everywhere something in
 * it, was written as a whole and has changed since.
 */
import type { Link } from './chain.ts'
import { frameLengths, prefixBytes } from './frame.ts'
import { type Position, segmentPath } from './segment.ts'
import { FileWindow, windowBytes } from './window.ts'

/** The least that a disk writes at once. */
const sectorBytes = 512

/** Whether the frame that begins here was whole once; it has to end before `end`. */
export function isHarmed(file: FileWindow, from: number, end: number): boolean {
  if (from + prefixBytes > end) return false
  const lengths = frameLengths(file.at(from, prefixBytes))
  if (lengths === undefined) return false
  const length = lengths.head + lengths.bodies
  return from + length <= end && !isBlank(file, from, length)
}

function isBlank(file: FileWindow, from: number, length: number): boolean {
  if (file.at(from, 1)[0] === 0 || file.at(from + length - 1, 1)[0] === 0) return true
  let zeros = 0
  for (let done = 0; done < length; ) {
    const part = file.at(from + done, Math.min(length - done, windowBytes))
    if (part.length === 0) return true
    for (const byte of part) {
      zeros = byte === 0 ? zeros + 1 : 0
      if (zeros >= sectorBytes) return true
    }
    done += part.length
  }
  return false
}

/** The same of whatever follows this position of the log; false where nothing does. */
export function isHarmedAt(folder: string, links: readonly Link[], at: Position): boolean {
  for (const link of links) {
    const from = link.segment === at.segment ? at.offset : link.start
    if (link.segment < at.segment || from >= link.end) continue
    // What is missing as a whole may never have reached the disk.
    if (link.missingBytes > 0) return false
    const file = new FileWindow(segmentPath(folder, link.segment))
    try {
      return isHarmed(file, from, Math.min(link.end, file.size))
    } finally {
      file.close()
    }
  }
  return false
}
