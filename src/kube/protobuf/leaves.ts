/** Writes values that stand in one place of the JSON, each from where it begins and ends there (gather.ts tells how). */
import { INT32, MICRO_TIME } from './facts.ts'
import { ProtobufFault } from './fault.ts'
import { unescaped } from './gather.ts'
import { canonicalQuantity, isPlainQuantity } from './quantity.ts'
import { readTime, zeroSeconds } from './time.ts'
import type { ProtobufWriter } from './writer.ts'

const FIRST = 0x0a
const THIRD = 0x1a

const quote = 0x22
const minus = 0x2d
const zero = 0x30
const nine = 0x39
/** So many digits are exact in a number. */
const exactDigits = 15
/** No integer of 64 bits has more. */
const digitsMax = 19

export class Leaves {
  readonly #writer: ProtobufWriter
  #json: Buffer = Buffer.alloc(0)

  constructor(writer: ProtobufWriter) {
    this.#writer = writer
  }

  start(json: Buffer): void {
    this.#json = json
  }

  /** With its length. */
  string(a: number, b: number): void {
    const writer = this.#writer
    if (b >= 0) {
      writer.copy(this.#json, a, b)
      writer.varint(b - a)
      return
    }
    const before = writer.size
    writer.text(unescaped(this.#json, a, -b))
    writer.length(before)
  }

  /** The bytes of a key, each as a character. */
  key(a: number, b: number): string {
    if (b >= 0) return this.#json.toString('latin1', a, b)
    return Buffer.from(unescaped(this.#json, a, -b)).toString('latin1')
  }

  bytes(a: number, b: number): void {
    if (a === 0) return
    const decoded = decodeBase64(this.#text(a, b))
    this.#writer.copy(decoded, 0, decoded.length)
  }

  time(kind: number, a: number, b: number): void {
    if (a === 0) return
    const { seconds, micros } = readTime(this.#json, a, Math.abs(b))
    if (seconds === zeroSeconds && micros === 0) return
    const writer = this.#writer
    writer.integer(kind === MICRO_TIME ? micros * 1000 : 0)
    writer.byte(0x10)
    writer.integer(seconds)
    writer.byte(0x08)
  }

  quantity(a: number, b: number): void {
    const writer = this.#writer
    const json = this.#json
    const quoted = json[a] === quote ? 1 : 0
    const before = writer.size
    if (a === 0) writer.byte(zero)
    else if (isPlainQuantity(json, a + quoted, b - quoted)) writer.copy(json, a + quoted, b - quoted)
    else writer.text(canonicalQuantity(json.toString('utf8', a + quoted, b - quoted).trim()))
    writer.length(before)
    writer.byte(FIRST)
  }

  raw(a: number, b: number): void {
    if (a === 0) return
    this.#writer.copy(this.#json, a, b)
    this.#writer.varint(b - a)
    this.#writer.byte(FIRST)
  }

  intOrString(a: number, b: number): void {
    const writer = this.#writer
    const isString = a !== 0 && this.#json[a] === quote
    const before = writer.size
    if (isString) writer.text(unescaped(this.#json, a + 1, b - 1))
    writer.length(before)
    writer.byte(THIRD)
    if (isString) writer.byte(0)
    else this.integer(INT32, a, b)
    writer.byte(0x10)
    writer.byte(isString ? 1 : 0)
    writer.byte(0x08)
  }

  integer(kind: number, a: number, b: number): void {
    const writer = this.#writer
    const json = this.#json
    const negative = json[a] === minus && a !== 0
    const from = negative ? a + 1 : a
    if (b - from > digitsMax) throw this.#noInteger(a, b)
    if (b - from > exactDigits) {
      const value = BigInt(this.#digits(a, from, b))
      if (BigInt.asIntN(kind === INT32 ? 32 : 64, value) !== value) throw this.#noInteger(a, b)
      writer.int64(value)
      return
    }
    if (from === b && negative) throw this.#noInteger(a, b)
    let value = 0
    for (let i = from; i < b; i++) {
      const byte = json[i] as number
      if (byte < zero || byte > nine) throw this.#noInteger(a, b)
      value = value * 10 + byte - zero
    }
    if (kind === INT32 && value > (negative ? 0x8000_0000 : 0x7fff_ffff)) throw this.#noInteger(a, b)
    writer.integer(negative && value !== 0 ? -value : value)
  }

  #digits(a: number, from: number, b: number): string {
    for (let i = from; i < b; i++) {
      const byte = this.#json[i] as number
      if (byte < zero || byte > nine) throw this.#noInteger(a, b)
    }
    return this.#json.toString('latin1', a, b)
  }

  #noInteger(a: number, b: number): ProtobufFault {
    return new ProtobufFault(`no integer of the size at bytes ${a} to ${b}`)
  }

  number(a: number, b: number): number {
    const text = this.#json.toString('latin1', a, b)
    const value = Number(text)
    if (Number.isNaN(value)) throw new ProtobufFault(`no number: ${text}`)
    return value
  }

  #text(a: number, b: number): string {
    return b < 0 ? unescaped(this.#json, a, -b) : this.#json.toString('utf8', a, b)
  }
}

/** The platform passes over what does not belong there; Go only over line ends. */
function decodeBase64(text: string): Buffer {
  const digits = /[\r\n]/.test(text) ? text.replace(/[\r\n]/g, '') : text
  const decoded = Buffer.from(digits, 'base64')
  const padding = digits.endsWith('==') ? 2 : digits.endsWith('=') ? 1 : 0
  const whole = digits.length % 4 === 0 && decoded.length === (digits.length / 4) * 3 - padding
  if (!whole || /[-_]/.test(digits)) throw new ProtobufFault('illegal base64 data')
  return decoded
}
