/**
 * Which segments a log consists of, by what their headers say of each other: each names the one it continues and where
 * that ends. What no later one continues does not count, whatever it holds.
 */
import { claimedSequence, frameLengths, parseFrame, prefixBytes } from './frame.ts'
import { headerBytes, type Position, parseHeader, readSegments, segmentPath } from './segment.ts'
import { FileWindow } from './window.ts'

/** A segment that is gone may have held as much. */
const missingBytesMax = 64 * 1024 * 1024

export type Link = {
  readonly segment: number
  /** Frames begin here, and end there at the latest. */
  readonly start: number
  readonly end: number
  /** The sequence of its first frame; undefined where its header is damaged. */
  readonly sequence: number | undefined
  /** Frames from this sequence on are another segment's: these were refused. */
  readonly before: number
  /** Undefined where a power cut may have left the header short or blank; 0 where it is damaged, or an older ake's. */
  readonly identity: number | undefined
  /** Bytes that ought to be there between the link before and this one, and are not. */
  readonly missingBytes: number
}

/** The log goes on from an earlier place than this one: what was read behind that place was written again elsewhere. */
export class LogRewritten extends Error {}

/** The links from a position on. With `to` the log ends there. */
export function readChain(parts: { folder: string; from: Position; to?: Position }): Link[] {
  const { folder, from, to } = parts
  const present = readSegments(folder).filter((one) => one > 0 && one <= (to?.segment ?? Number.POSITIVE_INFINITY))
  const links: Link[] = []
  let end = to?.offset
  let before = Number.POSITIVE_INFINITY
  let segment = to?.segment ?? present.at(-1) ?? 0
  while (segment > 0 && segment >= from.segment) {
    const file = new FileWindow(segmentPath(folder, segment), headerBytes)
    try {
      const bytes = file.at(0, Math.min(headerBytes, file.size))
      const found = parseHeader(bytes)
      const header = found?.segment === segment ? found : undefined
      const previous = header?.previous ?? segment - 1
      const isFirst = segment === from.segment
      const next = Math.max(0, ...present.filter((one) => one <= previous))
      // Below the position everything may be gone with good reason.
      const absent = isFirst ? 0 : previous - Math.max(next, from.segment)
      // Where nothing of the one before counted, nothing is missing with its file.
      const isBlank = header !== undefined && header.previousEnd <= headerBytes
      const gone = absent === 1 && isBlank ? 0 : absent
      links.unshift({
        segment,
        start: isFirst ? from.offset : headerBytes,
        end: end ?? file.size,
        sequence: isFirst ? from.sequence : header?.sequence,
        before,
        identity: header?.identity ?? (bytes.length < headerBytes || bytes[0] === 0 ? undefined : 0),
        missingBytes: gone * missingBytesMax,
      })
      if (isFirst) {
        if (end !== undefined && end < from.offset) throw new LogRewritten(`segment ${segment} ends at ${end}`)
        return links
      }
      before = header?.sequence ?? firstSequence(file) ?? before
      end = header?.previousEnd
      if (previous < from.segment) throw new LogRewritten(`segment ${segment} continues ${previous}`)
      // The position's own segment is a link even where its file is gone.
      segment = gone > 0 || next < from.segment ? Math.max(next, from.segment) : next
      if (segment !== previous) end = undefined
    } finally {
      file.close()
    }
  }
  return links
}

/** Of the frame that follows a damaged header. */
function firstSequence(file: FileWindow): number | undefined {
  if (file.size < headerBytes + prefixBytes) return undefined
  const prefix = Buffer.from(file.at(headerBytes, prefixBytes))
  const lengths = frameLengths(prefix)
  const sequence = claimedSequence(prefix)
  if (lengths === undefined || headerBytes + lengths.head > file.size) return undefined
  return parseFrame(file.at(headerBytes, lengths.head), sequence) === undefined ? undefined : sequence
}
