/**
 * The wire form of protocol buffers as Go's generated readers take it: numbers of up to ten bytes of which 64 bits count,
 * lengths that must lie within the message, groups only to be passed over. Nothing is allocated for what a message claims,
 * and every step goes forward.
 */
import { negativeLength, overflow, ProtobufFault, unexpectedEnd } from './fault.ts'

const varintBytesMax = 10
const two63 = 2 ** 63

export class WireReader {
  bytes: Buffer = Buffer.alloc(0)
  at = 0
  /** Of the field whose tag was read last. */
  wireType = 0

  /** A length or tag: exact up to 2^53; what lies beyond stays beyond. */
  varint(end: number): number {
    const { bytes } = this
    let at = this.at
    let byte = at < end ? (bytes[at++] as number) : endless()
    let value = byte & 0x7f
    let weight = 128
    for (let count = 1; byte >= 0x80; count++) {
      if (count === varintBytesMax) throw overflow()
      byte = at < end ? (bytes[at++] as number) : endless()
      value += (count === varintBytesMax - 1 ? byte & 1 : byte & 0x7f) * weight
      weight *= 128
    }
    this.at = at
    return value
  }

  /** All 64 bits. */
  uint64(end: number): bigint {
    const from = this.at
    this.passVarint(end)
    let value = 0n
    for (let at = this.at - 1; at >= from; at--) value = (value << 7n) | BigInt((this.bytes[at] as number) & 0x7f)
    return BigInt.asUintN(64, value)
  }

  passVarint(end: number): void {
    for (let count = 0; ; count++) {
      if (count === varintBytesMax) throw overflow()
      if (this.at >= end) throw unexpectedEnd()
      if ((this.bytes[this.at++] as number) < 0x80) return
    }
  }

  /** Reads a length; answers where that many bytes end. */
  length(end: number): number {
    const length = this.varint(end)
    if (length >= two63) throw negativeLength()
    const to = this.at + length
    if (to > end) throw unexpectedEnd()
    return to
  }

  fixed64(end: number): void {
    if (this.at + 8 > end) throw unexpectedEnd()
    this.at += 8
  }

  /** The number of the next field, and its wire type in `wireType`; `name` is that of the message, for faults. */
  tag(end: number, name: string): number {
    const first = this.bytes[this.at] as number
    if (first < 0x80 && first > 7 && (first & 7) !== 4) {
      this.at++
      this.wireType = first & 7
      return first >> 3
    }
    const second = this.bytes[this.at + 1] as number
    if (first >= 0x80 && second < 0x80 && second > 0 && (first & 7) !== 4 && this.at + 1 < end) {
      this.at += 2
      this.wireType = first & 7
      return ((first & 0x7f) >> 3) | (second << 4)
    }
    return this.#longTag(end, name)
  }

  /** What is longer than any of ours, or at fault. */
  #longTag(end: number, name: string): number {
    const tag = this.uint64(end)
    this.wireType = Number(tag & 7n)
    const number = Number(BigInt.asIntN(32, tag >> 3n))
    if (this.wireType === 4) throw new ProtobufFault(`proto: ${name}: wiretype end group for non-group`)
    if (number <= 0) throw new ProtobufFault(`proto: ${name}: illegal tag ${number} (wire type ${tag})`)
    return number
  }

  /** The number of the next field, whatever it is. */
  number(end: number): number {
    const first = this.bytes[this.at] as number
    if (first >= 0x80) return Number(BigInt.asIntN(32, this.uint64(end) >> 3n))
    this.at++
    return first >> 3
  }

  expect(wireType: number, goName: string): void {
    if (this.wireType !== wireType) {
      throw new ProtobufFault(`proto: wrong wireType = ${this.wireType} for field ${goName}`)
    }
  }

  /** Passes over the field that begins at `start`, over all of it if it is a group; it may not go beyond `limit`. */
  skip(start: number, end: number, limit = end): void {
    this.at = start
    let depth = 0
    do {
      if (this.at >= end) throw unexpectedEnd()
      const wireType = (this.bytes[this.at] as number) & 7
      this.passVarint(end)
      if (wireType === 0) this.passVarint(end)
      else if (wireType === 1) this.at += 8
      else if (wireType === 2) this.#pass(end)
      else if (wireType === 3) depth++
      else if (wireType === 4) depth = closed(depth)
      else if (wireType === 5) this.at += 4
      else throw new ProtobufFault(`proto: illegal wireType ${wireType}`)
    } while (depth > 0)
    if (this.at > limit) throw unexpectedEnd()
  }

  /** Over a length and as many bytes as it claims. */
  #pass(end: number): void {
    const length = this.varint(end)
    if (length >= two63) throw negativeLength()
    this.at += length
  }
}

function endless(): never {
  throw unexpectedEnd()
}

function closed(depth: number): number {
  if (depth === 0) throw new ProtobufFault('proto: unexpected end of group')
  return depth - 1
}
