/**
 * Passes over an object's JSON bytes once and notes in frames where the value of each field stands; nothing is copied or
 * converted yet. Members that the message does not have are passed over, as Kubernetes' own reader does.
 */
import { skipValue } from '../json/scan.ts'
import { backslash, closeBracket, comma, openBrace, openBracket, quote, skipSpace } from '../json/wellformed.ts'
import {
  BOOL,
  BYTES,
  type Field,
  FLOAT64,
  hashOf,
  hashStart,
  hashStep,
  INT32,
  INT64,
  MANY,
  MAP,
  MESSAGE,
  type Message,
  MICRO_TIME,
  SCHEMA_OR_ARRAY,
  SCHEMA_OR_BOOL,
  SCHEMA_OR_STRINGS,
  STRING,
  STRINGS,
  TIME,
} from './facts.ts'
import { ProtobufFault } from './fault.ts'
import type { Frames } from './frames.ts'

/** Only schemas hold themselves; as deep as our own JSON reader goes. */
const depthMax = 1000

const closeBrace = 0x7d
const colon = 0x3a
const letterN = 0x6e
const letterT = 0x74
const letterF = 0x66

/** The cells of an element of a chain: its value in two, and the one before it. */
const BEFORE = 2
/** Those of a map's entry: where its key stands, its value, and the one before it. */
export const ENTRY_VALUE = 2
export const ENTRY_BEFORE = 4

/** What a present list, empty or not a list, has for its last element. */
const NONE = -1

/**
 * What the two cells of a value say, the first being 0 where there is none or it is null:
 * - strings and bytes: where the text begins and ends between its quotes, the end negated if there are escapes in it;
 * - times and quantities: the same, and a number as it stands;
 * - numbers, raw JSON, ints or strings: where they begin and end;
 * - booleans: 1, and their value;
 * - messages: their frame;
 * - lists: their last element, or NONE; maps: the last entry, and 1 if their keys do not come in order;
 * - schemas or something else: a frame and 1, or a list and 2, or NONE and the boolean.
 */
export class FieldGatherer {
  readonly frames: Frames
  json: Buffer = Buffer.alloc(0)
  #at = 0
  #depth = 0
  /** The two cells of the value passed last. */
  #a = 0
  #b = 0

  constructor(frames: Frames) {
    this.frames = frames
  }

  /** Answers the frame. */
  object(message: Message, json: Buffer): number {
    this.json = json
    this.#at = skipSpace(json, 0)
    this.#depth = 0
    return this.#message(message)
  }

  #message(message: Message): number {
    const json = this.json
    if (++this.#depth > depthMax) throw new ProtobufFault('an object deeper than any that can be stored')
    const frame = this.frames.take(message.slots * 2)
    if (!this.#open(openBrace, closeBrace)) {
      this.#depth--
      return frame
    }
    do {
      const from = this.#at + 1
      let hash = hashStart
      let at = from
      let byte = json[at] as number
      if (json[this.#at] !== quote) throw this.#fault('no member name')
      while (byte !== quote && byte !== backslash && at < json.length) {
        hash = hashStep(hash, byte)
        byte = json[++at] as number
      }
      const member = byte === quote ? message.member(json, from, at, hash) : this.#escapedMember(message, from)
      if (byte !== quote) at = skipValue(json, from - 1) - 1
      this.#at = at + 1
      this.#colon()
      if (member === undefined) this.#at = skipValue(json, this.#at)
      else this.#field(member.field, frame + member.slot * 2)
    } while (this.#more(closeBrace))
    this.#depth--
    return frame
  }

  #escapedMember(message: Message, from: number) {
    const name = Buffer.from(unescaped(this.json, from, skipValue(this.json, from - 1) - 1))
    return message.member(name, 0, name.length, hashOf(name))
  }

  #field(field: Field, cell: number): void {
    if (field.shape === MANY) this.#list(field.kind, field)
    else if (field.shape === MAP) this.#map(field)
    else this.#value(field.kind, field)
    const { cells } = this.frames
    cells[cell] = this.#a
    cells[cell + 1] = this.#b
  }

  #value(kind: number, field: Field): void {
    const { json } = this
    const start = this.#at
    const first = json[start]
    if (first === letterN) this.#none()
    else if (kind === MESSAGE) {
      this.#a = this.#message(field.message)
      this.#b = 0
    } else if (kind === STRING || kind === BYTES || kind === TIME || kind === MICRO_TIME) this.#string()
    else if (kind === BOOL) this.#boolean()
    else if (kind === INT32 || kind === INT64 || kind === FLOAT64) {
      if (first === quote || first === openBrace || first === openBracket) throw this.#fault('no number')
      this.#span()
    } else if (kind === STRINGS) this.#list(STRING, field)
    else if (kind >= SCHEMA_OR_ARRAY) this.#schema(kind, field)
    // Quantities, ints or strings, raw JSON.
    else this.#span()
  }

