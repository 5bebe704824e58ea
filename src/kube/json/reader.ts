/**
 * The parser behind parseJson: recursive descent over a string, with the errors of Go's encoding/json. It is written for
 * speed in the common case: a string without escapes is one slice, a short integer is summed up while it is scanned.
 */
import { numberFrom, type Spelled } from './number.ts'

export type Json = null | boolean | string | number | Spelled | Json[] | JsonObject
export type JsonObject = Map<string, Json>

export class JsonError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'JsonError'
  }
}

/**
 * Go allows 10,000 levels. Parsing, printing, copying and patching recurse here, and a thread's stack of one megabyte
 * must hold the deepest of them with room to spare; real objects, CRD schemas included, stay below a hundred.
 */
export const DEPTH_MAX = 1000

/** Integers up to this many digits are exact in a double, so their spelling needs no check. */
const EXACT_DIGITS = 15

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const COLON = 0x3a
const MINUS = 0x2d
const DOT = 0x2e
const ZERO = 0x30
const NINE = 0x39
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d

const ESCAPES: Readonly<Record<string, string>> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
}

export class JsonReader {
  readonly #source: string
  readonly #duplicates: ((path: string) => void) | undefined
  readonly #path: string[] = []
  #at = 0
  #depth = 0

  constructor(source: string, duplicates: ((path: string) => void) | undefined) {
    this.#source = source
    this.#duplicates = duplicates
  }

  document(): Json {
    const value = this.#value(this.#next())
    if (!Number.isNaN(this.#next())) throw this.#unexpected('after top-level value')
    return value
  }

  /** The code of the next character that is not white space; NaN at the end. */
  #next(): number {
    for (;;) {
      const code = this.#source.charCodeAt(this.#at)
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return code
      this.#at++
    }
  }

  #value(code: number): Json {
    switch (code) {
      case QUOTE:
        return this.#string()
      case OPEN_BRACE:
        return this.#object()
      case OPEN_BRACKET:
        return this.#array()
      case 0x74:
        return this.#literal('true', true)
      case 0x66:
        return this.#literal('false', false)
      case 0x6e:
        return this.#literal('null', null)
    }
    if (code === MINUS || (code >= ZERO && code <= NINE)) return this.#number()
    throw this.#unexpected('looking for beginning of value')
  }

