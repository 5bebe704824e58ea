/**
 * What the two sides of a comparison say. A request is about nodes of one depth: either the sums of their children, of which
 * the answer says which differ, or what stands in them, of which the answer says what is gone. It comes from the other side,
 * so that every number in it is checked, and nodes go up: none is asked about twice.
 */
import { ByteReader, ByteWriter, LinkFault } from '../frames/bytes.ts'
import { comparisonBytesMax } from '../frames/frames.ts'
import { positionBits } from './digest.ts'

/** Of a sum, where nodes are compared on the way: a difference that this does not show is shown by the roots at the end. */
export const sumBytes = 4
const sumModulus = 2 ** (8 * sumBytes)
/** Children of one node at most: their sums take a third of a request. */
const fanMax = 12
/** Nodes are not smaller than this: what stands in them is named instead. */
const bitsMax = positionBits - 16

export type NamedEntry = { readonly position: number; readonly sum: number }
export type ChildrenNode = { readonly prefix: number; readonly sums: readonly number[] }
export type EntriesNode = { readonly prefix: number; readonly entries: readonly NamedEntry[] }
export type ComparisonRequest =
  | { readonly form: 'children'; readonly bits: number; readonly fan: number; readonly nodes: readonly ChildrenNode[] }
  | { readonly form: 'entries'; readonly bits: number; readonly nodes: readonly EntriesNode[] }

/** As it is sent. */
export function shortSum(sum: number): number {
  return sum % sumModulus
}

/** Of a position in a node of so many bits: the rest is told by the node. */
export function positionBytes(bits: number): number {
  return Math.ceil((positionBits - bits) / 8)
}

export function shortPosition(position: number, bits: number): number {
  return position % 2 ** (8 * positionBytes(bits))
}

export function encodeRequest(request: ComparisonRequest): Buffer {
  const to = new ByteWriter(comparisonBytesMax)
  to.byte(request.form === 'children' ? 0 : 1)
  to.number(request.bits)
  if (request.form === 'children') to.number(request.fan)
  to.number(request.nodes.length)
  let before = -1
  for (const { prefix } of request.nodes) {
    to.number(prefix - before - 1)
    before = prefix
  }
  if (request.form === 'children') {
    for (const { sums } of request.nodes) for (const sum of sums) to.raw(fixed(shortSum(sum), sumBytes))
    return to.whole()
  }
  const short = positionBytes(request.bits)
  for (const { entries } of request.nodes) {
    to.number(entries.length)
    for (const { position, sum } of entries) {
      to.raw(fixed(shortPosition(position, request.bits), short))
      to.raw(fixed(shortSum(sum), sumBytes))
    }
  }
  return to.whole()
}

/** Positions and sums are the short ones. */
export function decodeRequest(bytes: Buffer): ComparisonRequest {
  if (bytes.length > comparisonBytesMax) throw new LinkFault(`a comparison of ${bytes.length} bytes`)
  const from = new ByteReader(bytes)
  const form = from.byte()
  const bits = from.number()
  const fan = form === 0 ? from.number() : 0
  if (form > 1 || fan > fanMax || bits + fan > bitsMax) throw new LinkFault('no such comparison')
  const count = from.number()
  const prefixes: number[] = []
  let before = -1
  for (let at = 0; at < count; at++) {
    before += from.number() + 1
    if (before >= 2 ** bits) throw new LinkFault('a comparison of a node that there is not')
    prefixes.push(before)
  }
  if (form === 0) {
    const nodes = prefixes.map((prefix) => ({ prefix, sums: several(2 ** fan, () => readFixed(from, sumBytes)) }))
    return { form: 'children', bits, fan, nodes }
  }
  const short = positionBytes(bits)
  const entry = () => ({ position: readFixed(from, short), sum: readFixed(from, sumBytes) })
  const nodes = prefixes.map((prefix) => ({ prefix, entries: several(from.number(), entry) }))
  return { form: 'entries', bits, nodes }
}

function fixed(value: number, length: number): Buffer {
  const bytes = Buffer.allocUnsafe(length)
  bytes.writeUIntLE(value, 0, length)
  return bytes
}

function readFixed(from: ByteReader, length: number): number {
  return from.raw(length).readUIntLE(0, length)
}

/** A false count runs into the end. */
function several<One>(count: number, read: () => One): One[] {
  const found: One[] = []
  for (let at = 0; at < count; at++) found.push(read())
  return found
}
