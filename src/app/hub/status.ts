/** What `ake status --health` shows: which edges are there and how they fare, what is followed for them, and how far back it goes. */
import type { MirrorCopy } from '../../cache/mirrorcopy.ts'
import type { Interests } from '../../mirror/interests.ts'
import type { Upstream } from '../../upstream/upstream.ts'
import { stateOf } from '../statusdocument.ts'
import { akeVersion } from '../version.ts'
import { type OpenHub, renewByMsOf, signedBy } from './figures.ts'

export type HubStatusDocument = {
  readonly version: string
  /** By which replicas are told apart. */
  readonly hub: string
  /** Edges are let in; otherwise why not. */
  readonly open: boolean
  readonly why?: string
  readonly upstream: { readonly state: string; readonly why: string; readonly since: string }
  readonly cluster?: { readonly uid: string; readonly epoch: number; readonly lost: number }
  readonly trustsEdges: boolean
  readonly edges: readonly HubEdgeStatus[]
  /** The EdgePolicies of the cluster: for how many of these edges each is, and what of it cannot be read. */
  readonly policies?: readonly { readonly name: string; readonly edges: number; readonly faults: readonly string[] }[]
  /** Why they are not known. */
  readonly policiesUnknown?: string
  /** Edges at other replicas, as far as these are known. */
  readonly others?: readonly {
    readonly hub: string
    readonly edges: readonly { readonly name: string; readonly from: string }[]
  }[]
  /** Whose certificates the hub takes, besides the cluster's. */
  readonly authorities?: readonly { readonly role: string; readonly hash: string; readonly until: string }[]
  readonly resources: readonly HubResourceStatus[]
  /** Memory for what edges that come back may be told, and how much of it is used. */
  readonly history: { readonly bytes: number; readonly bytesMax: number }
}

export type HubEdgeStatus = {
  readonly name: string
  readonly from: string
  /** Of the program at the other end. */
  readonly release: string
  readonly state: string
  readonly since: string
  /** When it ends and should have been renewed at the latest (absent of an older hub), and which authority signed it: current, next, old, or the cluster's. */
  readonly certificate: { readonly until: string; readonly renewBy?: string; readonly by: string }
  /** Names of those that are for it. */
  readonly policies: readonly string[]
  readonly interests: number
  /** Those of them that it is not told each change of yet: the hub has nothing of them, the edge compares, or all of it is being sent. */
  readonly unlive: { readonly waiting: number; readonly comparing: number; readonly syncing: number }
  /** The newest resourceVersion of a change that it has acknowledged over this link; 0: none yet. */
  readonly version: number
  /** Events that were sent and it has not committed. */
  readonly behind: number
  /** What is held for it, and what its socket has not taken. */
  readonly queuedBytes: number
  readonly sentBytes: number
  readonly receivedBytes: number
}

export type HubResourceStatus = {
  readonly name: string
  readonly state: string
  readonly why?: string
  readonly readers: number
  readonly views: number
  readonly objects: number
  readonly bytes: number
  readonly resourceVersion: number
  /** An edge that has come at least this far is told what came since. */
  readonly historyFrom: number
}

type Parts = {
  readonly hub: string
  readonly open: OpenHub | undefined
  readonly why: string | undefined
  readonly uid: string
  readonly upstream: Pick<Upstream, 'reachability'>
  readonly interests: Pick<Interests, 'named'>
  readonly copy: Pick<MirrorCopy, 'caches'>
  readonly trustsEdges: boolean
  readonly historyBytesMax: number
  readonly nowMs: number
}

export function hubStatusOf(parts: Parts): HubStatusDocument {
  const { hub, open, why, uid, upstream, copy, trustsEdges, historyBytesMax } = parts
  const { state, why: reason, sinceMs } = upstream.reachability
  let bytes = 0
  for (const { history } of copy.caches.values()) bytes += history.window.bytes
  const edges = open === undefined ? [] : open.peers.figures().map((edge) => edgeStatus(edge, open, parts.nowMs))
  return {
    version: akeVersion,
    hub,
    open: open !== undefined && why === undefined,
    ...(why === undefined ? {} : { why }),
    upstream: { state, why: reason, since: new Date(sinceMs).toISOString() },
    ...(open === undefined
      ? {}
      : { cluster: { uid, epoch: open.epoch.current.number, lost: open.epoch.current.lost } }),
    trustsEdges,
    edges,
    ...(open === undefined ? {} : policiesOf(open, edges)),
    ...(open === undefined
      ? {}
      : {
          others: open.fleet.others.map(({ hub: other, names }) => ({
            hub: other,
            edges: names.map(({ name, from }) => ({ name, from })),
          })),
          authorities: open.authorities().map(({ role, hash, certificate }) => {
            return { role, hash, until: certificate.validToDate.toISOString() }
          }),
        }),
    resources: (open?.sources.figures() ?? []).map((source) => resourceStatus(source, parts)),
    history: { bytes, bytesMax: historyBytesMax },
  }
}

function edgeStatus(
  edge: ReturnType<OpenHub['peers']['figures']>[number],
  open: Pick<OpenHub, 'authorities' | 'policies'>,
  nowMs: number,
): HubEdgeStatus {
  const { edge: name, from, release, state, livedMs, interests, behind, heldBytes, bufferedBytes } = edge
  const since = new Date(nowMs - livedMs).toISOString()
  const { sentBytes, receivedBytes, unlive, version } = edge
  const queuedBytes = heldBytes + bufferedBytes
  const until = new Date(edge.certificate.endsAtMs).toISOString()
  const renewBy = new Date(renewByMsOf(edge.certificate)).toISOString()
  const certificate = { until, renewBy, by: signedBy(edge.certificate, open.authorities()) }
  const policies = [...open.policies.all()].filter((one) => open.policies.isFor(one, name)).map((one) => one.name)
  const held = { interests, unlive, version, behind, queuedBytes, sentBytes, receivedBytes }
  return { name, from, release, state, since, certificate, policies, ...held }
}

function policiesOf(
  { policies }: Pick<OpenHub, 'policies'>,
  edges: readonly HubEdgeStatus[],
): Pick<HubStatusDocument, 'policies' | 'policiesUnknown'> {
  if (!policies.isKnown) return { policiesUnknown: policies.why }
  const counts = new Map<string, number>()
  for (const { policies: those } of edges) for (const name of those) counts.set(name, (counts.get(name) ?? 0) + 1)
  return { policies: [...policies.all()].map(({ name, faults }) => ({ name, edges: counts.get(name) ?? 0, faults })) }
}

function resourceStatus(
  { name, readers, views }: ReturnType<OpenHub['sources']['figures']>[number],
  { interests, copy }: Parts,
): HubResourceStatus {
  const mirrored = interests.named(name)
  const cache = copy.caches.get(name)
  const state = mirrored === undefined ? 'waiting' : stateOf(mirrored)
  const said = mirrored?.state
  return {
    ...{ name, state, readers, views },
    ...(said !== undefined && 'why' in said ? { why: said.why } : {}),
    objects: cache?.size ?? 0,
    bytes: cache?.bytes ?? 0,
    resourceVersion: cache?.version ?? 0,
    historyFrom: cache?.history.window.floor.version ?? 0,
  }
}
