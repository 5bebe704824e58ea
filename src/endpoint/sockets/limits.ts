/** What one client, and all of them, may ask of the server's sockets. Over a limit there is a clear answer, for that one only. */

export const standardLimits = {
  /** A TLS connection costs some 80 KB: together about 300 MB at worst. Beyond, `connections` says which goes. */
  connectionsMax: 4_096,
  /**
   * Requests that wait for the beginning of their answers, divided into shares: most are answered at once, and one that waits
   * for the cloud, a first sync or a body holds some 20 KB, and with a body what is unread of it. With a long selector one
   * counts for more.
   */
  requestsMax: 4_096,
  requestBytes: 20 * 1024,
  /** Of each body, how much may lie here before it is read: HTTP/2's window. */
  unreadBytesMax: 64 * 1024,
  /**
   * What Kubernetes recommends for API servers. Node counts streams that were cancelled until it has let go of them, so a
   * client that cancels a few hundred watches and opens as many at once must stay below it: with 250 its connection was
   * cut.
   */
  streamsPerConnectionMax: 1_000,
  /**
   * Beyond so many of one connection in a round of the loop a request is begun in the next round: one that is cancelled in
   * the bytes right behind it is never begun. A client that starts asks for some dozens at once.
   */
  promptStreamsMax: 100,
  /** Of a stranger: what a client that starts opens at once on a connection before its first answer. */
  strangerStreamsMax: 100,
  /** Streams refused on one connection, over the limit above, before the connection is cut: of a known caller, of others. */
  refusedStreamsMax: 100_000,
  anonymousRefusedStreamsMax: 100,
  /** kube-apiserver's own limit for a request body, and its message. */
  bodyBytesMax: 3 * 1024 * 1024,
  /** Bodies in memory at the same time, divided into shares: being received, or waiting for a lock or the disk. */
  bodiesBytesMax: 64 * 1024 * 1024,
  /** Long selectors and continue tokens fit; a header bomb does not. */
  headerBytesMax: 64 * 1024,
  /**
   * A longer URL is read in its turn, one in each round of the loop: a selector that fills the limit above takes some 20 ms,
   * and one connection brings many at once. Others are some hundred characters, and wait for nothing.
   */
  promptUrlCharactersMax: 8 * 1024,
  /** Whole lists being sent at the same time, in shares; each holds only references, but its TLS buffers are real. */
  listsMax: 200,
  /** Watches, in shares. Some ten KB each: what one edge node and its operators never reach, and a runaway client does. */
  watchesMax: 20_000,
  /** A selector that fills a URL takes 3 MB: its watch counts for as many as would fit there. */
  watchBytes: 10 * 1024,
  /** Requests passed on to the API server, in shares; below what the connections to it take (`upstream/limits`). */
  passedMax: 2_000,
  /** In shares: connections that were upgraded (exec, port-forward), or are about to be: each holds two sockets and their buffers. */
  upgradesMax: 256,
  upgradeBytes: 200 * 1024,
  /** A body has to arrive within this time; of a known caller's that is passed on, each next piece. Else 408. */
  bodyMsMax: 60_000,
  /** The first bytes and the TLS handshake. */
  handshakeMsMax: 10_000,
  /** A reader that takes nothing for this long is gone or stuck: its stream is cut, and no other reader notices. */
  stalledMsMax: 30_000,
  /** What may be left to take at the end of an answer without a clock on it: it fits into the system's own buffers. */
  unwatchedBytesMax: 16 * 1024,
  /** How long the rest of a refused HTTP/1.1 upload is read and thrown away, so that its sender gets to see the answer. */
  lingerMsMax: 2_000,
  /** How often a quiet HTTP/2 peer is asked for a sign of life, and how long it may take: finds half-open connections. */
  pingEveryMs: 30_000,
  pingMsMax: 15_000,
  /** PINGs and SETTINGS of one HTTP/2 connection between two looks at it: far more than any client has a reason for. */
  noiseMax: 3_000,
  /** At shutdown: how long streams, uploads and reads that are under way may take to end. */
  closingMsMax: 5_000,
  /** And writes that came whole, since they may be done already: within the 30 s that a pod or a service gets to end. */
  answeringMsMax: 20_000,
  /** After that, how long what was written last may take to get out. */
  lastBytesMsMax: 1_000,
  /** Idle HTTP/1.1 connections, and HTTP/2 ones of strangers; longer than Go's 90 s, so that the client closes first. */
  idleMsMax: 120_000,
  /**
   * Stream resets of a known caller: a controller that cancels all it may have open at once, and does so again, is not an
   * attack. With twenty times as many, three connections held up every other client for ten seconds.
   */
  resets: { burst: 5_000, perSecond: 1_000 },
  /** Of any other client: Node's own guard against rapid reset. */
  anonymousResets: { burst: 1_000, perSecond: 33 },
  /**
   * Out of reach on purpose, in MB. Node's count of a session's memory never forgets what a cancelled stream still had to
   * send, so with a real limit a client that cancels a thousand busy watches is refused for good (ENHANCE_YOUR_CALM). What
   * a session can really hold is bounded by its streams: their headers, and one batch to send each.
   */
  sessionMemoryMb: 4_000_000,
}

export type SocketLimits = Readonly<typeof standardLimits>
