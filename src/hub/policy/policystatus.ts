/**
 * What hubs say of each policy in its status: whether it could be read whole, and how many linked edges it is for. One hub at a time writes,
 * only what has changed, and seldom: a fleet that comes at once is counted when it is there.
 */
import { type Clock, sleep } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { Counter, gauge, seriesOf } from '../../base/metrics.ts'
import { policyResource } from '../../policy/policy.ts'
import type { ReadPolicy } from '../../policy/reading.ts'
import { askJson, type JsonAnswer } from '../../upstream/askjson.ts'
import { Unreachable, type Upstream } from '../../upstream/upstream.ts'
import { AnswerTooLarge } from '../../upstream/whole.ts'
import { type HubLease, leaseMs } from './lease.ts'
import type { Policies } from './policies.ts'

type Parts = {
  readonly upstream: Pick<Upstream, 'ask'>
  readonly policies: Pick<Policies, 'all' | 'isKnown' | 'isFor'>
  /** Names of the edges that are linked, as far as this hub knows. */
  readonly edges: () => Iterable<string>
  /** Undefined: there is no other hub. */
  readonly lease: Pick<HubLease, 'take' | 'why'> | undefined
  readonly clock: Clock
  readonly log: Log
}

/** How soon what has changed is seen in a status. */
const lookEveryMs = 5_000
/** A policy whose edges come and go is written to this often. */
const countEveryMs = 30_000
/** In one look: a cluster with hundreds of policies gets them one after the other. */
const writesMax = 20
const answerMsMax = 10_000
const answerBytesMax = 2 * 1024 * 1024
/** Where the hub may not write them: neither the API server nor the log hears of it more often. */
const refusedEveryMs = 60_000
/** Of the message: what is wrong in the first places tells enough. */
const messageMax = 4_096

type StatusWrite = 'written' | 'same' | 'refused' | 'failed'
type Told = { readonly generation: number; readonly edges: number; readonly at: number }

type Condition = { readonly type?: string; readonly status?: string; readonly lastTransitionTime?: string }
type PolicyObject = {
  readonly metadata?: { readonly resourceVersion?: string }
  readonly status?: { readonly conditions?: readonly Condition[] } & Readonly<Record<string, unknown>>
}

const { group, version, resource } = policyResource
const collection = `/apis/${group}/${version}/${resource}`

export class PolicyStatus {
  readonly #parts: Parts
  /** By the name of the policy: what this hub wrote last, or found to be written. */
  readonly #told = new Map<string, Told>()
  readonly #writes = new Counter()
  #leaseAt = Number.NEGATIVE_INFINITY
  #holds = false
  #complaint = ''
  #refusedAt = Number.NEGATIVE_INFINITY

  constructor(parts: Parts) {
    this.#parts = parts
  }

  figures(): string[] {
    const all = [...this.#parts.policies.all()]
    const accepted = all.filter(({ faults }) => faults.length === 0).length
    return [
      gauge('ake_hub_policies', 'EdgePolicies of the cluster, by whether they could be read whole.', [
        [seriesOf({ accepted: 'true' }), accepted],
        [seriesOf({ accepted: 'false' }), all.length - accepted],
      ]),
      this.#writes.render(
        'ake_hub_policy_status_writes_total',
        'Statuses of EdgePolicies that this hub wrote, by result.',
      ),
    ]
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#parts
    while (!signal.aborted) {
      await sleep(clock, lookEveryMs, signal)
      if (!signal.aborted) await this.look()
    }
  }

