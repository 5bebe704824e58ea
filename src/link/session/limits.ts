/** What a session may hold, send or wait for at most. Each has its reason beside it; nothing of a session grows beyond these. */

export const sessionLimits = {
  /** A hub's watch gives a sign of life at least every 5 s: one that was silent for longer is told of by itself. */
  staleMs: 6_000,
  /** Interests of one link: a node has about forty. Each costs the hub some hundred bytes and its name. */
  interestsMax: 4_096,
  /** Of their names together: forty names of two hundred bytes are 8 KB. */
  nameBytesTotalMax: 1024 * 1024,
  /** What the hub may have sent as events before the edge has committed it: less could not hold the largest frame. */
  windowMin: 64 * 1024,
  /** More would only wait in sockets where it could be conflated instead: 2 s at 1 Mbit/s. */
  windowWanted: 256 * 1024,
  /** Frames of events on their way: the hub remembers the size of each. */
  framesOnTheWayMax: 1_024,
  /**
   * Of changes in one frame of events; one that is larger travels as a block. 130 ms at 1 Mbit/s, and 2 s at 64 kbit/s, so that
   * the acknowledgement of a frame comes before its sender takes the other side for dead.
   */
  batchBytes: 16 * 1024,
  batchEventsMax: 1_024,
  /** What an event counts for in a window, beside its change. */
  eventOverheadBytes: 8,

  /** What waits for one edge at the hub, its bases included, before bases are forgotten and then a comparison has to find it. */
  waitingBytesMax: 256 * 1024,
  /** Of an entry beside its key and its base: the entry, its place in the map, its share of the interest. */
  waitingOverheadBytes: 160,
  /** Keys that one answer of a comparison may find before everything is sent instead. */
  differingMax: 1_000,

  /** Of a piece of a block: an event that waits behind one waits 65 ms at 1 Mbit/s. */
  pieceBytes: 8 * 1024,
  /** Of a piece that is cut to what there is room for: in whole ones alone a long line would never be seen to hold one more. */
  cutBytesMin: 1_024,
  /**
   * Of objects in one block before it is packed: 5,000 pods take 1.20 MB in blocks of 128 KiB, 1.02 in these, and no less in
   * larger ones. Packed it is about 30 KB, of which the hub holds one for each link that is sent any.
   */
  blockObjectBytes: 512 * 1024,
  /** What bulk may have on its way at least, and at most: the first is 262 ms at 1 Mbit/s. */
  bulkBytesMin: 32 * 1024,
  bulkBytesMax: 2 * 1024 * 1024,
  /** What bulk may queue beyond the line itself. */
  bulkQueueMs: 100,
  /** How long a bandwidth that was seen is believed in: a radio link is another one a moment later. */
  bandwidthMs: 10_000,
  /** How long the smallest round trip is: to measure it the line is emptied, for two round trips at most. */
  roundTripMs: 60_000,
  /** Of streams, what an edge may have received without saying so: a kubelet's renewed leases are acknowledged once in a while. */
  unsaidBytes: 2 * 1024,
  /** Of streams, what an edge may not leave unsaid without giving a sign of life: an answer of some size, and not a few small ones. */
  lateBytes: 8 * 1024,

  /** Comparisons that an edge makes at a time: each has one request of up to 48 KiB on its way. */
  walksMax: 8,
  /** Requests that wait at the hub until bulk has room: twice what an edge of ours asks. */
  requestsWaitingMax: 16,
  /**
   * What an edge may make the hub do: an interest, or 64 bytes of a comparison, is one. The burst is 40 interests of 1,000
   * objects that all differ, several times over; afterwards a hostile one costs a hundredth of a core.
   */
  labourMax: 50_000,
  labourPerMs: 1,
  /**
   * Of objects that are packed into blocks for one edge: as much as an edge mirrors at most unless it is told otherwise, then as much as 2 Mbit/s carry of
   * pods, which are packed to a sixteenth. What is more waits: an edge that subscribes anew without end costs the hub a fiftieth of a core.
   */
  packedBytesMax: 192 * 1024 * 1024,
  packedBytesPerMs: 4 * 1024,

  /** What was unpacked at the edge and is not committed yet: beyond it frames wait as they came. */
  uncommittedBytesMax: 8 * 1024 * 1024,
  /** Frames that wait at the edge: what the window and bulk may have on their way, and the small ones between. */
  inboxBytesMax: (256 + 2_048 + 1_024) * 1024,

  /** L3: silence after which the other side is asked for a sign of life, and after which it is dead, while something waits for it. */
  askAfterMs: 2_000,
  deadAfterMs: 5_000,
  /** The slowest line that a link lives on, 64 kbit/s: what is answered behind more than that carries meanwhile is not late. */
  slowestBytesPerMs: 8,
  /** Between the two looks that find it dead: time to read what waited on the sockets of some thousand links. */
  lastLookMs: 500,
  /** A look that comes later than this says that this side had no processor, and nothing of the other. */
  lateMs: 250,
  /** However late this side is: as long as a socket may take nothing (`link/socket/limits`). */
  deafMsMax: 30_000,
  /** Of an idle link; most middleboxes forget a connection after a minute or more. */
  keepaliveMsMax: 30_000,
  keepaliveMsMin: 5_000,
  /** An idle link that lived so long may be asked less often again. */
  keepaliveProvenMs: 3_600_000,
  /** The hub lets the edge ask first. */
  hubPatienceMs: 5_000,

  /** An edge that is further than the hub has waited so long for it: a watch is behind by less. Then the API server is asked. */
  aheadMs: 5_000,
  /** And again, where it did not answer, or is further itself. */
  aheadAgainMs: 60_000,

  /** How long an edge stays away at least from a hub that refused it for its own reasons. */
  busyRetryMs: 5_000,
}

export type SessionLimits = Readonly<typeof sessionLimits>
