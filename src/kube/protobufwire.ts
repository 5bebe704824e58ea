/**
 * The wire form of protocol buffers, as far as reading a few fields needs it. A length is believed only when that many
 * bytes are there, nothing is allocated for what a message claims, and every step goes forward.
 */

/** The bytes are no message of the form expected. */
export class ProtobufFault extends Error {}

/** Seven bits each make 64. */
const varintBytesMax = 10
const fieldMax = 2 ** 29 - 1

/** Shows the fields of a message in turn; `visit` takes the value of each, or skips it. */
export function eachField(message: Buffer, visit: (field: WireField) => void): void {
  const field = new WireField(message)
  while (field.next()) {
    visit(field)
    field.skip()
  }
}

/** Where a reader stands in a message. */
class WireField {
  readonly #message: Buffer
  #at = 0
  #wire = 0
  /** Whether the value has been taken. */
  #taken = true
  number = 0

  constructor(message: Buffer) {
    this.#message = message
  }

  /** Whether there is another field. */
  next(): boolean {
    if (this.#at === this.#message.length) return false
    const key = this.#varint()
    this.#wire = key % 8
    this.number = Math.floor(key / 8)
    if (this.number < 1 || this.number > fieldMax) throw new ProtobufFault('a field number out of range')
    this.#taken = false
    return true
  }

  /** Of a string, bytes or a message: a view, not a copy. */
  bytes(): Buffer {
    this.#expect(2)
    return this.#take(this.#varint())
  }

  text(): string {
    return this.bytes().toString('utf8')
  }

  /** What no caller of ours could use is a fault: negative numbers, and those that JavaScript cannot hold. */
  integer(): number {
    this.#expect(0)
    const value = this.#varint()
    if (!Number.isSafeInteger(value)) throw new ProtobufFault(`field ${this.number} is beyond any real value`)
    return value
  }

  /** Passes over the value, unless it has been taken. */
  skip(): void {
    if (this.#taken) return
    this.#taken = true
    if (this.#wire === 0) this.#varint()
    else if (this.#wire === 1) this.#take(8)
    else if (this.#wire === 2) this.#take(this.#varint())
    else if (this.#wire === 5) this.#take(4)
    // Groups are of a time before Kubernetes.
    else throw new ProtobufFault('a wire type that no message has')
  }

  #expect(wire: number): void {
    if (this.#wire !== wire) throw new ProtobufFault(`field ${this.number} is of another type`)
    this.#taken = true
  }

  #take(length: number): Buffer {
    const start = this.#at
    if (length > this.#message.length - start) throw new ProtobufFault('a field runs past the end')
    this.#at = start + length
    return this.#message.subarray(start, this.#at)
  }

  /** Exact up to 2^53; what lies beyond stays beyond. */
  #varint(): number {
    let value = 0
    let weight = 1
    for (let i = 0; i < varintBytesMax; i++) {
      if (this.#at >= this.#message.length) throw new ProtobufFault('a number is cut')
      const byte = this.#message[this.#at++] as number
      value += (byte & 0x7f) * weight
      if (byte < 0x80) return value
      weight *= 128
    }
    throw new ProtobufFault('a number of more than 64 bits')
  }
}
