/** What an edge adds to /metrics: the way to its API server, what it mirrors and how old that is. */
import { counter, gauge, seriesOf } from '../base/metrics.ts'
import type { ClusterGate } from '../mirror/clustergate.ts'
import type { Comparison } from '../mirror/comparison.ts'
import type { Contact } from '../mirror/contact.ts'
import { kindOfName } from '../mirror/interest.ts'
import type { Interests } from '../mirror/interests.ts'
import type { Upstream } from '../upstream/upstream.ts'
import { type InterestState, stateOf } from './statusdocument.ts'

type Parts = {
  readonly upstream: Upstream
  readonly interests: Interests
  readonly comparison: Pick<Comparison, 'found'>
  readonly gate: ClusterGate
  readonly contact: Contact
}

/** Each is always told, so that an alert can tell none from unknown. */
const upstreamStates = ['reachable', 'suspect', 'unreachable'] as const
const interestStates: readonly InterestState[] = [
  'synced',
  'syncing',
  'waiting',
  'refused',
  'failing',
  'tooLarge',
  'fed',
  'withdrawn',
]

export function edgeFigures({ upstream: { reachability }, interests, comparison, gate, contact }: Parts): string[] {
  const states = upstreamStates.map((state) => [seriesOf({ state }), reachability.state === state ? 1 : 0] as const)
  const kinds = new Map<string, number>(interestStates.map((state) => [seriesOf({ state }), 0]))
  for (const mirrored of interests.all) {
    const series = seriesOf({ state: stateOf(mirrored) })
    kinds.set(series, (kinds.get(series) ?? 0) + 1)
  }
  return [
    gauge('ake_upstream_state', 'Whether the API server can be reached.', states),
    gauge('ake_upstream_limit_seconds', 'How long a read may wait for it.', [['', reachability.limitMs / 1000]]),
    gauge(
      'ake_upstream_last_contact_timestamp_seconds',
      'When the API server was last heard, also before the last start; 0: never.',
      [['', Math.round((contact.lastMs ?? 0) / 1000)]],
    ),
    counter('ake_cluster_changes_total', 'Copies begun anew for another cluster since the start.', [
      ['', gate.changes],
    ]),
    gauge('ake_cluster_other', 'Whether another cluster answers in place of the mirrored one.', [
      ['', gate.candidate === undefined ? 0 : 1],
    ]),
    counter(
      'ake_mirror_silent_differences_total',
      'Objects found to differ from the API server without a sign of it.',
      [['', comparison.found]],
    ),
    gauge('ake_interests', 'Interests by what their reflectors do.', kinds),
    gauge(
      'ake_data_age_seconds',
      'Since the API server was last heard of the oldest of a kind.',
      ages(interests, contact),
    ),
    ...interests.budget.figures(),
  ]
}

/** Of each kind of interest that can be read, the oldest; one whose age is not known has none. */
function ages(interests: Interests, contact: Contact): Map<string, number> {
  const found = new Map<string, number>()
  for (const mirrored of interests.all) {
    const ageMs = mirrored.cache === undefined ? undefined : contact.ageMsOf(mirrored)
    if (ageMs === undefined) continue
    const series = seriesOf(kindOfName(mirrored.interest.name))
    found.set(series, Math.max(found.get(series) ?? 0, ageMs / 1000))
  }
  return found
}
