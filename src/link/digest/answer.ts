/** The hub's side of a comparison: a pure answer to each request, and the keys whose objects the edge has to be sent. */
import { ByteReader, ByteWriter, LinkFault } from '../frames/bytes.ts'
import { comparisonBytesMax } from '../frames/frames.ts'
import type { DigestTree } from './digest.ts'
import { type ChildrenNode, decodeRequest, type EntriesNode, shortPosition, shortSum } from './messages.ts'

type Answered = {
  readonly answer: Buffer
  /** Of objects that the edge does not have, or has in another version. */
  readonly differing: readonly string[]
}

/** Throws `LinkFault` for what is no request. */
export function answerComparison(tree: DigestTree, bytes: Buffer): Answered {
  const request = decodeRequest(bytes)
  return request.form === 'children'
    ? { answer: differingChildren(tree, request.nodes, request.bits, request.fan), differing: [] }
    : differences(tree, request.nodes, request.bits)
}

/** A bit for each child, in the order of the request. */
function differingChildren(tree: DigestTree, nodes: readonly ChildrenNode[], bits: number, fan: number): Buffer {
  const answer = Buffer.alloc(Math.ceil((nodes.length * 2 ** fan) / 8))
  let at = 0
  for (const { prefix, sums } of nodes) {
    const own = tree.children(prefix, bits, fan)
    for (const [child, sum] of sums.entries()) {
      if (sum !== shortSum(own[child] as number)) answer[at >> 3]! |= 1 << (at & 7)
      at++
    }
  }
  return answer
}

/** The children that an answer names, each by its place among all of the request. */
export function readDifferingChildren(answer: Buffer, children: number): number[] {
  if (answer.length !== Math.ceil(children / 8)) throw new LinkFault('an answer to another comparison')
  const found: number[] = []
  for (let at = 0; at < children; at++) if (((answer[at >> 3] as number) >> (at & 7)) & 1) found.push(at)
  return found
}

/** The entries of the edge whose keys are not here, by their places in the request, as differences from the last. */
function differences(tree: DigestTree, nodes: readonly EntriesNode[], bits: number): Answered {
  const to = new ByteWriter(comparisonBytesMax)
  const differing: string[] = []
  let [at, before] = [0, -1]
  for (const { prefix, entries } of nodes) {
    const own = new Map<number, { readonly key: string; readonly sum: number }>()
    for (const { key, position, sum } of tree.entries(prefix, bits))
      own.set(shortPosition(position, bits), { key, sum })
    for (const { position, sum } of entries) {
      const here = own.get(position)
      if (here === undefined) {
        to.number(at - before - 1)
        before = at
      } else if (shortSum(here.sum) === sum) own.delete(position)
      at++
    }
    for (const { key } of own.values()) differing.push(key)
  }
  return { answer: to.whole(), differing }
}

export function readGone(answer: Buffer, entries: number): number[] {
  const from = new ByteReader(answer)
  const found: number[] = []
  for (let at = -1; !from.isAtEnd; ) {
    at += from.number() + 1
    if (at >= entries) throw new LinkFault('an answer to another comparison')
    found.push(at)
  }
  return found
}
