/**
 * Reads a message in the order in which Go's readers go through it, down into every field before the next: where something
 * is wrong with it, the first fault is the one that kube-apiserver names; and what is overwritten may be at fault, too.
 */
import { BOOL, type Field, FLOAT64, INT32, INT64, MANY, MAP, MESSAGE, type Message, QUANTITY } from './facts.ts'
import { ProtobufFault } from './fault.ts'
import { canonicalQuantity } from './quantity.ts'
import { WireReader } from './wire.ts'

/** As deep as messages are read. */
const depthMax = 1000

/** Throws the first fault, if it finds one. */
export function inspect(message: Message, raw: Buffer): void {
  const wire = new WireReader()
  wire.bytes = raw
  new Inspection(wire).message(message, raw.length)
}

class Inspection {
  readonly #wire: WireReader
  #depth = 0

  constructor(wire: WireReader) {
    this.#wire = wire
  }

  message(message: Message, end: number): void {
    const wire = this.#wire
    if (++this.#depth > depthMax) throw new ProtobufFault('an object deeper than any that can be stored')
    while (wire.at < end) {
      const before = wire.at
      const field = message.numbered[wire.tag(end, message.name)]
      if (field === undefined) wire.skip(before, end)
      else this.#field(field, end)
    }
    this.#depth--
  }

  #field(field: Field, end: number): void {
    const wire = this.#wire
    const { kind, shape } = field
    if (kind === BOOL || kind === INT32 || kind === INT64) {
      if (shape === MANY && wire.wireType === 2) {
        const to = wire.length(end)
        while (wire.at < to) wire.passVarint(end)
        return
      }
      wire.expect(0, field.goName)
      wire.passVarint(end)
    } else if (kind === FLOAT64) {
      wire.expect(1, field.goName)
      wire.fixed64(end)
    } else {
      wire.expect(2, field.goName)
      const to = wire.length(end)
      if (shape === MAP) this.#entry(field, to, end)
      else this.#content(field, to)
      wire.at = to
    }
  }

  /** A key or value may claim more than its entry, as long as the message goes on. */
  #entry(field: Field, to: number, end: number): void {
    const wire = this.#wire
    while (wire.at < to) {
      const before = wire.at
      const number = wire.number(end)
      if (number === 1 || number === 2) {
        const valueEnd = wire.length(end)
        if (number === 2) this.#content(field, valueEnd)
        wire.at = valueEnd
      } else wire.skip(before, end, to)
    }
  }

  #content(field: Field, to: number): void {
    if (field.kind === QUANTITY) this.#quantity(to)
    else if (field.kind >= MESSAGE) this.message(field.message, to)
  }

  /** Its text is understood as soon as it is read. */
  #quantity(end: number): void {
    const wire = this.#wire
    while (wire.at < end) {
      const before = wire.at
      if (wire.tag(end, 'Quantity') === 1) {
        wire.expect(2, 'String_')
        const to = wire.length(end)
        canonicalQuantity(wire.bytes.toString('utf8', wire.at, to))
        wire.at = to
      } else wire.skip(before, end)
    }
  }
}
