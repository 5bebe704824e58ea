/**
 * Why an edge may have an interest. The link's certificate names a node: what that node may read by itself is proved by it, and
 * nothing else is. Where the hub trusts its edges the name proves all. Everything else needs the credential of a caller who may.
 */
import type { Asking } from '../../access/question.ts'
import type { Opinion } from '../../access/rbac/rbac.ts'
import type { SessionRefusal } from '../../link/session/hub.ts'
import type { Interest } from '../../mirror/interest.ts'
import type { EdgeRights } from '../peers/rights.ts'
import type { NodeRights } from './noderights.ts'

/** Callers behind an edge whose credentials the hub was shown over its link, and holds in memory. */
export interface CallerProofs {
  /** Undefined: one of them may have it; else a sentence that says why none may. */
  judge(edge: string, wanted: Interest): Promise<string | undefined>
}

/** Until hubs take credentials for interests. */
export const noCallerProofs: CallerProofs = {
  judge: () =>
    Promise.resolve('it needs the credential of a caller who may, and hubs do not take these for interests yet'),
}

type Parts = {
  readonly nodes: Pick<NodeRights, 'judge' | 'why'>
  readonly callers: CallerProofs
  readonly trustsEdges: boolean
}

/** A pod may be bound to the node a moment later. */
const forbiddenRetryMs = 10_000

export class ProvenRights implements EdgeRights {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  async judge(edge: string, wanted: Interest): Promise<SessionRefusal | undefined> {
    const { nodes, callers, trustsEdges } = this.#parts
    if (trustsEdges) return undefined
    const found = await this.#ofNode(edge, wanted)
    if (found?.allowed === true) return undefined
    const without = await callers.judge(edge, wanted)
    if (without === undefined) return undefined
    if (found === undefined) {
      const sentence = `the hub cannot tell who may have it: ${nodes.why}`
      return { reason: 'busy', retryAfterMs: forbiddenRetryMs, sentence }
    }
    const why = found.reason === '' ? '' : ` (${found.reason})`
    const sentence = `node "${edge}" may not read ${wanted.name} by its own name${why}: ${without}`
    return { reason: 'forbidden', retryAfterMs: forbiddenRetryMs, sentence }
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

/** Rights of which each, whole, is enough: to follow it is to list and watch; one object by its name is as good as got again and again. */
function waysTo({ group, version, resource, namespace, labels, fields }: Interest): readonly (readonly Asking[])[] {
  const name = fields.required('metadata.name') ?? ''
  const of = { group, version, resource, namespace, name }
  const selected = { ...of, labels: labels.toString(), fields: fields.toString() }
  const following = ['list', 'watch'].map((verb) => ({ verb, ...selected }))
  return name === '' ? [following] : [[{ verb: 'get', ...of }], following]
}
