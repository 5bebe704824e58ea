/** What edges and the callers behind them may ask of the API server through a hub: one place that limits all of them. */

export const forwardingLimits = {
  /**
   * Requests of one link at once, watches and logs included: fewer than the 256 streams that a link has by its protocol, so that it is told in
   * HTTP and proofs and renewals find room. No option, since more could not be had.
   */
  edgeRequestsMax: 200,
  /** Of one credential on one link, a third of those: what one has under way another does not wait for. */
  callerRequestsMax: 64,
  /** Of one edge: a kubelet asks at most 50 times a second, its pods about as often. */
  edgePerSecond: 100,
  edgeBurst: 500,
  /**
   * Edges whose rates are remembered, as many as a hub has links. One that is forgotten begins with a full burst, which it would have anyhow
   * after some seconds of silence; each takes some hundred bytes.
   */
  edgesMax: 20_000,
  /** Certificates that a link shows and did not before: each is read and verified once. After a cut all that a link carries (64) come again. */
  certificatesPerSecond: 10,
  certificatesBurst: 128,
  /** Of one caller at one edge: as client-go limits itself (50, or fewer). */
  callerPerSecond: 50,
  callerBurst: 200,
  /**
   * What one caller may ask through all edges together, as a multiple of that. So one edge that was taken has a fortieth of it; and an
   * account with a pod at each of 20,000 edges may ask once in ten seconds at each of them.
   */
  callerEdges: 40,
  /** Callers that are remembered, at their edges and at all together: as with edges. */
  callersMax: 20_000,
}

export type ForwardingLimits = Readonly<typeof forwardingLimits>
