/** What a hub adds to /metrics: its links, what they carry, and how it stands with its API server. */

import { counter, gauge, seriesOf } from '../../base/metrics.ts'
import type { Warnings } from '../../base/warnings.ts'
import type { EdgeForwarding } from '../../hub/forwarding/forwarding.ts'
import type { EdgeIdentities } from '../../hub/identity/identities.ts'
import type { HubPeers } from '../../hub/peers/peers.ts'
import type { Policies } from '../../hub/policy/policies.ts'
import type { EdgeCertificate } from '../../hub/sockets/edgepeer.ts'
import type { HubListener } from '../../hub/sockets/listener.ts'
import type { HubSources } from '../../hub/sources/sources.ts'
import type { HubAuthority } from '../../hub/state/authorities.ts'
import type { KeptEpoch } from '../../hub/state/epochs.ts'
import type { Comparison } from '../../mirror/comparison.ts'
import type { Reachability } from '../../upstream/upstream.ts'
import { nearEndAtMs } from '../nearend.ts'
import type { HubFleet } from './fleet.ts'

/** What is there once a hub lets edges in. */
export type OpenHub = {
  readonly listener: Pick<HubListener, 'links' | 'arriving' | 'counts'>
  readonly peers: Pick<HubPeers, 'figures' | 'traffic'>
  readonly sources: Pick<HubSources, 'figures'>
  readonly forwarding: Pick<EdgeForwarding, 'counts'>
  readonly epoch: Pick<KeptEpoch, 'current'>
  readonly callers: { figures(): string[] }
  readonly fleet: Pick<HubFleet, 'others'> & { readonly events: { figures(): string[] } }
  readonly identities: Pick<EdgeIdentities, 'counts'>
  readonly authorities: () => readonly HubAuthority[]
  readonly joining: { figures(): string[] }
  readonly policies: Pick<Policies, 'isKnown' | 'why' | 'all' | 'isFor'>
  readonly policyStatus: { figures(): string[] }
  readonly warnings: Pick<Warnings, 'figures'>
}

type Parts = {
  readonly open: OpenHub | undefined
  readonly comparison: Pick<Comparison, 'found'>
  readonly reachability: Pick<Reachability, 'state'>
}

/** Each is always told, so that an alert can tell none from unknown. */
const upstreamStates = ['reachable', 'suspect', 'unreachable'] as const
const edgeStates = ['greeting', 'open', 'leaving', 'closed'] as const

const one = (value: number) => [['', value] as const]

export function hubFigures({ open, comparison, reachability }: Parts): string[] {
  const states = upstreamStates.map((state) => [seriesOf({ state }), reachability.state === state ? 1 : 0] as const)
  return [
    gauge('ake_upstream_state', 'Whether the API server can be reached.', states),
    gauge('ake_hub_open', 'Whether edges are let in.', one(open === undefined ? 0 : 1)),
    counter(
      'ake_hub_silent_differences_total',
      'Objects found to differ from the API server without a sign of it.',
      one(comparison.found),
    ),
    ...(open === undefined
      ? []
      : [
          ...linkFigures(open),
          ...edgeFiguresOf(open),
          ...certificateFigures(open),
          ...requestFigures(open),
          ...open.callers.figures(),
          ...open.fleet.events.figures(),
          ...open.joining.figures(),
          ...open.policyStatus.figures(),
          ...open.warnings.figures(
            'ake_hub_edge_refusals_total',
            'What was refused to edges, by kind, also where the log was not told.',
          ),
        ]),
  ]
}

function linkFigures({ listener: { links, arriving, counts }, peers: { traffic } }: OpenHub): string[] {
  const handshakes = (['full', 'resumed'] as const).map((kind) => [seriesOf({ kind }), counts[kind]] as const)
  return [
    gauge('ake_hub_links', 'Links there are.', one(links)),
    gauge('ake_hub_arrivals', 'Connections that are no link yet.', one(arriving.all)),
    gauge('ake_hub_arrivals_waiting', 'Those of them that wait for their handshake.', one(arriving.waiting)),
    counter('ake_hub_arrivals_turned_away_total', 'Connections told to come back later.', one(arriving.turnedAway)),
    counter('ake_hub_handshakes_total', 'TLS handshakes, full and resumed.', handshakes),
    counter('ake_hub_refused_total', 'Connections refused after their handshake.', one(counts.refused)),
    counter('ake_hub_sent_bytes_total', 'Bytes of frames sent to edges.', one(traffic.sentBytes)),
    counter('ake_hub_received_bytes_total', 'Bytes of frames received from edges.', one(traffic.receivedBytes)),
    counter('ake_hub_events_total', 'Changes told to the sessions of edges.', one(traffic.events)),
  ]
}

