/** What edges may have a hub hold and judge of their callers' credentials, each with its reason. */

export const proofLimits = {
  /** Interests of one link times callers who proved each: a node has about forty interests, of which its pods have a dozen. */
  proofsMax: 1_024,
  /** Of the names of those together. */
  nameBytesMax: 256 * 1024,
  /** Whose proofs those are: as many as a link carries tokens for. With tokens of 16 KiB at most that is 1 MiB. */
  callersMax: 64,
  /** Of one interest: more would only be judged in turn once the first of them ends. The one proved longest ago goes. */
  perInterestMax: 4,
  /** An edge proves again within half of it, at less than 20 KB a day for each interest, and what it has forgotten ends by itself. */
  lifeMs: 30 * 60_000,
  /** Judgements of one link at once: an edge that comes back proves a dozen. */
  waitingMax: 64,
  /** Of all links together: each takes about a kilobyte, and one review at the API server answers many. */
  waitingTotalMax: 10_000,
  /** Of one link: what a node's callers ask for after a cut, then one now and then. A token that the hub does not know costs a review. */
  perSecond: 5,
  burst: 256,
  /** After a refusal: a right may be given any minute. */
  refusedRetryMs: 60_000,
  /** After one that could not be judged. */
  unknownRetryMs: 5_000,
}

export type ProofLimits = Readonly<typeof proofLimits>
