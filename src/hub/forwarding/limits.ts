/** What edges and the callers behind them may ask of the API server through a hub: one place that limits all of them. */

export const forwardingLimits = {
  /** Requests of one edge at once, watches and logs included: fewer than a link has streams, so that it is told in HTTP. */
  edgeRequestsMax: 200,
  /** Of one caller on one link: what one has under way another does not wait for. */
  callerRequestsMax: 64,
  /** Of one edge: a kubelet asks at most 50 times a second, its pods about as often. */
  edgePerSecond: 100,
  edgeBurst: 500,
  /** Certificates that one link shows and did not before: each is read and verified once. After a cut all that a link carries come again. */
  certificatesPerSecond: 10,
  certificatesBurst: 128,
  /** Of one caller at all edges together: as client-go limits itself (50, or fewer). */
  callerPerSecond: 50,
  callerBurst: 200,
  /** Callers that are remembered: one that is forgotten begins with a full burst. Each takes some hundred bytes. */
  callersMax: 20_000,
}

export type ForwardingLimits = Readonly<typeof forwardingLimits>
