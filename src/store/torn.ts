/**
 * Tells a frame that a crash has torn from one that a disk has changed, where nothing behind it vouches for either.
 *
 * A kill leaves it short: the file ends before it does. A power cut leaves it short, or blank where its blocks were never
 * written, and those are whole sectors of the file. One that has its full length, and something in each of its sectors, was
 * written as a whole and has changed since.
 */
import type { Link } from './chain.ts'
import { frameLengths, prefixBytes } from './frame.ts'
import { type Position, segmentPath } from './segment.ts'
import { FileWindow } from './window.ts'

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

/** Whether some sector has nothing in what it holds of this frame. */
function isBlank(file: FileWindow, from: number, length: number): boolean {
  for (let at = from; at < from + length; ) {
    const next = Math.min(at + sectorBytes - (at % sectorBytes), from + length)
    // One that the file does not reach has nothing either.
    if (file.at(at, next - at).every((byte) => byte === 0)) return true
    at = next
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
