/** How a hub treats its links, each with its reason. */

export const peerLimits = {
  /**
   * How long a link may go on beside one with a newer certificate of its edge, here or at another replica: the edge leaves it by itself within 3 s.
   * Addresses say nothing: behind a balancer each connection of one edge may come from another.
   */
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
  /** Nodes that change in one turn and are looked for by name; of more all links are gone through, a moment at a time. */
  namedMax: 64,
  /** For an edge whose name another link has, or whose certificate is over: an operator has to act. */
  replacedRetryMs: 60_000,
  /** For one whose hello comes while the hub ends: another hub may be behind the same address, or begin in its place. */
  endingRetryMs: 1_000,
  /** For one whose Node was deleted: its kubelet may make another one through it. */
  endedRetryMs: 2_000,
  /**
   * Interests with selectors that one link has, names apart: a node's agents have about ten. Each is tried with every change of its resource,
   * so a hostile edge costs the hub as much as this many others that are told of everything.
   */
  selectionsMax: 64,
  /** What those mean together, as far as no other edge has the same: some 40 bytes each, 40 MB. Agents of one node in a cluster of 100,000 services mean a third. */
  selectedObjectsMax: 1_000_000,
  /**
   * What an edge may have the hub look at for selectors that are new to it: an object that is found is one, since it is hashed (10 µs).
   * All selectors of a node in a cluster of 10,000 services at once, as after a start of the hub; then a hundredth of a core.
   */
  lookingMax: 50_000,
  lookingPerMs: 1,
  /** Objects that are only looked at cost as much as one that is found. */
  lookedPerUnit: 64,
  /** Edges of which it is remembered, as many as a hub has links: a hundred bytes each. */
  lookingEdgesMax: 20_000,
  /** For an edge that has as much as it may have: something has to go there first. */
  crowdedRetryMs: 60_000,
}
