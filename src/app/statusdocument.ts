/** What `ake status` shows: where the cloud is, what is kept and how fresh, what is passed through and why. */
import type { Clock } from '../base/clock.ts'
import type { Copy } from '../cache/copy.ts'
import type { Interest } from '../mirror/interest.ts'
import type { Interests } from '../mirror/interests.ts'
import type { MirroredInterest } from '../mirror/mirrored.ts'
import type { Store } from '../store/store.ts'
import type { Upstream } from '../upstream/upstream.ts'
import { akeVersion } from './version.ts'

/** Which cluster is mirrored, and what else answers in its place. */
export type ClusterStatus = {
  /** Of its kube-system namespace; absent where the edge may not read it, or nothing has answered yet. */
  readonly uid?: string
  /** Another cluster that answers now: nothing is taken from it. */
  readonly other?: string
  /** How often another cluster was believed in, and the copy begun anew, since the start. */
  readonly changes: number
}

export function statusOf(parts: {
  upstream: Upstream
  cluster?: ClusterStatus
  interests: Interests
  copy: Copy
  store: Store
  clock: Clock
  damage?: readonly string[]
}) {
  const { upstream, cluster, interests, copy, store, clock, damage = [] } = parts
  const { state, why, sinceMs } = upstream.reachability
  const mirrored = [...interests.all]
  return {
    version: akeVersion,
    upstream: { state, why, since: new Date(sinceMs).toISOString(), servers: upstream.addresses() },
    ...(cluster === undefined ? {} : { cluster }),
    interests: mirrored.filter((one) => !one.hopeless).map((one) => interestStatus(one, clock)),
    passedThrough: [
      ...mirrored.filter((one) => one.hopeless).map((one) => passedStatus(one.interest, whyPassed(one, interests))),
      ...interests.budget.turnedAway.map(({ interest, why }) => passedStatus(interest, why)),
    ],
    budget: interests.budget.status(),
    store: {
      healthy: copy.healthy,
      historyBytes: store.figures.historyBytes,
      bytesWritten: store.figures.bytesWritten,
      ...(damage.length === 0 ? {} : { damage }),
    },
  }
}

function passedStatus({ resource, group }: Interest, why: string) {
  return { resource, group, why }
}

function whyPassed(mirrored: MirroredInterest, { budget }: Interests): string {
  const { state } = mirrored
  if (state.kind === 'tooLarge') return budget.whyTooLarge(mirrored, state.why)
  return 'why' in state ? state.why : ''
}

function interestStatus(mirrored: MirroredInterest, clock: Clock) {
  const { interest, record, cache, state, heardAt } = mirrored
  const { resource, group, version, namespace, labels, fields } = interest
  const age = Number.isFinite(heardAt) ? { ageSeconds: Math.round((clock.steady() - heardAt) / 1000) } : {}
  return {
    resource,
    group,
    version,
    ...(namespace === '' ? {} : { namespace }),
    ...(labels.empty ? {} : { labels: labels.toString() }),
    ...(fields.empty ? {} : { fields: fields.toString() }),
    state: mirrored.withdrawnAtMs === undefined ? state.kind : 'withdrawn',
    ...('why' in state ? { why: state.why } : 'by' in state ? { why: `from ${state.by}` } : {}),
    objects: cache?.size ?? 0,
    bytes: cache?.bytes ?? 0,
    resourceVersion: cache?.cloud.version ?? 0,
    ...age,
    watchers: cache?.watchers.size ?? 0,
    asked: new Date(record.askedAtMs).toISOString(),
    ...(record.standing ? { standing: true } : {}),
  }
}
