/**
 * From a message to JSON as kube-apiserver prints the same object: members in the order of the Go struct, empty ones left
 * out where it leaves them out. Strings and keys go from buffer to buffer; no tree is built.
 */
import { Collecting, integerAt, NEXT } from './collect.ts'
import { entriesOf, KEY_END, VALUE } from './entries.ts'
import type { TypeMeta } from './enveloping.ts'
import {
  BOOL,
  BYTES,
  type Field,
  FLOAT64,
  INLINE,
  INT32,
  INT64,
  MANY,
  MAP,
  MESSAGE,
  type Message,
  ONE,
  POINTER,
  STRING,
  STRINGS,
} from './facts.ts'
import { ProtobufFault } from './fault.ts'
import { inspect } from './inspect.ts'
import { Output } from './output.ts'
import { OwnForms } from './ownforms.ts'

const openBrace = 0x7b
const closeBrace = 0x7d
const openBracket = 0x5b
const closeBracket = 0x5d
const comma = 0x2c
const quote = 0x22
const colon = 0x3a

const nothing = Buffer.from('null')
const yes = Buffer.from('true')
const no = Buffer.from('false')

export function decodeMessage(message: Message, raw: Buffer, type?: TypeMeta): Buffer {
  const decoding = idle ?? new Decoding()
  idle = undefined
  try {
    return decoding.decode(message, raw, type)
  } catch (error) {
    // Found in the order of printing; clients are told of the first in the order of the message.
    if (error instanceof ProtobufFault) inspect(message, raw)
    throw error
  } finally {
    decoding.clear()
    idle = decoding
  }
}

/** Kept for the next one, with its buffers. */
let idle: Decoding | undefined

class Decoding {
  readonly #collecting = new Collecting()
  readonly #output = new Output()
  readonly #own = new OwnForms(this.#collecting, this.#output, (message, first) => this.#message(message, first))

  decode(message: Message, raw: Buffer, type: TypeMeta | undefined): Buffer {
    const output = this.#output
    this.#collecting.start(raw)
    output.byte(openBrace)
    if (type !== undefined) {
      output.put(Buffer.from(`"kind":${JSON.stringify(type.kind)},"apiVersion":${JSON.stringify(type.apiVersion)},`))
    }
    const frame = this.#collecting.open(message, 0)
    this.#collecting.fields(message, frame, 0, raw.length)
    this.#members(message, frame)
    output.close(closeBrace)
    if (this.#collecting.overwritten) inspect(message, raw)
    return output.since(0)
  }

  clear(): void {
    this.#collecting.start(Buffer.alloc(0))
    this.#output.clear()
  }

  #message(message: Message, first: number): void {
    const output = this.#output
    if (first === 0 && message.emptyJson !== undefined) {
      output.put(message.emptyJson)
      return
    }
    const before = output.size
    const frame = this.#collecting.open(message, first)
    output.byte(openBrace)
    this.#members(message, frame)
    output.close(closeBrace)
    this.#collecting.close(frame)
    if (first === 0) message.emptyJson = output.since(before)
  }

  #members(message: Message, frame: number): void {
    const { frames } = this.#collecting
    for (const field of message.fields) {
      const cell = frame + field.slot * 2
      const a = frames.cells[cell] as number
      const b = frames.cells[cell + 1] as number
      if (field.shape === INLINE) {
        // Its own members stand in the place of its cells, of which only the first two are taken yet.
        frames.cells[cell] = 0
        frames.cells[cell + 1] = 0
        this.#collecting.pieces(field.message, cell, a)
        this.#members(field.message, cell)
      } else if (a === 0) this.#absent(field)
      else if (field.shape === MANY) this.#list(field, a)
      else if (field.shape === MAP) this.#map(field, a)
      else if (field.shape === POINTER || !field.omitEmpty || !this.#isEmpty(field, a, b)) {
        this.#output.put(field.key)
        this.#value(field, a, b)
        this.#output.byte(comma)
      }
    }
  }

  #absent(field: Field): void {
    const isNil = field.shape !== ONE || field.kind === BYTES || field.kind === STRINGS
    if (isNil || field.kind < MESSAGE ? field.omitEmpty : field.omitZero) return
    this.#output.put(field.key)
    if (isNil) this.#output.put(nothing)
    else this.#value(field, 0, 0)
    this.#output.byte(comma)
  }

  /** Of a value that is no pointer: structs are never empty to Go, but may be zero. */
  #isEmpty(field: Field, a: number, b: number): boolean {
    const { kind } = field
    if (kind === STRING || kind === BYTES) return a - 1 === b
    if (kind < FLOAT64) return Number(this.#integer(kind, a)) === 0
    return field.omitZero && this.#own.isZeroTime(field, a)
  }

  #list(field: Field, first: number): void {
    const output = this.#output
    const { frames } = this.#collecting
    output.put(field.key)
    output.byte(openBracket)
    for (let element = first; element !== 0; ) {
      const { cells } = frames
      const next = cells[element + NEXT] as number
      // One link of a chain is a value of its own here.
      cells[element + NEXT] = 0
      if (field.kind < MESSAGE) this.#value(field, (cells[element] as number) + 1, cells[element + 1] as number)
      else this.#value(field, element, element)
      output.byte(comma)
      element = next
    }
    output.close(closeBracket)
    output.byte(comma)
  }

  #map(field: Field, first: number): void {
    const output = this.#output
    output.put(field.key)
    output.byte(openBrace)
    for (const entry of entriesOf(this.#collecting, field, first)) {
      const { cells } = this.#collecting.frames
      output.string(this.#collecting.bytes, cells[entry] as number, cells[entry + KEY_END] as number)
      output.byte(colon)
      this.#value(field, cells[entry + VALUE] as number, cells[entry + VALUE + 1] as number)
      output.byte(comma)
    }
    output.close(closeBrace)
    output.byte(comma)
  }

  /** `a` is 0 where there is none; then what it is without anything in it is printed. */
  #value(field: Field, a: number, b: number): void {
    const output = this.#output
    const { bytes } = this.#collecting
    const { kind } = field
    if (kind === MESSAGE) this.#message(field.message, a)
    else if (kind === STRING) output.string(bytes, a === 0 ? 0 : a - 1, b)
    else if (kind === BOOL) output.put(a !== 0 && Number(this.#integer(BOOL, a)) !== 0 ? yes : no)
    else if (kind === INT32 || kind === INT64) output.integer(a === 0 ? 0 : this.#integer(kind, a))
    else if (kind === FLOAT64) output.ascii(printFloat(bytes.readDoubleLE(a - 1)))
    else if (kind === BYTES) {
      output.byte(quote)
      output.ascii(bytes.toString('base64', a === 0 ? 0 : a - 1, b))
      output.byte(quote)
    } else this.#own.print(field, a)
  }

  #integer(kind: number, a: number): number | bigint {
    return integerAt(this.#collecting.wire, a - 1, kind === INT32 ? 32 : 64)
  }
}

/** The shortest that is read back as the same, which both languages print alike. */
function printFloat(value: number): string {
  if (!Number.isFinite(value)) throw new ProtobufFault('json: unsupported value')
  return Object.is(value, -0) ? '-0' : String(value)
}