function edgeFiguresOf({ peers, sources, epoch }: OpenHub): string[] {
  const edges = peers.figures()
  const sum = (value: (edge: (typeof edges)[number]) => number) => edges.reduce((total, edge) => total + value(edge), 0)
  const followed = sources.figures()
  return [
    gauge(
      'ake_hub_edges',
      'Edges that were let in, by the state of their session.',
      edgeStates.map((state) => [seriesOf({ state }), edges.filter((edge) => edge.state === state).length] as const),
    ),
    gauge('ake_hub_interests', 'Interests of all edges.', one(sum(({ interests }) => interests))),
    gauge('ake_hub_held_bytes', 'What is held for edges that have not taken it.', one(sum((edge) => edge.heldBytes))),
    gauge('ake_hub_queued_bytes', 'What sockets have not taken.', one(sum((edge) => edge.bufferedBytes))),
    gauge('ake_hub_unacknowledged_events', 'Events that edges have not committed.', one(sum((edge) => edge.behind))),
    gauge('ake_hub_sources', 'Resources followed for edges.', [
      [seriesOf({ readers: 'some' }), followed.filter(({ readers }) => readers > 0).length],
      [seriesOf({ readers: 'none' }), followed.filter(({ readers }) => readers === 0).length],
    ]),
    gauge('ake_hub_views', 'Parts of them that edges have.', one(followed.reduce((all, { views }) => all + views, 0))),
    gauge('ake_hub_epoch', 'The epoch of the cluster: it grows when that was put back.', one(epoch.current.number)),
  ]
}

/** When the certificate of an edge should have been renewed at the latest. */
export function renewByMsOf({ issuedAtMs, endsAtMs }: Pick<EdgeCertificate, 'issuedAtMs' | 'endsAtMs'>): number {
  return nearEndAtMs({ beganAtMs: issuedAtMs, endsAtMs }) ?? endsAtMs
}

function certificateFigures({ peers, fleet, identities, authorities }: OpenHub): string[] {
  const edges = peers.figures()
  const soon = edges.filter(({ certificate }) => renewByMsOf(certificate) <= Date.now())
  const by = (['current', 'next', 'old', 'cluster'] as const).map((role) => {
    const those = edges.filter(({ certificate }) => signedBy(certificate, authorities()) === role)
    return [seriesOf({ by: role }), those.length] as const
  })
  const ends = authorities().map(({ role, hash, certificate }) => {
    return [seriesOf({ role, hash }), certificate.validToDate.getTime() / 1_000] as const
  })
  const renewals = Object.entries(identities.counts).map(([result, count]) => [seriesOf({ result }), count] as const)
  return [
    gauge('ake_hub_edge_certificates', 'Certificates of edges that are here, by who signed them.', by),
    gauge(
      'ake_hub_edge_certificates_ending',
      'Those of them whose end is near: they should have been renewed.',
      one(soon.length),
    ),
    gauge('ake_hub_authority_expiry_timestamp_seconds', 'When an authority of the hub ends.', ends),
    gauge('ake_hub_replicas', 'Other replicas to which there is a line.', one(fleet.others.length)),
    counter('ake_hub_renewals_total', 'Certificates that edges asked for over their links.', renewals),
  ]
}

/** Which authority of the hub signed it, or that the cluster did. */
export function signedBy(
  { signer, authority }: EdgeCertificate,
  authorities: readonly HubAuthority[],
): HubAuthority['role'] | 'cluster' {
  if (signer === 'cluster') return 'cluster'
  // One that is trusted no more signed those of links that live on.
  return authorities.find(({ certificate }) => certificate.fingerprint256 === authority)?.role ?? 'old'
}

function requestFigures({ forwarding: { counts } }: OpenHub): string[] {
  const results = Object.entries(counts).map(([result, count]) => [seriesOf({ result }), count] as const)
  return [counter('ake_hub_forwarded_total', 'Requests of edges by what became of them.', results)]
}
