/**
 * Why an edge may have an interest. The link's certificate names a node: what that node may read by itself is proved by it, and
 * what policies let it hold beyond that. Where the hub, or a policy, trusts the edge the name proves all. Everything else needs the
 * credential of a caller who may. What policies never let be mirrored nothing proves.
 */
import type { Opinion } from '../../access/rbac/rbac.ts'
import type { SessionRefusal } from '../../link/session/hubgreeting.ts'
import type { Interest } from '../../mirror/interest.ts'
import type { EdgeRules } from '../../policy/policy.ts'
import type { EdgeRights, JudgedEdge } from '../peers/rights.ts'
import type { CallerProofs } from './callerproofs.ts'
import type { NodeRights } from './noderights.ts'
import { waysTo } from './waysto.ts'

type Parts = {
  readonly nodes: Pick<NodeRights, 'judge' | 'why' | 'isKnown'>
  /** Callers behind an edge whose credentials the hub was shown over its link. */
  readonly callers: Pick<CallerProofs, 'judge' | 'left'>
  readonly trustsEdges: boolean
  readonly policies: EdgePolicies
  /** Whether what is wanted lies in namespaces; unless it is said, it does. */
  readonly isNamespaced?: (wanted: Interest) => boolean
}

/** As far as interests go. */
export type EdgePolicies = {
  /** They were read, or are known not to exist. */
  readonly isKnown: boolean
  readonly why: string
  /** They were, and so were the labels of Nodes that they go by: what they do not give now is not given. */
  readonly isWhole: boolean
  first(): Promise<void>
  rulesOf(node: string): Pick<EdgeRules, 'trusts' | 'holds' | 'isNeverMirrored'>
}

/** A pod may be bound to the node a moment later. */
const forbiddenRetryMs = 10_000
/** A policy may change any time: its author waits for this. */
const neverRetryMs = 60_000

/** What policies and its node say of an edge, whatever its callers may. */
type OwnRight =
  | { readonly kind: 'given' }
  /** No caller changes that. */
  | { readonly kind: 'refused'; readonly refusal: SessionRefusal }
  /** Undefined: what the node may cannot be told. */
  | { readonly kind: 'denied'; readonly node: Opinion | undefined }

export class ProvenRights implements EdgeRights {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  async judge(edge: JudgedEdge, wanted: Interest): Promise<SessionRefusal | undefined> {
    const { nodes, callers } = this.#parts
    const own = await this.#own(edge, wanted)
    if (own.kind === 'given') return undefined
    if (own.kind === 'refused') return own.refusal
    const without = await callers.judge(edge, wanted)
    if (without === undefined) return undefined
    if (own.node === undefined) {
      const sentence = `the hub cannot tell who may have it: ${nodes.why}`
      return { reason: 'busy', retryAfterMs: forbiddenRetryMs, sentence }
    }
    const why = own.node.reason === '' ? '' : ` (${own.node.reason})`
    const sentence = `node "${edge.name}" may not read ${wanted.name} by its own name${why}: ${without}`
    return { reason: 'forbidden', retryAfterMs: forbiddenRetryMs, sentence }
  }

  /**
   * Whether the edge may have it without any caller. Undefined where that cannot be told for certain: while something that could give it
   * was not read, roles that the hub may not read included.
   */
  async own(edge: JudgedEdge, wanted: Interest): Promise<boolean | undefined> {
    const { nodes, policies } = this.#parts
    const own = await this.#own(edge, wanted)
    if (own.kind === 'given') return true
    const isCertain = own.kind === 'denied' && own.node !== undefined && policies.isWhole && nodes.isKnown
    return isCertain ? false : undefined
  }

  left(edge: JudgedEdge): void {
    this.#parts.callers.left(edge)
  }

  async #own(edge: JudgedEdge, wanted: Interest): Promise<OwnRight> {
    const { trustsEdges, policies, isNamespaced = () => true } = this.#parts
    if (!policies.isKnown) await policies.first()
    if (!policies.isKnown) return { kind: 'refused', refusal: unpoliced(policies.why) }
    const rules = policies.rulesOf(edge.name)
    const never = rules.isNeverMirrored({ ...wanted, isNamespaced: isNamespaced(wanted) })
    if (never.yes) {
      const sentence = `never mirrored, by ${never.by}`
      return { kind: 'refused', refusal: { reason: 'never', retryAfterMs: neverRetryMs, sentence } }
    }
    if (trustsEdges || rules.trusts) return { kind: 'given' }
    const name = wanted.fields.required('metadata.name') ?? ''
    const { group, resource, namespace } = wanted
    if (rules.holds({ group, resource, namespace, name }).yes) return { kind: 'given' }
    const node = await this.#ofNode(edge.name, wanted)
    return node?.allowed === true ? { kind: 'given' } : { kind: 'denied', node }
  }

  /** Undefined where it cannot be told. */
  async #ofNode(edge: string, wanted: Interest): Promise<Opinion | undefined> {
    const against: (Opinion | undefined)[] = []
    for (const way of waysTo(wanted)) {
      const opinions = await Promise.all(way.map((asking) => this.#parts.nodes.judge(edge, asking)))
      if (opinions.every((one) => one?.allowed === true)) return opinions[0]
      against.push(...opinions.filter((one) => one?.allowed !== true))
    }
    if (against.includes(undefined)) return undefined
    return against.find((one) => one?.reason !== '') ?? against[0]
  }
}

/** What policies forbid is not given before they were read. */
function unpoliced(why: string): SessionRefusal {
  return {
    reason: 'busy',
    retryAfterMs: forbiddenRetryMs,
    sentence: `the hub cannot tell which policies there are: ${why}`,
  }
}
