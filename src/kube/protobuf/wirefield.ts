/** The fields of a message one after another, for a reader that wants a few of them and knows their numbers. */
import { ProtobufFault } from './fault.ts'
import { WireReader } from './wire.ts'

/** Shows the fields in turn; `visit` takes the value of each, or leaves it. */
export function eachField(message: Buffer, visit: (field: WireField) => void): void {
  const wire = new WireReader()
  wire.bytes = message
  while (wire.at < message.length) {
    const start = wire.at
    visit(new WireField(wire, message.length))
    wire.skip(start, message.length)
  }
}

/** The field at which a reader stands. */
export class WireField {
  readonly #wire: WireReader
  readonly #end: number
  readonly number: number

  constructor(wire: WireReader, end: number) {
    this.#wire = wire
    this.#end = end
    this.number = wire.tag(end, 'message')
  }

  /** Of a string, bytes or a message: a view, not a copy. */
  bytes(): Buffer {
    const wire = this.#wire
    wire.expect(2, String(this.number))
    const to = wire.length(this.#end)
    return wire.bytes.subarray(wire.at, to)
  }

  text(): string {
    return this.bytes().toString('utf8')
  }

  /** What no caller of ours could use is a fault: negative numbers, and those that JavaScript cannot hold. */
  integer(): number {
    this.#wire.expect(0, String(this.number))
    const value = this.#wire.varint(this.#end)
    if (!Number.isSafeInteger(value)) throw new ProtobufFault(`field ${this.number} is beyond any real value`)
    return value
  }
}
