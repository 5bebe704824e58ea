/** What edges may have a hub tell them of their callers' rules, each with its reason. */

export const rulesLimits = {
  /** Callers of one link: as many as it carries credentials for. Each has a stream, which costs no bytes while nothing changes, and some 4 KB of memory. */
  perLinkMax: 64,
  /** Callers of all links together, by name and groups: some kilobytes each, and the pods of a DaemonSet on all nodes are one. */
  subjectsMax: 20_000,
  /** Subjects of reviews that are remembered of one link: a kubelet is asked by an API server, some monitoring and people. */
  reviewedMax: 64,
  /** Streams begun by one link: what its callers need after a cut, then one now and then. */
  perSecond: 5,
  burst: 128,
  /** A change of roles is mostly followed by others: within this time they are told as one. */
  gatherMs: 200,
  /** How often it is looked whether a credential still stands for its caller, as for what it proves. */
  recheckEveryMs: 60_000,
  /** How often it is looked whether the hub still hears of changes. */
  lookEveryMs: 2_000,
}

export type RulesLimits = Readonly<typeof rulesLimits>