  #object(): JsonObject {
    this.#enter()
    const object: JsonObject = new Map()
    let code = this.#next()
    if (code === CLOSE_BRACE) {
      this.#leave()
      return object
    }
    for (;;) {
      if (code !== QUOTE) throw this.#unexpected('looking for beginning of object key string')
      const key = this.#string()
      if (this.#next() !== COLON) throw this.#unexpected('after object key')
      this.#at++
      if (this.#duplicates === undefined) object.set(key, this.#value(this.#next()))
      else this.#member(object, key, this.#duplicates)
      code = this.#next()
      if (code === CLOSE_BRACE) {
        this.#leave()
        return object
      }
      if (code !== COMMA) throw this.#unexpected('after object key:value pair')
      this.#at++
      code = this.#next()
    }
  }

  #member(object: JsonObject, key: string, duplicates: (path: string) => void): void {
    this.#path.push(this.#path.length === 0 ? key : `.${key}`)
    if (object.has(key)) duplicates(this.#path.join(''))
    object.set(key, this.#value(this.#next()))
    this.#path.pop()
  }

  #array(): Json[] {
    this.#enter()
    const array: Json[] = []
    let code = this.#next()
    if (code === CLOSE_BRACKET) {
      this.#leave()
      return array
    }
    for (;;) {
      if (this.#duplicates !== undefined) this.#path.push(`[${array.length}]`)
      array.push(this.#value(code))
      if (this.#duplicates !== undefined) this.#path.pop()
      code = this.#next()
      if (code === CLOSE_BRACKET) {
        this.#leave()
        return array
      }
      if (code !== COMMA) throw this.#unexpected('after array element')
      this.#at++
      code = this.#next()
    }
  }

  #enter(): void {
    this.#at++
    if (++this.#depth > DEPTH_MAX) throw new JsonError('exceeded max depth')
  }

  #leave(): void {
    this.#at++
    this.#depth--
  }

  #literal(word: string, value: boolean | null): boolean | null {
    for (let index = 1; index < word.length; index++) {
      this.#at++
      if (this.#source.charCodeAt(this.#at) !== word.charCodeAt(index)) {
        throw this.#unexpected(`in literal ${word} (expecting '${word[index]}')`)
      }
    }
    this.#at++
    return value
  }

  #number(): Json {
    const source = this.#source
    const start = this.#at
    if (source.charCodeAt(start) === MINUS) this.#at++
    let code = source.charCodeAt(this.#at)
    let whole = 0
    if (code === ZERO) code = source.charCodeAt(++this.#at)
    else {
      if (!isDigit(code)) throw this.#unexpected('in numeric literal')
      for (; isDigit(code); code = source.charCodeAt(++this.#at)) whole = whole * 10 + (code - ZERO)
    }
    const fraction = code === DOT
    if (fraction) code = this.#digits('after decimal point in numeric literal')
    if (code === 0x65 || code === 0x45) {
      const sign = source.charCodeAt(this.#at + 1)
      if (sign === MINUS || sign === 0x2b) this.#at++
      this.#digits('in exponent of numeric literal')
    } else if (!fraction && this.#at - start <= EXACT_DIGITS && (whole !== 0 || source.charCodeAt(start) === ZERO)) {
      return source.charCodeAt(start) === MINUS ? -whole : whole
    }
    return numberFrom(source.slice(start, this.#at))
  }

  /** At least one digit after the current character; returns the code that follows. */
  #digits(where: string): number {
    let code = this.#source.charCodeAt(++this.#at)
    if (!isDigit(code)) throw this.#unexpected(where)
    while (isDigit(code)) code = this.#source.charCodeAt(++this.#at)
    return code
  }

  #string(): string {
    const source = this.#source
    const start = ++this.#at
    for (let at = start; ; at++) {
      const code = source.charCodeAt(at)
      if (code === QUOTE) {
        this.#at = at + 1
        return source.slice(start, at)
      }
      if (code === BACKSLASH) return this.#escaped(start, at)
      if (!(code >= 0x20)) {
        this.#at = at
        throw this.#unexpected('in string literal')
      }
    }
  }

  /** What JavaScript's own parser takes means the same here, and it is many times faster with long texts. */
  #escaped(start: number, from: number): string {
    const source = this.#source
    let end = from
    for (let code = BACKSLASH; code >= 0x20 && code !== QUOTE; code = source.charCodeAt(end)) {
      end += code === BACKSLASH ? 2 : 1
    }
    try {
      const text = JSON.parse(source.slice(start - 1, end + 1)) as string
      this.#at = end + 1
      // As in Go, half a surrogate pair becomes U+FFFD.
      return text.toWellFormed()
    } catch {
      return this.#escapedSlowly(start, from)
    }
  }

  /** One by one, to the character that is wrong. */
  #escapedSlowly(start: number, from: number): string {
    const source = this.#source
    let out = source.slice(start, from)
    this.#at = from
    for (;;) {
      const code = source.charCodeAt(this.#at)
      if (code === QUOTE) {
        this.#at++
        return out.toWellFormed()
      }
      if (code === BACKSLASH) {
        out += this.#escape()
      } else {
        if (!(code >= 0x20)) throw this.#unexpected('in string literal')
        out += source[this.#at++]
      }
    }
  }

  #escape(): string {
    const letter = this.#source.charAt(++this.#at)
    const plain = letter === '' || letter === 'u' ? undefined : ESCAPES[letter]
    if (plain !== undefined) {
      this.#at++
      return plain
    }
    if (letter !== 'u') throw this.#unexpected('in string escape code')
    const start = this.#at + 1
    for (let index = 0; index < 4; index++) {
      if (!/^[0-9a-fA-F]$/.test(this.#source.charAt(++this.#at))) {
        throw this.#unexpected('in \\u hexadecimal character escape')
      }
    }
    this.#at++
    return String.fromCharCode(Number.parseInt(this.#source.slice(start, this.#at), 16))
  }

  /** Go names the offending byte, so a character outside ASCII shows as the first byte of its UTF-8. */
  #unexpected(where: string): JsonError {
    const code = this.#source.codePointAt(this.#at)
    if (code === undefined) return new JsonError('unexpected end of JSON input')
    return new JsonError(`invalid character ${quoteByte(Buffer.from(String.fromCodePoint(code))[0]!)} ${where}`)
  }
}

function isDigit(code: number): boolean {
  return code >= ZERO && code <= NINE
}

const GO_ESCAPES: Readonly<Record<number, string>> = {
  7: '\\a',
  8: '\\b',
  9: '\\t',
  10: '\\n',
  11: '\\v',
  12: '\\f',
  13: '\\r',
  39: "\\'",
  92: '\\\\',
}

function quoteByte(byte: number): string {
  const hex = byte.toString(16).padStart(2, '0')
  const escaped = GO_ESCAPES[byte] ?? (byte < 0x20 || byte === 0x7f ? `\\x${hex}` : undefined)
  if (escaped !== undefined) return `'${escaped}'`
  return byte >= 0x80 && (byte <= 0xa0 || byte === 0xad) ? `'\\u00${hex}'` : `'${String.fromCharCode(byte)}'`
}