  #none(): void {
    this.#at = skipValue(this.json, this.#at)
    this.#a = 0
    this.#b = 0
  }

  #span(): void {
    this.#a = this.#at
    this.#b = this.#at = skipValue(this.json, this.#at)
  }

  #string(): void {
    const { json } = this
    if (json[this.#at] !== quote) throw this.#fault('no string')
    const start = this.#at + 1
    let at = start
    for (;;) {
      const byte = json[at]
      if (byte === quote) break
      if (byte === backslash) {
        this.#at = skipValue(json, start - 1)
        this.#a = start
        this.#b = -(this.#at - 1)
        return
      }
      if (byte === undefined) throw this.#fault('no end of a string')
      at++
    }
    this.#a = start
    this.#b = at
    this.#at = at + 1
  }

  #boolean(): void {
    const first = this.json[this.#at]
    if (first !== letterT && first !== letterF) throw this.#fault('no boolean')
    this.#at = skipValue(this.json, this.#at)
    this.#a = 1
    this.#b = first === letterT ? 1 : 0
  }

  #list(kind: number, field: Field): void {
    if (this.json[this.#at] === letterN) {
      this.#none()
      return
    }
    let last = NONE
    if (this.#open(openBracket, closeBracket)) {
      do {
        this.#value(kind, field)
        const element = this.frames.take(BEFORE + 1)
        const { cells } = this.frames
        cells[element] = this.#a
        cells[element + 1] = this.#b
        cells[element + BEFORE] = last
        last = element
      } while (this.#more(closeBracket))
    }
    this.#a = last
    this.#b = 0
  }

  #map(field: Field): void {
    if (this.json[this.#at] === letterN) {
      this.#none()
      return
    }
    let last = NONE
    let unordered = 0
    if (this.#open(openBrace, closeBrace)) {
      do {
        this.#string()
        const from = this.#a
        const to = this.#b
        this.#colon()
        this.#value(field.kind, field)
        const entry = this.frames.take(ENTRY_BEFORE + 1)
        const { cells } = this.frames
        if (to < 0 || (last > 0 && !this.#before(cells[last] as number, cells[last + 1] as number, from, to))) {
          unordered = 1
        }
        cells[entry] = from
        cells[entry + 1] = to
        cells[entry + ENTRY_VALUE] = this.#a
        cells[entry + ENTRY_VALUE + 1] = this.#b
        cells[entry + ENTRY_BEFORE] = last
        last = entry
      } while (this.#more(closeBrace))
    }
    this.#a = last
    this.#b = unordered
  }

  #schema(kind: number, field: Field): void {
    const first = this.json[this.#at]
    const schema = schemaField(field.message)
    if (first === openBrace) {
      this.#a = this.#message(schema.message)
      this.#b = 1
    } else if (kind === SCHEMA_OR_BOOL) {
      this.#boolean()
      this.#a = NONE
    } else if (first === openBracket) {
      this.#list(kind === SCHEMA_OR_STRINGS ? STRING : MESSAGE, schema)
      this.#b = 2
    } else {
      this.#at = skipValue(this.json, this.#at)
      this.#a = NONE
      this.#b = 0
    }
  }

  /** Whether the first key comes before the second; both are without escapes. */
  #before(from: number, to: number, nextFrom: number, nextTo: number): boolean {
    const { json } = this
    if (to < 0) return false
    let a = from
    let b = nextFrom
    while (a < to && b < nextTo) {
      const left = json[a++] as number
      const right = json[b++] as number
      if (left !== right) return left < right
    }
    return to - from < nextTo - nextFrom
  }

  /** Steps inside; false: it is empty, and passed. */
  #open(bracket: number, close: number): boolean {
    if (this.json[this.#at] !== bracket) throw this.#fault(bracket === openBrace ? 'no object' : 'no array')
    this.#at = skipSpace(this.json, this.#at + 1)
    if (this.json[this.#at] !== close) return true
    this.#at++
    return false
  }

  /** Steps to the next element; false: there is none, and the bracket is passed. */
  #more(close: number): boolean {
    const at = skipSpace(this.json, this.#at)
    const byte = this.json[at]
    if (byte === comma) {
      this.#at = skipSpace(this.json, at + 1)
      return true
    }
    this.#at = at
    if (byte !== close) throw this.#fault('no end of an object or array')
    this.#at = at + 1
    return false
  }

  #colon(): void {
    this.#at = skipSpace(this.json, this.#at)
    if (this.json[this.#at] !== colon) throw this.#fault('no colon')
    this.#at = skipSpace(this.json, this.#at + 1)
  }

  #fault(what: string): ProtobufFault {
    return new ProtobufFault(`${what} at byte ${this.#at}`)
  }
}

/** Of a message that holds a schema or something else. */
export function schemaField(message: Message): Field {
  return message.fields.find(({ goName }) => goName === 'Schema') as Field
}

/** The text between `from` and `to`, which has escapes in it. */
export function unescaped(json: Buffer, from: number, to: number): string {
  try {
    return JSON.parse(json.toString('utf8', from - 1, to + 1)) as string
  } catch {
    throw new ProtobufFault('a string holds an escape that is none')
  }
}
