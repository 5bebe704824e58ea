/** What a joiner may ask of a hub, each limit with its reason. */

export const joiningLimits = {
  /** Ten edges behind one address join at once, with some eight requests each; beyond that two of them a second. */
  addressPerSecond: 10,
  addressBurst: 100,
  /** All joiners together: the API server is asked once or twice for each. */
  allPerSecond: 50,
  allBurst: 200,
  /** Those whose token was not seen to count yet: an attacker who guesses needs 10^23 of them. */
  strangersPerSecond: 10,
  strangersBurst: 50,
  /** Of one address with tokens that do not count: a person who mistypes. */
  refusedPerSecond: 0.2,
  refusedBurst: 10,
  /** Addresses that are told apart: some 100 bytes each. */
  addressesMax: 10_000,
  /** Tokens that are known to count, by digests, and for how long after they were last accepted. */
  tokensMax: 1_000,
  tokenMs: 10 * 60_000,
  /** Requests of joiners under way: the API server takes a moment for each. */
  underWayMax: 64,
  /** Until a hub that has just started has read what it judges by: it does so within a moment. */
  laterMs: 3_000,
  /** The API server's part of an answer, within the 20 s that a connection has. */
  answerMsMax: 8_000,
  answerBytesMax: 256 * 1024,
}

export type JoiningLimits = Readonly<typeof joiningLimits>
