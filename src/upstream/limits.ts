/** What the way to the API server may cost in time, connections and bytes, each with its reason. Tests shorten the times. */

export const standardLimits = {
  /** TCP and TLS together. A dial goes on when the request that wanted it gave up, so a slow link comes up in the end. */
  dialMsMax: 10_000,
  /** One of several addresses of a name: Node's own 250 ms gives up too early on a satellite link. */
  familyMsMax: 1_500,
  /** A connection that is quiet for this long is asked for a sign of life, again and again while it stays quiet. */
  pingEveryMs: 2_000,
  /** Without a sign of life for this long after a PING a connection is dead: what a client notices as a stall. */
  pingMsMax: 5_000,
  /** While a body is being sent the PING waits behind it in the system's buffers, on a slow link for long. */
  pingSendingMsMax: 20_000,
  /** A connection without streams is closed after this: what is not used needs no PINGs. */
  idleMsMax: 30_000,
  /** After a credential or an address changed, requests under way may end by themselves for this long. */
  drainMsMax: 5_000,
  /** Where the server sets no limit of its own; the least that RFC 9113 recommends. */
  streamsAssumedMax: 100,
  /** Streams that we use of what the server allows: some stay free for streams it still counts as open. */
  streamsShare: 0.9,
  /** Connections to one address in one name; with 100 streams each some 3,000 watches. */
  sessionsMax: 32,
  /** What may be on its way in one stream: 20 Mbit/s at 100 ms, and no more memory than this for a reader that sleeps. */
  streamWindowBytes: 256 * 1024,
  /** Node frees the connection's window at once, so this bounds speed and not memory. */
  sessionWindowBytes: 8 * 1024 * 1024,
  /** HTTP/1.1 has no PING: the API server ends any request that is not a stream after 60 s, so its head is lost by then. */
  plainHeadMsMax: 65_000,
  /** How long we believe that a server speaks HTTP/1.1 only, before we offer HTTP/2 again. */
  plainMsMax: 600_000,
  /** HTTP/1.1 connections to one address in one name, each with one request at a time: as many as callers may have passed on. */
  plainSocketsMax: 2_048,
  /** After a failed dial requests do not dial again for this long, doubling; probes always may. */
  redialFirstMs: 200,
  redialMsMax: 5_000,
  /** A request that was refused unprocessed is sent again this often. */
  retriesMax: 1,
  /** And where its connection went away under it: an API server ends a connection with each 401, whatever else is on it. */
  elsewhereRetriesMax: 5,
  /** What is kept of a body for that, until its answer begins: most objects are some KiB, and what is larger is sent once. */
  keptBodyBytesMax: 128 * 1024,
  /** Of all bodies to one address in one name: a device has little memory, and slow senders must not hold all of it. */
  keptBytesMax: 2 * 1024 * 1024,
  /** The kubeconfig and what it names are looked at this often; `fs.watch` misses renames and swapped links. */
  followEveryMs: 5_000,
  /** And at once where the API server refuses the credential; not as often as an API server may that refuses all, and no longer than this. */
  rereadEveryMs: 500,
  /** Headers of one answer: as many as fit into the 64 KiB that Node takes of them, at HTTP/2's 32 bytes besides each. */
  answerHeadersMax: 2_048,
  /** How long a probe may take. */
  probeMsMax: 2_000,
  /** How often a suspect upstream is probed, and one that flaps. */
  suspectEveryMs: 1_000,
  /** Traffic that fails brings a probe forward no more often than this. */
  hurryEveryMs: 500,
  /** An answer to a probe longer than this is no list of checks. */
  probeBytesMax: 64 * 1024,
}

export type UpstreamLimits = Readonly<typeof standardLimits>
