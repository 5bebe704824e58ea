/**
 * JSON as Go prints it, growing in one buffer: strings with `<`, `>`, `&` and the line separators of Unicode escaped, and
 * each byte that is no UTF-8 as `\ufffd`. Members are written with a comma behind them; the closing bracket takes its place.
 */
import { isJson } from '../json/wellformed.ts'
import { ProtobufFault } from './fault.ts'

/** What stays allocated between two objects: most are smaller than this. */
const bytesKept = 1 << 16
/**
 * Two bytes of a message can stand for a hundred of JSON (an empty element of a list, printed with its required members);
 * nothing that is stored, and no list of it in one answer, comes near this.
 */
const bytesMax = 1 << 25
/** From here on a copy by the platform is cheaper than one by hand. */
const copyFrom = 48

const comma = 0x2c
const quote = 0x22
const zero = 0x30
const backslash = 0x5c

/** What may not stand in a string as it is. */
const special = new Uint8Array(256).fill(1, 0, 0x20).fill(1, 0x80)
for (const byte of Buffer.from('"\\<>&')) special[byte] = 1

const escapes = new Map<number, Buffer>()
for (let byte = 0; byte < 0x80; byte++) {
  if (special[byte]) escapes.set(byte, Buffer.from(`\\u${byte.toString(16).padStart(4, '0')}`))
}
for (const [char, letter] of ['""', '\\\\', '\bb', '\ff', '\nn', '\rr', '\tt']) {
  escapes.set((char as string).charCodeAt(0), Buffer.from(`\\${letter}`))
}
const replacement = Buffer.from('\\ufffd')

export class Output {
  #bytes = Buffer.allocUnsafeSlow(bytesKept)
  #at = 0

  byte(value: number): void {
    if (this.#at === this.#bytes.length) this.#room(1)
    this.#bytes[this.#at++] = value
  }

  copy(source: Buffer, from: number, to: number): void {
    const length = to - from
    if (this.#bytes.length - this.#at < length) this.#room(length)
    const bytes = this.#bytes
    const start = this.#at
    if (length < copyFrom) for (let i = 0; i < length; i++) bytes[start + i] = source[from + i] as number
    else source.copy(bytes, start, from, to)
    this.#at = start + length
  }

  put(source: Buffer): void {
    this.copy(source, 0, source.length)
  }

  /** Plain text: no byte of it is beyond ASCII. */
  ascii(text: string): void {
    if (this.#bytes.length - this.#at < text.length) this.#room(text.length)
    for (let i = 0; i < text.length; i++) this.#bytes[this.#at++] = text.charCodeAt(i)
  }

  integer(value: number | bigint): void {
    if (typeof value === 'number' && value >= 0 && value < 10) this.byte(zero + value)
    else this.ascii(String(value))
  }

  /** Ends an object or array: in the place of the last comma, if there is one. */
  close(bracket: number): void {
    if (this.#bytes[this.#at - 1] === comma) this.#bytes[this.#at - 1] = bracket
    else this.byte(bracket)
  }

  /** The bytes of a message's string, quoted. */
  string(source: Buffer, from: number, to: number): void {
    this.byte(quote)
    let plain = from
    let at = from
    while (at < to) {
      const byte = source[at] as number
      if (!special[byte]) {
        at++
        continue
      }
      const size = byte < 0x80 ? 0 : sequence(source, at, to)
      if (size > 1 && !isSeparator(source, at)) {
        at += size
        continue
      }
      this.copy(source, plain, at)
      if (size > 1) this.ascii(source[at + 2] === 0xa8 ? '\\u2028' : '\\u2029')
      else this.put(escapes.get(byte) ?? replacement)
      at += Math.max(1, size)
      plain = at
    }
    this.copy(source, plain, to)
    this.byte(quote)
  }

  /** JSON that a message holds as bytes: without spaces, and escaped like everything else. */
  raw(source: Buffer): void {
    if (!isJson(source)) throw new ProtobufFault('raw JSON that is none')
    let quoted = false
    for (let at = 0; at < source.length; at++) {
      const byte = source[at] as number
      if (!quoted && byte <= 0x20) continue
      if (byte === quote) quoted = !quoted
      else if (byte === backslash) this.byte(source[at++] as number)
      else if (byte === 0x3c || byte === 0x3e || byte === 0x26) {
        this.put(escapes.get(byte) as Buffer)
        continue
      } else if (byte === 0xe2 && isSeparator(source, at)) {
        this.ascii(source[at + 2] === 0xa8 ? '\\u2028' : '\\u2029')
        at += 2
        continue
      }
      this.byte(source[at] as number)
    }
  }

  /** How much is written. */
  get size(): number {
    return this.#at
  }

  /** A copy of what was written since so much was. */
  since(before: number): Buffer {
    return Buffer.from(this.#bytes.subarray(before, this.#at))
  }

  clear(): void {
    if (this.#bytes.length > bytesKept) this.#bytes = Buffer.allocUnsafeSlow(bytesKept)
    this.#at = 0
  }

  #room(length: number): void {
    const wanted = this.#at + length
    if (wanted > bytesMax) throw new ProtobufFault('an object larger than any that can be stored')
    const larger = Buffer.allocUnsafeSlow(Math.max(this.#bytes.length * 2, wanted))
    this.#bytes.copy(larger, 0, 0, this.#at)
    this.#bytes = larger
  }
}

/** How many bytes the character beyond ASCII at `at` has; 1: it is none. */
function sequence(source: Buffer, at: number, end: number): number {
  const first = source[at] as number
  const size = first < 0xc2 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 1
  if (size === 1 || at + size > end) return 1
  const second = source[at + 1] as number
  const least = first === 0xe0 ? 0xa0 : first === 0xf0 ? 0x90 : 0x80
  const most = first === 0xed ? 0x9f : first === 0xf4 ? 0x8f : 0xbf
  if (second < least || second > most) return 1
  for (let i = 2; i < size; i++) if (((source[at + i] as number) & 0xc0) !== 0x80) return 1
  return size
}

/** U+2028 and U+2029, which no JavaScript of old could have in a string. */
function isSeparator(source: Buffer, at: number): boolean {
  return source[at] === 0xe2 && source[at + 1] === 0x80 && ((source[at + 2] as number) & 0xfe) === 0xa8
}
