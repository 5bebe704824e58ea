/**
 * The EdgePolicies of the cluster, as the hub's own mirror has them, and the labels of Nodes that they are chosen by. Where there is no such
 * resource there is no policy, if the definitions of the cluster say so: an API server that has just started does not list
 * in its discovery yet what it will serve. A definition that comes later is noticed. What was read stands until it was read again, since a
 * policy that cannot be seen for a moment still forbids.
 */
import { type Clock, sleep } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { type Labels, scanObject } from '../../kube/object.ts'
import { concerns, type PolicedNode } from '../../policy/nodes.ts'
import { type EdgeRules, policyResource } from '../../policy/policy.ts'
import { type ReadPolicy, readPolicy } from '../../policy/reading.ts'
import { applied, rulesBy } from '../../policy/rules.ts'
import { FollowedObjects } from '../access/followed.ts'
import type { HubSources } from '../sources/sources.ts'
import { KeptObjects } from './keptobjects.ts'

type Revocation = { readonly sinceMs: number; readonly by: string }

type Parts = {
  readonly sources: Pick<HubSources, 'open'>
  readonly clock: Clock
  readonly log: Log
}

/** By which the API server knows what custom resources there are. The hub follows all of them anyway. */
const definitionResource = { group: 'apiextensions.k8s.io', version: 'v1', resource: 'customresourcedefinitions' }
const definitionName = `${policyResource.resource}.${policyResource.group}`
/** Names of nodes whose rules are remembered: more than a hub has links. Each is a few bytes, since rules are shared. */
const nodesMax = 50_000
/** Of policies that are for the same edges, those of the past included: some kilobytes each. */
const sharedMax = 1_000
/** For the first reading: a hub that has just started lets its edges wait for it. */
const firstMsMax = 5_000

export class Policies {
  readonly #parts: Parts
  readonly #policies: KeptObjects<ReadPolicy>
  readonly #labels: KeptObjects<Labels | undefined>
  readonly #followed: Readonly<Record<'policies' | 'nodes' | 'definitions', FollowedObjects>>
  /** As far as definitions were read. */
  #isDefined = false
  readonly #observers = new Set<(nodes: ReadonlySet<string> | undefined) => void>()
  /** By the name of the node. */
  readonly #rules = new Map<string, EdgeRules>()
  /** By the policies that are for an edge: what is the same for many edges is one object. */
  readonly #shared = new Map<string, EdgeRules>()
  /** For each policy that was read, as long as it stands: a number for its text. */
  #numbers = 0
  readonly #numberOf = new WeakMap<ReadPolicy, number>()
  #isTelling = false
  /** What is to be told: these Nodes have other labels; undefined: anything may be otherwise. */
  #concerned: Set<string> | undefined = new Set()
  /** By the name of the edge, since it is asked of every link; undefined: to be made anew. */
  #revoked: ReadonlyMap<string, Revocation> | undefined

