/** What `ake status` shows: where the cloud is, what is kept and how fresh, what is passed through and why. */

import type { Copy } from '../cache/copy.ts'
import type { RefusedWrites } from '../endpoint/forward/refusedwrites.ts'
import type { Contact } from '../mirror/contact.ts'
import type { Interests } from '../mirror/interests.ts'
import type { MirroredInterest } from '../mirror/mirrored.ts'
import type { ScrubFigures, Store, StoreFigures } from '../store/store.ts'
import type { CredentialLife } from '../upstream/credential.ts'
import type { Upstream } from '../upstream/upstream.ts'
import { nearEndAtMs } from './nearend.ts'
import type { Survival } from './survival.ts'
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

export type InterestState = MirroredInterest['state']['kind'] | 'withdrawn'

export type StatusDocument = {
  readonly upstream: {
    readonly state: 'reachable' | 'suspect' | 'unreachable'
    readonly why: string
    readonly since: string
    /** When the API server was last heard, also before the last start; null: never. Absent of an older edge. */
    readonly lastContact?: string | null
    readonly servers: readonly { readonly url: string; readonly current: boolean; readonly why: string }[]
  }
  /** The edge's own credential, those of its callers, and what it shows its clients; absent of an older edge. */
  readonly credentials?: readonly {
    readonly use: CredentialLife['use']
    readonly name?: string
    readonly expires?: string
    /** When it should have been renewed at the latest; absent of an older edge. */
    readonly renewBy?: string
    /** Why there is none. */
    readonly missing?: string
  }[]
  readonly cluster?: ClusterStatus
  readonly interests: readonly {
    readonly resource: string
    readonly group: string
    readonly namespace?: string
    readonly labels?: string
    readonly fields?: string
    readonly state: InterestState
    readonly why?: string
    /** What the API server refuses it with. */
    readonly code?: number
    readonly objects: number
    readonly bytes: number
    /** The resourceVersion up to which it is synced. */
    readonly resourceVersion: number
    /** Since the API server was last heard of it; absent if it never was. */
    readonly ageSeconds?: number
    readonly watchers: number
    readonly asked: string
    /** From the start, by option. */
    readonly standing?: boolean
  }[]
  /** How full it is; absent of an older edge. */
  readonly budget?: {
    readonly bytes: number
    readonly bytesMax: number
    readonly interests: number
    readonly interestsMax: number
  }
  /** What is configured so that it cannot work, a sentence each with what to do. */
  readonly misconfigured?: readonly string[]
  readonly passedThrough: readonly {
    readonly resource: string
    readonly group: string
    readonly why: string
    /** Absent of an older edge. */
    readonly state?: InterestState | 'noRoom'
    readonly code?: number
  }[]
  /** Writes that the edge could not pass on since the cut, or during the last one; absent where there were none. */
  readonly refusedWrites?: {
    /** Of the first. */
    readonly since: string
    /** The API server can be reached again. */
    readonly over: boolean
    readonly total: number
    /** By resource and caller, the most frequent first; one without both is all that found no row. */
    readonly writes: readonly {
      readonly resource: string
      readonly group: string
      readonly subresource: string
      readonly caller: string
      readonly count: number
    }[]
  }
  readonly store: {
    readonly healthy: boolean
    readonly historyBytes: number
    readonly bytesWritten: number
    /** How many of the segments that were to be sealed at the start are; absent of an older edge. */
    readonly seal?: {
      readonly state: 'plain' | 'sealing' | 'sealed'
      readonly segments?: { readonly sealed: number; readonly of: number }
    }
    /** How far what is stored was reread, and how many bodies a disk has damaged since the start; absent before that began. */
    readonly scrub?: ScrubFigures
    /** What is lost or damaged, a sentence each. */
    readonly damage?: readonly string[]
  }
  /** Whether the node would come back from a reboot without the API server; absent of an older edge. */
  readonly survival?: Survival
  readonly version: string
}

