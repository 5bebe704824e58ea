/** What the streams of one link may cost, each with its reason. A side tells the other what it takes (`begin`). */

/**
 * Of one data frame. At 1 Mbit/s it takes 0.13 s, and an event that comes meanwhile waits no longer than that behind it; the
 * frame's own bytes and the work for it are lost in so much.
 */
export const pieceBytesMax = 16 * 1024

/** Of one that is cut to what there is room for on the link: below it the frame's own bytes would count. */
export const cutBytesMin = 1_024

/** Of what a stream is for, as a word. */
export const purposeBytesMax = 63

/** Of a bearer token: signed ones have about 1 KB, those with many groups several. What is longer is not carried. */
export const credentialBytesMax = 16 * 1024

/** The most that a side can be allowed to send in one stream: a claim beyond it makes no sense at any speed. */
export const creditBytesMax = 64 * 1024 * 1024

/** Of a frame that brings bytes of a stream, with its other fields: what one that was packed may become. */
export const carriedBytesMax = pieceBytesMax + 128

/**
 * First frames of streams that a side keeps of each direction, so that the next like them travels as a difference: a kubelet repeats
 * some dozens of questions. Both sides count with this number.
 */
export const contextsMax = 64

/**
 * Of a first frame that is kept: nodes and pods fit with their heads. One that is larger is mostly the beginning of a list or a log,
 * which nothing resembles, and it would drive out all others.
 */
export const keptFrameBytesMax = 12 * 1024

export const standardTunnelLimits = {
  /**
   * Streams opened by one side that are alive at once. A node's kubelet and its pods pass on some dozens (logs, watches that
   * are not mirrored, writes); an operator's tools some more. Beyond, a caller hears 429.
   */
  streamsMax: 256,
  /**
   * What a stream may have on its way and unread from its beginning, whatever other streams do: 1.3 Mbit/s at 100 ms. A body
   * of this size waits for no credit.
   */
  windowBytes: 16 * 1024,
  /** What the window of a stream grows to while its reader keeps up: 20 Mbit/s at 100 ms. */
  windowBytesMax: 256 * 1024,
  /**
   * By how much all windows of a link together grow beyond their beginning. With this and the two above a link holds at most
   * 2 × 256 × 16 KiB + 1 MiB of bytes that are not read, 9 MiB, and of each stream a piece that Node has ready for its
   * reader; a stream whose reader reads holds nothing for long.
   */
  grownBytesMax: 1024 * 1024,
  /**
   * Bearer tokens that the other side is remembered by number: a node has some dozens of callers. One more replaces the one
   * that was not used for longest, which costs its bytes again and nothing else. At most 1 MiB.
   */
  credentialsMax: 64,
  /**
   * What is kept of the first frames that came, and as much of those that were sent: 64 KiB at each end. What a node repeats (its lease,
   * its status, those of some pods, events) fits; a hub has this for each of its links, so it is not more.
   */
  contextBytes: 32 * 1024,
}

export type TunnelLimits = Readonly<typeof standardTunnelLimits>