  async look(): Promise<void> {
    const { policies } = this.#parts
    const all = [...policies.all()]
    const names = new Set(all.map(({ name }) => name))
    for (const name of this.#told.keys()) if (!names.has(name)) this.#told.delete(name)
    if (!policies.isKnown || all.length === 0) return
    if (this.#parts.clock.steady() - this.#refusedAt < refusedEveryMs) return
    const edges = [...this.#parts.edges()]
    const due = all
      .map((policy) => ({ policy, edges: edges.filter((edge) => policies.isFor(policy, edge)).length }))
      .filter((one) => this.#isDue(one))
    if (!(await this.#isHolder())) {
      // Another hub writes; what that knows is not ours to know.
      this.#told.clear()
      return
    }
    for (const one of due.slice(0, writesMax)) if ((await this.#write(one)) === 'refused') return
  }

  #isDue({ policy, edges }: { readonly policy: ReadPolicy; readonly edges: number }): boolean {
    const told = this.#told.get(policy.name)
    if (told?.generation !== policy.generation) return true
    return told.edges !== edges && this.#parts.clock.steady() - told.at >= countEveryMs
  }

  /** Renewed in a third of its time, also while nothing is due: otherwise it would go to and fro. */
  async #isHolder(): Promise<boolean> {
    const { lease, clock, log } = this.#parts
    if (lease === undefined) return true
    if (clock.steady() - this.#leaseAt < leaseMs / 3) return this.#holds
    this.#holds = await lease.take()
    this.#leaseAt = clock.steady()
    if (lease.why !== '' && lease.why !== this.#complaint)
      log.warn('policy.status', { why: `the Lease of the hubs cannot be had, and no status is written: ${lease.why}` })
    this.#complaint = lease.why
    return this.#holds
  }

  async #write({ policy, edges }: { readonly policy: ReadPolicy; readonly edges: number }): Promise<StatusWrite> {
    const { clock, log } = this.#parts
    const { name, generation } = policy
    try {
      const result = await this.#put(policy, edges)
      this.#writes.add(seriesOf({ result }))
      if (result === 'written' || result === 'same') this.#told.set(name, { generation, edges, at: clock.steady() })
      return result
    } catch (error) {
      if (!(error instanceof Unreachable || error instanceof AnswerTooLarge || error instanceof SyntaxError))
        throw error
      log.debug('policy.status', { policy: name, why: error.message })
      this.#writes.add(seriesOf({ result: 'failed' }))
      return 'failed'
    }
  }

  async #put(policy: ReadPolicy, edges: number): Promise<StatusWrite> {
    const { clock, log } = this.#parts
    const path = `${collection}/${encodeURIComponent(policy.name)}`
    const found = await this.#ask('GET', path)
    if (found.status !== 200) return 'failed'
    const object = JSON.parse(found.text) as PolicyObject
    const status = statusOf(policy, { edges, before: object.status?.conditions ?? [], nowMs: clock.now() })
    if (JSON.stringify(status) === JSON.stringify(object.status)) return 'same'
    const { status: code, text } = await this.#ask('PUT', `${path}/status`, { ...object, status })
    if (code < 300) return 'written'
    if (code !== 403) return 'failed'
    this.#refusedAt = clock.steady()
    log.warn('policy.status', { policy: policy.name, why: text.slice(0, 300) })
    return 'refused'
  }

  #ask(method: string, path: string, content?: object): Promise<JsonAnswer> {
    const limits = { headMsMax: answerMsMax, bytesMax: answerBytesMax }
    return askJson(this.#parts.upstream, { method, path, content, ...limits })
  }
}

type Seen = { readonly edges: number; readonly before: readonly Condition[]; readonly nowMs: number }

/** As Kubernetes has conditions: the time is that of the last turn from one status to another. */
function statusOf({ generation, faults }: ReadPolicy, { edges, before, nowMs }: Seen): object {
  const status = faults.length === 0 ? 'True' : 'False'
  const known = before.find(({ type }) => type === 'Accepted')
  const now = new Date(Math.floor(nowMs / 1_000) * 1_000).toISOString().replace('.000Z', 'Z')
  const condition = {
    ...{ type: 'Accepted', status, observedGeneration: generation },
    lastTransitionTime: known?.status === status ? (known.lastTransitionTime ?? now) : now,
    ...(faults.length === 0
      ? { reason: 'Accepted', message: '' }
      : { reason: 'Invalid', message: `it allows nothing: ${faults.join('; ')}`.slice(0, messageMax) }),
  }
  const others = before.filter(({ type }) => type !== 'Accepted')
  return { conditions: [...others, sortedKeys(condition)], edges, observedGeneration: generation }
}

/** As the API server gives them back, so that equal ones are seen to be. */
function sortedKeys<Value extends object>(value: Value): Value {
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) as Value
}
