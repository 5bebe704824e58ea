/** How a hub treats its links, each with its reason. */

export const peerLimits = {
  /** How long a link may go on beside one with a newer certificate of its edge, from the same address. */
  handOverMsMax: 5_000,
  /**
   * Of streams' bytes to an edge that does not acknowledge them, what waits to be sent: an event that comes meanwhile waits for that (0.25 s at
   * 1 Mbit/s), and for what the system and the line hold already, of which nothing is known. To any other they are bulk (`link/session/pace`).
   */
  tunnelBytesMax: 32 * 1024,
  /** How soon it is looked whether those were taken, where the socket does not tell. */
  tunnelLookMs: 10,
  /** How far its sources are an edge is told this often, as kube-apiserver tells with bookmarks: 150 KB a day. */
  marksEveryMs: 60_000,
  /** Links are gone through in so many parts, so that marks and judgements of thousands do not come at once. */
  marksParts: 60,
  /** Many edges at a high rate are written to this often, each with what has come meanwhile. */
  batchMs: 20,
  /** Edges written to in one go before the next ones wait for others. */
  promptMax: 256,
  /** For an edge whose name another link has, or whose certificate is over: an operator has to act. */
  replacedRetryMs: 60_000,
  /** For one whose Node was deleted: its kubelet may make another one through it. */
  endedRetryMs: 2_000,
}
