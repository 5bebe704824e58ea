/**
 * From an object's JSON bytes to its message, byte for byte as kube-apiserver writes it: fields in the order of their
 * numbers; what is no pointer in Go always, even when empty; maps by key. First everything is found (gather.ts), then the
 * message is written from its end (writer.ts).
 */
import { ScanFault } from '../json/scan.ts'
import {
  BOOL,
  BYTES,
  type Field,
  FLOAT64,
  INLINE,
  INT_OR_STRING,
  INT32,
  INT64,
  MANY,
  MAP,
  MESSAGE,
  type Message,
  MICRO_TIME,
  POINTER,
  QUANTITY,
  RAW,
  SCHEMA_OR_ARRAY,
  SCHEMA_OR_BOOL,
  STRING,
  STRINGS,
  TIME,
} from './facts.ts'
import { ProtobufFault } from './fault.ts'
import { Frames } from './frames.ts'
import { ENTRY_BEFORE, ENTRY_VALUE, FieldGatherer, schemaField } from './gather.ts'
import { Leaves } from './leaves.ts'
import { ProtobufWriter } from './writer.ts'

const FIRST = 0x0a
const SECOND = 0x12

const nothing = Buffer.alloc(0)

export function encodeMessage(message: Message, json: Buffer): Buffer {
  const encoding = idle ?? new Encoding()
  idle = undefined
  try {
    return encoding.encode(message, json)
  } catch (error) {
    if (error instanceof ScanFault) throw new ProtobufFault(error.message)
    throw error
  } finally {
    encoding.clear()
    idle = encoding
  }
}

/** Kept for the next one, with its buffers. */
let idle: Encoding | undefined

class Encoding {
  readonly #frames = new Frames()
  readonly #gathering = new FieldGatherer(this.#frames)
  readonly #writer = new ProtobufWriter()
  readonly #leaves = new Leaves(this.#writer)

  encode(message: Message, json: Buffer): Buffer {
    this.#leaves.start(json)
    const frame = this.#gathering.object(message, json)
    this.#fields(message, frame)
    return this.#writer.done()
  }

  clear(): void {
    this.#leaves.start(nothing)
    this.#gathering.json = nothing
    this.#frames.clear()
    this.#writer.clear()
  }

  #fields(message: Message, frame: number): void {
    const { byNumber } = message
    const writer = this.#writer
    for (let i = byNumber.length - 1; i >= 0; i--) {
      const field = byNumber[i] as Field
      const { cells } = this.#frames
      const cell = frame + field.slot * 2
      const a = cells[cell] as number
      if (field.shape === MANY) this.#list(field, a)
      else if (field.shape === MAP) this.#map(field, a, cells[cell + 1] as number)
      else if (field.shape === INLINE) {
        const before = writer.size
        this.#fields(field.message, cell)
        writer.length(before)
        writer.tag(field.tag)
      } else if (a !== 0 || !(field.shape === POINTER || field.kind === BYTES || field.kind === STRINGS)) {
        this.#value(field, a, cells[cell + 1] as number)
        writer.tag(field.tag)
      }
    }
  }

  #list(field: Field, last: number): void {
    for (let element = last; element > 0; element = this.#frames.cells[element + 2] as number) {
      const { cells } = this.#frames
      this.#value(field, cells[element] as number, cells[element + 1] as number)
      this.#writer.tag(field.tag)
    }
  }

  #map(field: Field, last: number, unordered: number): void {
    if (unordered) {
      for (const entry of this.#ordered(last)) this.#entry(field, entry)
    } else
      for (let entry = last; entry > 0; entry = this.#frames.cells[entry + ENTRY_BEFORE] as number) {
        this.#entry(field, entry)
      }
  }

  #entry(field: Field, entry: number): void {
    const writer = this.#writer
    const { cells } = this.#frames
    const before = writer.size
    const a = cells[entry + ENTRY_VALUE] as number
    // No bytes at all are not even written as empty.
    if (a !== 0 || field.kind !== BYTES) {
      this.#value(field, a, cells[entry + ENTRY_VALUE + 1] as number)
      writer.byte(SECOND)
    }
    this.#leaves.string(cells[entry] as number, cells[entry + 1] as number)
    writer.byte(FIRST)
    writer.length(before)
    writer.tag(field.tag)
  }

  /** From the last key to the first; of those given twice the later counts. Bytes as characters are ordered like bytes. */
  #ordered(last: number): number[] {
    const { cells } = this.#frames
    const entries = new Map<string, number>()
    for (let entry = last; entry > 0; entry = cells[entry + ENTRY_BEFORE] as number) {
      const key = this.#leaves.key(cells[entry] as number, cells[entry + 1] as number)
      if (!entries.has(key)) entries.set(key, entry)
    }
    const keys = [...entries.keys()].sort().reverse()
    return keys.map((key) => entries.get(key) as number)
  }

  /** A value and, where it has one, its length; `a` is 0 where there is none. */
  #value(field: Field, a: number, b: number): void {
    const writer = this.#writer
    writer.room(0)
    const { kind } = field
    if (kind === STRING) this.#leaves.string(a, b)
    else if (kind === BOOL) writer.byte(b)
    else if (kind === INT32 || kind === INT64) this.#leaves.integer(kind, a, b)
    else if (kind === FLOAT64) writer.double(this.#leaves.number(a, b))
    else {
      const before = writer.size
      if (kind === MESSAGE) this.#message(field.message, a)
      else this.#content(field, a, b)
      writer.length(before)
    }
  }

  #message(message: Message, frame: number): void {
    if (frame !== 0) {
      this.#fields(message, frame)
      return
    }
    if (message.empty === undefined) {
      const before = this.#writer.size
      this.#fields(message, this.#frames.take(message.slots * 2))
      message.empty = this.#writer.since(before)
    } else this.#writer.copy(message.empty, 0, message.empty.length)
  }

  /** What is inside a message of its own making. */
  #content(field: Field, a: number, b: number): void {
    const { kind } = field
    if (kind === BYTES) this.#leaves.bytes(a, b)
    else if (kind === TIME || kind === MICRO_TIME) this.#leaves.time(kind, a, b)
    else if (kind === QUANTITY) this.#leaves.quantity(a, b)
    else if (kind === RAW) this.#leaves.raw(a, b)
    else if (kind === INT_OR_STRING) this.#leaves.intOrString(a, b)
    else if (kind === STRINGS) this.#strings(a, FIRST)
    else this.#schema(field, a, b)
  }

  #strings(last: number, tag: number): void {
    for (let element = last; element > 0; element = this.#frames.cells[element + 2] as number) {
      const { cells } = this.#frames
      this.#leaves.string(cells[element] as number, cells[element + 1] as number)
      this.#writer.byte(tag)
    }
  }

  #schema(field: Field, a: number, b: number): void {
    const writer = this.#writer
    const schema = schemaField(field.message)
    const isSchema = a > 0 && b === 1
    if (isSchema) {
      const before = writer.size
      this.#fields(schema.message, a)
      writer.length(before)
      writer.tag(schema.tag)
    } else if (field.kind === SCHEMA_OR_ARRAY && a > 0) {
      this.#list(field.message.numbered[2] as Field, a)
    } else if (field.kind !== SCHEMA_OR_BOOL) this.#strings(a, SECOND)
    if (field.kind === SCHEMA_OR_BOOL) {
      writer.byte(b)
      writer.byte(0x08)
    }
  }
}