  constructor(parts: Parts) {
    this.#parts = parts
    const { sources, clock } = parts
    this.#policies = new KeptObjects({
      read: ({ bytes }) => readPolicy(bytes),
      isSame: (one, other) => one.text === other.text && one.generation === other.generation,
      changed: () => {
        this.#revoked = undefined
        this.#changed(undefined)
      },
    })
    this.#labels = new KeptObjects({
      read: ({ bytes }) => scanObject(bytes).labels,
      isSame: areEqual,
      changed: (names) => this.#changed(names),
    })
    const nodes = new FollowedObjects({
      ...{ sources, clock, of: { group: '', version: 'v1', resource: 'nodes' }, ...this.#labels.heard },
      told: () => this.#labels.told(nodes),
    })
    const policies = new FollowedObjects({
      ...{ sources, clock, of: policyResource, ...this.#policies.heard },
      told: () => {
        this.#policies.told(policies)
        this.#judgeAbsence()
      },
    })
    const define = (name: string, isDefined: boolean) => {
      if (name !== definitionName) return
      this.#isDefined = isDefined
      this.#judgeAbsence()
    }
    const definitions = new FollowedObjects({
      ...{ sources, clock, of: definitionResource },
      ...{ put: ({ key }) => define(key, true), remove: (key) => define(key, false) },
      clear: () => {
        this.#isDefined = false
      },
      told: () => this.#judgeAbsence(),
    })
    this.#followed = { policies, nodes, definitions }
  }

  /** Policies were read, or are known not to exist. */
  get isKnown(): boolean {
    return this.#policies.isKnown
  }

  /** They were, and so were the labels of Nodes: what no policy gives an edge now is not given to it. */
  get isWhole(): boolean {
    return this.#policies.isKnown && this.#labels.isKnown
  }

  /** Resolves when they are, or after a moment. */
  async first(): Promise<void> {
    if (this.isKnown) return
    const known = new AbortController()
    const deaf = this.observe(() => known.abort())
    await sleep(this.#parts.clock, firstMsMax, known.signal)
    deaf()
  }

  /** Why they are not, as far as that was told. */
  get why(): string {
    const { policies, definitions } = this.#followed
    const { refusal } = policies
    if (refusal?.reason !== 'unknown') return refusal?.sentence ?? 'the hub has not read the policies yet'
    if (definitions.isKnown) return 'the cluster defines EdgePolicies, and its API server does not serve them yet'
    const why = definitions.refusal?.sentence ?? 'they are being read'
    return `the hub has not read whether the cluster defines EdgePolicies (${why})`
  }

  all(): Iterable<ReadPolicy> {
    return this.#policies.values()
  }

  isFor({ nodes }: ReadPolicy, node: string): boolean {
    return concerns(nodes, this.#nodeOf(node)) === 'yes'
  }

  /** There may be such a resource now. */
  hurry(): void {
    this.#followed.policies.hurry()
  }

  rulesOf(node: string): EdgeRules {
    const known = this.#rules.get(node)
    if (known !== undefined) return known
    const rules = this.#merged(this.#nodeOf(node))
    if (this.#rules.size >= nodesMax) this.#rules.clear()
    this.#rules.set(node, rules)
    return rules
  }

  /** Whichever edges its policy is for: the edge that is revoked is named by the rule itself. */
  revokedSince(node: string): Revocation | undefined {
    this.#revoked ??= revocationsOf(this.#policies.values())
    return this.#revoked.get(node)
  }

  /**
   * Called behind the turn in which something changed, with the Nodes whose labels it was; undefined: anything may be otherwise, revocations
   * among it. Answers how to stop that.
   */
  observe(changed: (nodes: ReadonlySet<string> | undefined) => void): () => void {
    this.#observers.add(changed)
    return () => void this.#observers.delete(changed)
  }

  async run(signal: AbortSignal): Promise<void> {
    const all = Object.values(this.#followed)
    for (const one of all) one.start()
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    for (const one of all) one.stop()
  }

  /** Discovery has no such resource, and no definition makes one. */
  #judgeAbsence(): void {
    const { policies, definitions } = this.#followed
    if (policies.refusal?.reason === 'unknown' && definitions.isKnown && !this.#isDefined) this.#policies.gone()
  }

  #nodeOf(name: string): PolicedNode {
    // A Node that is not there yet, or was deleted, has no labels to go by.
    return { name, labels: this.#labels.isKnown && this.#labels.has(name) ? this.#labels.get(name) : 'unknown' }
  }

  #merged(node: PolicedNode): EdgeRules {
    const those = applied(this.#policies.values(), node)
    const key = those.map(({ policy, isWhole }) => `${this.#number(policy)}${isWhole ? '' : '?'}`).join()
    const rules = this.#shared.get(key) ?? rulesBy(those)
    if (this.#shared.size >= sharedMax) this.#shared.clear()
    this.#shared.set(key, rules)
    return rules
  }

  #number(policy: ReadPolicy): number {
    const number = this.#numberOf.get(policy) ?? ++this.#numbers
    this.#numberOf.set(policy, number)
    return number
  }

  /** What many objects change in one turn is told once. */
  #changed(nodes: readonly string[] | undefined): void {
    if (nodes === undefined) {
      this.#rules.clear()
      this.#concerned = undefined
    } else
      for (const node of nodes) {
        this.#rules.delete(node)
        this.#concerned?.add(node)
      }
    if (this.#isTelling) return
    this.#isTelling = true
    queueMicrotask(() => {
      const concerned = this.#concerned
      this.#isTelling = false
      this.#concerned = new Set()
      const { log } = this.#parts
      log.debug('hub.policies', { policies: this.#policies.size })
      for (const changed of this.#observers) changed(concerned)
    })
  }
}

/** Of each name the latest time counts. */
function revocationsOf(policies: Iterable<ReadPolicy>): ReadonlyMap<string, Revocation> {
  const latest = new Map<string, Revocation>()
  for (const { name, revoked } of policies)
    for (const { at, name: edge, sinceMs } of revoked) {
      if ((latest.get(edge)?.sinceMs ?? Number.NEGATIVE_INFINITY) >= sinceMs) continue
      latest.set(edge, { sinceMs, by: `policy/${name} spec.revoked[${at}]` })
    }
  return latest
}

function areEqual(one: Labels | undefined, other: Labels | undefined): boolean {
  if (one === undefined || other === undefined) return one === other
  if (one.size !== other.size) return false
  for (const [label, value] of one) if (other.get(label) !== value) return false
  return true
}