export function statusOf(parts: {
  upstream: Upstream
  cluster?: ClusterStatus
  credentials?: readonly CredentialLife[]
  interests: Interests
  copy: Copy
  store: Store
  contact: Contact
  damage?: readonly string[]
  misconfigured?: readonly string[]
  refusedWrites?: RefusedWrites
}): StatusDocument {
  const {
    upstream,
    cluster,
    credentials,
    interests,
    copy,
    store,
    contact,
    damage = [],
    misconfigured = [],
    refusedWrites,
  } = parts
  const { state, why } = upstream.reachability
  const { lastMs } = contact
  const mirrored = [...interests.all]
  const refused = refusedWrites?.status()
  return {
    version: akeVersion,
    upstream: {
      state,
      why,
      since: new Date(sinceMsOf(upstream.reachability, contact)).toISOString(),
      lastContact: lastMs === undefined ? null : new Date(lastMs).toISOString(),
      servers: upstream.addresses(),
    },
    ...(credentials === undefined ? {} : { credentials: credentials.map(lifeStatus) }),
    ...(cluster === undefined ? {} : { cluster }),
    interests: mirrored.filter((one) => !isPassed(one)).map((one) => interestStatus(one, contact)),
    passedThrough: [
      ...mirrored.filter(isPassed).map((one) => passedStatus(one, interests)),
      ...interests.budget.turnedAway.map(({ interest: { resource, group }, why }) => {
        return { resource, group, why, state: 'noRoom' as const }
      }),
    ],
    ...(misconfigured.length === 0 ? {} : { misconfigured }),
    ...(refused === undefined ? {} : { refusedWrites: refused }),
    budget: interests.budget.status(),
    store: {
      healthy: copy.healthy,
      historyBytes: store.figures.historyBytes,
      bytesWritten: store.figures.bytesWritten,
      seal: sealStatus(store.figures.sealing),
      ...(store.figures.scrub === undefined ? {} : { scrub: store.figures.scrub }),
      ...(damage.length === 0 ? {} : { damage }),
    },
  }
}

function sealStatus(sealing: StoreFigures['sealing']): NonNullable<StatusDocument['store']['seal']> {
  if (sealing === undefined) return { state: 'plain' }
  const { left, of } = sealing
  return left === 0 ? { state: 'sealed' } : { state: 'sealing', segments: { sealed: of - left, of } }
}

/** Since when the cloud is there, or away: an edge that was started during an outage was not its beginning. */
export function sinceMsOf({ state, sinceMs }: Upstream['reachability'], { lastMs }: Contact): number {
  return state === 'reachable' ? sinceMs : Math.min(sinceMs, lastMs ?? sinceMs)
}

function lifeStatus({ beganAtMs, endsAtMs, ...life }: CredentialLife) {
  const nearAtMs = nearEndAtMs({ beganAtMs, endsAtMs })
  if (endsAtMs === undefined || nearAtMs === undefined) return life
  return { ...life, expires: new Date(endsAtMs).toISOString(), renewBy: new Date(nearAtMs).toISOString() }
}

/** A cut line takes back nothing: what was passed through before it is so still, and now out of reach. */
function isPassed({ hopeless, cache, refusal }: MirroredInterest): boolean {
  return hopeless || (cache === undefined && refusal !== undefined)
}

function passedStatus(mirrored: MirroredInterest, { budget }: Interests) {
  const { resource, group } = mirrored.interest
  const state = mirrored.refusal ?? mirrored.state
  const told = 'why' in state ? state.why : ''
  const said = mirrored.isEmptied ? `what was held of it was removed: ${told}` : told
  const why = state.kind === 'tooLarge' ? budget.whyTooLarge(mirrored, said) : said
  return { resource, group, why, state: state.kind, ...('code' in state ? { code: state.code } : {}) }
}

export function stateOf({ withdrawnAtMs, state }: MirroredInterest): InterestState {
  return withdrawnAtMs === undefined ? state.kind : 'withdrawn'
}

/** Of one that waits for the line, what the API server said before it was cut. */
function whyOf({ state, refusal }: MirroredInterest): { why?: string; code?: number } {
  if ('by' in state) return { why: `from ${state.by}` }
  const said = state.kind === 'waiting' ? (refusal ?? state) : state
  return { ...('why' in said ? { why: said.why } : {}), ...('code' in said ? { code: said.code } : {}) }
}

function interestStatus(mirrored: MirroredInterest, contact: Contact) {
  const { interest, record, cache } = mirrored
  const { resource, group, version, namespace, labels, fields } = interest
  const ageMs = cache === undefined ? undefined : contact.ageMsOf(mirrored)
  const age = ageMs === undefined ? {} : { ageSeconds: Math.round(ageMs / 1000) }
  return {
    resource,
    group,
    version,
    ...(namespace === '' ? {} : { namespace }),
    ...(labels.empty ? {} : { labels: labels.toString() }),
    ...(fields.empty ? {} : { fields: fields.toString() }),
    state: stateOf(mirrored),
    ...whyOf(mirrored),
    objects: cache?.size ?? 0,
    bytes: cache?.bytes ?? 0,
    resourceVersion: cache?.cloud.version ?? 0,
    ...age,
    watchers: cache?.watchers.size ?? 0,
    asked: new Date(record.askedAtMs).toISOString(),
    ...(record.standing ? { standing: true } : {}),
  }
}
