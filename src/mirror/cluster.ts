/**
 * Which cluster answers, as a pure judgement: by the uid of its kube-system namespace; where that cannot be read, by the
 * authority of the API server's certificate and by its addresses. Another cluster is believed in only after it has answered
 * for a while, at every address at which the known one was, with no answer of the known one in between: what is built on
 * that belief is that everything mirrored so far goes.
 */

/** What the kubeconfig and the options say of where the API server is. */
export type Site = { readonly authorities: readonly string[]; readonly addresses: readonly string[] }

/** `uid` is empty where the edge has never been allowed to read it. */
export type Cluster = Site & { readonly uid: string }

export type Sight =
  | { readonly kind: 'uid'; readonly uid: string }
  /** The API server does not let the edge see the namespace: that says nothing by itself. */
  | { readonly kind: 'hidden' }
  /** The namespace does not exist, or not yet. */
  | { readonly kind: 'absent' }
  /** Not what an API server says. */
  | { readonly kind: 'unclear'; readonly why: string }

/** A cluster that is not the known one, as long as nothing else is seen. */
export type Candidate = Cluster & {
  readonly sinceMs: number
  readonly lastMs: number
  readonly sights: number
  /** The addresses at which it has answered. */
  readonly at: readonly string[]
}

/** Where a cluster says which it is. Without a resourceVersion the read is linearizable: no stale cache answers it. */
export const identityPath = '/api/v1/namespaces/kube-system'

/** However short the time: one answer, or two in one moment, may be anything. */
const sightsMin = 3
/** A pause this long begins it anew, or one as long as it has to last: probes of an address may be a minute apart. */
const pauseMsMin = 5 * 60_000
const uidMax = 128 // a uid has 36 characters; it is written down and shown
const uidForm = /^[\w.:-]+$/

export function sightOf(status: number, body: Buffer): Sight {
  if (status === 401 || status === 403) return { kind: 'hidden' }
  if (status !== 200 && status !== 404) return { kind: 'unclear', why: `HTTP ${status}` }
  let answer: { kind?: unknown; metadata?: { name?: unknown; uid?: unknown } } = {}
  try {
    answer = (JSON.parse(body.toString()) ?? {}) as typeof answer
  } catch {
    // A proxy speaks HTML.
  }
  // An API server says what it does not have with a Status of its own.
  if (status === 404 && answer.kind === 'Status') return { kind: 'absent' }
  const uid = answer.metadata?.uid
  const isOwn = answer.kind === 'Namespace' && answer.metadata?.name === 'kube-system'
  if (status === 200 && isOwn && typeof uid === 'string' && uid.length <= uidMax && uidForm.test(uid)) {
    return { kind: 'uid', uid }
  }
  return { kind: 'unclear', why: `HTTP ${status} without the namespace kube-system` }
}

/** `unclear`: nothing follows from it; a connection is not used, and nothing is lost. */
export function verdictOf(known: Cluster, sight: Sight, site: Site): 'same' | 'other' | 'unclear' {
  if (sight.kind === 'unclear') return 'unclear'
  if (known.uid !== '' && sight.kind === 'uid') return sight.uid === known.uid ? 'same' : 'other'
  // A part in common is enough: authorities and addresses are replaced one after the other.
  if (!meet(known.authorities, site.authorities) || !meet(known.addresses, site.addresses)) return 'other'
  // In its old place a cluster without the namespace is one that is only being made, or no API server at all.
  return known.uid !== '' && sight.kind === 'absent' ? 'unclear' : 'same'
}

/** What is known of the same cluster from here on: a uid that can no longer be read is not forgotten. */
export function refreshed(known: Cluster, sight: Sight, { authorities, addresses }: Site): Cluster {
  return { uid: sight.kind === 'uid' ? sight.uid : known.uid, authorities, addresses }
}

export type Sighting = {
  readonly sight: Sight
  readonly address: string
  readonly site: Site
  readonly nowMs: number
  /** How long it has to last. */
  readonly spanMs: number
}

export function sighted(before: Candidate | undefined, { sight, address, site, nowMs, spanMs }: Sighting): Candidate {
  const next = refreshed({ uid: '', ...site }, sight, site)
  const goesOn =
    before !== undefined &&
    nowMs - before.lastMs <= Math.max(spanMs, pauseMsMin) &&
    before.uid === next.uid &&
    before.authorities.join() === next.authorities.join() &&
    before.addresses.join() === next.addresses.join()
  if (!goesOn) return { ...next, sinceMs: nowMs, lastMs: nowMs, sights: 1, at: [address] }
  const at = before.at.includes(address) ? before.at : [...before.at, address]
  return { ...before, lastMs: nowMs, sights: before.sights + 1, at }
}

/** An address that only does not answer has not said that the known cluster is gone from it. */
export function isBelieved(
  { sinceMs, lastMs, sights, at, addresses }: Candidate,
  known: Cluster,
  spanMs: number,
): boolean {
  if (sights < sightsMin || lastMs - sinceMs < spanMs) return false
  return addresses.every((address) => at.includes(address) || !known.addresses.includes(address))
}

function meet(some: readonly string[], others: readonly string[]): boolean {
  return some.some((one) => others.includes(one))
}
