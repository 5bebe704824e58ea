/**
 * Why an edge may have an interest. The link's certificate names a node: what that node may read by itself is proved by it, and
 * nothing else is. Where the hub trusts its edges the name proves all. Everything else needs the credential of a caller who may.
 */
import type { Opinion } from '../../access/rbac/rbac.ts'
import type { SessionRefusal } from '../../link/session/hub.ts'
import type { Interest } from '../../mirror/interest.ts'
import type { EdgeRights, JudgedEdge } from '../peers/rights.ts'
import type { CallerProofs } from './callerproofs.ts'
import type { NodeRights } from './noderights.ts'
import { waysTo } from './waysto.ts'

type Parts = {
  readonly nodes: Pick<NodeRights, 'judge' | 'why'>
  /** Callers behind an edge whose credentials the hub was shown over its link. */
  readonly callers: Pick<CallerProofs, 'judge' | 'left'>
  readonly trustsEdges: boolean
}

/** A pod may be bound to the node a moment later. */
const forbiddenRetryMs = 10_000

export class ProvenRights implements EdgeRights {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  async judge(edge: JudgedEdge, wanted: Interest): Promise<SessionRefusal | undefined> {
    const { nodes, callers, trustsEdges } = this.#parts
    if (trustsEdges) return undefined
    const found = await this.#ofNode(edge.name, wanted)
    if (found?.allowed === true) return undefined
    const without = await callers.judge(edge, wanted)
    if (without === undefined) return undefined
    if (found === undefined) {
      const sentence = `the hub cannot tell who may have it: ${nodes.why}`
      return { reason: 'busy', retryAfterMs: forbiddenRetryMs, sentence }
    }
    const why = found.reason === '' ? '' : ` (${found.reason})`
    const sentence = `node "${edge.name}" may not read ${wanted.name} by its own name${why}: ${without}`
    return { reason: 'forbidden', retryAfterMs: forbiddenRetryMs, sentence }
  }

  left(edge: JudgedEdge): void {
    this.#parts.callers.left(edge)
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
