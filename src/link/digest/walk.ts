/**
 * The edge's side of a comparison: requests one after the other, narrowed by each answer to the nodes that differ, until
 * what stands in them has been named. What the hub then sends and what is gone make the copies equal; roots compared at the
 * end say whether they are. The tree must not change meanwhile.
 */
import { LinkFault } from '../frames/bytes.ts'
import { comparisonBytesMax } from '../frames/frames.ts'
import { readDifferingChildren, readGone } from './answer.ts'
import type { DigestTree } from './digest.ts'
import { type ComparisonRequest, encodeRequest, positionBytes, sumBytes } from './messages.ts'

export type WalkPlan = {
  /** A node that holds no more than these on average names them. */
  readonly entriesMax: number
  /** What a child should hold on average. */
  readonly childEntries: number
  /** Children of the root at most, as a power of 2, and of any other node. */
  readonly rootFanMax: number
  readonly fanMax: number
}

/** Chosen by measuring; `docs/link.md` has the table. */
const measured: WalkPlan = { entriesMax: 8, childEntries: 4, rootFanMax: 8, fanMax: 4 }

/** Beside what a node names: its prefix, its count, and the head of a request shared by all of them. */
const nodeBytes = 12

type Depth = { readonly bits: number; readonly prefixes: number[] }
type Asked = { readonly request: ComparisonRequest; readonly keys: readonly string[] }

export class DigestWalk {
  readonly #tree: DigestTree
  readonly #plan: WalkPlan
  /** What is still to be asked about: the deepest last. */
  readonly #open: Depth[] = [{ bits: 0, prefixes: [0] }]
  #asked: Asked | undefined
  readonly #gone: string[] = []

  constructor(tree: DigestTree, plan = measured) {
    this.#tree = tree
    this.#plan = plan
  }

  /** Keys that the other side does not have; whole when `next` has returned undefined. */
  get gone(): readonly string[] {
    return this.#gone
  }

  /** The next request, or undefined when everything is known. `answer` is that to the last one; throws `LinkFault` if it is not. */
  next(answer?: Buffer): Buffer | undefined {
    if (this.#asked !== undefined) this.#take(this.#asked, answer)
    const depth = this.#open.at(-1)
    if (depth === undefined) {
      this.#asked = undefined
      return undefined
    }
    const asked = this.#ask(depth)
    if (depth.prefixes.length === 0) this.#open.splice(this.#open.indexOf(depth), 1)
    this.#asked = asked
    return encodeRequest(asked.request)
  }

  #take({ request, keys }: Asked, answer: Buffer | undefined): void {
    if (answer === undefined) throw new LinkFault('no answer')
    if (request.form === 'entries') {
      for (const at of readGone(answer, keys.length)) this.#gone.push(keys[at] as string)
      return
    }
    const width = 2 ** request.fan
    const prefixes = readDifferingChildren(answer, request.nodes.length * width).map((at) => {
      const node = request.nodes[Math.floor(at / width)] as { readonly prefix: number }
      return node.prefix * width + (at % width)
    })
    if (prefixes.length > 0) this.#open.push({ bits: request.bits + request.fan, prefixes })
  }

  /** As many nodes as a request has room for are taken off. */
  #ask(depth: Depth): Asked {
    const { bits, prefixes } = depth
    const average = this.#tree.size / 2 ** bits
    if (average > this.#plan.entriesMax) return { request: this.#childrenOf(depth, average), keys: [] }
    const nodes: { prefix: number; entries: { position: number; sum: number }[] }[] = []
    const keys: string[] = []
    const entryBytes = positionBytes(bits) + sumBytes
    let room = comparisonBytesMax - nodeBytes
    for (let prefix = prefixes[0]; prefix !== undefined; prefix = prefixes[0]) {
      const entries = [...this.#tree.entries(prefix, bits)]
      room -= entries.length * entryBytes + nodeBytes
      if (room < 0 && nodes.length > 0) break
      prefixes.shift()
      for (const { key } of entries) keys.push(key)
      nodes.push({ prefix, entries })
    }
    return { request: { form: 'entries', bits, nodes }, keys }
  }

  #childrenOf({ bits, prefixes }: Depth, average: number): ComparisonRequest {
    const { childEntries, rootFanMax, fanMax } = this.#plan
    const wanted = Math.ceil(Math.log2(average / childEntries))
    const fan = Math.max(1, Math.min(wanted, bits === 0 ? rootFanMax : fanMax))
    const room = Math.max(1, Math.floor(comparisonBytesMax / (2 ** fan * sumBytes + nodeBytes)))
    const nodes = prefixes
      .splice(0, room)
      .map((prefix) => ({ prefix, sums: [...this.#tree.children(prefix, bits, fan)] }))
    return { form: 'children', bits, fan, nodes }
  }
}
