/** What edges, and strangers, may ask of a hub's sockets, each with its reason. Tests shorten the times. */

export const standardHubLimits = {
  /** A bare link takes some 60 KB: 1.2 GB. One more is told to come back, at another replica perhaps. */
  linksMax: 20_000,
  /** Full handshakes take the hub about 3 ms each (`bench/hublink`): a third of a core, while all edges come back. */
  fullPerSecond: 100,
  /** Those that show a ticket take half of that. */
  resumedPerSecond: 200,
  /**
   * Of one source, resumptions that have begun and not turned out to be any, and worthless tickets of late: each costs a full handshake. 64 edges behind
   * one NAT resume at once, with 200 ms of round trip 320 in a second; those beyond wait with the full ones.
   */
  ticketsOnTrialMax: 64,
  /** How fast worthless tickets are forgotten: a source costs a tenth of the full handshakes by them. */
  worthlessPerSecond: 10,
  /** Sources of which that is remembered: a hundred bytes each. */
  sourcesMax: 8_192,
  /** How long one may wait for its turn, as a share of the 10 s within which an edge gives up a dial. */
  lineMsMax: 4_000,
  /** Connections that have not become a link yet, those in line included: some 10 KB each. */
  arrivalsMax: 4_096,
  /** From the first byte of TCP to a WebSocket, the time in line included. */
  arrivalMsMax: 20_000,
  /** Then for the first frame, a hello. */
  firstFrameMsMax: 10_000,
  /** Of a request for a WebSocket. */
  headerBytesMax: 8 * 1024,
  /** For a refusal to be read before the connection is cut. */
  lastWordsMsMax: 1_000,
  /** How long an edge that is one too many is asked to wait, at least; as much again by chance. */
  crowdedMs: 15_000,
  /**
   * How long an edge that comes while the hub ends is asked to wait, at least; as much again by chance. Hubs may be behind one address, where the next
   * try may reach another or the one that begins in this one's place; an edge that is refused again waits longer each time of its own.
   */
  endingMs: 1_000,
  /** How long an edge that comes before the hub can judge edges is asked to wait: the hub reads what it goes by within a moment. */
  unjudgedMs: 2_000,
}

export type HubSocketLimits = Readonly<typeof standardHubLimits>
