/** How values are printed whose JSON is of their own making: times, quantities, raw JSON, one thing or another. */
import { type Collecting, integerAt, NEXT } from './collect.ts'
import {
  type Field,
  INT_OR_STRING,
  type Message,
  MICRO_TIME,
  QUANTITY,
  RAW,
  SCHEMA_OR_ARRAY,
  SCHEMA_OR_BOOL,
  STRINGS,
  TIME,
} from './facts.ts'
import { ProtobufFault } from './fault.ts'
import { schemaField } from './gather.ts'
import type { Output } from './output.ts'
import { canonicalQuantity, isPlainQuantity } from './quantity.ts'
import { printSeconds, zeroSeconds } from './time.ts'

const quote = 0x22
const openBracket = 0x5b
const closeBracket = 0x5d
const comma = 0x2c

/** The cells of the first, second and third field in the frame of a message. */
const FIRST = 0
const SECOND = 2
const THIRD = 4

type Timestamp = { readonly seconds: number | bigint; readonly nanos: number }

export class OwnForms {
  readonly #collecting: Collecting
  readonly #output: Output
  /** Prints a message from the chain of its pieces. */
  readonly #message: (message: Message, first: number) => void

  constructor(collecting: Collecting, output: Output, message: (message: Message, first: number) => void) {
    this.#collecting = collecting
    this.#output = output
    this.#message = message
  }

  /** `first` is that of the chain of pieces, 0 where there are none. */
  print(field: Field, first: number): void {
    const { kind } = field
    if (kind === TIME || kind === MICRO_TIME) this.#time(kind, this.#moment(field.message, first))
    else {
      const frame = this.#collecting.open(field.message, first)
      if (kind === QUANTITY) this.#quantity(frame)
      else if (kind === RAW) this.#raw(field.message.name, frame)
      else if (kind === INT_OR_STRING) this.#intOrString(frame)
      else if (kind === STRINGS) this.#strings(this.#cell(frame + FIRST))
      else this.#schema(field, frame)
      this.#collecting.close(frame)
    }
  }

  /** Whether Go would take it for no time at all. */
  isZeroTime({ message }: Field, first: number): boolean {
    return Number(this.#moment(message, first).seconds) === zeroSeconds
  }

  /** Each piece is a time of its own, and the last counts; an empty one is none. */
  #moment(message: Message, first: number): Timestamp {
    const collecting = this.#collecting
    let moment: Timestamp = { seconds: zeroSeconds, nanos: 0 }
    for (let piece = first; piece !== 0; piece = this.#cell(piece + NEXT)) {
      const start = this.#cell(piece)
      const end = this.#cell(piece + 1)
      const frame = collecting.open(message, 0)
      collecting.fields(message, frame, start, end)
      const seconds = start === end ? zeroSeconds : this.#integer(frame + FIRST, 64)
      moment = { seconds, nanos: Number(this.#integer(frame + SECOND, 32)) }
      collecting.close(frame)
    }
    return moment
  }

  #time(kind: number, { seconds, nanos }: Timestamp): void {
    const output = this.#output
    const fine = kind === MICRO_TIME ? Math.trunc(nanos / 1000) : 0
    // What is beyond a second, or before it, moves the seconds.
    const moved = Math.floor(fine / 1e6)
    const micros = fine - moved * 1e6
    const whole = moved === 0 ? seconds : BigInt(seconds) + BigInt(moved)
    if (Number(whole) === zeroSeconds && micros === 0) {
      output.ascii('null')
      return
    }
    output.byte(quote)
    printSeconds(output, whole)
    if (kind === MICRO_TIME) output.ascii(`.${String(micros).padStart(6, '0')}`)
    output.ascii('Z"')
  }

  #quantity(frame: number): void {
    const output = this.#output
    const { bytes } = this.#collecting
    const start = this.#cell(frame + FIRST) - 1
    const end = this.#cell(frame + FIRST + 1)
    output.byte(quote)
    if (start < 0) output.byte(0x30)
    else if (isPlainQuantity(bytes, start, end)) output.copy(bytes, start, end)
    else output.ascii(canonicalQuantity(bytes.toString('utf8', start, end)))
    output.byte(quote)
  }

  #raw(name: string, frame: number): void {
    const start = this.#cell(frame + FIRST) - 1
    const end = this.#cell(frame + FIRST + 1)
    if (start < 0 || (start === end && name !== 'RawExtension')) this.#output.ascii('null')
    else this.#output.raw(this.#collecting.bytes.subarray(start, end))
  }

  #intOrString(frame: number): void {
    const { bytes } = this.#collecting
    const type = Number(this.#integer(frame + FIRST, 64))
    const start = this.#cell(frame + THIRD) - 1
    if (type === 0) this.#output.integer(this.#integer(frame + SECOND, 32))
    else if (type === 1) this.#output.string(bytes, Math.max(0, start), this.#cell(frame + THIRD + 1))
    else throw new ProtobufFault('impossible IntOrString.Type')
  }

  #strings(first: number): void {
    const output = this.#output
    output.byte(openBracket)
    for (let element = first; element !== 0; element = this.#cell(element + NEXT)) {
      output.string(this.#collecting.bytes, this.#cell(element), this.#cell(element + 1))
      output.byte(comma)
    }
    output.close(closeBracket)
  }

  #schema(field: Field, frame: number): void {
    const schema = schemaField(field.message)
    const first = this.#cell(frame + schema.slot * 2)
    const output = this.#output
    const list = field.kind === SCHEMA_OR_BOOL ? 0 : this.#cell(frame + SECOND)
    if (list !== 0 && field.kind === SCHEMA_OR_ARRAY) this.#schemas(schema.message, list)
    else if (list !== 0) this.#strings(list)
    else if (first !== 0) this.#message(schema.message, first)
    else if (field.kind === SCHEMA_OR_BOOL)
      output.ascii(Number(this.#integer(frame + FIRST, 64)) !== 0 ? 'true' : 'false')
    else output.ascii('null')
  }

  #schemas(message: Message, first: number): void {
    const output = this.#output
    output.byte(openBracket)
    for (let element = first; element !== 0; ) {
      const next = this.#cell(element + NEXT)
      this.#collecting.frames.cells[element + NEXT] = 0
      this.#message(message, element)
      output.byte(comma)
      element = next
    }
    output.close(closeBracket)
  }

  #integer(cell: number, bits: 32 | 64): number | bigint {
    const start = this.#cell(cell)
    return start === 0 ? 0 : integerAt(this.#collecting.wire, start - 1, bits)
  }

  #cell(at: number): number {
    return this.#collecting.frames.cells[at] as number
  }
}
