/**
 * Reads the log in order. What it tells apart (decision 6 of docs/architecture.md):
 *
 * A frame that is not whole is the torn end of the log if nothing behind it was written in the knowledge that it is on the
 * disk, and if a crash can have left it as it is (`torn.ts`): the log ends before it. Otherwise it is damage.
 * Where its head is whole it is told all the same: its bodies fail their checksums when they are read. Where it is not,
 * what it held is unknown: a hole, and the log goes on with the next frame whose head is whole.
 */
import { crc32 } from 'node:zlib'
import { type Link, readChain } from './chain.ts'
import { claimedSequence, type Frame, frameLengths, type Piece, parseFrame, prefixBytes } from './frame.ts'
import { type Position, segmentPath } from './segment.ts'
import { isHarmed, isHarmedAt } from './torn.ts'
import { FileWindow, windowBytes } from './window.ts'

/** How far sequences may jump over a hole, at most: more is chance, which a checksum of 32 bits lets through now and then. */
const sequenceJumpMax = 2 ** 32
/** Bytes looked through at once for the next frame. */
const searchBytes = 64 * 1024

export type TailFrame = Frame & { readonly at: Position; readonly next: Position }

/** Frames that are lost, and the place they were lost from. */
export type Hole = {
  readonly at: Position
  /** Where the log goes on. */
  readonly next: Position
  readonly bytes: number
  /** The newest version that is known to have been among them, where that is known. */
  readonly version?: number
  /** It is unknown how many: nothing follows them. */
  readonly isEnd?: boolean
}

export type Step = { readonly frame: TailFrame } | { readonly hole: Hole }

/** The log from one position to another; without `to` up to the end of what counts. */
export function* readLog(parts: { folder: string; from: Position; to?: Position }): Iterable<Step> {
  const { folder, from, to } = parts
  const links = readChain(parts)
  let at = from
  let proven = to?.sequence
  for (const { frame, file, skipped } of readHeads(folder, links, at)) {
    const isHole = frame.at.sequence !== at.sequence
    // What was just written by this process is believed: only what a crash may have torn is looked at as a whole.
    const isWhole = to !== undefined || frame.pieces.every((piece) => isSound(file, frame.at.offset, piece))
    if (isHole || !isWhole) {
      proven ??= provenBy(folder, links, at)
      const isProven = at.sequence < proven
      if (!isProven && !(isHole ? isHarmedAt(folder, links, at) : isHarmed(file, at.offset, frame.next.offset))) return
    }
    if (isHole) yield { hole: { at, next: frame.at, bytes: skipped } }
    yield { frame }
    at = frame.next
  }
  if (to === undefined) yield* harmedEnd(folder, links, at)
  else if (at.sequence < to.sequence) {
    yield { hole: { at, next: to, bytes: Math.max(0, to.offset - (to.segment === at.segment ? at.offset : 0)) } }
  }
}

/** The last frames, of which no head is whole, if they were written as a whole once. */
function* harmedEnd(folder: string, links: readonly Link[], at: Position): Iterable<Step> {
  const last = links.at(-1)
  if (last === undefined || !isHarmedAt(folder, links, at)) return
  const next = { segment: last.segment, offset: last.end, sequence: at.sequence + 1 }
  const before = last.segment === at.segment ? at.offset : 0
  yield { hole: { at, next, bytes: last.end - before, isEnd: true } }
}

/** Everything before this sequence was on the disk: some whole frame behind was written in that knowledge. */
function provenBy(folder: string, links: readonly Link[], from: Position): number {
  let proven = 0
  for (const { frame, link } of readHeads(folder, links, from)) {
    if (frame.follows || isOlder(links, link)) proven = frame.at.sequence
  }
  return proven
}

/** An older ake did not say what it knew: any whole frame counts. A segment that says nothing is of the one before it. */
function isOlder(links: readonly Link[], { segment }: Link): boolean {
  return links.findLast((link) => link.segment <= segment && link.identity !== undefined)?.identity === 0
}

type Head = { readonly frame: TailFrame; readonly file: FileWindow; readonly link: Link; readonly skipped: number }

/** Every frame whose head is whole, in order, whatever lies in between. */
function* readHeads(folder: string, links: readonly Link[], from: Position): Iterable<Head> {
  let { sequence } = from
  let skipped = 0
  for (const link of links) {
    if (link.segment < from.segment) continue
    skipped += link.missingBytes
    const file = new FileWindow(segmentPath(folder, link.segment))
    try {
      const { end } = link
      let offset = link.segment === from.segment ? from.offset : link.start
      if (link.segment !== from.segment && link.sequence !== undefined) sequence = Math.max(sequence, link.sequence)
      while (offset < end) {
        const place = { segment: link.segment, offset, sequence }
        const frame = readHead(file, place, end) ?? findHead(file, place, end)
        if (frame === undefined || frame.at.sequence >= link.before) break
        skipped += frame.at.offset - offset
        yield { frame, file, link, skipped }
        skipped = 0
        sequence = frame.next.sequence
        offset = frame.next.offset
      }
      skipped += Math.max(0, link.end - offset)
    } finally {
      file.close()
    }
  }
}

function readHead(file: FileWindow, at: Position, end: number): TailFrame | undefined {
  if (at.offset + prefixBytes > end) return undefined
  const lengths = frameLengths(file.at(at.offset, prefixBytes))
  if (lengths === undefined || at.offset + lengths.head + lengths.bodies > end) return undefined
  const frame = parseFrame(file.at(at.offset, lengths.head), at.sequence)
  if (frame === undefined) return undefined
  const next = { ...at, offset: at.offset + lengths.head + lengths.bodies, sequence: at.sequence + 1 }
  return { ...frame, at, next }
}

/** The next whole head behind this place with this sequence or a later one. */
function findHead(
  file: FileWindow,
  { segment, offset: from, sequence: least }: Position,
  end: number,
): TailFrame | undefined {
  const last = Math.min(end, file.size) - prefixBytes
  for (let start = from; start <= last; start += searchBytes) {
    // A copy: whatever looks like a frame is read through the same window.
    const bytes = Buffer.from(file.at(start, Math.min(searchBytes + prefixBytes, end - start)))
    for (let at = 0; at < searchBytes && at + prefixBytes <= bytes.length; at++) {
      // The last byte of the sequence, without its sign: 1 to 2^53.
      const exponent = (bytes[at + prefixBytes - 1] as number) & 0x7f
      if (exponent < 0x3f || exponent > 0x43) continue
      const sequence = claimedSequence(bytes, at)
      if (!Number.isSafeInteger(sequence) || sequence < least || sequence > least + sequenceJumpMax) continue
      const frame = readHead(file, { segment, offset: start + at, sequence }, end)
      if (frame !== undefined) return frame
    }
  }
  return undefined
}

function isSound(file: FileWindow, frameAt: number, { start, length, checksum }: Piece): boolean {
  let found = 0
  for (let done = 0; done < length; ) {
    const part = Math.min(length - done, windowBytes)
    found = crc32(file.at(frameAt + start + done, part), found)
    done += part
  }
  return found === checksum
}
