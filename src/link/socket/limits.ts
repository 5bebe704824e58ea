/** What one link may hold and how long it waits, each with its reason; and how WebSockets are made so that these are all there are. */
import { frameBytesMax } from '../frames/frames.ts'

export const standardLinkLimits = {
  /**
   * From here on `send` answers false: two frames, a second at 1 Mbit/s, above what the system's own buffers hold. Node tells of
   * what it wrote together, so this is also the step in which an edge on a slow line is seen to take something: 16 s at 64 kbit/s.
   */
  fullBytes: 2 * frameBytesMax,
  /** A driver that goes on all the same loses the link: memory is bounded by this and not by its good will. */
  heldBytesMax: 4 * 1024 * 1024,
  /** As for any reader (decision 5): one that takes nothing for this long is gone or stuck. */
  stalledMsMax: 30_000,
}

export type LinkLimits = Readonly<typeof standardLinkLimits>

/** How long the other side may take to answer a close. */
const closeMsMax = 2_000
/** A frame is one piece; a proxy that looks into TLS, and might cut it up, is not trusted. */
const piecesMax = 64
/** The parts in which TLS hands on what is one message. */
const chunksMax = 4_096

/** Of both ends. Compression would cost 400 µs a message and unpack bombs; deltas are compressed already. */
export const webSocketOptions = {
  perMessageDeflate: false,
  maxPayload: frameBytesMax,
  maxFragments: piecesMax,
  maxBufferedChunks: chunksMax,
  closeTimeout: closeMsMax,
  /** The link has a ping of its own. One of WebSocket closes it: an answer to each would pile up for a peer that never reads. */
  autoPong: false,
}

/** Where a hub speaks the link. */
export const linkPath = '/link'
